"""What a placement asks of the cluster that it is on, be it nodes or a torus.

site      a cluster as it is: which devices are free, and what they can do
offered   the configurations that fit it, and where
posed     those as a placement program
located   replicas of a solution, and which devices they have
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from planner.equations.arrays import FloatArray
from planner.errors import Problem, RequestError
from planner.estimates.serving.usual_engines import engines_of
from planner.placing.configurations import AnyConfiguration, ConfigKey, CurrentReplica
from planner.placing.program import Columns, Objective
from planner.placing.runtimes import Runtime
from planner.programs.handover import Handover
from planner.programs.placement import Counts, PlacementProgram
from planner.specs.records.devices import AnyModel, ClusterSpec
from planner.specs.records.roles import RoleOptions
from planner.specs.records.runtimes import ENGINES, ROOFLINE
from planner.topology.graph import Graph
from planner.topology.inventory import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteModel:
    """One model to serve, as a site sees it.

    Args:
        runtimes: who time its deployments.
        several: whether it may have any number of replicas.
        n_output_tokens: of a request.
    """

    runtimes: tuple[Runtime, ...]
    several: bool
    n_output_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferRequest:
    """What configurations are made for.

    Args:
        roles: that are asked for, and what hands caches over.
        by_latency: whether single replicas are compared.
        whole: also those that copies of others outdo, on which replicas may stand.
        in_part: whether some of them are of use where time ends: then each has its part of it.
    """

    models: Sequence[SiteModel]
    roles: RoleOptions
    by_latency: bool
    whole: bool
    in_part: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateCounts:
    """What there was to choose from.

    Args:
        n_candidates: deployments that were timed.
        n_contexts: of those, what was worth placing; on a torus, with each place.
        rejected: what is not in the program, by screen; `reasons` say why nothing is lost.
    """

    n_candidates: int
    n_contexts: int
    rejected: Mapping[str, int]
    reasons: Mapping[str, str]


class Located(Protocol):
    """A replica and its devices."""

    @property
    def configuration(self) -> Any: ...  # noqa: ANN401 of whatever pattern

    @property
    def devices(self) -> tuple[str, ...]:
        """By rank."""


class SiteProgram(Protocol):
    """A placement program, and what its columns are."""

    @property
    def program(self) -> PlacementProgram: ...

    @property
    def columns(self) -> Columns: ...

    @property
    def network(self) -> Handover | None:
        """Who hands caches over to whom; None where nobody does."""

    def located(self, counts: Counts) -> Sequence[Located]:
        """Devices for every replica, in the order of the program's columns."""


class SiteRepair(Protocol):
    """A placement program of what stands and what is loaded; what each column moves [GiB]."""

    @property
    def program(self) -> PlacementProgram: ...

    @property
    def moved(self) -> FloatArray: ...

    def located(self, counts: Counts) -> Sequence[Located]: ...


class SiteOffers(Protocol):
    """The configurations of all models that fit a site, and where."""

    @property
    def configurations(self) -> Sequence[AnyConfiguration]: ...

    @property
    def is_cut(self) -> bool:
        """Whether time ended before they were all made."""

    def only(self, sorts: Collection[ConfigKey]) -> SiteOffers:
        """Those of some sorts."""

    def taking(
        self, configurations: Sequence[AnyConfiguration], n_models: int | None = None
    ) -> SiteOffers:
        """Others on the same devices, each where one of its pattern was.

        Args:
            n_models: that there are now, of which any number of replicas may be.
        """

    @property
    def listed(self) -> Sequence[AnyConfiguration]:
        """Those that no other stands for, each once."""

    def by_kinds(self, aim: Objective) -> PlacementProgram:
        """The program of these, of each kind no more devices than are free, whatever the places."""

    def anywhere(self, aim: Objective) -> PlacementProgram | None:
        """The same, where it is worth a look before places are; None where these are few."""

    def of(self, counts: Counts) -> SiteOffers:
        """Those of that program that have copies."""

    def posed(self, aim: Objective) -> SiteProgram:
        """The program of those that no other stands for."""

    def repaired(self, standing: Sequence[CurrentReplica], aim: Objective) -> SiteRepair:
        """The program of what stands, and of what may be loaded anew."""

    def candidate_counts(self, n_columns: int) -> CandidateCounts:
        """What a program of so many columns was made of."""


class Site(Protocol):
    """A cluster as it is.

    Args:
        name: of the cluster.
        graph: in its state.
        cluster: of one kind, as if all were well: what is asked of layouts is checked on it.
    """

    name: str
    graph: Graph

    @property
    def cluster(self) -> ClusterSpec: ...

    @property
    def clusters(self) -> Mapping[Kind, ClusterSpec]:
        """The same of each kind whose replicas are parts of nodes; none on a torus."""

    @property
    def parts(self) -> tuple[Site, ...]:
        """The fabrics that it is of, which no replica leaves; itself where it is one."""

    @property
    def n_of_kind(self) -> Mapping[str, tuple[int, int]]:
        """Devices of each kind by its name: all, and those that are free."""

    @property
    def n_devices(self) -> int: ...

    @property
    def n_free(self) -> int: ...

    @property
    def reach(self) -> str:
        """What a replica could have of it, in words."""

    def offered(self, wanted: OfferRequest) -> SiteOffers:
        """The configurations that fit what is free, in time."""


def check_free(name: str, n_free: int, n_devices: int) -> None:
    """Refuse a site all of whose devices are taken.

    Raises:
        RequestError: it is one.
    """
    if not n_free:
        remedy = "free some, or leave them out of the state"
        fact = f"has no free device: all {n_devices} are taken"
        raise RequestError([Problem(where=name, fact=fact, remedy=remedy)])


def usual_runtimes(models: Iterable[AnyModel], site: Site) -> tuple[str, ...]:
    """Who times the replicas where nobody is named: engines, or the layouts of all models.

    Every model has to have an engine that can start it and whose kernels were measured on a kind
    of devices of the site: one fabric has one way to tell the time, and a torus has layouts only.
    """
    clusters = site.clusters.values()
    of_each = [{name for one in clusters for name in engines_of(model, one)} for model in models]
    named = set().union(*of_each) if all(of_each) else set()
    engines = [one for one in ENGINES if one in named]
    is_whole = bool(engines) and all(part.clusters for part in site.parts)
    return tuple(engines if is_whole else [*engines, ROOFLINE.name])


TimedBy = tuple[str, Site]
"""A runtime by its name, and the fabric on which it times replicas."""


def timers_of_parts(engines: Sequence[str], site: Site) -> list[TimedBy]:
    """Who times replicas on which fabric: layouts beside other runtimes time tori only."""
    is_alone = len(site.parts) == 1 or {*engines} == {ROOFLINE.name}
    return [
        (name, part)
        for part in site.parts
        for name in engines
        if is_alone or (name == ROOFLINE.name) != bool(part.clusters)
    ]


def check_nodes(name: str, site: Site) -> None:
    """Refuse a site without servers to a runtime that places on no torus.

    Raises:
        RequestError: the site is a torus.
    """
    if not site.clusters:
        fact = f"places replicas on nodes, and `{site.name}` is a torus"
        remedy = f"write `--engine {ROOFLINE.name}`"
        raise RequestError([Problem(where="--engine", value=name, fact=fact, remedy=remedy)])


def without_layouts(engines: Sequence[str], site: Site) -> Iterator[Problem]:
    """Engines that are named for servers alone, and leave tori to nobody."""
    has_tori = not all(part.clusters for part in site.parts)
    if has_tori and engines and ROOFLINE.name not in engines:
        fact = f"times no replica on a torus, as `{site.name}` has"
        names = [*engines, ROOFLINE.name] if site.clusters else [ROOFLINE.name]
        remedy = f"write `--engine {','.join(names)}`"
        yield Problem(where="--engine", value=",".join(engines), fact=fact, remedy=remedy)
