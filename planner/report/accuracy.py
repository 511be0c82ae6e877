"""How far off times like those of an answer were, what they mean, and what prices are of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from planner.report.documents.blocks import Pairs, Section, section
from planner.report.times import Times, inner_answers, is_kind, times_of
from planner.report.words import calibrated_words, percent, plural, what_if_texts
from planner.specs.records import runtimes
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.kernels import EngineSpec, inner_records
from planner.specs.records.roles import SCHEDULES_APART, TOGETHER
from planner.specs.region import CONFIDENCE

_KINDS = {"dense": "dense models", "mixture": "mixtures of experts"}


def accuracy_section(answer: object) -> Section:
    """How far off such times were, what TPOT means, and what prices are of."""
    times, requests = times_of(answer), _requests_of(answer)
    rows = [("what if", text) for text in what_if_texts(requests)]
    rows.append(("how sure", _sure_words(times, requests)))
    rows += [*dict.fromkeys(row for one in times if one.judged for row in _judged_rows(one))]
    rows += [("times", text) for text in _unjudged_texts(one for one in times if not one.judged)]
    rows += [("", text) for text in dict.fromkeys(one.why for one in times)]
    outside = dict.fromkeys(words.partition(": ") for one in times for words in one.outside)
    rows.append(("outside", "; ".join(f"{what} ({why})" for what, _, why in outside)))
    engines = (engine for request in requests for _, engine in inner_records(request, EngineSpec))
    calibrations = dict.fromkeys(one.calibration for one in engines)
    rows += [("constants", calibrated_words(one)) for one in calibrations if one is not None]
    rows += [("schedule", text) for text in _schedules(answer, times)]
    rows += [("prices", text) for text in _price_texts(answer)]
    return section("accuracy", Pairs(rows))


def _sure_words(times: Sequence[Times], requests: Iterable[object]) -> str:
    """Whether times are inside of what was measured, and how far off they were there."""
    unknown = dict.fromkeys(_title(one) for one in times if not one.judged)
    if unknown:
        return f"never compared with measurements: {'; '.join(unknown)}"
    outside = dict.fromkeys(text.partition(": ")[0] for one in times for text in one.outside)
    if outside:
        shares = {getattr(one, "confidence", 0.0) for one in requests}
        share = max((CONFIDENCE if one is None else one for one in shares), default=0.0)
        is_planned = share and not all(one.runtime in runtimes.LAYOUT_RUNTIMES for one in times)
        planned = f"; planned so that {percent(share)} of cases hold" if is_planned else ""
        return f"outside of what was measured: {'; '.join(outside)}{planned}"
    judged = sorted((error for one in times for error in one.judged), key=attrgetter("n_rows"))
    errors = (
        f"{one.quantity} {percent(one.mean_error_fraction)} off on {one.device} in "
        f"{plural(one.n_rows, 'measurement')}"
        for one in {(it.device, it.quantity): it for it in judged}.values()
    )
    return f"inside of what was measured: {', '.join(errors)}" if times else ""


def _title(times: Times) -> str:
    return times.whose + (f", {_KINDS[times.kind]} on {times.device}" if times.device else "")


def _schedules(answer: object, times: Iterable[Times]) -> Iterable[str]:
    """How phases share the devices, each once; a worker of one phase shares them with none."""
    role = getattr(answer, "role", TOGETHER) if is_kind(answer, "Prediction") else TOGETHER
    if role != TOGETHER:
        return (SCHEDULES_APART[role],)
    return dict.fromkeys(runtimes.runtime_of(one.runtime).schedule_words for one in times)


def _judged_rows(times: Times) -> Iterator[tuple[str, str]]:
    """Whose times they are; `TPOT of dense models 5.3 % off in 2 measurements (…), bias −4 %`."""
    yield "times", f"{times.whose} for {times.device}"
    for errors in times.judged:
        bias = percent(errors.bias_fraction).replace("-", "−")
        sign = "+" if errors.bias_fraction > 0 else ""
        text = (
            f"{errors.quantity} of {_KINDS[times.kind]} {percent(errors.mean_error_fraction)} off "
            f"in {plural(errors.n_rows, 'measurement')} ({errors.rows}), bias {sign}{bias}"
        )
        yield "", text


def _unjudged_texts(times: Iterable[Times]) -> list[str]:
    """One for all devices of the same times and kind of model."""
    devices: dict[tuple[str, runtimes.ModelKind], list[str]] = {}
    for one in times:
        devices.setdefault((one.whose, one.kind), []).append(one.device)
    return [_unjudged_text(whose, kind, names) for (whose, kind), names in devices.items()]


def _unjudged_text(whose: str, kind: runtimes.ModelKind, devices: list[str]) -> str:
    if not any(devices):
        return f"{whose}: not judged on measurements"
    return f"{whose} for {', '.join(devices)}: not judged on {_KINDS[kind]} there"


def _price_texts(answer: object) -> list[str]:
    """A text where an answer is chosen by prices of several dates, or of several sources."""
    prices = dict.fromkeys(_prices(answer))
    if len({(date, source) for _, date, source in prices}) < 2:
        return []
    dated = (f"{name} {date} ({source})" for name, date, source in prices)
    return [f"not of one date and kind: {', '.join(dated)}; `--price` says others"]


def _prices(answer: object) -> Iterator[tuple[str, str, str]]:
    """Device, date and who says it, of each rent of a file that an answer is chosen by."""
    for one in inner_answers(answer):
        yield from _prices(one)
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
