"""An audit for people: what runs, how far it is from what could run, why, and what to do.

llama-3-70b on h100-nvl8-x1: 2.1 times the cost that its speed needs

  at equal speed   $0.41/Mtoken, 52 % less, with …
  at equal cost    98 tok/s, 40 % faster, with …
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from planner.quantities.tables import packaged_table
from planner.quantities.units import show
from planner.report.documents import blocks
from planner.report.drawings.chart import Line, Mark, frontiers_drawing
from planner.report.words import layout_text, percent, plural, user_speed
from planner.results.audits import Audit
from planner.results.deployments import Deployment
from planner.results.surveys import Curve

_CLOSE = 0.05  # a share that measurements do not tell apart
_LEAST_SAVING = 0.005
_SOME = 0.15  # of the time: worth a sentence

_REMEDIES: Mapping[str, str] = packaged_table("report/words.toml")["remedies"]
"""What makes a part of the time large, and what makes it smaller."""


def document(audit: Audit, *, curves: Sequence[Curve] = ()) -> blocks.Document:
    """What runs, how far it is from what could run, why, and what to do.

    Args:
        curves: frontiers of decoding to draw it beside, that of the formats which run first.
    """
    line = line_of(audit)
    lines = [
        Line(label=curve.case.weights, frontier=curve.frontier)
        for curve in curves
        if curve.frontier is not None and curve.frontier.points
    ]
    drawing = blocks.Drawing(svg=partial(_drawn, audit, lines))
    return blocks.Document(
        title=f"{audit.request.model.name} on {audit.request.cluster.name}: audit",
        line=line,
        head=(blocks.Note(line), *blocks.notes(_best(audit))),
        sections=(
            blocks.section("frontiers of decoding", *([drawing] if lines else [])),
            blocks.section("what runs", blocks.Pairs(_observed_rows(audit))),
            blocks.section("distance from the frontier, formats unchanged", _distances(audit)),
            blocks.section("what explains it", _explained(audit)),
            blocks.section("where the time of a token goes", *_times(audit)),
            blocks.section("what would help, at this speed or better", *_changes(audit)),
            blocks.section("try", _commands(audit)),
        ),
    )


def _best(audit: Audit) -> Iterator[str]:
    """What could run, as fast and as dear."""
    for label, *cells in _distances(audit).rows[1:3]:
        yield f"{label}: {', '.join(str(cell) for cell in cells if cell)}"


def _drawn(audit: Audit, lines: Sequence[Line]) -> str:
    """What runs as a point, and where it would be on the frontier of its own formats."""
    seen = audit.observed
    text = (
        f"what runs\n{1.0 / seen.tpot_s:.3g} token/s per user at "
        f"{show(seen.usd_per_token, 'USD/token')}\n{seen.n_devices} devices, batch {seen.batch}"
    )
    marks = [Mark(x=seen.tpot_s, y=seen.usd_per_token, label="what runs", text=text)]
    for label, best in (("at equal speed", audit.equal_speed), ("at equal cost", audit.equal_cost)):
        if best is not None:
            x, y = best.tpot_s, best.usd_per_decoded_token
            where = f"{label}\n{best.summary}"
            marks.append(Mark(x=x, y=y, label=label, text=where, is_ring=True))
    return frontiers_drawing(lines, marks)


def line_of(audit: Audit) -> str:
    factor = audit.cost_factor
    who = f"{audit.request.model.name} on {audit.request.cluster.name}"
    if factor is None:
        return f"{who}: faster than this model says that the pool can be"
    if factor < 1.0 - _CLOSE:
        return (
            f"{who}: {percent(1.0 - factor)} cheaper than this model says that its speed can be; "
            "look at what was measured before changing anything"
        )
    if factor < 1.0 + _CLOSE:
        return f"{who}: on the frontier, within 5 % of the least cost at its speed"
    return f"{who}: {factor:.3g} times the cost that its speed needs"


def _observed_rows(audit: Audit) -> list[tuple[str, str]]:
    seen, cluster, workload = audit.observed, audit.request.cluster, audit.request.workload
    rent = show(seen.n_devices * cluster.usd_per_hour, "USD/h")
    tokens_per_s = seen.batch / seen.tpot_s
    return [
        ("devices", f"{seen.n_devices} of {cluster.n_devices} × {cluster.device.title}, {rent}"),
        ("formats", f"{seen.weights_format} weights, {seen.kv_format} KV cache"),
        (
            "load",
            f"{plural(seen.batch, 'user')} at {user_speed(seen.tpot_s)}: {tokens_per_s:,.0f} tok/s "
            f"in all, {percent(seen.mfu_fraction)} MFU",
        ),
        (
            "context",
            f"{workload.mean_decode_context:.0f} tokens: {workload.n_input_tokens} in, "
            f"{workload.n_output_tokens} out; `--input` and `--output` say otherwise",
        ),
        ("cost", f"{show(seen.usd_per_token, 'USD/token')} of decoding, prefill left out"),
        *(("layout", layout_text(one)) for one in audit.request.targets.layouts.fixed().values()),
    ]


def _distances(audit: Audit) -> blocks.Table:
    seen = audit.observed
    cost, speed = audit.cost_factor, audit.speed_factor
    cheaper = "" if cost is None else _change_text(1.0 / cost - 1.0, "cheaper", "dearer")
    faster = "" if speed is None else _change_text(1.0 - speed, "faster", "slower")
    laid_out = ", as laid out" if audit.request.targets.layouts.fixed() else ""
    rows = [
        ("observed", user_speed(seen.tpot_s), show(seen.usd_per_token, "USD/token"), "", ""),
        _distance_row("at equal speed", audit.equal_speed, cheaper),
        _distance_row("at equal cost", audit.equal_cost, faster),
        _distance_row(f"same devices, same batch{laid_out}", audit.possible, ""),
    ]
    heads = ("", "speed per user", "output token", "", "")
    return blocks.Table(heads=heads, rows=rows, align="<>><<")


def _distance_row(label: str, deployment: Deployment | None, words: str) -> tuple[str, ...]:
    if deployment is None:
        return (label, "none", "", "", "")
    cost = show(deployment.usd_per_decoded_token, "USD/token")
    return (label, user_speed(deployment.tpot_s), cost, words, _decode_text(deployment))


def _change_text(change: float, less: str, more: str) -> str:
    """`52 % cheaper`; a change below zero is the good one."""
    if abs(change) < 0.005:
        return "the same"
    return f"{percent(abs(change))} {less if change < 0 else more}"


def _explained(audit: Audit) -> blocks.Block:
    """The largest factor of the distance in cost, or what to check where the model is beaten."""
    factor, seen, best = audit.cost_factor, audit.observed, audit.equal_speed
    if factor is None or best is None or factor < 1.0 - _CLOSE:
        workload = audit.request.workload
        return blocks.Note(
            "this model asks more time of the devices than was measured. Contexts shorter than "
            f"{workload.mean_decode_context:.0f} tokens would explain it, or fewer users at a "
            "time than was said, speculative decoding, other formats, or devices that attain "
            "more than their file says."
        )
    if factor < 1.0 + _CLOSE:
        return blocks.Note("nothing to explain: what is left is within what one can measure")
    words = {
        "devices": f"{seen.n_devices} devices instead of {best.mesh.n_devices}",
        "batch": f"a batch of {seen.batch} instead of {best.decode.batch}",
        "time": f"{show(seen.tpot_s, 's')} a token instead of {show(best.tpot_s, 's')}",
    }
    rows = [
        (f"{part:.3g} times", words[name])
        for name, part in sorted(audit.factors, key=lambda pair: -pair[1])
        if abs(part - 1.0) >= 0.005
    ]
    return blocks.Table(rows=rows, align="><")


def _times(audit: Audit) -> list[blocks.Block]:
    """Parts of the time that the same devices and batch need, what no part explains, a remedy."""
    total, excess = audit.observed.tpot_s, audit.excess
    if not excess:
        return []
    rows = [
        (name, _signed(part), percent(part / total), blocks.Bar(part / total))
        for name, part in excess
        if part
    ]
    name, part = max(excess, key=lambda pair: pair[1])
    said = ("", f"{name}: {_REMEDIES[name]}.") if part / total >= _SOME else ()
    return [blocks.Table(rows=rows, align="<>><"), *map(blocks.Note, said)]


def _signed(seconds: float) -> str:
    return show(seconds, "s") if seconds >= 0 else f"-{show(-seconds, 's')}"


def _savings(audit: Audit) -> list[float]:
    """Share of the cost that each change saves."""
    return [1.0 - one.usd_per_token / audit.baseline_usd_per_token for one in audit.changes]


def _changes(audit: Audit) -> list[blocks.Block]:
    baseline, rows, idle = audit.baseline_usd_per_token, [], []
    for i, (change, saving) in enumerate(zip(audit.changes, _savings(audit), strict=True), start=1):
        if saving < _LEAST_SAVING:
            idle.append(change.name)
            continue
        cost, what = show(change.usd_per_token, "USD/token"), _decode_text(change.deployment)
        rows.append((f"{i}", percent(saving), cost, change.name, what))
    said = []
    if not rows and not audit.untried:
        said.append("nothing that this model knows of")
    if rows and baseline > audit.observed.usd_per_token:
        least = show(baseline, "USD/token")
        said.append(f"savings are from {least}, this model's least for what runs")
    if idle:
        said.append(f"no gain: {', '.join(idle)}")
    if audit.untried:
        said.append(f"time ended before these were tried: {', '.join(audit.untried)}")
    heads = ("", "saves", "output token", "change", "")
    return [blocks.Table(heads=heads, rows=rows, align=">>><<"), *blocks.notes(said)]


def _commands(audit: Audit) -> blocks.Table:
    """What plans each change that saves, in one piece each, for copying."""
    pairs = zip(audit.changes, _savings(audit), strict=True)
    rows = [
        (f"{i}", one.command) for i, (one, saving) in enumerate(pairs, 1) if saving >= _LEAST_SAVING
    ]
    return blocks.Table(rows=rows, align="><")


def _decode_text(best: Deployment) -> str:
    decode, draft = best.decode, best.draft
    drafted = f", {draft.n_drafted} drafted" if draft else ""
    formats = f"{best.weights_format}/{best.kv_format}"
    return f"{best.mesh.text}, {formats}, {decode.layout}, batch {decode.batch}{drafted}"
