"""Attention and experts on devices of their own: against an event simulation, and by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner import verify
from planner.errors import RequestError
from planner.estimates.pools import layer_phases
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.runtimes.predicting import predict
from planner.specs.files.reading import load_architecture
from planner.specs.records.architecture import Experts
from planner.specs.records.served_formats import ServedFormats, as_published
from planner.verifier.serving.pools import pass_s, rounds_of
from tests.report.predictions import machines

CONFIGS = Path(__file__).parents[1] / "specs" / "huggingface" / "configs"
BLOCKS = ServedFormats(weights="fp8_block", experts="fp8_block", cache="bf16")
DECODE = Traffic(n_input_tokens=4000.0, n_output_tokens=1000.0, role="decode")
PARTS = ("project", "dispatch", "feed", "combine")


def passed(layers, n_microbatches):
    """When the last micro-batch leaves the last layer, event by event.

    Each station takes what waits longest; who is done in a layer waits for the next.

    Args:
        layers: of each what a micro-batch takes at its stations, in their order.
    """
    steps = [(where, s) for stations in layers for where, s in enumerate(stations)]
    free, ready = [0.0] * 4, [(0.0, m, 0) for m in range(n_microbatches)]
    while ready:
        since, job, step = min(ready)
        ready.remove((since, job, step))
        where, seconds = steps[step]
        free[where] = max(since, free[where]) + seconds
        if step + 1 < len(steps):
            ready.append((free[where], job, step + 1))
    return max(free)


def by_arrays(layers, n_microbatches):
    """The same by the closed form of searches; layers are (stations, how many)."""
    total, last = 0.0, 0.0
    for stations, n in layers:
        parts = {part: np.array([n * s]) for part, s in zip(PARTS, stations, strict=False)}
        spent, after = layer_phases(parts, np.array([float(n_microbatches)]), n)
        total, last = total + spent[0], max(last, after[0])
    return total + last


def by_account(layers, n_microbatches):
    """And by that of the account."""
    model, rounds = load_architecture("deepseek-v3").layers[-1], []
    for stations, n in layers:
        sums = dict.fromkeys((*PARTS, "attend", "share", "reduce"), 0.0)
        sums |= zip(PARTS, stations, strict=False)
        rounds.append(rounds_of(replace(model, n_layers=n), sums, float(n_microbatches)))
    return pass_s(rounds)


@pytest.mark.parametrize("n_microbatches", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(
    "stations",
    [
        (10.0, 1.0, 10.0, 1.0),  # even, with quick links
        (10.0, 5.0, 10.0, 5.0),  # links take half as long: M = 2 (1 + 5 / 10) = 3 hides them
        (2.0, 3.0, 11.0, 4.0),  # experts are what is waited for
        (13.0, 3.0, 1.0, 4.0),  # attention is
        (3.0, 2.0, 4.0, 9.0),  # the links back are
    ],
)
def test_micro_batches_of_alike_layers_take_what_their_events_do(stations, n_microbatches):
    exact = passed([stations] * 6, n_microbatches)
    assert by_arrays([(stations, 6)], n_microbatches) == pytest.approx(exact)
    assert by_account([(stations, 6)], n_microbatches) == pytest.approx(exact)


@pytest.mark.parametrize("seed", range(20))
def test_layers_that_take_turns_are_near_their_events(seed):
    """Windows and full attention in turn: of each class its own period, though they overlap."""
    draw = np.random.default_rng(seed).uniform(1.0, 10.0, 5)
    classes = [(attention, *draw[2:]) for attention in draw[:2]]
    for n_microbatches in (1, 2, 3, 5):
        exact = passed(classes * 12, n_microbatches)
        assert by_arrays([(it, 12) for it in classes], n_microbatches) == pytest.approx(
            exact, rel=0.2
        )


def test_as_many_micro_batches_as_a_paper_says_hide_the_links():
    """MegaScale-Infer §4.1: with T = 10 on either side and 5 on the links, 3 do, and 2 do not."""
    layers = [((10.0, 5.0, 10.0, 5.0), 100)]
    assert by_arrays(layers, 3) == 100 * 30 + 20  # M T L, and once around but the longest
    assert by_arrays(layers, 2) == 100 * 30 + 10  # no quicker for a third less: links show


def test_dense_layers_are_of_attention_alone_for_each_micro_batch():
    layers = [((4.0,), 3), ((2.0, 3.0, 11.0, 4.0), 5)]
    assert by_arrays(layers, 4) == 3 * 4 * 4 + 5 * 4 * 11 + 9
    assert by_account(layers, 4) == 3 * 4 * 4 + 5 * 4 * 11 + 9


def given(model="deepseek-v3", engine="sglang", **degrees):
    usual = {"n_data": 8, "n_expert_parallel": 16, "n_expert_devices": 16}
    usual |= {"n_microbatches": 3, "batch": 96, "formats": BLOCKS}
    table = deployments(**usual | degrees)
    return load_architecture(model), machines("h200-nvl8-x4", engine), table, DECODE


@pytest.fixture(scope="module")
def answer():
    return predict(*given())


def test_a_layer_by_hand(answer):
    """DeepSeek-V3: 8 of 256 experts and a shared one, 7168 wide; 32 sequences of each of 8 ranks.

    Dispatched in 8 bits with a scale of 4 bytes for 128 numbers, sent back in 16 bits; of a device
    of attention 9 copies of 32 tokens, of one of experts a sixteenth of all copies, if they were
    even. By the popularity of experts one has more.
    """
    layer = answer.pool.layers[-1]
    sent = 32 * 9 * 7168
    assert layer.n_layers == 58
    assert layer.out_bytes >= sent * (1 + 4 / 128)
    assert layer.back_bytes / layer.out_bytes == pytest.approx(2 / (1 + 4 / 128))
    fabric = answer.request.records.cluster.fabric
    rate = fabric.scale_out_bytes_per_s * fabric.scale_out_fraction
    assert layer.out_s == pytest.approx(fabric.scale_out_latency_s + layer.out_bytes / rate)
    around = layer.attention_s + layer.out_s + layer.experts_s + layer.back_s
    busiest = max(layer.attention_s, layer.out_s, layer.experts_s, layer.back_s)
    assert layer.period_s == max(around, 3 * busiest) == 3 * layer.experts_s
    dense, spent = answer.pool.layers[0], answer.passes[0]
    outside = sum(it.total_s for it in spent.operations if it.layer == "model")
    whole = 58 * layer.period_s + 3 * 3 * dense.attention_s + around - busiest + outside
    # norms of heads that nobody fused run for each of three micro-batches; the host writes once
    engine = answer.request.records.engine
    assert engine.decode_host_s == 0
    written_s = 96 * engine.decode_sequence_s
    assert answer.itl_s.value == pytest.approx(whole + 3 * (spent.host_s - written_s) + written_s)
    assert answer.total_tokens_per_s == pytest.approx(96 * 8 / answer.tpot_s.value)
    assert answer.device_tokens_per_s == pytest.approx(answer.total_tokens_per_s / 24)


def test_memory_by_hand(answer):
    """A sixteenth of the routed experts and a whole shared one; of attention all but these."""
    model = load_architecture("deepseek-v3")
    number, each = 1 + 4 / 128**2, 3 * 7168 * 2048
    experts = 58 * (256 / 16 + 1) * each * number
    assert answer.pool.weights_bytes == pytest.approx(experts)
    whole = predict(*given(n_data=1, n_tensor=1, batch=4))
    routed = 58 * 257 * each
    rest = model.n_params - routed
    bf16 = 2 * 129280 * 7168 + 58 * 256 * 7168  # words, and routers
    assert whole.memory.weights_bytes == pytest.approx(2 * bf16 + (rest - bf16) * number, rel=1e-3)
    width = 9 * 7168 + 9 * 2048
    chunk = answer.request.chunk_tokens
    assert answer.pool.activation_bytes == pytest.approx(2 * chunk * 8 / 16 * width)


@pytest.mark.parametrize(
    "name",
    [
        "Nemotron-3-Nano-30B-A3B",  # layers without attention, and states
        "Llama-4-Maverick",  # dense layers in turn
        "Qwen3-Next-80B-A3B",
        "GLM-4.5-Air",
        "Mixtral-8x7B-v0.1",  # no shared experts
    ],
)
def test_families_are_counted_alike_by_searches_and_by_the_account(name):
    """Which `predict` sees to, kernel by kernel; layers with experts are those that go around."""
    model = load_architecture(str(CONFIGS / f"{name}_config.json"))
    weights = as_published(model)[0]
    formats = ServedFormats(weights=weights, experts=weights, cache=model.kv_format)
    _, _, table, traffic = given(
        formats=formats, n_tensor=2, n_data=4, n_expert_parallel=8, n_expert_devices=8, batch=16
    )
    answer = predict(model, machines("b200-nvl8-x8", "sglang"), table, traffic)
    with_experts = [isinstance(it.ffn, Experts) for it in model.layers]
    assert [it.experts_s > 0 for it in answer.pool.layers] == with_experts
    assert not verify(answer).falsehoods


def test_pools_that_one_node_holds_stay_in_it():
    inside = predict(*given(model="gpt-oss-120b", n_data=4, n_expert_devices=4, **small()))
    outside = predict(*given(model="gpt-oss-120b", n_data=8, n_expert_devices=4, **small()))
    assert (inside.pool.crosses_nodes, outside.pool.crosses_nodes) == (False, True)
    fabric = inside.request.records.cluster.fabric
    layer, rate = inside.pool.layers[0], fabric.scale_up_bytes_per_s * fabric.scale_up_fraction
    assert layer.out_s == pytest.approx(fabric.scale_up_latency_s + layer.out_bytes / rate)


def small():
    formats = ServedFormats(weights="mxfp4", experts="mxfp4", cache="bf16")
    return {"n_expert_parallel": 4, "formats": formats}


def test_outside_of_what_was_measured_it_is_so_and_its_interval_wider(answer):
    assert "decode with experts apart" in [one.value for one in answer.outside]
    ends = answer.tpot_s.high / answer.tpot_s.value
    assert ends > 1 + 0.3


def test_no_engine_starts_it_and_the_answer_is_verified(answer):
    assert answer.launch is None
    assert not verify(answer).falsehoods


def test_what_arrives_waits_for_the_same_passes(answer):
    """At a quarter of what it serves, passes of fewer sequences; never more than all of them."""
    rate = answer.requests_per_s / 4
    loaded = predict(*given(), requests_per_s=rate)
    assert loaded.load.is_carried
    assert loaded.load.utilization_fraction == pytest.approx(0.25, rel=0.05)
    assert loaded.load.tpot_s <= answer.tpot_s.value
    assert not verify(loaded).falsehoods


@pytest.mark.parametrize(
    ("path", "factor"),
    [
        (("pool", "layers", 1, "period_s"), 0.9),
        (("pool", "layers", 1, "out_bytes"), 1.1),
        (("pool", "weights_bytes"), 0.5),
        (("pool", "experts_fraction"), 1.01),
        (("tpot_s", "value"), 0.99),
    ],
)
def test_altered_figures_are_refused(answer, path, factor):
    def altered(record, keys):
        key, *rest = keys
        if isinstance(record, tuple):
            items = list(record)
            items[key] = altered(items[key], rest)
            return tuple(items)
        value = getattr(record, key)
        return replace(record, **{key: altered(value, rest) if rest else value * factor})

    assert verify(altered(answer, path)).falsehoods


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_stages": 2}, "one stage"),
        ({"n_microbatches": 97}, "sequences"),
        ({"n_expert_devices": 7, "n_expert_parallel": 7}, "nearest"),
        ({"n_expert_devices": 4, "n_expert_parallel": 4}, "--expert-devices 8"),
        ({"overlaps": True}, "parts of its own"),
        ({"n_expert_parallel": 8}, "whole experts"),
        ({"model": "llama-3.1-70b", "n_expert_parallel": 1}, "has no experts"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(change, words):
    with pytest.raises(RequestError, match=words):
        predict(*given(**change))


def test_a_batch_smaller_than_its_micro_batches_has_no_empty_ones():
    """Of 64 sequences in flight few find room: as many micro-batches go around, of one each."""
    long = replace(DECODE, n_input_tokens=1.6e5)
    short = predict(*given(batch=64, n_microbatches=64)[:3], long)
    assert short.n_running < 64
    assert short.passes[0].n_microbatches == short.n_running
    assert not verify(short).falsehoods
