"""Names and titles of what can be planned with, and those that a wrong name probably means.

Files are read, but not validated.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from planner.quantities.table import QUANTITIES
from planner.specs.files.patterns import Pattern, is_pattern, name_of, patterns, read_pattern
from planner.specs.files.places import Kind, files, shown_path
from planner.specs.files.tables import Table, is_count, read_table, value_at
from planner.specs.files.texts import visible

_MOST_MEANT = 3
_CUBE = 64  # chips of a torus where no number is given: a cube of TPU v4
_COUNTED = re.compile(r"(?:(\d+) ?x?[- ]?(?=[a-z]))?(.+?)(?:-x(\d+)|[-x:* ](\d+))?")
_IN_CORES = re.compile(r"(tpu-?)?v(3|4|5p)")  # whose slices are named by cores, two a chip
_MAKERS = re.compile(r"^(nvidia|google|amd|gpu)[-_ ]?")
_BETWEEN = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One file in a list.

    Args:
        name: what to write to have it; of a pattern, the name with its placeholders.
        title: what it is called in reports; of a pattern, empty.
        description: one line about it, or why its file cannot be read.
        examples: of a pattern, names that fit it.
        file: the file that says so.
    """

    name: str
    title: str
    description: str
    examples: tuple[str, ...]
    file: str


def variants_of(name: str) -> tuple[str, ...]:
    """Names of the models that can be named and say that they are variants of this one."""
    tables = ((path.stem, read_table(path, path.name)[0]) for path in files(Kind.MODEL))
    return tuple(stem for stem, table in tables if value_at(table, "variant", "of") == name)


def list_files(kind: Kind) -> tuple[Listing, ...]:
    """What can be named of a kind, that of the working folder first."""
    section = "cluster" if kind in (Kind.CLUSTER, Kind.FABRIC) else kind.word
    listings = []
    for path in files(kind):
        shown = shown_path(path)
        table, problems = read_table(path, shown)
        if not problems and is_pattern(table):
            _, problems = read_pattern(table, shown)
        if problems:
            table = {section: {"description": f"cannot be read: {problems[0].fact}"}}
        listings.append(_listing(table, section, stem=path.stem, shown=shown))
    return tuple(listings)


def _listing(table: Table, section: str, *, stem: str, shown: str) -> Listing:
    many, listed = is_pattern(table), value_at(table, section, "examples")
    examples = listed if isinstance(listed, list) else []
    return Listing(
        name=visible(name_of(table, section) if many else stem),
        title="" if many else visible(str(value_at(table, section, "title", default=""))),
        description=visible(str(value_at(table, section, "description", default=""))),
        examples=tuple(text for text in examples if isinstance(text, str)),
        file=shown,
    )


def did_you_mean(kind: Kind, name: str, *, by_option: bool) -> str:
    """The question whether one of up to three names was meant; empty where nothing is like it.

    Args:
        by_option: a pool that has more devices than `2xh100` means comes with their limit.
    """
    known, pools = _names(kind), kind is Kind.CLUSTER
    if name.lower() in known:
        return _question([name.lower()])
    if pools and (question := _pools_meant(name.lower(), by_option=by_option)):
        return question
    from difflib import get_close_matches  # only a mistake needs it

    near = [] if pools else _with_words_of(name, dict(zip(known, known, strict=True)))
    if near:
        return _question(get_close_matches(name.lower(), near, n=_MOST_MEANT, cutoff=0.0))
    known += _names(Kind.FABRIC) if pools else []
    return _question(get_close_matches(name.lower(), known, n=1, cutoff=0.65))


def _question(names: list[str]) -> str:
    *first, last = [f"`{name}`" for name in names[:_MOST_MEANT]] or [""]
    return f"did you mean {', '.join(first)}{' or ' * bool(first)}{last}?" if last else ""


def _with_words_of(name: str, texts: Mapping[str, str]) -> list[str]:
    """Keys of the texts that have most of a name's words, by letters: two in five at least."""
    words = list(filter(None, _BETWEEN.split(name.lower())))
    shared = {key: _n_shared(words, text) for key, text in texts.items()}
    most = max(shared.values(), default=(0, 0, False))
    is_like = most[0] > 0.4 * sum(map(len, words))
    return [key for key, n in shared.items() if is_like and n == most]


def _n_shared(words: list[str], text: str) -> tuple[int, int, bool]:
    """Letters of the words that a text has: `llama3` of `llama-3-70b` too; of whole ones.

    And whether it has the first, which says more than those behind.
    """
    whole, squashed = set(_BETWEEN.split(text)), _BETWEEN.sub("", text)
    shared = [word for word in words if word in whole or (word in squashed and len(word) > 1)]
    n_whole = sum(len(word) for word in shared if word in whole)
    return sum(map(len, shared)), n_whole, shared[:1] == words[:1]


def _pools_meant(name: str, *, by_option: bool) -> str:
    """Of what `h100`, `2xh100` or `v6e-8` mean, the smallest pools that have so many devices.

    Those with NVLink, which most have, come first; of a number of devices the first alone.
    """
    counted = _COUNTED.fullmatch(_MAKERS.sub("", name.replace("_", "-")))
    if not counted:
        return ""
    n_meant, n_nodes = int(counted[1] or counted[4] or 0), int(counted[3] or 0)
    n_meant //= 2 if counted[4] and _IN_CORES.fullmatch(counted[2]) else 1
    sizes = _pools_of(counted[2], n_meant, n_nodes)
    question = _question([*sizes][: 1 if n_meant or n_nodes else None])
    n_devices = next(iter(sizes.values()), 0)
    limit = f"`{QUANTITIES['devices'].option} {n_meant}` uses no more than {n_meant} of its"
    is_less = by_option and 0 < n_meant < n_devices
    return f"{question} {limit} {n_devices} devices." if is_less else question


def _pools_of(device: str, n_devices: int, n_nodes: int) -> dict[str, int]:
    """Pools of the devices that a name means, and how many each has."""
    read = [(pattern, read_table(path, path.name)[0]) for path, pattern in patterns(Kind.CLUSTER)]
    tables = {pattern.name.partition("{")[0]: (pattern, table) for pattern, table in read}
    texts = {
        name: f"{name.removesuffix('-x')} {value_at(table, 'cluster', 'device')}"
        for name, (_, table) in tables.items()
    }
    near = sorted(_with_words_of(device, texts), key=lambda it: ("-nvl" not in it, len(it)))
    return dict(_smallest(*tables[name], n_devices, n_nodes) for name in near)


def _smallest(pattern: Pattern, table: Table, n_devices: int, n_nodes: int) -> tuple[str, int]:
    """The smallest pool of a file that has so many devices and nodes, or else its largest."""
    each = value_at(table, "nodes", "n_devices_per_node")
    each = each if is_count(each) else 0
    least = max(n_devices, each * n_nodes) or each or _CUBE
    sizes = {
        pattern.fill(values): (each or 1) * math.prod(values.values())
        for values in islice(pattern.instances(), 10_000)
    }
    enough = [name for name, n in sizes.items() if n >= least]
    enough = enough or [max(sizes, key=lambda it: sizes[it])]
    best = min(enough, key=lambda name: (sizes[name], sum(map(int, re.findall(r"\d+", name)))))
    return best, sizes[best]


def _names(kind: Kind) -> list[str]:
    """Names that files of a kind have; of patterns, a thousand each at most."""
    names = [path.stem for path in files(kind)]
    for path, pattern in patterns(kind):
        names.remove(path.stem)
        names += pattern.some_names(1_000)
    return names
