"""The placement program of configurations: what each copy serves, costs and takes.

    columns   first the parts of replicas that places give, where there are such, then replicas

The quantities of a replica are those of its configuration, whatever it is placed on; what it
takes of the places is for the site to say.

A sort of replicas is what an operator starts in the same way: model, engine, role, kind of devices,
degrees. Each sort beyond the fewest that do has to pay for itself: with z_K the best objective of
at most K sorts, and F the fewest that have an answer, the answer is that of

    min over K of   z_K + price |z_F| (K - F)

Programs are solved for K = F, F + 1, … as long as more sorts could be better: none with more than K
is better than z + price |z_F| (K + 1 - F), where z is the best of any number.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import OutOfTimeError
from planner.placing.configurations import AnyConfiguration, config_key
from planner.programs.placement import UNLIMITED, PlacementLimit, PlacementProgram, Uses
from planner.quantities.table import QUANTITIES, placed
from planner.running.deadlines import is_over
from planner.solvers.placement import PlacementSolution
from planner.solvers.solution import Status
from planner.specs.ask.targets import SolverOptions
from planner.specs.records.roles import TOGETHER

UNITS = {
    "throughput": (-1e3, "token/s"),
    "share": (-1.0, "1"),
    "rent": (1.0, "USD/h"),
    "devices": (1.0, "1"),
    "latency": (1e-3, "s"),
    "cost": (1e-6, "USD/token"),
}
"""Factor from a program's unit to SI, and the dimension; what is most counts negative."""

KTOKEN = 1e-3
PARTS = "pieces"
"""The model that parts of replicas are of: nothing is asked of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDemand:
    """What is wanted of one model: a demand [token/s], and a number of replicas.

    Where caches are handed over, also when the first token is due, and the tokens of an answer.
    Replicas of one `served` model are of one sort where nothing else tells them apart.
    """

    name: str
    demand_tokens_per_s: float | None = None
    least: int = 0
    most: int | None = None
    ttft_s: float | None = None
    n_output_tokens: float = 1.0
    served: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What a placement is the best of.

    Args:
        wanted: of each model, in the order in which configurations number them.
        objective: `throughput`, `share`, `rent`, `devices`, `latency` or `cost`.
        limits: of quantities of all replicas together, where asked for, SI.
    """

    wanted: tuple[ModelDemand, ...]
    objective: str
    limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """What the columns of a program are.

    Args:
        configurations: of replicas.
        which: the configuration of each column that is a replica, int[R].
        n_parts: columns before those, that are parts of replicas.
    """

    configurations: Sequence[AnyConfiguration]
    which: IntArray
    n_parts: int = 0

    @property
    def hand_over(self) -> bool:
        """Whether some column is of a replica that does one phase."""
        used = np.unique(self.which).tolist()
        return any(self.configurations[i].role != TOGETHER for i in used)

    def replicas(self, copies: Sequence[int]) -> list[tuple[int, int]]:
        """Columns of replicas that have copies, counted from the first replica, with how many."""
        return [(j, n) for j, n in enumerate(copies[self.n_parts :]) if n]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rooms:
    """What columns use up: the rows of a program."""

    names: tuple[str, ...]
    free: IntArray
    uses: Uses


def placement_program(
    rooms: Rooms, columns: Columns, aim: Objective, *, ties: tuple[FloatArray, ...] = ()
) -> PlacementProgram:
    """State the placement of replicas in rooms.

    Args:
        ties: what decides between optima, as the program has it.
    """
    n_models, wanted = len(aim.wanted), aim.wanted
    quantity = _quantities(columns, {*aim.limits, aim.objective})
    models = np.array([one.model for one in columns.configurations], np.int64)[columns.which]
    parts = np.full(columns.n_parts, n_models, np.int64)
    unasked = 1 if columns.n_parts else 0
    return PlacementProgram(
        resources=rooms.names,
        free=rooms.free,
        uses=rooms.uses,
        models=(*(one.name for one in wanted), *[PARTS] * unasked),
        column_model=np.concatenate([parts, models]),
        objective=quantity[aim.objective],
        rate=0.0 - quantity["throughput"],
        demand=np.array([*_demands(columns, wanted), *[0.0] * unasked]),
        least=np.array([*(one.least for one in wanted), *[0] * unasked], np.int64),
        most=np.array(
            [
                *(UNLIMITED if one.most is None else one.most for one in wanted),
                *[UNLIMITED] * unasked,
            ],
            np.int64,
        ),
        limits=tuple(
            PlacementLimit(
                name=name,
                column=quantity[name],
                at_most=QUANTITIES[name].at_most(value),
                unit=QUANTITIES[name].dimension,
            )
            for name, value in aim.limits.items()
        ),
        is_for_share=aim.objective == "share" and any(_demands(columns, wanted)),
        ties=ties,
        sort=_sorts(columns, wanted),
    )


def _sorts(columns: Columns, wanted: Sequence[ModelDemand]) -> IntArray:
    """The sort of each column's replicas; parts are of none."""
    served = [one.served or one.name for one in wanted]
    of_each = [(served[one.model], *config_key(one)[1:]) for one in columns.configurations]
    numbers = {sort: k for k, sort in enumerate(dict.fromkeys(of_each))}
    each = np.array([numbers[one] for one in of_each], np.int64)[columns.which]
    return np.concatenate([np.full(columns.n_parts, -1, np.int64), each])


def _demands(columns: Columns, wanted: Sequence[ModelDemand]) -> list[float]:
    """What each model must serve; nothing where caches are handed over: there rows say it that
    follow from who hands over to whom."""
    hands = columns.hand_over
    return [0.0 if hands else (one.demand_tokens_per_s or 0.0) * KTOKEN for one in wanted]


def _quantities(columns: Columns, names: Collection[str]) -> dict[str, FloatArray]:
    """What is limited or minimised, of each column; parts have none of it."""

    def of_replicas(values: Sequence[float]) -> FloatArray:
        each = np.array(values, dtype=float)[columns.which]
        return np.concatenate([np.zeros(columns.n_parts), each])

    listed, none = columns.configurations, np.zeros(columns.n_parts + len(columns.which))
    return {
        "throughput": of_replicas([-one.output_tokens_per_s * KTOKEN for one in listed]),
        "share": none,
        "latency": of_replicas([one.tpot_s * 1e3 for one in listed]),
        "cost": of_replicas([_usd_per_mtoken(one) for one in listed]) if "cost" in names else none,
        **{
            quantity.name: of_replicas(
                [quantity.at_most(quantity.counted_of(it, it.source.device)) for it in listed]
            )
            for quantity in placed("all")
            if quantity.name in names
        },
    }


def _usd_per_mtoken(config: AnyConfiguration) -> float:
    return config.usd_per_hour / 3600.0 / config.output_tokens_per_s * 1e6


def in_si(objective: str, value: float) -> float:
    """A program's objective in SI."""
    return value * UNITS[objective][0]


AnySolution = TypeVar("AnySolution")
Step = tuple[int, float, float]
"""Most sorts, the best objective and its bound, in the unit of the program."""
Weighed = tuple[PlacementSolution, int]
"""What provers say of an answer, and how many sorts it has."""


def with_few_sorts(
    solve: Callable[[int | None], AnySolution],
    weighed: Callable[[AnySolution], Weighed],
    n_least: int,
    options: SolverOptions,
) -> tuple[AnySolution, tuple[Step, ...], bool]:
    """The best answer, each further sort counted; and that of each number that was looked at.

    Args:
        solve: the best of at most so many sorts, or of any number.
        n_least: sorts that every answer has.

    Returns:
        the answer; steps of rising numbers of sorts, the last of any number: none where there was
        nothing to weigh; and whether all were weighed before time ended.
    """
    free = solve(options.most_sorts)
    solution, n_used = weighed(free)
    if solution.answer is None or not options.sort_price or n_used <= n_least:
        return free, (), True
    last = (n_used, solution.objective, solution.bound)
    solutions, steps, is_weighed = [free], [last], True
    for most in range(n_least, n_used):
        if _is_enough(steps[:-1], last, options):
            break
        answer = _in_time(solve, most)
        mine = solution if answer is None else weighed(answer)[0]
        if answer is None or mine.status is Status.UNKNOWN:
            steps, is_weighed = list(map(_vouched, steps, map(weighed, solutions))), False
            break
        if mine.answer is not None:
            solutions.insert(-1, answer)
            steps.insert(-1, (most, mine.objective, mine.bound))
    costs = _priced(steps, options)
    best = solutions[costs.index(min(costs))]
    return best, tuple(steps) if len(steps) > 1 else (), is_weighed


def without_proof(solution: PlacementSolution) -> PlacementSolution:
    """A solution that others of fewer sorts, which nobody looked at, may be better than."""
    is_final = solution.status in (Status.OPTIMAL, Status.UNCONFIRMED)
    return replace(solution, status=Status.FEASIBLE) if is_final else solution


def _vouched(step: Step, weighed: Weighed) -> Step:
    """A step with the bound that is vouched for: without a proof no other goes out."""
    return step[0], step[1], without_proof(weighed[0]).bound


def _in_time(solve: Callable[[int | None], AnySolution], most: int) -> AnySolution | None:
    """The best of so many sorts; None where time ended before."""
    if is_over():
        return None
    try:
        return solve(most)
    except OutOfTimeError:
        return None


def _priced(steps: Sequence[Step], options: SolverOptions) -> list[float]:
    """What the answer of each step comes to, its further sorts counted."""
    fewest, best, _ = steps[0]
    return [value + options.sort_price * abs(best) * (n - fewest) for n, value, _ in steps]


def _is_enough(steps: Sequence[Step], last: Step, options: SolverOptions) -> bool:
    """Whether no answer of more sorts than were looked at is better: the last bounds each."""
    if not steps:
        return False
    next_one = (steps[-1][0] + 1, last[2], last[2])
    *costs, least = _priced([*steps, next_one], options)
    return min(costs) <= least + 1e-9 * abs(least)
