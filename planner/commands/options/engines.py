"""Options of plans for an engine, from text to the arguments of `plan_engine`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from planner.commands.options.arguments import Arguments
from planner.commands.options.counts import batches
from planner.commands.options.reading import Faults, below_one, one_of, read, read_confidence
from planner.commands.options.written import WrittenPlan
from planner.errors import Problem
from planner.estimates.serving.drafting import KINDS
from planner.estimates.serving.operations import KNOWN_FORMATS
from planner.specs.acceptance import PUBLISHED
from planner.specs.engine_request import (
    LOOKAHEADS,
    OVERLAPS,
    PREFERENCES,
    AskedDrafting,
)
from planner.units import parse


def read_engine(written: WrittenPlan, found: Arguments) -> dict[str, Any]:
    """The arguments of plans of engines."""
    usual = WrittenPlan()
    faults = Faults()

    # formats of kernels are more than those of the planner's own models
    rest = replace(written, **{name: getattr(usual, name) for name in _OWN})
    asked, problems = read(rest)
    keywords = {
        "workload": asked.workload,
        "targets": asked.targets,
        "weights_formats": known_formats("--weights", written.weights, faults),
        "kv_formats": known_formats("--kv", written.kv, faults),
        "batches": None if written.batch == usual.batch else asked.batches,
        "chunks": faults.read("--chunk", written.chunk, batches),
        "experts_backend": written.experts_backend or "",
        "hit_fraction": faults.read("--hit-rate", written.hit_rate, below_one("90%")) or 0.0,
        "objective": asked.objective,
        "confidence": read_confidence(written.confidence, faults),
        "prefer": faults.read("--prefer", written.prefer, one_of("preference", PREFERENCES))
        or PREFERENCES[0],
        "options": asked.options,
        "drafting": _drafting(written, faults),
        "overlaps": _known("--overlap", written.overlap, one_of("overlap", OVERLAPS), faults)
        or OVERLAPS[:1],
    }
    found.problems += [*problems, *faults.problems]
    return keywords


def known_formats(name: str, listed: Sequence[str], faults: Faults) -> tuple[str, ...] | None:
    """Formats of an engine's kernels, of which there are more than layouts know; each once."""
    return _known(name, listed, one_of("number format", KNOWN_FORMATS), faults)


def _known(
    name: str, listed: Sequence[str], one: Callable[[str], str], faults: Faults
) -> tuple[str, ...] | None:
    found = (faults.read(name, word, one) for word in dict.fromkeys(_words(listed)))
    return tuple(filter(None, found)) or None


def acceptances(text: str) -> tuple[float, ...]:
    """Read probabilities, one for each position of a draft: `0.8`, or `0.85,0.5`."""
    return tuple(parse(part, "1", example="0.85,0.5", allow_zero=True) for part in text.split(","))


def _drafting(written: WrittenPlan, faults: Faults) -> AskedDrafting | None:
    """Drafts that a deployment may use; their options mean nothing without one."""
    acceptance = faults.read("--acceptance", written.acceptance, acceptances)
    lookaheads = faults.read("--lookahead", written.lookahead, batches)
    what = "drafter of an engine (models draft with `--engine roofline`)"
    kind = faults.read("--draft", written.draft, one_of(what, KINDS))
    if written.draft is None:
        fact, remedy = "means nothing without `--draft`", "write `--draft eagle`"
        faults.problems += [
            Problem(where=where, value=value, fact=fact, remedy=remedy)
            for where, value in (
                ("--acceptance", written.acceptance),
                ("--lookahead", written.lookahead),
            )
            if value is not None
        ]
        return None
    return AskedDrafting(
        kind=kind or KINDS[0],
        acceptance=acceptance or PUBLISHED[kind or KINDS[0]].rates,
        lookaheads=lookaheads or LOOKAHEADS,
    )


_OWN = ("weights", "kv", "draft", "acceptance", "lookahead")
"""Options that mean something else to engines."""


def _words(listed: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.strip() for text in listed for word in text.split(","))
