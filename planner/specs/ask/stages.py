"""What is asked of experts on ranks, and of models over unequal devices: stages, or layers."""

from dataclasses import dataclass, field

from planner.specs.ask.targets import Provers
from planner.specs.files.layer_files import LayersSpec
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.kernels import EngineSpec, KernelTable
from planner.specs.records.served_formats import ServedFormats

PHASES = ("decode", "prefill")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageGroup:
    """A kind of group, and how many of them there are.

    Args:
        name: what the request calls it: `h100-sxm TP 8`.
        cluster: servers of its device.
        kernels: of its device under the engine.
        n_tensor: devices that share each layer.
        n_expert_parallel: groups that experts are dealt to among them.
        n_groups: groups that there are.
    """

    name: str
    cluster: ClusterSpec
    kernels: KernelTable
    n_tensor: int
    n_expert_parallel: int
    n_groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork:
    """What flows through the stages.

    Args:
        phase: one of `PHASES`; prefill reads one chunk of a prompt in each pass.
        batch: sequences of one micro-batch.
        n_microbatches: micro-batches in flight; all of them have their caches.
        n_input_tokens, n_output_tokens: of each sequence.
    """

    phase: str
    batch: int
    n_microbatches: int
    n_input_tokens: int
    n_output_tokens: int

    @property
    def n_sequences(self) -> int:
        return self.batch * self.n_microbatches


@dataclass(frozen=True, slots=True, kw_only=True)
class StagesRequest:
    """One request for a cut, defaults filled in.

    Args:
        model: its layers, in order.
        engine: whose kernels time it, and how it shares memory.
        groups: kinds of groups, in the order in which they were given.
        work: what flows through the stages.
        formats: that the model is served in.
        objective: `latency`, of one pass through all stages, or `bottleneck`, the slowest stage.
        solver: `highs`, `cpsat` or `exhaustive`.
        time_limit_s: of the search.
        proof: how many provers have to vouch.
    """

    model: Architecture
    engine: EngineSpec
    groups: tuple[StageGroup, ...]
    work: StageWork
    formats: ServedFormats
    objective: str = "bottleneck"
    solver: str = "highs"
    time_limit_s: float | None = None
    proof: Provers = "two"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersRequest:
    """One request for a placement of layers, defaults filled in.

    Args:
        layers: of which model, on which machines, over which links.
        gap: relative distance of rate and bound at which to stop.
        time_limit_s: of the search.
        seed: of the search.
        proof: how many solvers have to vouch for what solvers prove.
    """

    layers: LayersSpec
    gap: float = 1e-4
    time_limit_s: float | None = None
    seed: int = 0
    proof: Provers = "two"


USUAL_GAP = 1e-3
"""Loads are counts of tokens seen: rarely are they known better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertWeights:
    """What is known of the experts beside their loads.

    Args:
        model: name of the model.
        n_bytes: of one expert of one layer.
        source: where the loads come from.
    """

    model: str = ""
    n_bytes: float | None = None
    source: str = "as given"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertsRequest:
    """One request for a placement of experts, defaults filled in.

    Args:
        loads: of each expert, in any unit.
        n_ranks, n_slots, n_nodes: ranks, slots of each, nodes of equally many ranks.
        n_groups: groups of neighbouring experts that stay on one node; 0 without.
        split: `equal` or `weighted`.
        present: experts that each rank holds now; None where nothing is in place.
        move_price: share of the mean load that a moved copy has to save.
        coactivation: tokens that went to both of two experts, symmetric; None where unknown.
        slack: share of the least load that may be given up for less traffic.
        weights: name, bytes and source of the experts.
        gap: distance to the bound that is good enough, as a share of it.
        seed: of the search.
        time_limit_s: wall time; None for as many steps as are usual.
        proof: how many have to vouch for a bound.
    """

    loads: tuple[float, ...]
    n_ranks: int
    n_slots: int
    n_nodes: int = 1
    n_groups: int = 0
    split: str = "equal"
    present: tuple[tuple[int, ...], ...] | None = None
    move_price: float = 0.0
    coactivation: tuple[tuple[float, ...], ...] | None = None
    slack: float = 0.0
    weights: ExpertWeights = field(default_factory=ExpertWeights)
    gap: float = USUAL_GAP
    seed: int = 0
    time_limit_s: float | None = None
    proof: Provers = "two"

    @property
    def n_experts(self) -> int:
        return len(self.loads)
