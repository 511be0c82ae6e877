"""Every option of `plan experts`, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group

from planner.commands.options.groups import flag, text

_LOADS = Group("What is to be placed", sort_key=0)
_RANKS = Group("Where", sort_key=1)
_SEARCH = Group("Search", sort_key=2)
_OUTPUT = Group("Output", sort_key=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenExperts:
    """Options of `plan experts`."""

    loads: Annotated[
        str | None, text(_LOADS, "FILE", "Load of each expert: CSV, JSON or TOML.")
    ] = None
    layer: Annotated[
        str | None, text(_LOADS, "N", "Row of `--loads` to place, from 0; if it has several.")
    ] = None
    zipf: Annotated[
        str | None, text(_LOADS, "S", "Or loads k^-S of the k-th busiest expert, like 1.0.")
    ] = None
    model: Annotated[
        str | None,
        text(_LOADS, "NAME|FILE", "Model: how many experts, groups and bytes; see `plan models`."),
    ] = None
    weights: Annotated[
        str | None, text(_LOADS, "FORMAT", "Format of the experts; default: the model's first.")
    ] = None
    experts: Annotated[str | None, text(_LOADS, "N", "Experts, where no model says.")] = None
    coactivation: Annotated[
        str | None,
        text(_LOADS, "FILE", "Tokens that went to both of two experts: a square table."),
    ] = None

    ranks: Annotated[str | None, text(_RANKS, "N", "Expert-parallel ranks.")] = None
    slots: Annotated[
        str | None,
        text(_RANKS, "N", "Experts that a rank holds; default: one more than it must."),
    ] = None
    memory: Annotated[
        str | None,
        text(_RANKS, "BYTES", "Memory of a rank for experts of all layers: more limits slots."),
    ] = None
    nodes: Annotated[str, text(_RANKS, "N", "Nodes of equally many ranks.")] = "1"
    groups: Annotated[
        str | None,
        text(_RANKS, "N|model", "Groups of neighbouring experts that stay on a node; or none."),
    ] = None
    present: Annotated[
        str | None, text(_RANKS, "FILE", "Experts that each rank holds now: CSV or JSON.")
    ] = None

    split: Annotated[
        str,
        text(_SEARCH, "HOW", "equal: copies share a load equally. weighted: as is best."),
    ] = "equal"
    move_price: Annotated[
        str,
        text(_SEARCH, "FRACTION", "Share of the mean load that a moved copy has to save."),
    ] = "0"
    slack: Annotated[
        str, text(_SEARCH, "FRACTION", "Load that may be given up for less traffic, like 1%.")
    ] = "0"
    gap: Annotated[str, text(_SEARCH, "FRACTION", "Distance to the bound that is good enough.")] = (
        "0.1%"
    )
    time_limit: Annotated[str, text(_SEARCH, "TIME", "Stop after this, with the best so far.")] = (
        "60s"
    )
    seed: Annotated[str, text(_SEARCH, "N", "Seed of drawn loads and of the search.")] = "0"
    proof: Annotated[
        str, text(_SEARCH, "HOW", "two: nothing is called optimal on one solver's word; or one.")
    ] = "two"
    keep_program: Annotated[
        str | None,
        text(_SEARCH, "FILE", "Leave the program as MPS: that on which provers disagree, if any."),
    ] = None

    all: Annotated[bool, flag(_OUTPUT, "Print every rank.")] = False
    html: Annotated[
        str | None, text(_OUTPUT, "FILE", "Draw ranks and experts: one page, nothing else.")
    ] = None
    json: Annotated[bool, flag(_OUTPUT, "Print the placement as JSON.")] = False
    quiet: Annotated[bool, flag(_OUTPUT, "Print it in one line.")] = False
