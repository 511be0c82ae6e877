"""A repair inherits what it repairs was asked for: nothing typed is all typed again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import networkx as nx
import pytest
from hypothesis import event, given, settings, strategies as st

from planner.commands.cli import main
from planner.errors import NoPlanError, RequestError
from planner.placing.planning import place
from planner.placing.repairing import repair
from planner.report.as_json import answer_json, dumps
from planner.report.saved import read_answer
from planner.results.placements import Placement
from planner.results.repairs import Repair
from planner.specs.ask.placement import Serve
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.pools import load_pool
from planner.specs.files.reading import load_cluster
from planner.specs.files.state import State
from planner.specs.records.certificates import Proof
from planner.specs.records.devices import Workload
from planner.topology.pools import pool_graph
from tests.placing.test_repairing import nodes, small, wish

BATCHES = (1, 8, 64)


def _timeless(found: Repair) -> Repair:
    """A repair without the seconds of the solver."""
    certificate = found.placement.certificate
    timeless = replace(
        certificate, wall_s=0.0, solve_s=0.0, proofs=_timeless_proofs(certificate.proofs)
    )
    return replace(
        found,
        placement=replace(found.placement, certificate=timeless),
        moved_proofs=_timeless_proofs(found.moved_proofs),
    )


def _timeless_proofs(proofs: tuple[Proof, ...]) -> tuple[Proof, ...]:
    return tuple(replace(proof, wall_s=0.0) for proof in proofs)


def _read_back(placement: Placement) -> Placement:
    found = read_answer(dumps(answer_json(placement)), shown="placed.json").answer
    assert isinstance(found, Placement)
    return found


WORKLOADS = st.sampled_from([(512, 64), (2048, 128)]).map(
    lambda n: Workload(n_input_tokens=n[0], n_output_tokens=n[1])
)
TARGETS = st.sampled_from(
    [
        Targets(),
        Targets(tpot_s=0.02),
        Targets(ttft_s=0.5, min_batch=8),
        Targets(quality_loss_fraction=0.02),
    ]
)
OPTIONS = st.builds(
    SolverOptions,
    solver=st.sampled_from(["highs", "cpsat"]),
    gap=st.sampled_from([0.0, 0.01]),
    threads=st.sampled_from([1, 2]),
    seed=st.integers(0, 3),
    proof=st.sampled_from(["one", "two"]),
).map(lambda one: replace(one, threads=1) if one.solver == "cpsat" else one)
"""Several workers of CP-SAT take whichever of equal answers comes first."""
WISHES = st.fixed_dictionaries(
    {"replicas": st.sampled_from([None, 1, 2])},
    optional={
        "demand_tokens_per_s": st.sampled_from([500.0, 9000.0]),
        "workload": WORKLOADS,
        "targets": st.sampled_from([Targets(tpot_s=0.03), Targets(ttft_s=1.0)]),
        "kv_formats": st.sampled_from([["bf16"], ["bf16", "fp8"]]),
    },
)


@st.composite
def _asked(draw, *, on_torus):
    """Any arguments of `place` but for the cluster, each of them left out now and then."""
    each = {
        "workload": WORKLOADS,
        "targets": TARGETS,
        "objective": st.sampled_from(["throughput", "share", "rent", "devices", "latency"]),
        "limits": st.sampled_from([{}, {"devices": 6.0}, {"rent": 30.0}]),
        "batches": st.sampled_from([BATCHES, (4, 32)]),
        "most_devices": st.sampled_from([None, 2]),
        "state": st.sampled_from([None, State(busy=("0,1,3" if on_torus else "node1/gpu3",))]),
        "options": OPTIONS,
    }
    if on_torus:
        each["aligned"] = st.booleans()
    models = [wish(**draw(WISHES))]
    if draw(st.booleans()):
        second = draw(WISHES)
        models.append(Serve(model=replace(wish().model, n_layers=2, name="second"), **second))
    return {"models": tuple(models), **draw(st.fixed_dictionaries({}, optional=each))}


@settings(max_examples=7, deadline=None, derandomize=True)
@given(data=st.data(), on_torus=st.booleans())
def test_nothing_typed_is_the_same_as_everything_typed(data, on_torus):
    asked = data.draw(_asked(on_torus=on_torus))
    cluster = nodes(2, 4)
    failed = "node0/gpu1"
    if on_torus:
        cluster = replace(small(load_cluster("tpu-v4-1x2x4"), hbm_gb=2.5), name="tiny-torus")
        failed = "0,0,1"
    try:
        before = place(cluster, **asked)
        event("is placed")
        state = State(failed=(failed,))
        typed = repair(before, cluster, **{**asked, "state": state})
    except (NoPlanError, RequestError):
        return
    event("is repaired")
    found = repair(_read_back(before), state=state)
    assert _timeless(found) == _timeless(typed)
    assert found.request.changed == ()


def test_a_failed_spare_device_moves_nothing_and_changes_no_rent():
    """Two replicas where each takes two of eight devices; a device beside them fails."""
    cluster, wanted = nodes(2, 4), (wish(replicas=2),)
    before = place(cluster, wanted, objective="rent", batches=BATCHES, targets=Targets(tpot_s=0.02))
    used = {rank.device for one in before.replicas for rank in one.ranks}
    for name in ("node0/gpu3", "node1/gpu0", "node1"):
        if any(device.startswith(name) for device in used):
            continue
        found = repair(before, state=State(failed=(name,)))
        assert found.moves == ()
        assert found.placement.served == before.served
        assert {change.fate for change in found.changes} == {"kept"}


def test_a_failed_spare_node_of_a_whole_request_moves_nothing():
    """A demand of replicas that need one of four servers: what is typed says which formats."""
    model = wish().model
    asked = {"workload": Workload(n_input_tokens=512, n_output_tokens=64), "batches": BATCHES}
    most = place(nodes(1, 4), wish(), **asked).output_tokens_per_s
    wanted = wish(demand_tokens_per_s=0.9 * most)
    before = place(nodes(4, 4), wanted, targets=Targets(ttft_s=1.0), **asked)
    used = {rank.node for one in before.replicas for rank in one.ranks}
    (spare, *_) = (f"node{i}" for i in range(4) if f"node{i}" not in used)
    found = repair(_read_back(before), state=State(failed=(spare,)))
    assert (found.moved_bytes, found.best) == (0.0, pytest.approx(found.before))
    assert found.request.wanted.models[0].model == model
    # with the usual in place of what was asked, the same failure would move weights
    forgotten = repair(
        before,
        models=Serve(model=model),
        state=State(failed=(spare,)),
        targets=Targets(),
        objective="throughput",
    )
    assert forgotten.moved_bytes > 0
    assert forgotten.request.changed == ("demands", "formats", "TTFT target", "objective")


def test_what_is_said_anew_changes_that_and_no_more():
    before = place(nodes(2, 4), wish(replicas=1), targets=Targets(tpot_s=0.03), batches=BATCHES)
    found = repair(before, state=State(), targets=Targets(tpot_s=0.02), batches=(8, 64))
    assert found.request.changed == ("latency target", "batches")
    assert "formats" in found.request.inherited
    assert found.request.wanted.models == before.request.models


def test_a_repaired_placement_can_be_repaired_again():
    before = place(nodes(3, 4), wish(replicas=2), objective="devices", batches=BATCHES)
    (first, *_) = before.replicas[0].ranks
    once = repair(before, state=State(failed=(first.device,)))
    gone = once.placement.replicas[0].ranks[-1].device
    twice = repair(_read_back(once.placement), state=State(failed=(first.device, gone)))
    assert twice.request.before.request.state == State(failed=(first.device,))
    assert twice.request.changed == ()
    taken = {rank.device for one in twice.placement.replicas for rank in one.ranks}
    assert not taken & {first.device, gone}


def _tiny_graph() -> nx.Graph[str]:
    graph = pool_graph(load_pool("h100-nvl8-x1"))
    for _, at in graph.nodes(data=True):
        if at["kind"] == "device":
            at["hbm_bytes"] = 2.5e9 + 4e9  # what is reserved is kept free
    return graph


def test_a_graph_that_somebody_brought_is_repaired_from_what_was_read_of_it():
    before = place(_tiny_graph(), wish(replicas=1), batches=BATCHES)
    gone = before.replicas[0].ranks[0].device
    found = repair(_read_back(before), state=State(failed=(gone,)))
    again = repair(before, _tiny_graph(), state=State(failed=(gone,)))
    assert _timeless(found) == _timeless(again)
    assert gone not in {rank.device for rank in found.placement.replicas[0].ranks}


def test_costs_of_groups_are_inherited_from_a_table_and_asked_for_again_of_a_function():
    table = {"node0": (200e9, 3e-6)}
    graph = _tiny_graph()
    before = place(graph, wish(replicas=1), batches=BATCHES, group_costs=table)
    found = repair(_read_back(before), state=State())
    assert found.request.wanted.costs == before.request.costs
    assert found.moves == ()

    def costs(devices):
        return 200e9, 3e-6

    before = place(graph, wish(replicas=1), batches=BATCHES, group_costs=costs)
    assert {one.bytes_per_s for one in before.request.costs} == {200e9}
    with pytest.raises(RequestError, match="function"):
        repair(_read_back(before), state=State())
    assert repair(before, state=State(), group_costs=costs).moves == ()


WORDS = (
    ("--input 2048", "--input 512"),
    ("--output 128",),
    ("--latency-target 40ms", "--latency-target 100ms"),
    ("--ttft-target 1s",),
    ("--min-batch 4",),
    ("--max-quality-loss 4%",),
    ("--max-rent $60/h",),
    ("--max-devices 12",),
    ("--objective rent", "--objective devices", "--objective throughput"),
    ("--replica-devices 4",),
    ("--weights bf16", "--weights bf16,fp8"),
    ("--kv bf16,fp8",),
    ("--batch 1:64", "--batch 4,32,256"),
    ("--solver cpsat",),
    ("--gap 1%",),
    ("--seed 3",),
    ("--proof one",),
)
"""Options of `plan place`; of those in a row one at most is said."""


@pytest.mark.parametrize("seed", range(3))
def test_a_command_without_options_repairs_as_with_all_of_them(seed, tmp_path, monkeypatch, capsys):
    """Files of a folder, text on both sides: what `plan place` was told need not be said again."""
    draw = Random(seed)
    wanted = draw.choice(["--demand 3000tok/s", "--replicas 2"])
    said = [wanted, *(draw.choice(row) for row in WORDS if draw.random() < 0.35)]
    words = " ".join(said).split()
    where = ["--engine", "vllm", "--model", "llama-3.1-8b", "--topology", "h100-nvl8-x2"]
    monkeypatch.chdir(tmp_path)
    Path("failed.toml").write_text('failed = ["node0/gpu0"]\n', encoding="utf-8")
    code = main(["place", *where, *words, "--json"])
    Path("stands.json").write_text(capsys.readouterr().out, encoding="utf-8")
    assert code == 0, said
    printed = []
    for typed in ([], [*where, *words]):
        state = ["--state", "failed.toml"]
        assert main(["repair", "stands.json", *state, *typed, "--json"]) in (0, 1), said
        printed.append(json.loads(capsys.readouterr().out))
    bare, full = map(_without_seconds, printed)
    for part in ("kind", "request", "state", "answer", "certificate"):
        assert bare[part] == full[part], said


def _without_seconds(value: object) -> object:
    """A part of an envelope without the times of solvers."""
    if isinstance(value, dict):
        return {
            key: _without_seconds(inner)
            for key, inner in value.items()
            if key not in ("wall_s", "solve_s")
        }
    return [_without_seconds(one) for one in value] if isinstance(value, list) else value
