"""Deployments that a table lists: what one replica of each takes, and how fast it is.

Who wrote the table measured them, or had another tool predict them. Nothing of them is timed here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentRow:
    """One replica of a deployment, as a row of a table says.

    Args:
        line: of the file, from 1.
        name: of the deployment, as whoever wrote the row calls it.
        model: its name, or the repository of one that no file knows.
        kind: of the devices: a group of the pool, or a device.
        n_devices: of one replica.
        role: of `planner.specs.roles`.
        engine: that runs it.
        requests_per_s: prompts that one of prefill reads, answers that any other writes.
        ttft_s: until the first token; 0 of decode.
        tpot_s: of an output token; 0 of prefill.
        batch: requests in flight.
        weights_format, kv_format: number formats.
        memory_bytes: that each device holds; None where the row does not say.
        usd_per_hour: rent of the replica; None for what its devices cost.
        n_input_tokens, n_output_tokens: of the requests that it was timed with.
    """

    line: int
    name: str
    model: str
    kind: str
    n_devices: int
    role: str
    engine: str
    requests_per_s: float
    ttft_s: float
    tpot_s: float
    batch: int
    weights_format: str
    kv_format: str
    memory_bytes: float | None
    usd_per_hour: float | None
    n_input_tokens: int
    n_output_tokens: int

    @property
    def output_tokens_per_s(self) -> float:
        """Tokens of the answers; of prefill, of those to the prompts that it reads."""
        return self.requests_per_s * self.n_output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentTable:
    """The rows of a table that may be placed.

    Args:
        name: of the runtime: `table:measured.csv`.
        made_by: the tool whose predictions they are; empty where the file does not tell.
        rows: in the order of the file.
    """

    name: str
    made_by: str
    rows: tuple[DeploymentRow, ...]
