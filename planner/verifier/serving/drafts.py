"""What drafts tokens, as a model of its own: built here anew from the one that is served."""

from dataclasses import dataclass, replace

from planner.specs.records.architecture import Architecture, FeedForward, LayerClass
from planner.verifier.findings import Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One round of drafting and checking.

    Args:
        n_checked: tokens of a sequence that one pass checks, beside its next one.
        n_yielded: tokens that a round gives on average.
        model: what drafts, run once for each token.
        n_passes: of it in a round; none of a decoder that denoises blocks.
        n_layers: of it in memory.
        has_heads: each layer has a head of its own.
    """

    n_checked: int
    n_yielded: float
    model: Architecture
    n_passes: int
    n_layers: int = 0
    has_heads: bool = False


def draft_of(
    model: Architecture, drafter: str, n_drafted: int, acceptance: tuple[float, ...]
) -> Draft | None:
    """A round; None where a pass gives each sequence its next token and no more.

    Raises:
        Refused: the model cannot be drafted so.
    """
    variant = model.variant
    if variant and variant.n_denoising_steps and variant.n_block_tokens:
        n_block = variant.n_block_tokens
        given = n_block / variant.n_denoising_steps
        return Draft(n_checked=n_block - 1, n_yielded=given, model=model, n_passes=0)
    if not drafter and not n_drafted:
        return None
    if n_drafted < 1 or not acceptance or not 0.0 <= min(acceptance) <= max(acceptance) < 1.0:
        raise Invalid("are drafted, which cannot be", path=("n_drafted",), says=n_drafted)
    layer, n_layers, has_heads = _layer_of(model, drafter, n_drafted)
    small = replace(model, layers=(layer,), order=(0,), predictors=None, n_other_params=0)
    return Draft(
        n_checked=n_drafted,
        n_yielded=_yielded(n_drafted, acceptance),
        model=small,
        n_passes=n_drafted,
        n_layers=n_layers,
        has_heads=has_heads,
    )


def _yielded(n_drafted: int, acceptance: tuple[float, ...]) -> float:
    """The token that is always had, and each drafted one with the odds that all up to it hold."""
    total = odds = 1.0
    for place in range(n_drafted):
        odds *= acceptance[place] if place < len(acceptance) else acceptance[-1]
        total += odds
    return total


def _layer_of(model: Architecture, drafter: str, n_drafted: int) -> tuple[LayerClass, int, bool]:
    """The layer that drafts, how many of it there are, and whether each has a head."""
    if drafter == "mtp":
        if model.predictors is None:
            raise Invalid("predicts no further tokens", path=("drafter",), says=drafter)
        return replace(model.predictors, n_layers=1), model.predictors.n_layers, False
    if drafter == "medusa":
        square = FeedForward(d_ff=model.d_model, n_matrices=2)
        heads = LayerClass(name="heads", n_layers=1, mixer=None, ffn=square)
        return heads, n_drafted, True
    if drafter == "eagle":
        mixing = [one for one in model.layers if one.mixer is not None]
        whole = [one.ffn for one in model.layers if isinstance(one.ffn, FeedForward)]
        ffn = whole[0] if whole else FeedForward(d_ff=4 * model.d_model, n_matrices=2)
        return replace((mixing or list(model.layers))[0], n_layers=1, ffn=ffn), 1, False
    raise Invalid("is no drafter that is known", path=("drafter",), says=drafter)
