"""What requests and samples have in common: blocks held once, prompts read once, reads not shared.

Hand computations are of Llama 3.1 8B in 16 bits: 32 layers of 8 heads of 128 keep 2 · 8 · 128 · 32
numbers of 2 bytes, 131,072 bytes a token.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from planner.errors import RequestError
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.memory import Holding, holding
from planner.estimates.serving.traffic import Traffic
from planner.runtimes.predicting import predict
from planner.specs.files.engines import load_engine
from planner.specs.files.reading import load_architecture
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER
from planner.specs.records.served_formats import ServedFormats
from planner.verifier.predictions import judge_prediction
from tests.report.predictions import machines

BF16 = ServedFormats(weights="bf16", experts="bf16", cache="bf16")
TOKEN_BYTES = 2 * 8 * 128 * 32 * 2
CHAT = Traffic(n_input_tokens=4000, n_output_tokens=200)
VLLM = load_engine("vllm")

machines_of, model_of = cache(machines), cache(load_architecture)


def predicted(traffic, *, name="llama-3.1-8b", batch=16, pool="h100-nvl8-x1", engine="vllm", **cut):
    table = deployments(formats=BF16, batch=batch, **cut)
    return predict(model_of(name), machines_of(pool, engine), table, traffic)


def held(n_tokens, traffic, *, name="llama-3.1-8b", block=16) -> Holding:
    engine = replace(VLLM, n_block_tokens=block)
    shared = replace(traffic, n_block_tokens=block).sharing()
    table = deployments(formats=BF16, batch=1)
    sizes = {"hbm_bytes": 80e9, "n_tokens": n_tokens}
    return holding(model_of(name), table, BF16, engine, **sizes, **shared)


def test_whole_blocks_of_a_shared_prefix_are_held_once():
    """Of 1000 tokens 62 blocks of 16; of 4200 tokens 263 blocks, 62 of which are the prefix's."""
    found = held(4200, replace(CHAT, n_shared_tokens=1000))
    assert found.shared_bytes == 62 * 16 * TOKEN_BYTES
    assert found.sequence_bytes == (263 - 62) * 16 * TOKEN_BYTES


def test_samples_hold_their_prompt_once():
    """3999 tokens before the last of a prompt fill 249 blocks; a sequence ends with 263.

    Four samples hold 249 + 4 · 14 blocks; with a prefix of 62 blocks that all have 187 + 4 · 14.
    """
    alone = held(4200, replace(CHAT, n_samples=4))
    assert 4 * alone.sequence_bytes == (249 + 4 * 14) * 16 * TOKEN_BYTES
    both = held(4200, replace(CHAT, n_samples=4, n_shared_tokens=1000))
    assert 4 * both.sequence_bytes == (187 + 4 * 14) * 16 * TOKEN_BYTES
    assert both.shared_bytes == 62 * 16 * TOKEN_BYTES
    assert both.largest_batch % 4 == 0


def test_samples_part_in_a_block_that_each_copies():
    """[Lecture] §4.2, copy-on-write: blocks of four words, two samples of one prompt.

    "Four score and seven" is one block of both; "years ago our fathers" and "years ago our mothers"
    are two blocks: 3 in place of 4.
    """
    words = Traffic(n_input_tokens=7, n_output_tokens=1, n_samples=2)
    both = held(8, words, block=4)
    assert 2 * both.sequence_bytes == 3 * 4 * TOKEN_BYTES
    assert held(8, replace(words, n_samples=1), block=4).sequence_bytes == 2 * 4 * TOKEN_BYTES


def test_windows_of_sequences_move_on_from_what_they_share():
    """gpt-oss-120b: 18 of 36 layers keep a window of 128 tokens and the block that it ends in.

    At 4096 tokens such a layer has left a prefix of 1024 behind, and keeps 144 of each sequence;
    the other layers keep all 1024 once, and the other 3072 of each. At 1088 tokens the window
    still has 80 of them.
    """
    name = "gpt-oss-120b"
    token = 2 * 8 * 64 * 2
    found = held(4096, replace(CHAT, n_input_tokens=4000, n_shared_tokens=1024), name=name)
    assert found.shared_bytes == 18 * 1024 * token
    assert found.sequence_bytes == 18 * (144 + 3072) * token
    young = held(1088, replace(CHAT, n_input_tokens=1050, n_shared_tokens=1024), name=name)
    assert young.shared_bytes == 18 * (1024 + 80) * token
    assert young.sequence_bytes == 18 * (64 + 64) * token


@pytest.mark.parametrize(("engine", "n_read"), [("vllm", 3008), ("sglang", 3000), ("trtllm", 3008)])
def test_what_is_shared_is_not_read_again(engine, n_read):
    """Of 1000 shared tokens vLLM finds 62 blocks of 16, SGLang each, TensorRT-LLM 31 of 32."""
    pool = "h100-nvl8-x1"
    answer = predicted(replace(CHAT, n_shared_tokens=1000), engine=engine, pool=pool, batch=1)
    assert f"reading {n_read} tokens" in {part.name for part in answer.ttft_parts}
    as_hits = predicted(replace(CHAT, hit_fraction=1 - n_read / 4000), engine=engine, batch=1)
    assert answer.ttft_s.value == pytest.approx(as_hits.ttft_s.value, rel=1e-12)
    assert as_hits.memory.cache_bytes > answer.memory.cache_bytes - answer.memory.shared_bytes
    assert as_hits.memory.shared_bytes == 0  # former turns are a sequence's own


def test_the_last_token_of_a_prompt_is_read_whatever_is_shared():
    answer = predicted(replace(CHAT, n_shared_tokens=4000), batch=1)
    assert "reading 16 tokens" in {part.name for part in answer.ttft_parts}


def test_hits_count_all_that_is_found():
    """70 % of 4000 tokens are more than the 992 that are shared: 1200 are read."""
    answer = predicted(replace(CHAT, n_shared_tokens=1000, hit_fraction=0.7), batch=1)
    assert "reading 1200 tokens" in {part.name for part in answer.ttft_parts}
    assert answer.memory.shared_bytes == 992 * TOKEN_BYTES


def test_a_request_waits_for_prompts_of_other_requests_not_of_its_samples():
    """Four samples of one prompt, and nobody else: one prefill, then decode passes of four."""
    one, four = predicted(CHAT, batch=1), predicted(replace(CHAT, n_samples=4), batch=4)
    parts = {part.name: part.seconds for part in four.ttft_parts}
    assert not {"others' prompts before it", "rest of a pass under way"} & parts.keys()
    reading = {part.name: part.seconds for part in one.ttft_parts}["reading 4000 tokens"]
    assert parts["reading 4000 tokens"] == reading
    assert four.tpot_s.value == four.itl_s.value  # nobody's prompt holds them up
    apart = predicted(CHAT, batch=4)
    assert four.itl_s.value == apart.itl_s.value  # each reads all of its context
    assert four.tpot_s.value < apart.tpot_s.value
    assert four.requests_per_s == pytest.approx(four.total_tokens_per_s / 800)


def test_other_requests_hold_samples_up_once_for_each_prompt():
    """TPOT = D + (b / n − 1) P / (OSL + wait), of 16 sequences 4 requests."""
    answer = predicted(replace(CHAT, n_samples=4), batch=16)
    alike = predicted(replace(CHAT, n_samples=4), batch=4)
    assert answer.itl_s.value < answer.tpot_s.value < predicted(CHAT, batch=16).tpot_s.value
    assert alike.tpot_s.value < answer.tpot_s.value


SETTINGS = [
    ("llama-3.1-8b", "vllm", {}),
    ("llama-3.1-8b", "trtllm", {}),
    ("gpt-oss-120b", "vllm", {"n_tensor": 4}),
    ("llama-3.1-70b", "sglang", {"n_tensor": 4}),
]


@pytest.mark.parametrize(("name", "engine", "cut"), SETTINGS)
def test_more_that_is_shared_takes_no_more_memory_and_no_more_time(name, engine, cut):
    """A prompt by itself is read no later, and more sequences find room."""
    draw = Random(f"{name} {engine}")
    for _ in range(12):
        n_input, n = draw.randrange(64, 9000), draw.choice((1, 1, 2, 3))
        few, many = sorted(draw.randrange(32, n_input) for _ in range(2))
        base = Traffic(n_input_tokens=n_input, n_output_tokens=draw.randrange(2, 500), n_samples=n)
        answers = [
            predicted(
                replace(base, n_shared_tokens=shared), name=name, engine=engine, batch=n, **cut
            )
            for shared in (0, few, many)
        ]
        for less, more in pairwise(answers):
            assert more.memory.largest_batch >= less.memory.largest_batch
            assert more.memory.cache_bytes <= less.memory.cache_bytes * (1 + 1e-12)
            assert more.ttft_s.value <= less.ttft_s.value * (1 + 1e-9)
            assert more.tpot_s.value <= less.tpot_s.value * (1 + 1e-9)


@pytest.mark.parametrize("role", [TOGETHER, PREFILL, DECODE])
def test_both_accounts_say_the_same_of_what_is_shared(role):
    n_samples = 1 if role == PREFILL else 3
    traffic = replace(CHAT, n_shared_tokens=500, n_samples=n_samples, role=role)
    answer = predicted(traffic, batch=12, n_data=2)
    assert judge_prediction(answer)[1] == []
    low = replace(answer.memory, shared_bytes=answer.memory.shared_bytes / 2)
    paths = [finding.path for finding in judge_prediction(replace(answer, memory=low))[1]]
    assert paths == [("memory", "shared_bytes")]


def test_what_has_no_effect_is_refused():
    for traffic, batch, option in (
        (replace(CHAT, n_shared_tokens=15), 1, "--shared"),
        (replace(CHAT, n_shared_tokens=1000, hit_fraction=0.2), 1, "--hit-rate"),
        (replace(CHAT, hit_fraction=0.2, role=DECODE), 1, "--hit-rate"),
        (replace(CHAT, n_samples=4, role=PREFILL), 4, "--samples"),
        (replace(CHAT, n_samples=4), 6, "--batch"),
    ):
        with pytest.raises(RequestError) as refused:
            predicted(traffic, batch=batch)
        assert [problem.where for problem in refused.value.problems] == [option]


def test_the_longest_context_adds_own_tokens_to_common_ones():
    """32 sequences of n tokens that have 992 in common hold 992 + 32 (n - 992)."""
    apart, shared = (predicted(replace(CHAT, n_shared_tokens=n), batch=32) for n in (0, 1000))
    room = apart.memory.longest_context * 32
    assert shared.memory.longest_context == pytest.approx((room - 992) / 32 + 992, rel=2e-3)


def test_fewer_tokens_are_held_where_samples_share_long_prompts():
    """The more of a sequence is its prompt, the nearer n samples are to one."""
    ratios = []
    for n_input in (100, 1000, 10_000):
        traffic = replace(CHAT, n_input_tokens=n_input, n_samples=8)
        alone, eight = (
            held(n_input + 200, replace(traffic, n_samples=1)),
            held(n_input + 200, traffic),
        )
        ratios.append(float(eight.sequence_bytes[0] / alone.sequence_bytes[0]))
    assert np.all(np.diff(ratios) < 0)
    assert ratios[-1] < 0.15
