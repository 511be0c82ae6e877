"""Commands, and the names of their options; what these are `options.toml` says."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from planner.quantities.table import placed
from planner.specs.options.meanings import OF_DRAFTS, refused_by
from planner.specs.options.option import Option
from planner.specs.options.table import HEADINGS, named, option_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command.

    Args:
        module: of `planner.commands` that has the function of this name.
        usage: what follows its name, for help.
        words: what it does, for help.
        names: of its options.
        word: the option whose value may stand alone.
        keeps: options that are as they were before where they are left out, whatever is usual.
    """

    module: str
    usage: str
    words: str
    names: tuple[str, ...]
    word: str = ""
    keeps: tuple[str, ...] = ()


_POOL = ("--model", "--topology", "--input", "--output", "--price")
_REUSE = ("--hit-rate", "--shared", "--samples")
_ENGINE = ("--memory-fraction", "--workspace", "--rules", "--calibration")
_PROGRAM = ("--keep-program",)
RUN_OPTIONS = (
    *("--model", "--device", "--topology", "--engine", "--tp", "--pp", "--dp", "--ep"),
    *("--weights", "--experts", "--kv", "--chunk", "--polled", "--experts-backend"),
    *("--expert-loads", "--hit-rate", "--shared", *_ENGINE[:-1]),
)
"""What serving runs may leave to options, as `plan predict` has them, in the order of commands."""

_PRINT = ("--html", "--json", "--quiet")

_OF_EVERY_PLAN = (
    *named("limits demands models engines degrees drafts batches passes fitting searches"),
    *(*_POOL, "--engine", "--objective", "--prefer", "--weights", "--kv", "--activations"),
    *("--allow-formats", *_REUSE, "--kv-offload", *_PROGRAM, *_PRINT),
)
_ASKED_OF_PLACEMENTS = (
    *(one.option for one in placed("each", "all")),
    *named("demands roles sorts"),
    *(*_ENGINE, *_POOL, *_REUSE, "--engine", "--objective", "--replica-devices"),
    *("--weights", "--kv", "--batch", "--solver", "--gap", "--threads", "--seed", "--proof"),
)
_OF_PLACEMENTS = (
    *_ASKED_OF_PLACEMENTS,
    *("--state", "--align", "--time-limit", *_PROGRAM, "--ranks", "--svg", *_PRINT),
)

COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "plan": Command(
            module="plan",
            usage="[OPTIONS]",
            words="Find the deployment of a language model that is provably best, and its proof.",
            names=(*_OF_EVERY_PLAN, *named("roles sorts")),
        ),
        "pareto": Command(
            module="plan",
            usage="[OPTIONS]",
            words="Find every deployment that is the best for some worth of speed: the exact "
            "frontier.",
            names=(*_OF_EVERY_PLAN, *named("axes"), "--by", "--all", "--csv"),
        ),
        "compare": Command(
            module="plan",
            usage="[OPTIONS]",
            words="Set the best plans of several models, pools, formats or roles side by side.",
            names=(*_OF_EVERY_PLAN, *named("roles"), "--by"),
        ),
        "audit": Command(
            module="audit",
            usage="[OPTIONS]",
            words="Say how far a running deployment is from what its pool could do, and what would "
            "help.",
            names=(*_OF_EVERY_PLAN, *named("audited")),
        ),
        "predict": Command(
            module="predict",
            usage="[OPTIONS]",
            words="Evaluate a deployment as given: times, work and bounds of every operation, "
            "memory.",
            names=(
                *named("engines requests degrees"),
                *("--model", "--device", "--topology", "--engine", "--redundant-experts"),
                *("--batch", "--prefill-batch", "--weights", "--experts", "--kv", "--chunk"),
                *("--role", "--expert-devices", "--micro-batches", "--overlap"),
                *(*OF_DRAFTS, "--explain", *_PRINT),
            ),
        ),
        "stages": Command(
            module="experts",
            usage="--groups GROUPS [OPTIONS]",
            words="Cut a model into pipeline stages on groups of unequal kinds, provably best.",
            names=(
                *("--model", "--groups", "--engine", "--input", "--output", "--phase", "--batch"),
                *("--micro-batches", "--weights", "--experts", "--kv", "--objective", "--solver"),
                *("--time-limit", "--proof", *_PROGRAM, *_PRINT),
            ),
        ),
        "layers": Command(
            module="experts",
            usage="FILE [OPTIONS]",
            words="Place layers on mixed machines for the most tokens a second, with a bound on "
            "any way.",
            names=("--machines", "--gap", "--time-limit", "--proof", *_PROGRAM, *_PRINT),
            word="--machines",
        ),
        "fleet": Command(
            module="fleet",
            usage="[FILE] [OPTIONS]",
            words="Find the cheapest fleet that serves traffic within percentiles, and try it by "
            "simulation.",
            names=(
                *(one.option for one in placed("all")),
                *named("traffic percentiles roles sorts searches"),
                *(*_ENGINE, *_POOL, "--rate", "--state", "--count", "--max-quality-loss"),
                *("--engine", "--weights", "--kv", "--batch", "--chunk", "--replica-devices"),
                *("--cuts", "--no-sharing", "--router", "--confidence", "--simulated"),
                *("--staircase", "--workers", "--csv", *_PRINT),
            ),
            word="--traffic",
        ),
        "place": Command(
            module="placements",
            usage="--model NAME [OPTIONS]",
            words="Choose replicas, layouts and devices together, on a cluster as it is.",
            names=(*_OF_PLACEMENTS, *named("degrees"), "--prefer"),
        ),
        "repair": Command(
            module="placements",
            usage="FILE --state FILE [OPTIONS]",
            words="Put what stands right after a failure, with the fewest moved bytes within a "
            "loss.",
            names=(*_OF_PLACEMENTS, "--placement", "--loss"),
            word="--placement",
            keeps=_ASKED_OF_PLACEMENTS,
        ),
        "sweep": Command(
            module="sweep",
            usage="FILE [OPTIONS]",
            words="Answer many requests, on all cores or a cluster, and keep each answer as a row.",
            names=("--sweep", "--workers", "--dask", "--folder", "--parts", "--keep", "--html"),
            word="--sweep",
        ),
        "reproduce": Command(
            module="reproduce",
            usage="[NAME] [OPTIONS]",
            words="Answer tables of papers by ordinary requests, and set each figure beside what "
            "is printed.",
            names=("NAME", "--list", "--csv", "--html"),
            word="NAME",
        ),
        "verify": Command(
            module="reproduce",
            usage="FILE [OPTIONS]",
            words="Count a saved answer anew, from the request that is in it: is every figure so?",
            names=(*named("verified"), *_PRINT),
            word="--answer",
        ),
        "measure": Command(
            module="measure",
            usage="[OPTIONS]",
            words="Time kernels of this machine with PyTorch, for `plan calibrate` to fit.",
            names=(*named("timing kernels"), "--device", "--output"),
        ),
        "calibrate": Command(
            module="measure",
            usage="FILE... [OPTIONS]",
            words="Fit kernels to measured times, or an engine to your own serving runs, and say "
            "how far to trust them.",
            names=(
                *named("tables"),
                *RUN_OPTIONS,
                *("--output", "--network", "--plot", "--refused"),
            ),
            word="--table",
        ),
        "experts": Command(
            module="experts",
            usage="[OPTIONS]",
            words="Place and replicate experts on ranks: least load of the fullest, with its "
            "bound.",
            names=(
                *named("loads ranks balance"),
                *("--gap", "--time-limit", "--seed", "--proof", *_PROGRAM, "--all", *_PRINT),
            ),
        ),
        **{
            name: Command(
                module="catalogue",
                usage="[NAME] [OPTIONS]",
                words=words,
                names=("NAME", "--html", *more),
                word="NAME",
            )
            for name, words, more in (
                ("models", "List models, or describe one.", ()),
                ("topologies", "List topologies, or describe one.", ()),
                ("devices", "List devices, or describe one.", ("--json",)),
                (
                    "engines",
                    "List serving engines, or describe one with the rules of what it starts.",
                    ("--json",),
                ),
            )
        },
    }
)


@cache
def options_of(command: str) -> Mapping[str, Option]:
    """The options that a command has, by name, in the order of help."""
    refused = refused_by(command)
    names = {name for name in COMMANDS[command].names if name not in refused}
    order = dict.fromkeys(row.name for rows in HEADINGS.values() for row in rows)
    return {name: option_of(command, name) for name in order if name in names}


def called(command: str) -> str:
    return "plan" if command == "plan" else f"plan {command}"


@cache
def owners() -> Mapping[str, str]:
    """The options of all commands, each with the first command that has it."""
    owner_of: dict[str, str] = {}
    for command in COMMANDS:
        for name in options_of(command):
            owner_of.setdefault(name, called(command))
    return owner_of


def typed(argument: str) -> str:
    """An option by its name in Python, or without dashes, as it is typed.

    >>> typed("max_cost"), typed("max-cost"), typed("ttft_p99_9")
    ('--max-cost', '--max-cost', '--ttft-p99.9')
    """
    name = argument.replace("_", "-")
    return next((one for one in owners() if one[2:].replace(".", "-") == name), f"--{name}")
