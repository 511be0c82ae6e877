"""Which options mean something where: one table of options × commands × runtimes.

An option that a command has means what its help says, under every runtime, unless a row of
`REFUSALS` says otherwise: then it is refused by its name, with these words, before anything is
searched. Arguments of the library that no option sets stand in it by their own names.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.errors import Problem
from planner.quantities.table import QUANTITIES, limited
from planner.specs.options.table import named
from planner.specs.records.runtimes import ERDIL2025, LAYOUT_RUNTIMES, ROOFLINE, TABLE, is_table

ENGINES = "engines"
"""The family of all runtimes that are serving engines."""

LAYOUTS = (ROOFLINE.name, ERDIL2025.name)
DEGREES = ("--tp", "--pp", "--ep", "--dp")
OPTIONS_OF_ENGINES = (
    *named("engines passes"),
    *("--hit-rate", "--shared", "--samples", "--kv-offload", "--prefer"),
)
CONFIDENCE = "--confidence"
OF_DRAFTS = ("--draft", "--acceptance", "--lookahead")
LEAVE_OUT = "leave it out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Options that mean nothing to a command, or under a runtime.

    Args:
        options: as they are typed.
        fact, remedy: why, and what to do instead.
        commands: that refuse them; all that have them where empty.
        families: of runtimes under which they are refused; whatever the runtime where empty.
    """

    options: tuple[str, ...]
    fact: str
    remedy: str = LEAVE_OUT
    commands: tuple[str, ...] = ()
    families: tuple[str, ...] = ()


OF_FLEETS = ("--batch", "--chunk", CONFIDENCE, "--roles")
"""What a fleet may be told of its replicas, and some runtimes do not have."""

REFUSALS = (
    Refusal(
        options=named("roles sorts"),
        commands=("repair",),
        fact="is of a placement that is made anew",
        remedy="`plan place` has it",
    ),
    Refusal(
        options=named("roles sorts"),
        families=(ERDIL2025.name,),
        fact="knows decode only, of replicas that are all alike",
        remedy="write `roofline`, or engines",
    ),
    Refusal(
        options=(*(one.option for one in limited()), "--rate", "--max-quality-loss"),
        commands=("audit",),
        fact="means nothing to an audit",
        remedy="`plan` finds what keeps it",
    ),
    Refusal(
        options=(
            *("--objective", "--prefill", "--prefill-batch", "--gap", "--memory"),
            *("--variants", "--confidence", "--prefer", "--activations"),
            *(name for name in named("passes") if name != "--chunk"),
        ),
        commands=("audit",),
        fact="means nothing to an audit",
    ),
    Refusal(
        options=DEGREES,
        commands=("audit",),
        families=(ROOFLINE.name,),
        fact="means nothing to an audit of layouts",
        remedy="`--devices` says how many are in use",
    ),
    Refusal(
        options=("--utilization",),
        commands=("audit",),
        families=(ENGINES, ERDIL2025.name),
        fact="is not of an engine's audit",
        remedy="say how many run: `--batch`, on each rank",
    ),
    Refusal(
        options=("--measured",),
        commands=("audit",),
        families=LAYOUTS,
        fact="is a run of a serving engine",
        remedy="name it: `--engine vllm`; or say `--speed` and `--batch`",
    ),
    Refusal(
        options=("--devices",),
        commands=("audit",),
        families=(ENGINES, ERDIL2025.name),
        fact="is not of an engine's audit",
        remedy="degrees say it: `--tp`, `--pp`, `--dp`",
    ),
    Refusal(
        options=(*OF_DRAFTS, "--speculation", "--allow-formats"),
        commands=("audit",),
        families=(ENGINES, ERDIL2025.name),
        fact="is not of an engine's audit",
        remedy="`plan --engine …` chooses drafts, and formats",
    ),
    Refusal(
        options=("--max-cost",),
        commands=("place", "repair"),
        fact="is of one deployment, and a placement has several",
        remedy="limit what they cost together: `--max-rent`",
    ),
    Refusal(
        options=tuple(one.option for one in limited()),
        commands=("predict",),
        fact="limits nothing where the deployment is given",
        remedy="`plan` finds what keeps it",
    ),
    Refusal(
        options=(
            *("--device", "--rate", "--in-flight", "--waves", "--client", "--polled", "--experts"),
            *("--explain", "--redundant-experts", "--role", "--expert-devices", *OF_DRAFTS),
        ),
        commands=("predict",),
        families=LAYOUTS,
        fact="means nothing without a serving engine",
        remedy="name one: `--engine vllm`",
    ),
    Refusal(
        options=("--engine",),
        commands=("place", "repair"),
        families=(ERDIL2025.name,),
        fact="knows decode only, and places nothing",
        remedy="write `roofline`, or engines",
    ),
    *(
        Refusal(
            options=(QUANTITIES[name].option,),
            commands=("fleet",),
            fact="is a mean, and a fleet keeps percentiles",
            remedy=f"write `--{name}-p95 {{value}}`, or another percentile",
        )
        for name in ("tpot", "ttft")
    ),
    Refusal(
        options=("--engine",),
        commands=("fleet",),
        families=(ERDIL2025.name,),
        fact="knows decode only, and a fleet keeps targets of whole requests",
        remedy="write `roofline`, or name engines: `--engine vllm`",
    ),
    Refusal(
        options=named("roles"),
        commands=("fleet",),
        families=(ROOFLINE.name, TABLE),
        fact="is of engines in a fleet: other replicas do both phases there",
        remedy="name engines: `--engine vllm`",
    ),
    Refusal(options=("--expert-devices",), commands=("fleet",), fact="is of placements alone"),
    Refusal(
        options=("--engine",),
        commands=("pareto", "compare", "audit", "predict"),
        families=(TABLE,),
        fact="lists replicas, which are placed",
        remedy="write `plan --engine {value}`, or `plan place`",
    ),
    Refusal(
        options=(
            *("--batch", "--layout", "--prefill", "--prefill-batch", "--memory", "--speculation"),
            *("--activations", *DEGREES, *OPTIONS_OF_ENGINES, CONFIDENCE, *OF_DRAFTS),
        ),
        families=(TABLE,),
        fact="means nothing to a table: each row says how it runs, its times and its batch",
    ),
    Refusal(
        options=("--objective",),
        commands=("pareto",),
        fact="a frontier has two objectives, `--x` and `--y`",
        remedy="write `--y {value}`, or `--x`",
    ),
    Refusal(options=("--gap",), commands=("pareto",), fact="a frontier is proved without a gap"),
    Refusal(
        options=OPTIONS_OF_ENGINES,
        families=LAYOUTS,
        fact="means nothing without a serving engine",
        remedy="name one: `--engine vllm`",
    ),
    Refusal(
        options=(CONFIDENCE,),
        families=(ERDIL2025.name,),
        fact="has no interval: nobody measured anything beside the reference model",
        remedy="write `--engine roofline`, or name an engine",
    ),
    Refusal(
        options=("--memory",),
        families=(ROOFLINE.name, ENGINES),
        fact="is a choice of `--engine erdil2025` only",
    ),
    Refusal(
        options=("--prefill", "--prefill-batch"),
        families=(ERDIL2025.name,),
        fact="the reference model knows decode only",
    ),
    Refusal(
        options=("--dp",),
        families=(ERDIL2025.name,),
        fact="the reference model has no copies of attention",
    ),
    Refusal(
        options=("--layout", "--activations"),
        families=(ERDIL2025.name,),
        fact="the reference model has one layout, and activations as the model's file says",
    ),
    Refusal(
        options=("--variants",),
        families=(ERDIL2025.name, TABLE),
        fact="are chosen among by other runtimes",
        remedy="name one, like `--engine roofline`",
    ),
    Refusal(
        options=("--speculation",),
        families=(ENGINES,),
        fact="engines score what they draft and one more token",
    ),
    Refusal(
        options=("--layout",),
        families=(ENGINES,),
        fact="engines have one layout, cut by `--tp`, `--pp`, `--dp` and `--ep`",
    ),
    Refusal(
        options=("--prefill", "--prefill-batch"),
        families=(ENGINES,),
        fact="engines read prompts between decode passes: `--chunk` says how much at once",
        remedy="leave it out, or write `--engine roofline`",
    ),
    Refusal(
        options=("--allow-formats",),
        families=(ENGINES,),
        fact="is of layouts",
        remedy="name formats with `--weights` and `--kv`",
    ),
    Refusal(
        options=("speculation",),
        families=(ENGINES,),
        fact="is of layouts",
        remedy="engines take `drafting`",
    ),
    Refusal(
        options=("drafting",),
        families=LAYOUTS,
        fact="is of engines",
        remedy="layouts take `speculation`",
    ),
)
"""Options that a command has, or that one may look for there, and that mean nothing to it."""


def family_of(runtime: str) -> str:
    """A runtime's family: its own name, `table`, or `engines`."""
    if is_table(runtime):
        return TABLE
    return runtime if runtime in LAYOUT_RUNTIMES else ENGINES


def refused_by(command: str) -> dict[str, Refusal]:
    """Options that a command refuses whatever the runtime."""
    rows = (row for row in REFUSALS if command in row.commands and not row.families)
    return {option: row for row in rows for option in row.options}


def refusal_under(runtime: str, option: str, command: str = "plan") -> Refusal | None:
    """Why an option means nothing under a runtime, to a command that has it; None where it does."""
    family = family_of(runtime)
    for row in REFUSALS:
        is_of_command = not row.commands or command in row.commands
        if option in row.options and family in row.families and is_of_command:
            return row
    return None


def misplaced(
    said: Mapping[str, str], runtimes: Sequence[str], command: str = "plan"
) -> Iterator[Problem]:
    """Options that are said and mean nothing under one of the runtimes, each once.

    Args:
        said: options and what they were given, as text.
    """
    for option, value in said.items():
        rows = (refusal_under(runtime, option, command) for runtime in runtimes)
        row = next(filter(None, rows), None)
        if row is not None:
            yield problem_of(row, option, value)


def problem_of(row: Refusal, option: str, value: str = "") -> Problem:
    remedy = row.remedy.format(value=value or "WHAT")
    return Problem(where=option, value=value, fact=row.fact, remedy=remedy)
