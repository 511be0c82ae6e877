"""Fixed degrees: only layouts that divide the model so are looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner import NoPlanError, RequestError, Targets, compare, plan
from planner.estimates.candidates import machine_of
from planner.layouts.degrees import degrees_of
from planner.layouts.options import all_layouts
from planner.specs.ask.targets import Degrees
from planner.specs.records.shapes import MoeShape
from tests.requests import MODEL, WORKLOAD, nodes, torus

MOE = replace(
    MODEL,
    moe=MoeShape(
        n_experts=8, n_active_experts=2, n_shared_experts=0, d_expert=2048, n_dense_layers=0
    ),
)


def solve(cluster, model=MODEL, *, targets=None, **degrees):
    asked = replace(targets or Targets(), degrees=Degrees(**degrees))
    filled = {"batches": (1, 8, 64), "prefill_batches": (1, 4)}
    return plan(model, cluster, workload=WORKLOAD, targets=asked, **filled)


def refused(cluster, model=MODEL, **degrees):
    with pytest.raises(RequestError) as caught:
        solve(cluster, model, **degrees)
    return caught.value.problems


@pytest.mark.parametrize(("tensor", "pipeline"), [(1, 1), (1, 4), (2, 2), (4, 1), (4, 2), (8, 1)])
def test_the_plan_has_the_degrees_that_were_fixed(tensor, pipeline):
    best = solve(nodes(2), tensor=tensor, pipeline=pipeline).deployment
    assert best.mesh.n_stages == pipeline
    assert np.prod(best.mesh.axes) == tensor


def test_fixing_what_the_free_plan_chose_changes_nothing_and_nothing_else_is_cheaper():
    free = solve(nodes(2)).deployment
    tensor, pipeline = int(np.prod(free.mesh.axes)), free.mesh.n_stages
    same = solve(nodes(2), tensor=tensor, pipeline=pipeline).deployment
    assert same == free
    for other in (1, 2, 4, 8):
        cost = solve(nodes(2), tensor=other, pipeline=1).deployment.usd_per_token
        assert cost >= free.usd_per_token * (1 - 1e-9)


def test_experts_and_copies_of_attention_are_fixed_too():
    """Two servers of four: a copy of attention on each, cut in four; experts over all eight."""
    best = solve(nodes(2), MOE, tensor=4, data=2, expert=8).deployment
    assert best.decode.layout == "DP 2 × TP 4, EP 8"
    whole = solve(nodes(1), MOE, data=1, tensor=4, expert=4).deployment
    assert whole.decode.layout == "TP 4, EP 4"


def test_tensor_times_data_is_the_stage():
    machine = machine_of(nodes(2), MOE)
    layouts = all_layouts(machine.meshes, moe=MOE.moe)
    found = degrees_of(MOE, layouts, machine.meshes)
    n_devices = machine.meshes.n_devices[layouts.mesh]
    assert (found["tensor"] * found["data"] * found["pipeline"] == n_devices).all()
    assert set(found["expert"].tolist()) == {1, 2, 4, 8}


def test_a_degree_that_no_mesh_has_names_the_nearest():
    (problem,) = refused(nodes(2), tensor=3)
    assert (problem.where, problem.value) == ("--tp", "3")
    assert problem.remedy == "nearest: `--tp 2` or `--tp 4`"
    (problem,) = refused(nodes(2), tensor=100)
    assert problem.remedy == "nearest: `--tp 8`"


def test_degrees_that_hold_alone_but_not_together_name_the_nearest_beside_the_first():
    """Eight devices: eight in a group leave one stage."""
    (problem,) = refused(nodes(2), tensor=8, pipeline=2)
    assert problem.where == "--pp"
    assert problem.fact.endswith("with `--tp 8`")
    assert problem.remedy == "nearest: `--pp 1`"


def test_a_dense_model_has_no_experts_and_no_copies_of_attention():
    problems = refused(nodes(1), expert=2, data=2)
    assert [problem.where for problem in problems] == ["--ep", "--dp"]
    assert solve(nodes(1), data=1).deployment == solve(nodes(1)).deployment


def test_pools_of_a_comparison_that_lack_the_degree_say_so():
    targets = Targets(degrees=Degrees(tensor=8))
    found = compare([MODEL], [nodes(1), nodes(2)], targets=targets, workload=WORKLOAD)
    assert "no mesh of `toy-x1` has it" in found.rows[0].reason
    assert found.best == 1


def test_heads_that_do_not_divide_are_padded_and_the_plan_says_so():
    """32 heads over 12 devices: 3 on the busiest, as if there were 36; 4 KV heads, 3 copies."""
    best = solve(nodes(1, per_node=12), tensor=12).deployment
    told = {one.things: one for one in best.prefill.divisions}
    assert best.prefill.attention == "heads"
    assert (told["query heads"].n_things, told["query heads"].n_parts) == (32, 12)
    assert told["query heads"].n_most == 3
    assert (told["KV heads"].n_most, told["KV heads"].n_copies) == (1, 3)


def test_layers_that_do_not_divide_leave_the_busiest_stage_one_more():
    """16 layers in three stages: six in the longest."""
    best = solve(nodes(1), pipeline=3).deployment
    (layers,) = [one for one in best.decode.divisions if one.things == "layers"]
    assert (layers.n_things, layers.n_parts, layers.n_most) == (16, 3, 6)


def test_a_conflict_keeps_the_degrees_in_its_command():
    with pytest.raises(NoPlanError) as caught:
        solve(torus(1, 2, 2), tensor=2, targets=Targets(tpot_s=1e-4))
    assert "--tp 2" in caught.value.conflict.command
