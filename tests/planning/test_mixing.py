"""A demand served by replicas of several sorts: never dearer than alike ones, or any others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner import Serve, SolverOptions, Targets, Workload, load_model, load_topology, place, plan
from planner.placing.planning import asked_of
from planner.placing.searching import offered
from planner.verifier.plans import judge_plan

MODEL, POOL = load_model("llama-3.1-70b"), load_topology("h100-nvl8-x4")
WORKLOAD = Workload(n_input_tokens=512, n_output_tokens=256)
LOWERED = {"weights_formats": ("bf16", "fp8", "int4"), "kv_formats": ("bf16", "fp8")}


def planned(demand, **asked):
    targets = Targets(tpot_s=0.040, demand_tokens_per_s=demand)
    keywords = {"workload": WORKLOAD, "targets": targets, "engine": "roofline", **asked}
    return plan(MODEL, POOL, **keywords)


def rent(answer):
    return answer.mix.certificate.objective if answer.mix else answer.deployment.usd_per_hour


@pytest.mark.parametrize("demand", [3000.0, 5500.0, 8000.0, 12_000.0])
@pytest.mark.parametrize("formats", [{}, LOWERED], ids=["published", "lowered"])
def test_a_plan_is_never_dearer_than_a_placement(demand, formats):
    found = place(
        POOL,
        Serve(model=MODEL, demand_tokens_per_s=demand, **formats),
        engine="roofline",
        workload=WORKLOAD,
        targets=Targets(tpot_s=0.040),
    )
    answer = planned(demand, **formats)
    assert rent(answer) <= found.certificate.objective * (1 + 1e-9)
    assert answer.mix_bound <= answer.deployment.usd_per_token * (1 + 1e-9)


@pytest.mark.parametrize(
    ("demand", "formats", "known"),
    [(12_000.0, LOWERED, 17.70), (5500.0, LOWERED, 8.85), (5500.0, {}, 17.70), (8000.0, {}, 23.60)],
)
def test_known_rents_are_reached(demand, formats, known):
    """The least that anybody has found for these demands, by whatever command."""
    assert rent(planned(demand, **formats)) <= known * (1 + 1e-9)


def test_no_random_mix_is_cheaper():
    """Counts of configurations drawn at random, as long as they fit and serve the demand."""
    demand = 5500.0
    answer = planned(demand)
    assert answer.mix is not None
    assert answer.mix.certificate.objective < answer.deployment.usd_per_hour
    asked = asked_of(answer.mix.request, None)
    every = offered(asked, whole=True).configurations
    rng = np.random.default_rng(7)
    n_tried = 0
    while n_tried < 200:
        some = [every[i] for i in rng.integers(0, len(every), int(rng.integers(1, 7)))]
        if sum(one.output_tokens_per_s for one in some) < demand:
            continue
        if sum(one.n_devices for one in some) > POOL.n_devices:
            continue
        n_tried += 1
        assert sum(one.usd_per_hour for one in some) >= rent(answer) * (1 - 1e-9)


def test_a_mix_that_is_altered_is_found():
    answer = planned(5500.0)
    mix = answer.mix
    cases = [
        replace(answer, mix_bound=answer.deployment.usd_per_token * 2),
        replace(answer, mix_bound=None),
        replace(answer, mix=replace(mix, replicas=mix.replicas[:-1])),
        replace(
            answer,
            mix=replace(
                mix, request=replace(mix.request, workload=replace(WORKLOAD, n_input_tokens=9))
            ),
        ),
        replace(
            answer, deployment=replace(answer.deployment, usd_per_hour=mix.used("rent") * 0.99)
        ),
    ]
    assert not judge_plan(answer)[1]
    for altered in cases:
        assert judge_plan(altered)[1]


@pytest.mark.parametrize(
    "asked",
    [
        {"targets": Targets(tpot_s=0.040)},
        {"targets": Targets(tpot_s=0.040, demand_tokens_per_s=5500.0, n_replicas=3)},
        {"prefill": "cost"},
        {"objective": "latency"},
    ],
    ids=["no demand", "so many replicas", "a policy", "another objective"],
)
def test_what_only_alike_replicas_can_be_asked_has_no_mix(asked):
    answer = planned(5500.0, **{"options": SolverOptions(), **asked})
    assert answer.mix is None
    assert answer.mix_bound is None
