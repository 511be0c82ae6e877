"""Headings of the help, and how an option is said: shared by the tables of options."""

from __future__ import annotations

from cyclopts import Group, Parameter

TABLES = Group("What was measured", sort_key=0)
SERVE = Group("What to serve", sort_key=1)
JUDGED = Group("What to verify", sort_key=1)
TARGETS = Group("Targets", sort_key=2)
DEPLOYED = Group("How it is deployed", sort_key=2)
SEARCH = Group("Search", sort_key=3)
SOLVER = Group("Solver", sort_key=4)
OUTPUT = Group("Output", sort_key=5)


def text(group: Group, value: str, words: str) -> Parameter:
    """An option that takes a value."""
    return Parameter(group=group, metavar=value, help=words, negative=())


MAX_UTILISATION = text(
    TARGETS,
    "FRACTION",
    "Share of their capacity that replicas serve at most, like 80%; of a `--rate` 85%.",
)
CONFIDENCE = text(
    TARGETS,
    "P",
    "Plan times that hold in so many cases, like 90%; 0: as predicted; default: as "
    "predicted inside the measured region, 90% outside.",
)
EXPERT_LOADS = text(
    SERVE,
    "FILE|S",
    "Load of each expert, as `plan experts` reads it, or k^-S of the k-th; 0: all alike.",
)
EXPERTS_BACKEND = text(
    SERVE, "NAME", "Program for routed experts, as the engine names it; default: the engine's own."
)
MEMORY_FRACTION = text(
    SERVE, "FRACTION", "Share of a device's memory that an engine may take; default: its file."
)
WORKSPACE = text(
    SERVE, "SIZE", "Of that share what is the engine's own, like 2GiB; default: its file."
)
RULES = text(
    SERVE, "FILE", "Rules that an engine is lifted of, or has besides; see `plan engines NAME`."
)
PRICE = text(
    SERVE, "PRICE", "Rent of a device, like '$2.10/h'; of some kinds KIND=PRICE; default: its file."
)


def flag(group: Group, words: str) -> Parameter:
    """An option that takes none."""
    return Parameter(group=group, help=words, negative=(), show_default=False)


ROLES = text(
    SEARCH,
    "HOW",
    "together: each replica does both phases; apart: prefill or decode, and KV caches are handed "
    "over; free: the program chooses, and may mix. [together]",
)
CONNECTOR = text(
    SEARCH, "NAME|FILE", "What hands caches over: nixl, as measured, or wire: links alone. [nixl]"
)
SORTS = text(SEARCH, "N", "Most sorts of replicas: of engine, role, kind of devices and degrees.")
SORT_PRICE = text(
    SEARCH,
    "FRACTION",
    "What each sort beyond the fewest that do costs, of the best with the fewest. [1%]",
)
PREFILL_DEVICES = text(SEARCH, "N", "Devices of each replica that only reads prompts, exactly.")
DECODE_DEVICES = text(SEARCH, "N", "Devices of each replica that only writes answers, exactly.")
