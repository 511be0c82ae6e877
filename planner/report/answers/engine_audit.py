"""An audit of what an engine runs, for people: against its prediction, and against the best.

llama-3.1-70b under vllm: 12 % slower than predicted, and 1.4 times the cost of its speed
"""

from planner.quantities.units import show
from planner.report.answers.plan_parts import start_section
from planner.report.documents.blocks import Document, Note, Pairs, Table, hint, section
from planner.report.times import times_notes
from planner.report.words import between, percent, user_speed
from planner.results.engines import EngineAudit, EngineDeployment

_CLOSE = 0.05  # a share that measurements do not tell apart


def line_of(audit: EngineAudit) -> str:
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


def document(audit: EngineAudit) -> Document:
    """What runs against its prediction and the best, what to look at, and what to start."""
    runs, best = audit.predicted, audit.equal_speed
    line = line_of(audit)
    seen = f"{user_speed(audit.observed_tpot_s)}, {show(audit.observed_tpot_s, 's')} a token"
    rows = [
        ("deployment", runs.summary),
        ("observed", f"{seen}, {show(audit.observed_usd_per_token, 'USD/token')}"),
        ("predicted", f"TPOT {between(runs.tpot_s)}"),
        ("off by", f"{abs(audit.errors_off):.2g} standard deviations of the prediction"),
        ("in the pass", f"`{runs.command}`"),
    ]
    starts = [(best.launch, "the plan at this speed is")] if best else []
    return Document(
        title=f"{runs.model} on {audit.request.cluster.name} under {audit.request.engine}: audit",
        line=line,
        head=(Note(line), *times_notes(audit)),
        sections=(
            section("what runs", Pairs(rows)),
            section("what the pool could do, formats unchanged", _best(audit)),
            section("what to look at", Note(_advice(audit))),
            hint(f"the plan at this speed: `{audit.command}`" if audit.command else ""),
            start_section(*starts),
        ),
    )


def _beside_prediction(audit: EngineAudit) -> str:
    factor = audit.prediction_factor  # of times a token
    if abs(audit.errors_off) <= 1.0:
        return "as predicted, within the error"
    if factor > 1.0:
        return f"{percent(factor - 1.0)} slower than predicted"
    return f"{percent(1.0 / factor - 1.0)} faster than predicted"


def _best(audit: EngineAudit) -> Table:
    observed = show(audit.observed_usd_per_token, "USD/token")
    rows = [
        ("observed", user_speed(audit.observed_tpot_s), observed, ""),
        ("predicted", *_figures(audit.predicted)[:2], ""),
        ("no more devices", *_figures(audit.same_devices)),
        ("at equal speed", *_figures(audit.equal_speed)),
        ("at equal cost", *_figures(audit.equal_cost)),
    ]
    heads = ("", "speed per user", "output token", "")
    return Table(heads=heads, rows=rows, align="<>><", wraps=True)


def _figures(best: EngineDeployment | None) -> tuple[str, str, str]:
    if best is None:
        return "none", "", ""
    return user_speed(best.planned_tpot_s), show(best.usd_per_token, "USD/token"), best.summary


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
