"""The placement program of a fleet: the placement's own, and columns that stand aside.

Streams are the models of a placement, each with a demand. Those that a unit is in share it out, in
parts of 1/S: for each stream g of units that have several there is one more column, of which each
of z_g copies takes no device and serves 1/S of its demand, and for each such unit u a resource
that lets no more stand aside than others serve, where p_gu parts of P of its requests are of g:

    Σ_{g of u} p_gu z_g ≤ S (Σ_{g of u} p_gu − P)        ∀ units u in several streams
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.placing.fleets.request_classes import WHOLE, RequestClass
from planner.programs.handover import TOGETHER, Handover
from planner.programs.placement import Cut, PlacementLimit, PlacementProgram, Uses


def with_choice_of_streams(
    program: PlacementProgram,
    network: Handover | None,
    streams: Sequence[RequestClass],
    serves: FloatArray,
    n_parts: int,
) -> tuple[PlacementProgram, Handover | None]:
    """The program in which streams share out the units that they are of; new columns come last.

    Args:
        streams: in the order of the program's models.
        serves: what a stream has that stands aside, in the unit of demands: all that is asked of
            it, (G,).
        n_parts: that a unit is shared out in.
    """
    parts, aside = choice_of(streams)
    if not aside:
        return program, network
    new = len(aside)

    def longer(values: FloatArray) -> FloatArray:
        return np.concatenate([values, np.zeros(new)])

    most = program.column_most
    whole = replace(
        program,
        resources=(*program.resources, *(f"streams of {unit}" for unit in parts)),
        free=np.append(program.free, [n_parts * (n - WHOLE) for n in parts.values()]),
        uses=_of_choice(program, parts, aside, streams),
        column_model=np.append(program.column_model, aside),
        objective=longer(program.objective),
        rate=np.append(program.rate, serves[aside] / n_parts),
        ties=tuple(longer(tie) for tie in program.ties),
        sort=None if program.sort is None else np.append(program.sort, np.full(new, -1)),
        column_most=None if most is None else np.append(most, np.full(new, n_parts)),
        limits=tuple(replace(one, column=longer(one.column)) for one in program.limits),
        cuts=tuple(replace(one, column=longer(one.column)) for one in program.cuts),
    )
    if network is not None:
        role = np.append(network.role, np.full(new, TOGETHER, dtype=np.int64))
        network = replace(network, role=role)
    return whole, network


def choice_of(streams: Sequence[RequestClass]) -> tuple[dict[int, int], list[int]]:
    """Units of several streams, with all parts that are theirs, of `WHOLE` each; and the streams.

    They may stand aside.
    """
    counted = Counter(unit for one in streams for unit in one.units)
    several = {unit: 0 for unit, n in counted.items() if n > 1}
    for stream in streams:
        for unit, part in zip(stream.units, stream.parts, strict=True):
            if unit in several:
                several[unit] += part
    aside = [i for i, one in enumerate(streams) if not several.keys().isdisjoint(one.units)]
    return several, aside


def _of_choice(
    program: PlacementProgram,
    parts: Mapping[int, int],
    aside: Sequence[int],
    streams: Sequence[RequestClass],
) -> Uses:
    """What columns use, and whoever stands aside of its units."""
    uses = program.uses
    row = {unit: program.n_resources + k for k, unit in enumerate(parts)}
    entries = [
        (row[unit], program.n_columns + k, part)
        for k, i in enumerate(aside)
        for unit, part in zip(streams[i].units, streams[i].parts, strict=True)
        if unit in row
    ]
    added = np.array(entries, dtype=np.int64).reshape(-1, 3)
    resource, column = np.append(uses.resource, added[:, 0]), np.append(uses.column, added[:, 1])
    amount = np.append(uses.amount, added[:, 2])
    order = np.lexsort([column, resource])
    return Uses(resource=resource[order], column=column[order], amount=amount[order])


def with_counts(
    program: PlacementProgram, kinds: Sequence[str], devices: FloatArray, counts: Mapping[str, int]
) -> PlacementProgram:
    """The program that takes no more devices of a kind than there may be.

    Args:
        kinds: of the devices of each column; empty of those that have none, (J,).
        devices: of each column, (J,).
    """
    of_column = np.array(kinds)
    limits = tuple(
        PlacementLimit(
            name=f"devices({kind})",
            column=np.where(of_column == kind, devices, 0.0),
            at_most=float(most),
            unit="1",
        )
        for kind, most in counts.items()
    )
    return replace(program, limits=(*program.limits, *limits))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """How many replicas of configurations there are, by the identity of each as it was offered.

    Args:
        most: at most, which what they serve is known for.
        least: at least.
    """

    most: Mapping[int, int] = field(default_factory=dict)
    least: Mapping[int, int] = field(default_factory=dict)

    def split(self, number: int, n: int) -> tuple[Pools, Pools]:
        """Those with n of a configuration or fewer, and those with more."""
        return (
            replace(self, most={**self.most, number: n}),
            replace(self, least={**self.least, number: n + 1}),
        )


def with_pools(program: PlacementProgram, origins: Sequence[int], pools: Pools) -> PlacementProgram:
    """The program with no more and no fewer replicas of configurations.

    Args:
        origins: of each column the identity of its configuration, (J,).
    """
    of_column = np.array(origins)
    limits = [
        PlacementLimit(
            name=f"pool({number})",
            column=(of_column == pool).astype(float),
            at_most=float(most),
            unit="1",
        )
        for number, (pool, most) in enumerate(pools.most.items())
    ]
    cuts = [
        Cut(name=f"beyond({number})", column=(of_column == pool) / least, is_of_share=False)
        for number, (pool, least) in enumerate(pools.least.items())
    ]
    return replace(program, limits=(*program.limits, *limits), cuts=(*program.cuts, *cuts))


def within_places(network: Handover, places: Sequence[str]) -> Handover:
    """The hand-overs whose two ends are at one site.

    Args:
        places: of each column, (J,).
    """
    of_column = np.array(places)
    stays = of_column[network.prefill] == of_column[network.decode]
    if stays.all():
        return network
    number = np.cumsum(stays) - 1
    used = stays[network.use_pair]
    return replace(
        network,
        prefill=network.prefill[stays],
        decode=network.decode[stays],
        gbytes=network.gbytes[stays],
        use_pair=number[network.use_pair[used]],
        use_link=network.use_link[used],
    )
