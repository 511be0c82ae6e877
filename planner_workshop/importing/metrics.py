"""A Prometheus scrape of a serving engine as a run: what was sent, and the times that came of it.

Counters are since the server started, or between two scrapes.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from planner.errors import Problem, SpecError
from planner.quantities.tables import packaged_table
from planner.quantities.units import show
from planner.specs.files.ledger import Use
from planner.specs.files.texts import UnreadError, is_number, read_text
from planner_workshop.calibration.runs import ServingRun

TABLE = packaged_table("importing/metrics.toml", "planner_workshop")
MOST_FAULTS = 5
PERCENTILES = (0.5, 0.9, 0.99)
MOST_HITS = 0.999
"""Share of a prompt that is found cached: its last token never is."""

_SAMPLE = re.compile(r"(\w[\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?(?:\s+#.*)?")
_LABEL = re.compile(r'(?<!\w)(\w+)="((?:[^"\\]|\\.)*)"')
_ENGINE = re.compile(r"(?:ray_)?(vllm|sglang)[:_](\w+)")

Labels = tuple[tuple[str, str], ...]
Series = dict[str, dict[Labels, float]]
"""Values by name, and by labels."""


class Scrape(NamedTuple):
    """What an engine counts of a model; empty of a file with faults."""

    engine: str
    model: str
    series: Series


def read_metrics(paths: Sequence[str]) -> ServingRun:
    """The run that one scrape counts, or that lies between two.

    Raises:
        SpecError: a file cannot be read, is no scrape of one engine, or says nothing of an answer;
            all faults are listed.
    """
    problems: list[Problem] = []
    read = [_scrape(path, problems) for path in paths]
    if len({it[:2] for it in read if it.series}) > 1 or len(paths) > 2:
        fact = "is no scrape of one server, or two of it"
        where = TABLE["options"]["scrapes"]
        problems.append(Problem(where=where, value=",".join(paths), fact=fact))
    SpecError.raise_if_any(problems)
    scrape = read[-1]
    if len(read) > 1:
        scrape = scrape._replace(series=_between(read[0].series, scrape.series, paths[1]))
    return _run(scrape, paths[-1], TABLE["says"][len(read) - 1])


def _scrape(path: str, problems: list[Problem]) -> Scrape:
    """The series of an engine in a file; what is wrong with it is kept.

    Some series, like those of a configuration, have no model.
    """
    series: Series = defaultdict(dict)
    engines, models, n_faults = set(), set(), len(problems)
    for sample in _samples(path, problems):
        name, labels = _ENGINE.fullmatch(sample[1]), dict(_LABEL.findall(sample[2] or ""))
        if name and 0 <= float(sample[3]) < math.inf:
            series[name[2]][tuple(sorted(labels.items()))] = float(sample[3])
            engines.add(name[1])
            models.add(labels.get("model_name", ""))
    models -= {""}
    if len(problems) == n_faults and (len(engines) != 1 or len(models) > 1):
        listed = " and ".join(sorted(models if len(models) > 1 else engines))
        fact = f"has metrics of {listed or 'no engine that is known here'}"
        remedy = "scrape one server of vLLM or SGLang: `curl HOST:8000/metrics`"
        problems.append(Problem(where=path, fact=fact, remedy=remedy))
    return Scrape("".join(engines), "".join(models), series)


def _samples(path: str, problems: list[Problem]) -> Iterator[re.Match[str]]:
    """Samples of a file; of lines that are none the first are problems."""
    try:
        lines = read_text(Path(path), use=Use(kind="metrics")).splitlines()
    except UnreadError as error:
        problems.append(error.problem(path))
        return
    most = len(problems) + MOST_FAULTS
    for number, line in enumerate(map(str.strip, lines), 1):
        sample = _SAMPLE.fullmatch(line)
        if sample is not None and is_number(sample[3]):
            yield sample
        elif line[:1] not in ("", "#") and len(problems) < most:
            fact = "is no sample: `NAME{LABELS} VALUE`"
            problems.append(Problem(where=f"{path}:{number}", value=line[:60], fact=fact))


def _between(before: Series, after: Series, place: str) -> Series:
    """What was counted between two scrapes; of a moment the mean of both.

    Raises:
        SpecError: a counter is less than it was.
    """
    series: Series = defaultdict(dict)
    for name, labels in ((it, own) for it in before | after for own in before[it] | after[it]):
        value, earlier = after[name].get(labels, 0.0), before[name].get(labels, 0.0)
        is_moment = name in TABLE["moments"]["names"]
        series[name][labels] = (value + earlier) / 2 if is_moment else value - earlier
        if value < earlier and name.endswith(("_total", "_sum", "_count", "_bucket")):
            fact = f"counts less than the scrape before it: {name}"
            remedy = "name the earlier first; where the server started anew, the later alone"
            raise SpecError([Problem(where=place, fact=fact, remedy=remedy)])
    return series


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> tuple[float, float, float]:
    """A percentile by `histogram_quantile` of Prometheus, and the bounds of its bucket.

    >>> quantile([(1.0, 5.0), (3.0, 15.0), (float("inf"), 20.0)], 0.5)
    (2.0, 1.0, 3.0)

    Args:
        buckets: upper bounds, ascending, and how many are no larger.
    """
    rank, low, below = share * buckets[-1][1], 0.0, 0.0
    for high, count in buckets:
        if count >= rank and count > below:
            width = high - low if high < math.inf else 0.0
            return low + width * (rank - below) / (count - below), low, high
        low, below = high, count
    return low, low, math.inf


def _run(scrape: Scrape, place: str, span: str) -> ServingRun:
    """The run of a scrape.

    Raises:
        SpecError: it says nothing of an answer, or of how many sequences ran.
    """
    engine, model, series = scrape
    names: dict[str, list[str]] = TABLE["engines"][engine]
    total = _totals(series, names)
    total["running"] += total["steps"]  # of which either says how many ran
    lacking = [it for what, it in TABLE["needed"].items() if not total[what]]
    if lacking:
        remedy = "scrape it while requests are answered"
        raise SpecError([Problem(where=place, fact=f"has no {', '.join(lacking)}", remedy=remedy)])
    running, waiting = (_moments(series, names[it]) for it in ("running", "waiting"))
    sent = _sent(total, running) | {"engine": engine, "model": model}
    options = {option: sent[what] for what, option in TABLE["options"].items() if sent.get(what)}
    counted = "in a pass, on average," if total["steps"] else "at the moment of the scrape,"
    together = float(sent["running"]) * len(running) / total["tpot"]
    return ServingRun(
        place=place,
        options=options,
        tpot_s=total["tpot"],
        ttft_s=total["ttft"],
        statistic="mean",
        is_rate=True,
        notes=(
            f"{total['requests']:,.0f} requests of {model or engine}, {span}",
            f"{sent['read']} tokens in, {float(sent['cached']):.0%} of them cached, "
            f"{sent['written']} out; {sent['running']} sequences a rank {counted} "
            f"{sum(waiting):.0f} waiting; together {together:.3g} tok/s while they write",
            f"TPOT measured: {_percentiles(series, names['tpot'])}",
            f"TTFT measured: {_percentiles(series, names['ttft'])}",
        ),
    )


def _totals(series: Series, names: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Sums over ranks of the first name that counts; of a histogram the mean."""
    sums = defaultdict(float, {name: sum(own.values()) for name, own in series.items()})
    for whole in [it.removesuffix("_sum") for it in sums if it.endswith("_sum")]:
        sums[whole] = sums[f"{whole}_sum"] / (sums[f"{whole}_count"] or math.inf)
    return {what: next(filter(None, map(sums.get, own)), 0.0) for what, own in names.items()}


def _sent(total: Mapping[str, float], running: Sequence[float]) -> dict[str, str]:
    """Lengths, share of hits and sequences of a rank, by what metrics say."""
    written = 1.0 + total["accepted"] / (total["drafts"] or 1.0)  # tokens of a sequence in a pass
    batch = total["tokens"] / (total["steps"] or math.inf) / written or sum(running) / len(running)
    said = {it: total[it] / total["requests"] for it in ("read", "written")}
    hits = total["cached"] / (total["queried"] or 1.0)
    whole = {name: f"{max(1.0, it):.0f}" for name, it in (said | {"running": batch}).items()}
    return whole | {"cached": f"{round(min(hits, MOST_HITS), 3):g}"}


def _moments(series: Series, names: Sequence[str]) -> list[float]:
    """A gauge by ranks of attention; those of other ranks repeat it."""
    by_rank: dict[str, float] = defaultdict(float)
    for labels, value in series[names[0]].items():
        rank = "".join(it for label, it in labels if label in TABLE["moments"]["ranks"])
        by_rank[rank] = max(by_rank[rank], value)
    return list(by_rank.values()) or [0.0]


def _percentiles(series: Series, names: Sequence[str]) -> str:
    """`p50 31 ms (25 ms to 50 ms)`, the bucket that it lies in."""
    counts: dict[float, float] = defaultdict(float)
    counted = (series[f"{it}_bucket"] for it in names if series[f"{it}_count"])
    for labels, value in next(counted, {}).items():
        if is_number(bound := dict(labels).get("le", "")) and float(bound) > 0:
            counts[float(bound)] += value
    words = []
    for share in PERCENTILES if counts else ():
        value, low, high = quantile(sorted(counts.items()), share)
        least = show(low, "s") if low else "0"
        within = f"{show(value, 's')} ({least} to {show(high, 's')})"
        words.append(f"p{100 * share:.0f} {within if high < math.inf else f'over {least}'}")
    return ", ".join(words) or "no percentiles"
