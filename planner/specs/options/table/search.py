"""Options that say among what a search chooses, and what it is to find."""

from planner.quantities.table import objectives
from planner.specs.options import counts, readers, readers as read
from planner.specs.options.option import ON_SERVERS, Option, as_written
from planner.specs.options.table import deployed
from planner.specs.options.table.serving import LISTED

_OBJECTIVES = f"{', '.join(objectives()[:-1])} or {objectives()[-1]}"

DEGREES = (
    Option("--tp N", "Devices that divide attention.", counts.count, sets="Degrees.tensor"),
    Option("--pp N", "Pipeline stages.", counts.count, sets="Degrees.pipeline"),
    Option(
        "--layout PHASE=NAME,…",
        "Layouts of phases: prefill=WGXYZ,decode=WS2D/batch. WS1D/heads/4 cuts a pass of a "
        "pipeline into 4 parts.",
        read.later("specs.ask.targets.layouts_of"),
        sets="Targets.layouts",
        example="decode=WS2D",
    ),
    Option("--ep N", "Devices that divide the experts.", counts.count, sets="Degrees.expert"),
    Option(
        "--dp N", "Copies of attention, of models with experts.", counts.count, sets="Degrees.data"
    ),
)

OBJECTIVES = (
    Option(
        "--objective WHAT",
        f"What to optimise: {_OBJECTIVES}.",
        read.word_of("objective", "specs.ask.targets.OBJECTIVES"),
        usual="cost",
        sets="objective",
        writes=as_written,
    ),
    Option(
        "--objective WHAT",
        "throughput, share (of the demand served worst), rent, devices, latency or cost; default: "
        "rent where every model has a demand, else throughput.",
        read.word_of("objective", "specs.ask.placement.OBJECTIVES"),
        of=ON_SERVERS,
        sets="objective",
    ),
    Option(
        "--objective WHAT",
        "bottleneck: the slowest stage; latency: a pass through all.",
        read.word_of("objective", "tools.staging.asking.OBJECTIVES"),
        of=("stages",),
        usual="bottleneck",
        sets="objective",
    ),
    Option(
        "--prefer WHAT",
        "simplest: of an engine's plans closer than their error, the one with fewest devices; or "
        "objective, to the last percent. [simplest; of placements objective]",
        read.word_of("preference", "specs.ask.engine.PREFERENCES"),
        sets="prefer",
        writes=as_written,
    ),
)

AXES = (
    Option(
        "--x WHAT",
        "What to keep short: latency or ttft.",
        read.word_of("axis", "results.surveys.X_AXES"),
        usual="latency",
        sets="x",
    ),
    Option(
        "--y WHAT",
        "What to set against it: cost, rent or throughput; of an engine device-throughput.",
        read.word_of("axis", "results.surveys.Y_AXES"),
        usual="cost",
        sets="y",
    ),
    Option(
        "--alpha NUMBER",
        "The preferred point has the largest speed^alpha / price.",
        read.alpha,
        usual="3",
        sets="alpha",
    ),
)

FORMATS = (
    Option(
        "--weights FORMATS",
        "Weights formats to choose from, like bf16,int8; default: as published.",
        gathers=read.number_formats,
        sets="weights_formats",
        example="bf16,int8",
    ),
    Option(
        "--kv FORMATS",
        "KV cache formats to choose from; default: as published.",
        gathers=read.number_formats,
        sets="kv_formats",
    ),
    Option(
        "--allow-formats FORMATS",
        "Formats that weights and KV cache may take, like bf16,fp8.",
        gathers=readers.words_of("number format", "specs.records.devices.FORMAT_BYTES"),
        sets="allowed_formats",
    ),
    Option(
        "--by WHAT",
        "A case for each: weights, format of these; formats, pair with one of the KV cache.",
        read.one_of("way to divide", ("weights", "formats")),
        sets="by",
    ),
)

DRAFTS = (
    Option(
        "--draft NAME|FILE",
        "Draft model that decode may use, or leave; of an engine mtp, eagle or medusa.",
        example="eagle",
    ),
    Option(
        "--acceptance P|FILE",
        "Probability that a drafted token is accepted; of an engine by position too, like "
        "0.85,0.5; or a CSV of what both models give to tokens: context, token, target, draft. "
        "[0.8; of an engine as published for its drafter]",
        sets="Speculation.acceptance",
        needs="--draft",
    ),
    Option(
        "--lookahead TOKENS",
        "Tokens drafted at once to choose from. [2:5]",
        counts.batches,
        sets="Speculation.lookaheads",
        needs="--draft",
    ),
    Option(
        "--speculation HOW",
        "usual: g drafted, g+1 scored. capped: g drafted, g scored. [usual]",
        read.word_of("convention", "specs.ask.targets.CONVENTIONS"),
        sets="Speculation.convention",
        needs="--draft",
    ),
)

OF_ENGINES = (
    Option(
        "--chunk TOKENS",
        "Most tokens of a pass to choose from, of an engine.",
        counts.batches,
        sets="chunks",
    ),
    Option(
        "--overlap HOW",
        "none,two-batch: an engine may hide messages behind another micro-batch. [none]",
        gathers=readers.words_of("overlap", "specs.ask.engine.OVERLAPS"),
        sets="overlaps",
        writes=",".join,
    ),
)
"""Passes of an engine."""

PASSES = (
    Option(
        "--batch BATCHES",
        "Decode batches to choose from: up to 64, or 16:128:8 or 1,2,4.",
        counts.capped,
        usual="1024",
        sets="batches",
        example="1:1024",
    ),
    Option(
        "--batch BATCHES",
        "Most sequences of a rank to choose from, like 256 or 64,256.",
        counts.batches,
        of=("fleet",),
        sets="batches",
    ),
    Option(
        "--prefill-batch N",
        "Prompts of a prefill pass, of layouts. [as `--batch`]",
        counts.count,
        of=("predict",),
    ),
    Option(
        "--prefill-batch BATCHES",
        "Prefill batches to choose from; default: as `--prefill` says.",
        counts.capped,
        sets="prefill_batches",
    ),
    Option(
        "--prefill POLICY",
        "latency: each request alone. cost: in batches. Default: latency with a "
        "`--latency-target` and no `--ttft-target`, else cost.",
        read.word_of("policy", "specs.ask.targets.PREFILL_POLICIES"),
        sets="prefill",
    ),
    *OF_ENGINES,
    Option(
        "--memory RULE",
        "What has to fit, by erdil2025: in-flight, all requests. one-microbatch, as the paper.",
        read.word_of("rule", "specs.records.economics.MEMORY_RULES"),
        sets="memory",
    ),
)

RUNTIMES = (
    Option(
        "--engine NAME,…",
        f"{LISTED}, the best of several; roofline; or erdil2025, decode only. Default: the engines "
        "that were measured on the device, else roofline.",
        read.engines,
        example="vllm",
    ),
    Option(
        "--engine NAME",
        f"What runs it: {LISTED} or roofline.",
        of=("audit",),
        sets="engine",
    ),
    Option(
        "--engine NAMES",
        f"{LISTED}; of several the best for each replica; default: those that were "
        "measured on a kind.",
        of=("fleet",),
        gathers=readers.listed,
    ),
)

SEARCH = (
    *(*DEGREES, *OBJECTIVES, *AXES, *FORMATS, *DRAFTS, *PASSES, *RUNTIMES, *deployed.REPLICAS),
)
