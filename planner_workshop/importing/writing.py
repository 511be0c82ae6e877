"""Topologies of a cluster, as tables: what its text says with the line, all else assumed."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from planner.quantities.units import parse
from planner.specs.files.places import is_path
from planner.specs.files.reading import load_device
from planner.specs.files.tables import ASSUMED, Table
from planner_workshop.importing.pools import NodeKind, known, usual
from planner_workshop.importing.records import ClusterText, names, words


def said(value: object, source: str = ASSUMED, note: str = "", *, is_plain: bool = False) -> Table:
    """A value with its source; a plain one stands alone in a file, which has that as a comment."""
    entry = {"value": value, "source": source, "note": note}
    return {**entry, "is_plain": True} if is_plain else {k: v for k, v in entry.items() if v != ""}


def topology_table(path: str, kind: NodeKind, cluster: ClusterText, price: Table | None) -> Table:
    """The topology of like nodes behind switches, or of a slice of a torus."""
    spec, line, shape = load_device(kind.device), cluster.at(kind.first.line), kind.first.shape
    device = kind.device
    if is_path(device):  # a topology names the file of its device from where it is itself
        device = os.path.join(".", os.path.relpath(device, Path(path).parent))  # noqa: PTH118
    source = f"{line}: {kind.first.product}" if kind.first.product else words("given")
    node = f"slice {'×'.join(map(str, shape))} of" if shape else f"node of {kind.n_devices}"
    title = f"{len(kind.nodes)} × {node} {spec.title} ({{n_devices}} devices)"
    if shape:
        name, table = usual(kind.spec, "torus")
        shape = (*shape, 1, 1)[:3]
        fabric = {**_assumed(table["torus"], name), "shape": said(shape, line, is_plain=True)}
    else:
        fabric = _nodes(kind, cluster)
    return {
        "cluster": {
            "name": Path(path).stem,
            "title": title,
            "description": f"as {cluster.name} says",
            "device": said(device, source, is_plain=True),
            "like": usual(kind.spec, "torus" if shape else "nodes")[0],
        },
        **({"price": {"on_demand": price}} if price else {}),
        "torus" if shape else "nodes": fabric,
    }


def _assumed(table: Table, name: str) -> Table:
    """A part of a topology that ships, each of its values assumed of another one."""
    copy = {}
    for key, it in table.items():
        is_value = isinstance(it, dict) and "value" in it
        why = it["source"] if is_value else it
        note = f"as in {name}" + (f": {why}" if why != ASSUMED else "")
        if is_value:
            copy[key] = said(it["value"], note=note)
        elif key == "source":
            copy[key] = said(ASSUMED, note=note, is_plain=True)
        else:
            copy[key] = _assumed(it, name) if isinstance(it, dict) else it
    return copy


def _nodes(kind: NodeKind, cluster: ClusterText) -> Table:
    """What the text says of nodes, over what is usual of the device."""
    name, table = usual(kind.spec, "nodes")
    nodes = _assumed(table["nodes"], name)
    line, servers = cluster.at(kind.first.line), kind.nodes[0]
    nodes["n_nodes"] = said(len(kind.nodes), line, is_plain=True)
    each = f"{len(servers)} servers of {kind.first.n_devices} devices on one NVLink fabric"
    note = each if len(servers) > 1 else ""
    assumed = note or nodes["n_devices_per_node"]["note"]
    nodes["n_devices_per_node"] = (
        said(kind.n_devices, line, note) if kind.is_counted else said(kind.n_devices, note=assumed)
    )
    hosts = [it.host_bytes for node in kind.nodes for it in node if it.host_bytes]
    if hosts:
        memory = f"{min(hosts) * len(servers) / 1e9:.4g} GB"
        nodes["host"] = {"memory": said(memory, line, "of the smallest")}
    _say_links(nodes["scale_up"], kind, cluster)
    _say_ports(nodes["scale_out"], kind, cluster)
    _say_measured(nodes, kind, table["nodes"]["scale_up"]["bandwidth"]["value"])
    return nodes


def _bandwidth(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.6g} GB/s"


def _say_links(scale_up: Table, kind: NodeKind, cluster: ClusterText) -> None:
    """Rates of NVLink by the number of links that a matrix shows."""
    import networkx as nx

    rows = [[n for n in row if n] for row in cluster.n_links]
    most = known(kind.spec, "n_links")
    if not most or not any(rows):
        return  # bridges of devices on PCIe join pairs alone: a node is as slow as its slowest pair
    if not nx.is_connected(nx.from_numpy_array(np.array(cluster.n_links))):  # nor is this one
        name, table = usual(names()["unjoined"], "nodes")
        scale_up |= _assumed(table["nodes"]["scale_up"], name)
        why = f"NVLinks ({cluster.at(cluster.links_line)}) join groups of devices, and PCIe these: "
        scale_up["bandwidth"]["note"] = why + scale_up["bandwidth"]["note"]
        return
    usually = scale_up["bandwidth"]
    rate, line = parse(usually["value"], "B/s") / most, cluster.at(cluster.links_line)
    is_switched = max(map(sum, rows)) > most
    n_own = min(map(min, rows)) if is_switched else min(map(sum, rows))
    note = f"{n_own} NVLinks ({line}), each of {_bandwidth(rate)} {usually['note']}"
    scale_up["bandwidth"] = said(_bandwidth(n_own * rate), note=note)
    n_pair = min(map(min, rows))
    scale_up.pop("pair_bandwidth", None)
    if not is_switched and n_pair < n_own:
        n_apart = sum(len(rows) - 1 - len(row) for row in rows) // 2
        note = f"of {n_pair} ({line}); others have up to {max(map(max, rows))}, {n_apart} none"
        scale_up["pair_bandwidth"] = said(_bandwidth(n_pair * rate), note=note)


def _say_ports(scale_out: Table, kind: NodeKind, cluster: ClusterText) -> None:
    """What a device sends out of its node: its share of the ports of its server."""
    port, n_ports = (cluster.network.get(name) for name in ("port_bytes_per_s", "n_ports"))
    if n_ports is None:
        return
    usually, line = scale_out["bandwidth"], cluster.at(n_ports.line)
    share, shared = n_ports.value / (kind.first.n_devices or 1), f"{n_ports.value:g} ports a server"
    if port is None:
        rate = min(1.0, share) * parse(usually["value"], "B/s")
        note = f"{shared} ({line}), each {usually['note']}"
        scale_out["bandwidth"] = said(_bandwidth(rate), note=note)
    else:
        note = f"{shared}, {_bandwidth(port.value)} each"
        scale_out["bandwidth"] = said(_bandwidth(port.value * share), line, note)


def _say_measured(nodes: Table, kind: NodeKind, usual_rate: str) -> None:
    """Collectives as measured in usual servers, where these have the same links; or else a tree."""
    up = nodes["scale_up"]
    is_like = parse(up["bandwidth"]["value"], "B/s") == parse(usual_rate, "B/s")
    for entry in up.get("measured", {}).values():
        n_held = sum(n <= kind.n_devices for n in entry["n_devices"])
        is_like &= n_held > 0 and "pair_bandwidth" not in up
        entry |= {key: it[:n_held] for key, it in entry.items() if key != "source"}
    if not is_like and up.pop("measured", None):
        for name in ("activation_network", "bulk_network"):
            nodes[name] = said("tree", note="nothing was measured in such a node")


def values_of(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Table]]:
    """Values with a source, by dotted key; those of entries of a list by the same key."""
    for key, it in table.items():
        for inner in it if isinstance(it, list) else [it]:
            if isinstance(inner, dict) and "value" in inner:
                yield f"{before}{key}".removesuffix(".source"), inner
            elif isinstance(inner, dict):
                yield from values_of(inner, f"{before}{key}.")
