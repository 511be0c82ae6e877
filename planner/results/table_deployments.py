"""A deployment that a table lists, as placements answer it: a frozen record in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.specs.roles import DECODE, PREFILL
from planner.specs.runtimes import table_file


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDeployment:
    """One replica of a row of a table, and what it does and costs.

    Args:
        table: the runtime that lists it: `table:measured.csv`.
        line: of that file.
        name: of the deployment, as the row has it.
        engine: that runs it.
        role: of `planner.specs.roles`.
        model: which is served, by the planner's name.
        n_devices: of the replica.
        batch: requests in flight.
        weights_format, kv_format: number formats.
        requests_per_s: that it serves; of prefill, whose prompts it reads.
        tpot_s, ttft_s: as the row says; 0 of a phase that it leaves to others.
        output_tokens_per_s: of the answers; of prefill, of those to the prompts that it reads.
        usd_per_hour: rent of all devices.
        usd_per_token: rent over output tokens.
        weights_bytes: of one device, where all share them evenly.
        memory_bytes: that each device holds; None where the row does not say.
        further: quantities that are limited and have no field of their own, by name, SI.
    """

    table: str
    line: int
    name: str
    engine: str
    role: str
    model: str
    n_devices: int
    batch: int
    weights_format: str
    kv_format: str
    requests_per_s: float
    tpot_s: float
    ttft_s: float
    output_tokens_per_s: float
    usd_per_hour: float
    usd_per_token: float
    weights_bytes: float
    memory_bytes: float | None
    further: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def does(self) -> str:
        """`, reads prompts`, `, writes answers`; nothing of a replica that does both."""
        return {PREFILL: ", reads prompts", DECODE: ", writes answers"}.get(self.role, "")

    @property
    def planned_tpot_s(self) -> float:
        """What is planned against: what the row says."""
        return self.tpot_s

    @property
    def planned_ttft_s(self) -> float:
        """What is planned against: what the row says."""
        return self.ttft_s

    @property
    def label(self) -> str:
        """What the row calls it."""
        return self.name

    @property
    def summary(self) -> str:
        """The deployment in one line."""
        plural = "s" * (self.n_devices > 1)
        return (
            f"{self.name}, line {self.line} of {table_file(self.table)}{self.does}: "
            f"{self.n_devices} device{plural}, {self.weights_format} weights, "
            f"{self.kv_format} KV cache, batch {self.batch}"
        )
