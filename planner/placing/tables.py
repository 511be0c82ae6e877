"""Configurations of a user's table: each row a replica, as fast as it says wherever it is placed.

A replica of a row lies in one node, or fills whole nodes of one leaf. A table knows no topology:
devices have to be as fast as new ones, and how wide the links between them are is not looked at.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.errors import Problem
from planner.estimates.serving.memory import handed_bytes
from planner.estimates.serving.operations import number_bytes
from planner.placing.configurations import Configuration, Offers
from planner.placing.fabrics.domains import Domain, largest_piece
from planner.placing.fabrics.patterns import LEAF, NODE, Beaten, NodeConfiguration, NodePattern
from planner.placing.runtimes import Runtime
from planner.placing.sites import Site, check_nodes
from planner.placing.table_rows import front, is_on, requested_rows
from planner.programs.layout import ceiling
from planner.results.phase_deployments import TableDeployment
from planner.runtimes.describe import agree
from planner.runtimes.registry import layers_of
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.ask.quality import usual_formats
from planner.specs.ask.targets import Targets
from planner.specs.files.ledger import remark
from planner.specs.records.devices import AnyModel, ClusterSpec, DeviceSpec
from planner.specs.records.roles import PREFILL, TOGETHER
from planner.specs.records.runtimes import DeploymentRow, table_file
from planner.specs.validation.hints import from_fields
from planner.verifier.placing.table_rows import row_deployment


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableOffers(Offers):
    """The rows of a table on one kind of devices.

    Args:
        table: name of the runtime.
        cluster: of the kind.
        n_candidates: rows that may be placed there.
    """

    table: str
    model: AnyModel
    cluster: ClusterSpec
    n_candidates: int

    @property
    def device(self) -> DeviceSpec:
        return self.cluster.device

    def deployment(self, choice: DeploymentRow, n_alike: int) -> TableDeployment:
        """A row as a record; whatever else is placed, it is the same."""
        described = row_deployment(self.table, choice, self.model, self.cluster)
        agree(
            {
                "rent": (rent_of(choice, self.cluster), described.usd_per_hour),
                "tokens": (choice.output_tokens_per_s, described.output_tokens_per_s),
                "weights": (shard_bytes(choice, self.model), described.weights_bytes),
            }
        )
        return described


def rent_of(row: DeploymentRow, cluster: ClusterSpec) -> float:
    """Rent of a replica [USD/h]: what the row says, or what its devices cost."""
    return row.usd_per_hour or row.n_devices * cluster.usd_per_hour


def shard_bytes(row: DeploymentRow, model: AnyModel) -> float:
    """Weights of one device, where all of a replica share them evenly [bytes]."""
    return model.n_params * number_bytes(row.weights_format) / row.n_devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Runtime):
    """The rows of a table, for one model.

    Args:
        rows: of the model, the lengths and the kinds that are asked for.
        by_latency: whether the quickest replica is the best, not the one that serves most.
        roles: that replicas may have.
    """

    name: str
    serve: Serve
    targets: Targets
    rows: tuple[DeploymentRow, ...]
    by_latency: bool
    roles: tuple[str, ...] = (TOGETHER,)

    def on_nodes(
        self, model: int, domain: Domain, beaten: Beaten, *, whole: bool = False
    ) -> Iterator[NodeConfiguration]:
        """The best row of each number of devices, role, engine and formats.

        Args:
            beaten: is not looked at; a table has few enough.
        """
        if domain.span not in (NODE, LEAF) or domain.need.speed_fraction < 1.0:
            return
        size = largest_piece(domain.ground.inventory, domain.kind)
        if domain.per_node != size:
            return
        cluster = domain.ground.bases[domain.kind]
        rows = [
            row
            for row in self.rows
            if is_on(row, domain.kind)
            and row.role in self.roles
            and row.n_devices <= domain.n_devices
            and lies(row, domain.span, size)
            and keeps(row, self.serve, self.targets, cluster.device)
        ]
        source = TableOffers(
            table=self.name, model=self.serve.model, cluster=cluster, n_candidates=len(rows)
        )
        for row in _best(rows, source, by_latency=self.by_latency, whole=whole):
            yield _configuration(source, model, domain, row)


def table_runtime(name: str, request: PlacementRequest, demand: Serve, site: Site) -> Table:
    """The rows of a table that a request carries, for one of its models.

    Raises:
        RequestError: the site is no pool of nodes.
    """
    check_nodes(name, site)
    table = next(table for table in request.deployments if table.name == name)
    rows, roles = requested_rows(table.rows, demand, request), request.roles.roles
    for kind, cluster in site.clusters.items():
        _remark_unplaced([row for row in rows if is_on(row, kind)], cluster, table_file(name))
    others = [row.line for row in rows if row.role not in roles]
    _left_out(others, f"are of other roles than {' or '.join(roles)}", table_file(name))
    return Table(
        name=name,
        serve=demand,
        targets=demand.targets or request.targets,
        rows=tuple(rows),
        by_latency=request.objective == "latency",
        roles=roles,
    )


def _remark_unplaced(rows: Sequence[DeploymentRow], cluster: ClusterSpec, file: str) -> None:
    """Count rows that no device of a cluster holds, or no nodes of it, and say so."""
    size = int(getattr(cluster.fabric, "n_devices_per_node", cluster.n_devices))
    device = cluster.device
    unheld = [row.line for row in rows if (row.memory_bytes or 0.0) > device.hbm_bytes]
    uneven = [row.line for row in rows if not (lies(row, NODE, size) or lies(row, LEAF, size))]
    _left_out(unheld, "hold more than a device has", file, device.name)
    _left_out(uneven, "have more devices than a node, and no whole nodes", file, device.name)


def _left_out(lines: Sequence[int], fact: str, file: str, value: str = "") -> None:
    """Count rows, if there are any, and say why nobody gets them."""
    if lines:
        told = f"{len(lines):,} rows {fact}, the first in line {lines[0]}: left out"
        remark(Problem(where=file, value=value, fact=told))


def lies(row: DeploymentRow, span: str, size: int) -> bool:
    """Whether a replica lies in a node of so many devices, or fills whole nodes of a leaf."""
    if span == NODE:
        return row.n_devices <= size
    return row.n_devices > size and row.n_devices % size == 0


def keeps(row: DeploymentRow, demand: Serve, targets: Targets, device: DeviceSpec) -> bool:
    """Whether a row keeps the targets, in formats that are asked for, in a device's memory."""
    formats = formats_asked(demand, targets)
    given = (row.weights_format, formats[0]), (row.kv_format, formats[1])
    if any(asked is not None and name not in asked for name, asked in given):
        return False
    limits = (
        (row.tpot_s, targets.tpot_s),
        (row.ttft_s, targets.ttft_s),
        (row.memory_bytes or 0.0, device.hbm_bytes),
    )
    if any(most is not None and value > ceiling(most) for value, most in limits):
        return False
    return row.role == PREFILL or row.batch >= (targets.min_batch or 0)


def formats_asked(
    demand: Serve, targets: Targets
) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """Formats of weights and of the cache that rows may have; None for any."""
    weights = demand.weights_formats
    if weights is None and targets.quality_loss_fraction is not None:
        weights = usual_formats(demand.model, targets)
    return weights, demand.kv_formats


def _best(
    rows: Sequence[DeploymentRow], source: TableOffers, *, by_latency: bool, whole: bool
) -> Iterator[DeploymentRow]:
    """Rows that no other of the same devices, role, engine and formats stands for.

    Of those that read prompts a sooner first token is kept beside a higher rate; a lower rent too.
    """
    groups: dict[object, list[DeploymentRow]] = {}
    for row in rows:
        weights = (row.name, row.weights_format) if whole else ()
        key = row.n_devices, row.role, row.engine, row.kv_format, weights
        groups.setdefault(key, []).append(row)
    for group in groups.values():
        costs = [_cost(row, source, by_latency=by_latency) for row in group]
        yield from (group[k] for k in front(costs))


def _cost(row: DeploymentRow, source: TableOffers, *, by_latency: bool) -> tuple[float, ...]:
    """What a placement looks at of a row, less being better."""
    worth = row.tpot_s if by_latency else -row.requests_per_s
    first_s = row.ttft_s if row.role == PREFILL else 0.0
    return worth, rent_of(row, source.cluster), first_s


def _configuration(
    source: TableOffers, model: int, domain: Domain, row: DeploymentRow
) -> NodeConfiguration:
    pieces: tuple[int, ...] = (row.n_devices,)
    if domain.span == LEAF:
        pieces = (domain.per_node,) * (row.n_devices // domain.per_node)
    shape = {"n_inside": row.n_devices, "n_across": 1, "n_stages": 1}
    pattern = from_fields(NodePattern, domain, pieces=pieces, **shape)
    n_bytes, is_whole = 0.0, row.role == TOGETHER
    if not is_whole:  # of the KV cache of a prompt that one reads and another goes on with
        n_bytes = handed_bytes(layers_of(source.model), row.kv_format, n_tokens=row.n_input_tokens)
    return from_fields(
        Configuration,
        row,
        model=model,
        pattern=pattern,
        usd_per_hour=rent_of(row, source.cluster),
        source=source,
        choice=row,
        kv_format="" if is_whole else row.kv_format,
        handed_bytes=n_bytes,
    )
