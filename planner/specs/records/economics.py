"""What the reference model knows of a Transformer, a GPU and its collectives.

Its conventions, not ours: the sparsity of experts is rounded down, keys and values count
as heads of their own, bandwidths of collectives are half of one direction's link rate,
and the FLOP rate is looked up by the bits of a weight alone.

Source: [Erdil2025] §3-4 and the published program's constants.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from planner.quantities.tables import packaged_table
from planner.specs.ask.targets import CONVENTIONS, SolverOptions, Targets
from planner.specs.files.tables import Provenance


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


_PROTOCOLS = tuple(Protocol(**row) for row in packaged_table("specs/published.toml")["protocols"])


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCollectives:
    """Double trees within and between nodes; the cheapest protocol carries each message.

    The defaults are the tree rows of NCCL's tuning tables (`src/graph/tuning.cc`) as
    [Erdil2025] reads them. Traffic within and between nodes overlaps in the published
    program; the text adds the two.
    """

    protocols: tuple[Protocol, ...] = _PROTOCOLS
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


MEMORY_RULES = ("in-flight", "one-microbatch")
"""What a device has to hold.

`in-flight`: its weights as it is the fullest of its stage, the caches of all requests in
flight, and a draft model with its caches beside them. `one-microbatch`: as [Erdil2025]
§3.6 has it, an even share of all weights and the caches of one micro-batch; a draft model
meets the memory by itself.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizedModel:
    """A model in one number format, with a draft model or without.

    Args:
        weights_format: name of the format of the target's weights.
        quality: what it loses against the format that the model is published in, in words.
        target: its pass over one token of each request.
        draft: the pass of a draft model on the same devices.
        draft_format: name of the format of the draft's weights.
    """

    weights_format: str
    quality: str = ""
    target: DecodePass
    draft: DecodePass | None = None
    draft_format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """How a draft model is used, where there is one.

    Args:
        acceptance: probability that a proposed token is accepted, in [0, 1).
        lookaheads: numbers of tokens proposed at once to choose from.
        convention: how yielded tokens are counted, see `equations.speculation`.
    """

    acceptance: float = 0.8
    lookaheads: tuple[int, ...] = (2, 3, 4, 5)
    convention: str = CONVENTIONS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class EconomicsRequest:
    """One request for a decode deployment under the reference model.

    Args:
        served: the number formats to choose from; one device for all of them.
        n_devices: devices of the pool; any part of it may be used.
        batches: requests decoded together to choose from.
        n_cached_tokens: tokens of each request to hold, at least the context that is read.
        drafting: how drafts are used, where `served` has them.
        targets: what must hold; a time to first token cannot be asked for.
        objective: a quantity of its programs.
        memory: one of `MEMORY_RULES`.
        options: how to solve.
        notes: what the reference model cannot say of the model or the pool.
        provenance: where the constants of all this come from.
    """

    served: tuple[QuantizedModel, ...]
    n_devices: int
    batches: tuple[int, ...]
    n_cached_tokens: float = 0.0
    drafting: Drafting = field(default_factory=Drafting)
    targets: Targets = field(default_factory=Targets)
    objective: str = "cost"
    memory: str = MEMORY_RULES[0]
    options: SolverOptions = field(default_factory=SolverOptions)
    notes: tuple[str, ...] = ()
    provenance: tuple[Provenance, ...] = ()

    @property
    def device(self) -> EconomicsDevice:
        return self.served[0].target.device

    @property
    def title(self) -> str:
        """`Llama 3 70B on 32 × NVIDIA H100`."""
        return f"{self.served[0].target.model.title} on {self.n_devices} × {self.device.title}"

    @property
    def usd_per_hour(self) -> float:
        """Rent of one device."""
        return self.device.usd_per_hour

    @property
    def hbm_bytes(self) -> float:
        """Memory of one device that a plan may fill."""
        return self.device.hbm_bytes
