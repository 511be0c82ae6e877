"""Commands that read each of the files that are altered."""

from __future__ import annotations


def plan_of(
    model: str, pool: str, *more: str, tokens: str = "1024,64", batch: str = "1,8,64"
) -> str:
    read, written = tokens.split(",")
    asked = f"--model {model} --topology {pool} --input {read} --output {written}"
    return " ".join((asked, f"--batch {batch} --prefill-batch 1,4", *more, "--json"))


def plans_of(model: str, pool: str, *cuts: str) -> tuple[str, ...]:
    """Plans that gather, scatter and exchange: for least latency, cost, and time to a token."""
    return tuple(
        plan_of(model, pool, f"--objective {objective}", cut)
        for objective in ("latency", "ttft", "cost")
        for cut in cuts
    )


def _predict(model: str, *more: str, pool: str = "toymeasured") -> str:
    asked = f"predict --model {model} --topology {pool} --engine toyengine"
    return " ".join((asked, "--input 1024 --output 64", *more, "--json"))


def _place(pool: str, *more: str, batch: int = 8) -> str:
    asked = f"place --model toy --topology {pool} --input 1024 --output 64 --batch {batch}"
    return " ".join((asked, *more, "--json"))


READERS: dict[str, tuple[str, ...]] = {
    "models/toy.toml": (
        *plans_of("toy", "toytree", "--tp 4"),
        plan_of("toy", "toytree", "--max-quality-loss 2.2%"),
        plan_of("toy", "toytree", "--kv fp8 --max-quality-loss 2.2%"),
        plan_of("toy", "toytree", tokens="3000,200"),
        _predict("toy", "--batch 8"),
    ),
    "models/toymix.toml": (
        *plans_of("toymix", "toytree", "--tp 4"),
        _predict("toymix", "--batch 8 --draft mtp"),
    ),
    "topologies/devices/toychip.toml": (
        *plans_of("toy", "toymeasured", "--tp 2"),
        plan_of("toy", "toymeasured", "--weights int8 --objective ttft --tp 1"),
    ),
    "topologies/toytree.toml": plans_of("toy", "toytree", "--tp 4", "--tp 8", "--tp 2"),
    "topologies/toymeasured.toml": (
        *(_predict("toy", more) for more in ("--tp 2 --batch 1", "--tp 4 --batch 64")),
        *plans_of("toy", "toymeasured", "--tp 2", "--tp 4", "--tp 8"),
        *plans_of("toymix", "toymeasured", "--ep 2", "--ep 4"),
        *(
            plan_of(model, "toymeasured", f"--objective ttft {cut}", batch="256")
            for model in ("toy", "toymix")
            for cut in ("--tp 4", "--tp 2")
        ),
    ),
    "topologies/toyproto.toml": plans_of("toy", "toyproto", "--tp 8", "--tp 4", "--tp 2 --pp 2"),
    "topologies/toytorus.toml": (
        *plans_of("toy", "toytorus-4", "", "--tp 4", "--tp 16"),
        *plans_of("toy", "toytorus-8", "--tp 8", "--tp 32"),
    ),
    "topologies/toylinked.toml": plans_of("toy", "toylinked", "--tp 2"),
    "topologies/fabrics/toyfabric.toml": (
        _place("toyfabric", "--replica-devices 8 --replicas 2 --objective latency"),
        # more than one leaf holds, so that replicas cross the spine
        _place("toyfabric", "--replica-devices 16 --replicas 1 --objective latency", batch=600),
        # of one node two devices are free, of another the other two: on other rails
        _place("toyfabric --state rails.toml", "--replica-devices 4 --replicas 1", batch=120),
    ),
    "engines/toyengine.toml": (
        *(_predict("toy", f"--batch {batch}") for batch in (8, 64)),
        _predict("toymix", "--batch 8"),
        _predict("toymix", "--dp 8 --ep 8 --batch 8 --overlap two-batch"),
    ),
    "kernels/toykernels.toml": tuple(_predict("toy", f"--batch {batch}") for batch in (1, 64)),
    "state.toml": tuple(
        _place("toytree --state state.toml", more)
        for more in ("", "--replicas 1 --objective latency", "--replicas 1 --replica-devices 4")
    ),
    "machines.toml": ("layers machines.toml --json",),
    "loads.toml": ("experts --loads loads.toml --ranks 3 --slots 3 --json",),
}
"""Commands that read each file."""
