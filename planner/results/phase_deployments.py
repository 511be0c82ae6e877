"""One phase of layouts on devices of its own, and rows of tables, as frozen records in SI units."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.results import deployments
from planner.specs.records.roles import DECODE, PREFILL
from planner.specs.records.runtimes import table_file
from planner.specs.validation.hints import computed, from_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseDeployment(deployments.OfLayouts):
    """A replica that reads prompts and hands their caches over, or one that takes them and writes.

    Args:
        role: `prefill` or `decode`.
        mesh: its devices.
        weights_format: number format of the weights.
        kv_format: number format of the KV cache, the same on both sides of a hand-over.
        storage: how weights rest: `E_x F_yz`.
        phase: what it does; a pass is the TTFT before the hand-over, or the TPOT.
        memory: memory of the busiest device; nothing of the other phase.
        usd_per_hour: rent of its devices.
        n_output_tokens: tokens that a request writes, wherever that is.
        n_passes: passes that a request takes here.
        handed_bytes: cache of one request at its input, of the whole model, each number once.
        copied_axes: of the mesh, along which all weights but experts have copies.
        sliced_axes: of the mesh, which cut the FFN dimension of each expert.
        further: quantities that are limited and have no field of their own, by name, SI.
    """

    role: str
    mesh: deployments.Mesh
    weights_format: str
    kv_format: str
    storage: str
    phase: deployments.PhasePlan
    memory: deployments.Memory
    usd_per_hour: float
    n_output_tokens: int
    n_passes: int
    handed_bytes: float
    copied_axes: str = ""
    sliced_axes: str = ""
    further: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def choice(self) -> deployments.LayoutChoice:
        return from_fields(deployments.LayoutChoice, self, phases={self.role: self.phase})

    @computed
    def summary(self) -> str:
        """The replica in one line."""
        phase = self.phase
        return (
            f"{self.where}, {self.weights_format} weights, "
            f"{self.role} {phase.layout} batch {phase.batch}"
        )

    @computed
    def n_devices(self) -> int:
        return self.mesh.n_devices

    @computed
    def ttft_s(self) -> float:
        """Until a prompt is read, before it is handed over; 0 where none is read."""
        return self.phase.step.total_s if self.role == PREFILL else 0.0

    @property
    def n_sequences(self) -> int:
        """Sequences of a pass."""
        return self.phase.batch

    @computed
    def tpot_s(self) -> float:
        """Of an output token; 0 where none is written."""
        return self.phase.step.total_s if self.role == DECODE else 0.0

    @computed
    def requests_per_s(self) -> float:
        """Requests whose phase it does, never idle."""
        return self.phase.batch / (self.n_passes * self.phase.step.total_s)

    @property
    def where(self) -> str:
        """`8 devices in one group`."""
        return f"{self.n_devices} device{'s' * (self.n_devices > 1)} {self.mesh.label}"

    @computed
    def output_tokens_per_s(self) -> float:
        """Output tokens of these requests; of prefill, those that are written elsewhere."""
        return self.n_output_tokens * self.requests_per_s


LayoutDeployment = deployments.Deployment | PhaseDeployment
"""Of layouts: both phases on the same devices, or one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDeployment:
    """One replica of a row of a table, and what it does and costs.

    Args:
        table: the runtime that lists it: `table:measured.csv`.
        line: of that file.
        name: of the deployment, as the row has it.
        engine: that runs it.
        role: of `planner.specs.records.roles`.
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

    @computed
    def summary(self) -> str:
        """The deployment in one line."""
        plural = "s" * (self.n_devices > 1)
        return (
            f"{self.name}, line {self.line} of {table_file(self.table)}{self.does}: "
            f"{self.n_devices} device{plural}, {self.weights_format} weights, "
            f"{self.kv_format} KV cache, batch {self.batch}"
        )
