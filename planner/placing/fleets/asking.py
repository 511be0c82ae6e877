"""What is asked of a fleet, checked, with its defaults filled in."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from planner.errors import Problem, RequestError
from planner.placing import asking
from planner.placing.fabrics.site import Fabric
from planner.placing.fleets.classes import traffic_problems
from planner.placing.fleets.fitting import Fitting, unserved, usual_engines
from planner.placing.fleets.inventories import MergedInventory, merged
from planner.placing.roles import asked_roles
from planner.placing.sites import Site, usual_runtimes
from planner.placing.table_rows import asked_rows
from planner.specs.ask.defaults import N_SIMULATED
from planner.specs.ask.fleet import FleetRequest
from planner.specs.ask.placement import Limits, PlacementRequest, Role, Serve
from planner.specs.ask.prices import priced, unknown_kinds
from planner.specs.ask.targets import SolverOptions
from planner.specs.files.deployment_tables import load_table
from planner.specs.files.engines import load_engine
from planner.specs.files.pools import side_by_side
from planner.specs.files.state import State
from planner.specs.options.meanings import ENGINES, family_of, misplaced
from planner.specs.records.devices import ClusterSpec, DeviceSpec
from planner.specs.records.roles import (
    FREE,
    LEAST_PRESENT,
    ROUTERS,
    TOGETHER,
    Connector,
    RoleOptions,
)
from planner.specs.records.runtimes import DeploymentTable, is_table
from planner.specs.traffic.records import FleetTraffic
from planner.specs.validation.arguments import arguments_checked, raise_if_any
from planner.specs.validation.problems import Problems, did_you_mean
from planner.specs.validation.values import between, one_of

COMMAND = "fleet"
NOTHING: Mapping[str, str] = {}
LEAST_SIMULATED = 100
MOST_SIMULATED = 10**7

_DEFAULT_OPTIONS = SolverOptions()


@arguments_checked(ranges="heeded")
def fleet_request(
    traffic: FleetTraffic,
    *,
    site: asking.AnySite | None = None,
    engines: str | Sequence[str] | None = None,
    state: State | None = None,
    counts: Mapping[str, int] | None = None,
    prices: Mapping[str, float] | None = None,
    devices: Mapping[str, DeviceSpec] | None = None,
    roles: Role | None = None,
    connector: Connector | None = None,
    prefill_devices: int | None = None,
    decode_devices: int | None = None,
    sharing: bool = True,
    router: Annotated[str, one_of("router", ROUTERS)] = LEAST_PRESENT,
    weights_formats: Sequence[str] | None = None,
    kv_formats: Sequence[str] | None = None,
    batches: Sequence[int] | None = None,
    chunks: Sequence[int] | None = None,
    most_devices: int | None = None,
    limits: Limits | None = None,
    quality_loss_fraction: float | None = None,
    n_simulated: Annotated[int, between(LEAST_SIMULATED, MOST_SIMULATED)] = N_SIMULATED,
    options: SolverOptions = _DEFAULT_OPTIONS,
    confidence: float | None = None,
) -> FleetRequest:
    """A request for a fleet, whole.

    Args:
        traffic: classes, and what may serve them where it says so.
        site: what may serve them where `traffic` says nothing: a topology of nodes, a pool or a
            graph, as `place` takes it.
        engines: that replicas may run under; those with measured kernels there if None.
        state: what of `site` is busy, failed, reserved, slow or narrow.
        counts: most devices of a kind of `site` that replicas may have, by its name.
        prices: rents of a device by kind, in place of those of the files [USD/h].
        devices: records of a graph's devices by name, before those that ship.
        roles, connector, prefill_devices, decode_devices: as `place` takes them; where `traffic`
            names a connector the program chooses roles.
        sharing: whether classes of one model may share replicas.
        router: which replica of a pool gets a request, of `planner.specs.records.roles`.
        weights_formats, kv_formats, batches, chunks: to choose from; None leaves them usual.
        most_devices: of one replica; None for the usual most.
        limits: most `rent` [USD/h], `devices` and `power` [W], of all replicas together.
        quality_loss_fraction: that formats may lose at most.
        n_simulated: requests that the fleet is tried on.
        options: how to solve; its seed is also that of the simulation.
        confidence: share of cases in which planned passes are no longer.

    Raises:
        RequestError: it cannot be asked; every problem is listed.
    """
    wrong = Problems(
        problems=[
            *traffic_problems(traffic.classes, traffic.shown),
            *_contradictions(traffic, {"--topology": site, "--state": state, "--count": counts}),
        ]
    )
    names = asking.named_engines(engines)
    said = {"--batch": batches, "--chunk": chunks, "--confidence": confidence, "--roles": roles}
    values = {option: _text(value) for option, value in said.items() if value is not None}
    wrong.problems += engine_problems(names, values)
    supplied = wrong.collect(partial(_supplied, traffic, site, state, counts, devices or {}))
    wanted = wrong.collect(
        partial(_roles, traffic, roles, connector, prefill=prefill_devices, decode=decode_devices)
    )
    wrong.problems += unknown_kinds(prices or {}, [supplied.site] if supplied else [])
    raise_if_any(wrong.problems)
    assert supplied is not None
    request = FleetRequest(
        site=priced(supplied.site, prices or {}),
        classes=traffic.classes,
        engines=names,
        counts=supplied.counts,
        places=supplied.places,
        state=supplied.state,
        roles=wanted or RoleOptions(),
        sharing=sharing,
        router=router,
        weights_formats=_each_once(weights_formats),
        kv_formats=_each_once(kv_formats),
        batches=_ascending(batches),
        chunks=_ascending(chunks),
        most_devices=most_devices,
        limits=dict(limits or {}),
        quality_loss_fraction=quality_loss_fraction,
        n_simulated=n_simulated,
        options=options,
        confidence=confidence,
    )
    return _with_engines(request, traffic.shown)


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _contradictions(traffic: FleetTraffic, said: Mapping[str, object]) -> Iterator[Problem]:
    """What serves is said twice, or not at all."""
    is_supplied = traffic.supply is not None and bool(traffic.supply.kinds)
    for option, value in said.items():
        if is_supplied and value is not None:
            fact = f"is said by `{traffic.shown}`, kind by kind"
            yield Problem(where=option, fact=fact, remedy="leave it out")
    if not is_supplied and said["--topology"] is None:
        remedy = "name a topology, or write `[[kind]]` in the file of the traffic"
        yield Problem(where="--topology", fact="is missing: nothing serves", remedy=remedy)


def engine_problems(names: Sequence[str], said: Mapping[str, str] = NOTHING) -> list[Problem]:
    """Runtimes that fleets do not take, options without effect, and engines that there are not."""
    wrong = Problems()
    for name in names:
        refused = list(misplaced({"--engine": name}, (name,), COMMAND))
        wrong.problems += refused or misplaced(said, (name,), COMMAND)
        if family_of(name) == ENGINES:
            wrong.collect(partial(load_engine, name))
    return wrong.problems


def _supplied(
    traffic: FleetTraffic,
    site: asking.AnySite | None,
    state: State | None,
    counts: Mapping[str, int] | None,
    devices: Mapping[str, DeviceSpec],
) -> MergedInventory | None:
    """What may serve, from the traffic's own kinds or from a site; None where nothing is said.

    Raises:
        RequestError: no engine runs on it, or kinds cannot be one pool.
    """
    if traffic.supply is not None and traffic.supply.kinds:
        return merged(traffic.supply, shown=traffic.shown)
    if site is None:
        return None
    spec = asking.site_spec(site, devices)
    if isinstance(spec, ClusterSpec):  # a torus by itself is named as one beside others
        spec = side_by_side(spec.name, spec.title, [spec.device.name], [spec])
    return MergedInventory(site=spec, state=state, counts=dict(counts or {}), places={})


def _roles(
    traffic: FleetTraffic,
    roles: str | None,
    connector: Connector | None,
    *,
    prefill: int | None,
    decode: int | None,
) -> RoleOptions:
    """Roles that are asked for; traffic that names a connector leaves them to the program.

    Raises:
        RequestError: there are no such roles, or a connector is named twice.
    """
    of_traffic = traffic.supply.connector if traffic.supply else None
    if of_traffic is not None and connector is not None:
        fact = f"is said by `{traffic.shown}`"
        problem = Problem(where="--connector", value=connector.name, fact=fact)
        raise RequestError([problem])
    if of_traffic is not None and roles is None and prefill is None and decode is None:
        roles = FREE
    handing = None if roles == TOGETHER and connector is None else connector or of_traffic
    return asked_roles(roles, handing, prefill_devices=prefill, decode_devices=decode)


def _each_once(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return tuple(dict.fromkeys(names)) if names else None


def _ascending(numbers: Sequence[int] | None) -> tuple[int, ...] | None:
    return tuple(sorted({*numbers})) if numbers else None


def _with_engines(request: FleetRequest, shown: str) -> FleetRequest:
    """The request with its engines, once a site of such devices holds what is asked.

    Raises:
        RequestError: it does not; every problem is listed.
    """
    site = asking.site_of(request)
    problems = [*_count_problems(request, site)]
    is_of_servers = all(part.clusters for part in site.parts)
    if not request.engines and is_of_servers:
        problems += unserved(request.classes, site, shown)
        request = replace(request, engines=usual_engines(request.classes, site))
    elif not request.engines:
        request = replace(request, engines=usual_runtimes(request.every_model, site))
    problems += asking.fabric_problems(request, site)
    is_of_engines = all(family_of(one) == ENGINES for one in request.engines)
    if isinstance(site, Fabric) and request.engines and is_of_engines:
        problems += Fitting(request=request, site=site).problems(shown)
    raise_if_any(problems)
    return replace(request, deployments=tuple(_rows(request, site)))


def _rows(request: FleetRequest, site: Site) -> Iterator[DeploymentTable]:
    """The rows of each table that are of the classes' requests, of mean length.

    Raises:
        RequestError: a class has none, or a table cannot be read.
    """
    wishes = tuple(
        Serve(model=model, workload=traffic.lengths.usual)
        for traffic in request.classes
        for model in traffic.models
    )
    for name in filter(is_table, request.engines):
        placement = PlacementRequest(site=request.site, models=wishes, engines=(name,))
        yield asked_rows(load_table(name), placement, site)


def _count_problems(request: FleetRequest, site: Site) -> Iterator[Problem]:
    """Counts of kinds that there are not, or not so many of."""
    there = {kind: n for kind, (n, _) in site.n_of_kind.items()}
    for name, n in request.counts.items():
        if name not in there:
            remedy = did_you_mean(name, there, otherwise=f"there is {' and '.join(there)}")
            fact = "is no kind of device there"
            yield Problem(where="--count", value=name, fact=fact, remedy=remedy)
        elif n > there[name]:
            fact = f"is more than the {there[name]} devices of `{name}`"
            yield Problem(where="--count", value=str(n), fact=fact)
