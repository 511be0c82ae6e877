"""What a request may ask of a plan: limits, fixed degrees, a draft model, how to solve."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

from planner.quantities.table import limited, objectives
from planner.quantities.units import UnitError
from planner.specs.options.counts import count
from planner.specs.options.table import usual
from planner.specs.records.devices import Workload
from planner.specs.records.models import ModelSpec
from planner.specs.validation.values import NOT_EMPTY, Check, Named, Sequences, between, one_of

OBJECTIVES = objectives()
PREFILL_POLICIES = ("latency", "cost")
SOLVERS = ("highs", "cpsat", "exhaustive")
CONVENTIONS = ("usual", "capped")
MOST_LOOKAHEAD = 64
MOST_THREADS = 1024
USUAL_ACCEPTANCE = 0.8
USUAL_LOOKAHEADS = (2, 3, 4, 5)

DEFAULT_WORKLOAD = Workload(
    n_input_tokens=int(usual("--input")), n_output_tokens=int(usual("--output"))
)

ATTENTIONS = ("heads", "batch")
"""What attention may be cut over."""

Objective = Annotated[str, one_of("objective", OBJECTIVES)]
PrefillPolicy = Annotated[str, one_of("policy of prefill", PREFILL_POLICIES)]
Provers = Literal["two", "one"]
PROOFS: tuple[Provers, ...] = ("two", "one")
"""How many provers have to vouch for an answer before it is called optimal."""


def _holding(share: float) -> tuple[str, str]:
    """A share of cases in which predictions do not hold by themselves."""
    fact = "is less than the half of all cases in which predictions hold"
    return fact if 0.0 < share < 0.5 else "", "write `90%`, or `0` for what is predicted"


Confidence = Annotated[float, Check(_holding)]
Limit = Annotated[float, Named("limit")]
Lookahead = Annotated[int, between(1, MOST_LOOKAHEAD)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """How a deployment divides the model, where the user says so; `None` leaves it free.

    They say how weights rest. Layouts that gather weights before use, or cut the batch of
    attention, are chosen among those with these degrees.

    Args:
        tensor: devices that divide the attention of one layer.
        pipeline: stages, each with its share of the layers.
        expert: devices that divide the experts of one layer, of models with experts.
        data: copies of the attention of one layer, each with its share of the sequences, of
            models with experts.
    """

    tensor: Sequences | None = None
    pipeline: Sequences | None = None
    expert: Sequences | None = None
    data: Sequences | None = None

    def fixed(self) -> dict[str, int]:
        """Those that are set, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


WHAT_IF = "--what-if"
EXPERT_DEVICES, MICRO_BATCHES = "--expert-devices", "--micro-batches"
"""Options of replicas whose experts have devices of their own."""

DEGREE_OPTIONS = {"tensor": "--tp", "pipeline": "--pp", "expert": "--ep", "data": "--dp"}
"""The option that fixes each degree."""

OF_ONE_MODEL = frozenset({"--weights", "--kv", "--max-quality-loss", *DEGREE_OPTIONS.values()})
"""Options that may suit one model or pool of several and not another."""

FREE = Degrees()


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLayout:
    """The layout of one phase, where the user says so; `None` leaves it free.

    Args:
        name: as reports print it: `WS 2D`, `WG XYZ`, `DP 2 × TP 4, EP 8`. Neither capitals count
            nor what stands between letters and digits.
        attention: what it is cut over, `heads` or `batch`.
        n_microbatches: parts that a pass is cut into for a pipeline.
    """

    name: str | None = None
    attention: Annotated[str, one_of("cut of attention", ATTENTIONS)] | None = None
    n_microbatches: int | None = None

    def is_met(self, name: str, attention: str, n_microbatches: int | None = None) -> bool:
        """Whether a layout is the one asked for, whatever its parts where they are left out."""
        named = self.name is None or _bare(name) == _bare(self.name)
        parts = (None, n_microbatches) if n_microbatches else (self.n_microbatches,)
        return named and self.attention in (None, attention) and self.n_microbatches in parts

    @property
    def text(self) -> str:
        """As the option has it: `WS2D/batch`, `WS1D/heads/4`; empty where all is free."""
        words = ((self.name or "").replace(" ", ""), self.attention, self.n_microbatches)
        return "/".join(str(word) for word in words if word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layouts:
    """The layouts of both phases, where the user says so."""

    prefill: PhaseLayout = PhaseLayout()
    decode: PhaseLayout = PhaseLayout()

    def fixed(self) -> dict[str, PhaseLayout]:
        """Those of which something is said, by phase."""
        both = {"prefill": self.prefill, "decode": self.decode}
        return {phase: layout for phase, layout in both.items() if layout.text}

    @property
    def text(self) -> str:
        """As the option has it: `prefill=WGXYZ,decode=WS2D`."""
        return ",".join(f"{phase}={layout.text}" for phase, layout in self.fixed().items())


ANY_LAYOUTS = Layouts()


def _bare(name: str) -> str:
    """A layout's name without what people may write otherwise."""
    return "".join(letter for letter in name.lower().replace("×", "x") if letter.isalnum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What must hold; `None` leaves a quantity free.

    Args:
        tpot_s: longest mean time per output token, of a decode pass [s].
        ttft_s: longest time to first token, of a prefill pass without a queue [s].
        usd_per_token: highest rent per output token, prefill included [USD].
        n_devices: most devices, of all replicas together.
        min_batch: fewest sequences decoded together.
        n_replicas: exactly so many replicas of the deployment; None leaves it open.
        demand_tokens_per_s: output tokens that are asked for [token/s]: replicas of the
            deployment serve all of them, and a plan is credited with no more.
        max_utilisation: share of their capacity that replicas serve of the demand at most: what
            comes at random waits for ever where all is sold.
        quality_loss_fraction: largest relative loss that a number format may have, by what the
            model's file says; formats without a known loss are then forbidden [1].
        degrees: how the model must be divided.
        layouts: which layouts the phases must have.
        further: limits of quantities without a field of their own, by name, SI.
    """

    tpot_s: float | None = None
    ttft_s: float | None = None
    usd_per_token: float | None = None
    n_devices: Sequences | None = None
    min_batch: Sequences | None = None
    n_replicas: Sequences | None = None
    demand_tokens_per_s: float | None = None
    max_utilisation: float = 1.0
    quality_loss_fraction: float | None = None
    degrees: Degrees = FREE
    layouts: Layouts = ANY_LAYOUTS
    further: Mapping[str, Annotated[float, Named("limit")]] = field(
        default_factory=dict, hash=False
    )

    def limit(self, name: str) -> float | None:
        """What is asked of a quantity, SI; `None` leaves it free."""
        return self.limits().get(name)

    def limits(self) -> dict[str, float]:
        """All that is asked of quantities that an option limits, by name, SI."""
        most = {
            quantity.name: getattr(self, quantity.target)
            if quantity.target
            else self.further.get(quantity.name)
            for quantity in limited()
        }
        return {name: float(value) for name, value in most.items() if value is not None}

    def capacity_of(self, demand_tokens_per_s: float) -> float:
        """What replicas have to be able to serve for a demand [token/s]."""
        return demand_tokens_per_s / self.max_utilisation

    def said(self) -> dict[str, str]:
        """Options that say how the model is divided and laid out, and what they were given."""
        degrees = {DEGREE_OPTIONS[name]: str(n) for name, n in self.degrees.fixed().items()}
        return {**degrees, **({"--layout": self.layouts.text} if self.layouts.fixed() else {})}

    def with_limits(self, limits: Mapping[str, float]) -> Targets:
        """These targets with other limits on some quantities, by name, SI."""
        changes: dict[str, Any] = {"further": dict(self.further)}
        for quantity in (it for it in limited() if it.name in limits):
            value = limits[quantity.name]
            if quantity.target:
                changes[quantity.target] = round(value) if quantity.is_count else value
            else:
                changes["further"][quantity.name] = value
        return replace(self, **changes)

    def without(self, *names: str) -> Targets:
        """These targets, some quantities left free."""
        fields = {one.target: None for one in limited() if one.name in names and one.target}
        kept = {name: value for name, value in self.further.items() if name not in names}
        changes: dict[str, Any] = {**fields, "further": kept}
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """A draft model that decode may use, or leave.

    Args:
        draft: the model that proposes tokens.
        acceptance: probability that a proposed token is accepted, in [0, 1).
        lookaheads: numbers of tokens proposed at once to choose from.
        convention: how yielded tokens are counted, see `equations.speculation`.
    """

    draft: ModelSpec
    acceptance: float = USUAL_ACCEPTANCE
    lookaheads: Annotated[tuple[Lookahead, ...], NOT_EMPTY] = USUAL_LOOKAHEADS
    convention: Annotated[str, one_of("convention", CONVENTIONS)] = CONVENTIONS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverOptions:
    """How to solve and to prove: backend, limits, reproducibility.

    Args:
        time_limit_s: wall time of the whole answer, second proof included; None is no limit.
        proof: `two` provers, or `one`, whose word is then not called optimal.
        sort_price: of several replicas, what each sort beyond the fewest that do costs: a share of
            the best objective with the fewest.
        most_sorts: most sorts of replicas; None is any number.
    """

    solver: Annotated[str, one_of("solver", SOLVERS)] = "highs"
    time_limit_s: float | None = None
    gap: float = 0.0
    threads: Annotated[int, between(1, MOST_THREADS)] = 1
    seed: int = 0
    proof: Provers = "two"
    sort_price: float = 0.01
    most_sorts: int | None = None


_LAYOUT_EXAMPLE = "write it like `prefill=WGXYZ,decode=WS2D` or `decode=WS2D/batch`"
_NEXT_PHASE = re.compile(r",(?=\s*\w+\s*=)")  # names of layouts have commas of their own


def layouts_of(text: str) -> Layouts:
    """`prefill=WGXYZ,decode=WS2D/batch/1`: a phase each, its layout, the cut of attention, parts.

    Raises:
        UnitError: it is not written so.
    """
    layouts: dict[str, PhaseLayout] = {}
    for part in _NEXT_PHASE.split(text):
        phase, equals, name = (word.strip() for word in part.partition("="))
        if not equals:
            raise UnitError(text, "does not say of which phase", _LAYOUT_EXAMPLE)
        if phase not in ("prefill", "decode"):
            raise UnitError(text, f"`{phase}` is no phase", "it is prefill or decode")
        if phase in layouts:
            raise UnitError(text, f"says twice what {phase} is", "say it once")
        layouts[phase] = _layout_of(text, name)
    return Layouts(**layouts)


def _layout_of(text: str, written: str) -> PhaseLayout:
    words = [word.strip() for word in written.split("/")]
    parts = [count(word) for word in words if word.isdecimal()]
    cuts = [word for word in words if word in ATTENTIONS]
    names = [word for word in words if word not in ATTENTIONS and not word.isdecimal()]
    if not all(words) or max(len(names), len(cuts), len(parts)) > 1:
        raise UnitError(text, "is no layout, and no way to cut attention", _LAYOUT_EXAMPLE)
    return PhaseLayout(
        name=next(iter(names), None),
        attention=next(iter(cuts), None),
        n_microbatches=next(iter(parts), None),
    )
