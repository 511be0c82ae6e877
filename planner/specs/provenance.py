"""Where the values of a file come from."""

from __future__ import annotations

from dataclasses import dataclass

ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where one value of a file comes from: a source, or `assumed`."""

    key: str
    source: str

    @property
    def is_assumed(self) -> bool:
        return self.source == ASSUMED
