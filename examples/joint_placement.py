"""Layout and placement at once, or the layout first: what is lost, in five situations.

Choosing a layout as if the cluster were empty, and then looking for places where it fits, is
what a planner of degrees leaves to its user.
"""

from collections.abc import Iterator

from planner import Placement, Serve, State, Targets, load_model, load_pool, place
from planner.specs.files.state import LinkState, SlowDevices

TARGETS = Targets(tpot_s=0.050)

SITUATIONS = {
    "one GPU of every node is busy": (
        ("llama-3.1-70b", "bf16", "h100-nvl8-x4"),
        State(busy=("node*/gpu7",)),
    ),
    "two GPUs of most nodes are busy": (
        ("llama-3.1-405b", "fp8", "h100-nvl8-x8"),
        State(busy=("node{0..5}/gpu{0..1}",)),
    ),
    "an adapter is down in most nodes": (
        ("deepseek-v3", "fp8", "h100-nvl8-x8"),
        State(links=(LinkState(part="nic", names=("node{0..5}/gpu0",), bandwidth_fraction=0.0),)),
    ),
    "one GPU of every node is slow": (
        ("llama-3.1-70b", "bf16", "h100-nvl8-x4"),
        State(slow=(SlowDevices(devices=("node*/gpu0",), speed_fraction=0.5),)),
    ),
    "three nodes are left of every leaf": (
        ("deepseek-v3", "fp8", "h100-fat-tree-x64"),
        State(busy=("node{0..28}", "node{32..60}")),
    ),
}


def compared() -> Iterator[tuple[str, Placement, Placement]]:
    """Each situation with its joint placement, and that of the layout chosen first."""
    asked = {"engine": "roofline", "targets": TARGETS, "confidence": 0.0}  # as predicted
    for name, ((model, weights, pool), state) in SITUATIONS.items():
        wish = Serve(model=load_model(model), weights_formats=[weights])
        joint, staged = (
            place(load_pool(pool), wish, **asked, state=state, layout_first=first)
            for first in (False, True)
        )
        yield name, joint, staged


if __name__ == "__main__":
    for situation, best, first in compared():
        lost = 1 - first.output_tokens_per_s / best.output_tokens_per_s
        print(
            f"{situation:<36}{best.output_tokens_per_s:>8.0f} tokens/s, "
            f"layout first {first.output_tokens_per_s:>6.0f}: loses {lost:.0%}"
        )
