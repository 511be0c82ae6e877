"""Cuts into stages, and layers on mixed machines, for people, and how one knows they are best.

llama-3.1-405b in 5 stages (vllm, bf16): a pass every 15.4 ms, 75 ms through all, 1038 token/s
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby

from planner.quantities.tables import packaged_table
from planner.quantities.units import show
from planner.report.documents.as_text import columns
from planner.report.documents.blocks import Bar, Document, Drawing, Pairs, Row, Table, section
from planner.report.proof import alone, gap_text, prover_rows, status_text
from planner.report.words import percent, plural, wrapped
from planner.results.staging import LayerPlacement, MachineLine, StagePlan
from planner.specs.ask.quality import quality_words
from planner.specs.records.certificates import UNCONFIRMED, Certificate
from planner_workshop.drawings import holds, layers_drawing, stages_drawing

_BAR = 16
SHADES = "█░▒▓"
"""How layers of the first, second, … class are drawn."""
_STRIP_ENDS = 10
"""Columns of a strip's line besides its layers."""


def line_of(answer: StagePlan | LayerPlacement) -> str:
    return layers_line(answer) if isinstance(answer, LayerPlacement) else cut_line(answer)


def document(answer: StagePlan | LayerPlacement) -> Document:
    """The whole report, of either."""
    return layers_document(answer) if isinstance(answer, LayerPlacement) else cut_document(answer)


def cut_line(plan: StagePlan) -> str:
    request = plan.request
    form = request.formats.weights
    return (
        f"{request.model.name} in {plural(len(plan.stages), 'stage')} ({request.engine.name}, "
        f"{form}), {request.work.phase}: a pass every {show(plan.bottleneck_s, 's')}, "
        f"{show(plan.latency_s, 's')} through all stages, {show(plan.tokens_per_s, 'token/s')}"
    )


def cut_document(plan: StagePlan) -> Document:
    """What each stage holds and takes, and how one knows it is best."""
    line, request = cut_line(plan), plan.request
    cut = Drawing(svg=partial(stages_drawing, plan), lines=partial(_strips, plan))
    return Document(
        title=f"{request.model.name} in {plural(len(plan.stages), 'stage')}",
        line=line,
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


_KNOWS: Mapping[str, str] = packaged_table("report/words.toml")["links"]
"""What a prover of layers knows of links, by the first word of its name."""

_SAME = 1e-6
"""Share of a rate that published ones are rounded by."""


def layers_line(placement: LayerPlacement) -> str:
    name, rate = placement.request.layers.name, placement.tokens_per_s
    return f"{name}: {placement.summary}, {rate:.2f} token/s; {claim(placement)}"


def claim(placement: LayerPlacement) -> str:
    """What may be said of all other placements."""
    certificate = placement.certificate
    most = f"no placement has more than {certificate.bound:.2f} token/s"
    if certificate.status == UNCONFIRMED:
        return f"{most}, says {alone(certificate)} alone"
    return f"{most} ({gap_text(certificate)})"


def layers_document(placement: LayerPlacement) -> Document:
    """Stages in a row, what each serves, and the bound on all."""
    line = layers_line(placement)
    drawing = Drawing(svg=partial(layers_drawing, placement))
    return Document(
        title=placement.request.layers.title,
        line=line,
        sections=(
            section("stages", drawing, _rows(placement)),
            section("proof", Pairs(_rate_rows(placement))),
        ),
    )


def rows_of(placement: LayerPlacement) -> list[list[MachineLine]]:
    """Machines that hold the same layers, along the model."""
    ordered = sorted(placement.machines, key=lambda m: (m.first_layer, m.n_layers))
    grouped = groupby(ordered, key=lambda m: (m.first_layer, m.n_layers))
    return [list(group) for _, group in grouped]


def machines_text(row: Sequence[MachineLine]) -> str:
    """`A100 1, L4 3 4`: types with the numbers of their machines."""
    types: dict[str, list[str]] = {}
    for machine in row:
        types.setdefault(machine.type, []).append(machine.machine.removeprefix(machine.type + " "))
    return ", ".join(f"{kind} {' '.join(numbers)}" for kind, numbers in types.items())


def _rows(placement: LayerPlacement) -> Table:
    machines = rows_of(placement)
    fastest = max(sum(m.tokens_per_s for m in row) for row in machines)
    rows: list[Row] = []
    for row in machines:
        total = sum(machine.tokens_per_s for machine in row)
        layers = plural(row[0].n_layers, "layer")
        shown = Bar(total / fastest, _BAR)
        rows.append((layers_span(row[0]), layers, f"{total:.1f}", shown, machines_text(row)))
    return Table(heads=("layers", "", "token/s", "", "machines"), rows=rows, align="<<><<")


def layers_span(machine: MachineLine) -> str:
    """The first and the last layer that a machine holds, from 1."""
    first, last = machine.first_layer + 1, machine.first_layer + machine.n_layers
    return f"{first} to {last}" if last > first else str(first)


def bound_knows(placement: LayerPlacement) -> str:
    """Which links the bound that is vouched for takes into account."""
    certificate = placement.certificate
    said = [p for p in certificate.proofs if p.is_accepted and p.prover in certificate.vouched_by]
    return _KNOWS.get(said[-1].lineage, "") if said else ""


def published(placement: LayerPlacement) -> str:
    """The best that the source of the file found, beside it; empty if it says none."""
    best = placement.request.layers.published_tokens_per_s
    if not best:
        return ""
    if abs(placement.tokens_per_s / best - 1) < _SAME:
        return f"{best:.2f} token/s: the same"
    more = placement.tokens_per_s / best - 1
    return f"{best:.2f} token/s; this is {percent(abs(more))} {'more' if more > 0 else 'less'}"


def _rate_rows(placement: LayerPlacement) -> list[tuple[str, str]]:
    proved = placement.certificate
    return [
        ("rate", f"{proved.objective:.2f} token/s, the maximum flow through the placement"),
        ("bound", f"{proved.bound:.2f} token/s, {gap_text(proved)}"),
        ("status", status_text(proved) if proved.status == UNCONFIRMED else ""),
        ("links", bound_knows(placement)),
        *prover_rows(proved),
        ("published", published(placement)),
        ("idle", ", ".join(placement.idle)),
        ("verified", "; ".join(proved.verified)),
    ]
