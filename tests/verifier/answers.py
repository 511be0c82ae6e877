"""Real answers of every kind that can be verified, each found once and small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from planner import NoPlanError, place, place_experts, plan, repair
from planner.placing.fleets.choosing.staircase import staircase
from planner.placing.fleets.planning import fleet
from planner.planning.audit import audit
from planner.planning.comparing import compare, frontiers
from planner.planning.engine_audit import audit_engine
from planner.planning.pareto import frontier
from planner.report.as_json import Json, answer_json
from planner.results.surveys import Case, Curve, Curves
from planner.specs.ask.engine import OVERLAPS, DraftOptions
from planner.specs.ask.placement import Serve
from planner.specs.ask.targets import Degrees, Speculation, Targets
from planner.specs.files.layer_files import LayersSpec, MachineType, load_layers
from planner.specs.files.pools import load_pool
from planner.specs.files.reading import load_architecture, load_cluster, load_connector, load_model
from planner.specs.files.state import LinkState, SlowDevices, State
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import (
    ClusterSpec,
    Link,
    LinkedFabric,
    ModelSpec,
    Workload,
)
from planner.specs.records.roles import RoleOptions
from planner.topology.pools import pool_graph
from planner.verifier.layouts.predictions import layout_prediction
from planner_workshop.staging.asking import cut_stages
from planner_workshop.staging.placing import place_layers
from tests.report.fleets import asked, chat
from tests.report.predictions import predicted

WORKLOAD = Workload(n_input_tokens=512, n_output_tokens=64)
FEW = {"workload": WORKLOAD, "batches": (1, 8, 64), "prefill_batches": (1, 4)}
PLACED = {"workload": WORKLOAD, "batches": (1, 8, 64)}


def tiny_model() -> ModelSpec:
    """Three layers of Llama 3 8B: some 3.4 GB in bf16."""
    return replace(
        load_model("llama-3-8b"), n_layers=3, name="tiny", tied_embeddings=False, repository=""
    )


def small(cluster: ClusterSpec, *, hbm_gb: float) -> ClusterSpec:
    device = replace(cluster.device, hbm_bytes=hbm_gb * 1e9, reserve_bytes=0.0)
    return replace(cluster, device=device)


def nodes(n_nodes: int, per_node: int) -> ClusterSpec:
    """Servers whose devices hold little, so that replicas need two devices or more."""
    cluster = small(load_cluster("h100-nvl8-x1"), hbm_gb=2.5)
    fabric = replace(cluster.fabric, n_nodes=n_nodes, n_devices_per_node=per_node)
    return replace(cluster, fabric=fabric)


def wish(**wanted: Any) -> Serve:
    return Serve(model=tiny_model(), weights_formats=["bf16"], **wanted)


def _torus_plan() -> object:
    targets = Targets(tpot_s=0.03, min_batch=4, n_devices=64)
    return plan(load_model("palm-540b"), load_cluster("tpu-v4-4x4x4"), targets=targets, **FEW)


def _experts_plan() -> object:
    asked = {**FEW, "weights_formats": ("fp8",), "objective": "throughput"}
    return plan(load_model("deepseek-v3"), load_cluster("h100-nvl8-x4"), "roofline", **asked)


def _fleet_plan() -> object:
    targets = Targets(demand_tokens_per_s=4000.0, ttft_s=1.0)
    model, cluster = load_model("llama-3.1-70b"), load_cluster("h100-nvl8-x2")
    return plan(model, cluster, "roofline", targets=targets, **FEW)


def _staged_plan() -> object:
    targets = Targets(usd_per_token=1.0)
    model, cluster = load_model("mt-nlg-530b"), load_cluster("dgx-a100-x3")
    asked = {**FEW, "weights_formats": ("bf16",), "objective": "throughput"}
    return plan(model, cluster, targets=targets, **asked)


def _drafted_plan() -> object:
    draft = Speculation(draft=load_model("llama-3.1-8b"), lookaheads=(2, 4))
    cluster = load_cluster("h100-nvl8-x1")
    asked = {**FEW, "objective": "latency", "speculation": draft, "prefill": "cost"}
    return plan(load_model("llama-3.1-70b"), cluster, "roofline", **asked)


def _variant_plan() -> object:
    variants = [load_model(f"llama-3.1-minitron-4b-{name}") for name in ("width", "depth")]
    model, cluster = load_model("llama-3.1-8b"), load_cluster("h100-nvl8-x1")
    return plan(model, cluster, "roofline", variants=variants, **FEW)


def _linked_plan() -> object:
    cluster = load_cluster("h100-nvl8-x1")
    fabric = LinkedFabric(
        devices=("a", "b", "c", "d"),
        links=(
            Link(a="a", b="b", bytes_per_s=300e9, latency_s=1e-6),
            Link(a="b", b="c", bytes_per_s=100e9, latency_s=2e-6),
            Link(a="c", b="d", bytes_per_s=300e9, latency_s=3e-6),
        ),
        activation_network="tree",
        bulk_network="tree",
    )
    asked = {**FEW, "objective": "latency", "weights_formats": ("bf16",)}
    return plan(tiny_model(), replace(cluster, fabric=fabric), **asked)


def _fabric_placement() -> object:
    state = State(
        busy=("node1/gpu0",),
        failed=("node2/gpu1",),
        slow=(SlowDevices(devices=("node0/gpu3",), speed_fraction=0.5),),
        links=(LinkState(part="nic", names=("node0/gpu0",), bandwidth_fraction=0.5),),
    )
    limits = {"rent": 40.0}
    return place(nodes(3, 4), wish(replicas=4), state=state, limits=limits, **PLACED)


def _models_placement() -> object:
    other = replace(tiny_model(), name="other", n_layers=2)
    wanted = (wish(demand_tokens_per_s=20_000.0), Serve(model=other, demand_tokens_per_s=9000.0))
    pool = replace(load_pool("h100-fat-tree-x64"), groups=(_group(),))
    return place(pool, wanted, targets=Targets(tpot_s=0.02), **PLACED)


def _group() -> Any:
    (group,) = load_pool("h100-fat-tree-x64").groups
    fabric = replace(group.fabric, n_nodes=4, n_devices_per_node=4)
    cluster = replace(small(group.cluster, hbm_gb=1.4), fabric=fabric)
    return replace(group, cluster=cluster, n_nodes_per_leaf=2, n_rails=2)


def _torus_placement() -> object:
    cluster = small(load_cluster("tpu-v4-4x4x8"), hbm_gb=12.0)
    state = State(
        busy=("0,0,0", "2,1,7"),
        slow=(SlowDevices(devices=("3,3,0",), speed_fraction=0.5),),
        links=(LinkState(part="between", names=("1,1,1", "1,1,2"), bandwidth_fraction=0.5),),
    )
    wanted = Serve(model=load_model("llama-3-70b"), weights_formats=["int8"], replicas=3)
    return place(cluster, wanted, state=state, **PLACED)


def _graph() -> nx.Graph[str]:
    graph = pool_graph(load_pool("h100-nvl8-x1"))
    for _, at in graph.nodes(data=True):
        if at["kind"] == "device":
            at["hbm_bytes"] = 6.5e9
    return graph


def _graph_placement() -> object:
    return place(_graph(), wish(replicas=2), group_costs={"node0": (200e9, 3e-6)}, **PLACED)


def _fabric_repair() -> object:
    before = place(nodes(3, 4), wish(replicas=4), objective="devices", **PLACED)
    gone = before.replicas[1].ranks[1].device
    return repair(before, state=State(failed=(gone,)), loss=0.2)


def _torus_repair() -> object:
    cluster = replace(small(load_cluster("tpu-v4-1x2x4"), hbm_gb=2.5), name="tiny-torus")
    before = place(cluster, wish(), **PLACED)
    return repair(before, state=State(failed=("0,1,2",)), loss=0.9)


LOADS = (9.0, 1.0, 4.0, 7.0, 2.0, 2.5, 0.5, 6.0)
PAIRS = tuple(tuple(float((e * f) % 5 if e != f else 3) for f in range(8)) for e in range(8))


def _grouped_experts() -> object:
    standing = ((0, 1), (2, 3), (4, 5), (6, 7))
    asked: dict[str, Any] = {"present": standing, "move_price": 0.02, "coactivation": PAIRS}
    return place_experts(LOADS, n_ranks=4, n_slots=3, n_nodes=2, n_groups=4, **asked)


def _weighted_experts() -> object:
    asked: dict[str, Any] = {"present": ((0, 1, 2), (3, 4, 5), (6, 7, 7)), "coactivation": PAIRS}
    return place_experts(LOADS, n_ranks=3, n_slots=4, split="weighted", slack=0.1, **asked)


def _few_slots_experts() -> object:
    return place_experts((10.0, 1.0, 1.0), n_ranks=2, n_slots=2)


CONFIGS = Path(__file__).parents[1] / "specs" / "huggingface" / "configs"


def _architecture(name: str) -> Architecture:
    return load_architecture(str(CONFIGS / f"{name}_config.json"))


def _decode_stages() -> object:
    model = _architecture("gemma-3-27b-it")
    return cut_stages(model, "h100-sxm:tp2x2,l40s:tp1x4", workload=WORKLOAD, batch=32)


def _prefill_stages() -> object:
    asked: dict[str, Any] = {"batch": 4, "phase": "prefill", "objective": "latency"}
    groups, model = "l4:tp2ep2x2,l40s:tp1x1", _architecture("Qwen3-30B-A3B")
    return cut_stages(model, groups, n_microbatches=2, **asked)


def machines(*counts: int, **changes: Any) -> LayersSpec:
    """Six layers on machines of two types, in a region each; the first ones are faster."""
    rates = ((40.0, 30.0, 20.0, 15.0), (25.0, 12.0))
    regions = ("east", "west")
    spec = LayersSpec(
        name="few",
        title="Few machines",
        n_layers=6,
        enters_within=False,
        machines=tuple(
            MachineType(type=f"type {i}", count=n, region=region, rates_tokens_per_s=of)
            for i, (n, region, of) in enumerate(zip(counts, regions, rates, strict=True))
        ),
        between_tokens_per_s=1e12,
        across_tokens_per_s=18.0,
        coordinator_tokens_per_s=35.0,
        matrix_tokens_per_s=(),
        from_coordinator_tokens_per_s=(),
        to_coordinator_tokens_per_s=(),
        published_tokens_per_s=None,
        provenance=(),
    )
    return replace(spec, **changes)


def _regional_layers() -> object:
    return place_layers(machines(3, 3))


def _linked_layers() -> object:
    links = tuple(tuple(0.0 if a == b else 5.0 + 3 * a + b for b in range(5)) for a in range(5))
    from_it, to_it = (30.0, 20.0, 10.0, 5.0, 25.0), (9.0, 14.0, 30.0, 22.0, 8.0)
    wide = {"across_tokens_per_s": 1e12, "coordinator_tokens_per_s": 1e12, "enters_within": True}
    ends = {"from_coordinator_tokens_per_s": from_it, "to_coordinator_tokens_per_s": to_it}
    return place_layers(machines(3, 2, matrix_tokens_per_s=links, **wide, **ends))


def _published_layers() -> object:
    path = Path(__file__).parents[2] / "examples" / "machines" / "quality-10.toml"
    return place_layers(load_layers(path))


SOME = {"batches": (1, 8, 24), "chunks": (2048, 8192), "workload": WORKLOAD}


def _engine_plan() -> object:
    targets = Targets(tpot_s=0.04, ttft_s=1.0, n_devices=12)
    model, cluster = load_architecture("llama-3.1-70b"), load_cluster("h100-nvl8-x2")
    asked: dict[str, Any] = {"confidence": 0.9, "workload": replace(WORKLOAD, hit_fraction=0.2)}
    return plan(model, cluster, engine="vllm", targets=targets, **{**SOME, **asked})


def _engine_mixture_plan() -> object:
    drafting = DraftOptions(kind="mtp", acceptance=(0.7, 0.4), lookaheads=(1, 2))
    model, cluster = load_architecture("deepseek-v3"), load_cluster("h200-nvl8-x2")
    asked: dict[str, Any] = {"overlaps": OVERLAPS, "drafting": drafting, "prefer": "simplest"}
    targets = Targets(tpot_s=0.05)
    return plan(model, cluster, engine="sglang", targets=targets, **asked, **SOME)


def _engine_variant_plan() -> object:
    names = ("llama-3.1-minitron-4b-width", "llama-3.1-minitron-4b-depth")
    model, cluster = load_architecture("llama-3.1-8b"), load_cluster("l40s-x8")
    variants = [load_architecture(name) for name in names]
    asked: dict[str, Any] = {"objective": "throughput", "variants": variants}
    return plan(model, cluster, engine="trtllm", **asked, **SOME)


def _several_engines_plan() -> object:
    """The simplest of the ties of the best, which gives up some of it; the others are rivals."""
    asked: dict[str, Any] = {**SOME, "prefer": "simplest", "batches": (16, 32), "confidence": 0.0}
    asked["engine"] = ("vllm", "sglang", "trtllm")
    model, cluster = load_architecture("qwen3-32b"), load_cluster("a100-nvl8-x1")
    return plan(model, cluster, targets=Targets(tpot_s=0.03), **asked)


def _erdil_plan() -> object:
    draft = Speculation(draft=load_model("llama-3-8b"), lookaheads=(2, 4))
    targets = Targets(tpot_s=0.02, demand_tokens_per_s=30_000.0)
    asked: dict[str, Any] = {"workload": WORKLOAD, "batches": (1, 8, 64), "speculation": draft}
    model, cluster = load_model("llama-3-70b"), load_cluster("h100-nvl8-x4")
    return plan(model, cluster, engine="erdil2025", targets=targets, **asked)


def _conflict(model: Any, cluster: ClusterSpec, engine: Any, **asked: Any) -> object:
    with pytest.raises(NoPlanError) as caught:
        plan(model, cluster, engine, **asked)
    return caught.value.conflict


def _layout_conflict() -> object:
    """Of a demand, a policy and three limits, two sets of which conflict."""
    targets = Targets(tpot_s=0.018, usd_per_token=9e-6, demand_tokens_per_s=5000.0)
    asked: dict[str, Any] = {"targets": targets, "batches": (8, 64)}
    return _conflict(load_model("llama-3.1-70b"), load_cluster("h100-nvl8-x2"), "roofline", **asked)


def _engines_conflict() -> object:
    asked: dict[str, Any] = {"batches": (16, 32), "confidence": 0.0, "workload": WORKLOAD}
    asked["targets"] = Targets(tpot_s=0.012, usd_per_token=1e-6, n_devices=4)
    model, cluster = load_architecture("qwen3-32b"), load_cluster("a100-nvl8-x1")
    return _conflict(model, cluster, ("vllm", "sglang"), **asked)


def _erdil_conflict() -> object:
    asked: dict[str, Any] = {"workload": WORKLOAD, "batches": (1, 8, 64)}
    asked["targets"] = Targets(tpot_s=0.005, usd_per_token=1e-6)
    return _conflict(load_model("llama-3-70b"), load_cluster("h100-nvl8-x4"), "erdil2025", **asked)


def _erdil_experts_plan() -> object:
    asked: dict[str, Any] = {"memory": "one-microbatch", "objective": "throughput"}
    asked |= {"workload": WORKLOAD, "batches": (8, 64, 512), "targets": Targets(tpot_s=0.05)}
    model, cluster = load_model("deepseek-v3"), load_cluster("h100-nvl8-x8")
    return plan(model, cluster, engine="erdil2025", **asked)


def _engine_audit() -> object:
    model, cluster = load_architecture("qwen3-8b"), load_cluster("h100-nvl8-x1")
    degrees = Degrees(tensor=2)
    return audit_engine(model, cluster, speed_tokens_per_s=60.0, degrees=degrees, batch=8)


def _erdil_audit() -> object:
    model, cluster = load_model("llama-3-70b"), load_cluster("h100-nvl8-x2")
    asked: dict[str, Any] = {"degrees": Degrees(tensor=8), "batch": 16, "workload": WORKLOAD}
    return audit_engine(model, cluster, "erdil2025", speed_tokens_per_s=40.0, **asked)


def _layout_audit() -> object:
    draft = Speculation(draft=load_model("llama-3.1-8b"), lookaheads=(2, 4))
    seen: dict[str, Any] = {"speed_tokens_per_s": 40.0, "batch": 12, "n_devices": 2}
    seen |= {"weights_format": "bf16", "allowed_formats": ("bf16", "fp8"), "workload": WORKLOAD}
    model, cluster = load_model("llama-3.1-70b"), load_cluster("h100-nvl8-x1")
    return audit(model, cluster, speculation=draft, **seen)


def _exchanging_prediction() -> object:
    degrees: dict[str, Any] = {"n_data": 16, "n_expert_parallel": 16, "overlaps": True}
    return predicted("deepseek-v3", "h200-nvl8-x2", "sglang", batch=16, **degrees)


def _staged_prediction() -> object:
    return predicted("llama-3.1-70b", "h100-nvl8-x2", "vllm", n_tensor=4, n_stages=2, batch=16)


def _layout_prediction() -> object:
    """Of experts, whose layers are of two kinds, in a degree that gathers and exchanges."""
    asked: dict[str, Any] = {"workload": WORKLOAD, "batches": (64,), "prefill_batches": (8,)}
    asked |= {"targets": Targets(degrees=Degrees(tensor=2, data=4)), "objective": "throughput"}
    model, cluster = load_model("deepseek-v3"), load_cluster("h200-nvl8-x1")
    return layout_prediction(plan(model, cluster, "roofline", weights_formats=("fp8",), **asked))


def _erdil_prediction() -> object:
    asked: dict[str, Any] = {"workload": WORKLOAD, "batches": (8,), "objective": "latency"}
    asked["targets"] = Targets(degrees=Degrees(tensor=8, pipeline=2))
    model, cluster = load_model("llama-3-70b"), load_cluster("h100-nvl8-x2")
    return layout_prediction(plan(model, cluster, "erdil2025", **asked))


def _layout_curves() -> object:
    """Two formats, of which one does not fit."""
    asked: dict[str, Any] = {**FEW, "targets": Targets(tpot_s=0.04, n_devices=8), "by": "weights"}
    formats = {"weights_formats": ("bf16", "int8")}
    models, pools = [load_model("palm-540b")], [load_cluster("h100-nvl8-x1")]
    return Curves(curves=frontiers(models, pools, ("roofline",), **formats, **asked))


def _engine_curves() -> object:
    """Several engines in one program, and what a first token may take."""
    model, cluster = load_architecture("qwen3-30b-a3b"), load_cluster("a100-nvl8-x1")
    targets = Targets(min_batch=4, ttft_s=0.07)
    asked: dict[str, Any] = {**SOME, "targets": targets, "x": "ttft", "y": "throughput"}
    asked["confidence"] = 0.0
    found = frontier(model, cluster, ("vllm", "trtllm"), alpha=1.0, **asked)
    case = Case(model=model.name, topology=cluster.name, weights="")
    return Curves(curves=(Curve(case=case, frontier=found, reason=""),))


def _erdil_curves() -> object:
    model, cluster = load_model("llama-3-70b"), load_cluster("h100-nvl8-x2")
    asked: dict[str, Any] = {"workload": WORKLOAD, "batches": (1, 8, 64)}
    return Curves(curves=frontiers([model], [cluster], ("erdil2025",), **asked))


def _layout_comparison() -> object:
    models = [load_model(name) for name in ("llama-3-8b", "llama-3-70b")]
    asked: dict[str, Any] = {**FEW, "targets": Targets(tpot_s=0.008), "by": "weights"}
    asked |= {"weights_formats": ("bf16", "int4"), "confidence": 0.0}
    pools = [load_cluster("h100-nvl8-x1")]
    return compare(models, pools, ("roofline",), objective="throughput", **asked)


def _engine_comparison() -> object:
    models = [load_architecture("llama-3.1-8b")]
    pools = [load_cluster("h100-nvl8-x1")]
    asked: dict[str, Any] = {**SOME, "targets": Targets(tpot_s=0.01)}
    return compare(models, pools, ("vllm", "sglang"), **asked)


def _apart_fleet() -> object:
    """A pool that reads, and one that decodes."""
    apart = RoleOptions(name="apart", connector=load_connector("nixl"))
    return fleet(asked(chat(20.0, ttft_s=0.5), roles=apart, n_simulated=100))


def _together_fleet() -> object:
    """Pools that do both phases."""
    return fleet(asked(chat(150.0), n_simulated=300))


def _climbed() -> object:
    """Rent over traffic."""
    return staircase(asked(chat(150.0)), lowest_per_s=60.0, highest_per_s=300.0)


def _denied_comparison() -> object:
    """A model that is too slow beside one that is not."""
    models = [load_model(f"llama-3.1-{size}") for size in ("70b", "8b")]
    asked: dict[str, Any] = {**SOME, "targets": Targets(tpot_s=0.008)}
    return compare(models, [load_cluster("h100-nvl8-x1")], ("vllm",), **asked)


def _roles_comparison() -> object:
    """Replicas of one phase beside those of both."""
    targets = Targets(tpot_s=0.02, ttft_s=1.0, demand_tokens_per_s=500.0)
    wanted: dict[str, Any] = {"targets": targets, "roles": ("together", "apart"), **PLACED}
    return compare([load_model("llama-3.1-8b")], [load_cluster("l40s-x8")], ("vllm",), **wanted)


MAKERS: dict[str, Callable[[], object]] = {
    "plan on a torus": _torus_plan,
    "plan with experts": _experts_plan,
    "plan of a fleet": _fleet_plan,
    "plan in stages": _staged_plan,
    "plan with a draft": _drafted_plan,
    "plan among variants": _variant_plan,
    "plan over listed links": _linked_plan,
    "placement on servers": _fabric_placement,
    "placement of two models": _models_placement,
    "placement on a torus": _torus_placement,
    "placement on a graph": _graph_placement,
    "fleet of two roles": _apart_fleet,
    "fleet of one pool": _together_fleet,
    "fleet over traffic": _climbed,
    "repair on servers": _fabric_repair,
    "repair on a torus": _torus_repair,
    "stages that decode": _decode_stages,
    "stages that read": _prefill_stages,
    "layers in two regions": _regional_layers,
    "layers over a matrix of links": _linked_layers,
    "layers as published": _published_layers,
    "experts in groups": _grouped_experts,
    "experts with shares": _weighted_experts,
    "experts in few slots": _few_slots_experts,
    "conflict of layouts": _layout_conflict,
    "conflict of several engines": _engines_conflict,
    "conflict by the reference model": _erdil_conflict,
    "plan of an engine": _engine_plan,
    "plan of an engine with drafts": _engine_mixture_plan,
    "plan of an engine among variants": _engine_variant_plan,
    "plan of several engines": _several_engines_plan,
    "plan by the reference model": _erdil_plan,
    "plan of experts by the reference model": _erdil_experts_plan,
    "frontiers of layouts": _layout_curves,
    "frontier of several engines": _engine_curves,
    "frontier by the reference model": _erdil_curves,
    "comparison of layouts": _layout_comparison,
    "comparison of engines": _engine_comparison,
    "comparison with a model denied": _denied_comparison,
    "comparison of roles": _roles_comparison,
    "audit of layouts": _layout_audit,
    "audit of an engine": _engine_audit,
    "audit by the reference model": _erdil_audit,
    "prediction with exchanges": _exchanging_prediction,
    "prediction in stages": _staged_prediction,
    "prediction of layouts": _layout_prediction,
    "prediction by the reference model": _erdil_prediction,
}


@cache
def answer(name: str) -> Any:
    """An answer by its name."""
    return MAKERS[name]()


@cache
def _envelope(name: str) -> Json:
    return answer_json(answer(name))


def envelope(name: str) -> Json:
    """The envelope of an answer, which a test must not change."""
    return _envelope(name)
