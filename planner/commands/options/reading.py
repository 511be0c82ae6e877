"""Options as text to options as numbers; every fault is found before any is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeVar, cast

from planner.commands.options.counts import batches, capped, count
from planner.commands.options.layouts import layouts_of
from planner.commands.options.written import Usual, Written
from planner.errors import Problem
from planner.quantities import QUANTITIES, Quantity, limited
from planner.specs.conforming import LARGEST_SEED
from planner.specs.defaults import USUAL_UTILISATION
from planner.specs.economics.request import MEMORY_RULES
from planner.specs.records import FORMAT_BYTES, Workload
from planner.specs.request import (
    CONVENTIONS,
    MOST_TOKENS,
    OBJECTIVES,
    PREFILL_POLICIES,
    SOLVERS,
    USUAL_ACCEPTANCE,
    USUAL_LOOKAHEADS,
    Degrees,
    SolverOptions,
    Speculation,
    Targets,
)
from planner.specs.runtimes import LAYOUT_RUNTIMES
from planner.specs.targets import ANY_LAYOUTS, PROOFS, Wanted
from planner.units import UnitError, parse

_T = TypeVar("_T")

MOST_THREADS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the options ask for, in SI units; `None` leaves the choice to the planner."""

    workload: Workload
    targets: Targets
    weights_formats: tuple[str, ...] | None
    kv_formats: tuple[str, ...] | None
    batches: tuple[int, ...] | None
    prefill_batches: tuple[int, ...] | None
    prefill: str | None
    objective: str
    options: SolverOptions
    speculation: Speculation | None = None

    def keywords(self) -> dict[str, Any]:
        """As arguments of `planning.plan`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def read(written: Written) -> tuple[Asked, tuple[Problem, ...]]:
    """Read all options.

    Returns:
        What they ask for, with a default in place of each that cannot be read, and why
        these cannot.
    """
    faults = Faults()
    asked = Asked(
        workload=_workload(written, faults),
        targets=_targets(written, faults),
        weights_formats=_formats("--weights", written.weights, faults),
        kv_formats=_formats("--kv", written.kv, faults),
        batches=faults.read("--batch", written.batch, capped),
        prefill_batches=faults.read("--prefill-batch", written.prefill_batch, capped),
        prefill=faults.read("--prefill", written.prefill, one_of("policy", PREFILL_POLICIES)),
        objective=faults.read("--objective", written.objective, one_of("objective", OBJECTIVES))
        or "cost",
        options=solver_options(written, faults),
    )
    if written.json and written.quiet:
        faults.problems.append(Problem(where="--quiet", fact="cannot go with `--json`"))
    return asked, tuple(faults.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """What the options say of a draft model, which is still a name."""

    draft: str
    acceptance: float
    lookaheads: tuple[int, ...]
    convention: str


def read_drafting(written: Written) -> tuple[Drafting | None, tuple[Problem, ...]]:
    """The options of speculative decoding; they mean nothing without a draft."""
    faults = Faults()
    acceptance = faults.read("--acceptance", written.acceptance, _gap)
    lookaheads = faults.read("--lookahead", written.lookahead, batches)
    known = one_of("convention", CONVENTIONS)
    convention = faults.read("--speculation", written.speculation, known)
    if written.draft is None:
        said = (
            ("--acceptance", written.acceptance),
            ("--lookahead", written.lookahead),
            ("--speculation", written.speculation),
        )
        remedy = "name a model with `--draft`"
        faults.problems += [
            Problem(where=option, value=value, fact="there is no draft model", remedy=remedy)
            for option, value in said
            if value is not None
        ]
        return None, tuple(faults.problems)
    drafting = Drafting(
        draft=written.draft,
        acceptance=USUAL_ACCEPTANCE if acceptance is None else acceptance,
        lookaheads=lookaheads or USUAL_LOOKAHEADS,
        convention=convention or CONVENTIONS[0],
    )
    return drafting, tuple(faults.problems)


def read_allowed(written: Written) -> tuple[tuple[str, ...] | None, tuple[Problem, ...]]:
    """Formats that are allowed for everything, and what is wrong with them."""
    faults = Faults()
    allowed = _formats("--allow-formats", written.allow_formats, faults)
    for option, formats in (("--weights", written.weights), ("--kv", written.kv)):
        if allowed and formats:
            fact = "says which formats already: leave `--allow-formats` out"
            faults.problems.append(Problem(where=option, value=",".join(formats), fact=fact))
    return allowed, tuple(faults.problems)


def read_runtimes(
    written: Written, *, several: bool = False
) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """The runtimes that are named, each once; none where it is left to the planner.

    Serving engines may be of one program; what reads a model otherwise stands alone.

    Args:
        several: whether each makes a case of its own.
    """
    if written.engine is None:
        return (), ()
    names = tuple(dict.fromkeys(filter(None, (n.strip() for n in written.engine.split(",")))))
    alone = [name for name in names if name in LAYOUT_RUNTIMES]
    problems = []
    if not names:
        remedy = "leave it out, or write `--engine vllm`"
        problems.append(Problem(where="--engine", fact="names no engine", remedy=remedy))
    if alone and len(names) > 1 and not several:
        fact = f"`{alone[0]}` is compared with no engine in one program"
        remedy = "name it alone, or `plan compare --engine`"
        problems.append(Problem(where="--engine", value=written.engine, fact=fact, remedy=remedy))
    return names, tuple(problems)


def read_memory(written: Written) -> tuple[str, tuple[Problem, ...]]:
    """The rule for what has to fit under `erdil2025`, and what is wrong with it."""
    faults = Faults()
    rule = faults.read("--memory", written.memory, one_of("rule", MEMORY_RULES))
    return rule or MEMORY_RULES[0], tuple(faults.problems)


class Faults:
    """Reads one text after the other and keeps what is wrong with each."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def read(self, option: str, text: str | None, reader: Callable[[str], _T]) -> _T | None:
        if text is None:
            return None
        try:
            return reader(text)
        except UnitError as error:
            fact, remedy = error.fact, error.remedy
            problem = Problem(where=option, value=text, fact=fact, remedy=remedy)
            self.problems.append(problem)
            return None


def _workload(written: Written, faults: Faults) -> Workload:
    def tokens(text: str) -> int:
        return count(text, most=MOST_TOKENS)

    return Workload(
        n_input_tokens=faults.read("--input", written.input, tokens) or 1,
        n_output_tokens=faults.read("--output", written.output, tokens) or 1,
    )


def _targets(written: Written, faults: Faults) -> Targets:
    asked = {one: read_limit(one, written, faults) for one in limited()}
    rate = _demanded(written, faults)
    if rate is not None:
        asked[QUANTITIES["demand"]] = rate
    has_demand = asked[QUANTITIES["demand"]] is not None or written.rate is not None
    faults.problems += idle_utilisation(written.max_utilisation, has_demand=has_demand)
    fields: dict[str, Any] = {one.target: value for one, value in asked.items() if one.target}
    return Targets(
        **fields,
        further={
            one.name: value for one, value in asked.items() if value is not None and not one.target
        },
        max_utilisation=utilisation(written, faults),
        quality_loss_fraction=faults.read("--max-quality-loss", written.max_quality_loss, _gap),
        degrees=Degrees(
            tensor=faults.read("--tp", written.tp, count),
            pipeline=faults.read("--pp", written.pp, count),
            expert=faults.read("--ep", written.ep, count),
            data=faults.read("--dp", written.dp, count),
        ),
        layouts=faults.read("--layout", written.layout, layouts_of) or ANY_LAYOUTS,
    )


def read_limit(quantity: Quantity, written: object, faults: Faults) -> float | None:
    """What an option limits a quantity to, SI."""

    def reader(text: str) -> float:
        return count(text) if quantity.is_count else parse(text, quantity.dimension)

    return faults.read(quantity.option, getattr(written, quantity.argument), reader)


class SaysRate(Protocol):
    """Options of a command that has these."""

    @property
    def rate(self) -> object: ...
    @property
    def max_utilisation(self) -> str | None: ...


def utilisation(written: SaysRate, faults: Faults) -> float:
    """Share of their capacity that replicas serve at most: of a rate less than all."""
    share = faults.read("--max-utilisation", written.max_utilisation, _gap)
    if share is None:
        return USUAL_UTILISATION if written.rate else 1.0
    if not 0.0 < share <= 1.0:
        fact, value = "is no share of a capacity", str(written.max_utilisation)
        problem = Problem(where="--max-utilisation", value=value, fact=fact, remedy="write `85%`")
        faults.problems.append(problem)
        return 1.0
    return share


def idle_utilisation(text: str | None, *, has_demand: bool) -> Iterator[Problem]:
    """A share of the capacity that a demand may take, where there is none."""
    if text is not None and not has_demand:
        fact, remedy = "is of a demand, and there is none", "add `--rate 8req/s`, or leave it out"
        yield Problem(where="--max-utilisation", value=text, fact=fact, remedy=remedy)


def _demanded(written: Written, faults: Faults) -> float | None:
    """The demand that a rate of requests is: of all replicas together, on average [token/s]."""
    rate = faults.read("--rate", written.rate, lambda text: parse(text, "request/s"))
    if rate is None:
        return None
    if getattr(written, QUANTITIES["demand"].argument) is not None:
        fact, remedy = "and `--demand` say the same", "leave one of them out"
        faults.problems.append(
            Problem(where="--rate", value=str(written.rate), fact=fact, remedy=remedy)
        )
    faults.problems += unsaid_lengths(written)
    n_output = Faults().read("--output", written.output, count)  # its faults are told elsewhere
    return None if n_output is None else rate * n_output


class SaysLengths(Protocol):
    """Options of a command that has these."""

    @property
    def input(self) -> str | None: ...
    @property
    def output(self) -> str | None: ...


def unsaid_lengths(written: SaysLengths) -> Iterator[Problem]:
    """Lengths of requests that come at a rate: a paper's are no chat's."""
    for where, text in (("--input", written.input), ("--output", written.output)):
        if isinstance(text, Usual):
            fact = "is missing: a rate of requests says how much only with their lengths"
            remedy = "write `--input 1500 --output 300`, tokens that a request reads and writes"
            yield Problem(where=where, fact=fact, remedy=remedy)


class SaysHowToSolve(Protocol):
    """Options of a command that has these."""

    @property
    def solver(self) -> str: ...
    @property
    def time_limit(self) -> str | None: ...
    @property
    def gap(self) -> str: ...
    @property
    def threads(self) -> str: ...
    @property
    def seed(self) -> str: ...
    @property
    def proof(self) -> str: ...


def solver_options(written: SaysHowToSolve, faults: Faults) -> SolverOptions:
    def threads(text: str) -> int:
        return count(text, most=MOST_THREADS)

    def seed(text: str) -> int:
        return count(text, least=0, most=LARGEST_SEED)

    return SolverOptions(
        **sorts_of(written, faults),
        solver=faults.read("--solver", written.solver, one_of("solver", SOLVERS)) or "highs",
        time_limit_s=faults.read("--time-limit", written.time_limit, lambda t: parse(t, "s")),
        gap=faults.read("--gap", written.gap, _gap) or 0.0,
        threads=faults.read("--threads", written.threads, threads) or 1,
        seed=faults.read("--seed", written.seed, seed) or 0,
        proof=faults.read("--proof", written.proof, proof_of) or PROOFS[0],
    )


def sorts_of(written: object, faults: Faults) -> dict[str, Any]:
    """What is said of sorts of replicas, to a command that has such options."""
    price, most = getattr(written, "sort_price", None), getattr(written, "sorts", None)
    said = {
        "sort_price": faults.read("--sort-price", price, below_one("1%")),
        "most_sorts": faults.read("--sorts", most, count),
    }
    return {name: value for name, value in said.items() if value is not None}


def proof_of(text: str) -> Wanted:
    """How many provers are wanted."""
    return cast("Wanted", one_of("proof", PROOFS)(text))


def below_one(example: str) -> Callable[[str], float]:
    """A reader of a share below 1."""

    def reader(text: str) -> float:
        value = parse(text, "1", example=example, allow_zero=True)
        if value >= 1:
            remedy = f"write `{example}` or `{parse(example, '1'):g}`"
            raise UnitError(text, "is not below 1", remedy)
        return value

    return reader


def share_of(text: str) -> float:
    """A share of a device's memory: more than nothing, and not all of it."""
    parse(text, "1", example="92%")  # refuses zero
    return below_one("92%")(text)


def size_of(text: str) -> float:
    return parse(text, "B", example="2GiB", allow_zero=True)


def read_confidence(text: str | None, faults: Faults) -> float | None:
    """Share of cases in which what is planned holds; None where nobody asks for one."""
    return faults.read("--confidence", text, below_one("90%"))


loss_of = _gap = below_one("1%")


def price_of(text: str) -> float:
    """Rent of a device; a bare zero lacks more than its unit."""
    try:
        if float(text) <= 0:
            fact = "is zero" if float(text) == 0 else "is negative"
            raise UnitError(text, fact, "write a price above zero, like `$2.10/h`")
    except ValueError as error:
        if isinstance(error, UnitError):
            raise
    return parse(text, "USD/h")


def _formats(option: str, written: tuple[str, ...], faults: Faults) -> tuple[str, ...] | None:
    """Number formats of a list that commas, or repeated options, divide; each once."""
    known = one_of("number format", tuple(FORMAT_BYTES))
    words = [word.strip() for text in written for word in text.split(",")]
    formats = [faults.read(option, word, known) for word in dict.fromkeys(words)]
    return tuple(name for name in formats if name) or None


def one_of(what: str, allowed: tuple[str, ...]) -> Callable[[str], str]:
    """A reader of one of these words."""

    def reader(text: str) -> str:
        word = text.strip()
        if word in allowed:
            return word
        *some, last = allowed
        fact = f"no such {what}" if word else "is empty"
        near = _closest(word, allowed)
        remedy = f"did you mean `{near}`?" if near else f"it is {', '.join(some)} or {last}"
        raise UnitError(text, fact, remedy)

    return reader


def _closest(word: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    return next(iter(get_close_matches(word.lower(), known, n=1, cutoff=0.6)), "")
