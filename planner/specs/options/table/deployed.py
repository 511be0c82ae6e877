"""Options that say how a deployment is: as it is given, or which replicas a search chooses."""

from planner.specs.options import counts, readers as read
from planner.specs.options.option import Option
from planner.specs.records.roles import LEAST_PRESENT, ROUTERS

AUDITED = (
    Option(
        "--speed RATE",
        "Output tokens a second that a user sees, like 70tok/s.",
        read.tokens_per_s,
        required="write `--speed 70tok/s`",
        sets="speed_tokens_per_s",
    ),
    Option(
        "--batch N",
        "Sequences decoded together; or else `--utilization`.",
        counts.count,
        of=("audit",),
        sets="batch",
    ),
    Option(
        "--utilization FRACTION",
        "Model FLOP of decode over the peak, like 15%.",
        read.fraction,
        sets="utilization_fraction",
    ),
    Option("--devices N", "Devices in use. [the whole pool]", counts.count, sets="n_devices"),
    Option(
        "--weights FORMAT",
        "Format of its weights; default: as published.",
        of=("audit",),
        gathers=read.number_formats,
        sets="weights_format",
    ),
    Option(
        "--kv FORMAT",
        "Format of its KV cache; default: the usual one.",
        of=("audit",),
        gathers=read.number_formats,
        sets="kv_format",
    ),
    *(
        Option(usage, words, counts.count, of=("audit",), sets=f"Degrees.{degree}")
        for usage, degree, words in (
            ("--tp N", "tensor", "Devices that share the heads, of an engine. [1]"),
            ("--pp N", "pipeline", "Pipeline stages, of an engine. [1]"),
            ("--ep N", "expert", "Groups of experts, of an engine. [tp·dp if dp > 1]"),
            ("--dp N", "data", "Attention ranks, of an engine. [1]"),
        )
    ),
)

DEPLOYED = (
    Option(
        "--phase PHASE",
        "Which passes to cut for: decode or prefill.",
        read.word_of("phase", "specs.ask.stages.PHASES"),
        usual="decode",
        sets="phase",
    ),
    Option(
        "--tp N",
        "Devices that share the heads of a rank.",
        counts.count,
        of=("predict",),
        usual="1",
    ),
    Option(
        "--dp N",
        "Attention ranks with requests of their own. [ep/tp]",
        counts.count,
        of=("predict",),
    ),
    Option(
        "--ep N",
        "Groups that experts are dealt to. [tp·dp if dp > 1]",
        counts.count,
        of=("predict",),
    ),
    Option(
        "--redundant-experts N",
        "Copies of experts of a layer, balanced; 0: none. [the engine's of EP]",
        counts.count_or_none,
    ),
    Option("--pp N", "Stages of a pipeline.", counts.count, of=("predict",), usual="1"),
    Option(
        "--batch N", "Requests in flight on each attention rank. [1]", counts.count, of=("predict",)
    ),
    Option(
        "--batch N",
        "Sequences of a micro-batch.",
        counts.count,
        of=("stages",),
        usual="1",
        sets="batch",
    ),
    Option(
        "--micro-batches N",
        "Of them in flight. [one a group; for latency one]",
        counts.count,
        sets="n_microbatches",
    ),
    *(
        Option(usage, words, read.number_format, of=("predict", "stages"), sets=field)
        for usage, field, words in (
            ("--weights FORMAT", "weights_format", "Of dense weights; default: as published."),
            ("--experts FORMAT", "experts_format", "Of routed experts; default: as `--weights`."),
            ("--kv FORMAT", "cache_format", "Of the cache; default: as published."),
        )
    ),
    Option(
        "--chunk TOKENS",
        "Most tokens of a pass; default: the engine's.",
        counts.count,
        of=("predict",),
        sets="chunk_tokens",
    ),
    Option(
        "--role ROLE",
        "What it does of a request: together, prefill or decode.",
        read.word_of("role", "specs.records.roles.ROLES"),
        usual="together",
    ),
    Option(
        "--overlap HOW",
        "two-batch: messages behind another micro-batch. Or none.",
        read.word_of("overlap", "specs.ask.engine.OVERLAPS"),
        of=("predict",),
        usual="none",
    ),
    Option(
        "--draft HOW",
        "Speculative decoding: mtp, eagle or medusa.",
        read.word_of("drafter", "estimates.serving.drafting.KINDS"),
        of=("predict",),
        example="eagle",
    ),
    Option(
        "--lookahead TOKENS",
        "Tokens drafted at once.",
        counts.count,
        of=("predict",),
        usual="1",
        needs="--draft",
    ),
    Option(
        "--acceptance P,…|FILE",
        "Probability that a drafted token is accepted, by position; or a CSV of what both models "
        "give to tokens: context, token, target, draft. [as published]",
        read.acceptances_below_one,
        of=("predict",),
        needs="--draft",
    ),
)

ROLES = (
    Option(
        "--roles HOW",
        "together: each replica does both phases; apart: prefill or decode, and KV caches are "
        "handed over; free: the program chooses, and may mix. [together]",
        read.word_of("choice of roles", "specs.records.roles.ASKED_ROLES"),
        sets="RoleOptions.roles",
    ),
    Option(
        "--roles HOW,…",
        "A case for each, of replicas that serve the demand: together, each does both phases; "
        "apart, prefill or decode, and KV caches are handed over; free, the program chooses.",
        read.roles,
        of=("compare",),
        sets="RoleOptions.roles",
    ),
    Option(
        "--connector NAME|FILE",
        "What hands caches over: nixl, as measured, or wire: links alone. [nixl]",
    ),
    Option(
        "--prefill-devices N",
        "Devices of each replica that only reads prompts, exactly.",
        counts.count,
        sets="RoleOptions.prefill_devices",
    ),
    Option(
        "--decode-devices N",
        "Devices of each replica that only writes answers, exactly.",
        counts.count,
        sets="RoleOptions.decode_devices",
    ),
)

SORTS = (
    Option(
        "--sorts N",
        "Most sorts of replicas: of engine, role, kind of devices and degrees.",
        counts.count,
        sets="SolverOptions.most_sorts",
    ),
    Option(
        "--sort-price FRACTION",
        "What each sort beyond the fewest that do costs, of the best with the fewest. [1%]",
        read.few_percent,
        sets="SolverOptions.sort_price",
    ),
)

REPLICAS = (
    *ROLES,
    *SORTS,
    Option(
        "--cuts TOKENS",
        "Lengths of prompts that part pools: 2048,8192; free: the planner's.",
        read.later("specs.traffic.texts.cuts_of"),
    ),
    Option("--no-sharing", "Give each class replicas of its own, of one model too."),
    Option(
        "--router HOW",
        f"Which replica of a pool gets a request: {', '.join(ROUTERS)}.",
        read.one_of("way to route", ROUTERS),
        usual=LEAST_PRESENT,
        sets="router",
    ),
    Option(
        "--replica-devices N",
        "Most devices of one replica; default: 64, none on a torus.",
        counts.count,
        sets="most_devices",
    ),
    Option("--align", "Start slices of a torus at its cubes only: fewer places to try."),
)
