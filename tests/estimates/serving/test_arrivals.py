"""What a request waits for in a closed loop: by hand, and beside a loop that is played out."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from planner.estimates.serving.arrivals import (
    Loop,
    crowding_passes,
    first_wave_s,
    under_way_s,
    waiting_passes,
)
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.memory import holding
from planner.estimates.serving.serving import Serving, serving_times
from planner.estimates.serving.traffic import WAVES_APART, Traffic, bursts
from planner.specs.files.engines import load_engine
from tests.estimates.serving.situations import BF16, clock, model, served

CHAT = Traffic(n_input_tokens=1024, n_output_tokens=512)


def loop(**changed) -> Loop:
    one = np.ones(1)
    usual = {
        "running": 64 * one,
        "round_s": 0.02 * one,
        "added_s": 0.1 * one,
        "pass_s": 0.12 * one,
        "n_passes": one,
        "n_sharing": one,
        "most_sharing": one,
        "n_lanes": one,
        "n_rounds": 512.0,
        "n_polled": 1,
    }
    return Loop(**{**usual, **changed})


def test_one_alone_waits_for_nobody():
    alone = loop(running=np.ones(1))
    assert under_way_s(alone, 512.0) == 0
    assert waiting_passes(alone, 512.0) == 0
    assert crowding_passes(alone, 512.0) == 0


def test_a_share_of_what_is_under_way_is_a_pass_with_a_prompt():
    """64 prompts of 0.1 s and 512 rounds of 0.02 s: 63 passes of 0.12 s are 45.4 % of 16.64 s."""
    share = 63 * 0.12 / (512 * 0.02 + 64 * 0.1)
    expected = (share * 0.12 + (1 - share) * 0.02) / 2
    assert under_way_s(loop(), 512.0) == pytest.approx(expected)
    often = under_way_s(loop(n_polled=30), 512.0)
    assert often - under_way_s(loop(), 512.0) == pytest.approx((1 - share) * 29 * 0.02 / 2)


def test_the_wait_is_what_the_others_have_left():
    """w = (b - 1) (w + 1/2) / (Z + 1 + w) passes, of 63 others in 512 rounds."""
    passes = waiting_passes(loop(), 512.0)
    assert passes == pytest.approx(63 * (passes + 0.5) / (512 + 1 + passes))


def test_where_nothing_is_decoded_all_others_are_before_one():
    """b requests of one token: a queue of b - 1, half of one of them read."""
    wait = waiting_passes(loop(), 1e-9)
    assert wait == pytest.approx(63 - 63 / 128, rel=0.01)


def test_a_first_wave_is_read_in_full_passes():
    """64 prompts, 8 a pass: the mean of the 1st to the 8th pass."""
    mean = first_wave_s(
        np.full(1, 64.0), np.ones(1), n_passes=np.ones(1), n_sharing=np.full(1, 8.0), n_stages=1
    )
    assert mean == pytest.approx(np.mean(np.arange(1, 9)))


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_first_of_several_waves_waits_and_the_others_hardly(engine):
    table = deployments(formats=BF16, n_tensor=8, batch=64)
    steady, once, ten = (
        served("qwen3-32b", table, replace(CHAT, n_waves=n), engine=engine) for n in (0, 1, 10)
    )
    assert steady.ttft_s < ten.later_waves_s < 1.2 * steady.ttft_s  # they come in bursts
    assert steady.ttft_s < ten.ttft_s < once.ttft_s
    assert ten.ttft_s == pytest.approx((ten.first_wave_s + 9 * ten.later_waves_s) / 10)
    held_up = steady.tpot_s - steady.itl_s
    assert ten.tpot_s - steady.itl_s == pytest.approx(0.95 * held_up, rel=0.02)
    assert once.first_wave_s == pytest.approx(once.ttft_s)


def test_polling_seldom_makes_requests_wait_and_no_decode():
    timer = clock("h100-nvl8-x1", "sglang")
    table = deployments(formats=BF16, n_tensor=8, batch=[1, 64])
    found = []
    for n_rounds in (1, 10):
        engine = replace(timer.engine, n_polled_rounds=n_rounds)
        serving = Serving(model=model("qwen3-32b"), formats=BF16, engine=engine, clock=timer)
        found.append(serving_times(serving, table, CHAT))
    often, seldom = found
    assert often.tpot_s[0] == seldom.tpot_s[0]
    assert 0.97 * often.tpot_s[1] < seldom.tpot_s[1] < often.tpot_s[1]  # prompts share passes
    assert seldom.ttft_s[0] == often.ttft_s[0]  # an engine without work looks all the time
    rest = seldom.ttft_parts["step"] - often.ttft_parts["step"]
    assert 2 < rest[1] / often.itl_s[1] < 4.5  # nine halves of a round, but where a prompt is read
    assert seldom.ttft_parts["reading"][1] > often.ttft_parts["reading"][1]  # of more at once


def played_s(
    n_places: int, n_waves: int, *, prompt_s: float, round_s: float, n_rounds: int, request_s: float
) -> np.ndarray:
    """TTFT of every request of a loop, one prompt a pass, passes one after the other; by wave."""
    draw, coming = Random(7), [(request_s, k) for k in range(n_places)]
    begun = dict.fromkeys(range(n_places), 0.0)
    waiting: deque[int] = deque()
    left: dict[int, int] = {}
    now, found = 0.0, {}
    while len(found) < n_places * n_waves:
        while coming and coming[0][0] <= now:
            waiting.append(heapq.heappop(coming)[1])
        if not waiting and not left:
            now = coming[0][0]
            continue
        now += round_s + (prompt_s if waiting else 0.0)
        ended = [k for k in left if left[k] == 1]
        left = {k: n - 1 for k, n in left.items() if n > 1}
        if waiting:
            k = waiting.popleft()
            found[k] = now - begun[k]
            left[k] = draw.randint(int(0.8 * n_rounds), n_rounds)
        for _ in ended:
            begun[len(begun)] = now
            heapq.heappush(coming, (now + request_s, len(begun) - 1))
    return np.array([found[k] for k in range(n_places * n_waves)]).reshape(n_waves, -1).mean(1)


@pytest.mark.parametrize(
    ("n_places", "prompt_s", "n_rounds", "off", "bursts_off"),
    [
        (16, 0.15, 512, 0.08, 0.08),
        (64, 0.15, 512, 0.08, 0.15),
        (64, 0.02, 512, 0.05, 0.08),
        (64, 0.15, 256, 0.2, 0.3),
        (128, 0.02, 1024, 0.08, 0.05),
    ],
)
def test_a_loop_played_out_waits_as_long(n_places, prompt_s, n_rounds, off, bursts_off):
    """Of lengths that vary by a fifth, as harnesses draw them: while waves are apart, and after.

    Where most of the time prompts are read, both forms are too low: what waits comes back together.
    """
    round_s, request_s, n_waves = 0.01, 0.03, 24
    by_wave = played_s(
        n_places,
        n_waves,
        prompt_s=prompt_s,
        round_s=round_s,
        n_rounds=n_rounds,
        request_s=request_s,
    )
    one = loop(
        running=np.full(1, float(n_places)),
        round_s=np.full(1, round_s),
        added_s=np.full(1, prompt_s),
        pass_s=np.full(1, round_s + prompt_s),
        n_rounds=0.9 * n_rounds,
    )
    own = request_s + round_s + prompt_s
    even = one.n_rounds

    def found_s(rounds):
        return own + under_way_s(one, rounds) + waiting_passes(one, rounds) * one.pass_s

    assert found_s(even) == pytest.approx(by_wave[12:].mean(), rel=off)
    come = bursts(10, n_rounds=even, begun_rounds=one.running)
    assert come.mean(found_s) == pytest.approx(by_wave[1:10].mean(), rel=bursts_off)
    assert found_s(even) < come.mean(found_s)
    first = first_wave_s(
        one.running, one.pass_s, n_passes=np.ones(1), n_sharing=np.ones(1), n_stages=1
    )
    assert request_s + first == pytest.approx(by_wave[0], rel=0.02)


def test_prompts_that_one_look_finds_wait_for_each_other():
    """64 in 512 rounds, a look each 64th: 7.9 others at once, 2 of them in a pass: 1.5 before."""
    seldom = loop(n_polled=64, most_sharing=np.full(1, 2.0))
    assert crowding_passes(seldom, 512.0) == pytest.approx((63 * 64 / 512 / 2 - 1) / 2)
    assert crowding_passes(loop(n_polled=64, most_sharing=np.full(1, 8.0)), 512.0) == 0


def test_waves_run_into_each_other_as_lengths_differ():
    """Lengths between 0.8 and 1 of 1000: 900 on average, 57.7 off; waves are 3.54 times as wide."""
    nothing = np.zeros(1)
    come = bursts(10, n_rounds=900.0, begun_rounds=nothing)
    widths = [float(one[0]) for one in come.rounds[:-1]]
    assert widths == pytest.approx([3.5449 * 57.735 * k**0.5 for k in range(1, 10)], rel=1e-4)
    assert come.shares == pytest.approx([1 / 9] * 9 + [0.0])
    assert come.mean(lambda rounds: rounds)[0] == pytest.approx(np.mean(widths))


def test_a_first_wave_that_was_long_under_way_comes_back_as_wide():
    come = bursts(2, n_rounds=1e6, begun_rounds=np.array([1e6]))
    spread = np.hypot(0.2 / 12**0.5 / 0.9, 1 / 12**0.5)
    assert come.rounds[0][0] == pytest.approx(min(1.0, 2 * np.pi**0.5 * spread) * 1e6)


def test_after_many_waves_or_without_any_prompts_come_evenly():
    nothing = np.zeros(2)
    for n_waves in (0, 1):
        even = bursts(n_waves, n_rounds=512.0, begun_rounds=nothing)
        assert even.shares == (1.0,)
        assert np.all(even.rounds[0] == 512.0)
    many = bursts(1000 * WAVES_APART + 1, n_rounds=512.0, begun_rounds=nothing)
    assert many.mean(lambda rounds: rounds) == pytest.approx(512.0, rel=1e-3)
    assert len(many.rounds) == WAVES_APART + 1
    assert all(np.all(one < 512.0) for one in many.rounds[:-1])


@pytest.mark.parametrize(("engine", "held"), [("vllm", 1280), ("sglang", 1305), ("trtllm", 1536)])
def test_a_sequence_has_the_room_that_its_engine_gives_it(engine, held):
    """1024 tokens and half of 512; of the other half a tenth under SGLang, all under TRT-LLM."""
    assert CHAT.held_tokens(load_engine(engine).reserved_fraction) == pytest.approx(held, abs=0.1)


def test_more_sequences_fit_as_they_grow_than_at_their_longest():
    table, timer = deployments(formats=BF16), clock("h100-nvl8-x1", "vllm")
    long = Traffic(n_input_tokens=1024, n_output_tokens=8192)
    longest, growing = (
        holding(
            model("qwen3-8b"),
            table,
            BF16,
            timer.engine,
            hbm_bytes=timer.device.hbm_bytes,
            n_tokens=long.n_tokens,
            n_held_tokens=n,
        )
        for n in (None, long.held_tokens(0.0))
    )
    assert growing.held_bytes / longest.held_bytes == pytest.approx(5120 / 9216)
    assert growing.sequence_bytes == longest.sequence_bytes
    assert growing.largest_batch == pytest.approx(longest.largest_batch * 9216 / 5120, abs=2)
