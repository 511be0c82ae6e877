"""Where memory and arithmetic take equally long: batches, groups and heads that a device wants.

R is the ridge: FLOP that a device does in the time that a byte takes. With weights of w bytes,
a product of B tokens does 2 B FLOP for w bytes of each weight, so it balances at B = R w / 2.
R/2 of grouped attention, R/4 of latents and R/2S of experts in [InferSim] §3 are these, with R of
8-bit products, attention in 16 bits and weights of one byte.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.results.predictions import BalanceLine
from planner.specs.architecture import Experts
from planner.specs.mixers import GroupedAttention, LatentAttention
from planner.verifier.serving.kernels import stored_bytes
from planner.verifier.serving.ranks import Rank


def balance(rank: Rank, n_running: float) -> tuple[BalanceLine, ...]:
    """Balance points of a decode pass in which so many tokens of a rank are.

    Those of a product, then of each kind of attention, then of experts.
    """
    formats, rate = rank.formats, rank.kernels.device.hbm_bytes_per_s
    matrix_ridge, attention_ridge = (
        rank.kernels.peak_of(one) / rate for one in (formats.weights, "bf16")
    )
    layers, lines = rank.model.layers, [
        BalanceLine(
            name="tokens of a product",
            balanced=matrix_ridge * stored_bytes(formats.weights) / 2,
            present=n_running,
            rule="R × bytes of a weight / 2",
        )
    ]  # fmt: skip
    for mixer in dict.fromkeys(layer.mixer for layer in layers):
        lines += _of_attention(mixer, attention_ridge, stored_bytes(formats.cache))
    experts_ridge = matrix_ridge * stored_bytes(formats.experts)
    lines += [
        BalanceLine(
            name="tokens of all ranks, for their experts",
            balanced=experts_ridge / 2 / (ffn.n_active / ffn.n_experts),
            present=n_running * rank.n_data,
            rule="R × bytes of a weight / 2S, S = active / all experts",
        )
        for ffn in dict.fromkeys(layer.ffn for layer in layers)
        if isinstance(ffn, Experts)
    ]
    return tuple(dict.fromkeys(lines))


def _of_attention(mixer: object, ridge: float, cache_bytes: float) -> Iterator[BalanceLine]:
    """Heads that share what is cached.

    Each cached pair of d numbers takes 2 d bytes · w and gives each head of a group 4 d FLOP; of
    latents a head does 2 (2 d_latent + d_rope) FLOP on the d_latent + d_rope numbers of a token.
    """
    if isinstance(mixer, GroupedAttention):
        yield BalanceLine(
            name="heads that share keys and values",
            balanced=ridge * cache_bytes / 2,
            present=mixer.n_heads / mixer.n_kv_heads,
            rule="R of attention × bytes of a cached number / 2",
        )
    elif isinstance(mixer, LatentAttention):
        flop = 2.0 * (2 * mixer.d_kv_latent + mixer.d_rope)
        yield BalanceLine(
            name="heads that share a latent",
            balanced=ridge * cache_bytes * mixer.d_cached / flop,
            present=float(mixer.n_heads),
            rule="R of attention × bytes of a cached token / FLOP of a head on it",
        )
