"""How much longer passes are planned to take than a roofline predicts, by the confidence asked for.

All passes of one model on one device err alike: what they leave out is the same. So that one factor
lengthens every prefill, another one every decode pass, those of a draft too.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.equations.tails import planned_sigmas
from planner.specs.judged import quickness
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
    """What holds in the share of cases that is asked for.

    Without one, what decode passes take on average, where rooflines are known to be quick.
    """
    device, kind = request.cluster.device, request.model.kind
    if request.confidence is None:
        return Margins(decode=quickness(device.name, kind))
    beyond = float(planned_sigmas(request.confidence, True))

    def upper(quantity: Quantity) -> float:
        return 1.0 + beyond * (roofline_error(device, kind, quantity) or 0.0)

    return Margins(prefill=upper("TTFT"), decode=upper("TPOT"))
