"""What users feel: by hand, and in the right direction when the traffic changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.equations.speculation import expected_tokens
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.drafting import drafter_of, drafts_of
from planner.estimates.serving.memory import drafter_bytes
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.rules import faults, is_valid
from planner.estimates.serving.serving import Serving, serving_times
from planner.estimates.serving.steps import pass_time
from planner.estimates.serving.traffic import Drafts, Traffic
from tests.estimates.serving.situations import BF16, FP8, clock, model, served

CHAT = Traffic(n_input_tokens=1024, n_output_tokens=512)


def test_a_lone_request_waits_for_nobody():
    """TPOT is its decode pass and the gaps of 36 layers; TTFT its request and its prompt.

    Nothing else is under way.
    """
    times = served("qwen3-8b", deployments(formats=BF16), CHAT)
    engine = clock("h100-nvl8-x1", "vllm").engine
    assert times.tpot_s[0] == times.itl_s[0]
    layers = 36 * (engine.layer_gap_s + engine.inner_norms_s)
    assert times.itl_s[0] == pytest.approx(times.decode.total_s[0] + layers, rel=1e-12)
    parts = times.ttft_parts
    assert (parts["step"], parts["others"]) == (0, 0)
    received_s = engine.request_s + 1024 * engine.request_token_s
    assert times.ttft_s[0] == received_s + parts["reading"][0] + parts["decodes"][0]
    assert parts["reading"] == engine.prefill_host_s + times.prefill.total_s


def test_others_prompts_hold_a_request_up_once_each():
    """TPOT = D + (b − 1) P / OSL, but for prompts that come before its first token."""
    times = served("qwen3-8b", deployments(formats=BF16, batch=64), CHAT)
    waits = times.ttft_parts["others"][0] / (times.ttft_parts["decodes"] + times.prompt_s)[0]
    expected = times.itl_s[0] + 63 * times.added_s[0] / (512 + waits)
    assert times.tpot_s[0] == pytest.approx(expected)


def test_a_cached_prefix_is_not_read_again():
    table = deployments(formats=BF16, batch=32)
    none, half, all_ = (
        served("qwen3-8b", table, replace(CHAT, hit_fraction=share)).ttft_s[0]
        for share in (0.0, 0.5, 1.0)
    )
    assert all_ < half < none


def test_prompts_longer_than_a_chunk_take_several_passes():
    long = Traffic(n_input_tokens=32_768, n_output_tokens=128)
    table = deployments(formats=BF16, n_tensor=4, batch=1, chunk_tokens=[2048, 8192, 65_536])
    times = served("qwen3-32b", table, long)
    assert list(times.n_chunks) == [17, 5, 1]  # one place of a chunk is the decode's
    assert np.all(np.diff(times.ttft_s) < 0)


@pytest.mark.parametrize(("engine", "n_chunks"), [("vllm", 3), ("sglang", 2)])
def test_what_is_drafted_takes_room_of_prompts_where_decodes_ride_along(engine, n_chunks):
    """Of 1024 tokens 16 · (1 + 31) are decoded: 512 are left for 1025 of a prompt."""
    timer, spec = clock("h100-nvl8-x1", engine), model("qwen3-8b")
    table = deployments(formats=BF16, batch=16, chunk_tokens=1024)
    serving = Serving(model=spec, formats=BF16, engine=timer.engine, clock=timer)
    drafts = drafts_of(spec, "eagle", 31, (0.8,))
    times = serving_times(serving, table, replace(CHAT, n_input_tokens=1025.0), drafts=drafts)
    assert times.n_chunks[0] == n_chunks


def test_what_does_not_fit_queues():
    table = deployments(formats=BF16, batch=[16, 4096])
    times = served("qwen3-8b", table, CHAT)
    assert times.n_running[0] == 16
    assert times.queue_s[0] == 0
    assert times.n_running[1] < 4096
    assert times.queue_s[1] > times.tpot_s[1] * CHAT.n_output_tokens


def test_drafts_pay_by_what_they_yield():
    timer = clock("h800-nvl8-x16", "sglang")
    spec = model("tests/specs/huggingface/configs/DeepSeek-V3_config.json")
    table = deployments(formats=FP8, n_data=32, n_expert_parallel=32, batch=16)
    serving = Serving(model=spec, formats=FP8, engine=timer.engine, clock=timer)
    drafter = drafter_of(spec, "mtp")
    usual = serving_times(serving, table, CHAT)
    for acceptance in (0.0, 0.9):
        drafts = Drafts(
            n_drafted=1, yields=expected_tokens(1, acceptance), drafter=drafter, n_passes=1
        )
        drafted = serving_times(serving, table, CHAT, drafts=drafts)
        assert bool(drafted.tpot_s[0] < usual.tpot_s[0]) == (acceptance > 0.5)


def test_drafted_tokens_come_in_bursts_that_wait_for_the_check_and_the_drafter():
    """ITL = V + n_passes · drafter, TPOT = ITL / y + (b − 1) P / OSL."""
    timer = clock("h20-nvl8-x1", "sglang")
    spec = model("qwen3-8b")
    table = deployments(formats=FP8, batch=16)
    serving = Serving(model=spec, formats=FP8, engine=timer.engine, clock=timer)
    drafter = drafter_of(spec, "eagle")
    usual = serving_times(serving, table, CHAT)
    once, thrice = (
        serving_times(
            serving,
            table,
            CHAT,
            drafts=Drafts(n_drafted=3, yields=2.5, drafter=drafter, n_passes=n_passes),
        )
        for n_passes in (1, 3)
    )
    one = PassShape(n_decoding=16.0, context=CHAT.mean_context)
    drafting = pass_time(drafter, table, one, serving.run_formats, timer).total_s
    assert once.decode_s == thrice.decode_s > usual.decode_s  # four positions instead of one
    assert thrice.itl_s == pytest.approx(once.decode_s + 3 * drafting)
    assert once.itl_s == pytest.approx(once.decode_s + drafting)
    held_up = 15 * thrice.added_s / CHAT.n_output_tokens
    assert thrice.tpot_s == pytest.approx(thrice.itl_s / 2.5 + held_up, rel=1e-4)
    assert usual.itl_s == usual.decode_s


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_the_parts_of_a_first_token_are_what_they_are_called(engine):
    """vLLM reads prompts beside decodes, which make the pass longer; SGLang reads them alone."""
    timer = clock("h100-nvl8-x1", engine)
    table = deployments(formats=BF16, n_tensor=2, batch=8)
    times = served("qwen3-30b-a3b", table, CHAT, engine=engine)
    parts = {name: float(part[0]) for name, part in times.ttft_parts.items()}
    assert parts["request"] == timer.engine.request_s + 1024 * timer.engine.request_token_s
    assert parts["step"] > times.itl_s[0] / 2  # at times it is a pass that reads a prompt
    assert parts["reading"] == times.prompt_s[0]
    assert (parts["decodes"] > 0) == timer.engine.mixes_prefill
    assert 0 < parts["others"] < parts["reading"] / 100
    assert times.ttft_s[0] == pytest.approx(sum(parts.values()))


@pytest.mark.parametrize("kind", ["eagle", "medusa"])
def test_any_model_can_be_drafted_for(kind):
    drafter = drafter_of(model("qwen3-32b"), kind)
    assert drafter.n_layers == 1
    assert drafter.n_params < 0.2 * model("qwen3-32b").n_params


@pytest.mark.parametrize("kind", ["eagle", "medusa"])
def test_a_round_of_drafts_takes_no_less_than_reading_the_drafter(kind):
    """Five heads of Medusa are five matrices of 1.05 GB; EAGLE reads its layer five times."""
    timer, spec = clock("h100-nvl8-x1", "vllm"), model("llama-3.1-8b")
    table = deployments(formats=BF16)
    serving = Serving(model=spec, formats=BF16, engine=timer.engine, clock=timer)
    drafts = drafts_of(spec, kind, 5, (0.7,))
    found = serving_times(serving, table, CHAT, drafts=drafts)
    read_bytes = drafter_bytes(drafts, table, BF16)[0] * (5 if kind == "eagle" else 1)
    least_s = read_bytes / timer.device.hbm_bytes_per_s
    assert least_s < found.itl_s[0] - found.decode_s[0] < 5 * least_s


def test_a_model_without_predictors_says_so():
    with pytest.raises(ValueError, match="has no layer that predicts"):
        drafter_of(model("qwen3-8b"), "mtp")


def test_engines_rules_say_what_they_refuse():
    table = deployments(formats=BF16, n_tensor=[1, 3, 16], n_expert_parallel=[1, 1, 4])
    spec = model("qwen3-30b-a3b")  # 32 heads, 4 of keys, 128 experts of 768 columns
    assert list(is_valid(spec, table)) == [True, False, True]
    broken = faults(spec, deployments(formats=BF16, n_tensor=2, n_expert_parallel=4))
    said = [fact for fact, hit in broken.items() if hit[0]]
    assert said == ["expert groups times their cuts are not the devices of a stage"]


def test_stages_share_the_layers_and_the_time_of_prompts():
    one, two = (
        served("qwen3-32b", deployments(formats=BF16, n_tensor=4, n_stages=n, batch=32), CHAT)
        for n in (1, 2)
    )
    assert two.itl_s[0] < one.itl_s[0]  # micro-batches are smaller
    assert two.added_s[0] < one.added_s[0]
