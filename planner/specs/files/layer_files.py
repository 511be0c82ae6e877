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

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from planner.errors import Problem
from planner.specs.files.ledger import Use
from planner.specs.files.reading import record_of
from planner.specs.files.tables import Provenance, read_table
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.hints import from_fields
from planner.specs.validation.layouts import key_of
from planner.specs.validation.problems import Finding
from planner.specs.validation.values import NOT_EMPTY, number

MOST_MACHINES = 2_000
UNLIMITED_TOKENS_PER_S = 1e12

Rate = Annotated[float, number(UNLIMITED_TOKENS_PER_S, "tokens a second, like 2045.6")]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """Machines of one type in one region.

    Args:
        rates_tokens_per_s: of one that holds 1, 2, … layers.
    """

    type: str
    count: int
    region: str = "one"
    rates_tokens_per_s: Annotated[tuple[Rate, ...], NOT_EMPTY]


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
    matrix_tokens_per_s: tuple[tuple[Rate, ...], ...] = ()
    from_coordinator_tokens_per_s: tuple[Rate, ...] = ()
    to_coordinator_tokens_per_s: tuple[Rate, ...] = ()
    published_tokens_per_s: float | None = None
    provenance: tuple[Provenance, ...]

    @property
    def n_machines(self) -> int:
        return sum(one.count for one in self.machines)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineEntry(MachineType):
    """Machines of one type as a file has them."""

    source: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersFile(LayersSpec):
    """Layers, machines and links as a file has them."""

    title: str = ""
    enters_within: bool = False
    machines: Annotated[tuple[MachineEntry, ...], NOT_EMPTY]
    between_tokens_per_s: float | None = None  # type: ignore[assignment]
    across_tokens_per_s: float | None = None  # type: ignore[assignment]
    coordinator_tokens_per_s: float | None = None  # type: ignore[assignment]
    provenance: tuple[Provenance, ...] = ()


@arguments_checked()
def load_layers(path: str | Path) -> LayersSpec:
    """Read a file of machines.

    Raises:
        SpecError: there is no such file, or it has faults; all are listed.
    """
    shown = str(path)
    read = read_table(Path(path), shown, use=Use(kind="machines"))
    file = record_of(LayersFile, *read, shown=shown, coherent=_incoherent)
    rates = (
        Provenance(key=f"machine[{i}].rates", source=machine.source)
        for i, machine in enumerate(file.machines)
    )
    names = [f"{name}_tokens_per_s" for name in ("between", "across", "coordinator")]
    return from_fields(
        LayersSpec,
        file,
        title=file.title or file.name,
        machines=tuple(from_fields(MachineType, one) for one in file.machines),
        provenance=(*file.provenance, *rates),
        **{name: getattr(file, name) or UNLIMITED_TOKENS_PER_S for name in names},
    )


def _incoherent(said: Mapping[str, Any]) -> Iterator[Finding]:
    machines, n_layers = said.get("machines", ()), said.get("n_layers") or math.inf
    n_machines = sum(entry.count or 0 for entry in machines)
    if n_machines > MOST_MACHINES:
        fact = f"are {n_machines} machines, more than {MOST_MACHINES}"
        yield Finding("machines", fact, value="")
    for index, entry in enumerate(machines):
        field, n_rates = f"machine[{index}].rates", len(entry.rates_tokens_per_s)
        if n_rates and not any(entry.rates_tokens_per_s):
            yield Finding(field, "are all zero", value="")
        if n_rates > n_layers:
            fact = f"has {n_rates} entries, but there are {n_layers} layers"
            yield Finding(field, fact, "leave those beyond them out", value="")
    yield from _link_faults(said, n_machines, len({entry.region for entry in machines}))


def _region_faults(said: Mapping[str, Any], n_regions: int) -> Iterator[Finding]:
    """The rate of pairs in two regions, where there are none or where nobody says it."""
    is_said = "across_tokens_per_s" in said
    if not is_said and "between_tokens_per_s" in said and n_regions > 1:
        remedy = 'write what pairs in two regions carry, like "700 token/s"'
        yield Finding("across_tokens_per_s", "is missing", remedy)
    if is_said and n_regions == 1:
        fact, remedy = "is of pairs in two regions, and there is one", "leave it out"
        yield Finding("across_tokens_per_s", fact, remedy, value="")


def _link_faults(said: Mapping[str, Any], n_machines: int, n_regions: int) -> Iterator[Finding]:
    """Rates of links that are said too often, too seldom, or of too few machines."""
    ones = {name: said.get(name, ()) for name in _ENDS}
    yield from _region_faults(said, n_regions)
    if "coordinator_tokens_per_s" in said and any(ones.values()):
        fact, remedy = "is said for each machine too", "leave one out"
        yield Finding("coordinator_tokens_per_s", fact, remedy, value="")
    yield from _unequal(ones, {}, n_machines)
    matrix = said.get("matrix_tokens_per_s", ())
    both = [key_of(name) for name in said if name.startswith(("between_", "across_"))]
    if matrix and both:
        fact = f"says what `{both[0]}` says"
        yield Finding("matrix_tokens_per_s", fact, "leave one out", value="")
    if n_machines <= MOST_MACHINES:
        yield from _unequal({}, {"matrix_tokens_per_s": matrix}, n_machines)


_ENDS = ("from_coordinator_tokens_per_s", "to_coordinator_tokens_per_s")


def layers_problems(layers: LayersSpec, where: str) -> Iterator[Problem]:
    """What no file could say of the record, in numbers of machines: it may be altered."""
    ones = {name: getattr(layers, name) for name in _ENDS}
    matrix = {"matrix_tokens_per_s": layers.matrix_tokens_per_s}
    for one in _unequal(ones, matrix, layers.n_machines):
        yield Problem(where=where, key=one.field, fact=one.fact)


def _unequal(
    ones: Mapping[str, Sequence[float]],
    pairs: Mapping[str, Sequence[Sequence[float]]],
    n_machines: int,
) -> Iterator[Finding]:
    """Rates of each machine, or of each pair of them, that are not as many; none may be said."""
    lengths = {name: len(rates) for name, rates in {**ones, **pairs}.items() if len(rates)}
    rows = {
        f"{name}[{i}]": len(row) for name, matrix in pairs.items() for i, row in enumerate(matrix)
    }
    for field, length in {**lengths, **rows}.items():
        if length != n_machines:
            fact = f"has {length} entries, but there are {n_machines} machines"
            yield Finding(field, fact, value="")
