"""How an engine is started, for people: what to fill in, then the command in one line."""

from __future__ import annotations

from planner.report.lines import wrapped
from planner.report.words import plural
from planner.results.predictions import Launch


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
