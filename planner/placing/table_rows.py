"""Rows of tables that a request for a placement carries: of what is asked for, and worth it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from planner.errors import Problem, RequestError
from planner.placing.sites import Site
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.files.deployment_tables import load_table
from planner.specs.files.ledger import remark
from planner.specs.records.devices import AnyModel
from planner.specs.records.roles import PREFILL
from planner.specs.records.runtimes import DeploymentRow, DeploymentTable, is_table, table_file
from planner.specs.records.served_formats import KNOWN_FORMATS
from planner.specs.validation.problems import Problems, did_you_mean
from planner.topology.inventory import Kind

MOST_NAMED = 4
"""Names of what a table has, that an error lists."""


def with_tables(request: PlacementRequest, site: Site) -> PlacementRequest:
    """A request that carries the rows of the tables that it names, those that may be placed.

    Raises:
        RequestError: a table cannot be read, or has no row for one of the models.
    """
    carried = {one.name: one for one in request.deployments}
    named = filter(is_table, request.engines if site.clusters else ())  # refused on a torus
    collected = Problems()
    tables = collected.each(
        lambda name: carried.get(name) or _worth_it(asked_rows(load_table(name), request, site)),
        named,
    )
    collected.settle(RequestError)
    return replace(request, deployments=tables)


def _worth_it(table: DeploymentTable) -> DeploymentTable:
    return replace(table, rows=undominated(table.rows))


def asked_rows(table: DeploymentTable, request: PlacementRequest, site: Site) -> DeploymentTable:
    """A table with the rows of the models, lengths and kinds that are asked for; others counted.

    Raises:
        RequestError: a model has no such row, or a row has a format that nobody knows.
    """
    here = [row for row in table.rows if any(is_on(row, kind) for kind in site.clusters)]
    problems: list[Problem] = [] if here else [_nowhere(table.rows, site)]
    kept: list[DeploymentRow] = []
    for demand in request.models if here else ():
        mine = requested_rows(here, demand, request)
        problems += [] if mine else [_none(demand, here, request)]
        kept += mine
    problems += _unknown_formats(kept)
    file = table_file(table.name)
    if problems:
        raise RequestError([replace(one, where=file) for one in problems])
    n_others = len(table.rows) - len(kept)
    if n_others:
        fact = (
            f"{n_others:,} of {len(table.rows):,} rows are of other models, requests of other "
            "lengths, or devices that are not there"
        )
        remark(Problem(where=file, fact=fact))
    return replace(table, rows=tuple(dict.fromkeys(kept)))


def requested_rows(
    rows: Sequence[DeploymentRow], demand: Serve, request: PlacementRequest
) -> list[DeploymentRow]:
    """Rows of the model and of the lengths that are asked for."""
    mine, lengths = (row for row in rows if is_of(row, demand.model)), _lengths(request, demand)
    return [row for row in mine if (row.n_input_tokens, row.n_output_tokens) == lengths]


def is_on(row: DeploymentRow, kind: Kind) -> bool:
    """Whether a row is of a kind of devices: by its group's name or by the device's."""
    return row.kind.casefold() in (kind.name.casefold(), kind.device.casefold())


def is_of(row: DeploymentRow, model: AnyModel) -> bool:
    """Whether a row is of a model: by its name, or that of its repository."""
    return row.model.casefold() in {model.name.casefold(), model.repository.casefold()} - {""}


def _lengths(request: PlacementRequest, demand: Serve) -> tuple[int, int]:
    """Tokens that a request for a model reads and writes."""
    workload = demand.workload or request.workload
    return workload.n_input_tokens, workload.n_output_tokens


def _nowhere(rows: Sequence[DeploymentRow], site: Site) -> Problem:
    """That no row is of a kind that a pool has."""
    fact = (
        f"has no row of a kind that the pool has: its rows are of {_most([r.kind for r in rows])}"
    )
    kinds = sorted({name for kind in site.clusters for name in (kind.name, kind.device)})
    return Problem(where="", fact=fact, remedy=f"the pool has {', '.join(kinds)}")


def _none(demand: Serve, rows: Sequence[DeploymentRow], request: PlacementRequest) -> Problem:
    """That a model has no row, and what the file has instead."""
    mine = [row for row in rows if is_of(row, demand.model)]
    if not mine:
        fact = f"has no row of it: its rows are of {_most([row.model for row in rows])}"
        return Problem(where="", value=demand.model.name, fact=fact)
    n_input, n_output = _lengths(request, demand)
    has = _most([f"{row.n_input_tokens}/{row.n_output_tokens}" for row in mine])
    fact = f"has no row of requests that read {n_input} and write {n_output}: its rows are of {has}"
    remedy = f"write `--input {mine[0].n_input_tokens} --output {mine[0].n_output_tokens}`"
    return Problem(where="", value=demand.model.name, fact=fact, remedy=remedy)


def _most(names: Sequence[str]) -> str:
    """The names that most rows have."""
    met = Counter(names)
    shown = ", ".join(f"`{name}`" for name, _ in met.most_common(MOST_NAMED))
    return shown + (f" and {len(met) - MOST_NAMED} others" if len(met) > MOST_NAMED else "")


def _unknown_formats(rows: Sequence[DeploymentRow]) -> list[Problem]:
    """Formats whose numbers nobody could count the bytes of."""
    problems: dict[tuple[str, str], Problem] = {}
    for row in rows:
        for column, name in (("weights", row.weights_format), ("kv", row.kv_format)):
            if name not in KNOWN_FORMATS and (column, name) not in problems:
                remedy = did_you_mean(name, KNOWN_FORMATS, otherwise="name it as others do")
                key, fact = f"line {row.line}", f"of `{column}` is no number format"
                problem = Problem(where="", key=key, value=name, fact=fact, remedy=remedy)
                problems[column, name] = problem
    return list(problems.values())


def undominated(rows: Sequence[DeploymentRow]) -> tuple[DeploymentRow, ...]:
    """Rows that no other of the same replica stands for, in their order; of equals the first.

    A row stands for another of the same model, devices, role, engine and formats where it is no
    slower, serves no less, has no fewer requests in flight, and neither holds nor costs more.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(_replica(row), []).append(number)
    kept = [group[k] for group in groups.values() for k in front([_costs(rows[i]) for i in group])]
    return tuple(rows[number] for number in sorted(kept))


def _replica(row: DeploymentRow) -> tuple[object, ...]:
    """What rows have in common that can stand for each other."""
    has_price = row.usd_per_hour is not None
    formats = row.weights_format, row.kv_format
    lengths = row.n_input_tokens, row.n_output_tokens
    names = row.model, row.kind, row.n_devices, row.role, row.engine
    return (*names, *formats, *lengths, has_price)


def _costs(row: DeploymentRow) -> tuple[float, ...]:
    """Everything that a placement may look at, less being better."""
    in_flight = 0 if row.role == PREFILL else -row.batch
    held, money = row.memory_bytes or 0.0, row.usd_per_hour or 0.0
    return -row.requests_per_s, row.ttft_s, row.tpot_s, in_flight, held, money


def front(listed: Sequence[tuple[float, ...]]) -> Iterable[int]:
    """The Pareto front: met in order of cost, one can only be beaten by what came before it."""
    costs = np.array(listed)
    front, n_front = np.empty_like(costs), 0
    for k in np.lexsort(costs.T[::-1]).tolist():
        if not (front[:n_front] <= costs[k]).all(axis=1).any():
            front[n_front] = costs[k]
            n_front += 1
            yield k
