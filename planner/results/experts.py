"""What placing experts answers, as frozen records; loads are in the unit of the loads given."""

from dataclasses import dataclass

from planner.results.records import AnswerRecord
from planner.specs.ask.stages import ExpertsRequest
from planner.specs.records.certificates import OPTIMAL, Certificate
from planner.specs.validation.hints import computed


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertRank:
    """A rank and what it holds.

    Args:
        node: of the rank.
        experts: what it holds, ascending; an expert with two copies here stands twice.
        shares: of each of these experts' load, what this rank serves; by copies, in order.
        load: of the rank.
        load_before: of it under `ExpertPlan.before`.
        n_moves: copies that it does not hold yet.
    """

    node: int
    experts: tuple[int, ...]
    shares: tuple[float, ...]
    load: float
    load_before: float
    n_moves: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertBalance:
    """A placement to compare with.

    Args:
        max_load: of its fullest rank.
        traffic: as `ExpertPlan.traffic`.
    """

    max_load: float
    traffic: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertPlan(AnswerRecord):
    """A placement of experts on ranks, and the proof of how good it is.

    Args:
        request: what was asked, defaults filled in.
        n_copies: of each expert.
        ranks: what each holds.
        max_load, mean_load: of the ranks.
        proof: what gave the bound: mean, copies, patterns, pairs, groups or search.
        is_cut_short: whether the time limit ended the search.
        greedy: the greedy balancer's placement.
        before: what loads are compared with: present, or greedy.
        present: the present placement's balance; None without one that is complete.
        traffic: co-activated pairs on different nodes; None where unknown.
        traffic_all: co-activated pairs in all; None where unknown.
        n_moves: copies that have to move; None without a present placement.
        certificate: its objective is the fullest rank's load and the price of the moves.
    """

    request: ExpertsRequest
    n_copies: tuple[int, ...]
    ranks: tuple[ExpertRank, ...]
    max_load: float
    mean_load: float
    proof: str
    is_cut_short: bool
    greedy: ExpertBalance
    before: str
    present: ExpertBalance | None
    traffic: float | None
    traffic_all: float | None
    n_moves: int | None
    certificate: Certificate

    @computed
    def imbalance(self) -> float:
        """The fullest rank's load over the mean."""
        return self.max_load / self.mean_load

    @computed
    def is_proven(self) -> bool:
        """Whether the gap is as small as was asked, by a bound that is vouched for."""
        return self.certificate.status == OPTIMAL

    @computed
    def gain_fraction(self) -> float:
        """What the fullest rank has less than the greedy balancer's, as a share of that."""
        return 1.0 - self.max_load / self.greedy.max_load

    @computed
    def moved_bytes(self) -> float | None:
        """Weights that have to move, of one layer."""
        if self.n_moves is None or self.request.weights.n_bytes is None:
            return None
        return self.n_moves * self.request.weights.n_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundantExperts:
    """How copies of experts level what devices get of their tokens.

    Args:
        n_redundant: copies of a layer, beside the first of each expert.
        fullest_factor: rows of the fullest device over the mean, in the long run; what chance adds
            in one pass is in its times [1].
        copies_bytes: of their weights on one device, of the whole stage.
    """

    n_redundant: int
    fullest_factor: float
    copies_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLayer:
    """Layers of a class, as a micro-batch goes through one of them [s].

    Args:
        attention_s, out_s, experts_s, back_s: at each station; attention alone where a layer has
            no experts.
        out_bytes, back_bytes: over the links of the device that has most to send or to take.
        period_s: from one layer to the next, of all micro-batches.
        busiest: the station that takes longest: `attention`, `out`, `experts` or `back`.
        is_filled: whether the micro-batches keep that station busy; else it waits for them.
    """

    name: str
    n_layers: int
    attention_s: float
    out_s: float
    experts_s: float
    back_s: float
    out_bytes: float
    back_bytes: float
    period_s: float
    busiest: str
    is_filled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertPool:
    """Devices of experts beside those of attention, between which micro-batches go to and fro.

    Args:
        n_attention_devices, n_expert_devices: of each pool.
        crosses_nodes: whether messages leave nodes: no node holds both pools.
        attention_fraction, experts_fraction: of a pass in which each pool computes [1].
        weights_bytes, activation_bytes, workspace_bytes: on a device of experts.
    """

    n_attention_devices: int
    n_expert_devices: int
    n_microbatches: int
    crosses_nodes: bool
    layers: tuple[PoolLayer, ...]
    attention_fraction: float
    experts_fraction: float
    weights_bytes: float
    activation_bytes: float
    workspace_bytes: float
