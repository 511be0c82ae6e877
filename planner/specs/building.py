"""Checked files as records: values in SI units, each with its source listed beside them."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from planner.specs import schemas
from planner.specs.patterns import fill
from planner.specs.records import (
    ClusterSpec,
    DeviceSpec,
    Fabric,
    Link,
    LinkedFabric,
    MeasuredCollectives,
    MlaShape,
    ModelSpec,
    MoeShape,
    MtpShape,
    NcclProtocol,
    NodesFabric,
    Provenance,
    TorusFabric,
    TwoRegimes,
    WindowShape,
)
from planner.specs.served_formats import Checkpoint
from planner.specs.variants import Variant


def build_device(file: schemas.DeviceFile) -> DeviceSpec:
    memory, attainable, price = file.memory, file.attainable, file.price.on_demand
    return DeviceSpec(
        name=file.device.name,
        title=file.device.title,
        peak_flop_per_s={number: peak.value for number, peak in file.peak.items()},
        hbm_bytes=memory.hbm.value,
        hbm_bytes_per_s=memory.hbm_bandwidth.value,
        reserve_bytes=memory.reserve.value,
        usd_per_hour=price.value,
        price_date=price.date,
        tdp_w=file.power.tdp.value if file.power else None,
        compute_fraction=attainable.compute_fraction.value,
        hbm_fraction=attainable.hbm_fraction.value,
        layer_overhead_s=attainable.layer_overhead.value,
        roofline_exponent=attainable.roofline_exponent.value,
        provenance=tuple(_provenance(file)),
    )


def build_cluster(file: schemas.ClusterFile, device: DeviceSpec) -> ClusterSpec:
    fabric = _fabric(file)
    return ClusterSpec(
        name=file.cluster.name,
        title=fill(file.cluster.title, {"n_devices": fabric.n_devices}),
        device=device,
        fabric=fabric,
        usd_per_hour=file.price.on_demand.value if file.price else device.usd_per_hour,
        provenance=tuple(_provenance(file)),
    )


def _fabric(file: schemas.ClusterFile) -> Fabric:
    if file.torus is not None:
        return _torus(file.torus)
    if file.nodes is not None:
        return _nodes(file.nodes)
    assert file.linked is not None  # coherence.cluster_problems
    return _linked(file.linked, file.link)


def _torus(torus: schemas.Torus) -> TorusFabric:
    a, b, c = torus.shape
    return TorusFabric(
        shape=(a, b, c),
        link_bytes_per_s=torus.link_bandwidth.value,
        hop_s=torus.hop.value,
        wrap_multiple=torus.wrap_multiple.value,
        slice_dims=tuple(torus.slice_dims.value),
        activation_network=torus.activation_network.value,
        bulk_network=torus.bulk_network.value,
        wraps_each_axis=torus.wraps_each_axis.value if torus.wraps_each_axis else False,
    )


def _nodes(nodes: schemas.Nodes) -> NodesFabric:
    pair, measured = nodes.scale_up.pair_bandwidth, nodes.scale_up.measured
    return NodesFabric(
        n_nodes=nodes.n_nodes,
        n_devices_per_node=nodes.n_devices_per_node.value,
        scale_up_bytes_per_s=nodes.scale_up.bandwidth.value,
        scale_up_latency_s=nodes.scale_up.latency.value,
        scale_up_fraction=nodes.scale_up.attainable_fraction.value,
        scale_out_bytes_per_s=nodes.scale_out.bandwidth.value,
        scale_out_latency_s=nodes.scale_out.latency.value,
        scale_out_fraction=nodes.scale_out.attainable_fraction.value,
        activation_network=nodes.activation_network.value,
        bulk_network=nodes.bulk_network.value,
        scale_up_pair_bytes_per_s=pair.value if pair else None,
        scale_up_measured=_measured(measured) if measured else None,
        protocols=tuple(_protocol(protocol) for protocol in nodes.protocol),
    )


def _measured(measured: schemas.Measured) -> MeasuredCollectives:
    return MeasuredCollectives(
        all_reduce=_two_regimes(measured.all_reduce),
        all_gather=_two_regimes(measured.all_gather),
        reduce_scatter=_two_regimes(measured.reduce_scatter),
        all_to_all=_two_regimes(measured.all_to_all),
    )


def _two_regimes(fits: schemas.TwoRegimes) -> TwoRegimes:
    return TwoRegimes(
        n_devices=tuple(fits.n_devices.value),
        short_latency_s=tuple(fits.short_latency.value),
        short_bytes_per_s=tuple(fits.short_bandwidth.value),
        long_latency_s=tuple(fits.long_latency.value),
        long_bytes_per_s=tuple(fits.long_bandwidth.value),
    )


def _protocol(protocol: schemas.NcclProtocol) -> NcclProtocol:
    return NcclProtocol(
        name=protocol.name,
        algorithm=protocol.algorithm.value,
        scale_up_hop_s=protocol.scale_up_hop.value,
        scale_out_hop_s=protocol.scale_out_hop.value,
        base_s=protocol.base.value,
        bandwidth_fraction=protocol.bandwidth_fraction.value,
    )


def _linked(linked: schemas.Linked, entries: list[schemas.LinkEntry]) -> LinkedFabric:
    links = (
        Link(a=link.a, b=link.b, bytes_per_s=link.bandwidth.value, latency_s=link.latency.value)
        for link in entries
    )
    return LinkedFabric(
        devices=tuple(linked.devices),
        links=tuple(links),
        activation_network=linked.activation_network.value,
        bulk_network=linked.bulk_network.value,
    )


def _is_said(flag: schemas.Sourced[bool] | None) -> bool:
    return flag is not None and flag.value


def build_model(file: schemas.ModelFile) -> ModelSpec:
    shape, formats, check = file.shape, file.formats, file.check
    served = shape.n_heads_served or shape.n_heads
    return ModelSpec(
        name=file.model.name,
        title=file.model.title,
        repository=file.model.repository,
        family=file.model.family,
        n_layers=shape.n_layers.value,
        d_model=shape.d_model.value,
        d_ff=shape.d_ff.value,
        n_heads=shape.n_heads.value,
        n_heads_served=served.value,
        n_kv_heads=shape.n_kv_heads.value,
        d_head=shape.d_head.value,
        vocab_size=shape.vocab_size.value,
        n_ffn_matrices=shape.n_ffn_matrices.value,
        block=shape.block.value,
        tied_embeddings=shape.tied_embeddings.value,
        norms_heads=_is_said(shape.norms_heads),
        n_context_tokens=shape.context.value if shape.context else None,
        n_params_published=check.n_params.value,
        weights_formats=tuple(formats.weights.value),
        published_weights=tuple(formats.published.weights.value),
        kv_format=formats.published.kv.value,
        activation_format=formats.activation.value,
        provenance=tuple(_provenance(file)),
        kv_formats=tuple(formats.kv.value),
        n_active_params_published=check.n_params_active.value if check.n_params_active else None,
        moe=_moe(file.moe) if file.moe else None,
        mla=_mla(file.mla) if file.mla else None,
        window=_window(file.window) if file.window else None,
        mtp=_mtp(file.mtp) if file.mtp else None,
        quality_losses={name: loss.value for name, loss in file.quality.items()},
        kv_quality_losses={name: loss.value for name, loss in file.kv_quality.items()},
        variant=_variant(file.variant) if file.variant else None,
        checkpoints=_checkpoints(file.checkpoints),
    )


def _checkpoints(said: dict[str, schemas.Checkpoint]) -> tuple[Checkpoint, ...]:
    return tuple(
        Checkpoint(
            format=name,
            weights=one.weights.value,
            experts=(one.experts or one.weights).value,
            repository=one.repository,
            source=one.weights.source,
        )
        for name, one in said.items()
    )


def _variant(variant: schemas.Variant) -> Variant:
    loss = variant.quality_loss
    return Variant(
        of=variant.of.value,
        how=variant.how.value,
        quality=f"{variant.quality.value} ({variant.quality.source})",
        quality_loss_fraction=loss.value if loss else None,
        n_denoising_steps=variant.n_denoising_steps.value if variant.n_denoising_steps else None,
        n_block_tokens=variant.n_block_tokens.value if variant.n_block_tokens else None,
    )


def _moe(moe: schemas.Moe) -> MoeShape:
    return MoeShape(
        n_experts=moe.n_experts.value,
        n_active_experts=moe.n_active_experts.value,
        n_shared_experts=moe.n_shared_experts.value if moe.n_shared_experts else 0,
        d_expert=moe.d_expert.value,
        n_dense_layers=moe.n_dense_layers.value if moe.n_dense_layers else 0,
        n_groups=moe.n_groups.value if moe.n_groups else 1,
        n_active_groups=moe.n_active_groups.value if moe.n_active_groups else 1,
    )


def _mla(mla: schemas.Mla) -> MlaShape:
    return MlaShape(
        d_kv_latent=mla.d_kv_latent.value,
        d_q_latent=mla.d_q_latent.value if mla.d_q_latent else None,
        d_rope=mla.d_rope.value,
        d_nope=mla.d_nope.value,
        d_value=mla.d_value.value,
    )


def _window(window: schemas.Window) -> WindowShape:
    return WindowShape(n_tokens=window.n_tokens.value, n_layers=window.n_layers.value)


def _mtp(mtp: schemas.Mtp) -> MtpShape:
    return MtpShape(
        n_modules=mtp.n_modules.value,
        n_params_published=mtp.n_params.value if mtp.n_params else None,
    )


def _provenance(node: object, path: str = "") -> Iterator[Provenance]:
    """Every value of a file with its source, under its dotted key."""
    if isinstance(node, schemas.Sourced):
        yield Provenance(key=path, source=node.source)
    elif isinstance(node, BaseModel):
        for key in type(node).model_fields:
            yield from _provenance(getattr(node, key), f"{path}.{key}" if path else key)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _provenance(value, f"{path}.{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _provenance(value, f"{path}[{i}]")
