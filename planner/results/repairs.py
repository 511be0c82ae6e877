"""What a repair answers, as frozen records in SI units."""

from dataclasses import dataclass

from planner.results.placements import Placement
from planner.results.records import AnswerRecord
from planner.specs.ask.placement import PlacementRequest
from planner.specs.records.certificates import Proof
from planner.specs.validation.hints import computed


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The shard of one rank, loaded on a device that does not have it.

    Args:
        replica: of the repaired placement, `deepseek-v3/0`.
        rank: of the replica.
        device: that loads it.
        source: a device that keeps the same shard; "" where none does and it comes from storage.
        n_bytes: of weights; the shard of the busiest rank.
    """

    replica: str
    rank: int
    device: str
    source: str
    n_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of one replica of the repaired placement.

    Args:
        replica: its name.
        before: the replica that it keeps weights of; "" for a new one.
        fate: `kept` (nothing moves), `patched` (some ranks move) or `new`.
        n_moved: ranks whose shard moves.
        moved_bytes: of them together.
    """

    replica: str
    before: str
    fate: str
    n_moved: int
    moved_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPoint:
    """One point of the frontier between what moves and what it is worth.

    Args:
        moved_bytes: the least with which the objective is reached.
        objective: reached, SI.
        loss_fraction: of the best objective that the state allows.
        is_chosen: whether it is the repair that was chosen.
    """

    moved_bytes: float
    objective: float
    loss_fraction: float
    is_chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRequest:
    """What was asked of a repair.

    Args:
        before: the placement that stands, with its own request.
        wanted: what the repaired placement has to be.
        loss_fraction: share of the best objective of this state that may be lost for fewer bytes.
        most_points: of the frontier.
        inherited: of what is wanted, what is as the standing placement was asked for.
        changed: of what is wanted, what is not.
    """

    before: Placement
    wanted: PlacementRequest
    loss_fraction: float
    most_points: int
    inherited: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair(AnswerRecord):
    """The placement with the fewest moved bytes within a loss, and what else could be had.

    Args:
        request: what was asked.
        placement: repaired; the gap of its certificate is at most the loss and the solver's.
        before: the objective before the failure, SI.
        best: the best objective that the state allows, SI.
        dimension: of the objectives.
        changes: of each replica of the repaired placement.
        dropped: replicas of the old placement of which nothing is kept.
        moves: rank by rank.
        frontier: by bytes, ascending; no point is as good as another in both.
        is_whole: whether the frontier is complete; False where it was cut short.
        moved_proofs: what provers said of the fewest moved bytes within the loss [B].
        moved_vouched_by: who vouches for them; empty where one solver is alone.
        load_s: the longest that a device, or one that sends to others, takes for its shards
            over its own link, all at once; what comes from storage is not in it.
        lost: what is lost beside the weights.
    """

    request: RepairRequest
    placement: Placement
    before: float
    best: float
    dimension: str
    changes: tuple[Change, ...]
    dropped: tuple[str, ...]
    moves: tuple[Move, ...]
    frontier: tuple[RepairPoint, ...]
    is_whole: bool
    moved_proofs: tuple[Proof, ...]
    moved_vouched_by: tuple[str, ...]
    load_s: float
    lost: str = "the KV cache of every replica that is not kept, and requests in it"

    @computed
    def moved_bytes(self) -> float:
        return sum(move.n_bytes for move in self.moves)

    @property
    def chosen(self) -> RepairPoint:
        return next(point for point in self.frontier if point.is_chosen)
