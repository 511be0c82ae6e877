"""Planning with the reference model: proof, judgement, memory, and what to say without a plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.errors import NoPlanError, RequestError, SolverError
from planner.estimates.economics.choices import choices, tables_of
from planner.planning.plans import decide, plan
from planner.results.conflicts import Conflict
from planner.results.plans import ErdilPlan
from planner.runtimes.candidates import CandidatePool
from planner.runtimes.erdil2025 import ErdilCandidates
from planner.specs.ask.targets import Speculation, Targets
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.options.counts import DEFAULT_BATCHES
from planner.specs.records.devices import Workload
from planner.specs.records.economics import Drafting, EconomicsRequest, QuantizedModel
from planner.verifier.plans import checked
from research.economics import facts


def planned_decode(request: EconomicsRequest) -> ErdilPlan:
    return decide(CandidatePool(parts=(ErdilCandidates(request=request),)))


LLAMA, POOL = load_model("llama-3-70b"), load_cluster("h100-nvl8-x4")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def asked(model: str, *, context: float = 0.0, draft: str = "", **changes) -> EconomicsRequest:
    served = QuantizedModel(
        weights_format="-",
        target=facts.decode(model, n_context_tokens=context),
        draft=facts.decode(draft, n_context_tokens=context) if draft else None,
    )
    usual = EconomicsRequest(
        served=(served,), n_devices=64, batches=BATCHES, n_cached_tokens=context
    )
    return replace(usual, **changes)


def brute_force(request: EconomicsRequest, quantity) -> float:
    """The least of a quantity over all choices that keep the targets, one after the other."""
    found = choices(request, tables_of(request))
    targets, best = request.targets, np.inf
    for column in range(len(found.batch)):
        one = ErdilCandidates(request=request).described(found, column)
        kept = (
            one.tpot_s <= (targets.tpot_s or np.inf)
            and one.usd_per_token <= (targets.usd_per_token or np.inf)
            and one.n_devices <= (targets.n_devices or np.inf)
            and one.batch >= (targets.min_batch or 0)
        )
        best = min(best, quantity(one)) if kept else best
    return best


@pytest.mark.parametrize(
    ("objective", "quantity"),
    [
        ("cost", lambda one: one.usd_per_token),
        ("latency", lambda one: one.tpot_s),
        ("throughput", lambda one: one.tpot_s / one.batch),
        ("rent", lambda one: one.usd_per_hour),
        ("devices", lambda one: one.n_devices),
    ],
)
@pytest.mark.parametrize(
    "targets",
    [Targets(), Targets(tpot_s=0.015, min_batch=4), Targets(usd_per_token=1e-6, n_devices=24)],
    ids=["free", "fast", "cheap"],
)
def test_every_objective_is_the_least_of_all_choices_that_keep_the_targets(
    objective, quantity, targets
):
    request = asked(
        "Llama_3_70B", draft="Llama_3_8B", objective=objective, targets=targets, n_devices=32
    )
    plan = planned_decode(request)
    assert quantity(plan.deployment) == pytest.approx(brute_force(request, quantity), rel=1e-9)
    assert plan.certificate.gap == 0.0
    assert plan.certificate.status == "optimal"


def test_candidates_are_accounted_for():
    proof = planned_decode(asked("Mixtral_8x22B", draft="Llama_3_8B")).certificate
    assert proof.n_candidates == sum(one.n_candidates for one in proof.screens) + proof.n_solved
    assert proof.screens[0].name == "slower"


def test_runners_up_are_other_splits_in_the_order_of_what_they_lose():
    plan = planned_decode(asked("Llama_3_70B", targets=Targets(tpot_s=0.02)))
    losses = [other.loss_fraction for other in plan.alternatives]
    assert len(losses) == 3
    assert losses == sorted(losses)
    assert losses[0] >= 0.0
    splits = {
        (one.layout.n_stages, one.layout.n_tensor)
        for one in (plan.deployment, *(other.deployment for other in plan.alternatives))
    }
    assert len(splits) == 4


@pytest.mark.parametrize("part", ["token_s", "held_bytes"])
def test_a_choice_that_the_recount_does_not_confirm_is_never_a_plan(part: str):
    request = asked("Llama_3_70B")
    found = choices(request, tables_of(request))
    wrong = replace(found, **{part: getattr(found, part) * (1 + 1e-7)})
    with pytest.raises(SolverError, match="the account disagrees"):
        ErdilCandidates(request=request).described(wrong, 5)


def test_a_deployment_beyond_a_target_is_never_a_plan():
    plan = planned_decode(asked("Llama_3_70B"))
    stricter = replace(plan.request, targets=Targets(tpot_s=plan.deployment.tpot_s * 0.999))
    with pytest.raises(SolverError, match="breaks a limit: tpot"):
        checked(stricter, plan.deployment)


def test_counting_one_microbatch_lets_in_what_no_device_can_hold():
    """Sixteen requests of 100,000 tokens are 524 GB of caches, and four H100 hold 320.

    In four stages the paper's rule counts four of the sixteen, and plans on those.
    """
    only = {"context": 100_000.0, "batches": (16,), "objective": "devices"}
    honest = planned_decode(asked("Llama_3_70B_8_bit", **only)).deployment
    paper = planned_decode(asked("Llama_3_70B_8_bit", memory="one-microbatch", **only)).deployment
    assert paper.layout.n_stages > 1
    assert paper.n_devices < honest.n_devices
    held = 16 * 327_680 * 100_000 / paper.n_devices
    assert held > paper.capacity_bytes
    assert honest.used_bytes <= honest.capacity_bytes


def test_a_draft_that_does_not_fit_beside_its_target_is_never_chosen():
    """70 GB of weights on one device of 80 GB leave no room for 16 GB of draft."""
    one = {"n_devices": 1, "objective": "latency", "drafting": Drafting(acceptance=0.99)}
    alone = planned_decode(asked("Llama_3_70B_8_bit", draft="Llama_3_8B", **one)).deployment
    assert alone.draft is None
    apart = asked("Llama_3_70B_8_bit", draft="Llama_3_8B", memory="one-microbatch", **one)
    assert planned_decode(apart).deployment.draft is not None


def test_a_draft_has_a_layout_of_its_own_on_the_devices_of_its_target():
    best = planned_decode(
        asked("Mixtral_8x22B", draft="Llama_3_8B", objective="latency", n_devices=128)
    ).deployment
    assert best.draft is not None
    assert best.draft.layout.n_devices == best.n_devices
    assert best.draft.layout != best.layout
    round_s = best.step.total_s + best.draft.n_drafted * best.draft.step.total_s
    assert best.tpot_s == pytest.approx(round_s / best.draft.n_yielded, rel=1e-12)


def test_a_limit_that_binds_says_what_more_of_it_would_gain():
    plan = planned_decode(asked("Llama_3_70B", targets=Targets(tpot_s=0.0125)))
    tpot = next(use for use in plan.limits if use.name == "tpot")
    assert tpot.binds
    looser = planned_decode(asked("Llama_3_70B", targets=Targets(tpot_s=0.0125 * tpot.relief)))
    gained = 1 - looser.deployment.usd_per_token / plan.deployment.usd_per_token
    assert tpot.gain_fraction == pytest.approx(gained, rel=1e-9)


def test_more_memory_gains_what_a_larger_device_would():
    request = asked("Llama_3_70B", context=8000.0, n_devices=2)
    plan = planned_decode(request)
    memory = next(use for use in plan.limits if use.name == "hbm")
    target = request.served[0].target
    larger = replace(target.device, hbm_bytes=target.device.hbm_bytes * memory.relief)
    served = (replace(request.served[0], target=replace(target, device=larger)),)
    better = planned_decode(replace(request, served=served)).deployment
    gained = 1 - better.usd_per_token / plan.deployment.usd_per_token
    assert gained > 0
    assert memory.gain_fraction == pytest.approx(gained, rel=1e-9)


def conflict_of(request: EconomicsRequest) -> Conflict:
    with pytest.raises(NoPlanError) as error:
        planned_decode(request)
    assert isinstance(error.value.conflict, Conflict)
    return error.value.conflict


def test_a_target_out_of_reach_is_the_conflict_and_what_is_reachable_has_a_plan():
    conflict = conflict_of(asked("Llama_3_70B", targets=Targets(tpot_s=0.002, min_batch=8)))
    names = {obstacle.name: obstacle.reachable for obstacle in conflict.obstacles}
    assert set(names) == {"tpot"}
    reachable = Targets(tpot_s=names["tpot"], min_batch=8)
    best = planned_decode(asked("Llama_3_70B", targets=reachable)).deployment
    assert best.tpot_s == pytest.approx(names["tpot"])
    just_below = Targets(tpot_s=names["tpot"] * (1 - 1e-6), min_batch=8)
    assert {one.name for one in conflict_of(asked("Llama_3_70B", targets=just_below)).obstacles} & {
        "tpot"
    }


def test_memory_that_is_missing_is_counted_to_the_byte():
    """Just as much memory as the conflict says is enough, and nothing less is."""
    request = asked("Llama_3_70B", context=50_000.0, n_devices=4, batches=(16,))
    conflict = conflict_of(request)
    (obstacle,) = conflict.obstacles
    assert obstacle.name == "hbm"
    served, target = request.served[0], request.served[0].target

    def on(hbm_bytes: float) -> EconomicsRequest:
        device = replace(target.device, hbm_bytes=hbm_bytes)
        return replace(request, served=(replace(served, target=replace(target, device=device)),))

    assert planned_decode(on(obstacle.reachable)).deployment.used_bytes == obstacle.reachable
    conflict_of(on(obstacle.reachable * (1 - 1e-9)))


def test_limits_that_conflict_only_together_are_named_together():
    fast, cheap = Targets(tpot_s=0.009), Targets(usd_per_token=0.4e-6)
    for targets in (fast, cheap):
        planned_decode(asked("Llama_3_70B", targets=targets))
    both = replace(fast, usd_per_token=cheap.usd_per_token)
    conflict = conflict_of(asked("Llama_3_70B", targets=both))
    assert {obstacle.name for obstacle in conflict.obstacles} == {"tpot", "cost"}


def test_a_request_in_our_own_records_is_planned_at_its_mean_context():
    workload = Workload(n_input_tokens=1000, n_output_tokens=201)
    found = plan(LLAMA, POOL, "erdil2025", workload=workload, batches=BATCHES)
    request = found.request
    assert request.served[0].target.n_context_tokens == 1101.0
    assert request.n_cached_tokens == 1201.0
    assert [served.weights_format for served in request.served] == ["bf16"]
    assert found.deployment.n_devices <= POOL.n_devices


def test_a_conflict_comes_back_in_our_records_with_a_command_that_works():
    with pytest.raises(NoPlanError) as error:
        plan(LLAMA, POOL, "erdil2025", targets=Targets(tpot_s=0.001))
    conflict = error.value.conflict
    assert isinstance(conflict, Conflict)
    assert conflict.request.model is LLAMA
    assert conflict.command.endswith("--engine erdil2025")
    asked_ms = conflict.command.partition("--latency-target ")[2].partition("ms")[0]
    plan(LLAMA, POOL, "erdil2025", targets=Targets(tpot_s=float(asked_ms) / 1e3))


def test_formats_that_are_allowed_decide():
    fast = {"objective": "latency", "batches": (1,)}
    every = {"weights_formats": LLAMA.weights_formats}
    narrow = plan(LLAMA, POOL, "erdil2025", **every, **fast).deployment
    wide = plan(LLAMA, POOL, "erdil2025", **fast).deployment
    assert narrow.weights_format == "int4"
    assert wide.weights_format == "bf16"
    assert narrow.tpot_s < wide.tpot_s


def test_a_mixture_with_a_draft_is_planned_on_sixteen_servers():
    found = plan(
        load_model("deepseek-v3"),
        load_cluster("h100-nvl8-x16"),
        "erdil2025",
        targets=Targets(tpot_s=0.030),
        weights_formats=("fp8",),
        speculation=Speculation(draft=replace(load_model("llama-3-8b"), vocab_size=129_280)),
        batches=DEFAULT_BATCHES,
    )
    assert found.deployment.tpot_s <= 0.030
    assert found.certificate.gap == 0.0
    assert any("rotated part" in note for note in found.request.notes)


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"targets": Targets(ttft_s=1.0)}, "--ttft-target"),
        ({"objective": "ttft"}, "--objective"),
        ({"kv_formats": ("fp8",)}, "--kv"),
        ({"memory": "none"}, "--memory"),
        ({"cluster": load_cluster("tpu-v4-4x4x4")}, "--engine"),
    ],
)
def test_what_the_reference_model_cannot_be_asked_is_refused(changes: dict, option: str):
    filled = {"model": LLAMA, "cluster": POOL} | changes
    with pytest.raises(RequestError) as error:
        plan(engine="erdil2025", **filled)
    assert [problem.where for problem in error.value.problems] == [option]
