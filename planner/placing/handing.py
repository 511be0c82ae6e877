"""Caches that replicas hand over: how long that takes, who may feed whom, and over which links.

A replica that reads prompts may feed one that writes answers where both are of one model, run
under one engine that lets them and hold the cache in one format, and where the first token is in
time:

    TTFT = prompt read + latency + bytes / min(connector, links of either replica)

The links of a replica are those of all its devices together, as each ends at a device. What leaves
a leaf also goes through the links up from there, which all replicas of the leaf share.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.serving.rules import pairs_start
from planner.placing.configurations import AnyConfiguration, Configuration
from planner.placing.program import KTOKEN, Columns, Objective
from planner.programs.handover import AIMS, DEMAND, Handover
from planner.programs.layout import ceiling
from planner.specs.records.roles import DECODE, PREFILL, ROLES, TOGETHER, RoleOptions, handover_s

GB = 1e9

WAYS = UP, DOWN = "up", "down"
"""Of the links of a leaf."""

AnyConfig = TypeVar("AnyConfig", bound=Configuration[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Uplink:
    """The links of one leaf to all others.

    Args:
        name: of the leaf.
        bytes_per_s: that they carry together, each way.
    """

    name: str
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The links of one device.

    Args:
        own_bytes_per_s: what they carry, one way: it bounds how many caches go over them.
        far_bytes_per_s: of that, to wherever a cache may go: it says how long one takes.
    """

    own_bytes_per_s: float
    far_bytes_per_s: float


def handing_over(
    config: AnyConfig, roles: RoleOptions, wire: Wire, n_output_tokens: float
) -> AnyConfig | None:
    """A configuration with what handing over takes of it; None where it is not asked for.

    Its links bound how many caches it hands over or takes.

    Args:
        wire: of each of its devices.
        n_output_tokens: of a request.
    """
    if config.role == TOGETHER:
        return config
    assert roles.connector is not None
    if roles.n_devices(config.role) not in (None, config.n_devices) or wire.far_bytes_per_s <= 0:
        return None
    most = config.n_handing * wire.own_bytes_per_s / config.handed_bytes * n_output_tokens
    far = config.n_handing * wire.far_bytes_per_s
    return replace(
        config,
        handover_s=handover_s(config.handed_bytes, roles.connector, far),
        output_tokens_per_s=min(config.output_tokens_per_s, most),
    )


def network_of(
    columns: Columns,
    aim: Objective,
    *,
    leaves: Sequence[int] | None = None,
    uplinks: Mapping[int, Uplink] | None = None,
) -> Handover | None:
    """Who may hand over to whom; None where no replica does one phase.

    Args:
        leaves: of each column that is a replica, where it is bound to one.
        uplinks: of the leaves whose links may be full.
    """
    if not columns.hand_over:
        return None
    of_column = [columns.configurations[i] for i in columns.which.tolist()]
    pairs, tight = _pairs(of_column, aim), uplinks or {}
    use_pair, use_link = _crossings(pairs, leaves or [], tight)
    before = columns.n_parts
    return Handover(
        role=np.array([0] * before + [ROLES.index(one.role) + 1 for one in of_column], np.int64),
        prefill=pairs[0] + before,
        decode=pairs[1] + before,
        gbytes=_gigabytes(of_column, aim)[pairs[0]],
        use_pair=use_pair,
        use_link=use_link,
        links=tuple(f"{link.name} {way}" for link in tight.values() for way in WAYS),
        capacity=np.repeat([link.bytes_per_s / GB for link in tight.values()], len(WAYS)),
        demand=_demands(aim, n_more=1 if before else 0),  # of the parts there is none
        aim=aim.objective if aim.objective in AIMS else DEMAND,
    )


def _pairs(of_column: Sequence[AnyConfiguration], aim: Objective) -> tuple[IntArray, IntArray]:
    """Columns of prefill and of decode that may work together, counted from the first replica."""
    before = np.array([j for j, one in enumerate(of_column) if one.role == PREFILL], np.int64)
    after = np.array([j for j, one in enumerate(of_column) if one.role == DECODE], np.int64)
    kinds: dict[tuple[int, str, str], int] = {}
    of_kind = np.array(
        [kinds.setdefault((it.model, it.engine, it.kv_format), len(kinds)) for it in of_column]
    )
    read_s = np.array([one.ttft_s for one in of_column])
    handed_s = np.array([one.handover_s for one in of_column])
    limits = [np.inf if it.ttft_s is None else ceiling(it.ttft_s) for it in aim.wanted]
    most_s = np.array([limits[it.model] for it in of_column])
    first_s = read_s[before][:, None] + np.maximum(handed_s[before][:, None], handed_s[after])
    fits = first_s <= most_s[before][:, None]
    fits &= may_hand_over(of_column)[np.ix_(before, after)]
    p, d = np.nonzero(fits & (of_kind[before][:, None] == of_kind[after]))
    return before[p], after[d]


def may_hand_over(configurations: Sequence[AnyConfiguration]) -> BoolArray:
    """Whether a configuration that reads prompts may hand over to one that decodes, (N, N).

    Of others, and of those of different models or engines, nothing is said: it is True.
    """
    mask = np.ones((len(configurations), len(configurations)), dtype=np.bool_)
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
        mask[np.ix_(*ends)] = pairs_start(first.rules, first.model, *degrees)
    return mask


def _degrees(some: Sequence[AnyConfiguration]) -> dict[str, Any]:
    known = [one.pairing for one in some if one.pairing is not None]
    return {
        "tp": np.array([it.n_tensor for it in known], np.int64),
        "dp": np.array([it.n_data for it in known], np.int64),
        "pp": np.array([it.n_stages for it in known], np.int64),
    }


def _gigabytes(of_column: Sequence[AnyConfiguration], aim: Objective) -> FloatArray:
    """What is handed over for a thousand tokens that are written."""
    tokens = [aim.wanted[one.model].n_output_tokens for one in of_column]
    sizes = np.array([one.handed_bytes for one in of_column])
    return np.asarray(sizes / GB / np.array(tokens) / KTOKEN)


def _demands(aim: Objective, *, n_more: int) -> FloatArray:
    """Of each model, and of some of which nothing is asked."""
    demands = [(one.demand_tokens_per_s or 0.0) * KTOKEN for one in aim.wanted]
    return np.array([*demands, *[0.0] * n_more])


def _crossings(
    pairs: tuple[IntArray, IntArray], leaves: Sequence[int], tight: Collection[int]
) -> tuple[IntArray, IntArray]:
    """Which pair uses which link: those of two leaves, up from one and down to the other."""
    links = [f"{leaf} {way}" for leaf in tight for way in WAYS]
    numbers = {link: number for number, link in enumerate(links)}
    ends = zip(*(one.tolist() for one in pairs), strict=True) if numbers else ()
    crossings = [
        (e, numbers[end])
        for e, (p, d) in enumerate(ends)
        if leaves[p] != leaves[d]
        for end in (f"{leaves[p]} {UP}", f"{leaves[d]} {DOWN}")
        if end in numbers
    ]
    table = np.array(crossings, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
