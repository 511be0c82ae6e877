"""How much longer passes are planned to take than a roofline predicts, by the confidence asked for.

All passes of one model on one device err alike: what they leave out is the same. So that one factor
lengthens every prefill, another one every decode pass, those of a draft too.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.equations.tails import sigmas
from planner.specs.model_errors import Quantity, roofline_error
from planner.specs.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """Planned over predicted time of a pass of each phase [1]."""

    prefill: float = 1.0
    decode: float = 1.0

    def of(self, phase: str) -> float:
        return self.prefill if phase == "prefill" else self.decode


NONE = Margins()


def margins_of(request: Request) -> Margins:
    """The upper end of the interval that holds such a share of all cases; 1 where none is asked."""
    if not request.confidence:
        return NONE

    def upper(quantity: Quantity) -> float:
        error = roofline_error(request.cluster.device, request.model.kind, quantity)
        assert error is not None  # else the request is refused
        return 1.0 + sigmas(request.confidence) * error

    return Margins(prefill=upper("TTFT"), decode=upper("TPOT"))
