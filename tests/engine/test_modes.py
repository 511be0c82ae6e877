"""Drafts, overlap and variants as choices: the best of all by loops, and the same as predicted."""

from __future__ import annotations

import itertools
import json
import shlex
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from planner.commands.cli import main
from planner.errors import NoPlanError, RequestError
from planner.estimates.serving.choices import degrees
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.rules import is_valid
from planner.estimates.serving.timer import Timer
from planner.estimates.serving.traffic import Traffic
from planner.planning.plans import plan
from planner.results.plans import EnginePlan
from planner.runtimes.engine_requests import machines_of
from planner.runtimes.engines import engine_candidates
from planner.runtimes.predicting import Speculating, predict
from planner.specs.ask.engine import DraftOptions, PlanOptions
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.reading import load_architecture, load_cluster
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import Workload
from planner.specs.records.served_formats import ServedFormats, as_published
from planner.specs.records.variants import Variant
from tests.clocks import least_s

WORK = Workload(n_input_tokens=2048, n_output_tokens=256)
TRAFFIC = Traffic(n_input_tokens=2048.0, n_output_tokens=256.0)
EAGLE = DraftOptions(kind="eagle", acceptance=(0.7, 0.4), lookaheads=(3,))
BOTH = ("none", "two-batch")
SMALL = {"batches": (8, 128), "chunks": (4096,)}
WIDTH = "llama-3.1-minitron-4b-width"

model, cluster = cache(load_architecture), cache(load_cluster)


def planned(name: str, pool: str, engine: str, **asked: object) -> EnginePlan:
    return plan(
        model(name), cluster(pool), engine, workload=WORK, **{"prefer": "objective", **asked}
    )


def by_loops(served: Architecture, pool: str, engine: str, tpot_s: float) -> float:
    """The least cost of all deployments, with and without drafts and overlap, by `predict`."""
    spec = cluster(pool)
    machines, published = machines_of(spec, engine), as_published(served)[0]
    formats = ServedFormats(weights=published, experts=published, cache="bf16")
    sizes, best = range(1, spec.n_devices + 1), np.inf
    for tensor, data, stages, expert in itertools.product(sizes, repeat=4):
        group = tensor * data
        if group * stages > spec.n_devices or group % expert:
            continue
        if engine == "vllm" and expert not in (1, group):
            continue
        for batch, n_drafted, overlaps in itertools.product(
            SMALL["batches"], (0, *EAGLE.lookaheads), (False, True)
        ):
            one = deployments(
                formats=formats,
                n_tensor=tensor,
                n_data=data,
                n_stages=stages,
                n_expert_parallel=expert,
                batch=batch,
                chunk_tokens=4096,
                overlaps=overlaps,
            )
            if not is_valid(served, one)[0] or (overlaps and (batch < 2 or not one.exchanges[0])):
                continue
            drafts = None
            if n_drafted:
                drafts = Speculating(kind="eagle", n_drafted=n_drafted, acceptance=(0.7, 0.4))
            try:
                found = predict(served, machines, one, TRAFFIC, speculating=drafts)
            except RequestError:
                continue
            if found.n_running == batch and found.tpot_s.value <= tpot_s:
                rent = found.n_devices * spec.usd_per_hour / 3600.0
                best = min(best, rent / found.total_tokens_per_s)
    return best


@pytest.mark.parametrize(
    ("name", "engine", "tpot_s"),
    [("qwen3-8b", "vllm", 0.05), ("qwen3-30b-a3b", "sglang", 0.012)],
)
def test_the_plan_is_the_best_of_all_by_loops(name, engine, tpot_s):
    found = planned(
        name,
        "h100-nvl8-x1",
        engine,
        targets=Targets(tpot_s=tpot_s),
        drafting=EAGLE,
        overlaps=BOTH,
        confidence=0.0,
        **SMALL,
    )
    best = by_loops(model(name), "h100-nvl8-x1", engine, tpot_s)
    assert found.deployment.usd_per_token == pytest.approx(best, rel=1e-9)
    assert found.deployment.n_drafted > 0


def test_a_drafter_takes_room_beside_the_model():
    """Qwen3-8B: a layer of 193 million numbers, 2 × 4096² before it, 4 KiB of cache a token."""
    spec, pool = model("qwen3-8b"), cluster("h100-nvl8-x1")
    clock = machines_of(pool, "vllm").clock
    plain = planned("qwen3-8b", "h100-nvl8-x1", "vllm", drafting=EAGLE, **SMALL)
    timer = Timer(model=spec, clock=clock, request=plain.request)
    found = timer.choices(degrees(spec, plain.request), np.inf)
    held = found.fixed_bytes + found.moving_bytes
    alone, drafted = found.table.n_devices == 1, found.n_drafted > 0
    more = held[alone & drafted] - held[alone & ~drafted]
    layer = 2 * 4096 * (4096 + 1024) + 3 * 4096 * 12_288
    weights = 2.0 * (layer + 2 * 4096**2)
    assert more == pytest.approx([weights + batch * 2304 * 4096 for batch in (8, 128)], rel=1e-3)


def test_drafts_that_are_never_accepted_are_left():
    """A round with nothing accepted gives one token for a longer pass and a drafter's."""
    nothing = replace(EAGLE, acceptance=(0.0,))
    found = planned("qwen3-8b", "h100-nvl8-x1", "vllm", drafting=nothing, **SMALL)
    plain = planned("qwen3-8b", "h100-nvl8-x1", "vllm", **SMALL)
    assert found.deployment == plain.deployment


def test_overlap_is_taken_where_messages_take_long():
    """Latency over 64 devices of 8 nodes: dispatch and combine leave the nodes."""
    pool = "h100-nvl8-x8"
    asked = {"objective": "throughput", "batches": (64,), "chunks": (4096,)}
    asked["targets"] = Targets(tpot_s=0.1)
    plain = planned("deepseek-v3", pool, "sglang", **asked)
    found = planned("deepseek-v3", pool, "sglang", overlaps=BOTH, **asked)
    forced = planned("deepseek-v3", pool, "sglang", overlaps=BOTH[1:], **asked)
    assert forced.deployment.overlap == "two-batch"
    best = max(plan.deployment.output_tokens_per_s for plan in (plain, forced))
    assert found.deployment.output_tokens_per_s == best


def test_a_hundred_thousand_deployments_with_drafts_and_overlap_take_five_seconds():
    """CPU seconds of one core, for each 100,000 of those that fit."""
    spec = cluster("h200-nvl8-x4")
    (planner,) = engine_candidates(
        model("deepseek-v3"),
        spec,
        "sglang",
        PlanOptions(
            workload=WORK,
            targets=Targets(),
            weights_formats=None,
            kv_formats=None,
            batches=None,
            chunks=(4096,),
            objective="cost",
            confidence=0.0,
            prefer="objective",
            options=SolverOptions(),
            overlaps=BOTH,
            drafting=EAGLE,
        ),
    )
    timer = planner.offered.timer
    every: list[object] = []
    (spent_s,) = least_s(
        lambda: every.append(timer.choices(degrees(timer.model, timer.request), 1.0)),
        until=lambda spent: spent * 100_000 / len(every[-1]) <= 5.0,
    )
    found = every[-1]
    assert found.n_drafted.max() == 3
    assert found.table.overlaps.any()
    assert spent_s * 100_000 / len(found) <= 5.0


def test_the_best_of_a_model_and_its_variant_is_the_better_of_both():
    base, variant = model("llama-3.1-8b"), model(WIDTH)
    each = [
        plan(one, cluster("h100-nvl8-x1"), "vllm", workload=WORK, **SMALL)
        for one in (base, variant)
    ]
    both = planned("llama-3.1-8b", "h100-nvl8-x1", "vllm", variants=[variant], **SMALL)
    assert both.deployment.usd_per_token == min(p.deployment.usd_per_token for p in each)
    assert both.deployment.variant == both.deployment.model == WIDTH
    assert both.deployment.quality_loss_fraction == 0.0735
    assert both.certificate.n_candidates == sum(p.certificate.n_candidates for p in each)


def test_a_variant_that_loses_too_much_is_out():
    limit = Targets(quality_loss_fraction=0.07)
    found = planned(
        "llama-3.1-8b", "h100-nvl8-x1", "vllm", variants=[model(WIDTH)], targets=limit, **SMALL
    )
    assert found.deployment.variant == ""
    assert found.request.variants == ()


def test_what_is_no_variant_is_refused():
    with pytest.raises(RequestError, match="not said to be a variant"):
        planned("llama-3.1-8b", "h100-nvl8-x1", "vllm", variants=[model("qwen3-8b")])


def test_a_diffusion_decoder_passes_once_a_step_over_a_block():
    """Blocks of 8 tokens in 4 passes: two tokens a pass of eight positions, nothing drafted."""
    base = model("qwen3-8b")
    said = Variant(
        of=base.name, how="diffusion", quality="none", n_denoising_steps=4, n_block_tokens=8
    )
    diffusing = replace(base, name="qwen3-8b-diffused", variant=said)
    found = planned("qwen3-8b", "h100-nvl8-x1", "vllm", variants=[diffusing], **SMALL)
    assert found.deployment.variant == "qwen3-8b-diffused"
    assert found.deployment.n_drafted == 0
    one = deployments(
        formats=ServedFormats(weights="bf16", experts="bf16", cache="bf16"), chunk_tokens=4096
    )
    machines = machines_of(cluster("h100-nvl8-x1"), "vllm")
    plain, blocks = (predict(m, machines, one, TRAFFIC) for m in (base, diffusing))
    assert blocks.tokens_per_step == 2.0
    assert plain.tpot_s.value / 2.0 < blocks.tpot_s.value < plain.tpot_s.value


def test_no_plan_of_any_model_is_a_conflict():
    with pytest.raises(NoPlanError):
        planned(
            "llama-3.1-8b",
            "h100-nvl8-x1",
            "vllm",
            variants=[model(WIDTH)],
            targets=Targets(tpot_s=1e-4),
            **SMALL,
        )


@pytest.mark.parametrize(
    "words",
    [
        "--engine sglang --model qwen3-30b-a3b --topology h100-nvl8-x1 --latency-target 12ms "
        "--weights fp8 --draft eagle --lookahead 1:3 --overlap two-batch --batch 8,64 --chunk 4096 "
        "--confidence 0",
        "--engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --variants all --batch 8",
    ],
)
def test_the_command_of_a_plan_predicts_the_same(words, capsys):
    assert main([*shlex.split(words), "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["answer"]["deployment"]
    assert main([*shlex.split(best["command"])[1:], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["answer"]
    assert found["model"] == best["model"]
    assert found["tpot_s"] == best["tpot_s"]
    assert found["overlap"] == best["overlap"]
