"""What [Lecture] says of intensity, batches and speculation, as the planner's operations have it.

Each docstring quotes a claim with its section. What does not hold here is a strict expected failure
with the reason. Claims of caches and formats are in `test_lecture_memory.py`.
"""

import numpy as np
import pytest

from planner.equations.roofline import compute_s, transfer_s
from planner.equations.speculation import expected_tokens, n_scored
from planner.estimates.serving.passes import parameter_bytes
from planner.specs.files.reading import load_architecture
from planner.specs.records.architecture import FeedForward
from planner.verifier.predictions import balance
from planner.verifier.serving.kernels import product
from research.lecture import (
    BF16,
    H100,
    attention,
    decoding,
    flop,
    intensity,
    llama_13b,
    mlp,
    moved_bytes,
    rank,
    reading,
    table,
    whole_pass,
)

D, F = 5120, 13824
LLAMA = llama_13b()
RIDGE = H100.peak_flop_per_s["bf16"] / H100.hbm_bytes_per_s


def step_s(batch, context=1024):
    """Time of a decode step's memory traffic at the full bandwidth, as §1.7 has it [s]."""
    n_bytes = moved_bytes(whole_pass(LLAMA, decoding(batch, context)))
    return float(transfer_s(n_bytes, bytes_per_s=H100.hbm_bytes_per_s, fraction=1.0))


def tokens_per_s(batch, context=1024):
    return batch / step_s(batch, context)


def test_an_h100_does_295_flop_for_each_byte():
    """§1.3.2: "I_hw = 989/3.35 ≈ 295 FLOPs/Byte"."""
    assert pytest.approx(295, abs=0.5) == RIDGE


def test_a_linear_layer_is_2bdf_flop_for_its_inputs_weights_and_outputs():
    """§1.2: "FLOPs = 2·B·D·F", "Bytes = 2BD + 2DF + 2BF"."""
    b = 7
    linear = product("linear", "feed", b, F, D, "bf16")
    assert linear.flop == 2 * b * D * F
    assert linear.hbm_bytes == 2 * b * D + 2 * D * F + 2 * b * F


@pytest.mark.parametrize("b", [1, 16, 256])
def test_the_intensity_of_a_linear_layer_nears_its_batch(b):
    """§1.3.1: "lim D,F→∞ I_algo ≈ B".

    1 / (1/B + 1/D + 1/F): at a width of 2²⁰ less than 0.1 % short of B = 256.
    """
    linear = product("linear", "feed", b, 2**20, 2**20, "bf16")
    assert intensity([(1, linear)]) == pytest.approx(b, rel=1e-3)


def test_a_gate_adds_half_to_parameters_and_flop():
    """§1.4: "increases the parameter count and FLOPs by approximately 50 %"; "3 × D × F"."""
    gated, plain = (FeedForward(d_ff=F, n_matrices=n) for n in (3, 2))
    assert gated.n_params(D) == 3 * D * F == 1.5 * plain.n_params(D)
    work = decoding(1, 0)
    assert flop(mlp(work, gated)) == 1.5 * flop(mlp(work, plain))


@pytest.mark.parametrize("work", [reading(3, 50), decoding(150, 1024)], ids=["prefill", "decode"])
def test_an_mlp_does_6btdf_flop(work):
    """§1.5: "3 GEMMs, resulting in ≈ 6BTDF operations"; both passes have BT = 150 tokens."""
    assert flop(mlp(work)) == 6 * 150 * D * F


@pytest.mark.parametrize("batch", [1, 4, 16, 64])
def test_the_intensity_of_an_mlp_is_its_batch_in_generation(batch):
    """§1.5: "During Generation (T = 1), intensity becomes ≈ B".

    B FLOP a byte of weights, less the activations' part: 2.7 % at B = 64.
    """
    assert intensity(mlp(decoding(batch, 1024))) == pytest.approx(batch, rel=0.03)


def test_the_intensity_of_an_mlp_does_not_see_which_phase_its_tokens_are_of():
    """§1.5: "Intensity_MLP ≈ B · T"."""
    assert intensity(mlp(reading(2, 32))) == intensity(mlp(decoding(64, 1024)))


def test_an_mlp_is_bound_by_compute_in_prefill_and_by_memory_in_generation():
    """§1.5: "During Prefill (T is large), intensity is high (Compute-Limited)"; S = 1024, §1.6.1.

    707 FLOP a byte against 295, and 1 against 295.
    """
    for work, rival in ((reading(1, 1024), np.greater), (decoding(1, 1024), np.less)):
        operations = mlp(work)
        peak = H100.peak_flop_per_s["bf16"]
        computing = compute_s(flop(operations), peak_flop_per_s=peak, fraction=1.0)
        moving = transfer_s(moved_bytes(operations), bytes_per_s=H100.hbm_bytes_per_s, fraction=1.0)
        assert rival(computing, moving)


def test_an_h100_is_saturated_by_batches_above_295():
    """§1.5: "To saturate an H100 [...] we must use a batch size B > 295".

    A bound from below: activations besides, the MLP of a 13B model needs some 340.
    """
    point, _ = balance(rank(LLAMA), 1.0)
    assert point.balanced == pytest.approx(295, abs=0.5)
    assert intensity(mlp(decoding(295, 1024))) < RIDGE < intensity(mlp(decoding(350, 1024)))


def test_the_intensity_of_attention_grows_with_the_prompt():
    """§1.6.1: "Intensity ≈ S·T/(S+T) → S/2": proportional to S, whatever the batch."""
    assert intensity(attention(reading(4, 1024))) == intensity(attention(reading(1, 1024)))
    short, long = (intensity(attention(reading(1, s))) for s in (1024, 8192))
    assert long / short == pytest.approx(8, rel=0.01)
    assert long > RIDGE


@pytest.mark.xfail(
    strict=True,
    reason="S/2 takes every pair of tokens; of a causal mask half are computed: S/4",
)
def test_the_intensity_of_attention_is_half_the_prompt_in_prefill():
    """§1.6.1: "S²/2S = S/2"."""
    assert intensity(attention(reading(1, 1024))) == pytest.approx(512, rel=0.05)


@pytest.mark.xfail(
    strict=True,
    reason="with half of the pairs masked, 1024 tokens give 256 FLOP a byte, below the 295 of H100",
)
def test_attention_over_a_prompt_of_1024_is_bound_by_compute():
    """§1.6.1: "Since S is usually large (e.g., 1024), S/2 ≫ 295. Prefill is Compute-Limited"."""
    assert intensity(attention(reading(1, 1024))) > RIDGE


@pytest.mark.parametrize("batch", [1, 8, 256])
def test_a_batch_does_not_raise_the_intensity_of_attention_in_generation(batch):
    """§1.6.2: "Intensity = (4·B·S·D)/(4·B·S·D) ≈ 1", "batching does not improve"."""
    operations = attention(decoding(batch, 1024))
    assert flop(operations) == 4 * batch * 1024 * D
    assert intensity(operations) == pytest.approx(1)
    assert intensity(operations) < RIDGE / 100


@pytest.mark.xfail(
    strict=True,
    reason="a query and an output beside S keys and values are not counted as traffic: exactly 1",
)
def test_the_intensity_of_attention_is_below_one_in_generation():
    """§1.6.2: "S/(S+1) < 1"."""
    assert intensity(attention(decoding(1, 1024))) < 1


@pytest.mark.parametrize("batch", [1, 16, 64, 256])
def test_a_step_reads_the_weights_once_and_each_sequences_cache(batch):
    """§1.7: "M(B) = M_params + B · M_KV".

    26.0 GB + B · 0.839 GB; the embedding that is not read (−1.3 %) and activations (+3 %)
    stay within 4 %.
    """
    weights = float(parameter_bytes(LLAMA, table(), BF16)[0])
    cache = LLAMA.cached_numbers(1024) * 2.0
    read = moved_bytes(whole_pass(LLAMA, decoding(batch, 1024)))
    assert read == pytest.approx(weights + batch * cache, rel=0.04)


def test_latency_rises_with_the_batch_by_the_same_for_each_sequence():
    """§1.7: "L(B) = (M_params + B · M_KV) / Bandwidth": least at B = 1, a straight line."""
    first, second, third = np.diff([step_s(b) for b in (1, 101, 201, 301)])
    assert first > 0
    assert second == pytest.approx(first)
    assert third == pytest.approx(first)


def test_throughput_scales_with_small_batches():
    """§1.7.1: "Throughput scales linearly with B (easy gains)": 3.65 times at B = 4."""
    assert 3.6 < tokens_per_s(4) / tokens_per_s(1) < 4


def test_throughput_of_large_batches_has_diminishing_returns_and_a_limit():
    """§1.7.1: "High, but with diminishing returns"; the limit of T(B) is Bandwidth / M_KV.

    Another 64 sequences add less each time; 3.35 TB/s / 0.839 GB = 3994 token/s is never reached.
    """
    rates = [tokens_per_s(b) for b in (64, 128, 192, 256, 320)]
    gains = np.diff(rates)
    assert np.all(gains > 0)
    assert np.all(np.diff(gains) < 0)
    limit = H100.hbm_bytes_per_s / (LLAMA.cached_numbers(1024) * 2.0)
    assert 0.9 * limit < tokens_per_s(100_000) < limit


def test_ten_users_at_once_wait_little_longer_and_get_eight_times_the_tokens():
    """§1.1: "the individual user wait[s] slightly longer [...] 8× more efficient".

    A 13B model at 256 tokens each: latency +8 %, 9.3 times the tokens; with 1024 each, 7.8 times.
    """
    assert 1 < step_s(10, 256) / step_s(1, 256) < 1.2
    assert tokens_per_s(10, 256) / tokens_per_s(1, 256) > 8


def test_matrices_see_all_tokens_at_once_and_attention_each_sequence():
    """§4.1: "Concatenate all sequences [...] and run one large batched matrix multiplication"."""
    work = decoding(3, 100).beside(reading(2, 5))
    named = {run.name: run for _, run in whole_pass(LLAMA, work)}
    assert named["qkv projection"].arguments["m"] == 3 + 2 * 5
    assert named["FFN up"].arguments["m"] == 3 + 2 * 5
    assert named["decode attention"].arguments["batch"] == 3
    assert named["prefill attention"].arguments["batch"] == 2


@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_k_drafted_tokens_are_scored_at_k_plus_one_positions_and_yield_at_most_as_many(k):
    """§3.1.2: "Why do we get K + 1 distributions from K draft tokens?", "The Bonus Token".

    All accepted yield K + 1, none yield the one that corrects the first.
    """
    assert n_scored(k) == k + 1
    assert expected_tokens(k, 1 - 1e-9) == pytest.approx(k + 1)
    assert expected_tokens(k, 0.0) == 1
    assert 1 < expected_tokens(k, 0.7) < k + 1


def test_verifying_loads_the_weights_once():
    """§3.1.2: "Load 70B weights → Compute [Token 1 … Token K] at once. (Penalty paid 1 time)"."""
    model = load_architecture("llama-3.1-70b")
    once, scored = (moved_bytes(whole_pass(model, decoding(1, 1024, n))) for n in (1.0, 5.0))
    assert once < scored < 1.01 * once
    single, five = (flop(whole_pass(model, decoding(1, 1024, n))) for n in (1.0, 5.0))
    assert five == pytest.approx(5 * single)


@pytest.mark.xfail(
    strict=True,
    reason="two passes of the draft are not free: 16 GB each beside the target's 140 GB, 1.6 times",
)
def test_two_tokens_a_round_double_the_speed():
    """§3.1.3: "using only a single forward pass [...], effectively doubling the speed"; K = 2."""
    target, draft = (load_architecture(name) for name in ("llama-3.1-70b", "llama-3.1-8b"))
    plain = moved_bytes(whole_pass(target, decoding(1, 1024)))
    verified = moved_bytes(whole_pass(target, decoding(1, 1024, n_scored(2))))
    drafted = 2 * moved_bytes(whole_pass(draft, decoding(1, 1024)))
    assert 2 * plain / (verified + drafted) == pytest.approx(2, rel=0.1)


def test_denoising_a_block_reads_the_weights_once_for_all_its_tokens():
    """§2.2.3: "increases Arithmetic Intensity by amortizing weight loading over T tokens"."""
    single, block = (intensity(mlp(decoding(1, 1024, n))) for n in (1.0, 32.0))
    assert block == pytest.approx(32 * single, rel=0.03)
