"""What NVIDIA's aiconfigurator writes, as rows of a table of deployments.

Three of its files are known by their headers (0.12):

aggregated     a replica that reads prompts and writes answers: `agg/pareto.csv`, `agg/best_…`
disaggregated  pairs, so many workers that read and so many that write: `disagg/pareto.csv`, …
workers        one worker of either sort: the frames that it makes its pairs of

Pairs are split into their workers, and each worker is met once. A pair is credited with less than
its workers do, and with a later first token; so that replicas of these rows come to what the tool
itself would say of them, its factors are applied here, and nowhere else.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from planner.errors import Problem
from planner.quantities.tables import packaged_table
from planner.specs.files.ledger import remark
from planner.specs.files.texts import cell_count, cell_number, cell_text
from planner.specs.huggingface.aliases import model_named
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER
from planner.specs.records.runtimes import DeploymentRow
from planner.specs.validation.values import FaultError

_T = TypeVar("_T")

TOOL = "aiconfigurator"

PREFILL_RATE_FACTOR = 0.9
"""Of what prefill workers read: `_RATE_MATCH_PREFILL_DEGRADATION` of its `sdk/sweep.py`, 0.12.0."""
DECODE_RATE_FACTOR = 0.92
"""Of what decode workers write: `_RATE_MATCH_DECODE_DEGRADATION` there."""
TTFT_FACTOR = 1.8
"""Of a prefill worker's time: `_AUTOSCALE_TTFT_CORRECTION_FACTOR` there. Its pairs have it in."""

_SHARED = ("model", "isl", "osl", "prefix", "ttft", "tpot", "seq/s", "num_total_gpus")
_OF_WORKERS = (*_SHARED, "context_latency", "generation_latency", "system", "memory")
_AGGREGATED = (*_SHARED, "num_ctx_reqs", "concurrency", "system", "memory")
_PAIRS = (*_SHARED, "(p)seq/s/worker", "(d)seq/s/worker", "(p)parallel", "(d)parallel")

_TABLE = packaged_table("specs/published.toml")["aiconfigurator"]
KINDS: Mapping[str, str] = _TABLE["systems"]
"""Its systems by the names of our devices, where they differ."""

FORMATS: Mapping[str, str] = _TABLE["formats"]
"""Its number formats by our names, where they differ."""

_Cells = Mapping[str, str]


def is_known(header: Sequence[str]) -> bool:
    """Whether the columns are those of one of its files."""
    return any({*names} <= {*header} for names in (_OF_WORKERS, _AGGREGATED, _PAIRS))


def rows_of(
    header: Sequence[str], lines: Mapping[int, Sequence[str]]
) -> tuple[list[DeploymentRow], list[Problem]]:
    """The workers and replicas that a file has, each once, and what is wrong with its lines."""
    rows: list[DeploymentRow] = []
    problems: list[Problem] = []
    n_others = 0
    for number, cells in lines.items():
        named = dict(zip(header, cells, strict=False))
        try:
            if len(cells) != len(header):
                raise FaultError(f"has {len(cells)} cells, and the header {len(header)}")
            if _number(named, "prefix") or named.get("(e)workers", "0") not in ("0", "0.0"):
                n_others += 1
            else:
                rows += _split(number, named)
        except FaultError as error:
            problems.append(Problem(where="", key=f"line {number}", fact=str(error)))
    if n_others:
        fact = f"{n_others:,} rows with cached prefixes or encoders are left out"
        remark(Problem(where=TOOL, fact=fact))
    if any(row.role != TOGETHER for row in rows):
        fact = (
            f"rates of its prefill workers count {PREFILL_RATE_FACTOR:g}, of its decode workers "
            f"{DECODE_RATE_FACTOR:g}, their first token {TTFT_FACTOR:g} times, as in its own pairs"
        )
        remark(Problem(where=TOOL, fact=fact))
    return list({replace(row, line=0): row for row in reversed(rows)}.values())[::-1], problems


def _split(number: int, cells: _Cells) -> Iterator[DeploymentRow]:
    """The replicas of a line: one, or the two sorts of workers of a pair."""
    if "(p)seq/s/worker" in cells:
        yield _worker(number, cells, PREFILL, "(p)")
        yield _worker(number, cells, DECODE, "(d)")
    elif "num_ctx_reqs" in cells:
        yield _row(number, cells, TOGETHER, "")
    else:
        yield _worker(number, cells, DECODE if _number(cells, "tpot") else PREFILL, "")


def _worker(number: int, cells: _Cells, role: str, of: str) -> DeploymentRow:
    """One worker of a role, with the factors of a pair.

    Args:
        of: what its columns start with in a pair; empty where it stands alone.
    """
    row = _row(number, cells, role, of)
    if role == DECODE:
        return replace(row, requests_per_s=row.requests_per_s * DECODE_RATE_FACTOR, ttft_s=0.0)
    ttft_s = row.ttft_s if of else row.ttft_s * TTFT_FACTOR
    rate = row.requests_per_s * PREFILL_RATE_FACTOR
    return replace(row, requests_per_s=rate, ttft_s=ttft_s, tpot_s=0.0)


def _row(number: int, cells: _Cells, role: str, of: str) -> DeploymentRow:
    """A replica or a worker, as it is written."""
    names = ("pp", "tp", "dp", "cp") if of else ("num_total_gpus",)
    counts = [_count(cells, of + name) for name in names if of + name in cells]
    gemm, cache = _word(cells, f"{of}gemm"), _word(cells, f"{of}kvcache")
    system = _word(cells, f"{of}system")
    in_flight = f"{of}global_bs" if of else "concurrency"
    rate = f"{of}seq/s/worker" if of else "seq/s"
    return DeploymentRow(
        line=number,
        name=_word(cells, f"{of}parallel"),
        model=model_named(_word(cells, "model")),
        kind=KINDS.get(system, system.replace("_", "-")),
        n_devices=math.prod(counts),
        role=role,
        engine=_word(cells, f"{of}backend"),
        requests_per_s=_read(cells, rate, cell_number("requests_per_s")),
        ttft_s=_number(cells, "ttft") / 1e3,
        tpot_s=_number(cells, "tpot") / 1e3,
        batch=_count(cells, in_flight),
        weights_format=FORMATS.get(gemm, gemm),
        kv_format=FORMATS.get(cache, cache),
        memory_bytes=_read(cells, f"{of}memory", cell_number("memory_bytes", scale=2**30)),
        usd_per_hour=None,
        n_input_tokens=_count(cells, "isl"),
        n_output_tokens=_count(cells, "osl"),
    )


def _word(cells: _Cells, name: str) -> str:
    return _read(cells, name, cell_text)


def _number(cells: _Cells, name: str) -> float:
    return _read(cells, name, cell_number("latency_s"))


def _count(cells: _Cells, name: str) -> int:
    return _read(cells, name, cell_count)


def _read(cells: _Cells, name: str, read: Callable[[str], _T]) -> _T:
    try:
        return read(cells.get(name, ""))
    except FaultError as error:
        raise FaultError(f"of `{name}` {error.fact}", error.remedy) from None
