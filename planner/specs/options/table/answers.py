"""Options that say how long to solve, how sure to be, and what to print or write."""

from planner.specs.options import counts, readers as read
from planner.specs.options.option import Option, new_file

SEARCHES = (
    Option(
        "--solver NAME",
        "highs, cpsat or exhaustive.",
        read.word_of("solver", "specs.ask.targets.SOLVERS"),
        usual="highs",
        sets="SolverOptions.solver",
    ),
    Option(
        "--time-limit TIME",
        "Stop after this, with the best so far and its gap, like 10s.",
        read.seconds,
        sets="SolverOptions.time_limit_s",
        example="10s",
    ),
    Option(
        "--time-limit TIME",
        "Stop after this, with the best so far and its gap.",
        read.seconds,
        of=("place", "repair", "experts"),
        usual="60s",
        sets="SolverOptions.time_limit_s",
        example="10s",
    ),
    Option(
        "--gap FRACTION",
        "Distance to the optimum that is good enough, like 1%.",
        read.few_percent,
        usual="0",
        sets="SolverOptions.gap",
        example="1%",
    ),
    Option(
        "--gap FRACTION",
        "Distance to the bound that is good enough.",
        read.share,
        of=("experts",),
        usual="0.1%",
        sets="SolverOptions.gap",
    ),
    Option(
        "--gap FRACTION",
        "Stop when nothing can be better by more than this.",
        read.share,
        of=("layers",),
        usual="0.01%",
        sets="SolverOptions.gap",
    ),
    Option(
        "--threads N",
        "Threads of the solver.",
        counts.threads,
        usual="1",
        sets="SolverOptions.threads",
    ),
    Option(
        "--seed N",
        "Seed of the solver, and of what is drawn.",
        counts.seed,
        usual="0",
        sets="SolverOptions.seed",
    ),
    Option(
        "--proof HOW",
        "two: nothing is called optimal on one solver's word; or one.",
        read.word_of("proof", "specs.ask.targets.PROOFS"),
        usual="two",
        sets="SolverOptions.proof",
    ),
)

SOLVER = (
    Option(
        "--simulated N",
        "Requests that the fleet is tried on, one by one.",
        counts.count,
        usual="20000",
        sets="n_simulated",
    ),
    *SEARCHES,
    Option(
        "--keep-program FILE",
        "Leave the program as MPS: that on which provers disagree, if any.",
        new_file,
    ),
    Option(
        "--workers N",
        "Processes that share the requests. [one a core]",
        counts.threads,
        of=("sweep",),
    ),
    Option("--dask ADDRESS", "Scheduler of a Dask cluster that shares them, like tcp://h:8786."),
)

OUTPUT = (
    Option(
        "--staircase RANGE",
        "The least rent of each rate of requests too, like 1:200req/s.",
        read.rates,
        example="1:200req/s",
    ),
    Option(
        "--workers N",
        "Processes that climb the staircase.",
        counts.threads,
        usual="1",
        needs="--staircase",
    ),
    Option("--folder DIR", "Where rows are kept as they come, and found again. [FILE.rows]"),
    Option(
        "--parts FORMAT",
        "Format of the rows: jsonl or parquet.",
        read.one_of("format", ("jsonl", "parquet")),
        usual="jsonl",
    ),
    Option(
        "--keep WHAT",
        "answers: each whole one too, as JSON for `plan verify`.",
        read.one_of("thing to keep", ("rows", "answers")),
    ),
    Option("--output FILE", "Write the constants as a kernel file.", new_file, of=("calibrate",)),
    Option(
        "--output FILE", "Write the table, which `plan calibrate` reads.", new_file, of=("measure",)
    ),
    Option("--network FILE", "Write collectives as sections of a topology file.", new_file),
    Option("--plot FILE", "Draw predicted against measured time, as SVG.", new_file),
    Option("--refused", "Name every row that was refused."),
    Option("--explain", "Trace each operation to its formula, constants and source."),
    Option("--list", "Name the tables, and answer none."),
    Option("--all", "Print every point, or rank."),
    Option("--ranks", "Print every rank and its device."),
    Option("--html FILE", "Draw it as a page that needs nothing else.", new_file),
    Option("--svg FILE", "Write the drawing alone.", new_file),
    Option("--csv FILE|-", "Write every point, pool or step as CSV; - to stdout.", new_file),
    Option("--json", "Print it as JSON, in SI units."),
    Option("--quiet", "Print it in one line."),
)
