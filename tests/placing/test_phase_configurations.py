"""Replicas of one phase: against a look at every candidate, and against replicas of both."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from planner import load_topology, plan
from planner.estimates.candidates import machine_of, table_of, usable_bytes
from planner.placing.fabrics.domains import domains, needs
from planner.placing.fabrics.patterns import LEAF, NODE, Beaten
from planner.placing.fabrics.site import Fabric, graph_in
from planner.placing.layouts import least
from planner.placing.runtimes import Roofline
from planner.placing.tori.slices import slice_configurations, torus_state
from planner.programs.rows import dominated
from planner.specs.ask.placement import PlacementRequest, Serve, layout_request
from planner.specs.ask.targets import Targets
from planner.specs.files.pools import GroupSpec, PoolSpec
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.records.devices import Workload
from planner.specs.records.roles import DECODE, PREFILL, ROLES, TOGETHER
from planner.topology.graph import build_graph
from planner.topology.openings import openings
from tests.placing.enumeration import tiny_cluster, tiny_model

SIZES = (1, 2, 4)
"""Devices that parts of replicas have in a node: each node has four."""
BATCHES = (1, 2, 3, 8, 24, 64)
WORKLOAD = Workload(n_input_tokens=512, n_output_tokens=64)
TARGETS = (
    Targets(),
    Targets(tpot_s=0.004, ttft_s=0.1),
    Targets(tpot_s=0.002),
    Targets(ttft_s=0.3, min_batch=20),
)


def _site(hbm_gb: float) -> Fabric:
    group = GroupSpec(
        name="h",
        cluster=tiny_cluster("h100-nvl8-x1", 2, 4, hbm_gb=hbm_gb),
        n_nodes_per_leaf=8,
        oversubscription=2.0,
    )
    pool = PoolSpec(name="tiny", title="tiny", groups=(group,))
    return Fabric(pool, graph_in(pool, None))


def _request(site: Fabric, targets: Targets, *, batches=BATCHES, workload=WORKLOAD):
    serve = Serve(model=tiny_model(), weights_formats=("bf16", "int8"), kv_formats=("bf16", "fp8"))
    asked = PlacementRequest(
        site=site.cluster, models=(serve,), workload=workload, targets=targets, batches=batches
    )
    request = layout_request(asked, asked.models[0], site.cluster)
    return request


def _domains(site: Fabric):
    (kind,) = site.inventory.kinds
    for span, need in needs(site.inventory, kind):
        yield from domains(site.ground, kind, span, need)


def _every(request, domain, role):
    """Of each shape and cache format every candidate of a phase: its pass and its rate."""
    asked = replace(request, cluster=domain.cluster)
    if role == PREFILL and request.targets.ttft_s is not None:
        asked = replace(asked, prefill_batches=asked.batches)
    machine = machine_of(asked.cluster, asked.model)
    table, meshes = table_of(asked, machine), machine.meshes
    room, work = usable_bytes(machine), asked.workload
    n_passes = 1 if role == PREFILL else work.n_output_tokens - 1
    widest = meshes.n_inside.max()
    found: dict = {}
    for block in table.blocks():
        phase = block.prefill if role == PREFILL else block.decodes[0]
        for i, arm in enumerate(block.arms.tolist()):
            context, mesh = table.context[arm], table.arms.mesh[arm]
            t, m, p = (int(n[mesh]) for n in (meshes.n_inside, meshes.n_across, meshes.n_stages))
            is_here = (
                m == 1 and t * p in SIZES
                if domain.span == NODE
                else t * m * p > t == widest and widest in SIZES
            )
            weights = table.contexts.weight_bytes[context]
            kv = table.formats[table.contexts.formats[context]].kv
            for b, batch in enumerate(phase.batches.tolist()):
                pass_s = float(phase.pass_s[i, b])
                held = weights + phase.kv_bytes[i, b] + phase.working_bytes[i, b]
                if not is_here or held > room or not np.isfinite(pass_s):
                    continue
                rate = batch * work.n_output_tokens / (n_passes * pass_s)
                if _is_kept(asked.targets, role, pass_s, batch):
                    found.setdefault(((t, m, p), kv), []).append((pass_s, rate))
    return found


def _is_kept(targets: Targets, role: str, pass_s: float, batch: int) -> bool:
    if role == PREFILL:
        return targets.ttft_s is None or pass_s <= targets.ttft_s
    in_time = targets.tpot_s is None or pass_s <= targets.tpot_s
    return in_time and batch >= (targets.min_batch or 1)


def _front(points, role, *, all_of_it: bool):
    """Of points the ones that none has more rate than and is as early; or the most rate."""
    if role == DECODE or not all_of_it:
        most = max(rate for _, rate in points)
        return [min(one for one in points if one[1] == most)]
    return sorted(
        one
        for one in {*points}
        if not any(other != one and other[0] <= one[0] and other[1] >= one[1] for other in points)
    )


@pytest.mark.parametrize("targets", TARGETS, ids=["free", "both", "tpot", "ttft and batch"])
@pytest.mark.parametrize("role", [PREFILL, DECODE])
def test_they_are_the_best_of_every_candidate(role, targets):
    site = _site(4.0)
    request = _request(site, targets)
    n_found, spans = 0, set()
    for domain in _domains(site):
        chosen: dict = {}
        for one in Roofline(request=request, roles=(role,)).on_nodes(0, domain, Beaten()):
            assert one.role == role
            pass_s = one.ttft_s if role == PREFILL else one.tpot_s
            assert 0.0 in (one.ttft_s, one.tpot_s)
            key = (one.pattern.shape, one.kv_format)
            chosen.setdefault(key, []).append((pass_s, one.output_tokens_per_s))
        every = _every(request, domain, role)
        assert set(chosen) == set(every)
        for key, points in every.items():
            front = _front(points, role, all_of_it=targets.ttft_s is not None)
            found = sorted(chosen[key])
            assert len(found) == len(front)
            assert np.array(found) == pytest.approx(np.array(front), rel=1e-12)
            n_found += len(found)
        spans |= {domain.span} if every else set()
    assert n_found > 10
    assert spans == {NODE, LEAF}


def test_several_replicas_of_prefill_are_offered_where_some_are_sooner_and_some_read_more():
    site = _site(4.0)
    request = _request(site, Targets(ttft_s=0.1))
    domain = next(_domains(site))
    by_pattern: dict = {}
    for one in Roofline(request=request, roles=(PREFILL,)).on_nodes(0, domain, Beaten()):
        by_pattern.setdefault((one.pattern.shape, one.kv_format), []).append(one)
    assert max(map(len, by_pattern.values())) > 2
    for some in by_pattern.values():
        ordered = sorted(some, key=lambda one: one.ttft_s)
        rates = [one.output_tokens_per_s for one in ordered]
        assert rates == sorted(set(rates))


def test_replicas_of_both_phases_are_the_same_beside_those_of_one():
    site = _site(4.0)
    request = _request(site, Targets(tpot_s=0.004, ttft_s=0.1))
    for domain in _domains(site):
        alone = list(Roofline(request=request).on_nodes(0, domain, Beaten()))
        all_roles = list(Roofline(request=request, roles=ROLES).on_nodes(0, domain, Beaten()))
        together = [one for one in all_roles if one.role == TOGETHER]
        figures = [
            [(one.pattern, one.output_tokens_per_s, one.tpot_s, one.deployment()) for one in some]
            for some in (alone, together)
        ]
        assert figures[0] == figures[1]
        apart = list(
            Roofline(request=request, roles=(PREFILL, DECODE)).on_nodes(0, domain, Beaten())
        )
        rates = [one.output_tokens_per_s for one in all_roles if one.role != TOGETHER]
        assert sorted(rates) == sorted(one.output_tokens_per_s for one in apart)


def test_a_replica_that_only_decodes_holds_a_batch_that_one_of_both_phases_cannot():
    """Long prompts: what reading one takes besides weights, decode alone has for its cache."""
    site, workload = _site(4.0), Workload(n_input_tokens=8000, n_output_tokens=64)
    domain = next(_domains(site))

    def largest(role):
        held: dict = {}
        for batch in range(1, 160, 3):
            request = _request(site, Targets(), batches=(batch,), workload=workload)
            one_pair = {"weights_formats": ("bf16",), "kv_formats": ("bf16",)}
            request = replace(request, prefill_batches=(1,), **one_pair)
            for one in Roofline(request=request, roles=(role,)).on_nodes(0, domain, Beaten()):
                held[one.pattern.shape] = batch
        return held

    both, alone = largest(TOGETHER), largest(DECODE)
    assert both
    assert all(alone[shape] >= batch for shape, batch in both.items())
    assert any(alone[shape] > batch for shape, batch in both.items())


def test_what_is_handed_over_is_the_cache_of_one_request_each_number_once():
    site = _site(4.0)
    request = _request(site, Targets())
    model = tiny_model()
    n_numbers = 2 * 3 * model.n_kv_heads * model.d_head * 512  # keys and values of three layers
    found = [
        one
        for domain in _domains(site)
        for one in Roofline(request=request, roles=ROLES).on_nodes(0, domain, Beaten())
    ]
    assert {(one.kv_format, one.handed_bytes) for one in found if one.role != TOGETHER} == {
        ("bf16", 2.0 * n_numbers),
        ("fp8", 1.0 * n_numbers),
    }
    assert {(one.kv_format, one.handed_bytes) for one in found if one.role == TOGETHER} == {
        ("", 0.0)
    }


@pytest.mark.parametrize("name", ["deepseek-v3", "gpt-oss-120b"])
def test_latents_are_handed_over_as_they_are_and_windows_hand_over_what_they_keep(name):
    model = load_model(name)
    cluster = load_cluster("h100-nvl8-x2")
    asked = PlacementRequest(
        site=cluster, models=(Serve(model=model),), workload=WORKLOAD, batches=(1,)
    )
    request = layout_request(asked, asked.models[0], cluster)
    site = Fabric(_pool_of(cluster), graph_in(_pool_of(cluster), None))
    per_token = {"deepseek-v3": 61 * (512 + 64), "gpt-oss-120b": None}[name]
    if per_token is not None:
        n_numbers = per_token * 512
    else:
        width = 2 * model.n_kv_heads * model.d_head
        n_windowed = model.window.n_layers
        kept = (36 - n_windowed) * 512 + n_windowed * min(512, model.window.n_tokens)
        n_numbers = kept * width
        assert 0 < n_windowed < 36
        assert model.window.n_tokens < 512
    sizes = {
        one.handed_bytes
        for domain in _domains(site)
        for one in Roofline(request=request, roles=(DECODE,)).on_nodes(0, domain, Beaten())
    }
    assert sizes == {n_numbers * 2.0}


def _pool_of(cluster):
    group = GroupSpec(name="h", cluster=cluster, n_nodes_per_leaf=8, oversubscription=1.0)
    return PoolSpec(name="pool", title="pool", groups=(group,))


def test_where_nothing_is_decoded_no_phase_is_by_itself():
    site = _site(4.0)
    request = _request(site, Targets(), workload=Workload(n_input_tokens=512, n_output_tokens=1))
    roofline = Roofline(request=request, roles=ROLES)
    found = [one for domain in _domains(site) for one in roofline.on_nodes(0, domain, Beaten())]
    assert {one.role for one in found} == {TOGETHER}
    assert {one.pattern.span for one in found} == {NODE, LEAF}


@cache
def _slices(batch: int, weights: str):
    """What runs PaLM 62B by phases on slices of 32 chips."""
    cluster = load_cluster("tpu-v4-2x4x4")
    model = load_model("palm-62b")
    serve = Serve(model=model, weights_formats=(weights,))
    workload = Workload(n_input_tokens=2048, n_output_tokens=64)
    asked = PlacementRequest(
        site=cluster, models=(serve,), workload=workload, batches=(batch,), targets=Targets()
    )
    request = layout_request(asked, asked.models[0], cluster)
    request = replace(request, prefill_batches=(batch,))
    places = openings(cluster.fabric, torus_state(cluster.fabric, build_graph(cluster)))
    return slice_configurations(request, 0, places, (PREFILL, DECODE)), places


@pytest.mark.parametrize(
    ("role", "n_chips", "batch", "weights"),
    [
        (PREFILL, 16, 1, "int8"),
        (DECODE, 16, 32, "int8"),
        (PREFILL, 32, 512, "bf16"),
        (DECODE, 8, 512, "bf16"),
    ],
)
def test_the_slices_of_table_3_take_what_a_plan_says_that_their_phase_takes(
    role, n_chips, batch, weights
):
    """[Pope2022] Table 3: prefill on one slice, decode on another."""
    offered, _ = _slices(batch, weights)
    mine = [one for one in offered.configurations if one.role == role and one.n_devices == n_chips]
    fastest = min(mine, key=lambda one: one.ttft_s + one.tpot_s)
    shape = "x".join(map(str, fastest.pattern.dimensions))
    both = plan(
        load_model("palm-62b"),
        load_topology(f"tpu-v4-{shape}"),
        workload=Workload(n_input_tokens=2048, n_output_tokens=64),
        weights_formats=(weights,),
        batches=(1 if role == PREFILL else batch,),
        prefill_batches=(batch if role == PREFILL else 1,),
        objective="ttft" if role == PREFILL else "latency",
    ).deployment
    phase = both.prefill if role == PREFILL else both.decode
    assert both.n_devices == n_chips
    assert fastest.ttft_s + fastest.tpot_s == pytest.approx(phase.step.total_s, rel=1e-12)
    assert fastest.deployment().phase.layout == phase.layout


def test_a_slice_is_offered_to_every_configuration_of_its_mesh():
    offered, places = _slices(32, "int8")
    for place in range(len(places)):
        here = offered.which[offered.opening == place].tolist()
        labels = {offered.configurations[w].pattern.label for w in here}
        assert len(labels) <= 1
        of_mesh = [w for w, one in enumerate(offered.configurations) if one.pattern.label in labels]
        assert here == of_mesh
    assert np.diff(offered.opening).min() >= 0


def test_the_least_and_the_front_of_groups_are_those_of_a_look_at_all_pairs():
    rng = np.random.default_rng(7)
    for _ in range(200):
        n = int(rng.integers(0, 12))
        group, first, second = (rng.integers(0, 4, n).astype(float) for _ in range(3))
        group = group.astype(int)
        rows = list(zip(group.tolist(), first.tolist(), second.tolist(), strict=True))
        front = [
            i
            for i, (g, a, b) in enumerate(rows)
            if not any(
                h == g and c <= a and d <= b and ((c, d) != (a, b) or j < i)
                for j, (h, c, d) in enumerate(rows)
            )
        ]
        assert np.flatnonzero(~dominated([second, first], group, 4)).tolist() == front
        best = {g: min((r[1:], i) for i, r in enumerate(rows) if r[0] == g)[1] for g in group}
        assert least(group, first, second).tolist() == sorted(best.values())
