"""Predict what a row of the paper's tables measured, and which layout it should have taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from planner.layouts.geometry import OVER_HEADS, LayoutTable
from planner.layouts.options import MICROBATCHES, PARTS_PER_STAGE
from planner.specs.files.reading import load_model
from research.bench import (
    Bench,
    Physics,
    Step,
    as_loaded,
    decode,
    machine_of,
    prefill,
    tpu_bench,
    tpu_bench_of,
    with_layouts,
)
from research.reproduced import reproduced_row
from research.rows import Row

SERVERS = {
    "TP16": ("dgx-a100-x2", "TP 16"),
    "TP32": ("dgx-a100-x4", "TP 32"),
    "PP3xTP8": ("dgx-a100-x3", "TP 8 × PP 3"),
}
"""FasterTransformer's set-ups: servers, and the mesh on them."""

MICROBATCH_TOKENS = 2048
"""Above so many tokens FasterTransformer halves a micro-batch of a pipeline.

Its public versions say 2048, 8192 and 1024, in this order; which of them was measured is
not stated. Table D.2, on which the constants are fitted too, decides for the first.
"""


def stated_s(row: Row) -> float:
    """Time of a row as `plan reproduce` answers it [s].

    What no command answers is timed pass by pass: what does not fit, and what §4.4 says.
    """
    one = reproduced_row(row)
    return predicted_s(row) if one is None or one.answered is None else one.answered


class UntimedError(LookupError):
    """The row states something that the model has no prediction for."""


def predicted_s(row: Row, physics: Physics = as_loaded) -> float:
    """Time that a row measured, by the layout that the row names [s].

    Raises:
        UntimedError: the row does not time a batch.
    """
    if not row.is_tpu and row.phase == "total":
        return a100_total_s(row, physics)
    if row.batch is None or row.phase not in ("prefill", "generate", "generate-step", "total"):
        raise UntimedError(f"{row}: nothing to time")
    if row.phase == "prefill":
        return _fastest(row, row.ffn, row.prefill_attention, _prefill(row), physics)
    if row.phase == "generate-step":
        return _fastest(row, row.ffn, row.attention, _decode(row), physics)
    steps_s = row.n_output * _fastest(row, row.ffn, row.attention, _decode(row), physics)
    if row.phase == "generate":
        return steps_s
    return _fastest(row, row.ffn, row.prefill_attention, _prefill(row), physics) + steps_s


def _prefill(row: Row) -> Step:
    return prefill(row.batch, row.n_input, row.bytes_per_weight)


def _decode(row: Row) -> Step:
    """Tables 2 and 3 decode "at a context length of 2048"; elsewhere it grows from the input."""
    grown = row.n_input + (row.n_output + 1) / 2
    n_context = row.n_context if row.n_context == row.n_input else grown
    return decode(row.batch, n_context, row.bytes_per_weight)


def _fastest(row: Row, ffn: str, attention: str, step: Step, physics: Physics) -> float:
    """The paper says WS 2D, not which axes cut E: the fastest split of them."""
    bench = tpu_bench_of(row.model, row.n_chips, ffn, attention)
    return float(bench.times(step, physics).total_s.min())


def a100_total_s(
    row: Row, physics: Physics = as_loaded, microbatch_tokens: int = MICROBATCH_TOKENS
) -> float:
    """FasterTransformer: one context pass, then a decode pass for every further token [s]."""

    def pass_s(step: Step) -> float:
        bench = a100_bench(row, step, microbatch_tokens)
        return float(bench.times(step, physics).total_s[0, 0])

    n_decodes = row.n_output - 1
    mean_context = row.n_input + row.n_output / 2
    return pass_s(prefill(row.batch, row.n_input)) + n_decodes * pass_s(
        decode(row.batch, mean_context)
    )


def a100_bench(row: Row, step: Step, microbatch_tokens: int = MICROBATCH_TOKENS) -> Bench:
    """Megatron's layout: every matrix cut along F or heads, over all devices of a stage."""
    n_stages = int(machine_of(*SERVERS[row.ffn]).meshes.n_stages[0])
    n_microbatches = fastertransformer_microbatches(step, n_stages, microbatch_tokens)
    return _megatron_bench(row.model, row.ffn, n_microbatches)


@cache
def _megatron_bench(model_name: str, servers: str, n_microbatches: int) -> Bench:
    layouts = LayoutTable(
        mesh=np.array([0]),
        stored=np.array([0]),
        gathered=np.array([0]),
        attention=np.array([OVER_HEADS]),
        n_microbatches=np.array([n_microbatches]),
    )
    return with_layouts(load_model(model_name), machine_of(*SERVERS[servers]), layouts)


def fastertransformer_microbatches(step: Step, n_stages: int, most_tokens: int) -> int:
    """How many micro-batches FasterTransformer cuts a pass into.

    Without stages there is nothing to overlap. With them, the batch is cut into as many
    parts as there are stages if that divides it, then halved while it has too many tokens;
    here no further than a layout may be cut.
    """
    if n_stages == 1:
        return 1
    local = step.n_sequences
    if local % n_stages == 0:
        local //= n_stages
    while local * step.n_new_tokens > most_tokens and local % 2 == 0:
        local //= 2
    most = max(parts for parts in MICROBATCHES if parts <= PARTS_PER_STAGE * n_stages)
    return min(most, step.n_sequences // local)


DIFFERS = {
    "Table 3 palm-62b generate 8 B512": "WS 1D is faster by 12 %: it moves fewer bytes on 8 chips; "
    "so it does in the paper's own count of volumes, on fewer than 16"
}
"""Rows of Tables 2 and 3 whose layout is not the model's fastest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a row ran on, beside the fastest of all layouts of its mesh.

    Args:
        stated: FFN layout and attention as the paper names them.
        fastest: the model's optimum; the stated one wherever that is as fast.
        notation: how the optimum's weights rest, `E_x F_yz`.
        ratio: time of the stated layout over that of the optimum [1].
        stated_bytes: what the stated layout holds on the busiest chip [bytes].
    """

    stated: tuple[str, str]
    fastest: tuple[str, str]
    notation: str
    ratio: float
    stated_bytes: float

    @property
    def agrees(self) -> bool:
        return self.stated == self.fastest


def layout_choice(row: Row) -> Choice:
    """Compare a row of Tables 2 and 3 with every layout of its mesh."""
    ffn = {"WS2D": "WS 2D", "WGXYZ": "WG XYZ"}[row.ffn]
    stated = ffn, row.attention
    bench, step = tpu_bench(row.model, row.n_chips), _step(row)
    total_s = bench.times(step).total_s[:, 0]
    names = [bench.name(i) for i in range(len(total_s))]
    stated_s = np.where([name == stated for name in names], total_s, np.inf)
    # one sequence has nothing to cut: its attention costs the same under both names
    ties = stated_s.min() <= total_s.min() * (1 + 1e-9)
    best = int(np.argmin(stated_s if ties else total_s))
    return Choice(
        stated=stated,
        fastest=names[best],
        notation=bench.notation(best),
        ratio=float(stated_s.min() / total_s.min()),
        stated_bytes=float(bench.held_bytes(step)[np.argmin(stated_s)]),
    )


def _step(row: Row) -> Step:
    return _prefill(row) if row.phase == "prefill" else _decode(row)


def passes(row: Row) -> Iterator[tuple[Bench, Step]]:
    """The passes of a row at their fullest: the cache as it is when each ends."""
    last = decode(row.batch, row.n_context, row.bytes_per_weight)
    steps = {"prefill": (_prefill(row),), "total": (_prefill(row), last)}.get(row.phase, (last,))
    for step in steps:
        if not row.is_tpu:
            yield a100_bench(row, step), step
        elif row.phase == "total" and step is not last:
            yield tpu_bench_of(row.model, row.n_chips, row.ffn, "heads"), step
        else:
            yield tpu_bench_of(row.model, row.n_chips, row.ffn, row.attention), step
