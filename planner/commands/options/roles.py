"""Roles of replicas, and what hands caches over: options of `plan` and `plan place`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from planner.commands.options.arguments import Arguments

if TYPE_CHECKING:
    from planner.specs.roles import Connector


class SaysRoles(Protocol):
    """Options of a command that has these."""

    @property
    def roles(self) -> str | None: ...
    @property
    def connector(self) -> str | None: ...
    @property
    def prefill_devices(self) -> str | None: ...
    @property
    def decode_devices(self) -> str | None: ...


def read_roles(written: SaysRoles, found: Arguments, *, several: bool = False) -> dict[str, Any]:
    """Arguments of `place` for what is said; nothing where nothing is.

    Args:
        several: whether a list of choices of roles is said, each of which makes a case.
    """
    from planner.commands.options.counts import count
    from planner.commands.options.reading import Faults, one_of
    from planner.specs.roles import ASKED_ROLES

    faults, name = Faults(), written.connector
    one = one_of("choice of roles", ASKED_ROLES)

    def listed(text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one(word.strip()) for word in text.split(",")))

    said = {
        "roles": faults.read("--roles", written.roles, listed if several else one),
        "connector": None if name is None else found.collect(lambda: _connector(name)),
        "prefill_devices": faults.read("--prefill-devices", written.prefill_devices, count),
        "decode_devices": faults.read("--decode-devices", written.decode_devices, count),
    }
    found.problems += faults.problems
    return {key: value for key, value in said.items() if value is not None}


def _connector(name: str) -> Connector:
    from planner.specs.connectors import load_connector

    return load_connector(name)
