"""Values with their sources, lists of names, and what tells models and pools apart in a line."""

from collections.abc import Iterable, Sequence

from planner.quantities.table import limited_text
from planner.quantities.tables import packaged_table
from planner.quantities.units import show
from planner.report.documents.blocks import Document, Note, Section, Table, section
from planner.report.words import amount, percent, plural
from planner.specs.files.pools import AnyFabric, GroupSpec, parts_of
from planner.specs.records.devices import (
    ClusterSpec,
    LinkedFabric,
    ModelSpec,
    NodesFabric,
    Provenance,
)

Figures = Sequence[tuple[str, str, str]]  # label, value, key of its source


def described(
    name: str, title: str, sections: Iterable[Section], closing: Iterable[str]
) -> Document:
    """One thing: its name, what is known of it, and how much of that nobody published."""
    line = f"{name}: {title}" if title != name else name
    last = (section("", Note(text), is_bare=True) for text in closing)
    return Document(title=name, line=line, sections=(*sections, *last))


def figures(title: str, rows: Figures, provenance: Sequence[Provenance]) -> Section:
    """Label, value, source; a value without a published source says `assumed`."""
    source = {value.key: value.source for value in provenance}
    told = [(label, text, source.get(key, "")) for label, text, key in rows if text]
    return section(title, Table(rows=told))


def figures_of(kind: str, record: object) -> Figures:
    """Label, value and key of the source of the fields that `words.toml` lists for a kind.

    Of a field that is None the value is empty.
    """
    return [
        (label, value_text(getattr(record, field), dimension), key)
        for label, field, dimension, key in packaged_table("report/words.toml")["figures"][kind]
    ]


def value_text(value: float | str | None, dimension: str) -> str:
    """A value in its dimension, in percent of a share, or in a text around it; empty of None."""
    if value is None:
        return ""
    if isinstance(value, str) or "{}" in dimension:
        return dimension.format(value if isinstance(value, str) else f"{value:g}")
    shown = {"share": percent, "count": amount}.get(dimension)
    return shown(value) if shown else limited_text(value, dimension)


def assumed_text(provenance: Sequence[Provenance]) -> str:
    """How many values there are, and how many of them nobody published."""
    n_assumed = sum(value.is_assumed for value in provenance)
    return f"{plural(len(provenance), 'value')}, {n_assumed or 'none'} assumed"


def model_facts(model: ModelSpec) -> str:
    """`671 billion (37.6 billion active), 8 + 1 of 256 experts, latent attention, MTP; fp8`."""
    size = amount(model.n_params_published)
    if model.n_active_params_published:
        size += f" ({amount(model.n_active_params_published)} active)"
    predicts = "MTP" if model.mtp else ""
    parts = [size, *filter(None, (experts_text(model), attention_text(model), predicts))]
    caches = model.kv_formats or (model.kv_format,)
    formats = f"{' '.join(model.weights_formats)}, KV {' '.join(caches)}"
    return f"{', '.join(parts)}; {formats}; {_assumed(model.provenance)}"


def experts_text(model: ModelSpec) -> str:
    """`8 + 1 of 256 experts`: routed and shared ones that a token visits."""
    moe = model.moe
    if moe is None:
        return ""
    shared = f" + {moe.n_shared_experts}" if moe.n_shared_experts else ""
    return f"{moe.n_active_experts}{shared} of {moe.n_experts} experts"


def attention_text(model: ModelSpec) -> str:
    """How keys and values are shared, and what does not attend to everything."""
    if model.mla:
        kind = "latent attention"
    elif model.n_kv_heads == model.n_heads:
        kind = "multi-head attention"
    elif model.n_kv_heads == 1:
        kind = "multi-query attention"
    else:
        kind = f"{model.n_kv_heads} KV heads"
    if model.window:
        kind += f", a window of {model.window.n_tokens} tokens in {model.window.n_layers} layers"
    return kind


def cluster_facts(cluster: ClusterSpec) -> str:
    """`H100: 8 a node at 450 GB/s, 50 GB/s between nodes; $2.95/h, 2026-08`."""
    device = cluster.device
    memory = f"{show(device.hbm_bytes, 'B')} each"
    price = f"{show(cluster.usd_per_hour, 'USD/h')} a device, {device.price_date or 'undated'}"
    provenance = (*cluster.provenance, *device.provenance)
    return f"{memory}, {_network(cluster)}; {price}; {_assumed(provenance)}"


def pool_facts(pool: AnyFabric) -> str:
    """`2 × h100-nvl8-x1 (16 H100), 32 nodes a leaf on 8 rails, 2:1 spine; 9 of 45 assumed`."""
    servers, tori = parts_of(pool)
    parts = [*map(group_text, servers.groups), *(torus.title for torus in tori)]
    return f"{'; '.join(parts)}; {_assumed(pool.provenance)}"


def group_text(group: GroupSpec) -> str:
    """Nodes of one kind, and the switches above them."""
    nodes = f"{plural(group.fabric.n_nodes, 'node')} of {group.fabric.n_devices_per_node}"
    rails = f" on {group.n_rails} rails" if group.n_rails > 1 else ""
    return (
        f"{nodes} {group.cluster.device.title}, {group.n_nodes_per_leaf} nodes a leaf{rails}, "
        f"{group.oversubscription:g}:1 spine"
    )


def _network(cluster: ClusterSpec) -> str:
    fabric = cluster.fabric
    if isinstance(fabric, NodesFabric):
        pair = fabric.scale_up_pair_bytes_per_s
        between = f" ({show(pair, 'B/s')} a pair)" if pair else ""
        return (
            f"{fabric.n_devices_per_node} a node at {show(fabric.scale_up_bytes_per_s, 'B/s')}"
            f"{between}, {show(fabric.scale_out_bytes_per_s, 'B/s')} between nodes, "
            f"{fabric.activation_network} collectives"
        )
    if isinstance(fabric, LinkedFabric):
        return f"{len(fabric.links)} links, {fabric.activation_network} collectives"
    return (
        f"links of {show(fabric.link_bytes_per_s, 'B/s')}, {fabric.activation_network} collectives"
    )


def _assumed(provenance: Sequence[Provenance]) -> str:
    n_assumed = sum(value.is_assumed for value in provenance)
    return f"{n_assumed or 'none'} of {len(provenance)} values assumed"
