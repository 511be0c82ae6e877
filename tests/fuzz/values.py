"""Values that options take, and values that nothing takes."""

from __future__ import annotations

import random

from planner.specs.traffic.percentiles import USUAL_TARGETS

HOSTILE = (
    *("", " ", "\t", "0", "-0", "-1", "+1", "00", "1.5", "1e400", "1e-400", "-1e400", "1e999ms"),
    *("nan", "-inf", "infinity", "NaN%", "0x10", "1_000", "1__0", "1,000", "9" * 25, "9" * 5_000),
    *("٣", "½", "²", "1\u00a0ms", "\u202e1ms", "\x1b[31m1", "\x00", "\udcff", "a\nb", "\ufeff8"),
    *("=", "==", "a=b", "=5", "a=", ",", ",,,", "1,,2", "1:2:3:4", "5:1", "1:10:0", ":", "1:"),
    *("{0..9}", "{x}", "*", "?" * 50, "[", "(", "%s%n", "${HOME}", "`id`", "'", '"', "\\", "😀"),
    *(".", "..", "/", "//", "~", "/dev/zero", "/dev/random", "/dev/null", "/etc/shadow", "/proc"),
    *("x" * 300, "x" * 5_000, "../" * 50, "-", "--", "---", "-x", "--help", "--json", "None"),
    *("1e25", "$1e25/h", "1e-25", "1e20tok/s", "1e-20s", "1e18B", "101%", "100%", "-5%", "1e-9"),
    *("30 ms", "30ms ms", "ms", "30MS", "30 parsec", "$", "$$5/h", "5$/h", "$5", "1 GiB/ s", "1/0"),
)

TIMES = ("30ms", "1us", "10s", "1e6s", "50ms", "5ms", "0.1ms")
COUNTS = ("1", "2", "3", "7", "8", "16", "64", "1000", "1000000", "999999999")
RATES = ("1tok/s", "500tok/s", "9000tok/s", "1e6tok/s", "1e11tok/s")
SHARES = ("0", "1%", "5%", "0.5", "99%", "1e-9")
FORMATS = ("bf16", "fp8", "int8", "int4", "bf16,fp8", "fp32", "mxfp4", "nvfp4", "fp8_block")
MODELS = ("llama-3.1-8b", "llama-3.1-70b", "palm-540b", "mixtral-8x7b", "deepseek-v3", "mini.toml")
POOLS = ("h100-nvl8-x1", "h100-nvl8-x2", "tpu-v4-2x2x2", "tpu-v4-1x1x1", "dgx-a100-x1", "pool.toml")

VALUES: dict[str, tuple[str, ...]] = {
    "--model": MODELS,
    "--draft": (*MODELS, "mtp", "eagle", "medusa"),
    "--variants": ("all", *MODELS),
    "--topology": (*POOLS, "h100-fat-tree-x2"),
    "--device": ("h100-sxm", "h20", "tpu-v4", "a100-80gb"),
    "--engine": ("vllm", "sglang", "trtllm", "roofline", "erdil2025", "vllm,sglang"),
    "--groups": ("h100-sxm:tp8", "h100-sxm:tp1x2,a100-80gb:tp1x2", "8", "model", "h100-sxm:tp3x9"),
    "--batch": ("1", "8", "1,8,64", "1:16", "1:64:8", "1024"),
    "--prefill-batch": ("1", "1,4"),
    "--objective": ("cost", "rent", "latency", "ttft", "throughput", "devices", "share"),
    "--solver": ("highs", "cpsat", "exhaustive"),
    "--prefill": ("latency", "cost"),
    "--memory": ("in-flight", "one-microbatch", "20 GB", "1 B"),
    "--speculation": ("usual", "capped"),
    "--by": ("weights", "formats"),
    "--x": ("latency", "ttft"),
    "--y": ("cost", "rent", "throughput", "device-throughput"),
    "--alpha": ("0", "3", "100"),
    "--prefer": ("objective", "simplest"),
    "--overlap": ("none", "two-batch", "none,two-batch"),
    "--phase": ("decode", "prefill"),
    "--role": ("together", "prefill", "decode"),
    "--split": ("equal", "weighted"),
    "--price": ("$2.10/h", "$1e6/h", "$1e-6/h"),
    "--max-cost": ("$20/Mtoken", "$1e-9/Mtoken", "$1e9/Mtoken"),
    "--max-rent": ("$500/h", "$1e-6/h"),
    "--time-limit": ("1s", "0.01s", "5s", "8s"),
    "--latency-target": TIMES,
    "--ttft-target": TIMES,
    "--rate": ("1req/s", "0.01req/s", "300req/s", "1e9req/s"),
    "--input": ("200", "1", "64", "uniform:1:500", "lognormal:200:p99=900", "1000000"),
    "--output": ("20", "1", "exponential:30", "percentiles:p50=9:max=90", "1000000", "own.toml"),
    "--arrivals": ("poisson", "constant", "cv2:9", "trace"),
    "--traffic": ("traffic.toml",),
    "--trace": ("trace.csv", "trace.jsonl"),
    "--goodput": ("99% ttft<2s tpot<50ms", "1% e2e<1ms", "100% ttft<9s"),
    "--cuts": ("free", "100,150", "1"),
    "--count": ("h100-sxm=4", "h100-sxm=1", "a100=1"),
    "--router": ("least", "round-robin", "random"),
    "--roles": ("together", "apart", "free"),
    "--connector": ("nixl", "wire"),
    "--simulated": ("100", "500", "1000"),
    "--staircase": ("1:2req/s", "1req/s:3req/s", "3:1req/s"),
    "--workers": ("1", "2"),
    "--max-power": ("700W", "10kW"),
    **dict.fromkeys(USUAL_TARGETS, TIMES),
    "--demand": (*RATES, "llama-3.1-8b=9000tok/s"),
    "--speed": RATES,
    "--zipf": ("0", "1.0", "3", "50"),
    "--experts": ("8", "64", "1", "4096", "bf16", "fp8"),
    "--ranks": ("1", "4", "8", "64"),
    "--slots": ("2", "9", "64"),
    "--nodes": ("1", "2", "3"),
    "--seed": ("0", "1", "2147483647"),
    "--threads": ("1", "2"),
    "--state": ("state.toml",),
    "--loads": ("loads.csv", "loads.json"),
    "--coactivation": ("pairs.csv",),
    "--present": ("present.csv",),
    "--placement": ("placement.json",),
    "--answer": ("placement.json", "plan.json"),
    "--machines": ("machines.toml",),
    "--table": ("kernels.csv",),
    "--html": ("page.html",),
    "--emit": ("k8s out", "shell out", "dynamo out"),
    "--svg": ("drawing.svg",),
    "--csv": ("points.csv", "-"),
    "--plot": ("fit.svg",),
    "--keep-program": ("program.mps", "program.lp"),
    "--solver-report": ("solved.txt", "solved.json", "solved.html", "-"),
    "--proof": ("one", "two"),
    "--weights": FORMATS,
    "--kv": FORMATS,
    "--allow-formats": FORMATS,
    "--acceptance": ("0", "0.8", "0.999"),
    "--lookahead": ("1", "2:5", "64"),
    "--loss": SHARES,
    "--gap": SHARES,
    "--slack": SHARES,
    "--hit-rate": SHARES,
    "--expert-loads": ("0", "0.8", "2.5"),
    "--experts-backend": ("triton", "CUTLASS", "none"),
    "--confidence": SHARES,
    "--utilization": SHARES,
    "--max-quality-loss": SHARES,
    "--move-price": SHARES,
}
"""Good values of options; of options that are not here, counts."""


def value(rng: random.Random, option: str, *, hostility: float) -> str:
    """A value for an option: one that nothing takes, that of another option, or a good one."""
    draw = rng.random()
    if draw < hostility:
        return rng.choice(HOSTILE)
    if draw < 1.5 * hostility:
        return rng.choice(VALUES[rng.choice(tuple(VALUES))])
    return rng.choice(VALUES.get(option, COUNTS))
