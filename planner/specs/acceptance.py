"""How often tokens that an engine's drafter proposes are accepted, position by position.

The first token of a round is guessed from what the model itself has computed, each further one
from what the drafter made of its own guess before: positions differ. A rate is of the tokens at a
position whose predecessors were all accepted; the last one holds for all positions beyond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Rates of a kind of drafter.

    Args:
        rates: by position [1].
        source: where they are published; `assumed` if they are not.
    """

    rates: tuple[float, ...]
    source: str


PUBLISHED: Mapping[str, Published] = {
    "eagle": Published(
        rates=(0.75, 0.69, 0.65, 0.64, 0.64),
        source="EAGLE, arXiv 2401.15077, Table 2: LLaMA2-Chat 70B, MT-bench, temperature 0",
    ),
    # of the first 85 to 90 % are accepted; 2.55 tokens a round of four leave 48 % to each further
    "mtp": Published(
        rates=(0.85, 0.48),
        source=(
            "DeepSeek-V3, arXiv 2412.19437, 5.4.3, the lower end; GLM-5, arXiv 2602.15763, "
            "Table 2: DeepSeek-V3.2"
        ),
    ),
    "medusa": Published(rates=(0.8,), source="assumed"),
}
"""Rates where nothing is said, by the name of the drafter."""


def acceptance_text(rates: Sequence[float]) -> str:
    """Rates as an option takes them.

    >>> acceptance_text((0.85, 0.5))
    '0.85,0.5'
    """
    return ",".join(f"{rate:.12g}" for rate in rates)


def source_of(kind: str, rates: Sequence[float]) -> str:
    """Where the rates of a drafter are published; empty of any others."""
    known = PUBLISHED.get(kind)
    return known.source if known and tuple(rates) == known.rates else ""
