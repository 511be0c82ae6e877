"""Replicas on servers: their parts in nodes, leaves and the pool, and the links of their groups."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from math import inf

from planner.results.placements import Channel, KindUse, Rank, Replica, RunConfig
from planner.specs.ask.placement import GroupCost, PlacementRequest, Serve
from planner.specs.files.pools import PoolSpec
from planner.specs.records import devices
from planner.specs.records.graphs import GraphSpec
from planner.specs.records.runtimes import ROOFLINE
from planner.verifier.certificates import ON_NODES, RECOUNTED
from planner.verifier.findings import TOLERANCE, Finding, Invalid, Path
from planner.verifier.layouts.deployments import Context as Standing
from planner.verifier.layouts.meshes import Handing
from planner.verifier.placing.grounds import POOL, Kind, SiteIndex
from planner.verifier.placing.parts import (
    NODE,
    Group,
    GroupRead,
    Parts,
    Width,
    Widths,
    channel_of,
    narrower_than_counted,
    parts_of,
    pieces_of,
)
from planner.verifier.placing.sites import SCALE_OUT as NIC_TIER, SPINE as SPINE_TIER, Site

LEAF, STAGE, WHOLE = "leaf", "stage", "pool"
SPANS = (NODE, LEAF, STAGE, WHOLE)
MOST_DEVICES = 64  # of one replica, where nothing else is asked
SCALE_UP, NIC, UPLINK = "scale_up", "nic", "spine"


class FabricStand:
    """Servers below leaves and a spine, or any graph, in the state of the request.

    Args:
        spec: those that are placed on.
        site: the same, in that state.
    """

    counts = ON_NODES
    checks: tuple[str, ...] = (
        "every rank on a free device of its own",
        "every group's bandwidth read off the paths of the graph",
        RECOUNTED,
        "demands, replicas and limits added up from the replicas",
    )

    def __init__(self, request: PlacementRequest, spec: PoolSpec | GraphSpec, site: Site) -> None:
        self._request, self._spec = request, spec
        # a function says what groups of devices cost, a table what nodes, leaves and the pool do
        self._asked = {one.devices: one for one in request.costs if one.devices}
        # which devices are a node or a leaf is read off the links, whoever says what these cost
        self._ground = SiteIndex(site, self._table(SiteIndex(site)) if request.costs else None)
        self._bases = {kind: self._base(kind) for kind in self._ground.kinds}
        self._widths = Widths(site.vertices, self._ground.fair_edges())
        self._wire = cache(self._read_wire)
        self.name = self._spec.name
        self.title = self._spec.title if isinstance(self._spec, PoolSpec) else self._spec.name

    def _table(self, ground: SiteIndex) -> dict[str, GroupCost]:
        """Costs by node, leaf and pool: of a table, or of what a function said of their devices."""
        costs = {one.name: one for one in self._request.costs if one.name}
        domains: dict[str, list[str]] = {}
        for node in ground.nodes:
            free = [name for name in node.devices if ground.is_free(name)]
            domains[node.name] = free
        for node in ground.nodes:
            for key in (ground.leaf_names[node.leaf], POOL):
                domains.setdefault(key, []).extend(domains[node.name])
        for key, names in domains.items():
            if tuple(names) in self._asked:
                costs[key] = self._asked[tuple(names)]
        return costs

    def _base(self, kind: Kind) -> devices.ClusterSpec:
        """The cluster of a kind as if all were well; of a graph, what its links say."""
        spec = self._spec
        if isinstance(spec, PoolSpec):
            return {group.name: group.cluster for group in spec.groups}[kind.group]
        device, ground = spec.devices[kind.device], self._ground
        if kind.hbm_bytes:
            device = replace(device, hbm_bytes=kind.hbm_bytes)
        able = [ground.ability(name) for name in filter(ground.is_free, ground.devices_of(kind))]
        up = max((one.scale_up for one in able if one.scale_up < inf), default=1.0)
        waits = ground.latencies(kind)
        fabric = devices.NodesFabric(
            n_nodes=1,
            n_devices_per_node=max(len(node.devices) for node in ground.nodes_of(kind)),
            scale_up_bytes_per_s=up,
            scale_up_latency_s=waits.near,
            scale_up_fraction=1.0,
            # nothing leaves a node without adapters, and a fabric has some bandwidth
            scale_out_bytes_per_s=max((one.nic for one in able), default=0.0) or up,
            scale_out_latency_s=waits.far,
            scale_out_fraction=1.0,
            activation_network="tree",
            bulk_network="tree",
        )
        return devices.ClusterSpec(
            name=spec.name,
            title=spec.name,
            device=device,
            fabric=fabric,
            usd_per_hour=device.usd_per_hour,
        )

    @property
    def provenance(self) -> tuple[devices.Provenance, ...]:
        bases = self._bases.values()
        lists = [*(one.provenance for one in bases), *(one.device.provenance for one in bases)]
        return tuple(value for values in lists for value in values)

    def is_free(self, device: str) -> bool | None:
        """Whether a device is free; None of what is no device."""
        return self._ground.is_free(device) if device in self._ground.home else None

    def kind_name(self, device: str) -> str:
        return self._ground.home[device].kind.name

    def loads_bytes_per_s(self, device: str) -> float:
        """What a device loads or sends over its own link; 0 of what is not free."""
        return self._ground.ability(device).nic if self.is_free(device) else 0.0

    def leaf_name(self, device: str) -> str:
        return self._ground.leaf_names[self._ground.home[device].leaf]

    def own_bytes_per_s(self, kind: str) -> float:
        """Of the narrowest device of a kind: in the one node there is, or its adapters."""
        return self._wire(kind)[0]

    def wire_bytes_per_s(self, kind: str) -> float:
        """The same, and to other leaves no more than its share of the links up."""
        return self._wire(kind)[1]

    def _read_wire(self, kind: str) -> tuple[float, float]:
        ground = self._ground
        free = list(filter(ground.is_free, ground.home))
        able = [ground.ability(name) for name in free if self.kind_name(name) == kind]
        fabric = {it.name: one for it, one in self._bases.items()}[kind].fabric
        assert isinstance(fabric, devices.NodesFabric)
        if len({ground.home[name].name for name in free}) == 1:
            # caches never leave the one node
            inside = min(one.scale_up for one in able) * fabric.scale_up_fraction
            return inside, inside
        own = min(one.nic for one in able)
        several = len({ground.home[name].leaf for name in free}) > 1
        far = min(own, min(one.spine for one in able)) if several else own
        return own * fabric.scale_out_fraction, far * fabric.scale_out_fraction

    def uplinks_bytes_per_s(self) -> dict[str, float]:
        """Of leaves with free devices, where there are several."""
        ground, site = self._ground, self._ground.site
        switches: dict[int, set[str]] = {}
        fractions: dict[int, float] = {}
        for node in ground.nodes:
            fabric = self._bases[node.kind].fabric
            assert isinstance(fabric, devices.NodesFabric)
            for name in node.devices:
                if ground.is_free(name):
                    above = {switch for switch, _ in site.up(name, NIC_TIER)}
                    switches.setdefault(node.leaf, set()).update(above)
                    least = min(fractions.get(node.leaf, 1.0), fabric.scale_out_fraction)
                    fractions[node.leaf] = least
        if len(switches) < 2:
            return {}
        # switches in order: sums of floats hang on it
        return {
            ground.leaf_names[leaf]: fractions[leaf]
            * sum(edge.bytes_per_s for one in sorted(some) for _, edge in site.up(one, SPINE_TIER))
            for leaf, some in switches.items()
        }

    def kinds(self, used: Mapping[str, int]) -> tuple[KindUse, ...]:
        """Devices by kind, given how many of each are used."""
        ground = self._ground
        return tuple(
            KindUse(
                kind=kind.name,
                device=kind.device,
                n_devices=len(ground.devices_of(kind)),
                n_free=sum(map(ground.is_free, ground.devices_of(kind))),
                n_used=used.get(kind.name, 0),
            )
            for kind in ground.kinds
        )

    def cluster_of(self, recipe: RunConfig, demand: Serve) -> tuple[devices.ClusterSpec, Standing]:
        """Nodes of the devices that lie together, as wide and as fast as the recipe counts on."""
        kind = next((kind for kind in self._bases if kind.name == recipe.kind), None)
        if kind is None:
            raise Invalid("is no kind of the cluster", path=("kind",), says=recipe.kind)
        if recipe.span not in SPANS:
            raise Invalid(f"is none of {', '.join(SPANS)}", path=("span",), says=recipe.span)
        counted = _counted(recipe)
        base, waits = self._bases[kind], self._ground.latencies(kind)
        fabric = base.fabric
        assert isinstance(fabric, devices.NodesFabric)
        pieces, inside = pieces_of(recipe), recipe.span == NODE
        sizes = [len(node.devices) for node in self._ground.nodes_of(kind)] if inside else pieces
        # only a span of the pool sends over the spine what it sends between nodes
        wire, far = {WHOLE: (UPLINK, waits.spine)}.get(recipe.span, (NIC, waits.far))
        made = replace(
            _narrowed(fabric, counted[SCALE_UP]),
            n_nodes=1 if inside else len(pieces),
            n_devices_per_node=max(sizes),
            scale_out_bytes_per_s=counted[wire] or fabric.scale_out_bytes_per_s,
            scale_out_latency_s=fabric.scale_out_latency_s if inside else far,
        )
        handing = None
        # a stage stays in its leaf: what stages hand on is all that crosses the spine
        if recipe.span == STAGE:
            rate = counted[UPLINK] * made.scale_out_fraction
            handing = Handing(bytes_per_s=rate, hop_s=waits.spine)
        device = slowed(base.device, recipe.speed_fraction)
        return replace(base, device=device, fabric=made), Standing(handing=handing)

    def replica(
        self, says: Replica, recipe: RunConfig, name: str, wrong: list[Finding], path: Path
    ) -> Replica:
        """The replica with its nodes, leaves and channels read off the graph."""
        parts = parts_of(says, recipe)
        ground = self._ground
        wrong += self._misplaced(says, recipe, parts, path)
        ranks: list[Rank] = []
        for (stage, across, inside), device in zip(parts.places(), parts.devices, strict=True):
            ranks.append(
                Rank(
                    rank=len(ranks),
                    device=device,
                    node=ground.home[device].name,
                    leaf=ground.shown_leaf(device),
                    stage=stage,
                    axes=(inside, across),
                )
            )
        channels = tuple(self._channels(says, recipe, parts))
        wrong += narrower_than_counted(channels, path)
        return replace(
            says,
            name=name,
            nodes=tuple(dict.fromkeys(rank.node for rank in ranks)),
            leaves=tuple(dict.fromkeys(rank.leaf for rank in ranks if rank.leaf)),
            ranks=tuple(ranks),
            channels=channels,
        )

    def _misplaced(
        self, says: Replica, recipe: RunConfig, parts: Parts, path: Path
    ) -> Iterator[Finding]:
        """Devices that are less than counted on, and a replica that lies where it may not."""
        for j, rank in enumerate(says.ranks):
            for fact in self._short_of(rank.device, recipe):
                yield Finding(path=(*path, "ranks", str(j), "device"), says=rank.device, fact=fact)
        for fact in self._scattered(recipe, parts):
            yield Finding(path=(*path, "ranks"), says=says.name, fact=fact)
        if self._request.most_devices is None and len(says.ranks) > MOST_DEVICES:
            fact = f"are more than the {MOST_DEVICES} that a replica may have"
            yield Finding(path=(*path, "ranks"), says=len(says.ranks), fact=fact)

    def _short_of(self, name: str, recipe: RunConfig) -> Iterator[str]:
        """What a device lacks of what a recipe counts on: its kind, its speed, its links."""
        kind = self.kind_name(name)
        if kind != recipe.kind:
            yield f"is of the kind {kind}"
        if self._ground.site.vertices[name].speed_fraction < recipe.speed_fraction:
            yield "is slower than counted on"
        able = self._ground.ability(name)
        for what, has in zip((SCALE_UP, NIC, UPLINK), able, strict=True):
            if has < recipe.counted_bytes_per_s[what] * (1 - TOLERANCE):
                yield f"sends {has!r} bytes/s over its {what}, less than is counted on"

    def _scattered(self, recipe: RunConfig, parts: Parts) -> Iterator[str]:
        """Devices that are not together where the span, or the engine, has them."""
        home = self._ground.home
        if any(map(self._leaves_node, parts.pieces)):
            yield "has devices in several nodes that share one"
        everything = parts.devices
        shares = Counter(home[name].name for name in everything).values()
        if recipe.engine != ROOFLINE.name and len({*shares}) > 1:
            yield f"has {sorted(shares)} devices on its nodes, and engines start equal shares"
        in_leaf = {LEAF: [everything], STAGE: parts.stages}.get(recipe.span, [])
        if any(len({home[name].leaf for name in names}) > 1 for names in in_leaf):
            yield f"lies on several leaves, with a span of one {recipe.span}"

    def _channels(self, says: Replica, recipe: RunConfig, parts: Parts) -> Iterator[Channel]:
        """Of each axis the group with the narrowest path between its devices."""
        counted = _counted(recipe)
        near, nic, spine = counted[SCALE_UP], counted[NIC], counted[UPLINK]
        wide, handed = {
            NODE: (near, near),
            LEAF: (nic, nic),
            STAGE: (nic, spine),
            WHOLE: (spine, spine),
        }[recipe.span]
        claims = {channel.axis: channel for channel in says.channels}
        for axis, groups in parts.groups():
            widths = [self._width(group, is_inside=axis == "inside") for group in groups]
            # what no link is known of is told by the ends of the group
            read = [
                GroupRead(group, width.link or (group[0], group[-1]), width.bytes_per_s)
                for group, width in zip(groups, widths, strict=True)
            ]
            # pieces are in one node, so what stays in them counts on its links, whatever the axis
            is_near = all(map(parts.are_together, groups))
            counts_on = near if is_near else handed if axis == "stages" else wide
            yield channel_of(axis, read, counts_on, claims, self._may_be)

    def _width(self, group: Group, *, is_inside: bool) -> Width:
        """A group's bandwidth: of its paths, and where it leaves its node of each own adapter."""
        if self._request.costs:
            return Width(bytes_per_s=self._cost(group))
        width = self._widths.of(group)
        if not is_inside and self._leaves_node(group):
            # paths may lead out by adapters of other devices of the node; each sends by its own
            for name in group:
                own = self._ground.own_link(name)
                if own is not None and own[0] < width.bytes_per_s:
                    width = Width(bytes_per_s=own[0], link=own[1])
        return width

    def _leaves_node(self, group: Group) -> bool:
        return len({self._ground.home[name].name for name in group}) > 1

    def _cost(self, group: Group) -> float:
        """What a function said of a group; or of a table, what its node, leaf or pool has."""
        if self._asked:
            said = self._asked.get(group)
            if said is None:
                raise Invalid("has a group whose cost was never asked for", says=group[0])
            return said.bytes_per_s
        home, able = self._ground.home, [self._ground.ability(name) for name in group]
        if len({home[name].name for name in group}) == 1:
            return min(one.scale_up for one in able)
        if len({home[name].leaf for name in group}) == 1:
            return min(one.nic for one in able)
        return min(one.spine for one in able)

    def _may_be(self, claim: Channel, width: GroupRead) -> bool:
        """Whether a link is a bottleneck of its group, if not the one that was met first."""
        if self._request.costs:  # of a group as a whole
            return claim.link == width.link
        if width.bytes_per_s == self._widths.of(claim.devices).bytes_per_s:
            return self._widths.may_be(claim.link, claim.devices)
        own = self._ground.own_link(claim.link[0])
        return claim.link[0] in claim.devices and own == (width.bytes_per_s, claim.link)


def _counted(recipe: RunConfig) -> Mapping[str, float]:
    """Bandwidths that a recipe counts on.

    Raises:
        Refused: they are not those of servers.
    """
    names = (SCALE_UP, NIC, UPLINK)
    if tuple(recipe.counted_bytes_per_s) != names:
        fact = f"is not said of {', '.join(names)}"
        says = ", ".join(recipe.counted_bytes_per_s)
        raise Invalid(fact, path=("counted_bytes_per_s",), says=says)
    if not 0 < recipe.speed_fraction <= 1:
        fact = "is no share of a speed"
        raise Invalid(fact, path=("speed_fraction",), says=recipe.speed_fraction)
    unused = {NODE: (NIC, UPLINK), LEAF: (UPLINK,), STAGE: (), WHOLE: (NIC,)}[recipe.span]
    for name, width in recipe.counted_bytes_per_s.items():
        if width < 0 or (name in unused and width):
            fact = "is below nothing" if width < 0 else f"is of no use to a span of {recipe.span}"
            raise Invalid(fact, path=("counted_bytes_per_s", name), says=width)
    return recipe.counted_bytes_per_s


def slowed(device: devices.DeviceSpec, fraction: float) -> devices.DeviceSpec:
    """A device that computes and reads its memory at a fraction of its speed."""
    peaks = {name: rate * fraction for name, rate in device.peak_flop_per_s.items()}
    rate = device.hbm_bytes_per_s * fraction
    return replace(device, peak_flop_per_s=peaks, hbm_bytes_per_s=rate)


def _narrowed(fabric: devices.NodesFabric, scale_up_bytes_per_s: float) -> devices.NodesFabric:
    """Nodes inside which devices send so much; what was measured of their collectives, too."""
    share = scale_up_bytes_per_s / fabric.scale_up_bytes_per_s
    # a device alone in its node is infinitely wide, and sends nothing there
    if share in (1.0, inf):
        return fabric
    pair, measured = fabric.scale_up_pair_bytes_per_s, fabric.scale_up_measured
    return replace(
        fabric,
        scale_up_bytes_per_s=scale_up_bytes_per_s,
        scale_up_pair_bytes_per_s=None if pair is None else pair * share,
        scale_up_measured=None if measured is None else _slower(measured, share),
    )


def _slower(measured: devices.MeasuredCollectives, share: float) -> devices.MeasuredCollectives:
    def at(fits: devices.TwoRegimes) -> devices.TwoRegimes:
        return replace(
            fits,
            short_bytes_per_s=tuple(rate * share for rate in fits.short_bytes_per_s),
            long_bytes_per_s=tuple(rate * share for rate in fits.long_bytes_per_s),
        )

    return devices.MeasuredCollectives(
        **{one.name: at(getattr(measured, one.name)) for one in fields(measured)}
    )
