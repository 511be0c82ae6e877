"""Machines to place layers on, from a TOML file: how fast each type is with 1, 2, … layers.

[layers]
name = "two-boxes"
n_layers = 80
source = "our own measurement"

[[machine]]
type = "A100"
count = 4
rates = [23833, 11384, 7201]      # token/s while it holds 1, 2, 3 layers; never more

[links]
between = "61035 token/s"          # what each ordered pair of machines can carry
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from planner.errors import Problem, SpecError
from planner.specs.building import provenance, record_of
from planner.specs.faults import validate
from planner.specs.ledger import Use
from planner.specs.provenance import Provenance
from planner.specs.schemas import Section, Sourced, Strict
from planner.specs.tables import read_table
from planner.specs.validation.arguments import arguments_checked
from planner.specs.values import Count, Text, TokensPerSecond, Unit, fault

MOST_MACHINES = 2_000
UNLIMITED_TOKENS_PER_S = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """Machines of one type in one region.

    Args:
        rates_tokens_per_s: of one that holds 1, 2, … layers.
    """

    type: str
    count: int
    region: str
    rates_tokens_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersSpec:
    """Layers, machines and links.

    Args:
        enters_within: a machine may take over from inside another's layers.
        between_tokens_per_s: of each ordered pair of machines, in one region.
        across_tokens_per_s: of each ordered pair in two regions.
        coordinator_tokens_per_s: to and from the machine that requests come to, of each.
        from_coordinator_tokens_per_s, to_coordinator_tokens_per_s: the same of each machine in
            their order; empty if it is the same of all.
        matrix_tokens_per_s: of each ordered pair, in the order of the machines; empty if the
            three above say it.
        published_tokens_per_s: the best that the source found; None if it says none.
    """

    name: str
    title: str
    n_layers: int
    enters_within: bool
    machines: tuple[MachineType, ...]
    between_tokens_per_s: float = UNLIMITED_TOKENS_PER_S
    across_tokens_per_s: float = UNLIMITED_TOKENS_PER_S
    coordinator_tokens_per_s: float = UNLIMITED_TOKENS_PER_S
    matrix_tokens_per_s: tuple[tuple[float, ...], ...] = ()
    from_coordinator_tokens_per_s: tuple[float, ...] = ()
    to_coordinator_tokens_per_s: tuple[float, ...] = ()
    published_tokens_per_s: float | None = None
    provenance: tuple[Provenance, ...]

    @property
    def n_machines(self) -> int:
        return sum(one.count for one in self.machines)


def _rate(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise fault("is not a number of tokens a second")
    if not 0 <= raw <= UNLIMITED_TOKENS_PER_S:  # compared first: some integers are no floats
        raise fault("is no rate", "write tokens a second, like 2045.6; 0 for none")
    return float(raw)


_Rate = Annotated[float, BeforeValidator(_rate), Unit("token/s", "_tokens_per_s")]


class LayersHead(Section):
    plain = frozenset({"source", "name", "title", "enters_within"})

    name: Text
    title: Text = ""
    n_layers: Sourced[Count]
    enters_within: bool = False


class MachineEntry(Strict):
    type: Text
    count: Count
    region: Text = "one"
    rates: list[_Rate] = Field(min_length=1)
    source: Text
    note: Text = ""


class LinksEntry(Section):
    plain = frozenset({"source", "matrix", "from_coordinator", "to_coordinator"})

    between: Sourced[TokensPerSecond] | None = None
    across: Sourced[TokensPerSecond] | None = None
    coordinator: Sourced[TokensPerSecond] | None = None
    matrix: list[list[_Rate]] = Field(default_factory=list)
    from_coordinator: list[_Rate] = Field(default_factory=list)
    to_coordinator: list[_Rate] = Field(default_factory=list)


class PublishedEntry(Section):
    named: ClassVar[Mapping[str, str]] = {"best": "published_tokens_per_s"}

    best: Sourced[TokensPerSecond]


class LayersFile(Strict):
    layers: LayersHead
    machine: list[MachineEntry] = Field(min_length=1)
    links: LinksEntry | None = None
    published: PublishedEntry | None = None


@arguments_checked()
def load_layers(path: str | Path) -> LayersSpec:
    """Read a file of machines.

    Raises:
        SpecError: there is no such file, or it has faults; all are listed.
    """
    shown = str(path)
    table, unread = read_table(Path(path), shown, use=Use(kind="machines"))
    file, faults = validate(LayersFile, table, shown) if table else (None, [])
    problems = [*unread, *faults]
    if file is not None:
        problems += _incoherent(file, shown)
    if file is None or problems:
        raise SpecError(problems)
    return _built(file)


def _incoherent(file: LayersFile, shown: str) -> Iterator[Problem]:
    n_machines = sum(entry.count for entry in file.machine)
    if n_machines > MOST_MACHINES:
        fact = f"are {n_machines} machines, more than {MOST_MACHINES}"
        yield Problem(where=shown, key="machine", fact=fact)
    for index, entry in enumerate(file.machine):
        key, n_rates = f"machine[{index}].rates", len(entry.rates)
        if not any(entry.rates):
            yield Problem(where=shown, key=key, fact="are all zero")
        if n_rates > file.layers.n_layers.value:
            fact = f"has {n_rates} entries, but there are {file.layers.n_layers.value} layers"
            yield Problem(where=shown, key=key, fact=fact, remedy="leave those beyond them out")
    regions = {entry.region for entry in file.machine}
    links = file.links
    if links is None:
        return
    if links.across is None and links.between is not None and len(regions) > 1:
        remedy = 'write what pairs in two regions carry, like "700 token/s"'
        yield Problem(where=shown, key="links.across", fact="is missing", remedy=remedy)
    if links.across is not None and len(regions) == 1:
        fact, remedy = "is of pairs in two regions, and there is one", "leave it out"
        yield Problem(where=shown, key="links.across", fact=fact, remedy=remedy)
    ends = ("from_coordinator", "to_coordinator")
    if links.coordinator is not None and any(getattr(links, name) for name in ends):
        fact = "is said for each machine too"
        yield Problem(where=shown, key="links.coordinator", fact=fact, remedy="leave one out")
    ones = {f"links.{name}": getattr(links, name) for name in ends}
    yield from _unequal(shown, ones, {}, n_machines)
    if not links.matrix:
        return
    both = [name for name in ("between", "across") if getattr(links, name) is not None]
    if both:
        fact = f"says what `{both[0]}` says"
        yield Problem(where=shown, key="links.matrix", fact=fact, remedy="leave one out")
    if n_machines <= MOST_MACHINES:
        yield from _unequal(shown, {}, {"links.matrix": links.matrix}, n_machines)


def layers_problems(layers: LayersSpec, where: str) -> Iterator[Problem]:
    """What no file could say of the record, in numbers of machines: it may be altered."""
    ends = ("from_coordinator_tokens_per_s", "to_coordinator_tokens_per_s")
    ones = {name: getattr(layers, name) for name in ends}
    matrix = {"matrix_tokens_per_s": layers.matrix_tokens_per_s}
    yield from _unequal(where, ones, matrix, layers.n_machines)


def _unequal(
    where: str,
    ones: Mapping[str, Sequence[float]],
    pairs: Mapping[str, Sequence[Sequence[float]]],
    n_machines: int,
) -> Iterator[Problem]:
    """Rates of each machine, or of each pair of them, that are not as many; none may be said."""
    lengths = {name: len(rates) for name, rates in {**ones, **pairs}.items() if len(rates)}
    rows = {
        f"{name}[{i}]": len(row) for name, matrix in pairs.items() for i, row in enumerate(matrix)
    }
    for key, length in {**lengths, **rows}.items():
        if length != n_machines:
            fact = f"has {length} entries, but there are {n_machines} machines"
            yield Problem(where=where, key=key, fact=fact)


def _built(file: LayersFile) -> LayersSpec:
    rates = (
        Provenance(key=f"machine[{i}].rates", source=one.source)
        for i, one in enumerate(file.machine)
    )
    return record_of(
        LayersSpec,
        file.layers,
        file.links,
        file.published,
        title=file.layers.title or file.layers.name,
        machines=tuple(record_of(MachineType, one) for one in file.machine),
        provenance=(*provenance(file), *rates),
    )
