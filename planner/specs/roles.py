"""What a replica does of a request: all of it, or one phase of it on devices of its own.

A replica that reads prompts hands the KV cache of each over to one that writes the answers. Both
are of one runtime and hold the cache in one format. Handing over takes the connector's floor, and
the bytes at the least of what the connector moves between a pair of workers and what the links of
either worker do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.specs.tables import Provenance
from planner.specs.validation.values import Duration

TOGETHER, PREFILL, DECODE = "together", "prefill", "decode"
ROLES = (TOGETHER, PREFILL, DECODE)

SCHEDULES_APART = {
    PREFILL: "apart: prompts are read and handed over; the KV cache is of those being read",
    DECODE: "apart: TPOT is the decode pass; the KV cache is of all requests in flight",
}
"""How devices are used where a replica does one phase of a request."""

APART, FREE = "apart", "free"
ASKED_ROLES = (TOGETHER, APART, FREE)
"""What may be asked: every replica does both phases, none does, or the program chooses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """What moves a KV cache from one worker to another.

    Args:
        name: of its file.
        title: for people.
        latency_s: that a hand-over takes however little it moves [s].
        bytes_per_s: that one pair of workers moves at most; None where links alone limit it.
        provenance: of both.
    """

    name: str
    title: str
    latency_s: Duration
    bytes_per_s: float | None = None
    provenance: tuple[Provenance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRoles:
    """The roles that replicas may have, and what hands a cache over.

    Args:
        name: one of `ASKED_ROLES`.
        connector: that hands caches over; None where every replica does both phases.
        prefill_devices, decode_devices: of each replica of that role, exactly; None leaves it open.

    >>> AskedRoles(name="apart").roles
    ('prefill', 'decode')
    """

    name: str = TOGETHER
    connector: Connector | None = None
    prefill_devices: int | None = None
    decode_devices: int | None = None

    @property
    def roles(self) -> tuple[str, ...]:
        return {TOGETHER: (TOGETHER,), APART: (PREFILL, DECODE)}.get(self.name, ROLES)

    def n_devices(self, role: str) -> int | None:
        """Devices that a replica of a role must have; None leaves it open."""
        return {PREFILL: self.prefill_devices, DECODE: self.decode_devices}.get(role)


def role_words(role: str) -> str:
    """What a replica of one phase is for, behind its devices; nothing of one that does both.

    >>> role_words("prefill"), role_words("together")
    (' to prefill', '')
    """
    return "" if role == TOGETHER else f" to {role}"


ALL_TOGETHER = AskedRoles()
"""Every replica does both phases."""


def handover_s(handed_bytes: float, connector: Connector, *wires_bytes_per_s: float) -> float:
    """Seconds that the KV cache of one request takes from a worker to another.

    Args:
        handed_bytes: of the cache.
        wires_bytes_per_s: what all links of either worker carry, one way.
    """
    most = math.inf if connector.bytes_per_s is None else connector.bytes_per_s
    return connector.latency_s + handed_bytes / min(most, *wires_bytes_per_s)


LEAST_PRESENT, ROUND_ROBIN, AT_RANDOM = "least", "round-robin", "random"
ROUTERS = (LEAST_PRESENT, ROUND_ROBIN, AT_RANDOM)
"""The replica with the fewest requests, of those with as few the one that waited longest for one;
each in turn; any."""
