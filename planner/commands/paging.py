"""What a page says beside the document of an answer: passes of what runs, and its load test."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from math import isclose
from operator import attrgetter
from typing import Any

from planner.commands.options.parsing import parse
from planner.errors import RequestError
from planner.report.answers.prediction import document
from planner.report.documents.as_html import Origin, page_of
from planner.report.documents.blocks import Block, Command, Document, Note, Section, notes, section
from planner.report.files import Answer
from planner.report.launch.servers import Entrance, entrances_of
from planner.report.launch.writing import rendered
from planner.results.engines import EngineDeployment
from planner.results.fleets import FleetPlan, FleetPool
from planner.results.predictions import Prediction
from planner.verifier.fleets.trials import tried_again

_MEMORY = "memory of a device"
_SHOWN = ("first token", "decode pass", "prefill pass", "mixed pass", _MEMORY)
"""Sections of a deployment by itself that a page of an answer with it has too."""


def with_page(made: Answer, name: str, origin: Origin) -> Answer:
    """An answer with the page of its document, where it has one, in a file."""
    if made.document is None:
        return made
    page = page_of(paged(made.document(), made.record), origin)
    return replace(made, files=(*made.files, (name, page)))


def paged(whole: Document, answer: object) -> Document:
    """A document with what only a page of it has room for."""
    is_told = any(it.title.startswith("decode pass") for it in whole.sections)
    passes = () if is_told else _passes(answer)  # as where figures are explained
    added = (*passes, section("load test", *_load_tests(answer)))
    less = any(it.title == _MEMORY for it in added) and "memory of the fullest device"
    kept = (it for it in whole.sections if it.title != less)
    return replace(whole, sections=(*kept, *added))


def evaluated(command: str) -> Prediction | None:
    """What a command of `plan predict` answers; None where its files are not at hand."""
    from planner.commands.predict import given_of
    from planner.runtimes.predicting import predict

    try:
        given = given_of(parse(shlex.split(command)[1:]))
    except RequestError:
        return None
    whole = (given.model, given.machines, given.table, given.traffic)
    return predict(*whole, speculating=given.speculating)


def tested_entrances(answer: Any) -> tuple[Entrance, ...]:  # noqa: ANN401 any kind of answer
    """Addresses of an answer; what load tests find there is simulated as predicted, not planned."""
    from planner.runtimes.loads import load_of_plan
    from planner.runtimes.simulation import simulate

    best = getattr(answer, "deployment", None)
    if isinstance(best, EngineDeployment) and getattr(answer, "load", None):
        tpot_s, ttft_s = best.tpot_s.value, best.ttft_s.value
        best = replace(best, planned_tpot_s=tpot_s, planned_ttft_s=ttft_s)
        answer = replace(answer, load=load_of_plan(answer.request, best))
    elif isinstance(answer, FleetPlan) and len(answer.classes) == 1:
        pools = tuple(_predicted(it, answer.recipes[it.recipe].deployment) for it in answer.pools)
        if pools != answer.pools:
            answer = tried_again(replace(answer, pools=pools), simulate)
    return entrances_of(answer)


def _predicted(pool: FleetPool, best: object) -> FleetPool:
    """A pool whose passes take as long as predicted."""
    if not isinstance(best, EngineDeployment):
        return pool
    decode = (best.tpot_s.value or 1.0) / (best.planned_tpot_s or 1.0)
    reading = (best.ttft_s.value or 1.0) / (best.planned_ttft_s or 1.0)
    return replace(pool, station=pool.station.slowed(decode=decode, reading=reading))


def _passes(answer: Any) -> Iterator[Section]:  # noqa: ANN401 any kind of answer
    """Where seconds and bytes of each deployment go, that an engine runs."""
    recipes, pools = getattr(answer, "recipes", ()), getattr(answer, "pools", ())
    named = {f" of pool {it.name}": recipes[it.recipe] for it in pools}
    named = named or {f" of recipe {n}": it for n, it in enumerate(recipes)} or {"": answer}
    for of, whose in named.items():
        best = getattr(whose, "deployment", None)
        if not isinstance(best, EngineDeployment):
            continue
        alone = evaluated(best.command)
        if alone and isclose(alone.tpot_s.value, best.tpot_s.value, rel_tol=1e-6):
            yield from _parts(alone, of)


def _parts(alone: Prediction, of: str) -> Iterator[Section]:
    """Parts of a deployment; of one of several where they are opened."""
    shown = [it for it in document(alone).sections if it.title.startswith(_SHOWN)]
    if not of:
        yield from shown
        return
    blocks = tuple(block for it in shown for block in (Note(it.title), *it.blocks))
    yield Section(title=f"where the time{of} goes", blocks=blocks, is_folded=True)


def _load_tests(answer: object) -> Iterator[Block]:
    """Of each address what measures it, and the figures that are to be expected."""
    for entrance in filter(attrgetter("bands"), tested_entrances(answer)):
        about = {"entrance": entrance, "url": "${URL:-http://localhost:8000}"}
        yield from notes(rendered("bench.txt", **about).splitlines())
        yield Command(rendered("bench.sh", **about).strip())
