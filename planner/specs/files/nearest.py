"""Names that a wrong name probably means: those with its words, else the one spelled like it."""

import math
import re
from collections.abc import Iterable, Mapping
from itertools import islice

from planner.quantities.table import QUANTITIES
from planner.specs.files.patterns import Pattern, patterns
from planner.specs.files.places import Kind, files
from planner.specs.files.tables import Table, read_table, value_at

_MOST_MEANT = 3
_CUBE = 64  # chips of a torus where no number is given: a cube of TPU v4
_COUNTED = re.compile(r"(?:(\d+) ?x?[- ]?(?=[a-z]))?(.+?)(?:-x(\d+)|[-x:* ](\d+))?")
_MAKERS = re.compile(r"^(nvidia|google|amd|gpu)[-_ ]?")
_BETWEEN = re.compile(r"[^a-z0-9]+")


def did_you_mean(kind: Kind, name: str, *, asked_by: str) -> str:
    """The question whether one of up to three names was meant; empty where nothing is like it.

    A pool that has more devices than `2xh100` means is followed by the option that limits them.
    """
    known, counted = _names(kind), _COUNTED.fullmatch(_MAKERS.sub("", name.lower()))
    if name.lower() in known:
        return _question([name.lower()])
    if kind is Kind.CLUSTER and counted and (sizes := _pools_of(counted)):
        pool, *_ = names = list(sizes)
        n_meant = int(counted[1] or counted[4] or 0)
        if n_meant or counted[3]:
            names = [pool]
        if asked_by != f"--{kind.word}" or not 0 < n_meant < sizes[pool]:
            return _question(names)
        limit = f"`{QUANTITIES['devices'].option} {n_meant}` uses no more than {n_meant}"
        return f"{_question(names)} {limit} of its {sizes[pool]} devices."
    alike = _with_words_of(name, {other: other for other in known if kind is not Kind.CLUSTER})
    others = _names(Kind.FABRIC) if kind is Kind.CLUSTER else []
    return _question(_closest(name, alike) or _closest(name, [*known, *others], cutoff=0.65)[:1])


def _question(names: list[str]) -> str:
    *some, last = [f"`{name}`" for name in names[:_MOST_MEANT]] or [""]
    meant = f"{', '.join(some)} or {last}" if some else last
    return f"did you mean {meant}?" if last else ""


def _closest(name: str, among: Iterable[str], *, cutoff: float = 0.0) -> list[str]:
    from difflib import get_close_matches  # only a mistake needs it

    return get_close_matches(name.lower(), list(among), n=_MOST_MEANT, cutoff=cutoff)


def _with_words_of(name: str, texts: Mapping[str, str]) -> list[str]:
    """Keys of the texts that have most of a name's words, by letters: two in five at least."""
    words = list(filter(None, _BETWEEN.split(name.lower())))
    shared = {key: _n_shared(words, text) for key, text in texts.items()}
    most = max(shared.values(), default=(0, 0))
    is_like = most[0] > 0.4 * sum(map(len, words))
    return [key for key, n in shared.items() if is_like and n == most]


def _n_shared(words: list[str], text: str) -> tuple[int, int]:
    """Letters of the words that a text has: `llama3` of `llama-3-70b` too; and of whole ones."""
    whole, squashed = set(_BETWEEN.split(text)), _BETWEEN.sub("", text)
    shared = [word for word in words if word in whole or (word in squashed and len(word) > 1)]
    return sum(map(len, shared)), sum(len(word) for word in shared if word in whole)


def _pools_of(counted: re.Match[str]) -> dict[str, int]:
    """Pools of what `h100`, `2xh100` or `v6e-8` mean, by name, and the devices of each.

    Each is the smallest that has so many; those with NVLink, which most have, come first.
    """
    tables = {
        pattern.name: (read_table(path, path.name)[0], pattern)
        for path, pattern in patterns(Kind.CLUSTER)
    }
    texts = {
        name: f"{name.partition('{')[0].removesuffix('-x')} {value_at(table, 'cluster', 'device')}"
        for name, (table, _) in tables.items()
    }
    alike = _with_words_of(counted[2], texts)
    alike.sort(key=lambda name: ("-nvl" not in name, len(name)))
    return dict(_smallest(*tables[name], counted) for name in alike)


def _smallest(table: Table, pattern: Pattern, counted: re.Match[str]) -> tuple[str, int]:
    """The smallest pool of a file that has so many devices or nodes, or else its largest."""
    nodes = table.get("nodes", {}).get("n_devices_per_node", 1)
    each = nodes["value"] if isinstance(nodes, dict) else nodes
    least = each * int(counted[3] or 1) if nodes != 1 else _CUBE
    n_devices = int(counted[1] or counted[4] or least)
    sizes = {
        tuple(values.values()): each * math.prod(values.values())
        for values in islice(pattern.instances(), 10_000)
    }
    enough = [values for values, n in sizes.items() if n >= n_devices] or [max(sizes)]
    best = min(enough, key=lambda values: (sizes[values], max(values)))
    return pattern.fill(dict(zip(pattern.allowed, best, strict=True))), sizes[best]


def _names(kind: Kind) -> list[str]:
    """Names that files of a kind have; of patterns, a thousand each at most."""
    names = [path.stem for path in files(kind)]
    for path, pattern in patterns(kind):
        names.remove(path.stem)
        names += pattern.some_names(1_000)
    return names
