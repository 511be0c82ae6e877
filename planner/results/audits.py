"""What is said of given deployments, as frozen records in SI units: what an audit answers, and what
`plan predict` does of layouts and of the reference model of Erdil 2025."""

from dataclasses import dataclass

from planner.results.deployments import Deployment
from planner.results.plans import AnyPlan
from planner.results.records import AnswerRecord
from planner.specs.ask.request import Request
from planner.specs.ask.targets import Speculation
from planner.specs.validation.hints import computed


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A running deployment as its owner sees it.

    Args:
        n_devices: devices in use.
        weights_format, kv_format: number formats.
        batch: sequences decoded together.
        tpot_s: time per output token that a user sees.
        usd_per_token: rent over decoded tokens.
        mfu_fraction: model FLOP of decode over the peak of the devices.
    """

    n_devices: int
    weights_format: str
    kv_format: str
    batch: int
    tpot_s: float
    usd_per_token: float
    mfu_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedChange:
    """One change to a running deployment, and the least cost at its speed that it allows.

    Args:
        name: what changes.
        deployment: the cheapest with it.
        usd_per_token: rent over decoded tokens.
        command: the whole plan with it, prefill included.
    """

    name: str
    deployment: Deployment
    usd_per_token: float
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(AnswerRecord):
    """How far a running deployment is from what its pool could do.

    Args:
        request: the model and the pool.
        observed: what runs.
        possible: the fastest decode on as many devices at the same batch and formats.
        equal_speed: the cheapest deployment that is as fast, `None` if none is.
        equal_cost: the fastest deployment that costs no more, `None` if none does.
        changes: single changes that keep the speed, the cheapest first.
        untried: changes that there was no time for.
        weights_formats, kv_formats: that changes may take, those that run among them: as the model
            is published, or as was allowed.
        speculation: drafts that changes may take, if any.
    """

    request: Request
    observed: Observation
    possible: Deployment | None
    equal_speed: Deployment | None
    equal_cost: Deployment | None
    changes: tuple[AuditedChange, ...]
    untried: tuple[str, ...] = ()
    weights_formats: tuple[str, ...] = ()
    kv_formats: tuple[str, ...] = ()
    speculation: Speculation | None = None

    @property
    def cost_factor(self) -> float | None:
        """Observed cost over the least at its speed; below one, the model is beaten."""
        if self.equal_speed is None:
            return None
        return self.observed.usd_per_token / self.equal_speed.usd_per_decoded_token

    @property
    def speed_factor(self) -> float | None:
        """The most speed at its cost over the observed one."""
        if self.equal_cost is None:
            return None
        return self.observed.tpot_s / self.equal_cost.tpot_s

    @property
    def factors(self) -> tuple[tuple[str, float], ...]:
        """What the distance in cost is the product of: devices, batch, time of a token."""
        seen, best = self.observed, self.equal_speed
        if best is None:
            return ()
        return (
            ("devices", seen.n_devices / best.mesh.n_devices),
            ("batch", best.decode.batch / seen.batch),
            ("time", seen.tpot_s / best.tpot_s),
        )

    @property
    def baseline_usd_per_token(self) -> float:
        """What a change has to beat: what runs, or where that beats the model, its own best."""
        factor, best = self.cost_factor, self.equal_speed
        if factor is None or best is None:
            return self.observed.usd_per_token
        return max(self.observed.usd_per_token, best.usd_per_decoded_token)

    @computed
    def excess(self) -> tuple[tuple[str, float], ...]:
        """The observed time per token as parts of the possible one, and what none explains."""
        if self.possible is None:
            return ()
        parts = self.possible.decode.step.parts()
        return (*parts, ("unexplained", self.observed.tpot_s - self.possible.tpot_s))


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
