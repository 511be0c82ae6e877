"""A given deployment of layouts: the report of its plan, contexts that fit, messages."""

from dataclasses import replace

from planner.quantities.units import show
from planner.report.answers.plans import document as document_of_plan, line_of as line_of_plan
from planner.report.documents.blocks import Document, Pairs, Table, section
from planner.results.audits import LayoutPrediction, ToyModel


def document(answer: LayoutPrediction) -> Document:
    """The plan, and what it holds, sends, and would be by the toy model."""
    plan = document_of_plan(answer.plan)
    title = f"{plan.title.removesuffix(': plan')}: prediction"
    own = (
        section("context", Pairs(_context_rows(answer))),
        section("received by the busiest device in a pass", _traffic(answer)),
        section("toy model of Erdil 2025", Pairs(_toy_rows(answer.toy))),
    )
    return replace(plan, title=title, sections=(*plan.sections, *own))


def line_of(answer: LayoutPrediction) -> str:
    return line_of_plan(answer.plan)


def _context_rows(answer: LayoutPrediction) -> list[tuple[str, str]]:
    if answer.longest_context is None:
        return []
    n_sequences = answer.plan.deployment.n_sequences
    text = f"{answer.longest_context:,} tokens of each of {n_sequences:,} sequences fit in decode"
    return [("longest", text)]


def _traffic(answer: LayoutPrediction) -> Table:
    """Collectives by kind and axes, bytes of each phase beside each other."""
    prefill, decode = (
        {(one.kind, one.axes): one.received_bytes for one in of_phase}
        for of_phase in (answer.prefill_traffic, answer.decode_traffic)
    )
    keys = sorted({*prefill, *decode})
    rows: list[tuple[str, ...]] = []
    for key in keys:
        sizes = (show(of[key], "B") if key in of else "" for of in (prefill, decode))
        rows.append((*key, *sizes))
    if keys:
        rows.append(("in all", "", *(show(sum(of.values()), "B") for of in (prefill, decode))))
    return Table(heads=("", "", "prefill", "decode"), rows=rows, align="<<>>")


def _toy_rows(toy: ToyModel | None) -> list[tuple[str, str]]:
    """Arithmetic, reads of parameters and hops of all-reduces alone, at the peaks of the device."""
    if toy is None:
        return []
    return [
        ("instance", f"{toy.n_devices:.3g} devices, at which a token takes least"),
        ("requests", f"{toy.n_requests:.3g}, at which reading takes as long as arithmetic"),
        ("token", f"{show(toy.token_s, 's')}, {show(1 / toy.token_s, 'token/s')} a user"),
        ("price", show(toy.usd_per_token, "USD/token")),
    ]
