"""Number formats in which an engine serves a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedFormats:
    """Number formats of what is held; names are those of kernel tables.

    Args:
        weights: of the dense matrices.
        experts: of routed experts.
        cache: of cached keys and values, or latents.
    """

    weights: str
    experts: str
    cache: str
