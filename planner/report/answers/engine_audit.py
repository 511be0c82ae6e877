"""An audit of what an engine runs, for people: against its prediction, and against the best.

llama-3.1-70b under vllm: 12 % slower than predicted, and 1.4 times the cost of its speed
"""

from collections.abc import Iterator
from typing import Any

from planner.quantities.units import show
from planner.report.answers.economics import pass_times
from planner.report.answers.plan_parts import start_section
from planner.report.documents.blocks import (
    Block,
    Command,
    Document,
    Note,
    Pairs,
    Table,
    hint,
    section,
)
from planner.report.outlines import ECONOMICS_WORDS
from planner.report.words import between, percent, user_speed
from planner.results.engines import EngineAudit, EngineDeployment
from planner.results.erdil2025 import EconomicsDeployment
from planner.results.predictions import Interval
from planner.specs.records.economics import EconomicsRequest

_CLOSE = 0.05  # a share that measurements do not tell apart


def line_of(audit: EngineAudit) -> str:
    factor = audit.cost_factor
    if factor is None:
        best = "faster than the pool can be by these estimates"
    elif factor < 1.0 - _CLOSE:
        best = f"{percent(1.0 - factor)} cheaper than its speed can be by these estimates"
    elif factor < 1.0 + _CLOSE:
        best = "within 5 % of the least cost at its speed"
    else:
        best = f"{factor:.3g} times the cost that its speed needs"
    return f"{_who(audit)}: {_beside_prediction(audit)}; {best}"


def _who(audit: EngineAudit) -> str:
    """`llama-3.1-70b on h100-nvl8-x1 under vllm`."""
    request = audit.request
    if isinstance(request, EconomicsRequest):
        return f"{request.title} by the model of Erdil 2025"
    return f"{request.model.name} on {request.cluster.name} under {request.engine}"


def document(audit: EngineAudit, *, measured: tuple[Any, ...] = ()) -> Document:
    """What runs against its prediction and the best, what to look at, and what to start.

    Args:
        measured: a run of a file, and its prediction; empty without.
    """
    runs, best = audit.predicted, audit.equal_speed
    line = line_of(audit)
    seen = f"{user_speed(audit.observed_tpot_s)}, {show(audit.observed_tpot_s, 's')} a token"
    rows = [
        ("deployment", runs.summary),
        ("observed", f"{seen}, {show(audit.observed_usd_per_token, 'USD/token')}"),
    ]
    passes: list[Table] = []
    if isinstance(runs, EngineDeployment):
        rows += [
            ("predicted", f"TPOT {between(runs.tpot_s)}"),
            ("off by", f"{abs(_off(audit)):.2g} standard deviations of the prediction"),
            ("in the pass", f"`{runs.command}`"),
        ]
    else:
        passes, left_out = [pass_times(runs)], "; ".join(getattr(audit.request, "notes", ()))
        rows += [("predicted", f"TPOT {show(runs.tpot_s, 's')}"), ("cost model", ECONOMICS_WORDS)]
        rows.append(("left out", left_out))
    launch = getattr(best, "launch", None)
    starts = [(launch, "the plan at this speed is")] if launch else []
    return Document(
        title=f"{_who(audit)}: audit",
        line=line,
        sections=(
            section("what runs", Pairs(rows)),
            section("measured beside predicted", *_measured(*measured)),
            section("where the time of a pass goes, as predicted", *passes),
            section("what the pool could do, formats unchanged", _best(audit)),
            section("what to look at", Note(_advice(audit))),
            start_section(*starts),
            hint(f"the plan at this speed: `{audit.command}`" if audit.command else ""),
        ),
    )


def _measured(run: Any = None, predicted: Any = None) -> Iterator[Block]:  # noqa: ANN401
    """Times of a run beside those of the very request of `plan predict` that it is.

    The mean of first tokens has the first wave in it: nothing is set beside their median.
    """
    if run is None:
        return
    yield _beside("TPOT", run.run.tpot_s, predicted.tpot_s)
    if run.run.statistic == "mean" or not predicted.waves:
        yield _beside("TTFT", run.run.ttft_s, predicted.ttft_s)
    yield from (Note(it, kind="item") for it in run.run.notes)
    yield Command(run.command)


def _beside(name: str, seconds: float, times: Interval) -> Note:
    longer = "longer" if seconds > times.value else "shorter"
    place = "inside" if times.low <= seconds <= times.high else "outside of"
    off = f"{percent(abs(seconds / times.value - 1.0))} {longer}, {place} the interval"
    return Note(f"{name} {show(seconds, 's')}, predicted {between(times)}: {off}", kind="item")


def _beside_prediction(audit: EngineAudit) -> str:
    factor = audit.prediction_factor  # of times a token
    if abs(_off(audit)) <= 1.0:
        return f"as predicted, within {'5 %' if audit.errors_off is None else 'the error'}"
    if factor > 1.0:
        return f"{percent(factor - 1.0)} slower than predicted"
    return f"{percent(1.0 / factor - 1.0)} faster than predicted"


def _off(audit: EngineAudit) -> float:
    """By how many errors of the prediction it is missed; of an unknown error, by 5 %."""
    known = audit.errors_off
    return (audit.prediction_factor - 1.0) / _CLOSE if known is None else known


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


def _figures(best: EngineDeployment | EconomicsDeployment | None) -> tuple[str, str, str]:
    if best is None:
        return "none", "", ""
    return user_speed(best.planned_tpot_s), show(best.usd_per_token, "USD/token"), best.summary


def _advice(audit: EngineAudit) -> str:
    own = ("these kernels should be", "these kernels")
    slower, faster = own if audit.errors_off is not None else ("the paper's model says",) * 2
    if _off(audit) > 1.0:
        return (
            f"what was measured is slower than {slower}: look for another version "
            "or flags of the engine, queues, longer prompts or more requests in flight than was "
            "said, before renting anything else."
        )
    if _off(audit) < -1.0:
        return (
            f"what was measured is faster than {faster}: fewer requests in flight or shorter "
            "contexts than was said, a warm prefix cache, drafts, or a newer engine explain it."
        )
    if (audit.cost_factor or 0.0) > 1.0 + _CLOSE:
        return "the engine does what it can in this deployment: another deployment is better."
    return "nothing: what is left is within what one can measure."
