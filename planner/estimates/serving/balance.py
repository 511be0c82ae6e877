"""Where memory and arithmetic take equally long: batches, groups and heads that a device wants.

R is the ridge: FLOP that a device does in the time that a byte takes. With weights of w bytes,
a product of B tokens does 2 B FLOP for w bytes of each weight, so it balances at B = R w / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.estimates.serving.operations import number_bytes
from planner.specs.architecture import Architecture, Experts
from planner.specs.mixers import GroupedAttention, LatentAttention


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancePoint:
    """One quantity, where it balances, and where it stands.

    Args:
        name: what it is.
        balanced: its value where arithmetic and memory take equally long.
        present: its value now; None where there is none.
        rule: how the balanced value comes about.
    """

    name: str
    balanced: float
    present: float | None
    rule: str


def ridge_flop_per_byte(peak_flop_per_s: float, hbm_bytes_per_s: float) -> float:
    """R: arithmetic intensity at which a device's peak and its memory take equally long."""
    return peak_flop_per_s / hbm_bytes_per_s


def balance_points(
    model: Architecture,
    *,
    matrix_ridge: float,
    attention_ridge: float,
    weights_format: str,
    experts_format: str,
    cache_format: str,
    tokens: float,
    tokens_of_experts: float,
) -> tuple[BalancePoint, ...]:
    """Balance points of a decode pass.

    Args:
        matrix_ridge: R of the format that matrices are multiplied in [FLOP/byte].
        attention_ridge: R of the format that attention is computed in [FLOP/byte].
        tokens: of one attention rank.
        tokens_of_experts: of all ranks that share the experts.

    Source: [InferSim] §3; R/2 of grouped attention, R/4 of latents and R/2S of experts there are
    these, with R of 8-bit products, attention in 16 bits and weights of one byte.
    """
    weight = number_bytes(weights_format)
    found = [
        BalancePoint(
            name="tokens of a product",
            balanced=matrix_ridge * weight / 2.0,
            present=tokens,
            rule="R × bytes of a weight / 2",
        )
    ]
    for mixer in dict.fromkeys(layer.mixer for layer in model.layers):
        if isinstance(mixer, GroupedAttention):
            found.append(_of_groups(mixer, attention_ridge, number_bytes(cache_format)))
        elif isinstance(mixer, LatentAttention):
            found.append(_of_latents(mixer, attention_ridge, number_bytes(cache_format)))
    for ffn in dict.fromkeys(layer.ffn for layer in model.layers):
        if isinstance(ffn, Experts):
            sparsity = ffn.n_active / ffn.n_experts
            each = number_bytes(experts_format)
            found.append(
                BalancePoint(
                    name="tokens of all ranks, for their experts",
                    balanced=matrix_ridge * each / 2.0 / sparsity,
                    present=tokens_of_experts,
                    rule="R × bytes of a weight / 2S, S = active / all experts",
                )
            )
    return tuple(dict.fromkeys(found))


def _of_groups(mixer: GroupedAttention, ridge: float, cache_bytes: float) -> BalancePoint:
    """Each cached pair of d numbers takes 2 d · bytes and gives each head of the group 4 d FLOP."""
    return BalancePoint(
        name="heads that share keys and values",
        balanced=ridge * cache_bytes / 2.0,
        present=mixer.n_heads / mixer.n_kv_heads,
        rule="R of attention × bytes of a cached number / 2",
    )


def _of_latents(mixer: LatentAttention, ridge: float, cache_bytes: float) -> BalancePoint:
    """A head does 2 (2 d_latent + d_rope) FLOP on the d_latent + d_rope numbers of a token."""
    flop = 2.0 * (2 * mixer.d_kv_latent + mixer.d_rope)
    return BalancePoint(
        name="heads that share a latent",
        balanced=ridge * cache_bytes * mixer.d_cached / flop,
        present=float(mixer.n_heads),
        rule="R of attention × bytes of a cached token / FLOP of a head on it",
    )
