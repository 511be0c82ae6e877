"""Parts of a model that is described as one kind of layer; and the fullest stage of others."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.specs.records.architecture import Experts, LayerClass
from planner.specs.validation.hints import from_fields
from planner.specs.validation.values import Positive


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


def moe_shape(experts: Experts, *, n_dense_layers: int = 0) -> MoeShape:
    """Experts whose shared ones are as wide as those that are routed to."""
    return from_fields(
        MoeShape,
        experts,
        n_active_experts=experts.n_active,
        n_shared_experts=experts.d_shared // experts.d_expert,
        n_dense_layers=n_dense_layers,
    )


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


def fullest_stage(
    layers: Sequence[LayerClass], order: Sequence[int], d_model: int, n_stages: int
) -> Sequence[int]:
    """The part of `order` that stands for all stages of a pipeline: each has equally many layers,
    but for the last. It has the most parameters; of equals the largest cache, of these it is the
    first."""
    n_each = -(-len(order) // n_stages)
    weights = [
        (layer.n_params(d_model), layer.mixer.d_kept if layer.mixer else 0) for layer in layers
    ]
    stages = [order[i : i + n_each] for i in range(0, len(order), n_each)]
    return max(stages, key=lambda at: tuple(map(sum, zip(*(weights[i] for i in at), strict=True))))
