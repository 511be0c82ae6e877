"""The two phases of a plan side by side, and the memory that they share."""

from __future__ import annotations

import math

from planner.report.lines import LABEL, bar, labelled
from planner.report.words import plural
from planner.results import Deployment, Division, DraftPlan, Memory, Mesh, PhasePlan
from planner.units import show

_WIDEST_BAR = 20
_FIGURE, _SHARE = 9, 7  # columns of a time or a size, and of its share
_NOTES = (
    ("overlap", "compute and weights run at once; the longer is charged for most of both"),
    ("by itself", "TTFT and TPOT are of one pass: no queue, no pass of the other phase between"),
)


def phase_lines(
    best: Deployment, offered: tuple[tuple[int, ...], tuple[int, ...]], width: int
) -> list[str]:
    """A row for each fact, a column for each phase.

    Args:
        best: the deployment.
        offered: batches that prefill and decode could choose from.
        width: columns.
    """
    block = (width - 2 - LABEL) // 2
    phases = (best.prefill, best.decode)
    rows = [
        ("", [phase.phase for phase in phases]),
        ("batch", [_batch_text(*pair) for pair in zip(phases, offered, strict=True)]),
    ]
    if best.mesh.n_stages > 1:
        rows.append(
            ("in parts", [plural(p.n_microbatches, "micro-batch", "micro-batches") for p in phases])
        )
    rows += [
        ("layout", [f"{phase.layout}  {best.storage}" for phase in phases]),
        ("attention", [f"over {phase.attention}" for phase in phases]),
        ("KV cache", [_kv_text(phase, best.mesh) for phase in phases]),
        ("pass", _pass_texts(best)),
        *_step_rows(phases, min(_WIDEST_BAR, block - _FIGURE - _SHARE - 4)),
        ("MFU", [_share(phase.mfu_fraction) for phase in phases]),
        ("tokens/s", [show(phase.tokens_per_s, "1") for phase in phases]),
    ]
    table = [f"{label:<{LABEL}}{left:<{block}}{right}" for label, (left, right) in rows]
    notes = [*_division_notes(phases), *_NOTES]
    return [*table, *_draft_lines(best.draft), *labelled(notes, width)]


def _division_notes(phases: tuple[PhasePlan, PhasePlan]) -> list[tuple[str, str]]:
    """Heads, experts and layers that are dealt out unevenly; once where phases are alike."""
    first, second = phases
    if first.divisions == second.divisions:
        said = [("both phases", first.divisions)]
    else:
        said = [(phase.phase, phase.divisions) for phase in phases]
    texts = [
        f"{name}: {', '.join(map(_division_text, divisions))}"
        for name, divisions in said
        if divisions
    ]
    return [("uneven", "; ".join(texts))] if texts else []


def _division_text(division: Division) -> str:
    """`8 KV heads on 16 devices (2 have the same)`, `61 layers in 4 stages (16 at most)`."""
    parts = "in {} stages" if division.things == "layers" else "on {} devices"
    one = division.things.removesuffix("s") if division.n_things == 1 else division.things
    text = f"{division.n_things} {one} {parts.format(division.n_parts)}"
    if division.n_copies > 1:
        return f"{text} ({division.n_copies} have the same)"
    return f"{text} ({division.n_most} at most)"


def _pass_texts(best: Deployment) -> list[str]:
    ttft = f"{show(best.ttft_s, 's')} (TTFT)"
    if best.draft is None:
        return [ttft, f"{show(best.tpot_s, 's')} (TPOT)"]
    scored_s = best.decode.step.total_s
    return [ttft, f"{show(scored_s, 's')}, with drafts {show(best.tpot_s, 's')} (TPOT)"]


def _draft_lines(draft: DraftPlan | None) -> list[str]:
    """The draft model and its round; nothing without one."""
    if draft is None:
        return []
    accepted = f"{100 * draft.acceptance:.3g} % accepted"
    rows = (
        ("draft", f"{draft.model} in {draft.weights_format}, {draft.layout}  {draft.storage}"),
        (
            "  drafts",
            f"{draft.n_drafted} tokens a round, {accepted}: {draft.n_yielded:.3g} yielded",
        ),
        ("  pass", f"{show(draft.step.total_s, 's')}, most of it {draft.step.largest}"),
    )
    return [f"{label:<{LABEL}}{text}" for label, text in rows]


def _batch_text(phase: PhasePlan, offered: tuple[int, ...]) -> str:
    """The batch, and whether one could not go further because no larger one was offered."""
    at_the_end = len(offered) > 1 and phase.batch == max(offered)
    return f"{phase.batch}{', largest offered' if at_the_end else ''}"


def _kv_text(phase: PhasePlan, mesh: Mesh) -> str:
    """`cut 8 ways, 4 copies`: devices of a tensor group that outnumber the ways hold copies."""
    n_copies = math.prod(mesh.axes) // phase.n_kv_ways
    cut = f"cut {phase.n_kv_ways} ways" if phase.n_kv_ways > 1 else "not cut"
    return f"{cut}, {n_copies} copies" if n_copies > 1 else cut


def _step_rows(phases: tuple[PhasePlan, PhasePlan], bar_width: int) -> list[tuple[str, list[str]]]:
    """The parts of a pass: time, share, bar."""
    rows = []
    for (name, first_s), (_, second_s) in zip(*(p.step.parts() for p in phases), strict=True):
        cells = [
            _figure(show(part_s, "s"), part_s / phase.step.total_s, bar_width)
            for part_s, phase in zip((first_s, second_s), phases, strict=True)
        ]
        rows.append((f"  {name}", cells))
    return rows


def memory_title(memory: Memory) -> str:
    """What the lines of a device's memory are of."""
    where = "a prefill pass" if memory.fullest == "prefill" else "a decode pass"
    return f"memory of a device, at its fullest in {where}"


def memory_lines(memory: Memory, width: int) -> list[str]:
    """The parts of a device's memory: size, share, bar."""
    bar_width = min(2 * _WIDEST_BAR, width - 2 - 18 - _FIGURE - _SHARE - 4)
    parts = (*memory.parts(), ("free", memory.free_bytes))
    lines = [
        f"{name:<18}{_figure(show(size, 'B'), size / memory.capacity_bytes, bar_width)}"
        for name, size in parts
        if size or name == "free"
    ]
    return [*lines, f"{'in all':<18}{show(memory.capacity_bytes, 'B')}"]


def _figure(quantity: str, share: float, bar_width: int) -> str:
    return f"{quantity:<{_FIGURE}}{_share(share):>{_SHARE}}  {bar(share, bar_width)}"


def _share(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"
