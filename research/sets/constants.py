"""Constants that are fitted to servers from end to end, of all rows and without each fold.

`tests/data/serving/constants.csv` has them as `fitting` finds them; packaged files have those of
all rows, rounded. Predictions that figures are of take those without the row's fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.traffic import Traffic
from planner.specs.records.model_errors import Quantity
from research.sets import slowness
from research.sets.folds import ALL, N_FOLDS, fold_of, rows
from research.sets.predicted import Compared, clock, compared, traffic
from research.sets.rows import Served, Table

CONSTANTS = Table(name="constants", columns=("fold", "name", "value"))

TIMES = {
    "layer_gap": ("vllm", "sglang", "trtllm"),
    "decode_sequence": ("sglang",),
    "inner_norms": ("vllm", "sglang"),
    "prefill_host": ("vllm", "sglang", "trtllm"),
    "prefill_experts": ("sglang",),
    "prefill_scans": ("sglang",),
}
"""Keys of `[steps]` in files of engines [s], and the engines that have one. TensorRT-LLM fuses
norms; of prompts' launches a time of each layer is SGLang's."""

OF_CLIENTS = ("request", "request_token")
"""Keys of `[requests]` in the file of InferenceX's client [s]."""

SLOWNESS = "slowness"

FOLDS = (*range(N_FOLDS), ALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Those of one fit.

    Args:
        values: of `TIMES` and `OF_CLIENTS` [s], and `SLOWNESS` [1].
        overheads: of a layer of a roofline, by device [s].
    """

    values: Mapping[str, float]
    overheads: Mapping[str, float] = field(default_factory=dict)

    def clock(self, gpu: str, engine: str) -> KernelClock:
        """A device under an engine with these constants."""
        packaged = clock(gpu, engine)
        steps = {
            f"{name}_s": self.values[name] for name, engines in TIMES.items() if engine in engines
        }
        found = replace(packaged, engine=replace(packaged.engine, **steps))
        if gpu not in slowness.DEVICES:
            return found
        return replace(found, table=slowness.slowed_table(gpu, self.values[SLOWNESS]))

    def traffic(self, row: Served) -> Traffic:
        """What the row's harness sends, its client with these constants."""
        sent = traffic(row)
        if sent.client is None:
            return sent
        times = {f"{name}_s": self.values[name] for name in OF_CLIENTS}
        return replace(sent, client=replace(sent.client, **times))


@cache
def constants(fold: int = ALL) -> Constants:
    """Those that no row of a fold was seen by."""
    entries = [one for one in CONSTANTS.read() if one["fold"] == name_of(fold)]
    parts: dict[str, dict[str, float]] = {"value": {}, "overhead": {}}
    for one in entries:
        kind, _, name = one["name"].partition(" ")
        parts[kind][name] = float(one["value"])
    return Constants(values=parts["value"], overheads=parts["overhead"])


def write(found: Mapping[int, Constants]) -> None:
    """All of them, by fold."""
    lines = []
    for fold, one in found.items():
        for kind, values in (("value", one.values), ("overhead", one.overheads)):
            for name, value in values.items():
                named = {"fold": name_of(fold), "name": f"{kind} {name}"}
                lines.append({**named, "value": f"{value:.6g}"})
    CONSTANTS.write(lines)


def name_of(fold: int) -> str:
    return "none" if fold == ALL else str(fold)


@cache
def predictions(fold: int) -> tuple[Compared, ...]:
    """Every row that is compared, by constants that no row of a fold was seen by."""
    chosen = constants(fold)
    return tuple(compared(rows(), clocks=chosen.clock, sending=chosen.traffic))


@cache
def out_of_fold() -> tuple[Compared, ...]:
    """Every row that is compared, by constants that its own fold was not seen by."""
    return tuple(one for fold in FOLDS for one in predictions(fold) if fold_of(one.row) == fold)


def tells(one: Compared, quantity: Quantity) -> bool:
    """Whether a row says enough for a quantity to be predicted."""
    return quantity == "TPOT" or bool(one.row.series.harness)
