"""Heads, experts and layers that a layout cannot deal out evenly, for people.

Nothing whole is cut by a fraction. Engines pad or repeat: KV heads have copies where devices
outnumber them, query heads are computed by several, the busiest device has the most experts and
the longest stage the most layers. Estimates count what that device and stage have.
"""

from __future__ import annotations

from planner.layouts import attention, experts
from planner.layouts.geometry import Geometry, Spread
from planner.specs.records import ModelSpec


def uneven(model: ModelSpec, shape: Geometry, batch: Spread) -> tuple[tuple[str, int, int], ...]:
    """(things, how many, parts) where these do not divide those, of the first layout and batch.

    Heads as attention cuts them at this batch: over batch fewer devices share a sequence.
    """
    n_sharing = round(float((shape.n_tensor / batch.n_batch_ways).flat[0]))
    cached = "latents" if model.mla else "KV heads"
    dealt = [
        ("query heads", model.n_heads_served, n_sharing),
        (cached, attention.n_cached_heads(model), n_sharing),
        ("layers", model.n_layers, round(float(shape.n_stages.flat[0]))),
    ]
    if model.moe:
        ways = round(float(experts.expert_ways(model, shape).flat[0]))
        dealt.append(("experts", model.moe.n_experts, ways))
    return tuple(one for one in dealt if one[1] % one[2])
