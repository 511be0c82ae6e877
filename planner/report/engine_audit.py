"""An audit of what an engine runs, for people: against its prediction, and against the best.

llama-3.1-70b under vllm: 12 % slower than predicted, and 1.4 times the cost of its speed
"""

from __future__ import annotations

from planner.report.launch.text import launch_text
from planner.report.lines import columns, labelled, percent, section, wrapped
from planner.report.prediction import between
from planner.report.times import times_lines
from planner.results.engines import EngineAudit, EngineDeployment
from planner.units import show

_CLOSE = 0.05  # a share that measurements do not tell apart


def engine_audit_line(audit: EngineAudit) -> str:
    """The verdict in one line."""
    who = f"{audit.predicted.model} on {audit.request.cluster.name} under {audit.request.engine}"
    factor = audit.cost_factor
    if factor is None:
        best = "faster than the pool can be by these estimates"
    elif factor < 1.0 - _CLOSE:
        best = f"{percent(1.0 - factor)} cheaper than its speed can be by these estimates"
    elif factor < 1.0 + _CLOSE:
        best = "within 5 % of the least cost at its speed"
    else:
        best = f"{factor:.3g} times the cost that its speed needs"
    return f"{who}: {_beside_prediction(audit)}; {best}"


def engine_audit_text(audit: EngineAudit, width: int) -> str:
    """The whole report, in lines of at most `width` columns where commands fit in that."""
    runs = audit.predicted
    seen = f"{_speed(audit.observed_tpot_s)}, {show(audit.observed_tpot_s, 's')} a token"
    rows = [
        ("deployment", runs.summary),
        ("observed", f"{seen}, {show(audit.observed_usd_per_token, 'USD/token')}"),
        ("predicted", f"TPOT {between(runs.tpot_s)}"),
        ("off by", f"{abs(audit.errors_off):.2g} standard deviations of the prediction"),
        ("in the pass", f"`{runs.command}`"),
    ]
    best = audit.equal_speed
    hint = f"hint: the plan at this speed: `{audit.command}`" if audit.command else ""
    sections = (
        "\n".join([*wrapped(engine_audit_line(audit), width), *times_lines(audit, width)]),
        section("what runs", labelled(rows, width)),
        section("what the pool could do, formats unchanged", _best_lines(audit, width)),
        section("what to look at", wrapped(_advice(audit), width - 2)),
        "\n".join(wrapped(hint, width)),
        launch_text(best.launch, width, of="the plan at this speed is") if best else "",
    )
    return "\n\n".join(filter(None, sections))


def _beside_prediction(audit: EngineAudit) -> str:
    factor = audit.prediction_factor  # of times a token
    if abs(audit.errors_off) <= 1.0:
        return "as predicted, within the error"
    if factor > 1.0:
        return f"{percent(factor - 1.0)} slower than predicted"
    return f"{percent(1.0 / factor - 1.0)} faster than predicted"


def _best_lines(audit: EngineAudit, width: int) -> list[str]:
    figures = [
        ("", "speed per user", "output token"),
        (
            "observed",
            _speed(audit.observed_tpot_s),
            show(audit.observed_usd_per_token, "USD/token"),
        ),
        ("predicted", *_figures(audit.predicted)),
        ("no more devices", *_figures(audit.same_devices)),
        ("at equal speed", *_figures(audit.equal_speed)),
        ("at equal cost", *_figures(audit.equal_cost)),
    ]
    best = (None, None, None, audit.same_devices, audit.equal_speed, audit.equal_cost)
    lines = []
    for line, one in zip(columns(figures, "<>>"), best, strict=True):
        first, *rest = wrapped(one.summary, max(20, width - len(line) - 4)) if one else [""]
        lines.append(f"{line}  {first}".rstrip())
        lines += [" " * (len(line) + 2) + words for words in rest]
    return lines


def _figures(best: EngineDeployment | None) -> tuple[str, str]:
    if best is None:
        return "none", ""
    return _speed(best.planned_tpot_s), show(best.usd_per_token, "USD/token")


def _advice(audit: EngineAudit) -> str:
    if audit.errors_off > 1.0:
        return (
            "what was measured is slower than these kernels should be: look for another version "
            "or flags of the engine, queues, longer prompts or more requests in flight than was "
            "said, before renting anything else."
        )
    if audit.errors_off < -1.0:
        return (
            "what was measured is faster than these kernels: fewer requests in flight or shorter "
            "contexts than was said, a warm prefix cache, drafts, or a newer engine explain it."
        )
    if (audit.cost_factor or 0.0) > 1.0 + _CLOSE:
        return "the engine does what it can in this deployment: another deployment is better."
    return "nothing: what is left is within what one can measure."


def _speed(tpot_s: float) -> str:
    return f"{1.0 / tpot_s:.3g} tok/s"
