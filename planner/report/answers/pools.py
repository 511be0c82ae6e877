"""Devices of attention and of experts beside each other: who waits for whom, and why."""

from collections.abc import Iterator

from planner.quantities.units import show
from planner.report.documents import blocks
from planner.report.words import percent
from planner.results.experts import ExpertPool, PoolLayer

NOT_STARTED = (
    "started by no engine that is described here: none of these versions has attention and experts "
    "on devices of their own, so that there is a prediction and no command"
)

_STATIONS = ("attention", "out", "experts", "back")
_WORDS = {"out": "links to experts", "back": "links back"}


def pool_sections(pool: ExpertPool | None) -> Iterator[blocks.Section]:
    """What layers take, and what a device of experts holds; nothing without such devices."""
    if pool is None:
        return
    title = f"attention on {pool.n_attention_devices} devices, experts on {pool.n_expert_devices}"
    rows = [row for layer in pool.layers for row in _rows(layer, pool.n_microbatches)]
    heads = ("", "a micro-batch", "sent", "all of them", "")
    waits = (
        f"of a pass devices of attention compute {percent(pool.attention_fraction)}, those of "
        f"experts {percent(pool.experts_fraction)}: the rest they wait"
    )
    where = "leave nodes" if pool.crosses_nodes else "stay in one node"
    held = (
        ("weights", pool.weights_bytes),
        ("activations", pool.activation_bytes),
        ("engine", pool.workspace_bytes),
    )
    yield blocks.section(
        title,
        blocks.Table(heads=heads, rows=rows, align="<>>>>"),
        *blocks.notes([f"messages between both {where}", waits]),
    )
    table = blocks.Table(rows=[(name, show(size, "B")) for name, size in held], align="<>")
    yield blocks.section("memory of a device of experts", table)


def _rows(layer: PoolLayer, n_microbatches: int) -> Iterator[blocks.Row]:
    """A layer, then each of its stations; the one that the others wait for is named."""
    period = f"{show(layer.period_s, 's')} × {layer.n_layers}"
    yield (layer.name, "", "", period, _bound(layer))
    sent = {"out": layer.out_bytes, "back": layer.back_bytes}
    for name in _STATIONS:
        seconds = getattr(layer, f"{name}_s")
        if seconds:
            n_bytes = show(sent[name], "B") if name in sent else ""
            whole = show(seconds * n_microbatches, "s")
            yield (f"  {_WORDS.get(name, name)}", show(seconds, "s"), n_bytes, whole, "")


def _bound(layer: PoolLayer) -> str:
    """What a layer takes so long for."""
    if not layer.experts_s:
        return "attention alone"
    if layer.is_filled:
        return f"all wait for {_WORDS.get(layer.busiest, layer.busiest)}"
    return "all wait for a micro-batch's way around: more of them would be faster"
