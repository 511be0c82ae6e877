"""What the reference model knows of a Transformer, a GPU and its collectives.

Its conventions, not ours: the sparsity of experts is rounded down, keys and values count
as heads of their own, bandwidths of collectives are half of one direction's link rate,
and the FLOP rate is looked up by the bits of a weight alone.

Source: [Erdil2025] §3-4 and the published program's constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Widths of the compressed keys-and-values and queries of multi-head latent attention."""

    d_kv: int
    d_query: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EconomicsModel:
    """A decoder-only Transformer of identical layers, embeddings never tied.

    `n_ffn_in` matrices lead from `d_model` to `d_ff` and `n_ffn_out` back; `d_ff` is the
    width of one expert; a dense model has one expert, active.
    """

    name: str
    title: str
    n_layers: int
    d_model: float
    d_ff: float
    n_ffn_in: int
    n_ffn_out: int
    n_experts: int
    n_active_experts: int
    n_heads: float
    n_heads_per_group: float
    d_head: float
    vocab_size: int
    weight_bytes: float
    activation_bytes: float
    is_parallel_block: bool = False
    latent: LatentAttention | None = None

    @property
    def sparsity(self) -> int:
        """Experts per active expert, rounded down: 28 for 256 experts of which 9 are active."""
        return self.n_experts // self.n_active_experts

    @property
    def n_kv_heads(self) -> float:
        """Heads of the keys plus heads of the values."""
        return 2 * self.n_heads / self.n_heads_per_group

    @property
    def d_qkv(self) -> float:
        """Width of queries, keys and values together."""
        return (self.n_heads + self.n_kv_heads) * self.d_head

    @property
    def d_heads(self) -> float:
        """Width of all query heads together."""
        return self.n_heads * self.d_head

    @property
    def d_score(self) -> float:
        """Width in which a query meets a cached token: of a head, or of the latent."""
        return self.latent.d_kv if self.latent else self.d_head

    @property
    def n_ffn_matrices(self) -> int:
        return self.n_ffn_in + self.n_ffn_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How a collective is sent: what it costs to start, to hop, and of the bandwidth."""

    name: str
    scale_up_hop_s: float
    scale_out_hop_s: float
    base_s: float
    bandwidth_fraction: float


LL = Protocol(
    name="LL", scale_up_hop_s=0.6e-6, scale_out_hop_s=5e-6, base_s=6.8e-6, bandwidth_fraction=0.5
)
LL128 = Protocol(
    name="LL128",
    scale_up_hop_s=1.25e-6,
    scale_out_hop_s=8.5e-6,
    base_s=14e-6,
    bandwidth_fraction=0.95,
)
SIMPLE = Protocol(
    name="Simple", scale_up_hop_s=28e-6, scale_out_hop_s=28e-6, base_s=0.0, bandwidth_fraction=1.0
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCollectives:
    """Double trees within and between nodes; the cheapest protocol carries each message.

    The defaults are the tree rows of NCCL's tuning tables (`src/graph/tuning.cc`) as
    [Erdil2025] reads them. Traffic within and between nodes overlaps in the published
    program; the text adds the two.
    """

    protocols: tuple[Protocol, ...] = (LL, LL128, SIMPLE)
    tiers_overlap: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RingCollectives:
    """One ring over everything, a hop a device: what the published program gives to TPUs.

    Source: [Erdil2025], published program; the hop is its constant.
    """

    hop_s: float = 1e-6


Collectives: TypeAlias = TreeCollectives | RingCollectives


@dataclass(frozen=True, slots=True, kw_only=True)
class EconomicsDevice:
    """One GPU, its place in a node, and its price.

    `peak_flop_per_s` is keyed by the bits of a weight. The two bandwidths of collectives
    are half of the link rate of one direction, so that an all-reduce of V bytes over n
    ranks of a node takes (n − 1)/n V divided by the bandwidth.
    """

    name: str
    title: str
    peak_flop_per_s: Mapping[float, float]
    compute_fraction: float
    hbm_bytes: float
    peak_hbm_bytes_per_s: float
    hbm_fraction: float
    scale_up_all_reduce_bytes_per_s: float
    scale_out_all_reduce_bytes_per_s: float
    n_devices_per_node: int
    usd_per_hour: float
    kernel_launch_s: float
    collectives: Collectives = field(default_factory=TreeCollectives)
    tdp_w: float | None = None

    @property
    def hbm_bytes_per_s(self) -> float:
        """Sustained bandwidth of the memory."""
        return self.peak_hbm_bytes_per_s * self.hbm_fraction

    def peak_flop_per_s_of(self, model: EconomicsModel) -> float:
        """Peak rate with the model's weights; `KeyError` where the device has none."""
        return self.peak_flop_per_s[8 * model.weight_bytes]

    def flop_per_s_of(self, model: EconomicsModel) -> float:
        """Sustained rate with the model's weights."""
        return self.peak_flop_per_s_of(model) * self.compute_fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePass:
    """One forward pass of a batch: every request scores the same few tokens.

    Every request has the same context; one scored token is plain decoding, several are
    the verification of a draft.
    """

    model: EconomicsModel
    device: EconomicsDevice
    n_context_tokens: float = 0.0
    n_scored_tokens: float = 1.0
