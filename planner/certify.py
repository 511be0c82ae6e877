"""What proves a plan: checks by code that did not find it, and the certificate.

Three judges look at every plan. `violations` recomputes every row of the unscreened program.
The referee recounts seconds and bytes of both phases in plain scalar arithmetic, and the
request's limits are compared with its count, not with ours. The bound is the solver's,
lowered to the bounds of whatever the screens rejected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from planner.errors import SolverError
from planner.estimates.candidates import CandidateTable
from planner.programs.targets import MS, USD_PER_MTOKEN
from planner.results import Certificate, Deployment, LimitUse, Screen
from planner.search import Found
from planner.specs.request import Request

TIE_TOLERANCE = 1e-8  # a plan chosen among ties may be off by the ties' own tolerance

OBJECTIVE_UNITS = {
    "cost": (1.0 / USD_PER_MTOKEN, "USD/token"),
    "rent": (1.0, "USD/h"),
    "latency": (1.0 / MS, "s"),
    "ttft": (1.0 / MS, "s"),
    "throughput": (1.0 / MS, "token/s"),
    "device-throughput": (1.0 / MS, "token/s"),
    "devices": (1.0, "1"),
}
"""Factor from a program's unit to SI, and the dimension, of each objective."""


def in_si(objective: str, value: float) -> float:
    """A program's objective in SI; of throughput, tokens a second instead of time a token."""
    scaled = value * OBJECTIVE_UNITS[objective][0]
    if objective not in ("throughput", "device-throughput"):
        return scaled
    return 1.0 / scaled if scaled else math.inf


REASONS = {
    "weights": "their weights alone exceed a device's memory",
    "memory": "they exceed a device's memory by themselves",
    "hbm": "no choice of the other phase leaves them room",
    "empty": "their slice has nothing left for the other phase",
    "bound": "their lower bound is above a plan that exists",
    "dominated": "another choice of the same slice is no worse in anything",
    "slower": "others of the same devices, stages and batch are faster, or they do not fit",
}


def limit_uses(
    request: Request, deployment: Deployment, gains: Mapping[str, tuple[float, float | None]]
) -> tuple[LimitUse, ...]:
    """What the plan uses of each limit; `gains` holds (relief, gain fraction) by name."""
    targets, memory = request.targets, deployment.memory
    rows = (
        ("tpot", deployment.tpot_s, targets.tpot_s, "s"),
        ("ttft", deployment.ttft_s, targets.ttft_s, "s"),
        ("cost", deployment.usd_per_token, targets.usd_per_token, "USD/token"),
        ("devices", float(deployment.n_devices), targets.n_devices, "1"),
        ("batch", float(deployment.decode.batch), targets.min_batch, "1"),
        ("demand", deployment.output_tokens_per_s, targets.demand_tokens_per_s, "token/s"),
        ("hbm", memory.used_bytes, memory.capacity_bytes, "B"),
    )
    return tuple(
        LimitUse(
            name=name,
            used=used,
            limit=float(limit),
            dimension=dimension,
            relief=gains[name][0],
            gain_fraction=gains[name][1],
        )
        for name, used, limit, dimension in rows
        if limit is not None
    )


def _reached(objective: str, deployment: Deployment) -> float:
    """What a deployment comes to in an objective, SI."""
    values: dict[str, float] = {
        "cost": deployment.usd_per_token,
        "rent": deployment.usd_per_hour,
        "latency": deployment.tpot_s,
        "ttft": deployment.ttft_s,
        "throughput": deployment.output_tokens_per_s,
        "devices": deployment.n_devices,
    }
    return values[objective]


def certificate(
    tables: Sequence[CandidateTable],
    request: Request,
    found: Found,
    *,
    deployment: Deployment,
    verified: tuple[str, ...],
    wall_s: float,
) -> Certificate:
    """The proof in numbers, in SI units.

    Args:
        tables: the candidates, of every model that was chosen among.

    Raises:
        SolverError: what was optimised is not what the deployment comes to.
    """
    solution, screened, n_unfit = found.solution, found.screened, found.posed.n_unfit
    objective = in_si(request.objective, solution.objective)
    reached = _reached(request.objective, deployment)
    if not math.isclose(objective, reached, rel_tol=TIE_TOLERANCE):
        raise SolverError(f"{request.objective} {objective!r} is {reached!r} in the deployment")
    bound = in_si(request.objective, min(solution.bound, solution.objective, screened.bound))
    n_too_large = sum(table.n_too_large * table.n_of_arm for table in tables)
    rejected = [("weights", n_too_large), ("memory", n_unfit)]
    rejected += [(name, n_columns) for name, (n_columns, _) in screened.rejected.items()]
    return Certificate(
        status=solution.status.value,
        objective_name=request.objective,
        objective=objective,
        bound=bound,
        gap=abs(objective - bound) / abs(objective) if objective else 0.0,
        dimension=OBJECTIVE_UNITS[request.objective][1],
        solver=f"{solution.solver} {solution.version}",
        n_candidates=found.reduced.n_columns + n_unfit + n_too_large,
        n_contexts=found.reduced.n_contexts,
        screens=tuple(
            Screen(
                name=name,
                n_candidates=count,
                reason=REASONS.get(name, f"they break `{name}` by themselves"),
            )
            for name, count in rejected
            if count
        ),
        n_solved=screened.program.n_columns,
        verified=verified,
        wall_s=wall_s,
        solve_s=solution.wall_s,
    )
