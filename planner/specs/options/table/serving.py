"""Options that say what is served, measured, placed or verified, and where."""

from planner.specs.options import counts, readers, readers as read
from planner.specs.options.option import ON_SERVERS, Option
from planner.specs.records.devices import STORES
from planner.specs.records.runtimes import ENGINES as RUNNING

SURVEYS = ("pareto", "compare")
LISTED, EITHER = ", ".join(RUNNING), f"{', '.join(RUNNING[:-1])} or {RUNNING[-1]}"

MODELS = (
    Option(
        "--model NAME|FILE",
        "Model to serve, or a `config.json`; see `plan models`.",
        usual="palm-540b",
    ),
    Option(
        "--model NAME|FILE,…",
        "Models to serve; see `plan models`.",
        read.names,
        of=SURVEYS,
        usual="palm-540b",
    ),
    Option(
        "--model NAME|FILE",
        "Model to serve; again for others of which any may serve.",
        of=("fleet",),
        gathers=readers.each,
    ),
    Option(
        "--model NAME|FILE",
        "Model to serve; again for each further one.",
        of=ON_SERVERS,
        gathers=readers.each,
    ),
    Option(
        "--variants NAME|FILE,…",
        "Variants of the model that may be served in its place; all: every one that is known.",
        gathers=readers.listed,
    ),
)

POOLS = (
    Option(
        "--topology NAME|FILE",
        "Pool of devices to serve it on; see `plan topologies`.",
        usual="tpu-v4-4x8x8",
    ),
    Option(
        "--topology NAME|FILE,…",
        "Pools of devices to serve them on; see `plan topologies`.",
        read.names,
        of=SURVEYS,
        usual="tpu-v4-4x8x8",
    ),
    Option("--topology NAME|FILE", "Pool of devices; see `plan topologies`.", of=("predict",)),
    Option(
        "--topology NAME|FILE",
        "Servers, a fabric of leaves, or a torus; default: h100-fat-tree-x64.",
        of=("fleet", *ON_SERVERS),
    ),
    Option("--device NAME|FILE", "Device, in its usual servers; or else a topology."),
    Option("--state FILE", "What is busy, failed, reserved, slow or down.", example="state.toml"),
    Option(
        "--state FILE",
        "What is busy, failed, reserved, slow or down.",
        of=("repair",),
        required="name what has failed: `--state state.toml`",
        example="state.toml",
    ),
    Option(
        "--count KIND=N",
        "Most devices of a kind; default: all that there are.",
        gathers=readers.by_name(counts.count, what="KIND"),
    ),
    Option(
        "--price PRICE",
        "Rent of a device, like '$2.10/h'; of some kinds KIND=PRICE; default: its file.",
        gathers=readers.by_name(read.price, what="KIND", divided=True),
        sets="ClusterSpec.usd_per_hour",
    ),
    Option(
        "--groups GROUPS",
        "Groups of devices or topologies: h100-sxm:tp8x2,a100-80gb:tp4x3",
        required="write `--groups h100-sxm:tp8x2,a100-80gb:tp4x3`",
        sets="groups",
    ),
)

RUNTIMES = (
    Option(
        "--engine NAME|FILE",
        f"{EITHER}; roofline, layouts; or erdil2025, decode only. [vllm, or roofline where no "
        "engine was measured]",
        of=("predict",),
    ),
    Option(
        "--engine NAME|FILE",
        f"{EITHER}.",
        of=("stages",),
        usual="vllm",
        sets="engine",
    ),
    Option(
        "--engine NAMES",
        f"{LISTED}: by measured kernels; roofline; or table:FILE, a CSV of replicas; "
        "several: the best for each replica; default: the engines that were measured on a kind, "
        "else roofline.",
        of=ON_SERVERS,
        gathers=readers.listed,
    ),
)

ENGINES = (
    Option(
        "--expert-loads FILE|S",
        "Load of each expert, as `plan experts` reads it, or k^-S of the k-th; 0: all alike.",
    ),
    Option(
        "--experts-backend NAME",
        "Program for routed experts, as the engine names it; default: the engine's own.",
        sets="experts_backend",
    ),
    Option(
        "--memory-fraction FRACTION",
        "Share of a device's memory that an engine may take; default: its file.",
        read.memory_share,
    ),
    Option(
        "--workspace SIZE",
        "Of that share what is the engine's own, like 2GiB; default: its file.",
        read.size,
    ),
    Option(
        "--rules FILE",
        "Rules that an engine is lifted of, or has besides; see `plan engines NAME`.",
    ),
)

REQUESTS = (
    Option(
        "--input TOKENS",
        "Tokens that a request reads.",
        counts.tokens,
        usual="2048",
        sets="Workload.n_input_tokens",
    ),
    Option(
        "--output TOKENS",
        "Tokens that a request writes.",
        counts.tokens,
        usual="64",
        sets="Workload.n_output_tokens",
    ),
    Option(
        "--input TOKENS",
        "Tokens that requests read: 1500, lognormal:1500:p99=8000, uniform:100:2000, "
        "exponential:1500, percentiles:p50=900:max=9000 or cdf:FILE.",
        read.later("specs.traffic.texts.tokens_of"),
        of=("fleet",),
    ),
    Option(
        "--output TOKENS",
        "Tokens that requests write, in the same way.",
        read.later("specs.traffic.texts.tokens_of"),
        of=("fleet",),
    ),
    Option(
        "--hit-rate FRACTION",
        "Share of the input that a request finds cached, like an earlier turn; it holds it, too.",
        read.most_cases,
        sets="Workload.hit_fraction",
    ),
    Option(
        "--shared TOKENS",
        "First tokens of all prompts: whole blocks are held once a rank, and read once.",
        counts.count_or_none,
        usual="0",
        sets="Workload.n_shared_tokens",
    ),
    Option(
        "--samples N",
        "Answers drawn from each prompt, which is read and held once; `--batch` counts answers.",
        counts.count,
        usual="1",
        sets="Workload.n_samples",
    ),
    Option(
        "--kv-offload STORE",
        "Where hits lie beyond what is shared, to be fetched: `host`, the memory of the server.",
        read.one_of("store", STORES),
        usual=STORES[0],
        sets="Workload.offload",
    ),
    Option(
        "--rate RATE",
        "Requests that arrive at random times, like 4req/s; `--batch` places.",
        read.requests_per_s,
        of=("predict",),
    ),
    Option(
        "--rate RATE",
        "Requests that arrive, like 8req/s; default: the trace's.",
        read.requests_per_s,
        of=("fleet",),
    ),
    Option(
        "--in-flight N",
        "Requests in flight on all ranks together, a closed loop.",
        counts.count,
        example="64",
    ),
    Option(
        "--waves N",
        "Requests of each place, first ones at once, lengths vary by 6%; default: endless.",
        counts.count,
        needs="--in-flight",
    ),
)

TRAFFIC = (
    Option("--traffic FILE", "Classes of traffic, and kinds of devices: in place of one class."),
    Option("--trace FILE", "Requests as they came, CSV or JSONL: lengths, arrivals and rate."),
    Option(
        "--arrivals HOW",
        "poisson, cv2:4, constant or trace. [poisson; with a trace: trace]",
        read.later("specs.traffic.texts.arrivals_of"),
    ),
)

FILES = (
    Option(
        "--placement FILE",
        "What stands: the JSON of `plan place` or `plan repair`.",
        required="name what `plan place … --json` wrote",
        lack="no placement is given",
    ),
    Option(
        "--machines FILE",
        "Machines: token/s by layers held, links; see examples/machines",
        required="write `plan layers FILE`; see examples/machines",
        lack="names no file",
    ),
    Option(
        "--sweep FILE",
        "Requests: a grid, a list or both; see examples/sweep.toml",
        required="name one, like `plan sweep examples/sweep.toml`",
        lack="no file is given",
    ),
    Option("NAME", "The one to describe; without it, list them all."),
)

SERVED = (*MODELS, *POOLS, *RUNTIMES, *ENGINES, *REQUESTS, *TRAFFIC, *FILES)

VERIFIED = (
    Option(
        "--answer FILE",
        "The answer: what a command with --json wrote.",
        required="name what a command with `--json` wrote",
        lack="no answer is given",
    ),
    Option("--prove", "Search again: bounds, candidates, and what looser limits gain."),
    Option(
        "--time-limit TIME",
        "Of all searches together. [of each, that of its request]",
        read.seconds,
        of=("verify",),
        needs="--prove",
    ),
)
