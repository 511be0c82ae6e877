"""Clusters from what their own tools say of them: topology files, and the state of their nodes.

Here are the formats of such texts: how each is known, and who reads it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from planner.errors import Problem, SpecError
from planner.specs.files.ledger import Use
from planner.specs.files.texts import UnreadError, json_of, read_text
from planner_workshop.importing import links, lists
from planner_workshop.importing.records import ClusterText, names, words

READERS: dict[str, Callable[..., None]] = {
    "nvidia-smi": links.read_matrix,
    "ibnetdiscover": links.read_discovered,
    "slurm": lists.read_slurm,
    "topograph": lists.read_topograph,
    "nodes": lists.read_nodes,
    "resourceslices": lists.read_slices,
    "netq": lists.read_graph,
}
"""By the name that `--format` has; `names.toml` says how each is known."""


def read_cluster(path: str, name: str | None) -> tuple[str, ClusterText]:
    """What a file says, and what prints such a file.

    Args:
        name: the format; by what the text looks like where it is None.

    Raises:
        SpecError: the file cannot be read, has no format that is known, or says what cannot be;
            all is listed.
    """
    try:
        cluster = ClusterText(shown=path, text=read_text(Path(path), use=Use(kind="cluster")))
        is_json = cluster.text.lstrip()[:1] in ("{", "[")
        value = json_of(cluster.text) if is_json else None
    except UnreadError as error:
        raise SpecError([error.problem(path)]) from None
    fits = [one for one, it in names()["formats"].items() if _fits(it, cluster.text, value)]
    name = name or next(iter(fits), None)
    if name is None or name not in fits:
        raise SpecError([_misfit(cluster, name, fits)])
    READERS[name](cluster, *([value] if is_json else []))
    if not cluster.servers and not cluster.problems:
        cluster.refuse(0, "names no server with devices")
    SpecError.raise_if_any(cluster.problems)
    return str(names()["formats"][name]["title"]), cluster


def _fits(known: Mapping[str, str], text: str, value: object) -> bool:
    """Whether a text, or the value that its JSON is, looks like a format."""
    if value is None:
        return "looks_like" in known and re.search(known["looks_like"], text) is not None
    if known.get("kind"):
        return any(it.get("kind") == known["kind"] for it in lists.items_of(value))
    return "kind" in known and lists.is_graph(value)


def _misfit(cluster: ClusterText, name: str | None, fits: Sequence[str]) -> Problem:
    titles = {it: known["title"] for it, known in names()["formats"].items()}
    fact = f"is not {titles[name]}" if name else "has no format that is known"
    listed = ", ".join(titles.values())
    remedy = words("format", fits[0]) if fits else f"there is what these print: {listed}"
    return Problem(where=cluster.shown, fact=fact, remedy=remedy)
