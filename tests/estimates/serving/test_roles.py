"""Workers of one phase: by hand for one request, and never worse at it than those of both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.memory import holding
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.steps import pass_time, prefill_gaps_s
from planner.estimates.serving.times import place_s
from planner.estimates.serving.traffic import Traffic
from planner.specs.records.roles import DECODE, PREFILL, ROLES, TOGETHER
from tests.estimates.serving.situations import BF16, clock, model, served

CHAT = Traffic(n_input_tokens=1024, n_output_tokens=512)
ENGINES = ("vllm", "sglang", "trtllm")


def _output_tokens_per_s(table, traffic, times):
    each_s = place_s(traffic, ttft_s=times.ttft_s, tpot_s=times.tpot_s, prompt_s=times.prompt_s)
    return times.n_running * table.n_data * traffic.n_output_tokens / each_s


@pytest.mark.parametrize("engine", ENGINES)
def test_a_lone_prompt_is_read_in_its_own_passes_after_half_of_one_before_it(engine):
    """3000 tokens in passes of 2048: two of 1500, the second with 750 behind on average."""
    timer, spec = clock("h100-nvl8-x1", engine), model("qwen3-30b-a3b")
    table = deployments(formats=BF16, n_tensor=2, chunk_tokens=2048)
    asked = Traffic(n_input_tokens=3000, n_output_tokens=512, role=PREFILL)
    times = served("qwen3-30b-a3b", table, asked, engine=engine)
    work = PassShape(n_prompts=np.ones(1), prompt_tokens=1500.0, past_tokens=750.0)
    alone = pass_time(spec, table, work, BF16, timer).total_s + prefill_gaps_s(spec, timer.engine)
    received_s = timer.engine.request_s + 3000 * timer.engine.request_token_s
    assert times.ttft_s == pytest.approx(received_s + 3 * alone)
    assert _output_tokens_per_s(table, asked, times) == pytest.approx(512 / (2 * alone))
    assert (times.tpot_s, times.itl_s, times.queue_s) == (0, 0, 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_lone_answer_takes_a_pass_for_each_token_as_it_would_beside_its_prompt(engine):
    table = deployments(formats=BF16, n_tensor=2)
    both, alone = (
        served("qwen3-30b-a3b", table, replace(CHAT, role=role), engine=engine)
        for role in (TOGETHER, DECODE)
    )
    assert alone.tpot_s == both.tpot_s == both.itl_s
    asked = replace(CHAT, role=DECODE)
    assert _output_tokens_per_s(table, asked, alone) == pytest.approx(1 / alone.tpot_s)
    assert (alone.ttft_s, alone.prompt_s, alone.n_chunks) == (0, 0, 0)


def test_prompts_share_passes_as_far_as_a_chunk_has_room():
    """Eight prompts of 256 fill a chunk of 2048; the ninth waits, and a long one shares none."""
    table = deployments(formats=BF16, batch=[1, 8, 9, 64], chunk_tokens=2048)
    short = Traffic(n_input_tokens=256, n_output_tokens=64, role=PREFILL)
    times = served("qwen3-8b", table, short)
    assert times.n_running.tolist() == [1, 8, 8, 8]
    assert times.queue_s[1] == 0
    assert times.queue_s[2] == pytest.approx(times.prompt_s[2] / 8)
    rates = _output_tokens_per_s(table, short, times)
    assert rates[0] < rates[1] == rates[2]
    long = served("qwen3-8b", table, replace(short, n_input_tokens=4096.0))
    assert long.n_running.tolist() == [1, 1, 1, 1]


def test_decodes_take_no_room_of_a_chunk_where_none_ride_along():
    """A prompt of 2048 with 64 decodes beside it takes two passes, alone it takes one."""
    table = deployments(formats=BF16, batch=[1, 64], chunk_tokens=2048)
    asked = Traffic(n_input_tokens=2048, n_output_tokens=512)
    assert served("qwen3-8b", table, asked).n_chunks.tolist() == [2, 2]
    assert served("qwen3-8b", table, replace(asked, role=PREFILL)).n_chunks.tolist() == [1, 1]


def test_stages_read_a_prompt_each():
    """Two stages of one request leave one idle; with two in flight they read twice as much."""
    table = deployments(formats=BF16, n_tensor=4, n_stages=2, batch=[1, 2])
    asked = Traffic(n_input_tokens=8192, n_output_tokens=64, role=PREFILL)
    times = served("qwen3-32b", table, asked)
    assert times.n_running.tolist() == [1, 2]
    one, two = _output_tokens_per_s(table, asked, times)
    assert two == pytest.approx(2 * one)
    assert times.ttft_s[0] - times.ttft_s[1] == pytest.approx(times.prompt_s[0] / 4)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["qwen3-8b", "qwen3-30b-a3b", "llama-3.1-70b"])
def test_a_replica_of_both_phases_is_no_quicker_at_either(name, engine):
    """At the same cut, batch and chunk, where a step has no more than one chunk on average.

    Where more come, the wait in the closed loop is an estimate, and no bound.
    """
    batch, tensor, stages, chunk = (
        axis.ravel() for axis in np.meshgrid([1, 2, 8, 64, 256], [1, 4, 8], [1, 2], [2048, 8192])
    )
    table = deployments(
        formats=BF16, n_tensor=tensor, n_stages=stages, batch=batch, chunk_tokens=chunk
    )
    n_seen = 0
    for n_input in (128, 1024, 4096, 32_768):
        for n_output in (16, 256, 2048):
            asked = Traffic(n_input_tokens=n_input, n_output_tokens=n_output)
            times = {
                role: served(
                    name, table, replace(asked, role=role), engine=engine, is_limited=False
                )
                for role in ROLES
            }
            rate = {
                role: _output_tokens_per_s(table, replace(asked, role=role), times[role])
                for role in ROLES
            }
            assert np.all(times[DECODE].tpot_s <= times[TOGETHER].tpot_s)
            assert np.all(rate[TOGETHER] <= rate[DECODE] * (1 + 1e-9))
            calm = batch * times[TOGETHER].n_chunks <= n_output
            assert np.all(rate[TOGETHER][calm] <= rate[PREFILL][calm] * (1 + 1e-9))
            n_seen += int(calm.sum())
    assert n_seen > 200


def test_a_worker_that_only_reads_holds_prompts_alone():
    """The cache of 1024 tokens and one more in blocks of 16, not of 1536."""
    table, timer = deployments(formats=BF16), clock("h100-nvl8-x1", "vllm")
    each = {
        role: holding(
            model("qwen3-8b"),
            table,
            BF16,
            timer.engine,
            hbm_bytes=timer.device.hbm_bytes,
            n_tokens=replace(CHAT, role=role).n_tokens,
        ).sequence_bytes[0]
        for role in ROLES
    }
    assert timer.engine.n_block_tokens == 16
    assert each[PREFILL] == 1040 * 147_456
    assert each[DECODE] == each[TOGETHER] == 1536 * 147_456
