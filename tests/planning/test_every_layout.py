"""`plan` beside an enumeration of all layouts, which knows of no reason to leave any out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import load_model, load_topology, plan
from planner.specs.ask.targets import Targets
from planner.specs.records.devices import Workload
from tests.benchmarks.layouts import agree, planned
from tests.planning.every_layout import Asked, drawn, every_pair

FEW_SEEDS = (3, 26, 104, 130, 171, 205)
"""Dense models and experts, on servers and slices; 26 and 104 have fewer experts than devices."""


@pytest.mark.parametrize("seed", FEW_SEEDS)
def test_no_layout_beats_the_plan_of_a_request_at_random(seed):
    asked, pairs = drawn(seed)
    assert agree(pairs.best(asked), planned(asked))


def few_large_experts() -> Asked:
    """Eight experts, one for a token, on servers of eight devices, and a TTFT that TP 8 meets."""
    model = load_model("qwen3-235b-a22b")
    moe = replace(model.moe, n_experts=8, n_active_experts=1, d_expert=2048)
    shape = {"n_layers": 72, "d_model": 1024, "d_ff": 15360, "n_kv_heads": 8}
    return Asked(
        model=replace(model, **shape, n_heads=40, n_heads_served=40, moe=moe),
        cluster=load_topology("dgx-a100-x3"),
        workload=Workload(n_input_tokens=2048, n_output_tokens=4096),
        formats=(("fp8", "fp4"), ("bf16", "fp8")),
        batches=((1, 2, 29, 35), (64, 256, 728)),
        targets=Targets(ttft_s=0.0359704463),
    )


def test_attention_may_be_gathered_over_two_of_eight_devices_behind_a_switch():
    """Weights rest alike on all eight, whole experts too; decode alone counts them as 2×4."""
    asked = few_large_experts()
    found = plan(asked.model, asked.cluster, "roofline", **asked.as_arguments())
    best = found.deployment
    assert best.mesh.axes == (2, 4, 1)
    assert (best.sliced_axes, best.copied_axes) == ("", "")
    assert (best.prefill.gathered_axes, best.decode.gathered_axes) == ("", "x")
    assert found.certificate.objective == pytest.approx(every_pair(asked).best(asked), rel=1e-12)
    on_one_axis = next(o for o in found.alternatives if o.deployment.mesh.axes == (8, 1, 1))
    assert on_one_axis.loss_fraction > 0.01
