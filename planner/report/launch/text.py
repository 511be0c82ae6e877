"""How an engine is started, for people: what to fill in, then the command in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planner.report.lines import wrapped
from planner.report.words import plural
from planner.results.engines import EngineDeployment
from planner.results.predictions import Launch

if TYPE_CHECKING:
    from planner.results.placements import Recipe


def launch_text(launch: Launch | None, width: int, *, of: str = "") -> str:
    """What it takes, wrapped, and the command, which no line break may come into.

    Args:
        of: which plan it starts, where an answer has several.
    """
    if launch is None:
        words = f"{of} started as your engine is: it is of a file of yours".lstrip()
        return "\n".join(wrapped(words, width))
    where = []
    if launch.n_servers > 1:
        where.append(f"{plural(launch.n_servers, 'such server')} behind a balancer of load")
    if launch.n_nodes > 1:
        where.append(f"on each of {launch.n_nodes} nodes")
    started = f"{of} started with flags of {launch.version}".lstrip()
    head = ", ".join((started, *where))
    filled = [f"{name}: {words}" for name, words in launch.variables.items()]
    lines = wrapped("; ".join((head, *filled, *launch.remarks)) + ":", width)
    return "\n".join([*lines, launch.command])


def launch_texts(
    recipes: Sequence[Recipe], width: int, *, names: Sequence[str] = ()
) -> Iterator[str]:
    """What starts a replica of each recipe; nothing of layouts, or of what has no name.

    Args:
        names: what its replicas are called; by the number of the recipe where left out.
    """
    called = names or [f"recipe {number}" for number in range(len(recipes))]
    for name, one in zip(called, recipes, strict=True):
        if name and isinstance(one.deployment, EngineDeployment):
            yield launch_text(one.deployment.launch, width, of=f"each replica of {name}")
