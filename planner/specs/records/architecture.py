"""A model as its layers are: classes of equal layers, not one average layer.

`ModelSpec` describes what the layout programs shard: one attention, one FFN, experts.
An `Architecture` is any decoder of a Hugging Face `config.json`: layers that attend to everything
beside those with windows, latents or recurrences, dense FFNs beside experts, predictors of tokens.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from planner.specs.files.tables import Provenance
from planner.specs.records.encoders import Encoder
from planner.specs.records.mixers import Mixer, Recurrence
from planner.specs.records.served_formats import Checkpoint
from planner.specs.records.variants import Variant
from planner.specs.validation.hints import LATER


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """An FFN that every token passes.

    Args:
        n_matrices: 3 gated, 2 plain.
        n_other_params: biases.
    """

    d_ff: int
    n_matrices: int
    n_other_params: int = 0

    def n_params(self, d_model: int) -> int:
        return self.n_matrices * d_model * self.d_ff + self.n_other_params

    def n_active_params(self, d_model: int) -> int:
        return self.n_params(d_model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """An FFN of experts, of which each token visits a few.

    Args:
        n_experts: routed experts.
        n_active: routed experts that one token is sent to.
        d_expert: FFN dimension of a routed expert.
        d_shared: FFN dimension of what every token passes besides, all shared experts together;
            0 without.
        n_matrices: 3 gated, 2 plain; of routed and shared ones.
        n_groups: groups that routing is limited to `n_active_groups` of (node-limited routing).
        n_other_params: the router's bias, a shared expert's gate, experts' biases.
        d_latent: width that tokens are projected to before routed experts, and back from after
            them (Nemotron 3 Super); None where experts read the residual stream.
        loads: of each expert in the order that devices hold them, in any unit; none where nobody
            measured them.
    """

    n_experts: int
    n_active: int
    d_expert: int
    d_shared: int
    n_matrices: int
    n_groups: int = 1
    n_active_groups: int = 1
    n_other_params: int = 0
    d_latent: int | None = None
    loads: tuple[float, ...] = ()

    @property
    def expected_loads(self) -> tuple[tuple[float, ...], ...]:
        """Loads of all experts in every order that counts: the measured one, or drawn ones."""
        return (self.loads,) if self.loads else usual_loads(self.n_experts)

    def expert_params(self, d_model: int) -> int:
        """Parameters of one routed expert."""
        return self.n_matrices * (self.d_latent or d_model) * self.d_expert

    def n_params(self, d_model: int) -> int:
        return self.n_experts * self.expert_params(d_model) + self._common_params(d_model)

    def n_active_params(self, d_model: int) -> int:
        """Parameters that one token meets, router included."""
        return self.n_active * self.expert_params(d_model) + self._common_params(d_model)

    def _common_params(self, d_model: int) -> int:
        shared = self.n_matrices * d_model * self.d_shared
        projections = 2 * d_model * (self.d_latent or 0)
        return d_model * self.n_experts + shared + projections + self.n_other_params


Ffn = FeedForward | Experts


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerClass:
    """Layers of equal shape.

    Args:
        name: what reports call it: `full attention, experts`.
        n_layers: how many there are.
        mixer: how tokens are mixed; None where a layer has no attention (pruned, or FFN only).
        ffn: what follows; None where a layer has none (Nemotron-H, Mamba).
        n_norm_params: of the layer's norms.
        n_other_params: of neither part: what joins a token's embedding to a predictor.
        n_borrowed_params: of all these, what an earlier layer holds: it is met again (Zamba 2).
    """

    name: str
    n_layers: int
    mixer: Mixer | None
    ffn: Ffn | None
    n_norm_params: int = 0
    n_other_params: int = 0
    n_borrowed_params: int = field(default=0, metadata={LATER: True})

    def n_params(self, d_model: int) -> int:
        """Parameters that one such layer holds."""
        parts = (self.mixer, self.ffn)
        whole = sum(p.n_params(d_model) for p in parts if p is not None)
        return whole + self.n_norm_params + self.n_other_params - self.n_borrowed_params

    def n_active_params(self, d_model: int) -> int:
        """Parameters of one such layer that one token meets."""
        mixed = self.mixer.n_params(d_model) if self.mixer else 0
        fed = self.ffn.n_active_params(d_model) if self.ffn else 0
        return mixed + fed + self.n_norm_params + self.n_other_params


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A decoder as served.

    Args:
        layers: classes of layers, in the order of their first layer.
        order: index into `layers` of each layer, from input to output.
        predictors: layers that predict further tokens: one class, not in `n_params`; or None.
        published_weights: formats that the weights are published in; none if the config says none.
        checkpoints: what is known to be in those of a format.
        activation_format: what activations and 16-bit multiplications are in.
        n_context_tokens: longest context that it was made for; None if unknown.
        n_other_params: learned positions, the final norm, what belongs to no layer.
        n_encoder_params, encoder: of all that sees or hears, in no other count; the first, timed.
        n_params_published: where known.
        weights_formats: that weights may take where asked for; the published alone if left out.
        kv_format, kv_formats: of the cache as published, or of activations; all it may take.
        quality_losses: of weights formats, the share of a benchmark's score lost, if known [1].
        kv_quality_losses, activation_losses: of the cache; of activations beside weights in one.
        is_parallel_block: attention and FFN read the same input and share a collective.
        repository: `org/name` on Hugging Face, or a folder: what engines start; may be empty.
        family: `model_type` of that; empty if nobody says.
        expert_loads: how loads of experts were said, a file or an exponent; may be empty.
    """

    name: str
    title: str
    d_model: int
    vocab_size: int
    tied_embeddings: bool
    layers: tuple[LayerClass, ...]
    order: tuple[int, ...]
    published_weights: tuple[str, ...]
    activation_format: str
    n_context_tokens: int | None = None
    predictors: LayerClass | None = None
    n_other_params: int = 0
    n_encoder_params: int = field(default=0, metadata={LATER: True})
    encoder: Encoder | None = field(default=None, metadata={LATER: True})
    n_params_published: float | None = None
    variant: Variant | None = None
    provenance: tuple[Provenance, ...] = ()
    weights_formats: tuple[str, ...] = ()
    kv_format: str = ""
    kv_formats: tuple[str, ...] = ()
    quality_losses: Mapping[str, float] = field(default_factory=dict)
    kv_quality_losses: Mapping[str, float] = field(default_factory=dict)
    activation_losses: Mapping[str, float] = field(default_factory=dict, metadata={LATER: True})
    is_parallel_block: bool = False
    repository: str = ""
    family: str = ""
    expert_loads: str = ""
    checkpoints: tuple[Checkpoint, ...] = ()

    def __post_init__(self) -> None:
        if not self.weights_formats:
            published = self.published_weights or (self.activation_format,)
            object.__setattr__(self, "weights_formats", published)
        if not self.kv_format:
            object.__setattr__(self, "kv_format", self.activation_format)
        if self.kv_format not in self.kv_formats:  # also after `replace(model, kv_format=...)`
            object.__setattr__(self, "kv_formats", (self.kv_format, *self.kv_formats))

    @property
    def n_layers(self) -> int:
        return len(self.order)

    @property
    def embedding_params(self) -> int:
        return self.vocab_size * self.d_model * (1 if self.tied_embeddings else 2)

    @property
    def n_params(self) -> int:
        """All parameters, as publishers count them: predictors left out."""
        inside = sum(c.n_layers * c.n_params(self.d_model) for c in self.layers)
        return inside + self.embedding_params + self.n_other_params

    @property
    def n_active_params(self) -> int:
        """Parameters that one token meets, a block as often as it does; embeddings count whole."""
        inside = sum(c.n_layers * c.n_active_params(self.d_model) for c in self.layers)
        return inside + self.embedding_params + self.n_other_params

    @property
    def expert_counts(self) -> tuple[int, ...]:
        """How many experts its layers have, each number once; none if it has no experts."""
        counts = (one.ffn.n_experts for one in self._classes if isinstance(one.ffn, Experts))
        return tuple(dict.fromkeys(counts))

    @property
    def _classes(self) -> tuple[LayerClass, ...]:
        return (*self.layers, *((self.predictors,) if self.predictors else ()))

    def with_loads(self, loads: Sequence[float], *, said: str = "") -> Architecture:
        """The same, with tokens that go to experts so.

        Args:
            loads: of each expert of a layer, in the order that devices hold them, in any unit.
            said: what `--expert-loads` takes for them, for commands that ask again.

        Raises:
            ValueError: no layer has as many experts.
        """
        if len(loads) not in self.expert_counts:
            raise ValueError(f"no layer of {self.name} has {len(loads)} experts")
        shares = tuple(float(load) for load in loads)
        layers = [_loaded(one, shares) for one in self._classes]
        return replace(
            self,
            layers=tuple(layers[: len(self.layers)]),
            predictors=layers[-1] if self.predictors else None,
            expert_loads=said,
        )

    def cached_numbers_per_token(self) -> int:
        """Numbers that one token leaves in all caches, while all layers keep it."""
        return sum(c.n_layers * c.mixer.d_cached for c in self.layers if c.mixer is not None)

    def cached_numbers(self, n_tokens: float) -> float:
        """Numbers in the caches of one sequence; windows and chunks keep their own tokens only."""
        return sum(
            c.n_layers * c.mixer.d_cached * c.mixer.n_cached_tokens(n_tokens)
            for c in self.layers
            if c.mixer is not None
        )

    def state_bytes(self, conv_bytes_per_number: float = 2.0) -> float:
        """Recurrent and convolution states of one sequence, whatever its length [bytes]."""
        return sum(c.n_layers * state_bytes(c.mixer, conv_bytes_per_number) for c in self.layers)


def state_bytes(mixer: Mixer | None, conv_bytes_per_number: float = 2.0) -> float:
    """States of one sequence in one layer, whatever its length [bytes]."""
    if not isinstance(mixer, Recurrence):
        return 0.0
    kept = mixer.n_conv_numbers * conv_bytes_per_number
    return mixer.n_state_numbers * mixer.state_bytes_per_number + kept


def _loaded(layer: LayerClass, loads: tuple[float, ...]) -> LayerClass:
    ffn = layer.ffn
    if not isinstance(ffn, Experts) or ffn.n_experts != len(loads):
        return layer
    return replace(layer, ffn=replace(ffn, loads=loads))


EXPONENT = 0.8  # s, of the power law [1]
N_ORDERS = 16
"""Orders whose mean is taken: it is then known to 2 % of the rows of the fullest device."""


@cache
def usual_loads(n_experts: int) -> tuple[tuple[float, ...], ...]:
    """Loads of the experts of a layer in each of the orders.

    The k-th most popular of E experts is visited in proportion to k^-s. Engines hold neighbours on
    a device, and which experts are neighbours of popular ones is not known: the orders are drawn,
    the same ones each time.

    Source: `docs/decisions/0025-steps.md`; s makes as many experts be hit as the power laws of
    [AIConfigurator2026] do, under which its tables of experts were measured.
    """
    loads = [rank**-EXPONENT for rank in range(1, n_experts + 1)]
    orders = []
    for seed in range(N_ORDERS):
        random.Random(seed).shuffle(drawn := list(loads))
        orders.append(tuple(drawn))
    return tuple(orders)
