"""Serving runs as harnesses write them: what was sent, and the TPOT and TTFT that came of it.

`runs.toml` has the keys of each harness. A run becomes options of `plan predict`, as far as its
file says them; a run that failed, or lacks a time, is refused and says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import filterfalse
from pathlib import Path
from typing import Any

from planner.errors import Problem, SpecError
from planner.quantities.tables import packaged_table
from planner.specs.files.texts import UnreadError, csv_of, is_number, json_of, read_text
from planner.specs.validation.problems import did_you_mean
from planner_workshop.calibration.tables import MOST_BYTES, RejectedRow

TABLE = packaged_table("calibration/runs.toml", "planner_workshop")

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
        notes: what else was measured, in words.
    """

    place: str
    options: Mapping[str, str]
    tpot_s: float
    ttft_s: float
    statistic: str
    is_rate: bool
    notes: tuple[str, ...] = ()


def run_files(path: Path) -> list[Path]:
    """Files of runs at a path; none of a table of kernels, or of a folder of such."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in files if file.suffix in ENDINGS or _is_csv_of_runs(file)]


def _is_csv_of_runs(path: Path) -> bool:
    try:
        header = set(map(str.strip, csv_of(read_text(path, most_bytes=MOST_BYTES))[0]))
    except UnreadError:
        return False  # which whoever reads kernels tells
    return bool(header & {"tpot_ms", "ttft_ms"}) and "latency_us" not in header


def read_runs(path: Path, n_replicas: int = 1) -> tuple[list[ServingRun], list[RejectedRow]]:
    """Runs of one file, and those that are refused.

    Args:
        n_replicas: alike, that served each together: a run is what one of them did.

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
        row = RejectedRow(file=shown, line=line, reason=_fault(said, _numbers(said), n_replicas))
        if row.reason:
            refused.append(row)
        else:
            runs.append(_run(row.place, said, _numbers(said, n_replicas)))
    return runs, refused


def _json_runs(text: str, shown: str) -> Iterator[tuple[int, Said]]:
    is_lines = "\n{" in text.strip()
    for line, part in enumerate(text.strip().splitlines() if is_lines else [text], 1):
        root = json_of(part, has_infinity=True)
        listed = ((kind, _parts(kind, root)) for kind in TABLE["format"])
        kind, runs = next((it for it in listed if it[1]), (None, []))
        if kind is None:
            remedy = f"known are {'; '.join(it['name'] for it in TABLE['format'])}, and CSV"
            fact = "is no run of a harness that is known"
            raise SpecError([Problem(where=shown, fact=fact, remedy=remedy)])
        for i, run in enumerate(runs, 1):
            yield (line if is_lines else i * (len(runs) > 1)), _said(kind, run)


def _parts(kind: Said, root: Any) -> list[Any]:  # noqa: ANN401 as the file has it
    """Runs of a file of a kind; none of one that is of another."""
    runs = _at(root, kind["runs"]) if "runs" in kind else [root]
    is_known = isinstance(runs, list) and all(
        _at(it, key) is not None for it in runs for key in kind["has"]
    )
    return runs if is_known else []


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


def _numbers(said: Said, n_replicas: int = 1) -> Numbers:
    """Those of a run; counts of its requests and devices are dealt to so many replicas."""
    each = dict.fromkeys(TABLE["csv"]["numbers"], n_replicas)
    plain = {name: value for name, value in said.items() if isinstance(value, str | int | float)}
    numbers = {it: float(x) / each.get(it, 1) for it, x in plain.items() if is_number(str(x))}
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def _csv_runs(text: str, shown: str) -> Iterator[tuple[int, Said]]:
    rows, columns = csv_of(text), TABLE["csv"]
    header = list(map(str.strip, rows[0]))
    known = (*columns["has"], "statistic", *columns["numbers"], *columns["options"])
    faults = dict.fromkeys(filterfalse(known.__contains__, header), "no such column")
    faults |= dict.fromkeys(filterfalse(header.__contains__, columns["has"]), "is no column")
    a_run = f"a run has {', '.join(known)}"
    SpecError.raise_if_any(
        Problem(where=shown, value=name, fact=fact, remedy=did_you_mean(name, known) or a_run)
        for name, fact in faults.items()
    )
    for line, cells in enumerate(rows[1:], 2):
        pairs = zip(header, map(str.strip, cells), strict=False)
        said = {name: cell for name, cell in pairs if cell}
        if said:
            options = {f"--{it}": said[it] for it in TABLE["csv"]["options"] if it in said}
            yield line, {"statistic": STATISTICS[0], **said, "options": options}


def _fault(said: Said, numbers: Numbers, n_replicas: int) -> str:
    """Why a run cannot be used; empty of one that can."""
    words = {"tpot_ms": "TPOT", "ttft_ms": "TTFT", "n_input": "length of prompts"}
    lacking = [word for name, word in words.items() if numbers.get(name, 0.0) <= 0.0]
    sent = numbers.get("n_prompts", 0.0)
    completed = numbers.get("completed", sent)
    sent = max(sent, completed + numbers.get("failed", 0.0))
    own, lost, in_flight = _numbers(said["options"]), sent - completed, _in_flight(said, numbers)[0]
    n_devices = n_replicas * math.prod(own.get(name, 1.0) for name in ("--tp", "--pp", "--dp"))
    n_said = numbers.get("n_gpus", n_devices) if "--tp" in own else n_devices
    listed = said.keys() & {*TABLE["csv"]["has"], *TABLE["csv"]["numbers"]} - {"rate"}
    odd = [f"{name} `{said[name]}`" for name in sorted(listed) if numbers.get(name, -1.0) < 0.0]
    faults = {
        f"has {', '.join(odd)}, no number from 0": bool(odd),
        f"has no {', '.join(lacking)}": bool(lacking),
        f"`statistic` is {' or '.join(STATISTICS)}": said.get("statistic") not in STATISTICS,
        "writes one token a request, and so has no TPOT": numbers.get("n_output", 0.0) < 1.5,
        "was cancelled": said.get("cancelled") is True,
        f"{lost:.0f} of {sent:.0f} requests failed or were cut short": lost > MOST_FAILED * sent,
        f"has {n_said:.0f} devices, and its degrees {n_devices:.0f}": n_said != n_devices,
        "says neither requests in flight nor their rate": not 0.0 < in_flight < math.inf,
    }
    return next((words for words, is_so in faults.items() if is_so), "")


def _in_flight(said: Said, numbers: Numbers) -> tuple[float, bool]:
    """Requests in flight, and whether they came at a rate; none where nobody knows.

    Of a rate it is Little's law: in flight are as many as come while one stays.
    """
    loop = numbers.get("in_flight", math.inf)
    sent = numbers.get("n_prompts", numbers.get("completed", math.inf))
    is_at_once = str(said.get("rate")).lower() in ("inf", "infinity")
    if "rate" not in numbers and (loop < math.inf or is_at_once):
        return min(loop, sent), False
    decode_ms = (numbers.get("n_output", 1.0) - 1.0) * numbers.get("tpot_ms", 0.0)
    stay_s = (numbers.get("ttft_ms", 0.0) + decode_ms) / 1e3
    per_s = numbers.get("throughput", numbers.get("rate", 0.0))
    mean = numbers.get("concurrency", per_s * stay_s)
    return (min(max(1.0, round(mean)), loop) if mean else 0.0), True


def _run(place: str, said: Said, numbers: Numbers) -> ServingRun:
    in_flight, is_rate = _in_flight(said, numbers)
    loop = {
        "--input": numbers["n_input"],
        "--output": numbers["n_output"],
        "--in-flight": max(1.0, in_flight),
    }
    sent = numbers.get("n_prompts", numbers.get("completed", 0.0))
    if sent and not is_rate:
        loop["--waves"] = max(1.0, round(sent / in_flight))
    return ServingRun(
        place=place,
        options={**{name: f"{value:.0f}" for name, value in loop.items()}, **said["options"]},
        tpot_s=numbers["tpot_ms"] / 1e3,
        ttft_s=numbers["ttft_ms"] / 1e3,
        statistic=said["statistic"],
        is_rate=is_rate,
    )
