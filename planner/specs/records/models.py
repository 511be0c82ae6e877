"""What is served: the shape of a model, and the parameters and bytes that it implies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from planner.specs.files.tables import Provenance
from planner.specs.records.architecture import Experts, FeedForward, LayerClass, state_bytes
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Mixer
from planner.specs.records.runtimes import ModelKind
from planner.specs.records.served_formats import NUMBER_FORMATS, Checkpoint
from planner.specs.records.shapes import MlaShape, MoeShape, MtpShape, WindowShape, moe_shape
from planner.specs.records.variants import Variant
from planner.specs.validation.hints import LATER, computed, from_fields
from planner.specs.validation.values import NOT_EMPTY, Check, Loss, one_of

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
class ModelSpec:
    """A decoder-only Transformer to serve.

    `n_heads_served` counts the heads as deployed: published heads may be padded so
    that they divide over a mesh. All work and memory count padded heads; MFU counts
    the published parameters. Norms and biases are counted nowhere, but in classes of layers.

    With `mla`, `d_head` is the width of a head's query, `d_nope` + `d_rope`, and each
    head has keys of its own, made from the latent: `n_kv_heads` is `n_heads`.

    Args:
        d_ff: FFN dimension of the layers without experts.
        weights_formats: formats that its weights may take, where they are asked for.
        published_weights: those of them that are offered unasked: it is published in them, or its
            publisher serves it in them; the first of all where left out.
        kv_format, kv_formats: of the KV cache as published, and all formats that it may take.
        n_active_params_published: of models with experts, parameters that one token meets.
        moe: experts; None if every FFN is whole.
        mla: latent attention; None if keys and values are cached as they are.
        window: layers with a window; None if every layer attends to everything.
        mtp: modules that predict further tokens, in no other count; None without.
        quality_losses: of weights formats, the share of a benchmark's score that is lost
            against the published one, where that is known [1].
        kv_quality_losses, activation_losses: of the cache; of activations beside weights in one.
        variant: what it was made from, if it stands in for another model.
        n_context_tokens: most tokens of one sequence, read and written; None if not limited.
        n_encoder_params: of what sees or hears beside the decoder, in no other count.
        norms_heads: queries and keys are normed before they are rotated.
        layers: classes of layers that the fields of one kind cannot describe, which then say what
            the first layers of their sort are; none where they can.
        order: index into `layers` of each layer, from input to output.
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
    activation_losses: Mapping[Format, Loss] = field(default_factory=dict, metadata={LATER: True})
    checkpoints: tuple[Checkpoint, ...] = ()
    layers: tuple[LayerClass, ...] = field(default=(), metadata={LATER: True})
    order: tuple[int, ...] = field(default=(), metadata={LATER: True})

    def __post_init__(self) -> None:
        if self.kv_format not in self.kv_formats:  # also after `replace(model, kv_format=...)`
            object.__setattr__(self, "kv_formats", (self.kv_format, *self.kv_formats))
        if not self.published_weights:
            object.__setattr__(self, "published_weights", self.weights_formats[:1])

    @property
    def n_diffusion_passes(self) -> float:
        """See `Variant.n_passes`."""
        return self.variant.n_passes if self.variant else 0.0

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
        if self.layers:
            inside = sum(
                layer.n_layers * layer.n_active_params(self.d_model) for layer in self.layers
            )
            return inside + self.embedding_params
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
    def mixer(self) -> Mixer | None:
        """What mixes the tokens of all layers, heads padded as served, windows left out."""
        return self.layers[0].mixer if self.layers else self.mixer_of(self.n_heads_served)

    def mixer_of(self, n_heads: int) -> GroupedAttention | LatentAttention:
        """Attention with so many heads, of layers that the fields of one kind describe."""
        if self.mla is not None:
            return from_fields(
                LatentAttention, self.mla, n_heads=n_heads, d_value_head=self.mla.d_value
            )
        return from_fields(GroupedAttention, self, n_heads=n_heads, d_value_head=self.d_head)

    def alone(self, layer: LayerClass) -> ModelSpec:
        """A model of one layer of a class."""
        ffn = layer.ffn
        return replace(
            self,
            n_layers=1,
            d_ff=ffn.d_ff if isinstance(ffn, FeedForward) else 0,
            n_ffn_matrices=ffn.n_matrices if ffn else self.n_ffn_matrices,
            moe=moe_shape(ffn) if isinstance(ffn, Experts) else None,
            layers=(replace(layer, n_layers=1),),
            order=(0,),
        )

    @property
    def attention_params(self) -> int:
        """Parameters of one layer that mix tokens, as deployed, without `copied_params`."""
        mixed = self.mixer.n_params(self.d_model) if self.mixer else 0
        return mixed - self.copied_params

    @property
    def copied_params(self) -> int:
        """Parameters of one layer that each device has all of: those of an indexer's queries."""
        mixer = self.mixer
        if not isinstance(mixer, LatentAttention) or not (mixer.own_indexer and mixer.d_q_latent):
            return 0
        return mixer.d_q_latent * mixer.own_indexer.n_heads * mixer.own_indexer.d_head

    @property
    def dense_ffn_params(self) -> int:
        """Parameters of one FFN without experts, and of what joins it to the rest."""
        if self.layers:
            layer = self.layers[0]
            inside = layer.ffn.n_params(self.d_model) if isinstance(layer.ffn, FeedForward) else 0
            return inside + layer.n_other_params
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
        return self._n_cached(1.0) * FORMAT_BYTES[self.kv_format]

    def kv_bytes(self, n_tokens: float) -> float:
        """What is kept of one sequence of `n_tokens`: in windows the last ones; and states."""
        held = self._n_cached(n_tokens) * FORMAT_BYTES[self.kv_format]
        return held + sum(layer.n_layers * state_bytes(layer.mixer) for layer in self.layers)

    def _n_cached(self, n_tokens: float) -> float:
        """Numbers in the caches of one sequence."""
        if self.layers:
            return sum(
                layer.n_layers * layer.mixer.d_kept * layer.mixer.n_cached_tokens(n_tokens)
                for layer in self.layers
                if layer.mixer
            )
        n_kept = self.n_layers * n_tokens
        if self.window:
            n_kept -= self.window.n_layers * max(0.0, n_tokens - self.window.n_tokens)
        return n_kept * self.d_cached

    def _n_params(self, n_heads: int) -> int:
        if self.layers:
            inside = sum(layer.n_layers * layer.n_params(self.d_model) for layer in self.layers)
            return inside + self.embedding_params
        n_dense_layers = self.n_layers - self.n_moe_layers
        ffns = n_dense_layers * self.dense_ffn_params + self.n_moe_layers * self._moe_ffn_params
        attention = self.mixer_of(n_heads).n_params(self.d_model)
        return self.n_layers * attention + ffns + self.embedding_params

    @property
    def _moe_ffn_params(self) -> int:
        n_experts = self.moe.n_experts + self.moe.n_shared_experts if self.moe else 0
        return self.router_params + n_experts * self.expert_params
