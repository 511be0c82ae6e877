"""Replicas on servers and tori side by side: each is judged as its own fabric judges it."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping

from planner.results.placements import KindUse, Replica, RunConfig
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.files.pools import MixedPoolSpec
from planner.specs.records.devices import ClusterSpec, Provenance
from planner.specs.records.roles import TOGETHER
from planner.specs.records.runtimes import ROOFLINE
from planner.verifier.certificates import Counts
from planner.verifier.findings import Finding, Invalid, Path
from planner.verifier.layouts.deployments import Context as Standing
from planner.verifier.placing.fabrics import FabricStand
from planner.verifier.placing.sites import Site
from planner.verifier.placing.tori import TorusStand

AnyStand = FabricStand | TorusStand


class MixedStand:
    """Servers and tori in the state of the request.

    Args:
        site: all of them; what a torus is of, its name and a slash begin.
    """

    def __init__(self, request: PlacementRequest, site: Site) -> None:
        spec = request.site
        assert isinstance(spec, MixedPoolSpec)
        self.name, self.title, self._engines = spec.name, spec.title, request.engines
        on_torus = {
            name: torus.name
            for torus in spec.tori
            for name in site.vertices
            if name.startswith(f"{torus.name}/")
        }
        stands: list[AnyStand] = []
        if spec.servers.groups:
            servers = _some(site, {name for name in site.vertices if name not in on_torus})
            stands.append(FabricStand(request, spec.servers, servers))
        for torus in spec.tori:
            own = _some(site, {name for name, of in on_torus.items() if of == torus.name})
            stands.append(TorusStand(request, torus, own, kind=torus.name))
        self._stands = stands
        self._of_kind = {kind.kind: stand for stand in stands for kind in stand.kinds({})}

    @property
    def counts(self) -> Counts:
        """Of parts together nothing adds up: places, ways and columns are each of some."""
        reasons = ChainMap(*(dict(stand.counts.reasons) for stand in self._stands))
        return Counts(reasons=reasons, adds_up=lambda says: (0, 0))

    @property
    def checks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(check for stand in self._stands for check in stand.checks))

    @property
    def provenance(self) -> tuple[Provenance, ...]:
        return tuple(value for stand in self._stands for value in stand.provenance)

    def _on(self, device: str) -> AnyStand | None:
        """What a device is of; None of what is no device."""
        return next((it for it in self._stands if it.is_free(device) is not None), None)

    def is_free(self, device: str) -> bool | None:
        stand = self._on(device)
        return None if stand is None else stand.is_free(device)

    def kind_name(self, device: str) -> str:
        stand = self._on(device)
        return "" if stand is None else stand.kind_name(device)

    def leaf_name(self, device: str) -> str:
        stand = self._on(device)
        return "" if stand is None else stand.leaf_name(device)

    def loads_bytes_per_s(self, device: str) -> float:
        stand = self._on(device)
        return 0.0 if stand is None else stand.loads_bytes_per_s(device)

    def own_bytes_per_s(self, kind: str) -> float:
        return self._of_kind[kind].own_bytes_per_s(kind)

    def wire_bytes_per_s(self, kind: str) -> float:
        return self._of_kind[kind].wire_bytes_per_s(kind)

    def uplinks_bytes_per_s(self) -> dict[str, float]:
        """None: caches stay in the replica that makes them."""
        return {}

    def kinds(self, used: Mapping[str, int]) -> tuple[KindUse, ...]:
        return tuple(kind for stand in self._stands for kind in stand.kinds(used))

    def cluster_of(self, recipe: RunConfig, demand: Serve) -> tuple[ClusterSpec, Standing]:
        """The cluster of its fabric, if that times it so: layouts leave servers to others."""
        stand = self._of_kind.get(recipe.kind)
        if stand is None:
            raise Invalid("is no kind of the cluster", path=("kind",), says=recipe.kind)
        is_by_layouts = recipe.engine == ROOFLINE.name
        if isinstance(stand, FabricStand) and is_by_layouts and {*self._engines} != {ROOFLINE.name}:
            raise Invalid("times tori only, beside others", path=("engine",), says=recipe.engine)
        role = getattr(recipe.deployment, "role", TOGETHER)
        if role != TOGETHER:
            raise Invalid("hands caches over between fabrics", path=("role",), says=role)
        return stand.cluster_of(recipe, demand)

    def replica(
        self, says: Replica, recipe: RunConfig, name: str, wrong: list[Finding], path: Path
    ) -> Replica:
        """The replica on the fabric of its recipe, on which all of its ranks have to be."""
        stand = self._of_kind.get(recipe.kind)
        for j, rank in enumerate(says.ranks):
            if stand is None or stand.is_free(rank.device) is None:
                at = ("ranks", str(j), "device")
                raise Invalid(f"is none of {recipe.kind}", path=at, says=rank.device)
        assert stand is not None  # or a replica has no rank
        return stand.replica(says, recipe, name, wrong, path)


def _some(site: Site, names: set[str]) -> Site:
    """Some vertices of a site, in their order, and all links of these."""
    return Site(
        vertices={name: at for name, at in site.vertices.items() if name in names},
        links={name: beside for name, beside in site.links.items() if name in names},
    )
