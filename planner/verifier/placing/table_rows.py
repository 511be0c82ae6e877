"""A deployment of a table's row, read again from the rows that the request carries."""

from collections.abc import Iterator, Sequence

from planner.results.phase_deployments import TableDeployment
from planner.results.placements import RunConfig
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.ask.targets import Targets
from planner.specs.records.devices import AnyModel, ClusterSpec
from planner.specs.records.roles import DECODE, PREFILL
from planner.specs.records.runtimes import DeploymentRow
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import TOLERANCE, Finding, Invalid
from planner.verifier.quantities import offered_formats
from planner.verifier.serving.kernels import stored_bytes


def counted_row(
    request: PlacementRequest, demand: Serve, cluster: ClusterSpec, recipe: RunConfig
) -> tuple[TableDeployment, list[Finding]]:
    """The deployment that is true of the row that it names, and what of it cannot be.

    Args:
        demand: what is wanted of the model.
        cluster: that devices of the recipe's ability make.

    Raises:
        Refused: the record is of no table, or the request carries no such row.
    """
    says = recipe.deployment
    if not isinstance(says, TableDeployment):
        raise Invalid("is of no table", path=("deployment",), says=recipe.engine)
    _, row = row_of(request, says)
    return row_deployment(says.table, row, demand.model, cluster), [
        *_foreign(request, demand, recipe, row, cluster),
        *_broken(request, demand, row, cluster),
    ]


def row_deployment(
    table: str, row: DeploymentRow, model: AnyModel, cluster: ClusterSpec
) -> TableDeployment:
    """The account of a row: money from it, or from the price of its devices; even shards."""
    rent = row.n_devices * cluster.usd_per_hour if row.usd_per_hour is None else row.usd_per_hour
    tokens_per_s = row.requests_per_s * row.n_output_tokens
    return from_fields(
        TableDeployment,
        row,
        table=table,
        model=model.name,
        tpot_s=0.0 if row.role == PREFILL else row.tpot_s,
        ttft_s=0.0 if row.role == DECODE else row.ttft_s,
        output_tokens_per_s=tokens_per_s,
        usd_per_hour=rent,
        usd_per_token=rent / 3600.0 / tokens_per_s,
        weights_bytes=model.n_params * stored_bytes(row.weights_format) / row.n_devices,
    )


def row_of(
    request: PlacementRequest, says: TableDeployment
) -> tuple[Sequence[DeploymentRow], DeploymentRow]:
    """The rows of its table, and the one that a deployment says it is.

    Raises:
        Refused: there is none.
    """
    for table in request.deployments:
        for row in table.rows if table.name == says.table else ():
            if (row.line, row.role) == (says.line, says.role):
                return table.rows, row
    fact = f"is no line of {says.table} that the request carries, for {says.role}"
    raise Invalid(fact, path=("deployment", "line"), says=says.line)


def _foreign(
    request: PlacementRequest,
    demand: Serve,
    recipe: RunConfig,
    row: DeploymentRow,
    cluster: ClusterSpec,
) -> Iterator[Finding]:
    """What a row is of that is not what it is used for: model, lengths, devices, speed."""
    names = {demand.model.name.casefold(), demand.model.repository.casefold()}
    if row.model.casefold() not in names:
        yield Finding(path=("model",), says=row.model, fact=f"is not {demand.model.name}")
    if row.kind.casefold() not in (recipe.kind.casefold(), cluster.device.name.casefold()):
        yield Finding(path=("line",), says=row.line, fact=f"is of {row.kind}")
    if row.engine != recipe.engine:
        yield Finding(path=("engine",), says=row.engine, fact=f"is not {recipe.engine}")
    workload = demand.workload or request.workload
    lengths = workload.n_input_tokens, workload.n_output_tokens
    if (row.n_input_tokens, row.n_output_tokens) != lengths:
        fact = f"is of requests of {row.n_input_tokens} and {row.n_output_tokens} tokens"
        yield Finding(path=("line",), says=row.line, fact=fact)
    if recipe.speed_fraction < 1.0:
        fact = "is of devices at full speed"
        yield Finding(path=("line",), says=row.line, fact=fact)


def _broken(
    request: PlacementRequest, demand: Serve, row: DeploymentRow, cluster: ClusterSpec
) -> Iterator[Finding]:
    """Targets, formats that are asked for and memory of a device that a row does not keep."""
    targets = demand.targets or request.targets
    for name, used, most in (
        ("memory_bytes", row.memory_bytes or 0.0, cluster.device.hbm_bytes),
        ("tpot_s", row.tpot_s, targets.tpot_s),
        ("ttft_s", row.ttft_s, targets.ttft_s),
    ):
        if most is not None and used > most * (1 + 2 * TOLERANCE):
            yield Finding(path=(name,), says=used, fact=f"exceeds {most!r}")
    if row.role != PREFILL and row.batch < (targets.min_batch or 0):
        fact = f"is below the {targets.min_batch} asked for"
        yield Finding(path=("batch",), says=row.batch, fact=fact)
    yield from _unasked(demand, targets, row)


def _unasked(demand: Serve, targets: Targets, row: DeploymentRow) -> Iterator[Finding]:
    """Formats that nobody asked for."""
    weights = demand.weights_formats
    if weights is None and targets.quality_loss_fraction is not None:
        weights = offered_formats(demand.model, targets)
    for name, value, offered in (
        ("weights_format", row.weights_format, weights),
        ("kv_format", row.kv_format, demand.kv_formats),
    ):
        if offered is not None and value not in offered:
            yield Finding(path=(name,), says=value, fact=f"is none of {', '.join(offered)}")
