"""Serving runs as harnesses write them: what was sent, and the TPOT and TTFT that came of it.

`runs.toml` has the keys of each harness. A run becomes options of `plan predict`, as far as its
file says them; a run that failed, or lacks a time, is refused and says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from planner.errors import Problem, SpecError
from planner.quantities.tables import packaged_table
from planner.specs.files.texts import UnreadError, csv_of, json_of, read_text
from planner.specs.validation.problems import did_you_mean
from planner.tools.calibration.tables import MOST_BYTES, RejectedRow

TABLE = packaged_table("tools/calibration/runs.toml")

MOST_FAILED = 0.01
"""Of the requests of a run; with more, others had the engine more to themselves [1]."""

ENDINGS = (".json", ".jsonl")
STATISTICS = ("mean", "median")

Said = dict[str, Any]
"""What a run says, by the names of `runs.toml`; `options` of `plan predict` by name."""

Numbers = Mapping[str, float]
"""Of what a run says, all that are finite numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRun:
    """One run.

    Args:
        place: where it stands, a file and mostly a line.
        options: of `plan predict`, by name, that its file says.
        tpot_s, ttft_s: that were measured [s].
        statistic: what these are of its requests, `mean` or `median`.
        is_rate: it came at a rate: as many are taken to be in flight as were on average.
    """

    place: str
    options: Mapping[str, str]
    tpot_s: float
    ttft_s: float
    statistic: str
    is_rate: bool


def run_files(path: Path) -> list[Path]:
    """Files of runs at a path; none of a table of kernels, or of a folder of such."""
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in ENDINGS)
    return [path] if path.suffix in ENDINGS or _is_csv_of_runs(path) else []


def _is_csv_of_runs(path: Path) -> bool:
    try:
        header = set(map(str.strip, csv_of(read_text(path, most_bytes=MOST_BYTES))[0]))
    except UnreadError:
        return False  # which whoever reads kernels tells
    return bool(header & {"tpot_ms", "ttft_ms"}) and "latency_us" not in header


def read_runs(path: Path) -> tuple[list[ServingRun], list[RejectedRow]]:
    """Runs of one file, and those that are refused.

    Raises:
        SpecError: it cannot be read, or is of no kind that is known; all faults are listed.
    """
    shown = str(path)
    runs: list[ServingRun] = []
    refused: list[RejectedRow] = []
    try:
        text = read_text(path, most_bytes=MOST_BYTES)
        listed = list(_csv_runs(text, shown) if path.suffix == ".csv" else _json_runs(text, shown))
    except UnreadError as error:
        raise SpecError([error.problem(shown)]) from None
    for line, said in listed:
        row = RejectedRow(file=shown, line=line, reason=_fault(said, _numbers(said)))
        if row.reason:
            refused.append(row)
        else:
            runs.append(_run(row.place, said, _numbers(said)))
    return runs, refused


def _json_runs(text: str, shown: str) -> Iterator[tuple[int, Said]]:
    is_lines = "\n{" in text.strip()
    for line, part in enumerate(text.strip().splitlines() if is_lines else [text], 1):
        root, formats = json_of(part, has_infinity=True), TABLE["format"]
        listed = {
            kind["name"]: _at(root, kind["runs"]) if "runs" in kind else [root] for kind in formats
        }
        kind = next((it for it in formats if _has_all(listed[it["name"]], it["has"])), None)
        if kind is None:
            remedy = f"known are {'; '.join(listed)}, and CSV"
            fact = "is no run of a harness that is known"
            raise SpecError([Problem(where=shown, fact=fact, remedy=remedy)])
        parts = listed[kind["name"]]
        for i, run in enumerate(parts, 1):
            yield (line if is_lines else i * (len(parts) > 1)), _said(kind, run)


def _has_all(runs: Any, keys: list[str]) -> bool:  # noqa: ANN401 as the file has it
    return bool(isinstance(runs, list) and runs) and all(
        _at(runs[0], it) is not None for it in keys
    )


def _said(kind: Said, run: object) -> Said:
    said: Said = {"options": {}}
    for name in kind.keys() - {"name", "has", "runs", *STATISTICS}:
        values = [value for key in kind[name] if (value := _at(run, key)) is not None]
        said |= {name: values[0]} if values else {}
    for statistic in reversed(STATISTICS):
        tpot, ttft = (_at(run, key) for key in kind[statistic])
        if tpot is not None and ttft is not None:
            said |= {"tpot_ms": tpot, "ttft_ms": ttft, "statistic": statistic}
    if isinstance(said.get("model"), str):
        said["options"] = {"--model": said["model"]}
    return said


def _at(root: Any, key: str) -> Any:  # noqa: ANN401 as the file has it
    """What stands at a key, or the quotient of two; None where nothing does."""
    above, _, below = key.partition(" / ")
    if below:
        top, bottom = _at(root, above), _at(root, below)
        return top / bottom if top and bottom else None
    return reduce(_within, key.split("."), root)


def _within(root: Any, part: str) -> Any:  # noqa: ANN401 as the file has it
    if isinstance(root, list):
        root = {str(i): it for i, it in enumerate(root)} | {
            it.get("name"): it for it in root if isinstance(it, dict)
        }
    return root.get(part) if isinstance(root, dict) else None


def _numbers(said: Said) -> Numbers:
    numbers = {}
    for name, value in said.items():
        if isinstance(value, str | int | float):
            try:
                numbers[name] = float(value)
            except ValueError:
                continue
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def _csv_runs(text: str, shown: str) -> Iterator[tuple[int, Said]]:
    rows, columns = csv_of(text), TABLE["csv"]
    header = list(map(str.strip, rows[0]))
    known = (*columns["has"], "statistic", *columns["numbers"], *columns["options"])
    a_run = f"a run has {', '.join(known)}"
    SpecError.raise_if_any(
        Problem(where=shown, value=name, fact=fact, remedy=did_you_mean(name, known) or a_run)
        for fact, names in (
            ("no such column", [name for name in header if name not in known]),
            ("is no column", [name for name in columns["has"] if name not in header]),
        )
        for name in names
    )
    for line, cells in enumerate(rows[1:], 2):
        pairs = zip(header, map(str.strip, cells), strict=False)
        said = {name: cell for name, cell in pairs if cell}
        if said:
            yield line, {"statistic": STATISTICS[0], **said, "options": _options(said)}


def _options(said: Said) -> dict[str, str]:
    return {f"--{name}": said[name] for name in TABLE["csv"]["options"] if name in said}


def _fault(said: Said, numbers: Numbers) -> str:
    """Why a run cannot be used; empty of one that can."""
    words = {"tpot_ms": "TPOT", "ttft_ms": "TTFT", "n_input": "length of prompts"}
    lacking = [word for name, word in words.items() if numbers.get(name, 0.0) <= 0.0]
    failed, sent = numbers.get("failed", 0.0), numbers.get("n_prompts", 0.0)
    completed = numbers.get("completed", sent)
    sent = max(sent, completed + failed)
    own = _numbers(said["options"])
    degrees = [own.get(name, 1.0) for name in ("--tp", "--pp", "--dp")]
    n_devices = numbers.get("n_gpus", math.prod(degrees))
    faults = {
        f"has no {', '.join(lacking)}": bool(lacking),
        f"`statistic` is {' or '.join(STATISTICS)}": said.get("statistic") not in STATISTICS,
        "writes one token a request, and so has no TPOT": numbers.get("n_output", 0.0) < 1.5,
        "was cancelled": said.get("cancelled") is True,
        f"{sent - completed:.0f} of {sent:.0f} requests failed or were cut short": (
            sent - completed > MOST_FAILED * sent
        ),
        f"has {n_devices:.0f} devices, and its degrees {math.prod(degrees):.0f}": (
            "--tp" in said["options"] and n_devices != math.prod(degrees)
        ),
        "says neither how many requests were in flight nor their rate": not _in_flight(
            said, numbers
        )[0],
    }
    return next((words for words, is_so in faults.items() if is_so), "")


def _in_flight(said: Said, numbers: Numbers) -> tuple[float, bool]:
    """Requests in flight, and whether they came at a rate; none where nobody knows.

    Of a rate it is Little's law: in flight are as many as come while one stays.
    """
    loop = numbers.get("in_flight", math.inf)
    sent = numbers.get("n_prompts", numbers.get("completed", math.inf))
    is_at_once = str(said.get("rate")).lower() in ("inf", "infinity")
    if "rate" not in numbers and min(loop, sent if is_at_once else math.inf) < math.inf:
        return min(loop, sent), False
    stay_ms = numbers.get("ttft_ms", 0.0) + (numbers.get("n_output", 1.0) - 1.0) * numbers.get(
        "tpot_ms", 0.0
    )
    per_s = numbers.get("throughput", numbers.get("rate", 0.0))
    mean = numbers.get("concurrency", per_s * stay_ms / 1e3)
    return (min(max(1.0, round(mean)), loop) if mean else 0.0), True


def _run(place: str, said: Said, numbers: Numbers) -> ServingRun:
    in_flight, is_rate = _in_flight(said, numbers)
    loop = {name: f"{numbers[key]:.0f}" for name, key in _LENGTHS.items()}
    loop["--in-flight"] = f"{in_flight:.0f}"
    sent = numbers.get("n_prompts", numbers.get("completed"))
    if sent and not is_rate:
        loop["--waves"] = f"{max(1, round(sent / in_flight))}"
    return ServingRun(
        place=place,
        options={**loop, **said["options"]},
        tpot_s=numbers["tpot_ms"] / 1e3,
        ttft_s=numbers["ttft_ms"] / 1e3,
        statistic=said["statistic"],
        is_rate=is_rate,
    )


_LENGTHS = {"--input": "n_input", "--output": "n_output"}
