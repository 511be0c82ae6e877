"""What a user asks: a model, a pool, a workload, and what must hold."""

from __future__ import annotations

import difflib
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.errors import Problem, RequestError
from planner.specs.records import ClusterSpec, ModelSpec, Provenance, Workload
from planner.specs.spans import span_text

OBJECTIVES = ("cost", "rent", "latency", "ttft", "throughput", "devices")
PREFILL_POLICIES = ("latency", "cost")

DEFAULT_MODEL = "palm-540b"
DEFAULT_TOPOLOGY = "tpu-v4-4x8x8"
DEFAULT_WORKLOAD = Workload(n_input_tokens=2048, n_output_tokens=64)
DEFAULT_BATCHES = (*range(1, 129), *range(136, 1025, 8))
"""Batches to choose from: each up to 128, then each multiple of 8 up to 1024."""

SOLVERS = ("highs", "cpsat", "exhaustive")
MOST_TOKENS = 10**8
MOST_LOOKAHEAD = 64
CONVENTIONS = ("usual", "capped")
USUAL_ACCEPTANCE = 0.8
USUAL_LOOKAHEADS = (2, 3, 4, 5)
MOST_SEQUENCES = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What must hold; `None` leaves a quantity free.

    Args:
        tpot_s: longest mean time per output token, of a decode pass [s].
        ttft_s: longest time to first token, of a prefill pass without a queue [s].
        usd_per_token: highest rent per output token, prefill included [USD].
        n_devices: most devices.
        min_batch: fewest sequences decoded together.
    """

    tpot_s: float | None = None
    ttft_s: float | None = None
    usd_per_token: float | None = None
    n_devices: int | None = None
    min_batch: int | None = None


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
    lookaheads: tuple[int, ...] = USUAL_LOOKAHEADS
    convention: str = CONVENTIONS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverOptions:
    """How to solve: backend, limits, reproducibility."""

    solver: str = "highs"
    time_limit_s: float | None = None
    gap: float = 0.0
    threads: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One planning request.

    Args:
        model: what to serve.
        cluster: the pool of devices; any part of it may be used.
        workload: tokens of a request.
        targets: what must hold.
        weights_formats: formats that the weights may take.
        batches: decode batches to choose from.
        prefill_batches: prefill batches to choose from.
        prefill: `latency` prefills each request alone, for the least TTFT of its devices;
            `cost` lets prefill batch.
        objective: what to minimise (of throughput: to maximise), one of `OBJECTIVES`.
        options: how to solve.
        kv_formats: formats that the KV cache may take; the model's usual one where left out.
        speculation: a draft model that decode may use.
    """

    model: ModelSpec
    cluster: ClusterSpec
    workload: Workload
    targets: Targets
    weights_formats: tuple[str, ...]
    batches: tuple[int, ...]
    prefill_batches: tuple[int, ...]
    prefill: str
    objective: str
    options: SolverOptions
    kv_formats: tuple[str, ...] = ()
    speculation: Speculation | None = None

    def __post_init__(self) -> None:
        if not self.kv_formats:
            object.__setattr__(self, "kv_formats", (self.model.kv_format,))


LIMIT_OPTIONS = {
    "tpot": "--latency-target",
    "ttft": "--ttft-target",
    "cost": "--max-cost",
    "devices": "--max-devices",
    "batch": "--min-batch",
}
"""The option that sets each limit."""


def repriced(cluster: ClusterSpec, usd_per_hour: float) -> ClusterSpec:
    """The pool at another rent per device; the price's source is then the user."""
    kept = tuple(value for value in cluster.provenance if not value.key.startswith("price"))
    asked = Provenance(key="price", source="--price")
    return replace(cluster, usd_per_hour=usd_per_hour, provenance=(*kept, asked))


def among_formats(
    model: ModelSpec, allowed: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of a model's formats for weights, and for the cache, those that are allowed.

    A cache whose usual format is not among them may still have no other: it keeps that one.
    """
    weights = tuple(name for name in model.weights_formats if name in allowed)
    caches = tuple(name for name in model.kv_formats if name in allowed)
    return weights or tuple(allowed), caches or (model.kv_format,)


def command_of(request: Request, changes: Mapping[str, str]) -> str:
    """The command line of a request, with some options changed; defaults are left out.

    Args:
        request: what was asked.
        changes: value by option, as text.
    """
    targets, workload = request.targets, request.workload
    options = {
        "--model": (request.model.name, DEFAULT_MODEL),
        "--topology": (request.cluster.name, DEFAULT_TOPOLOGY),
        "--input": (workload.n_input_tokens, DEFAULT_WORKLOAD.n_input_tokens),
        "--output": (workload.n_output_tokens, DEFAULT_WORKLOAD.n_output_tokens),
        "--weights": (",".join(request.weights_formats), ",".join(request.model.weights_formats)),
        "--kv": (",".join(request.kv_formats), request.model.kv_format),
        "--batch": (span_text(request.batches), span_text(DEFAULT_BATCHES)),
        "--prefill-batch": (
            span_text(request.prefill_batches),
            span_text(default_prefill_batches(request.prefill)),
        ),
        "--latency-target": (_scaled(targets.tpot_s, 1e3, "ms"), None),
        "--ttft-target": (_scaled(targets.ttft_s, 1e3, "ms"), None),
        "--max-cost": (_scaled(targets.usd_per_token, 1e6, " USD/Mtoken"), None),
        "--max-devices": (targets.n_devices, None),
        "--min-batch": (targets.min_batch, None),
        "--prefill": (request.prefill, default_prefill(targets)),
        "--objective": (request.objective, "cost"),
        **_speculation_options(request.speculation),
    }
    said = {name: str(value) for name, (value, default) in options.items() if value != default}
    said.update(changes)
    return shlex.join(["plan", *(word for pair in said.items() for word in pair)])


def _speculation_options(speculation: Speculation | None) -> dict[str, tuple[object, object]]:
    if speculation is None:
        return {}
    usual = Speculation(draft=speculation.draft)
    return {
        "--draft": (speculation.draft.name, None),
        "--acceptance": (speculation.acceptance, usual.acceptance),
        "--lookahead": (span_text(speculation.lookaheads), span_text(usual.lookaheads)),
        "--speculation": (speculation.convention, usual.convention),
    }


def _scaled(value: float | None, factor: float, unit: str) -> str | None:
    return None if value is None else f"{value * factor:.12g}{unit}"


def default_prefill(targets: Targets) -> str:
    """With a latency target requests are prefilled at once, without one for least cost."""
    return "latency" if targets.tpot_s is not None else "cost"


def default_prefill_batches(prefill: str) -> Sequence[int]:
    """For least latency each request alone, for least cost any batch."""
    return (1,) if prefill == "latency" else DEFAULT_BATCHES


def make_request(
    model: ModelSpec,
    cluster: ClusterSpec,
    *,
    workload: Workload,
    targets: Targets,
    weights_formats: Sequence[str] | None,
    kv_formats: Sequence[str] | None = None,
    batches: Sequence[int] | None,
    prefill_batches: Sequence[int] | None,
    prefill: str | None,
    objective: str,
    options: SolverOptions,
    speculation: Speculation | None = None,
) -> Request:
    """A request with its defaults filled in.

    Raises:
        RequestError: with every problem of the request, not only the first.
    """
    chosen_prefill = prefill or default_prefill(targets)
    request = Request(
        model=model,
        cluster=cluster,
        workload=workload,
        targets=targets,
        weights_formats=tuple(dict.fromkeys(weights_formats or model.weights_formats)),
        kv_formats=tuple(dict.fromkeys(kv_formats or (model.kv_format,))),
        batches=tuple(sorted(set(DEFAULT_BATCHES if batches is None else batches))),
        prefill_batches=tuple(
            default_prefill_batches(chosen_prefill)
            if prefill_batches is None
            else sorted(set(prefill_batches))
        ),
        prefill=chosen_prefill,
        objective=objective,
        options=options,
        speculation=speculation,
    )
    problems = request_problems(request)
    if problems:
        raise RequestError(problems)
    return request


def request_problems(request: Request) -> list[Problem]:
    """Everything in a request that cannot be planned for, whatever the program says."""
    problems = [
        *_choice_problems(request),
        *_count_problems(request),
        *_target_problems(request.targets, request.options),
        *_speculation_problems(request.speculation),
    ]
    model = request.model
    asked = (
        ("--weights", request.weights_formats, model.weights_formats),
        ("--kv", request.kv_formats, model.kv_formats),
    )
    for option, names, known in asked:
        for name in sorted(set(names) - set(known)):
            fact = f"`{model.name}` is not served in this format"
            remedy = "write " + " or ".join(f"`{one}`" for one in known)
            problems.append(Problem(where=option, value=name, fact=fact, remedy=remedy))
    return problems


def _choice_problems(request: Request) -> list[Problem]:
    choices = (
        ("--objective", request.objective, OBJECTIVES),
        ("--prefill", request.prefill, PREFILL_POLICIES),
        ("--solver", request.options.solver, SOLVERS),
    )
    return [
        Problem(where=option, value=value, fact="no such choice", remedy=_one_of(value, known))
        for option, value, known in choices
        if value not in known
    ]


def _one_of(value: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(value, known, 1)
    names = ", ".join(f"`{name}`" for name in known)
    return f"did you mean `{near[0]}`?" if near else f"one of {names}"


def _count_problems(request: Request) -> list[Problem]:
    counts = (
        ("--input", (request.workload.n_input_tokens,), MOST_TOKENS),
        ("--output", (request.workload.n_output_tokens,), MOST_TOKENS),
        ("--batch", request.batches, MOST_SEQUENCES),
        ("--prefill-batch", request.prefill_batches, MOST_SEQUENCES),
        ("--max-devices", (request.targets.n_devices,), MOST_SEQUENCES),
        ("--min-batch", (request.targets.min_batch,), MOST_SEQUENCES),
        ("--threads", (request.options.threads,), 1024),
    )
    problems = []
    for option, values, most in counts:
        if not values:
            problems.append(Problem(where=option, fact="nothing to choose from"))
        for value in values:
            if value is not None and not 1 <= value <= most:
                fact = f"is not between 1 and {most}"
                problems.append(Problem(where=option, value=str(value), fact=fact))
                break
    return problems


def _speculation_problems(speculation: Speculation | None) -> list[Problem]:
    if speculation is None:
        return []
    problems = []
    if not 0 <= speculation.acceptance < 1:
        fact = "is not a probability below 1"
        value = f"{speculation.acceptance:g}"
        problems.append(Problem(where="--acceptance", value=value, fact=fact))
    wrong = [n for n in speculation.lookaheads if not 1 <= n <= MOST_LOOKAHEAD]
    if wrong or not speculation.lookaheads:
        fact = f"is not between 1 and {MOST_LOOKAHEAD}"
        value = ",".join(map(str, wrong))
        problems.append(Problem(where="--lookahead", value=value, fact=fact))
    if speculation.convention not in CONVENTIONS:
        remedy = _one_of(speculation.convention, CONVENTIONS)
        value, fact = speculation.convention, "no such choice"
        problems.append(Problem(where="--speculation", value=value, fact=fact, remedy=remedy))
    return problems


def _target_problems(targets: Targets, options: SolverOptions) -> list[Problem]:
    amounts = (
        ("--latency-target", targets.tpot_s),
        ("--ttft-target", targets.ttft_s),
        ("--max-cost", targets.usd_per_token),
        ("--time-limit", options.time_limit_s),
    )
    problems = [
        Problem(where=option, value=f"{value:g}", fact="is not a positive, finite amount")
        for option, value in amounts
        if value is not None and not (math.isfinite(value) and value > 0)
    ]
    if not 0 <= options.gap < 1:
        fact = "is not a fraction from 0 up to 1"
        problems.append(Problem(where="--gap", value=f"{options.gap:g}", fact=fact))
    return problems
