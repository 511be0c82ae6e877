"""How an engine is started, for people: what to fill in, then the command in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planner.report.documents.blocks import Block, Command, Note, Section
from planner.report.words import plural
from planner.results.engines import EngineDeployment

if TYPE_CHECKING:
    from planner.results.placements import Recipe
    from planner.results.predictions import Launch


def start_section(*started: tuple[Launch | None, str]) -> Section:
    """How deployments are started, each with which of an answer's it is, where it has several."""
    blocks = [block for launch, of in started for block in (Note(), *_start(launch, of))]
    return Section(title="start", blocks=tuple(blocks[1:]), is_bare=True)


def _start(launch: Launch | None, of: str) -> Iterator[Block]:
    """What it takes, and the command, which no line break may come into."""
    if launch is None:
        yield Note(f"{of} started as your engine is: it is of a file of yours".lstrip())
        return
    said = [f"{of} started with flags of {launch.version}".lstrip()]
    if launch.n_servers > 1:
        said.append(f"{plural(launch.n_servers, 'such server')} behind a balancer of load")
    if launch.n_nodes > 1:
        said.append(f"on each of {launch.n_nodes} nodes")
    filled = [f"{name}: {words}" for name, words in launch.variables.items()]
    yield Note("; ".join((", ".join(said), *filled, *launch.remarks)) + ":")
    yield Command(launch.command)


def recipes_section(recipes: Sequence[Recipe], names: Sequence[str] = ()) -> Section:
    """What starts a replica of each recipe; nothing of layouts, or of what has no name.

    Args:
        names: what its replicas are called; by the number of the recipe where left out.
    """
    called = names or [f"recipe {number}" for number in range(len(recipes))]
    return start_section(
        *(
            (one.deployment.launch, f"each replica of {name}")
            for name, one in zip(called, recipes, strict=True)
            if name and isinstance(one.deployment, EngineDeployment)
        )
    )
