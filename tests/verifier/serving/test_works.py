"""FLOP, bytes and bounds of what a pass runs, each by hand.

Times follow from what kernels are called with, and arrays have the same; FLOP, bytes and bounds
stand in the account alone, so that nothing else shows where they are wrong.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.equations.kernels import FAMILIES
from planner.equations.kernels.families import arguments_of
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.runtimes.predicting import given_deployment
from planner.specs.files.reading import load_architecture
from planner.specs.records.architecture import Experts
from planner.specs.records.mixers import GroupedAttention, Recurrence
from planner.verifier.pass_lines import pass_line
from planner.verifier.serving.evaluation import rank_of
from planner.verifier.serving.kernels import message
from planner.verifier.serving.mixers import Tokens
from planner.verifier.serving.passes import pass_of
from tests.report.predictions import FP8, machines

CONFIGS = "tests/specs/huggingface/configs/"
KINDS = {
    "grouped": "qwen3-8b",
    "windows, sinks and experts": "gpt-oss-120b",
    "latents": "deepseek-v3",
    "latents with an indexer": f"{CONFIGS}DeepSeek-V3.2_config.json",
    "linear attention": f"{CONFIGS}Qwen3.5-35B-A3B_config.json",
    "states": f"{CONFIGS}Nemotron-H-56B-Base-8K_config.json",
}
"""A model of each kind of layer."""

WEIGHTLESS = (
    "decode_attention",
    "prefill_attention",
    "latent_decode",
    "latent_prefill",
    "recurrence_decode",
    "scores",
    "sampling",
)
"""Kernels that read what belongs to sequences, and no weights."""
N = 3.0
DECODING = Tokens(decoding=5.0, context=700.0, positions=2.0)
READING = Tokens(prompts=2.0, read=300.0, past=40.0)


def rank(name, *, engine="sglang", topology="h100-nvl8-x8", formats=FP8, **degrees):
    found = machines(topology, engine)
    table = deployments(formats=formats, **degrees)
    lengths = Traffic(n_input_tokens=1024, n_output_tokens=64)
    return rank_of(given_deployment(load_architecture(name), found, table, lengths, None))


def runs(name, tokens, **of_rank):
    found = pass_of(rank(name, **of_rank), tokens, overlaps=False, message_share=0.0)
    return {(layer, it.run.part, it.run.name): it.run for layer, _, it in found.spent}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("work", "more"),
    [
        (DECODING, replace(DECODING, decoding=N * DECODING.decoding)),
        (READING, replace(READING, prompts=N * READING.prompts)),
    ],
    ids=["decoding", "reading"],
)
def test_more_sequences_are_as_much_more_work(kind, work, more):
    few, many = runs(KINDS[kind], work), runs(KINDS[kind], more)
    assert few.keys() == many.keys()
    for key, one in few.items():
        if not one.family.startswith(("experts", "grouped_gemm")):  # whose copies are not so even
            assert many[key].flop == pytest.approx(N * one.flop), key
        if one.family in WEIGHTLESS:
            assert many[key].hbm_bytes == pytest.approx(N * one.hbm_bytes), key
            assert one.hbm_bytes > 0, key


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tokens", [DECODING, READING], ids=["decoding", "reading"])
def test_products_and_plain_kernels_do_the_work_of_their_closed_form(kind, tokens):
    """Which was written for fits, from dimensions of a row alone."""
    plain = ("gemm", "grouped_gemm_decode", "grouped_gemm_prefill", "elementwise", "sampling")
    met = set()
    for key, one in runs(KINDS[kind], tokens).items():
        if one.family in (*plain, "latent_decode", "experts"):
            work = FAMILIES[one.family].work
            known = {name: v for name, v in one.arguments.items() if name in arguments_of(work)}
            flop, n_bytes = (float(it) for it in work(**known))
            assert one.flop == pytest.approx(flop), key
            if one.family == "experts":  # which reads and writes its rows in 16 bits besides
                n_bytes += 2 * 2 * one.arguments["rows"] * one.arguments["d_model"]
            assert one.hbm_bytes == pytest.approx(n_bytes), key
            met.add(one.family)
    assert {"gemm", "elementwise", "sampling"} <= met


@pytest.mark.parametrize("kind", ["grouped", "latents"])
def test_a_prompt_is_read_as_a_count_token_by_token_gives(kind):
    """A token is scored against all before it and itself, then their values are summed."""
    spec, found = load_architecture(KINDS[kind]), runs(KINDS[kind], READING)
    (mixer,) = {one.mixer for one in spec.layers}
    d_value = getattr(mixer, "d_value_head", mixer.d_head)
    first, past = int(READING.read), int(READING.past)
    met = sum(past + i for i in range(1, first + 1))
    flop = 2.0 * READING.prompts * mixer.n_heads * (mixer.d_head + d_value) * met
    read = [one for (_, _, name), one in found.items() if name == "prefill attention"]
    assert read
    assert [one.flop for one in read] == pytest.approx([flop] * len(read))
    # queries and outputs of new tokens, keys and values of all, in 16 bits; latents' of each head
    heads = mixer.n_kv_heads if isinstance(mixer, GroupedAttention) else mixer.n_heads
    ends = mixer.n_heads * first + heads * (first + past)
    n_bytes = 2.0 * READING.prompts * ends * (mixer.d_head + d_value)
    assert [one.hbm_bytes for one in read] == pytest.approx([n_bytes] * len(read))


def test_each_position_of_a_sequence_is_scored_against_its_whole_cache():
    """Ten positions of five sequences; each cache is read once for all positions of it."""
    (mixer,) = {one.mixer for one in load_architecture("qwen3-8b").layers}
    found = runs("qwen3-8b", DECODING, n_tensor=2)
    one = next(it for (*_, name), it in found.items() if name == "decode attention")
    assert one.flop == 10 * 700 * (mixer.n_heads / 2) * 2 * 2 * mixer.d_head
    assert one.hbm_bytes == 5 * 700 * (mixer.n_kv_heads / 2) * 2 * mixer.d_head * 2


@pytest.mark.parametrize(("context", "seen"), [(100.0, 100), (700.0, 128)])
def test_a_window_of_128_tokens_is_all_that_is_read(context, seen):
    spec = load_architecture("gpt-oss-120b")
    (layer,) = [one for one in spec.layers if one.mixer.n_span_tokens == 128]
    found = runs("gpt-oss-120b", replace(DECODING, context=context))
    one = found[layer.name, "attend", "decode attention"]
    assert one.flop == 10 * seen * 64 * 2 * 2 * 64
    assert one.hbm_bytes == 5 * seen * 8 * 2 * 64 * 2


def test_an_indexer_scores_all_tokens_and_attention_reads_those_it_selects():
    name = KINDS["latents with an indexer"]
    own = [one.mixer for one in load_architecture(name).layers if not one.mixer.indexer.is_shared]
    index, latents = own[0].indexer, own[0]
    context = 3.0 * index.n_selected_tokens
    found = runs(name, replace(DECODING, context=context))
    scored = next(it for (_, _, what), it in found.items() if what == "scores of the indexer")
    assert scored.flop == 10 * context * index.n_heads * 2 * index.d_head
    assert scored.hbm_bytes == 5 * context * index.d_head  # of 8 bits
    read = next(it for (_, _, what), it in found.items() if what == "decode attention")
    seen, latent = index.n_selected_tokens, latents.d_kv_latent
    assert read.flop == 10 * seen * latents.n_heads * 2 * (2 * latent + latents.d_rope)
    assert read.hbm_bytes == 5 * seen * (latent + latents.d_rope) * 2


def test_a_state_is_read_and_written_and_decayed_added_to_and_read_for_each_token():
    name = KINDS["states"]
    (mixer,) = {
        it.mixer for it in load_architecture(name).layers if isinstance(it.mixer, Recurrence)
    }
    state = mixer.n_heads * mixer.d_key * mixer.d_value
    taps = mixer.d_conv * (mixer.n_conv_taps - 1) * 2
    held = state * mixer.state_bytes_per_number + taps
    update = next(it for (*_, what), it in runs(name, DECODING).items() if what == "state update")
    assert update.flop == 10 * 6 * state
    assert update.hbm_bytes == 5 * 2 * held
    scan = next(
        it for (*_, what), it in runs(name, READING).items() if what == "state over the prompt"
    )
    assert scan.flop == 600 * 6 * state
    assert scan.hbm_bytes == 2 * 2 * held + 600 * 2 * mixer.d_conv * 2


@pytest.mark.parametrize(("kind", "times"), [("all_reduce", 2), ("all_gather", 1)])
def test_of_a_collective_each_device_sends_all_but_its_own_share(kind, times):
    assert message("sum", "reduce", kind, 8e6, 4).sent_bytes == times * 6e6
    assert message("sum", "reduce", kind, 8e6, 1).sent_bytes == 0


def test_a_token_is_sent_to_each_of_its_experts_in_their_format_and_comes_back_in_16_bits():
    """Devices of a rank send its tokens by turns."""
    name, cut = "deepseek-v3", {"n_tensor": 2, "n_data": 8, "n_expert_parallel": 16}
    (ffn,) = {it.ffn for it in load_architecture(name).layers if isinstance(it.ffn, Experts)}
    found = runs(name, DECODING, formats=FP8, **cut)
    there, back = (
        next(it for (*_, what), it in found.items() if what == part)
        for part in ("dispatch", "combine")
    )
    scaled = 1 + 4 / 128  # bytes of a number of 8 bits with its part of a scale
    assert there.sent_bytes == 10 / 2 * ffn.n_active * 7168 * scaled
    assert back.sent_bytes == 10 / 2 * ffn.n_active * 7168 * 2


@pytest.mark.parametrize("n_stages", [1, 2, 5, 12])
def test_what_is_handed_on_is_handed_on_once_less_than_there_are_stages(n_stages):
    """Each device of a stage sends its part of all residuals, in 16 bits."""
    spec = load_architecture("qwen3-8b")
    found = runs("qwen3-8b", READING, n_stages=n_stages, n_tensor=2)
    one = found["model", "model", "hand-over between stages"]
    part = 2 * 300 * spec.d_model * 2.0 / 2
    assert one.arguments == {"n_bytes": part, "n_sends": n_stages - 1, "n_group": 2}
    assert one.sent_bytes == part * (n_stages - 1)


@pytest.mark.parametrize("name", ["Llama-3.1-70B", "Qwen3-32B", "Mixtral-8x7B-v0.1"])
def test_a_model_of_any_kind_has_the_flop_of_its_parameters(name):
    """Prefill of t tokens does 2 t FLOP for each parameter that they meet, and attention's."""
    path = f"{CONFIGS}{name}_config.json"
    spec, tokens = load_architecture(path), Tokens(prompts=1.0, read=64.0)
    found = pass_of(rank(path), tokens, overlaps=False, message_share=0.0)
    flop = sum(
        n * it.run.flop
        for _, n, it in found.spent
        if "attention" not in it.run.name and it.run.name != "head"
    )
    inside = spec.n_active_params - spec.embedding_params
    assert flop == pytest.approx(2 * 64 * inside, rel=0.01)


def lines(tokens, **of_rank):
    it = rank("qwen3-8b", **of_rank)
    found = pass_line("decode", pass_of(it, tokens, overlaps=False, message_share=0.0), it, 1e-3)
    return it, found, {line.name: line for line in found.operations}


def test_shares_of_a_line_and_of_its_pass_are_work_over_rates_and_time():
    """H100: 989.4 TFLOP/s in 16 bits, 1,978.9 in 8, 3.35 TB/s."""
    it, whole, named = lines(DECODING, n_tensor=2)
    peaks, rate = it.kernels.device.peak_flop_per_s, it.kernels.device.hbm_bytes_per_s
    for name, peak in (("FFN up", peaks["fp8"]), ("decode attention", peaks["bf16"])):
        one = named[name]
        assert one.mfu_fraction == pytest.approx(one.flop / peak / one.run_s)
        assert one.hbm_fraction == pytest.approx(one.hbm_bytes / rate / one.run_s)
        assert one.ridge_flop_per_byte == pytest.approx(peak / rate)
        assert one.flop_per_byte == pytest.approx(one.flop / one.hbm_bytes)
    work = [sum(getattr(one, what) * one.n_times for one in whole.operations)
            for what in ("flop", "hbm_bytes")]  # fmt: skip
    assert whole.mfu_fraction == pytest.approx(work[0] / peaks["fp8"] / whole.total_s.value)
    assert whole.hbm_fraction == pytest.approx(work[1] / rate / whole.total_s.value)
    assert whole.n_tokens == 10
    assert whole.hidden_s == 0


@pytest.mark.parametrize(
    ("tokens", "name", "bound"),
    [
        (Tokens(decoding=4.0, context=100.0), "FFN up", "memory"),
        (Tokens(prompts=1.0, read=8192.0), "FFN up", "compute"),
        (Tokens(decoding=1.0, context=1.0), "decode attention", "latency"),
        (DECODING, "all-reduce after the FFN", "network"),
    ],
)
def test_a_bound_is_what_most_of_the_time_is_due_to(tokens, name, bound):
    _, _, named = lines(tokens, n_tensor=2, formats=replace(FP8, weights="bf16"))
    assert named[name].bound == bound
