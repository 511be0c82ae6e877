"""A model by name and by its `config.json`: one question, one answer, whatever the runtime."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import cycle

import pytest

from planner import (
    NoPlanError,
    RequestError,
    Targets,
    Workload,
    load_architecture,
    place,
    plan,
    verify,
)
from planner.planning.audit import audit
from planner.report.as_json import answer_json
from planner.specs.ask.targets import Degrees, Speculation
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.records.models import ModelSpec
from planner.specs.records.variants import Variant
from planner_workshop.staging.asking import cut_stages
from tests.specs.huggingface.published import path_of

PAIRS = {
    "llama-3.1-8b": "Llama-3.1-8B",
    "llama-3.1-70b": "Llama-3.1-70B",
    "llama-3.1-405b": "Llama-3.1-405B",
    "qwen3-8b": "Qwen3-8B",
    "qwen3-32b": "Qwen3-32B",
    "qwen3-30b-a3b": "Qwen3-30B-A3B",
    "qwen3-235b-a22b": "Qwen3-235B-A22B",
    "mixtral-8x7b": "Mixtral-8x7B-v0.1",
    "mixtral-8x22b": "Mixtral-8x22B-v0.1",
    "mistral-large-2": "Mistral-Large-Instruct-2407",
    "deepseek-v3": "DeepSeek-V3",
    "kimi-k2": "Kimi-K2-Instruct",
    "gpt-oss-120b": "gpt-oss-120b",
}
"""All that ship and whose config is at hand, but Falcon: its checkpoint stores an output embedding
that its config says nothing of."""

WORKLOAD = Workload(n_input_tokens=1500, n_output_tokens=300)
TARGETS = Targets(tpot_s=0.060)
BATCHES = (1, 4, 8, 16, 32, 64, 128)
POOL = "h200-nvl8-x4"
NORMS = 4e-4
"""Share of a model's bytes that norms, sinks and biases are at most; files leave them out."""


def both(name: str, load):
    return load(name), load(str(path_of(PAIRS[name])))


def answer(find):
    """What is found, or what is said of it."""
    try:
        return find()
    except NoPlanError as error:
        return [(one.name, one.asked) for one in error.conflict.obstacles]
    except RequestError as error:
        return [(one.where, one.fact) for one in error.problems]


@pytest.mark.parametrize("name", PAIRS)
def test_layouts_plan_both_alike(name: str) -> None:
    asked = {"workload": WORKLOAD, "targets": TARGETS, "batches": BATCHES}
    pool = load_cluster(POOL)
    named, read = (
        answer(lambda one=one: plan(one, pool, "roofline", **asked))
        for one in both(name, load_model)
    )
    if isinstance(named, list):
        assert named == read
        return
    ours, theirs = named.deployment, read.deployment
    assert ours.summary == theirs.summary
    assert (ours.tpot_s, ours.ttft_s) == (theirs.tpot_s, theirs.ttft_s)
    assert ours.memory == theirs.memory
    assert named.request.weights_formats == read.request.weights_formats


@pytest.mark.parametrize(
    ("name", "engine"), list(zip(PAIRS, cycle(["vllm", "sglang", "trtllm"]), strict=False))
)
def test_engines_plan_both_alike(name: str, engine: str) -> None:
    """Each record under one engine: what differs is how the record is made, not who serves it."""
    asked = {"workload": WORKLOAD, "targets": TARGETS, "batches": BATCHES, "chunks": (8192,)}
    pool = load_cluster(POOL)
    named, read = (
        answer(lambda one=one: plan(one, pool, engine, **asked))
        for one in both(name, load_architecture)
    )
    if isinstance(named, list):
        assert named == read
        return
    ours, theirs = named.deployment, read.deployment
    assert ours.summary == theirs.summary
    assert ours.tpot_s.value == pytest.approx(theirs.tpot_s.value, rel=1e-9)
    assert ours.ttft_s.value == pytest.approx(theirs.ttft_s.value, rel=1e-9)
    assert ours.used_bytes == pytest.approx(theirs.used_bytes, rel=NORMS)


@pytest.mark.parametrize("name", ["llama-3.1-70b", "deepseek-v3", "mixtral-8x22b"])
def test_the_economics_model_plans_both_alike(name: str) -> None:
    pool = load_cluster(POOL)
    named, read = (
        answer(lambda one=one: plan(one, pool, "erdil2025", batches=BATCHES).deployment)
        for one in both(name, load_model)
    )
    assert named == read


ALONE = {"targets": Targets(degrees=Degrees(tensor=1, pipeline=1))}

DIFFUSION = Variant(
    of="llama-3.1-8b", how="diffusion", quality="as good", n_denoising_steps=8, n_block_tokens=32
)


def decoded_by_diffusion(load):
    return replace(load("llama-3.1-8b"), name="blocks", variant=DIFFUSION)


class TestDiffusion:
    """A block at a time: layouts, `predict` and engines time its passes, others refuse it."""

    def refused(self, find, option: str = "--model") -> None:
        with pytest.raises(RequestError) as caught:
            find()
        (problem,) = [one for one in caught.value.problems if one.value == "blocks"]
        assert (problem.where, problem.fact.split(",")[0]) == (option, "is decoded by diffusion")

    def test_the_reference_model_drafts_roles_and_audits_refuse_it(self) -> None:
        model: ModelSpec = decoded_by_diffusion(load_model)
        pool, own = load_cluster("h100-nvl8-x1"), load_model("llama-3.1-8b")
        self.refused(lambda: plan(model, pool, "erdil2025"))
        for target, draft in ((own, model), (model, own)):
            drafted = Speculation(draft=draft, acceptance=0.7, lookaheads=(2,))
            said = {"speculation": drafted}
            self.refused(lambda t=target, s=said: plan(t, pool, "roofline", **s), "--draft")
        self.refused(lambda: audit(model, pool, speed_tokens_per_s=9.0, batch=1))
        self.refused(lambda: place(pool, model, engine="roofline", roles="apart"))

    def test_layouts_pass_over_prompt_and_answer_by_hand(self) -> None:
        """Each token takes 8 passes of 32 over 1,280 tokens, of which each meets all others.

        An H100 attains 0.68 of its peak: 32 layers of 4 · 4,096 FLOP a pair, and 2 for each
        parameter but the words, whose head all positions pass.
        """
        model, pool = decoded_by_diffusion(load_model), load_cluster("h100-nvl8-x1")
        asked = {"workload": Workload(n_input_tokens=1024, n_output_tokens=256), "batches": (4,)}
        answer = plan(model, pool, "roofline", prefill_batches=(4,), **asked, **ALONE)
        done, device = answer.deployment, pool.device
        attained = device.compute_fraction * device.peak_flop_per_s["bf16"]
        assert done.decode.step.attention_s * attained == pytest.approx(
            0.25 * 4 * 32 * 4 * 4096 * 1280**2
        )
        met = model.n_params - model.vocab_size * model.d_model
        exponent, times = device.roofline_exponent, (2.0 * met * 4 * 1280 / attained,)
        read_s = met * 2.0 / (device.hbm_fraction * device.hbm_bytes_per_s)
        norm = (times[0] ** exponent + read_s**exponent) ** (1 / exponent)
        step = done.decode.step
        assert step.compute_s + step.weights_s == pytest.approx(0.25 * norm)
        assert done.tpot_s == pytest.approx(0.25 * done.ttft_s)
        assert (done.memory.decode_kv_bytes, done.decode.n_tokens) == (0.0, 4 * 1280)
        assert done.decode.mfu_fraction == pytest.approx(done.prefill.mfu_fraction)
        assert verify(json.loads(json.dumps(answer_json(answer)))).is_true

    def test_layouts_serve_it_in_the_place_of_a_model_and_at_a_demand(self) -> None:
        model, pool = decoded_by_diffusion(load_model), load_cluster("h100-nvl8-x1")
        most = replace(Targets(), demand_tokens_per_s=50.0)
        own = replace(load_model("llama-3.1-8b"), n_context_tokens=64)
        asked = {"workload": Workload(n_input_tokens=512, n_output_tokens=64), "batches": (8,)}
        answer = plan(model, pool, "roofline", targets=most, prefill_batches=(1,), **asked)
        assert answer.load is not None
        assert answer.load.ttft_s > 0.99 * answer.deployment.ttft_s > 0
        assert verify(json.loads(json.dumps(answer_json(answer)))).is_true
        with pytest.raises(RequestError, match="--model"):
            plan(own, pool, "roofline", variants=[model], **asked)
        kept = plan(load_model("llama-3.1-8b"), pool, "roofline", variants=[model], **asked)
        assert {one.name for one in kept.variants} == {"blocks"}

    def test_stages_refuse_it(self) -> None:
        self.refused(lambda: cut_stages(decoded_by_diffusion(load_architecture), "h100-sxm:tp1x2"))

    def test_an_engine_takes_fewer_passes_for_a_token(self) -> None:
        asked = {"batches": (8,), "chunks": (8192,), "targets": Targets()}
        pool = load_cluster("h100-nvl8-x1")
        plain = plan(load_architecture("llama-3.1-8b"), pool, "vllm", **asked)
        blocks = plan(decoded_by_diffusion(load_architecture), pool, "vllm", **asked)
        assert blocks.deployment.tpot_s.value != plain.deployment.tpot_s.value
