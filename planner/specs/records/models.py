"""What is served: the shape of a model, and the parameters and bytes that it implies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from planner.specs.files.tables import Provenance
from planner.specs.records.runtimes import ModelKind
from planner.specs.records.served_formats import NUMBER_FORMATS, Checkpoint
from planner.specs.records.variants import Variant
from planner.specs.validation.hints import LATER, computed
from planner.specs.validation.values import NOT_EMPTY, Check, Loss, Positive, one_of

FORMAT_BYTES: Mapping[str, float] = {
    name: one.n_bytes for name, one in NUMBER_FORMATS.items() if one.is_of_models
}
"""Bytes of one number, by format; scales are left out where files differ in how many."""

Format = Annotated[str, one_of("number format", FORMAT_BYTES)]
SomeFormats = Annotated[tuple[Format, ...], NOT_EMPTY]
Block = Annotated[str, one_of("block", ("parallel", "serial"))]


def _gating(n_matrices: int) -> tuple[str, str]:
    remedy = "write 3 for a gated FFN, 2 for a plain one"
    return "" if n_matrices in (2, 3) else "is neither 2 nor 3", remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeShape:
    """FFNs made of experts, of which each token visits a few.

    Args:
        n_experts: routed experts of one layer.
        n_active_experts: routed experts that one token is sent to.
        n_shared_experts: experts that every token visits besides.
        d_expert: FFN dimension of one expert, routed or shared.
        n_dense_layers: first layers, whose FFN is one of dimension `d_ff`.
        n_groups: groups of experts that routing is limited to `n_active_groups` of.
    """

    n_experts: int
    n_active_experts: int
    n_shared_experts: int = 0
    d_expert: int
    n_dense_layers: int = 0
    n_groups: Positive = 1
    n_active_groups: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MlaShape:
    """Multi-head latent attention: one latent a token is cached, for all heads.

    Args:
        d_kv_latent: width of the latent that keys and values are made from.
        d_q_latent: width of the latent that queries are made from; None if they are not.
        d_rope: rotated part of a head's query and key; its key is shared by all heads.
        d_nope: the other part.
        d_value: width of a head's value.
    """

    d_kv_latent: int
    d_q_latent: int | None = None
    d_rope: Positive
    d_nope: Positive
    d_value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowShape:
    """Layers that attend to the last tokens only.

    Args:
        n_tokens: how many tokens they attend to, and keep.
        n_layers: how many such layers there are; the others attend to everything.
    """

    n_tokens: int
    n_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MtpShape:
    """Modules that predict further tokens: each a layer like the last, joined to an embedding.

    Args:
        n_modules: one behind the other; each predicts one token more.
        n_params_published: of all modules, with their copies of both embeddings; None if unknown.
    """

    n_modules: int
    n_params_published: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A decoder-only Transformer to serve.

    `n_heads_served` counts the heads as deployed: published heads may be padded so
    that they divide over a mesh. All work and memory count padded heads; MFU counts
    the published parameters. Norms and biases are counted nowhere.

    With `mla`, `d_head` is the width of a head's query, `d_nope` + `d_rope`, and each
    head has keys of its own, made from the latent: `n_kv_heads` is `n_heads`.

    Args:
        d_ff: FFN dimension of the layers without experts.
        weights_formats: formats that its weights may take, where they are asked for.
        published_weights: those of them that are offered unasked: it is published in them, or its
            publisher serves it in them; the first of all where left out.
        kv_format: number format of the KV cache as published, unless another is chosen.
        kv_formats: formats that it may take, `kv_format` among them.
        n_active_params_published: of models with experts, parameters that one token meets.
        moe: experts; None if every FFN is whole.
        mla: latent attention; None if keys and values are cached as they are.
        window: layers with a window; None if every layer attends to everything.
        mtp: modules that predict further tokens, in no other count; None without.
        quality_losses: of weights formats, the share of a benchmark's score that is lost
            against the published one, where that is known [1].
        kv_quality_losses: likewise of formats of the KV cache, against `kv_format`.
        variant: what it was made from, if it stands in for another model.
        n_context_tokens: most tokens of one sequence, read and written; None if not limited.
        n_encoder_params: of what sees or hears beside the decoder, in no other count.
        norms_heads: queries and keys are normed before they are rotated.
        checkpoints: what is known to be in those of a weights format.
        repository: `org/name` on Hugging Face, or the folder of its `config.json`; may be empty.
        family: `model_type` of that; empty if nobody says.
    """

    name: str
    title: str
    n_layers: int
    d_model: int
    d_ff: int
    n_heads: int
    n_heads_served: int
    n_kv_heads: int
    d_head: int
    vocab_size: int
    n_ffn_matrices: Annotated[int, Check(_gating)]
    block: Block
    tied_embeddings: bool
    n_params_published: float
    weights_formats: SomeFormats
    kv_format: Format
    activation_format: Format
    provenance: tuple[Provenance, ...] = ()
    published_weights: SomeFormats = ()
    kv_formats: SomeFormats = ()
    n_active_params_published: float | None = None
    moe: MoeShape | None = None
    mla: MlaShape | None = None
    window: WindowShape | None = None
    mtp: MtpShape | None = None
    quality_losses: Mapping[Format, Loss] = field(default_factory=dict)
    kv_quality_losses: Mapping[Format, Loss] = field(default_factory=dict)
    variant: Variant | None = None
    n_context_tokens: int | None = None
    repository: str = ""
    family: str = ""
    norms_heads: bool = False
    n_encoder_params: int = field(default=0, metadata={LATER: True})
    checkpoints: tuple[Checkpoint, ...] = ()

    def __post_init__(self) -> None:
        if self.kv_format not in self.kv_formats:  # also after `replace(model, kv_format=...)`
            object.__setattr__(self, "kv_formats", (self.kv_format, *self.kv_formats))
        if not self.published_weights:
            object.__setattr__(self, "published_weights", self.weights_formats[:1])

    @property
    def kind(self) -> ModelKind:
        """`dense`, or `mixture` of experts."""
        return "mixture" if self.moe else "dense"

    @computed
    def n_params(self) -> int:
        """Parameters as published, counted from the shape."""
        return self._n_params(self.n_heads)

    @computed
    def n_params_served(self) -> int:
        """Parameters as deployed, padded heads included."""
        return self._n_params(self.n_heads_served)

    @property
    def n_params_active(self) -> int:
        """Parameters that one token meets: all but the experts that it is not sent to.

        Both embeddings count whole, as most publishers have it, although a token reads
        only its row of the first. A dense model has no others.
        """
        n_idle = self.moe.n_experts - self.moe.n_active_experts if self.moe else 0
        return self.n_params - self.n_moe_layers * n_idle * self.expert_params

    @property
    def layer_params_served(self) -> int:
        """Parameters of a layer without experts, as deployed."""
        return self.attention_params + self.dense_ffn_params

    @property
    def moe_layer_params(self) -> int:
        """Parameters of a layer with all its experts, as deployed; 0 of a dense model."""
        return self.attention_params + self._moe_ffn_params if self.moe else 0

    @property
    def attention_params(self) -> int:
        """Parameters of one layer's attention, as deployed."""
        return self._attention_params(self.n_heads_served)

    @property
    def dense_ffn_params(self) -> int:
        """Parameters of one FFN without experts."""
        return self.n_ffn_matrices * self.d_model * self.d_ff

    @property
    def expert_params(self) -> int:
        """Parameters of one expert, routed or shared; 0 of a dense model."""
        return self.n_ffn_matrices * self.d_model * self.moe.d_expert if self.moe else 0

    @property
    def router_params(self) -> int:
        """Parameters that send the tokens of one layer to experts; 0 of a dense model."""
        return self.d_model * self.moe.n_experts if self.moe else 0

    @property
    def mtp_params(self) -> int:
        """Parameters of the modules that predict further tokens, embeddings left out."""
        if self.mtp is None:
            return 0
        layer = self.moe_layer_params if self.moe else self.layer_params_served
        return self.mtp.n_modules * (layer + 2 * self.d_model**2)

    @property
    def n_moe_layers(self) -> int:
        return self.n_layers - self.moe.n_dense_layers if self.moe else 0

    @property
    def embedding_params(self) -> int:
        return self.vocab_size * self.d_model * (1 if self.tied_embeddings else 2)

    @property
    def n_ffn_inputs(self) -> int:
        """FFN matrices that read the residual stream: two if gated, one if plain."""
        return self.n_ffn_matrices - 1

    @property
    def is_parallel(self) -> bool:
        """Attention and FFN read the same input, so that their collectives are shared."""
        return self.block == "parallel"

    @property
    def d_query(self) -> int:
        return self.n_heads_served * self.d_head

    @property
    def d_kv(self) -> int:
        """Width of the keys of one token in one layer; without `mla` the values are as wide."""
        return self.n_kv_heads * self.d_head

    @property
    def d_cached(self) -> int:
        """Numbers that one token leaves in the KV cache of one layer."""
        return self.mla.d_kv_latent + self.mla.d_rope if self.mla else 2 * self.d_kv

    @property
    def kv_bytes_per_token(self) -> float:
        """The KV cache of one token in all layers, while all of them keep it."""
        return self.n_layers * self.d_cached * FORMAT_BYTES[self.kv_format]

    def kv_bytes(self, n_tokens: float) -> float:
        """The KV cache of one sequence of `n_tokens`; a window keeps its last ones only."""
        n_kept = self.n_layers * n_tokens
        if self.window:
            n_kept -= self.window.n_layers * max(0.0, n_tokens - self.window.n_tokens)
        return n_kept * self.d_cached * FORMAT_BYTES[self.kv_format]

    def _n_params(self, n_heads: int) -> int:
        n_dense_layers = self.n_layers - self.n_moe_layers
        ffns = n_dense_layers * self.dense_ffn_params + self.n_moe_layers * self._moe_ffn_params
        return self.n_layers * self._attention_params(n_heads) + ffns + self.embedding_params

    @property
    def _moe_ffn_params(self) -> int:
        n_experts = self.moe.n_experts + self.moe.n_shared_experts if self.moe else 0
        return self.router_params + n_experts * self.expert_params

    def _attention_params(self, n_heads: int) -> int:
        if self.mla is None:
            return 2 * self.d_model * (n_heads * self.d_head + self.d_kv)
        mla, d_queries = self.mla, n_heads * self.d_head
        queries = self.d_model * d_queries
        if mla.d_q_latent is not None:
            queries = mla.d_q_latent * (self.d_model + d_queries)
        latent = self.d_model * (mla.d_kv_latent + mla.d_rope)
        made_from_it = mla.d_kv_latent * n_heads * (mla.d_nope + mla.d_value)
        return queries + latent + made_from_it + n_heads * mla.d_value * self.d_model
