"""Files of every kind, as they should be and spoilt, each with commands that read it."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.cli.files import LINKED, MODEL
from tests.fuzz.values import HOSTILE

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "tests" / "specs" / "huggingface" / "configs"

STATE = """\
busy = ["node0/gpu{0..1}"]
failed = ["node0/gpu2"]
[owners]
"node0/gpu0" = "training"
[[slow]]
devices = ["node0/gpu3"]
speed = "80%"
[[link]]
nic = ["node0/gpu4"]
bandwidth = "50%"
"""
TRAFFIC = """\
connector = "nixl"
[[class]]
name = "chat"
model = "llama-3.1-8b"
rate = "1 req/s"
input = "lognormal:200:p99=900"
output = "exponential:20"
arrivals = "cv2:4"
priority = 1
cuts = [300]
[class.targets]
ttft_p95 = "1 s"
goodput = "99%"
tpot = "50 ms"
[[class]]
name = "code"
model = "llama-3.1-8b"
trace = "trace.csv"
rate = "1 req/s"
[[kind]]
device = "h100-sxm"
count = 4
price = "$2.10/h"
failed = ["node0/gpu1"]
[[kind]]
name = "far"
topology = "h100-nvl8-x1"
site = "west"
"""
TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:{i // 60:02}:{i % 60:02}.500,{50 + 7 * i % 300},{5 + i % 9}\n"
    for i in range(90)
)
LOADS = "4,1,3,1,2,2,1,9\n"
PAIRS = "0,1,2\n1,0,3\n2,3,0\n"
PRESENT = "0,1,2\n3,4,5\n6,7,0\n1,2,3\n"
KERNELS = "family,format,m,n,k,weight_bytes,input_bytes,latency_us\n" + "".join(
    f"gemm,fp8,{m},{n},{k},1,1,{max(15.0, m * n * k / 1e7)}\n"
    for n, k in ((6144, 2048), (5120, 5120), (4096, 4096))
    for m in (1, 16, 64, 256, 1024, 4096)
)

HELD = {
    "mini.toml": MODEL,
    "pool.toml": LINKED,
    "state.toml": STATE,
    "traffic.toml": TRAFFIC,
    "trace.csv": TRACE,
    "trace.jsonl": "".join(
        f'{{"timestamp": {300 * i}, "input_length": {100 + i}, "output_length": {5 + i % 9}}}\n'
        for i in range(90)
    ),
    "loads.csv": LOADS,
    "loads.json": json.dumps({"loads": [[4, 1, 3, 1], [1, 1, 1, 1]]}),
    "pairs.csv": PAIRS,
    "present.csv": PRESENT,
    "kernels.csv": KERNELS,
    "machines.toml": (ROOT / "examples" / "machines" / "quality-10.toml").read_text("utf-8"),
}
"""Files that stand in every folder, as they should be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of file.

    Args:
        name: of the file, in the folder of the case.
        sources: files that ship, whose texts it is drawn from; none takes it from `HELD`.
        lines: commands that read it.
    """

    name: str
    lines: tuple[str, ...]
    sources: tuple[Path, ...] = ()

    def text(self, rng: random.Random) -> str:
        return rng.choice(self.sources).read_text("utf-8") if self.sources else HELD[self.name]


def _shipped(folder: str, pattern: str = "*.toml") -> tuple[Path, ...]:
    return tuple(sorted((ROOT / folder).glob(pattern)))


_PLAN = "--batch 1,8 --prefill-batch 1"

KINDS = {
    "device": Kind(
        name="topologies/devices/h100-sxm.toml",
        sources=_shipped("topologies/devices", "h100-sxm.toml"),
        lines=(
            "devices h100-sxm --json",
            f"--model llama-3.1-8b --topology h100-nvl8-x1 {_PLAN} --json",
            "predict --model llama-3.1-8b --device h100-sxm",
        ),
    ),
    "cluster": Kind(
        name="my.toml",
        sources=_shipped("topologies", "*.toml"),
        lines=(
            "topologies my.toml",
            f"--model llama-3.1-8b --topology my.toml {_PLAN} --json",
            "place --model llama-3.1-8b --topology my.toml --batch 1,8 --replica-devices 8 --quiet",
        ),
    ),
    "linked": Kind(
        name="pool.toml",
        lines=("topologies pool.toml", f"--model mini.toml --topology pool.toml {_PLAN} --json"),
    ),
    "model": Kind(
        name="my.toml",
        sources=_shipped("models"),
        lines=(
            "models my.toml",
            f"--model my.toml --topology h100-nvl8-x1 {_PLAN} --json",
            "predict --model my.toml --topology h100-nvl8-x1 --tp 8 --json",
        ),
    ),
    "kernels": Kind(
        name="kernels/h100-sxm-vllm.toml",
        sources=_shipped("kernels", "h100-sxm-vllm.toml"),
        lines=(
            "predict --model llama-3.1-8b --topology h100-nvl8-x1 --batch 8 --json",
            "--engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --batch 8 --quiet",
        ),
    ),
    "engine": Kind(
        name="engines/vllm.toml",
        sources=_shipped("engines", "vllm.toml"),
        lines=("predict --model llama-3.1-8b --topology h100-nvl8-x1 --batch 8 --json",),
    ),
    "fabric": Kind(
        name="topologies/fabrics/mine.toml",
        sources=_shipped("topologies/fabrics"),
        lines=(
            "topologies topologies/fabrics/mine.toml",
            "place --model llama-3.1-8b --topology topologies/fabrics/mine.toml --batch 8 --json",
        ),
    ),
    "state": Kind(
        name="state.toml",
        lines=(
            "place --model llama-3.1-8b --topology h100-nvl8-x1 --state state.toml --batch 8"
            " --json",
        ),
    ),
    "traffic": Kind(
        name="traffic.toml", lines=("fleet traffic.toml --engine vllm --simulated 500 --json",)
    ),
    "trace": Kind(
        name="trace.csv",
        lines=(
            "fleet --model llama-3.1-8b --topology h100-nvl8-x1 --engine vllm --trace trace.csv"
            " --ttft-p95 1s --simulated 500 --quiet",
        ),
    ),
    "machines": Kind(
        name="machines.toml",
        sources=_shipped("examples/machines", "[qs]*.toml"),
        lines=("layers machines.toml --json --time-limit 5s",),
    ),
    "config": Kind(
        name="config.json",
        sources=tuple(sorted(CONFIGS.glob("*_config.json"))),
        lines=(
            "models ./config.json",
            "predict --model ./config.json --topology h100-nvl8-x1 --tp 8 --json",
            "--engine vllm --model ./config.json --topology h100-nvl8-x1 --batch 8 --quiet",
        ),
    ),
    "loads": Kind(name="loads.csv", lines=("experts --loads loads.csv --ranks 4 --json",)),
    "loads in JSON": Kind(
        name="loads.json", lines=("experts --loads loads.json --ranks 2 --layer 0 --json",)
    ),
    "pairs": Kind(
        name="pairs.csv",
        lines=("experts --zipf 1 --experts 3 --ranks 3 --coactivation pairs.csv --slack 5%",),
    ),
    "present": Kind(
        name="present.csv",
        lines=("experts --loads loads.csv --ranks 4 --slots 3 --present present.csv --json",),
    ),
    "kernel rows": Kind(
        name="kernels.csv",
        lines=("calibrate kernels.csv --device h20 --engine own --sms 78 --output own.toml",),
    ),
    "placement": Kind(
        name="placement.json",
        lines=(
            "repair placement.json --state state.toml --json",
            "repair placement.json --state state.toml --loss 5% --solver cpsat --quiet",
            "verify placement.json",
        ),
    ),
    "plan": Kind(name="plan.json", lines=("verify plan.json --json", "repair plan.json --quiet")),
}


def spoilt(rng: random.Random, text: str) -> bytes:
    """A text with one to three faults, some of bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice(_OF_TEXT)(rng, text)
    data = text.encode("utf-8", "surrogatepass")
    return rng.choice(_OF_BYTES)(rng, data) if rng.random() < 0.1 else data


def _literal(rng: random.Random, text: str) -> str:
    """One number or string in place of another."""
    found = list(re.finditer(r'"[^"\n]*"|(?<![\w.])-?\d[\d_.e+-]*|\btrue\b|\bfalse\b', text))
    if not found:
        return text + rng.choice(HOSTILE)
    at = rng.choice(found)
    new = rng.choice((rng.choice(_NUMBERS), json.dumps(rng.choice(HOSTILE)), rng.choice(_ODD)))
    if at[0].startswith('"') and rng.random() < 0.6:
        new = json.dumps(rng.choice((*HOSTILE, *_QUANTITIES)))
    return text[: at.start()] + new + text[at.end() :]


_NUMBERS = ("0", "-1", "-0.0", "1e400", "1e-400", "nan", "inf", "1e25", "1e-20", "9" * 400, "0.5")
_NUMBERS += ("1000000000", "999999999999", "3", "7", "0x7fffffffffffffff", "1e9", "1e18")
_ODD = ("true", "null", "[]", "{}", "[[[]]]", '""', "1979-05-27", "[1, 2]", "{ value = 1 }")
_QUANTITIES = ("1e-20 B", "1e25 B", "0 GB", "-1 GB/s", "1 parsec", "1e30 GB/s", "5e-324 s", "1 B")


def _line(rng: random.Random, text: str) -> str:
    """A line dropped, doubled, moved or cut."""
    lines = text.splitlines(keepends=True) or [""]
    at, how = rng.randrange(len(lines)), rng.randrange(4)
    if how == 0:
        lines.pop(at)
    elif how == 1:
        lines.insert(at, lines[at])
    elif how == 2:
        lines.insert(rng.randrange(len(lines)), lines.pop(at))
    else:
        lines[at] = lines[at][: rng.randint(0, len(lines[at]))]
    return "".join(lines)


def _key(rng: random.Random, text: str) -> str:
    """A key misspelt, hostile or empty."""
    found = list(re.finditer(r'(?m)^ *"?([\w.-]+)"? *[=:]', text))
    if not found:
        return text
    at = rng.choice(found)
    new = rng.choice((at[1] + "x", at[1][:-1], rng.choice(HOSTILE), '"' + rng.choice(HOSTILE)))
    return text[: at.start(1)] + new + text[at.end(1) :]


def _cut(rng: random.Random, text: str) -> str:
    return text[: rng.randint(0, len(text))]


def _insert(rng: random.Random, text: str) -> str:
    at = rng.randint(0, len(text))
    deep = rng.choice(("[", "{", '{"a":', "a.", "[[", '"""', "'''")) * rng.choice((1, 70, 3000))
    return text[:at] + rng.choice((rng.choice(HOSTILE), deep, "\n" * 1000)) + text[at:]


def _long(rng: random.Random, text: str) -> str:
    return text + rng.choice(("# " + "x" * 200_000, "\nextra = 1\n" * 3_000, "1," * 50_000))


_OF_TEXT = (_literal, _literal, _literal, _literal, _line, _line, _key, _cut, _insert, _long)


def _bytes_inserted(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice((b"\xff", b"\0", b"\xed\xa0\x80", b"\xc3(", b"\x1b[")) + data[at:]


def _recoded(rng: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    how = rng.choice(("utf-16", "utf-8-sig", "latin-1", "utf-32", "crlf"))
    if how == "crlf":
        return text.replace("\n", "\r\n").encode()
    return text.encode(how, "replace")


_OF_BYTES = (_bytes_inserted, _recoded, lambda rng, data: b"", lambda rng, data: data * 40)


@cache
def answers() -> dict[str, str]:
    """Answers that the command wrote, to be read back: made once a process."""
    from tests.fuzz.running import in_process

    small = "--model llama-3.1-8b --topology h100-nvl8-x1 --batch 1,8 --json"
    lines = {"plan.json": small, "placement.json": f"place {small}"}
    return {name: in_process(line.split(), dict(HELD)).out for name, line in lines.items()}
