"""An audit for people: what runs, what could run, what explains the difference, what helps.

llama-3-70b on h100-nvl8-x1, bf16 weights: 5.6 times the cost that its speed needs

  observed         70 tok/s per user, batch 32, $2.31/Mtoken, 15 % MFU
  at equal speed   $0.41/Mtoken with …
  at equal cost    98 tok/s per user with …
"""

from __future__ import annotations

from planner.audit_results import Audit
from planner.report.lines import bar, columns, percent, section, wrapped
from planner.results import Deployment
from planner.units import show

_BAR = 20


def audit_text(audit: Audit, width: int) -> str:
    """The whole report, in lines of at most `width` columns."""
    sections = (
        "\n".join(wrapped(audit_line(audit), width)),
        section("distance from the frontier", _distance_lines(audit)),
        section("where the time goes", _time_lines(audit)),
        section("what would help, at this speed or better", _change_lines(audit)),
    )
    return "\n\n".join(filter(None, sections))


def audit_line(audit: Audit) -> str:
    """The verdict in one line."""
    seen, best = audit.observed, audit.equal_speed
    who = f"{audit.request.model.name} on {audit.request.cluster.name}"
    if best is None:
        return f"{who}: faster than this model says that the pool can be"
    factor = seen.usd_per_token / _decode_usd(best)
    if factor < 0.95:
        return (
            f"{who}: {percent(1.0 - factor)} cheaper than this model says that its speed can be; "
            "look at what was measured before changing anything"
        )
    if factor < 1.05:
        return f"{who}: on the frontier, within 5 % of the least cost at its speed"
    return f"{who}: {factor:.3g} times the cost that its speed needs"


def _distance_lines(audit: Audit) -> list[str]:
    seen = audit.observed
    rows = [
        ("", "speed per user", "output token", ""),
        (
            "observed",
            _speed(seen.tpot_s),
            show(seen.usd_per_token, "USD/token"),
            f"{seen.n_devices} devices, {seen.weights_format} weights, batch {seen.batch}, "
            f"{percent(seen.mfu_fraction)} MFU",
        ),
    ]
    for label, found in (
        ("same devices and batch", audit.possible),
        ("at equal speed", audit.equal_speed),
        ("at equal cost", audit.equal_cost),
    ):
        if found is None:
            rows.append((label, "none", "", ""))
        else:
            cost = show(_decode_usd(found), "USD/token")
            rows.append((label, _speed(found.tpot_s), cost, _decode_text(found)))
    return columns(rows, "<>><")


def _time_lines(audit: Audit) -> list[str]:
    """The observed time per token: parts of what is possible, and what nothing explains."""
    total = audit.observed.tpot_s
    rows = [
        (name, _signed(part), percent(part / total), bar(part / total, _BAR))
        for name, part in audit.excess
        if part
    ]
    return columns(rows, "<>><") if rows else []


def _signed(seconds: float) -> str:
    return show(seconds, "s") if seconds >= 0 else f"-{show(-seconds, 's')}"


def _change_lines(audit: Audit) -> list[str]:
    seen = audit.observed
    rows = [("saves", "output token", "change", "")]
    for change in audit.changes:
        saving = 1.0 - change.usd_per_token / seen.usd_per_token
        cost = show(change.usd_per_token, "USD/token")
        rows.append((percent(saving), cost, change.name, _decode_text(change.deployment)))
    return columns(rows, ">><<") if audit.changes else ["nothing that this model knows of"]


def _decode_text(best: Deployment) -> str:
    decode, draft = best.decode, best.draft
    drafted = f", {draft.n_drafted} drafted" if draft else ""
    return (
        f"{best.mesh.label}, {best.weights_format}, {decode.layout}, batch {decode.batch}{drafted}"
    )


def _speed(tpot_s: float) -> str:
    return f"{1.0 / tpot_s:.3g} tok/s"


def _decode_usd(best: Deployment) -> float:
    return best.usd_per_hour / 3600.0 * best.tpot_s / best.decode.batch
