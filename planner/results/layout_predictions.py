"""What `plan predict` answers of layouts and of the reference model of Erdil 2025."""

from dataclasses import dataclass

from planner.results.plans import AnyPlan
from planner.results.records import AnswerRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What collectives of a kind over some axes bring to the busiest device in a pass.

    Args:
        kind: `all-gather`, `reduce-scatter`, `all-to-all` or `weight-gather`.
        axes: of the mesh that take part, by name: `xyz`.
        received_bytes: of all layers and micro-batches.
    """

    kind: str
    axes: str
    received_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyModel:
    """Decoding by arithmetic, reads of parameters and the latency of all-reduces alone.

    Source: [Erdil2025] §2.

    Args:
        n_devices: N*, at which a token takes least.
        n_requests: B*, at which reading parameters takes as long as computing with them.
        token_s: of a request at N*.
        usd_per_token: at N* and B*.
    """

    n_devices: float
    n_requests: float
    token_s: float
    usd_per_token: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutPrediction(AnswerRecord):
    """A deployment as given, of what is left open the fastest.

    Args:
        plan: it, and its proof.
        longest_context: tokens of each sequence of its decode batch that memory holds; None of
            the reference model, as all below.
        prefill_traffic, decode_traffic: what a pass sends.
        toy: of the reference model; None of layouts.
    """

    plan: AnyPlan
    longest_context: int | None = None
    prefill_traffic: tuple[Traffic, ...] = ()
    decode_traffic: tuple[Traffic, ...] = ()
    toy: ToyModel | None = None
