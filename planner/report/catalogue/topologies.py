"""One topology, of like devices or of kinds of nodes below leaves, with its sources."""

from planner.quantities.units import show
from planner.report.catalogue.figures import Figures, assumed_text, described, figures, figures_of
from planner.report.documents.blocks import Document, Pairs, Section, section
from planner.report.words import HINTS, TIED, percent, plural
from planner.specs.files.pools import AnyFabric, GroupSpec, PoolSpec, parts_of
from planner.specs.records.devices import (
    ClusterSpec,
    DeviceSpec,
    LinkedFabric,
    NodesFabric,
    TorusFabric,
    TwoRegimes,
)

_MEASURED = "nodes.scale_up.measured"


def cluster_document(cluster: ClusterSpec) -> Document:
    """Pool, network, parts and device, each number with its source."""
    device, fabric = cluster.device, cluster.fabric
    rent = show(cluster.usd_per_hour * cluster.n_devices, "USD/h")
    each = show(cluster.usd_per_hour, "USD/h")
    pool = [
        ("devices", f"{cluster.n_devices} × {device.title}"),
        ("rent", f"{rent}, {each} a device, price {device.price_date or 'undated'}"),
    ]
    if isinstance(fabric, TorusFabric):
        network, parts = figures_of("torus", fabric), _slices(fabric)
    elif isinstance(fabric, NodesFabric):
        network, parts = _nodes(fabric), _domains(fabric)
    else:
        network, parts = _linked(fabric), _groups(fabric)
    provenance = (*cluster.provenance, *device.provenance)
    return described(
        cluster.name,
        cluster.title,
        (
            section("pool", Pairs(pool)),
            figures("network, one way", network, provenance),
            section("parts", Pairs(parts)),
            figures("device", device_figures(device), provenance),
        ),
        [assumed_text(provenance)],
    )


def device_figures(device: DeviceSpec) -> Figures:
    """Label, value and key of the source of everything that a device's file says."""
    peaks = [
        (f"peak {name}", show(rate, "FLOP/s"), f"peak.{name}")
        for name, rate in device.peak_flop_per_s.items()
    ]
    return [*peaks, *figures_of("device", device)]


def _slices(fabric: TorusFabric) -> list[tuple[str, str]]:
    from planner.topology.slices import n_positions, slice_shapes, slice_wraps

    shapes = slice_shapes(fabric)
    closed = [s for s in shapes if any(slice_wraps(fabric, s))]
    listed = [f"{'×'.join(map(str, s))}{TIED}({n_positions(fabric, s)})" for s in shapes]
    rings = f"{len(closed)} closed into rings"
    return [
        ("slices", f"{plural(len(shapes), 'shape')}, {rings}; places in brackets"),
        ("shapes", ", ".join(listed)),
    ]


def _nodes(fabric: NodesFabric) -> Figures:
    return [*figures_of("nodes", fabric), *_measured(fabric), *_protocols(fabric)]


def _measured(fabric: NodesFabric) -> Figures:
    """The faster of two forms for each collective, in the largest group that was measured."""
    if fabric.scale_up_measured is None:
        return []
    return [
        (f"  {name} of {fits.n_devices[-1]}", _forms(fits), f"{_MEASURED}.{key}.n_devices")
        for name, key, fits in (
            ("all-reduce", "all_reduce", fabric.scale_up_measured.all_reduce),
            ("all-gather", "all_gather", fabric.scale_up_measured.all_gather),
            ("reduce-scatter", "reduce_scatter", fabric.scale_up_measured.reduce_scatter),
            ("all-to-all", "all_to_all", fabric.scale_up_measured.all_to_all),
        )
    ]


def _forms(fits: TwoRegimes) -> str:
    short = _form(fits.short_latency_s[-1], fits.short_bytes_per_s[-1])
    return f"{short} or {_form(fits.long_latency_s[-1], fits.long_bytes_per_s[-1])}"


def _form(latency_s: float, bytes_per_s: float) -> str:
    return f"{show(latency_s, 's')} at {show(bytes_per_s, 'B/s')}"


def _protocols(fabric: NodesFabric) -> Figures:
    """Of each: a hop in a node and between nodes, the base, the share of the bandwidth."""
    return [
        (
            f"  {each.name}, {each.algorithm}",
            f"{show(each.scale_up_hop_s, 's')} + {show(each.scale_out_hop_s, 's')} a hop, "
            f"base {show(each.base_s, 's')}, {percent(each.bandwidth_fraction)}",
            f"nodes.protocol[{i}].base",
        )
        for i, each in enumerate(fabric.protocols)
    ]


def _domains(fabric: NodesFabric) -> list[tuple[str, str]]:
    n_nodes, n_inside = plural(fabric.n_nodes, "node"), plural(fabric.n_devices_per_node, "device")
    pair = fabric.scale_up_pair_bytes_per_s
    inside = f"a link of {show(pair, 'B/s')} for each pair" if pair else "all pairs at full rate"
    return [("domains", f"{n_nodes} of {n_inside}, {inside} inside")]


def _linked(fabric: LinkedFabric) -> Figures:
    rates = sorted({link.bytes_per_s for link in fabric.links})
    ends = dict.fromkeys(show(rate, "B/s") for rate in (*rates[:1], *rates[-1:]))
    span = f"{len(fabric.links)}, {' to '.join(ends)}" if rates else "none"
    return [("links", span, "link[0].bandwidth"), *figures_of("linked", fabric)]


def _groups(fabric: LinkedFabric) -> list[tuple[str, str]]:
    from planner.topology.widest import widest_groups

    listed = ", ".join(
        f"{len(group.devices)} at {show(group.bytes_per_s, 'B/s')}"
        for group in widest_groups(fabric)
        if len(group.devices) > 1
    )
    return [("groups", listed or "no two devices are linked")]


def pool_document(pool: AnyFabric) -> Document:
    """The pool, and of each kind of nodes its network and switches, each number with its source."""
    servers, tori = parts_of(pool)
    clusters = [*(group.cluster for group in servers.groups), *tori]
    kinds = [plural(len(servers.groups), "kind") + " of nodes"] * bool(servers.groups)
    kinds += [plural(len(tori), "torus", "tori")] * bool(tori)
    head = [
        ("devices", f"{pool.n_devices} in {' and '.join(kinds)}"),
        ("rent", show(sum(it.usd_per_hour * it.n_devices for it in clusters), "USD/h")),
    ]
    groups = [block for group in servers.groups for block in _group(servers, group)]
    groups += [_torus_beside(torus) for torus in tori]
    places = HINTS["pool"].format(name=pool.name)
    closing = [places, assumed_text(pool.provenance)]
    return described(pool.name, pool.title, (section("pool", Pairs(head)), *groups), closing)


def _torus_beside(torus: ClusterSpec) -> Section:
    assert isinstance(torus.fabric, TorusFabric)
    each = show(torus.usd_per_hour, "USD/h")
    chips = f"{torus.title}, {show(torus.device.hbm_bytes, 'B')} and {each} each"
    rows: Figures = [("chips", chips, "torus.shape"), *figures_of("torus", torus.fabric)]
    return figures(f"torus {torus.name}", rows, torus.provenance)


def _group(pool: PoolSpec, group: GroupSpec) -> tuple[Section, Section]:
    """Nodes of one kind, and the switches above them."""
    nodes = section(f"nodes {group.name}", Pairs(_group_nodes(group)))
    return nodes, _switches(pool, group)


def _group_nodes(group: GroupSpec) -> list[tuple[str, str]]:
    fabric, device = group.fabric, group.cluster.device
    inside = show(fabric.scale_up_bytes_per_s, "B/s")
    between = show(fabric.scale_out_bytes_per_s, "B/s")
    each = show(group.cluster.usd_per_hour, "USD/h")
    nodes = f"{plural(fabric.n_nodes, 'node')} of {fabric.n_devices_per_node} × {device.title}"
    return [
        ("nodes", f"{nodes}, {show(device.hbm_bytes, 'B')} and {each} each"),
        ("a device", f"{inside} in its node, {between} to its leaf"),
        ("more", f"`plan topologies {group.cluster.name}`"),
    ]


def _switches(pool: PoolSpec, group: GroupSpec) -> Section:
    leaves = f"{plural(group.n_leaves, 'leaf', 'leaves')} of {group.n_nodes_per_leaf} nodes"
    key = f"group.{group.name}"
    rows: Figures = [
        ("leaves", leaves, f"{key}.n_nodes_per_leaf"),
        ("rails", f"{group.n_rails} a leaf", f"{key}.n_rails"),
        ("spine", f"{group.oversubscription:g}:1", f"{key}.oversubscription"),
        ("  latency", show(group.spine_latency_s, "s"), f"{key}.spine_latency"),
    ]
    return figures(f"switches above nodes {group.name}", rows, pool.provenance)
