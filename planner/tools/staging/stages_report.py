"""A cut into stages for people: what each stage holds and takes, and how one knows it is best.

llama-3.1-405b in 5 stages (vllm, bf16): a pass every 15.4 ms, 75 ms through all, 1038 token/s
"""

from collections.abc import Sequence
from functools import partial

from planner.quantities.units import show
from planner.report.documents.as_text import columns
from planner.report.documents.blocks import Bar, Document, Drawing, Note, Pairs, Row, Table, section
from planner.report.proof import gap_text, prover_rows, status_text
from planner.report.words import percent, plural, wrapped
from planner.results.staging import StagePlan
from planner.specs.ask.quality import quality_words
from planner.specs.records.certificates import Certificate
from planner.tools.drawings import holds, stages_drawing

_BAR = 16
SHADES = "█░▒▓"
"""How layers of the first, second, … class are drawn."""
_STRIP_ENDS = 10
"""Columns of a strip's line besides its layers."""


def line_of(plan: StagePlan) -> str:
    request = plan.request
    form = request.formats.weights
    return (
        f"{request.model.name} in {plural(len(plan.stages), 'stage')} ({request.engine.name}, "
        f"{form}), {request.work.phase}: a pass every {show(plan.bottleneck_s, 's')}, "
        f"{show(plan.latency_s, 's')} through all stages, {show(plan.tokens_per_s, 'token/s')}"
    )


def document(plan: StagePlan) -> Document:
    """What each stage holds and takes, and how one knows it is best."""
    line, request = line_of(plan), plan.request
    cut = Drawing(svg=partial(stages_drawing, plan), lines=partial(_strips, plan))
    return Document(
        title=f"{request.model.name} in {plural(len(plan.stages), 'stage')}",
        line=line,
        head=(Note(line),),
        sections=(
            section("stages", _stages(plan)),
            section("cut", cut),
            section("memory of a device", _memory(plan)),
            section("proof", Pairs(_proof_rows(plan))),
        ),
    )


def _stages(plan: StagePlan) -> Table:
    longest = max(one.total_s for one in plan.stages)
    rows = [
        (
            str(index),
            stage.kind,
            holds(stage),
            show(stage.run_s, "s"),
            show(stage.hand_s, "s") if stage.hand_s else "–",
            Bar(stage.total_s / longest, _BAR),
        )
        for index, stage in enumerate(plan.stages, start=1)
    ]
    return Table(heads=("", "group", "holds", "run", "hand over", ""), rows=rows, align="><<>><")


def _strips(plan: StagePlan, width: int) -> list[str]:
    """Each stage's layers, one column each, or several layers a column where they are many."""
    most = max(one.n_layers for one in plan.stages) or 1
    step = -(-most // (width - _STRIP_ENDS))
    rows = []
    for index, stage in enumerate(plan.stages, start=1):
        mine = plan.request.model.order[stage.first_layer : stage.first_layer + stage.n_layers]
        drawn = "".join(SHADES[_commonest(mine[i : i + step]) % len(SHADES)] for i in
                        range(0, len(mine), step))  # fmt: skip
        ends = ("E" if stage.has_embedding else " ") + drawn + ("H" if stage.has_head else "")
        rows.append((str(index), ends.rstrip()))
    classes = [layer.name for layer in plan.request.model.layers]
    shades = [f"{SHADES[i % len(SHADES)]} {name}" for i, name in enumerate(classes)]
    each = f"; {plural(step, 'layer')} each" if step > 1 else ""
    legend = f"{', '.join(shades)}; E embedding, H head{each}"
    return [*columns((), rows, "><", width), *wrapped(legend, width)]


def _commonest(values: Sequence[int]) -> int:
    return max(values, key=values.count) if values else 0


def _memory(plan: StagePlan) -> Table:
    rows: list[Row] = []
    for index, stage in enumerate(plan.stages, start=1):
        share = stage.held_bytes / stage.limit_bytes
        sizes = (stage.weights_bytes, stage.cache_bytes, stage.fixed_bytes, stage.limit_bytes)
        cells = (show(size, "B") if size else "–" for size in sizes)
        rows.append((str(index), *cells, percent(share), Bar(share, _BAR)))
    heads = ("", "weights", "cache", "other", "of", "", "")
    return Table(heads=heads, rows=rows, align=">>>>>><")


def _proof_rows(plan: StagePlan) -> list[tuple[str, str]]:
    proved, work, formats = plan.certificate, plan.request.work, plan.request.formats
    whole = "slowest stage" if plan.request.objective == "bottleneck" else "pass through all stages"
    value = plan.bottleneck_s if plan.request.objective == "bottleneck" else plan.latency_s
    idle = [
        f"{group.n_groups - group.n_used} of {plural(group.n_groups, 'group')} of {group.kind}"
        for group in plan.groups
        if group.n_used < group.n_groups
    ]
    return [
        ("objective", f"least {plan.request.objective}: {whole} {show(proved.objective, 's')}"),
        ("status", status_text(proved, best="no cut is better")),
        ("bound", f"{show(proved.bound, 's')}, {gap_text(proved)}{_why(proved)}"),
        *prover_rows(proved),
        ("even cut", _even_text(plan, value)),
        ("unused", ", ".join(idle)),
        ("verified", "; ".join(proved.verified)),
        ("kernels", _kernels_text(plan)),
        (
            "requested",
            f"{plural(work.n_microbatches, 'micro-batch', 'micro-batches')} of "
            f"{plural(work.batch, 'sequence')} in flight, {work.n_input_tokens} tokens in, "
            f"{work.n_output_tokens} out; {_formats(plan)}",
        ),
        ("quality", quality_words(plan.request.model, formats.weights, formats.cache)),
        ("solved", f"{plural(proved.n_programs, 'program')} of up to {proved.n_solved:,} stages"),
    ]


def _why(certificate: Certificate) -> str:
    """What the bound rests on, where it is of another program than the cut."""
    said = next((one.program for one in certificate.proofs if one.program), "")
    return f": {said}" if said else ""


def _kernels_text(plan: StagePlan) -> str:
    """`vllm 0.24.0 on h100-sxm TP 8; assumed of any device on l4 TP 1`."""
    sources: dict[str, list[str]] = {}
    for group in plan.groups:
        measured = f"{plan.request.engine.name} {group.kernels}"
        words = "assumed of any device" if group.kernels == "assumed" else measured
        sources.setdefault(words, []).append(group.kind)
    return "; ".join(f"{words} on {', '.join(kinds)}" for words, kinds in sources.items())


def _even_text(plan: StagePlan, value: float) -> str:
    if plan.even_s is None:
        return "equal numbers of layers on all groups in the order given do not fit"
    more = plan.even_s / value - 1.0
    return (
        f"equal numbers of layers on all groups in the order given take "
        f"{show(plan.even_s, 's')}, {percent(more)} more"
    )


def _formats(plan: StagePlan) -> str:
    formats = plan.request.formats
    experts = "" if formats.experts == formats.weights else f", {formats.experts} experts"
    return f"{formats.weights} weights{experts}, {formats.cache} cache"
