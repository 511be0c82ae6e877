"""An audit for people: what runs, how far it is from what could run, why, and what to do.

llama-3-70b on h100-nvl8-x1: 2.1 times the cost that its speed needs

  at equal speed   $0.41/Mtoken, 52 % less, with …
  at equal cost    98 tok/s, 40 % faster, with …
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.report.lines import bar, columns, labelled, percent, section, wrapped
from planner.report.times import times_lines
from planner.report.words import plural
from planner.results import Deployment
from planner.results.audits import Audit
from planner.units import show

_BAR = 20
_CLOSE = 0.05  # a share that measurements do not tell apart
_SOME = 0.15  # of the time: worth a sentence

_REMEDIES: Mapping[str, str] = {
    "compute": "arithmetic: take weights in a format that the devices multiply faster",
    "weights": "every pass reads all weights once, whatever the batch: a larger batch shares "
    "them among more users, a narrower format makes them smaller",
    "attention": "every user's cache is read for each token: a narrower format of the KV cache, "
    "or shorter contexts",
    "network": "devices wait for each other's messages: fewer devices of a tensor group, or "
    "faster links",
    "overhead": "launches and host work of each layer: CUDA graphs, fused kernels, a draft model",
    "unexplained": "no part of the model explains it: look for idle batch slots, prefill between "
    "decode passes, slow kernels or a host that does not keep up, before renting anything else",
}
"""What makes a part of the time large, and what makes it smaller."""


def audit_text(audit: Audit, width: int) -> str:
    """The whole report, in lines of at most `width` columns where commands fit in that."""
    sections = (
        "\n".join([*wrapped(audit_line(audit), width), *times_lines(audit, width)]),
        section("what runs", labelled(_observed_rows(audit), width)),
        section("distance from the frontier, formats unchanged", _distance_lines(audit)),
        section("what explains it", _explained_lines(audit, width - 2)),
        section("where the time of a token goes", _time_lines(audit, width - 2)),
        section("what would help, at this speed or better", _change_lines(audit, width - 2)),
        section("try", _commands(audit)),
    )
    return "\n\n".join(filter(None, sections))


def audit_line(audit: Audit) -> str:
    """The verdict in one line."""
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
        (
            "devices",
            f"{seen.n_devices} of {cluster.n_devices} × {cluster.device.title}, {rent}",
        ),
        ("formats", f"{seen.weights_format} weights, {seen.kv_format} KV cache"),
        (
            "load",
            f"{plural(seen.batch, 'user')} at {_speed(seen.tpot_s)}: {tokens_per_s:,.0f} tok/s "
            f"in all, {percent(seen.mfu_fraction)} MFU",
        ),
        (
            "context",
            f"{workload.mean_decode_context:.0f} tokens: {workload.n_input_tokens} in, "
            f"{workload.n_output_tokens} out; `--input` and `--output` say otherwise",
        ),
        ("cost", f"{show(seen.usd_per_token, 'USD/token')} of decoding, prefill left out"),
    ]


def _distance_lines(audit: Audit) -> list[str]:
    seen = audit.observed
    cost, speed = audit.cost_factor, audit.speed_factor
    rows = [
        ("", "speed per user", "output token", "", ""),
        ("observed", _speed(seen.tpot_s), show(seen.usd_per_token, "USD/token"), "", ""),
        _distance_row(
            "at equal speed",
            audit.equal_speed,
            "" if cost is None else _change_text(1.0 / cost - 1.0, "cheaper", "dearer"),
        ),
        _distance_row(
            "at equal cost",
            audit.equal_cost,
            "" if speed is None else _change_text(1.0 - speed, "faster", "slower"),
        ),
        _distance_row("same devices, same batch", audit.possible, ""),
    ]
    return columns(rows, "<>><<")


def _distance_row(label: str, found: Deployment | None, words: str) -> tuple[str, ...]:
    if found is None:
        return (label, "none", "", "", "")
    cost = show(found.usd_per_decoded_token, "USD/token")
    return (label, _speed(found.tpot_s), cost, words, _decode_text(found))


def _change_text(change: float, less: str, more: str) -> str:
    """`52 % cheaper`; a change below zero is the good one."""
    if abs(change) < 0.005:
        return "the same"
    return f"{percent(abs(change))} {less if change < 0 else more}"


def _explained_lines(audit: Audit, width: int) -> list[str]:
    """The largest factor of the distance in cost, or what to check where the model is beaten."""
    factor, seen, best = audit.cost_factor, audit.observed, audit.equal_speed
    if factor is None or best is None or factor < 1.0 - _CLOSE:
        workload = audit.request.workload
        return wrapped(
            "this model asks more time of the devices than was measured. Contexts shorter than "
            f"{workload.mean_decode_context:.0f} tokens would explain it, or fewer users at a "
            "time than was said, speculative decoding, other formats, or devices that attain "
            "more than their file says.",
            width,
        )
    if factor < 1.0 + _CLOSE:
        return ["nothing to explain: what is left is within what one can measure"]
    words = {
        "devices": f"{seen.n_devices} devices instead of {best.mesh.n_devices}",
        "batch": f"a batch of {seen.batch} instead of {best.decode.batch}",
        "time": f"{show(seen.tpot_s, 's')} a token instead of {show(best.tpot_s, 's')}",
    }
    rows = [
        (f"{part:.3g} times", words[name])
        for name, part in sorted(audit.factors, key=lambda one: -one[1])
        if abs(part - 1.0) >= 0.005
    ]
    return columns(rows, "><")


def _time_lines(audit: Audit, width: int) -> list[str]:
    """Parts of the time that the same devices and batch need, what no part explains, a remedy."""
    total, excess = audit.observed.tpot_s, audit.excess
    if not excess:
        return []
    rows = [
        (name, _signed(part), percent(part / total), bar(part / total, _BAR))
        for name, part in excess
        if part
    ]
    name, part = max(excess, key=lambda one: one[1])
    remedy = wrapped(f"{name}: {_REMEDIES[name]}.", width) if part / total >= _SOME else []
    return [*columns(rows, "<>><"), *(["", *remedy] if remedy else [])]


def _signed(seconds: float) -> str:
    return show(seconds, "s") if seconds >= 0 else f"-{show(-seconds, 's')}"


def _change_lines(audit: Audit, width: int) -> list[str]:
    baseline = audit.baseline_usd_per_token
    rows = [("", "saves", "output token", "change", "")]
    idle = []
    for i, change in enumerate(audit.changes, start=1):
        saving = 1.0 - change.usd_per_token / baseline
        if saving < 0.005:
            idle.append(change.name)
            continue
        cost = show(change.usd_per_token, "USD/token")
        rows.append((f"{i}", percent(saving), cost, change.name, _decode_text(change.deployment)))
    lines = columns(rows, ">>><<") if len(rows) > 1 else _nothing(audit)
    if len(rows) > 1 and baseline > audit.observed.usd_per_token:
        least = show(baseline, "USD/token")
        lines += wrapped(f"savings are from {least}, this model's least for what runs", width)
    lines += wrapped(f"no gain: {', '.join(idle)}", width) if idle else []
    untried = f"time ended before these were tried: {', '.join(audit.untried)}"
    return [*lines, *(wrapped(untried, width) if audit.untried else [])]


def _nothing(audit: Audit) -> list[str]:
    return [] if audit.untried else ["nothing that this model knows of"]


def _commands(audit: Audit) -> list[str]:
    """What plans each change that saves, in one piece each, for copying."""
    baseline = audit.baseline_usd_per_token
    rows = [
        (f"{i}", change.command)
        for i, change in enumerate(audit.changes, start=1)
        if 1.0 - change.usd_per_token / baseline >= 0.005
    ]
    return columns(rows, "><") if rows else []


def _decode_text(best: Deployment) -> str:
    decode, draft = best.decode, best.draft
    drafted = f", {draft.n_drafted} drafted" if draft else ""
    formats = f"{best.weights_format}/{best.kv_format}"
    return f"{best.mesh.text}, {formats}, {decode.layout}, batch {decode.batch}{drafted}"


def _speed(tpot_s: float) -> str:
    return f"{1.0 / tpot_s:.3g} tok/s"
