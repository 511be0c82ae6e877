"""How far off times like those of an answer were, what they mean, and what prices are of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from planner.report.documents.blocks import Pairs, Section, section
from planner.report.documents.screens import FIRST_SCREEN
from planner.report.times import Times, inner_answers, is_kind, times_of
from planner.report.words import calibrated_words, percent, plural, what_if_texts
from planner.specs.records import runtimes
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.kernels import EngineSpec, inner_records
from planner.specs.records.roles import SCHEDULES_APART, TOGETHER
from planner.specs.region import CONFIDENCE

_KINDS = {"dense": "dense models", "mixture": "mixtures of experts"}


def accuracy_sections(answer: object) -> tuple[Section, Section]:
    """How sure an answer is; how far off such times were, what TPOT means, what prices are of."""
    times, requests = times_of(answer), _requests_of(answer)
    rows = dict.fromkeys(chain.from_iterable(map(_times_rows, times)))
    outside = dict.fromkeys(chain.from_iterable(each.outside for each in times))
    engines = (engine for it in requests for _, engine in inner_records(it, EngineSpec))
    first = [("what if", it) for it in what_if_texts(requests)]
    first.append(("how sure", _sure_words(times, requests)))
    said: list[tuple[str, Iterable[str]]] = [
        *((label, [text]) for label, text in rows),
        ("", map(attrgetter("why"), times)),
        ("outside", ["; ".join("{0} ({2})".format(*it.partition(": ")) for it in outside)]),
        ("constants", (calibrated_words(it.calibration) for it in engines if it.calibration)),
        ("schedule", dict.fromkeys(_schedules(answer))),
        ("prices", _price_texts(answer)),
    ]
    told = Pairs([(label, it) for label, texts in said for it in texts])
    return section(FIRST_SCREEN, Pairs(first)), section("accuracy", told)


def _sure_words(times: Sequence[Times], requests: Iterable[object]) -> str:
    """Whether times are inside of what was measured, and how far off they were there."""
    unknown = dict.fromkeys(_title(it) for it in times if not it.judged)
    if unknown:
        return f"never compared with measurements: {'; '.join(unknown)}"
    outside = dict.fromkeys(text.partition(": ")[0] for it in times for text in it.outside)
    if outside:
        return f"outside of what was measured: {'; '.join(outside)}{_planned(times, requests)}"
    judged = sorted((error for it in times for error in it.judged), key=attrgetter("n_rows"))
    errors = map(_error_words, {(it.device, it.quantity): it for it in judged}.values())
    return f"inside of what was measured: {', '.join(errors)}" if times else ""


def _planned(times: Iterable[Times], requests: Iterable[object]) -> str:
    """In how many cases what an engine is planned for holds."""
    shares = {getattr(it, "confidence", 0.0) for it in requests}
    share = max((CONFIDENCE if it is None else it for it in shares), default=0.0)
    is_planned = share and not {it.runtime for it in times} <= {*runtimes.LAYOUT_RUNTIMES}
    return f"; planned so that {percent(share)} of cases hold" if is_planned else ""


def _error_words(errors: runtimes.MeasuredErrors) -> str:
    rows = f"{plural(errors.n_rows, 'measurement')} on {errors.device}"
    return f"mean error {percent(errors.mean_error_fraction)} of {errors.quantity} in {rows}"


def _title(times: Times) -> str:
    return times.whose + (f", {_KINDS[times.kind]} on {times.device}" if times.device else "")


def _schedules(answer: object) -> Iterator[str]:
    """How phases share the devices; a replica of one phase shares them with none."""
    inner = [*inner_answers(answer)]
    yield from chain.from_iterable(map(_schedules, inner))
    runs = getattr(answer, "recipes", (answer,) * (not inner))
    for role in dict.fromkeys(getattr(one, "role", TOGETHER) for one in runs):
        together = (runtimes.runtime_of(it.runtime).schedule_words for it in times_of(answer))
        yield from (SCHEDULES_APART[role],) if role != TOGETHER else together


def _times_rows(times: Times) -> Iterator[tuple[str, str]]:
    """Whose times they are; `TPOT of dense models 5.3 % off in 2 measurements (…), bias −4 %`."""
    whose = f"{times.whose} for {times.device}" if times.device else times.whose
    there = f"{_KINDS[times.kind]} there" if times.device else "measurements"
    yield "times", whose if times.judged else f"{whose}: not judged on {there}"
    for errors in times.judged:
        bias = percent(errors.bias_fraction).replace("-", "−")
        sign = "+" if errors.bias_fraction > 0 else ""
        text = (
            f"{errors.quantity} of {_KINDS[times.kind]} {percent(errors.mean_error_fraction)} off "
            f"in {plural(errors.n_rows, 'measurement')} ({errors.rows}), bias {sign}{bias}"
        )
        yield "", text


def _price_texts(answer: object) -> list[str]:
    """A text where an answer is chosen by prices of several dates, or of several sources."""
    prices = dict.fromkeys(_prices(answer))
    if len({(date, source) for _, date, source in prices}) < 2:
        return []
    dated = (f"{name} {date} ({source})" for name, date, source in prices)
    return [f"not of one date and kind: {', '.join(dated)}; `--price` says others"]


def _prices(answer: object) -> Iterator[tuple[str, str, str]]:
    """Device, date and who says it, of each rent of a file that an answer is chosen by."""
    for each in inner_answers(answer):
        yield from _prices(each)
    for cluster in _clusters(getattr(answer, "request", None)):
        if cluster.usd_per_hour == cluster.device.usd_per_hour:
            said = (one for one in cluster.device.provenance if one.key == "price.on_demand")
            source = re.split("[,;]", next((one.source for one in said), "its file"))[0]
            yield cluster.device.name, cluster.device.price_date or "undated", source


def _clusters(request: object) -> list[ClusterSpec]:
    """Clusters that a request is of; none of a graph."""
    records = getattr(request, "records", request)
    site: Any = getattr(request, "site", getattr(records, "cluster", None))
    groups = [one.cluster for one in site.groups] if is_kind(site, "PoolSpec") else [site]
    return [one for one in groups if isinstance(one, ClusterSpec)]


def _requests_of(answer: object) -> list[object]:
    """What was asked, of an answer and of those in it."""
    within = (request for inner in inner_answers(answer) for request in _requests_of(inner))
    return [*within, getattr(answer, "request", None)]
