"""Published end-to-end serving measurements beside predictions: NVIDIA's `silicon_sample.csv`.

The file has 5,221 rows and comes with the wheel of `aiconfigurator-core` 0.12.0 (Apache-2.0). A
selection of 60 is in `tests/data/silicon.csv`; the whole is read where the package can be
imported, or from the path in $PLANNER_SILICON:

    python -m tests.papers.silicon                 errors by engine, device, model
    python -m tests.papers.silicon --calibrate     host times from the named rows, which no
                                                   error counts

What is compared: aggregated serving by TP, EP or attention DP inside one server of eight H100,
H200 or B200. What is left out, and why, is `exclusion`; it never looks at a prediction.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from planner.estimates.calibration.kernel_files import kernel_table
from planner.estimates.serving.deployments import deployments, is_valid
from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.memory import holding
from planner.estimates.serving.networks import serving_network
from planner.estimates.serving.serving import Serving, serving_times
from planner.estimates.serving.traffic import Traffic
from planner.specs.architecture import Architecture
from planner.specs.engine_files import load_engine
from planner.specs.kernels import EngineSpec
from planner.specs.reading import load_architecture, load_cluster
from planner.specs.served_formats import ServedFormats

SELECTION = Path(__file__).parents[1] / "data" / "silicon.csv"
CONFIGS = Path(__file__).parents[1] / "specs" / "huggingface" / "configs"

CLUSTERS = {"h100_sxm": "h100-nvl8-x1", "h200_sxm": "h200-nvl8-x1", "b200_sxm": "b200-nvl8-x1"}
DENSE = {
    "meta-llama/Llama-3.1-8B-Instruct": "Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B": "Llama-3.1-70B",
    "Qwen/Qwen3-32B": "Qwen3-32B",
}
MIXTURES = {
    "deepseek-ai/DeepSeek-R1": "DeepSeek-V3",
    "deepseek-ai/DeepSeek-V3": "DeepSeek-V3",
    "moonshotai/Kimi-K2.5": "Kimi-K2.5",
    "zhipuai/GLM-5": "GLM-5",
    "MiniMaxAI/MiniMax-M2.5": "MiniMax-M2.5",
    "Qwen/Qwen3-235B-A22B-FP8": "Qwen3-235B-A22B",
    "Qwen/Qwen3.5-397B-A17B": "Qwen3.5-397B-A17B",
    "openai/gpt-oss-120b": "gpt-oss-120b",
}
CONFIG_OF = DENSE | MIXTURES

PEER = Path(__file__).parents[1] / "data" / "silicon_peer.csv"
"""TTFT and TPOT that AIConfigurator 0.12.0 predicts where it answers: `silicon_peer.py`."""

BETWEEN_STEPS = {"decode_host_s": 1.9e-3, "prefill_host_s": 8e-3, "request_s": 55e-3}
"""Host times of vLLM 0.12.0, which `engines/vllm.toml` is not of, from its calibration rows [s]."""

MOST_UNQUEUED = 4
"""Most requests in flight for a TTFT to be called unqueued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement."""

    name: str
    model: str
    system: str
    engine: str
    version: str
    weights: str
    n_input: int
    n_output: int
    batch: int
    tensor: int
    data: int
    expert_tensor: int
    expert: int
    ttft_ms: float
    tpot_ms: float
    source: str

    @property
    def is_dense(self) -> bool:
        return self.model in DENSE

    @property
    def short(self) -> str:
        return self.model.partition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A row with what is predicted of it."""

    row: Row
    tpot_ms: float
    ttft_ms: float
    n_running: float

    @property
    def tpot_error(self) -> float:
        return self.tpot_ms / self.row.tpot_ms - 1.0

    @property
    def ttft_error(self) -> float:
        return self.ttft_ms / self.row.ttft_ms - 1.0


def whole_file() -> Path | None:
    """Where the whole sample is, if anywhere."""
    if path := os.environ.get("PLANNER_SILICON"):
        return Path(path)
    found = importlib.util.find_spec("aiconfigurator_core")
    if found is None or found.origin is None:
        return None
    path_of_wheel = Path(found.origin).parent / "systems" / "silicon_sample.csv"
    return path_of_wheel if path_of_wheel.exists() else None


def read_rows(path: Path) -> list[Row]:
    """Rows of aggregated serving of models and devices that are compared."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            _row(entry)
            for entry in csv.DictReader(file)
            if entry["mode"] == "agg"
            and entry["model_path"] in CONFIG_OF
            and entry["system"] in CLUSTERS
            and entry["batch_size"]
        ]


def _row(entry: dict[str, str]) -> Row:
    def count(key: str) -> int:
        return int(entry[key] or 1)

    return Row(
        name=entry["id"],
        model=entry["model_path"],
        system=entry["system"],
        engine=entry["backend"],
        version=entry["backend_version"],
        weights=entry["gemm_quant_mode"],
        n_input=count("isl"),
        n_output=count("osl"),
        batch=count("batch_size"),
        tensor=count("tp_size"),
        data=count("attention_dp_size"),
        expert_tensor=count("moe_tp_size"),
        expert=count("moe_ep_size"),
        ttft_ms=float(entry["silicon_ttft_ms"]),
        tpot_ms=float(entry["silicon_tpot_ms"]),
        source=entry["silicon_data_source"],
    )


def exclusion(row: Row) -> str:
    """Why a row is not compared; empty if it is."""
    if row.data < 1 or row.tensor * row.data > 8:
        return "more devices than a server has: TP was filled in as TP of experts × EP"
    if not row.is_dense and row.expert * row.expert_tensor != row.tensor * row.data:
        return "degrees of attention and experts do not agree"
    if row.ttft_ms > row.n_output * row.tpot_ms:
        return "requests wait longer than they decode: fewer ran than are said to be in flight"
    return ""


def schedules_between_steps(row: Row) -> bool:
    """Whether an engine schedules while the device waits.

    vLLM did so by default until 0.14.0 ("async scheduling is now enabled by default"); servers of
    the other rows, published before, were told `async-scheduling: true`
    (SemiAnalysisAI/InferenceX, benchmarks/70b_fp8_*.sh, benchmarks/gptoss_fp4_*.sh).
    """
    return row.engine == "vllm" and row.version == "0.12.0"


def is_calibration(row: Row) -> bool:
    """Rows that host times are fitted to: one model on one device at TP 8, for each engine."""
    if row.tensor != 8:
        return False
    if row.engine == "sglang" or schedules_between_steps(row):
        return (row.model, row.system) == ("Qwen/Qwen3-32B", "h100_sxm")
    return (row.model, row.system) == ("meta-llama/Llama-3.1-70B", "h200_sxm")


def is_first_token_calibration(row: Row) -> bool:
    """Rows that `expert_request` is fitted to; TTFT does not count them, nor TPOT feel it."""
    is_deepseek = row.short in ("DeepSeek-R1", "DeepSeek-V3")
    return is_deepseek and row.system == "h200_sxm" and row.engine == "sglang"


def begins_together(row: Row) -> bool:
    """Whether all requests of a run begin, and so end, together.

    SGLang reads all prompts that wait before it decodes; with outputs of one length each wave of
    requests begins as one. The calibration rows show it: their TTFT is half of all prompts.
    """
    return row.engine == "sglang" and row.model == "Qwen/Qwen3-32B"


def formats(row: Row) -> ServedFormats:
    """What runs, by the checkpoints that such runs use.

    NVIDIA's FP8 and NVFP4 checkpoints have scales of activations and an FP8 cache
    (`hf_quant_config.json`); mixtures in NVFP4 and INT4 keep attention in 16 bits. gpt-oss is
    published in MXFP4, whatever the column says; its servers on B200 were told to cache in FP8
    (SemiAnalysisAI/InferenceX, benchmarks/gptoss_fp4_b200_*.sh), those on H200 under vLLM were not.
    """
    if row.model == "openai/gpt-oss-120b":
        cache = "fp8" if row.system == "b200_sxm" else "bf16"
        return ServedFormats(weights="bf16", experts="mxfp4", cache=cache)
    if not row.is_dense and row.weights == "nvfp4":
        return ServedFormats(weights="bf16", experts="nvfp4", cache="fp8")
    if row.weights == "int4_wo":
        return ServedFormats(weights="bf16", experts="int4", cache="bf16")
    if not row.is_dense and row.weights in ("fp8", "fp8_block"):
        cache = "fp8" if row.engine == "trtllm" and _has_latents(row) else "bf16"
        return ServedFormats(weights="fp8_block", experts="fp8_block", cache=cache)
    weights = row.weights or "bf16"
    has_scales = row.model == "meta-llama/Llama-3.1-70B" and weights in ("fp8", "nvfp4")
    is_static = has_scales or (row.engine == "trtllm" and weights == "fp8")
    cache = "fp8" if has_scales else "bf16"
    weights += "_static" if is_static else ""
    return ServedFormats(weights=weights, experts=weights, cache=cache)


def _has_latents(row: Row) -> bool:
    return any(name in row.model for name in ("DeepSeek", "Kimi", "GLM"))


def without_contradictions(rows: Sequence[Row]) -> list[Row]:
    """Rows without those of versions that contradict each other or themselves by a third.

    The file does not say which runs draft with multi-token prediction; such runs are half as
    long as others of the same model, layout and load. Where two versions of an engine, or two
    runs of one, disagree so, neither is compared.
    """
    runs: dict[tuple[object, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        load = (row.n_input, row.n_output, row.batch, row.tensor, row.data, row.expert)
        runs[(*_family(row), *load)][row.version].append(row.tpot_ms)
    ratios: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for key, versions in runs.items():
        family = key[:4]
        for version, times in versions.items():
            if max(times) > 1.25 * min(times):
                ratios[(family, version, version)].append(2.0)
        for one, other in itertools.combinations(sorted(versions), 2):
            ratios[(family, one, other)].append(
                float(np.median(versions[one]) / np.median(versions[other]))
            )
    doubted = {
        (family, version)
        for (family, *versions), found in ratios.items()
        if not 0.75 < np.median(found) < 1.33
        for version in versions
    }
    return [row for row in rows if (_family(row), row.version) not in doubted]


def _family(row: Row) -> tuple[str, ...]:
    return (CONFIG_OF[row.model], row.system, row.engine, row.weights)


@cache
def architecture(model: str) -> Architecture:
    return load_architecture(str(CONFIGS / f"{CONFIG_OF[model]}_config.json"))


def compared_rows(rows: Iterable[Row], change: Callable[[EngineSpec], EngineSpec] | None = None):
    """Predictions of all rows that engines run; those whose weights do not fit are left out."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        shape = (row.model, row.system, row.engine, row.weights, row.n_input, row.n_output)
        groups[(*shape, begins_together(row), schedules_between_steps(row))].append(row)
    return [one for group in groups.values() for one in _compared(group, change)]


def _compared(group: list[Row], change: Callable[[EngineSpec], EngineSpec] | None):
    first, model = group[0], architecture(group[0].model)
    engine = load_engine(first.engine)
    if schedules_between_steps(first):
        engine = replace(engine, **BETWEEN_STEPS)
    engine = change(engine) if change else engine
    cluster = load_cluster(CLUSTERS[first.system])
    table = kernel_table(cluster.device.name, engine.name)
    network = serving_network(cluster.fabric)
    clock = KernelClock(device=cluster.device, table=table, engine=engine, network=network)
    chosen = formats(first)
    many = deployments(
        formats=chosen,
        n_tensor=[row.tensor for row in group],
        n_data=[row.data for row in group],
        n_expert_parallel=[row.expert for row in group],
        batch=[row.batch for row in group],
    )
    traffic = Traffic(
        n_input_tokens=first.n_input,
        n_output_tokens=first.n_output,
        wave_fraction=1.0 if begins_together(first) else 0.0,
    )
    held = holding(
        model,
        many,
        chosen,
        engine,
        hbm_bytes=cluster.device.hbm_bytes,
        n_tokens=traffic.n_tokens,
    )
    serving = Serving(model=model, formats=chosen, engine=engine, clock=clock)
    times = serving_times(serving, many, traffic, largest_batch=held.largest_batch)
    runs = is_valid(model, many) & (held.largest_batch >= 1)
    return [
        Compared(
            row=row,
            tpot_ms=1e3 * float(times.tpot_s[i]),
            ttft_ms=1e3 * float(times.ttft_s[i] + times.queue_s[i]),
            n_running=float(times.n_running[i]),
        )
        for i, row in enumerate(group)
        if runs[i]
    ]


def judged(path: Path) -> list[Compared]:
    """Every row that counts."""
    rows = [row for row in read_rows(path) if not exclusion(row)]
    rows = [row for row in without_contradictions(rows) if not is_calibration(row)]
    return compared_rows(rows)


def is_unqueued(one: Compared) -> bool:
    """Whether a row's TTFT counts as that of requests that find no queue."""
    is_alone = one.row.batch <= MOST_UNQUEUED and one.n_running >= one.row.batch
    return is_alone and not is_first_token_calibration(one.row)


def without_repeats(found: Sequence[Compared]) -> list[Compared]:
    """Each measurement once: the file repeats some under two models' names or two exports."""
    kept: dict[tuple[object, ...], Compared] = {}
    for one in found:
        row = one.row
        ran = (row.system, row.engine, row.n_input, row.n_output, row.batch, row.tensor, row.expert)
        kept.setdefault((*ran, round(row.ttft_ms, 1), round(row.tpot_ms, 3)), one)
    return list(kept.values())


@cache
def peer_times() -> dict[str, tuple[float, float]]:
    """What the peer predicts, (TTFT, TPOT) by the name of a row [ms]."""
    with PEER.open(encoding="utf-8", newline="") as file:
        return {
            one["id"]: (float(one["ttft_ms"]), float(one["tpot_ms"]))
            for one in csv.DictReader(file)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """Absolute relative errors on the rows that the peer answers, of one quantity."""

    ours: np.ndarray
    theirs: np.ndarray


def both(some: Sequence[Compared], quantity: str) -> Both:
    """`quantity` is `tpot` or `ttft`."""
    times, place = peer_times(), ("ttft", "tpot").index(quantity)
    answered = [one for one in some if one.row.name in times]
    measured = np.array([getattr(one.row, f"{quantity}_ms") for one in answered])
    theirs = np.array([times[one.row.name][place] for one in answered])
    ours = np.array([getattr(one, f"{quantity}_error") for one in answered])
    return Both(ours=np.abs(ours), theirs=np.abs(theirs / measured - 1.0))


def summary(errors: Sequence[float]) -> str:
    size = np.abs(errors)
    return (
        f"n {len(size):5d}  mean {100 * size.mean():5.1f} %  median {100 * np.median(size):5.1f} %"
        f"  90th {100 * np.quantile(size, 0.9):5.1f} %  bias {100 * np.mean(errors):+6.1f} %"
    )


def report(found: Sequence[Compared]) -> str:
    """Errors by engine, device and model, with the peer's on those of the rows that it answers."""
    lines = []

    def line(name: str, some: Sequence[Compared], quantity: str = "tpot") -> None:
        if some:
            errors = summary([getattr(one, f"{quantity}_error") for one in some])
            lines.append(f"{name:54s} {errors}{_peer(some, quantity)}")

    line("TPOT, all", found)
    for is_dense, name in ((True, "dense"), (False, "mixtures")):
        some = [one for one in found if one.row.is_dense is is_dense]
        line(f"TPOT, {name}", some)
        for key in ("engine", "system", "short"):
            for value in sorted({getattr(one.row, key) for one in some}):
                line(f"  {value}", [one for one in some if getattr(one.row, key) == value])
        for slice_ in sorted({_slice(one.row) for one in some}):
            line(f"    {' '.join(slice_)}", [one for one in some if _slice(one.row) == slice_])
        first = [one for one in some if is_unqueued(one)]
        line(f"TTFT without a queue, {name}", first, "ttft")
        for engine in sorted({one.row.engine for one in first}):
            line(f"  {engine}", [one for one in first if one.row.engine == engine], "ttft")
    first = [one for one in found if is_unqueued(one)]
    line("TTFT without a queue, all", first, "ttft")
    line("TTFT without a queue, all, each once", without_repeats(first), "ttft")
    return "\n".join(lines)


def _slice(row: Row) -> tuple[str, ...]:
    return (row.short, row.system, row.engine, row.weights or "bf16")


def _peer(some: Sequence[Compared], quantity: str) -> str:
    """The peer's mean and median on the rows that it answers, and ours on the same."""
    errors = both(some, quantity)
    if not len(errors.ours):
        return ""
    theirs, ours = (
        f"{100 * size.mean():5.1f} / {100 * np.median(size):5.1f} %"
        for size in (errors.theirs, errors.ours)
    )
    return f"   peer on {len(errors.ours):4d}: {theirs}, here {ours}"


def calibrated(path: Path) -> dict[str, dict[str, float]]:
    """Host times of each engine, from its calibration rows alone.

    decode: median of what low batches take beyond their kernels. prefill: least squares of what
    is left over the prompts that a step reads, where these are shortest. request: median of what
    an unqueued TTFT takes beyond.
    """
    rows = [row for row in read_rows(path) if not exclusion(row) and is_calibration(row)]
    found = {}
    kinds = {(row.engine, schedules_between_steps(row)) for row in rows}
    for engine, is_old in sorted(kinds):
        bare = {"decode_host_s": 0.0, "prefill_host_s": 0.0, "request_s": 0.0}
        own = [
            row for row in rows if row.engine == engine and schedules_between_steps(row) is is_old
        ]
        lowest = min(row.batch for row in own)
        for name, value in (
            ("decode_host_s", _left_of_tpot),
            ("prefill_host_s", _slope_of_tpot),
            ("request_s", _left_of_ttft),
        ):
            some = compared_rows(own, lambda spec, b=bare: replace(spec, **b))
            bare[name] = max(0.0, value(some, lowest))
        found[f"{engine}, before 0.14" if is_old else engine] = bare
    few = [row for row in read_rows(path) if not exclusion(row) and is_first_token_calibration(row)]
    if few:
        some = compared_rows(few, lambda spec: replace(spec, expert_request_s=0.0))
        lowest = min(row.batch for row in few)
        found["sglang"]["expert_request_s"] = max(0.0, _left_of_ttft(some, lowest))
    return found


def _left_of_tpot(some: Sequence[Compared], lowest: int) -> float:
    few = [one for one in some if one.row.batch <= 2 * lowest]
    return float(np.median([one.row.tpot_ms - one.tpot_ms for one in few])) / 1e3


def _slope_of_tpot(some: Sequence[Compared], lowest: int) -> float:
    shortest = min(one.row.n_input for one in some)  # where kernels hide least of it
    many = [
        one
        for one in some
        if one.row.batch > 2 * lowest
        and one.n_running >= one.row.batch
        and one.row.n_input == shortest
    ]
    waves = 0.5 if begins_together(many[0].row) else 1.0
    per_step = [waves * (one.row.batch - 1) / one.row.n_output for one in many]
    if max(per_step) < 0.25:  # nothing to tell it by: outputs are long
        return 0.0
    left = [one.row.tpot_ms - one.tpot_ms for one in many]
    return float(np.dot(left, per_step) / np.dot(per_step, per_step)) / 1e3


def _left_of_ttft(some: Sequence[Compared], lowest: int) -> float:
    shortest = min(one.row.n_input for one in some)
    few = [one for one in some if one.row.batch == lowest and one.row.n_input == shortest]
    return float(np.median([one.row.ttft_ms - one.ttft_ms for one in few])) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calibrate", action="store_true")
    path = whole_file() or SELECTION
    if parser.parse_args().calibrate:
        for engine, values in calibrated(path).items():
            print(engine, {name: f"{1e3 * value:.2f} ms" for name, value in values.items()})
        return
    print(report(judged(path)))


if __name__ == "__main__":
    main()
