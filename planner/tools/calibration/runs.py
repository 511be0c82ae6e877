"""Serving runs as harnesses write them: what was sent, and the TPOT and TTFT that came of it.

`runs.toml` has the keys of each harness. A run becomes options of `plan predict`, as far as its
file says them; a run that failed, or lacks a time, is refused and says why.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from planner.errors import Problem, RequestError, SpecError
from planner.specs.files.texts import UnreadError, csv_of, json_of, read_text
from planner.specs.validation.problems import did_you_mean
from planner.tools.calibration.tables import MOST_BYTES, RejectedRow

MOST_FAILED = 0.01
"""Of the requests of a run; with more, others had the engine more to themselves [1]."""

ENDINGS = (".json", ".jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRun:
    """One run.

    Args:
        file, line: where it stands; line 0 of a whole file.
        options: of `plan predict`, by name, that its file says.
        tpot_s, ttft_s: that were measured [s].
        statistic: what these are of its requests, `mean` or `median`.
        rate: it came at a rate: as many are taken to be in flight as were on average.
    """

    file: str
    line: int
    options: Mapping[str, str]
    tpot_s: float
    ttft_s: float
    statistic: str
    rate: bool = False

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(slots=True)
class RunReading:
    """Runs of files, and those that are refused."""

    runs: list[ServingRun] = field(default_factory=list)
    refused: list[RejectedRow] = field(default_factory=list)


class _RefusedError(Exception):
    """A run that cannot be used; its text says why."""


@cache
def known_formats() -> Mapping[str, Any]:
    """What `runs.toml` says."""
    text = (files("planner.tools.calibration") / "runs.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def run_files(path: Path) -> list[Path]:
    """Files of runs at a path; none of a table of kernels, or of a folder of such."""
    if path.is_dir():
        return sorted(one for one in path.iterdir() if one.suffix in ENDINGS)
    return [path] if path.suffix in ENDINGS or _is_csv_of_runs(path) else []


def _is_csv_of_runs(path: Path) -> bool:
    try:
        rows = csv_of(read_text(path, most_bytes=MOST_BYTES))
    except UnreadError:
        return False  # which whoever reads kernels tells
    header = {cell.strip() for cell in rows[0]}
    return bool(header & {"tpot_ms", "ttft_ms"}) and "latency_us" not in header


def read_runs(path: Path) -> RunReading:
    """Runs of one file.

    Raises:
        RequestError: it cannot be read, or is of no kind that is known.
    """
    reading, shown = RunReading(), str(path)
    try:
        text = read_text(path, most_bytes=MOST_BYTES)
        listed = list(_csv_runs(text, shown) if path.suffix == ".csv" else _json_runs(text, shown))
    except UnreadError as error:
        raise SpecError([error.problem(shown)]) from None
    for line, said in listed:
        try:
            reading.runs.append(_run(shown, line, said))
        except _RefusedError as error:
            reading.refused.append(RejectedRow(file=shown, line=line, reason=str(error)))
    return reading


Said = Mapping[str, Any]
"""What a run says, by the names of `runs.toml`; `options` of `plan predict` by name."""


def _json_runs(text: str, shown: str) -> Iterator[tuple[int, Said]]:
    is_lines = "\n{" in text.strip()
    lines = [one for one in text.splitlines() if one.strip()] if is_lines else [text]
    for line, one in enumerate(lines, 1):
        root = json_of(one, has_infinity=True)
        way = next((it for it in known_formats()["format"] if _is_of(it, root)), None)
        if way is None:
            known = "; ".join(it["name"] for it in known_formats()["format"])
            fact, remedy = "is no run of a harness that is known", f"known are {known}, and CSV"
            raise RequestError([Problem(where=shown, fact=fact, remedy=remedy)])
        parts = _parts(way, root)
        for i, part in enumerate(parts, 1):
            yield (line if is_lines else i * (len(parts) > 1)), _said(way, part)


def _parts(way: Said, root: Any) -> list[Any]:  # noqa: ANN401 as the file has it
    found = _at(root, way["runs"]) if "runs" in way else [root]
    return found if isinstance(found, list) else []


def _is_of(way: Said, root: Any) -> bool:  # noqa: ANN401 as the file has it
    parts = _parts(way, root)
    return bool(parts) and all(_at(parts[0], key) is not None for key in way["has"])


def _said(way: Said, root: Any) -> Said:  # noqa: ANN401 as the file has it
    said = {
        name: next((it for it in (_at(root, key) for key in keys) if it is not None), None)
        for name, keys in way.items()
        if name not in ("name", "has", "runs", "mean", "median")
    }
    for statistic in ("mean", "median"):
        tpot, ttft = (_at(root, key) for key in way[statistic])
        if tpot is not None and ttft is not None:
            said |= {"tpot_ms": tpot, "ttft_ms": ttft, "statistic": statistic}
            break
    model = said.pop("model", None)
    return {**said, "options": {"--model": model} if isinstance(model, str) else {}}


def _at(root: Any, key: str) -> Any:  # noqa: ANN401 as the file has it
    """What stands at a key, or the quotient of two; None where nothing does."""
    above, _, below = key.partition(" / ")
    if below:
        top, bottom = _number(_at(root, above)), _number(_at(root, below))
        return top / bottom if top is not None and bottom else None
    for part in key.split("."):
        if isinstance(root, dict):
            root = root.get(part)
        elif isinstance(root, list) and part.isdecimal():
            root = root[int(part)] if int(part) < len(root) else None
        elif isinstance(root, list):
            named = (it for it in root if isinstance(it, dict) and it.get("name") == part)
            root = next(named, None)
        else:
            return None
    return root


def _number(value: object) -> float | None:
    """A finite number, of a number or of the text of one; None of anything else."""
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except ValueError:
        number = math.nan
    return number if math.isfinite(number) else None


def _csv_runs(text: str, shown: str) -> Iterator[tuple[int, Said]]:
    rows, columns = csv_of(text), known_formats()["csv"]
    header = [cell.strip() for cell in rows[0]]
    known = (*columns["has"], "statistic", *columns["numbers"], *columns["options"])
    wrong = [
        Problem(where=shown, value=name, fact="no such column", remedy=did_you_mean(name, known))
        for name in header
        if name not in known
    ]
    wrong += [
        Problem(
            where=shown, value=name, fact="is no column", remedy=f"a run has {', '.join(known)}"
        )
        for name in columns["has"]
        if name not in header
    ]
    if wrong:
        raise SpecError(wrong)
    for line, cells in enumerate(rows[1:], 2):
        said = {name: cell.strip() for name, cell in zip(header, cells, strict=False)}
        said = {name: cell for name, cell in said.items() if cell}
        if said:
            options = {f"--{name}": said[name] for name in columns["options"] if name in said}
            yield line, {"statistic": "mean", **said, "options": options}


def _run(file: str, line: int, said: Said) -> ServingRun:
    """A run of what is said.

    Raises:
        _RefusedError: it cannot be used.
    """
    numbers = {name: _number(value) for name, value in said.items() if name != "options"}
    tpot, ttft = _positive(numbers, "tpot_ms"), _positive(numbers, "ttft_ms")
    n_input, n_output = _positive(numbers, "n_input"), _positive(numbers, "n_output")
    if said.get("statistic") not in ("mean", "median"):
        raise _RefusedError(f"`statistic` is mean or median, not {said.get('statistic')}")
    if n_output < 1.5:
        raise _RefusedError("writes one token a request, and so has no TPOT")
    _refuse_failed(numbers, is_cancelled=said.get("cancelled") is True)
    options = {"--input": f"{n_input:.0f}", "--output": f"{n_output:.0f}", **said["options"]}
    stay_s = (ttft + (n_output - 1.0) * tpot) / 1e3
    loop, is_rate = _loop(numbers, said.get("rate"), stay_s)
    _refuse_devices(numbers.get("n_gpus"), options)
    return ServingRun(
        file=file,
        line=line,
        options={**options, **loop},
        tpot_s=tpot / 1e3,
        ttft_s=ttft / 1e3,
        statistic=str(said["statistic"]),
        rate=is_rate,
    )


_WORDS = {
    "tpot_ms": "TPOT",
    "ttft_ms": "TTFT",
    "n_input": "tokens read",
    "n_output": "tokens written",
}


def _positive(numbers: Mapping[str, float | None], name: str) -> float:
    value = numbers.get(name)
    if value is None or value <= 0.0:
        raise _RefusedError(f"has no {_WORDS[name]}")
    return value


def _refuse_failed(numbers: Mapping[str, float | None], *, is_cancelled: bool) -> None:
    if is_cancelled:
        raise _RefusedError("was cancelled")
    completed, failed = numbers.get("completed"), numbers.get("failed") or 0.0
    sent = numbers.get("n_prompts") or (completed or 0.0) + failed
    if completed is None:
        completed, sent = sent, sent + failed
    lost = max(failed, sent - completed)
    if sent and lost > MOST_FAILED * sent:
        raise _RefusedError(f"{lost:.0f} of {sent:.0f} requests failed or were cut short")


def _loop(
    numbers: Mapping[str, float | None], rate: object, stay_s: float
) -> tuple[dict[str, str], bool]:
    """Requests in flight and waves, as options; and whether they came at a rate.

    Of a rate it is Little's law: in flight are as many as come while one stays.
    """
    in_flight, n_prompts = numbers.get("in_flight"), numbers.get("n_prompts")
    n_prompts = n_prompts or numbers.get("completed")
    per_s = numbers.get("rate")
    if per_s is None and in_flight is None and str(rate) in ("inf", "Infinity") and n_prompts:
        in_flight = n_prompts  # all at once
    if per_s is not None or in_flight is None:
        per_s = numbers.get("throughput") or per_s
        mean = numbers.get("concurrency") or (per_s * stay_s if per_s else None)
        if mean is None:
            raise _RefusedError("says neither how many requests were in flight nor their rate")
        most = in_flight or math.inf
        return {"--in-flight": f"{max(1, min(round(mean), most)):.0f}"}, True
    in_flight = min(in_flight, n_prompts or math.inf)
    loop = {"--in-flight": f"{max(1.0, in_flight):.0f}"}
    if n_prompts:
        loop["--waves"] = f"{max(1, round(n_prompts / in_flight))}"
    return loop, False


def _refuse_devices(n_gpus: float | None, options: Mapping[str, str]) -> None:
    degrees = [_number(options.get(name, "1")) or 1.0 for name in ("--tp", "--pp", "--dp")]
    if n_gpus is not None and "--tp" in options and n_gpus != math.prod(degrees):
        raise _RefusedError(f"has {n_gpus:.0f} devices, and its degrees {math.prod(degrees):.0f}")
