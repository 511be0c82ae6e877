"""Why a model cannot be cut onto groups: which layer, on which device, and how much is missing."""

from __future__ import annotations

import numpy as np

from planner.estimates.serving.stages import UnitTable
from planner.results.staging import StagingConflict
from planner.specs.stages_request import StagesRequest


def stage_conflict(asked: StagesRequest, units: UnitTable) -> StagingConflict:
    """Why nothing fits: units too large for a device, or all devices together too small."""
    groups = asked.groups
    what = ", ".join(f"{group.name} × {group.n_groups}" for group in groups)
    each = units.weights_bytes + units.cache_bytes
    room = units.limit_bytes - units.fixed_bytes
    facts = []
    for t, group in enumerate(groups):
        if room[t] < 0:
            facts.append(
                f"buffers and activations of {group.name} need {_gb(units.fixed_bytes[t])} of a "
                f"device, {_gb(-room[t])} more than the engine may take"
            )
            continue
        names = np.array(units.names)
        for name in dict.fromkeys(units.names):
            largest = float(each[t, names == name].max())
            if largest > room[t]:
                facts.append(
                    f"one layer `{name}` on {group.name} needs {_gb(largest)} of a device, "
                    f"{_gb(largest - room[t])} more than is left there"
                )
    devices = np.array([group.n_groups * group.n_tensor for group in groups], dtype=float)
    tensor = np.array([group.n_tensor for group in groups], dtype=float)
    most = float(devices @ np.maximum(room, 0.0))
    needs = float((each.sum(axis=1) * tensor).min())
    if not facts and needs > most:
        facts.append(
            f"weights and caches need {_gb(needs)}, and all devices have {_gb(most)} for them: "
            f"{_gb(needs - most)} are missing"
        )
    if not facts:
        facts.append(
            f"weights and caches need {_gb(needs)} of {_gb(most)}, but no cut between whole "
            "layers fits on every device"
        )
    remedy = "more groups, more devices in each, fewer sequences, or fewer bytes a weight"
    return StagingConflict(what=f"{asked.model.name} on {what}", facts=tuple(facts), remedy=remedy)


def _gb(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.3g} GB"
