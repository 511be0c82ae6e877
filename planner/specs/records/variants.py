"""Models that stand in for another one: pruned, distilled, quantised, or decoded by diffusion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from planner.errors import Problem
from planner.specs.validation.values import one_of

if TYPE_CHECKING:
    from planner.specs.ask.placement import AnyModel

HOWS = ("pruned", "distilled", "quantized", "diffusion")
How = Annotated[str, one_of("way to make a variant", HOWS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What a model was made from, where it is a pruned, distilled or quantised one.

    Args:
        of: the model that it stands in for.
        how: `pruned`, `distilled`, `quantized`, `diffusion`.
        quality: what is known of its quality beside that model's, with the source.
        quality_loss_fraction: share of a benchmark's score that it loses against that model;
            None where no number is known [1].
        n_denoising_steps: passes that a block of tokens takes, of a diffusion decoder.
        n_block_tokens: tokens of such a block.
    """

    of: str
    how: How
    quality: str
    n_denoising_steps: int | None = None
    n_block_tokens: int | None = None
    quality_loss_fraction: float | None = None


def diffusion_problems(model: AnyModel, asked_by: str) -> Iterator[Problem]:
    """One problem if a model is decoded by diffusion, where one token after the other is timed.

    Args:
        asked_by: the option that named it.
    """
    if model.variant is not None and model.variant.how == "diffusion":
        fact = "is decoded by diffusion, and here one token after the other is timed"
        remedy = "`--engine` and `plan predict` time its passes"
        yield Problem(where=asked_by, value=model.name, fact=fact, remedy=remedy)


def context_problems(
    model: AnyModel, n_input_tokens: float, n_output_tokens: float, *, asked_by: str = "--model"
) -> Iterator[Problem]:
    """One problem if a request is longer than what a model attends to; none if nothing limits it.

    A sequence holds what it reads and what it writes. A drafter attends to the same sequence, and
    proposes nothing beyond its end: what it proposes counts no further.

    Args:
        model: that is to serve it, alone or by drafting.
        n_input_tokens, n_output_tokens: of the request.
        asked_by: the option that named the model.
    """
    longest = model.n_context_tokens
    if longest is None or n_input_tokens + n_output_tokens <= longest:
        return
    said = f"{n_input_tokens:.0f} in and {n_output_tokens:.0f} out"
    fact = f"attends to {longest} tokens at most, and a request has {said}"
    room = longest - n_output_tokens
    remedy = f"write `--input {room:.0f}` or less" if room >= 1 else "write fewer `--output`"
    yield Problem(where=asked_by, value=model.name, fact=fact, remedy=remedy)
