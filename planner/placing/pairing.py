"""Which replicas an engine lets hand caches over to which, by its rules of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.equations.arrays import BoolArray
from planner.estimates.serving.rules import pairs_start
from planner.placing.configurations import AnyConfiguration
from planner.specs.roles import DECODE, PREFILL


def may_hand_over(configurations: Sequence[AnyConfiguration]) -> BoolArray:
    """Whether a configuration that reads prompts may hand over to one that decodes, (N, N).

    Of others, and of those of different models or engines, nothing is said: it is True.
    """
    found = np.ones((len(configurations), len(configurations)), dtype=np.bool_)
    alike: dict[tuple[int, str], list[int]] = {}
    for number, one in enumerate(configurations):
        if one.pairing is not None and one.role in (PREFILL, DECODE):
            alike.setdefault((one.model, one.engine), []).append(number)
    for numbers in alike.values():
        ends = [
            np.array([n for n in numbers if configurations[n].role == role], np.int64)
            for role in (PREFILL, DECODE)
        ]
        first = configurations[numbers[0]].pairing
        assert first is not None
        degrees = [_degrees([configurations[n] for n in end.tolist()]) for end in ends]
        found[np.ix_(*ends)] = pairs_start(first.rules, first.model, *degrees)
    return found


def _degrees(some: Sequence[AnyConfiguration]) -> dict[str, Any]:
    known = [one.pairing for one in some if one.pairing is not None]
    return {
        "tp": np.array([it.n_tensor for it in known], np.int64),
        "dp": np.array([it.n_data for it in known], np.int64),
        "pp": np.array([it.n_stages for it in known], np.int64),
    }
