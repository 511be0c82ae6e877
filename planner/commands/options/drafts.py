"""A draft model that options name, loaded."""

from __future__ import annotations

from planner.commands.options.arguments import Arguments
from planner.commands.options.reading import Drafting
from planner.specs.reading import load_model
from planner.specs.request import Speculation


def drafted(drafting: Drafting | None, found: Arguments) -> Speculation | None:
    """Speculative decoding as asked; nothing without a draft, or with one that has faults."""
    if drafting is None:
        return None
    draft = found.collect(lambda: load_model(drafting.draft, asked_by="--draft"))
    if draft is None:
        return None
    return Speculation(
        draft=draft,
        acceptance=drafting.acceptance,
        lookaheads=drafting.lookaheads,
        convention=drafting.convention,
    )
