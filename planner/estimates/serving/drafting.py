"""What proposes tokens ahead, as a small model of its own that runs where the target does."""

from collections.abc import Sequence
from dataclasses import replace

from planner.equations.speculation import tokens_by_position
from planner.estimates.serving.traffic import Drafts
from planner.specs.records.architecture import Architecture, FeedForward, LayerClass

KINDS = ("mtp", "eagle", "medusa")

JOINED = 2
"""A drafter joins the embedding of a token to the hidden state before it: a matrix of twice d_model
rows makes its input of both. Sources: DeepSeek-V3 (arXiv 2412.19437) §2.2, EAGLE (arXiv 2401.15077)
§4.1."""


def drafter_of(model: Architecture, kind: str) -> Architecture:
    """The drafter of a model.

    mtp: the layer that the model was trained with for it, run once for each token, with the
    head. eagle: one layer as wide as the model's, with an FFN as its first dense one has, or of
    four times its width. medusa: square matrices and a head, run once for each token: every token
    has its own.

    Raises:
        ValueError: the kind is unknown, or a model without predictors is to use them.
    """
    if kind not in KINDS:
        raise ValueError(f"no drafter `{kind}`: there are {', '.join(KINDS)}")
    if kind == "mtp":
        if model.predictors is None:
            raise ValueError(f"{model.name} has no layer that predicts further tokens")
        return _of_layer(model, replace(model.predictors, name="predictor", n_layers=1))
    if kind == "medusa":
        square = FeedForward(d_ff=model.d_model, n_matrices=2)
        return _of_layer(model, LayerClass(name="heads", n_layers=1, mixer=None, ffn=square))
    first = next((layer for layer in model.layers if layer.mixer is not None), model.layers[0])
    dense = next(
        (layer.ffn for layer in model.layers if isinstance(layer.ffn, FeedForward)),
        FeedForward(d_ff=4 * model.d_model, n_matrices=2),
    )
    return _of_layer(model, replace(first, name="drafter", n_layers=1, ffn=dense))


def has_drafter(model: Architecture, kind: str) -> bool:
    """Whether a model can be drafted so: multi-token prediction takes a layer trained for it.

    Diffusion decoders have no next token that a draft could propose.
    """
    if model.variant and model.variant.n_denoising_steps:
        return False
    return kind != "mtp" or model.predictors is not None


def drafts_of(
    model: Architecture, kind: str, n_drafted: int, acceptance: Sequence[float]
) -> Drafts:
    """A round of drafting and checking.

    Args:
        n_drafted: tokens of a round, at least one.
        acceptance: probability that one is accepted, by position.

    Raises:
        ValueError: as `drafter_of`.
    """
    has_heads = kind == "medusa"
    trained = model.predictors.n_layers if kind == "mtp" and model.predictors else 1
    return Drafts(
        n_drafted=n_drafted,
        yields=tokens_by_position(n_drafted, acceptance),
        drafter=drafter_of(model, kind),
        n_passes=n_drafted,
        n_layers=n_drafted if has_heads else trained,
        n_heads=n_drafted if has_heads else 0,
        n_joined=0 if has_heads else JOINED,
        kind=kind,
    )


def rounds_of(
    model: Architecture, kind: str | None, n_drafted: int, acceptance: Sequence[float]
) -> Drafts | None:
    """What one decode pass checks and gives, if it is more than a token each.

    A diffusion decoder passes over a block of tokens as often as it has denoising steps, and
    proposes nothing ahead: the block is checked whole, and gives a share of its tokens a pass.

    Args:
        kind: what drafts, or None.
    """
    variant = model.variant
    if variant and variant.n_denoising_steps and variant.n_block_tokens:
        return Drafts(
            n_drafted=variant.n_block_tokens - 1,
            yields=variant.n_block_tokens / variant.n_denoising_steps,
            drafter=model,
            n_passes=0,
        )
    return drafts_of(model, kind, n_drafted, acceptance) if kind and n_drafted else None


def _of_layer(model: Architecture, layer: LayerClass) -> Architecture:
    return replace(model, layers=(layer,), order=(0,), predictors=None, n_other_params=0)
