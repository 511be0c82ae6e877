"""Models that stand in for another one: pruned, distilled, quantised, or decoded by diffusion."""

from dataclasses import dataclass
from typing import Annotated

from planner.specs.validation.values import one_of

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

    @property
    def n_passes(self) -> float:
        """Passes over a whole sequence for each token, of a diffusion decoder; 0 of others."""
        return (self.n_denoising_steps or 0) / (self.n_block_tokens or 1)
