"""Options of commands that measure kernels, fit them, or place experts by their loads."""

from planner.specs.options import counts, readers, readers as read
from planner.specs.options.option import Option

MOST_GPUS = 72
"""Of one node, or of one rack that is one."""

TABLES = (
    Option(
        "--table FILE|FOLDER",
        "Tables to read; `--table` itself may be left out.",
        gathers=readers.each,
        required="name a file or a folder",
        lack="no table is given",
    ),
    Option(
        "--device NAME|FILE",
        "Device that was measured.",
        of=("calibrate",),
        required="write `--device h20`",
    ),
    Option(
        "--device NAME|FILE",
        "Device that this machine has; a processor needs none.",
        of=("measure",),
    ),
    Option(
        "--engine NAME",
        "Whose kernels they are: vllm, sglang, deepgemm, ….",
        of=("calibrate",),
        required="write `--engine vllm`",
    ),
    Option("--engine-version TEXT", "Of the engine.", usual=""),
    Option(
        "--sms N", "Multiprocessors of the device; default: as its other tables say.", counts.count
    ),
    Option("--source TEXT", "Where the rows come from; default: the names of the files.", usual=""),
)

TIMING = (
    Option(
        "--backend NAME",
        "cuda: the GPU, AMD's too; cpu: this processor, to try it out.",
        read.word_of("backend", "tools.measuring.pytorch.BACKENDS"),
        usual="cuda",
    ),
    Option(
        "--gpus N",
        "GPUs of this node between which collectives are timed too.",
        counts.at_least(1, MOST_GPUS),
        usual="1",
    ),
    Option("--budget TIME", "Stop after this, with what was timed.", read.seconds, usual="5min"),
)

KERNELS = (
    Option(
        "--model NAME|FILE,…",
        "Models whose kernels are timed; see `plan models`.",
        read.names,
        of=("measure",),
        usual="llama-3.1-8b,llama-3.1-70b,qwen3-30b-a3b",
    ),
    Option(
        "--tp N,…", "Devices that divide a model.", counts.batches, of=("measure",), usual="1,4"
    ),
    Option(
        "--weights FORMATS",
        "Formats of weights: bf16, fp16, fp8; default: bf16, and fp8 where it is multiplied.",
        of=("measure",),
        gathers=readers.words_of("format that is timed", "tools.measuring.machines.FORMATS"),
    ),
)

LOADS = (
    Option("--loads FILE", "Load of each expert: CSV, JSON or TOML.", sets="loads"),
    Option(
        "--layer N",
        "Row of `--loads` to place, from 0; if it has several.",
        counts.count_or_none,
        needs="--loads",
    ),
    Option("--zipf S", "Or loads k^-S of the k-th busiest expert, like 1.0.", read.power_law),
    Option(
        "--model NAME|FILE",
        "Model: how many experts, groups and bytes; see `plan models`.",
        of=("experts",),
    ),
    Option(
        "--weights FORMAT",
        "Format of the experts; default: the model's first.",
        read.word_of("number format", "specs.records.devices.FORMAT_BYTES"),
        of=("experts",),
        needs="--model",
    ),
    Option("--experts N", "Experts, where no model says.", counts.experts, of=("experts",)),
    Option(
        "--coactivation FILE",
        "Tokens that went to both of two experts: a square table.",
        sets="coactivation",
    ),
)

RANKS = (
    Option(
        "--ranks N",
        "Expert-parallel ranks.",
        counts.count,
        of=("experts",),
        required="write `--ranks 32`",
        sets="n_ranks",
    ),
    Option(
        "--slots N",
        "Experts that a rank holds; default: one more than it must.",
        counts.count,
        sets="n_slots",
    ),
    Option(
        "--memory BYTES",
        "Memory of a rank for experts of all layers: more limits slots.",
        read.memory,
        of=("experts",),
        needs="--model",
    ),
    Option("--nodes N", "Nodes of equally many ranks.", counts.count, usual="1", sets="n_nodes"),
    Option(
        "--groups N|model",
        "Groups of neighbouring experts that stay on a node; or none.",
        read.groups,
        of=("experts",),
        sets="n_groups",
    ),
    Option("--present FILE", "Experts that each rank holds now: CSV or JSON.", sets="present"),
)

BALANCE = (
    Option(
        "--split HOW",
        "equal: copies share a load equally. weighted: as is best.",
        read.word_of("way to split", "tools.experts.program.SPLITS"),
        usual="equal",
        sets="split",
    ),
    Option(
        "--move-price FRACTION",
        "Share of the mean load that a moved copy has to save.",
        read.share,
        usual="0",
        sets="move_price",
        needs="--present",
    ),
    Option(
        "--slack FRACTION",
        "Load that may be given up for less traffic, like 1%.",
        read.share,
        usual="0",
        sets="slack",
        needs="--coactivation",
    ),
)
