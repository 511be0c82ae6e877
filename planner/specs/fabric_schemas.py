"""What files of fabrics and of states may say; see `planner.specs.schemas`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from planner.specs.schemas import Section, Sourced, Strict
from planner.specs.values import Count, Fraction, Seconds, Text, fault, not_empty
from planner.units import UnitError, parse

MOST_OVERSUBSCRIPTION = 64.0


def _oversubscription(raw: object) -> float:
    """Bandwidth of the links down over that of the links up: 1 or more."""
    example = "write `2` for twice as much below as above"
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise fault("is not a number", example)
    try:
        value = parse(str(raw), "1")
    except UnitError as error:
        raise fault(error.fact, error.remedy) from None
    if not 1.0 <= value <= MOST_OVERSUBSCRIPTION:
        raise fault(f"is not between 1 and {MOST_OVERSUBSCRIPTION:g}", example)
    return value


Oversubscription = Annotated[float, BeforeValidator(_oversubscription)]


class FabricHead(Strict):
    name: Text
    title: Text
    description: Text = ""
    examples: list[Text] = Field(default=[])


class Group(Section):
    """Servers of one kind: a topology of nodes, and the switches above them."""

    plain = frozenset({"source", "topology", "name", "n_nodes"})
    name: Text
    topology: Text
    n_nodes: Count
    n_nodes_per_leaf: Sourced[Count]
    n_rails: Sourced[Count]
    oversubscription: Sourced[Oversubscription]
    spine_latency: Sourced[Seconds]


class FabricFile(Strict):
    cluster: FabricHead
    group: Annotated[list[Group], AfterValidator(not_empty)]


class Slow(Strict):
    devices: Annotated[list[Text], AfterValidator(not_empty)]
    speed: Fraction


class LinkEntry(Strict):
    nic: list[Text] = Field(default=[])
    scale_up: list[Text] = Field(default=[])
    uplink: list[Text] = Field(default=[])
    between: list[Text] = Field(default=[])
    down: bool = False
    bandwidth: Fraction | None = None

    def parts(self) -> list[tuple[str, list[Text]]]:
        """What the entry names, by the part of the fabric."""
        named = (
            ("nic", self.nic),
            ("scale_up", self.scale_up),
            ("uplink", self.uplink),
            ("between", self.between),
        )
        return [(part, names) for part, names in named if names]


class StateFile(Strict):
    busy: list[Text] = Field(default=[])
    failed: list[Text] = Field(default=[])
    reserved: list[Text] = Field(default=[])
    owners: dict[str, Text] = Field(default={})
    slow: list[Slow] = Field(default=[])
    link: list[LinkEntry] = Field(default=[])
