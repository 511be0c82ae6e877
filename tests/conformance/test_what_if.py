"""`--what-if` is the same request with files of other values; more is never worse; it is said."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner import load_architecture, load_cluster, load_model, load_traffic, plan, what_if
from planner.planning.proving import proved
from planner.planning.proving.plans import resource_gains
from planner.planning.verification import verify
from planner.specs.ask.targets import Targets
from planner.specs.files.what_if import each_by, multiplied, resources
from tests.conformance.test_options import ran

ROOT = Path(__file__).parents[2]
UP, OUT = "[nodes.scale_up", "[nodes.scale_out"
RATES, TIMES = ("bandwidth", "short_bandwidth", "long_bandwidth"), ("latency",)
LAUNCHES = ("floor_s", "kernel_s", "routing_s", "host_s")
HOST = (
    *("prefill_host", "prefill_experts", "prefill_scans", "decode_host", "decode_sequence"),
    *("layer_gap", "inner_norms", "request", "request_token"),
)

FILES: dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "hbm_bytes": (("topologies/devices", "[memory", ("hbm",)),),
    "hbm_bandwidth": (("topologies/devices", "[memory", ("hbm_bandwidth",)),),
    "flops": (("topologies/devices", "[peak", ("bf16", "fp16", "fp8", "int8")),),
    "scale_up": (("topologies", UP, RATES), ("kernels", "[", ("scale_up_bytes_per_s",))),
    "scale_up_latency": (
        ("topologies", UP, (*TIMES, "short_latency", "long_latency")),
        ("kernels", "[messages", ("floor_s",)),
    ),
    "scale_out": (("topologies", OUT, RATES), ("kernels", "[", ("scale_out_bytes_per_s",))),
    "scale_out_latency": (("topologies", OUT, TIMES),),
    "overheads": (
        ("topologies/devices", "[attainable", ("layer_overhead",)),
        ("kernels", "[kernel", LAUNCHES),
        ("engines", "[steps", HOST),
    ),
    "price": (("topologies/devices", "[price", ("on_demand",)),),
}
"""Where a file has what a name multiplies: its folder, how the head of the section begins, keys."""

DENSE = "--model llama-3.1-70b --topology h100-nvl8-x2 --batch 16 --tp 8 --pp 2"
ROUTED = (
    "--model deepseek-v3 --topology h800-nvl8-x4 --weights fp8_block --batch 64 --dp 32 --ep 32"
)
PLANNED = "--model llama-3.1-8b --topology h100-nvl8-x2 --batch 16,64 --input 512 --output 64"
LINES = {
    "engine": f"predict {DENSE} --engine vllm",
    "roofline": f"predict {DENSE} --engine roofline",
    "experts": f"predict {ROUTED} --engine sglang --tp 1",
    "plan": f"{PLANNED} --engine vllm",
    "plan of layouts": f"{PLANNED} --engine roofline",
}
CASES = [
    *[(line, name) for line in ("engine", "roofline") for name in FILES if name != "price"],
    *[("experts", name) for name in ("scale_up", "scale_up_latency", "scale_out")],
    *[(line, name) for line in ("plan", "plan of layouts") for name in ("hbm_bandwidth", "price")],
]


NUMBER = r"(?<![\w.+-])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])"


def multiplied_value(text: str, factor: float) -> str:
    """A value of a file, or a list of them, with every number multiplied; not its source."""
    value, rest = re.match(r"(.*?)((?:, (?:source|date) = .*|$))", text, re.DOTALL).groups()
    return re.sub(NUMBER, lambda it: repr(float(it[0]) * factor), value) + rest


def multiplied_text(text: str, head: str, keys: tuple[str, ...], factor: float) -> str:
    """A file with some keys of some sections multiplied; `[messages` are kernels that send."""
    is_key = re.compile(
        rf"(?m)(^|[{{,] )({'|'.join(keys)}) = (\S.*?)(?=, [a-z_]+ = [\d.e+-]+[, ]| \}}$|$)"
    )
    sections = re.split(r"(?m)^(?=\[\[kernel\]\]|\[(?!kernel\.))", text)
    for i, section in enumerate(sections):
        is_message = "scale_up_bytes_per_s" in section
        wanted = is_message if head == "[messages" else not (is_message and keys == LAUNCHES)
        begins = "[[kernel" if head in ("[messages", "[kernel") else head
        if wanted and section.startswith(begins):
            sections[i] = is_key.sub(
                lambda it: f"{it[1]}{it[2]} = {multiplied_value(it[3], factor)}", section
            )
    return "".join(sections)


OF_CASES = ("h100", "h800", "vllm", "sgla", "trtl", "assu")
"""How names of the files begin that requests here are answered by."""


def write_files(name: str, factor: float) -> None:
    """Files of the user's, here, with so many times of a resource."""
    (common,) = (ROOT / "engines/common").glob("*.toml")
    for folder, head, keys in FILES[name]:
        for path in sorted((ROOT / folder).glob("*.toml")):
            text = path.read_text(encoding="utf-8")
            if folder == "engines":
                steps = common.read_text(encoding="utf-8").split("[steps]\n")[1]
                own = re.findall(r"(?m)^(\w+) = ", text.partition("[steps]\n")[2])
                steps = re.sub(rf"(?m)^({'|'.join(own) or '-'}) = .*\n", "", steps)
                text = text.replace("[steps]\n", f"[steps]\n{steps}\n")
            changed = multiplied_text(text, head, keys, factor)
            if changed != text and path.stem[:4] in OF_CASES:
                here = Path(folder, path.name)
                here.parent.mkdir(parents=True, exist_ok=True)
                here.write_text(changed, encoding="utf-8")


def figures(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """What is answered, by its path: no request, nothing of the search, no source."""
    if isinstance(value, Mapping):
        said = {"request", "provenance", "command", "launch", "proofs", "digest", "other_requests"}
        for key in value.keys() - said:
            if not key.endswith("wall_s") and not key.endswith("solve_s"):
                yield from figures(value[key], f"{path}.{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from figures(inner, f"{path}.{i}")
    else:
        yield path, value


def answered(line: str) -> dict[str, Any]:
    command, *words = shlex.split(line if line.startswith("predict") else f"plan {line}")
    code, out, err = ran(command, (*words, "--json"))
    assert code == 0, err
    return dict(figures(json.loads(out)["answer"]))


@cache
def usual(line: str) -> dict[str, Any]:
    return answered(LINES[line])


def same(one: Any, other: Any) -> bool:
    is_number = isinstance(one, float) and isinstance(other, float)
    return bool(one == pytest.approx(other, rel=1e-6, abs=1e-15) if is_number else one == other)


@pytest.mark.parametrize(("line", "name"), CASES)
def test_it_is_the_same_request_with_files_of_other_values(tmp_path, monkeypatch, line, name):
    monkeypatch.chdir(tmp_path)
    before, supposed = usual(line), answered(f"{LINES[line]} --what-if {name}=2x")
    write_files(name, 2.0)
    own = answered(LINES[line])
    assert supposed.keys() == own.keys()
    assert {k: (supposed[k], own[k]) for k in own if not same(supposed[k], own[k])} == {}
    assert any(not same(before.get(k), own[k]) for k in own)  # so that it has an effect


REQUESTS: dict[str, dict[str, Any]] = {
    "cost": {"targets": Targets(tpot_s=0.02)},
    "throughput": {"objective": "throughput"},
    "latency": {"objective": "latency"},
}


@pytest.mark.parametrize("engine", ["vllm", "roofline"])
@pytest.mark.parametrize("request_of", REQUESTS)
def test_more_is_never_worse(engine, request_of):
    load = load_model if engine == "roofline" else load_architecture
    said = {**REQUESTS[request_of], "batches": (4, 16, 64), "confidence": 0.0}
    best = plan(load("llama-3.1-8b"), load_cluster("h100-nvl8-x2"), engine, **said)
    gains = {gain.name: gain.gain_fraction for gain in resource_gains(best, each_by(1.5))}
    assert gains.keys() == resources().keys()
    assert all(gain >= -1e-9 for gain in gains.values())
    assert max(gains.values()) > 0.01
    if request_of == "cost":
        assert gains["price"] == pytest.approx(1 - 1 / 1.5)


def test_the_library_supposes_what_it_loads_within():
    with what_if(scale_up=2.0, price=0.5):
        supposed = load_cluster("h100-nvl8-x1")
    plain = load_cluster("h100-nvl8-x1")
    assert supposed.usd_per_hour == plain.usd_per_hour / 2
    assert supposed.fabric.scale_up_bytes_per_s == 2 * plain.fabric.scale_up_bytes_per_s
    ours, theirs = (it.fabric.scale_up_measured.all_reduce for it in (supposed, plain))
    assert ours.long_bytes_per_s == tuple(2 * rate for rate in theirs.long_bytes_per_s)
    assert ours.long_latency_s == theirs.long_latency_s
    assert supposed.device.what_if == {"scale_up": 2.0, "price": 0.5}
    assert multiplied(supposed, {"price": 2.0}).device.what_if["price"] == 1.0


def test_gains_are_solved_again_where_an_answer_is_proved():
    with what_if(hbm_bandwidth=1.25):
        cluster = load_cluster("h100-nvl8-x1")
    best = plan(load_model("llama-3.1-8b"), cluster, "vllm", batches=(8, 32))
    best = replace(best, gains=resource_gains(best, {"flops": 1.1, "price": 0.9}))
    assert [it.name for it in best.gains] == ["price", "flops"]
    assert proved(best).findings == ()
    wrong = replace(best, gains=(replace(best.gains[0], objective=1.0), *best.gains[1:]))
    assert [it.path for it in proved(wrong).findings] == [("gains", "0", "objective")]


WORDS = "--what-if nvlink=2x,memory=1.1x,overheads=0.5x"
ANSWERS = {
    "plan": PLANNED,
    "pareto": f"pareto {PLANNED} --engine vllm",
    "compare": f"compare {PLANNED} --engine vllm,roofline",
    "audit": "audit --model llama-3.1-8b --topology h100-nvl8-x1 --engine vllm --tp 2 --batch 8"
    " --speed 60tok/s",
    "predict": "predict --model llama-3.1-8b --device h100-sxm --tp 2 --batch 8",
    "place": f"place {PLANNED} --rate 2req/s",
    "fleet": "fleet --model llama-3.1-8b --topology h100-nvl8-x1 --rate 2req/s --input 512"
    " --output 64 --batch 16 --simulated 200",
    "stages": "stages --model llama-3.1-8b --groups h100-sxm:tp2x2",
}


@pytest.mark.parametrize("command", ANSWERS)
def test_an_answer_says_what_is_supposed_and_is_verified(tmp_path, command):
    line = ANSWERS[command].removeprefix(f"{command} ")
    code, out, err = ran(command, (*shlex.split(line), *WORDS.split()))
    assert code == 0, err
    told = " ".join(out.split())
    assert "what if scale-up bandwidth 2 times that of h100-sxm (900 GB/s), HBM 1.1 times" in told
    head, _, _ = out.partition("\nwhat if ")
    assert len(head.splitlines()) <= 4  # what is decided, and nothing else before it
    saved = tmp_path / "answer.json"
    code, out, err = ran(command, (*shlex.split(line), *WORDS.split(), "--json"))
    saved.write_text(out, encoding="utf-8")
    assert verify(saved, prove=command in ("plan", "place", "audit")).falsehoods == ()


def test_the_command_of_a_plan_supposes_the_same():
    words = shlex.split(f"{PLANNED} --engine vllm --what-if nvlink=2x,price=2x --json")
    best = json.loads(ran("plan", tuple(words))[1])["answer"]["deployment"]
    command = best["command"]
    assert command.endswith("--what-if scale_up=2x")  # of a price a prediction says nothing
    code, out, err = ran("predict", (*shlex.split(command)[2:], "--json"))
    assert code == 0, err
    assert json.loads(out)["answer"]["tpot_s"] == best["tpot_s"]


REFUSED = {
    "--what-if flps=2x": ("`--what-if flps`", "did you mean `flops`?"),
    "--what-if flops": ("`--what-if flops`", "does not begin with a number"),
    "--what-if flops=0x": ("`--what-if 0x`", "is zero"),
    "--what-if flops=1x": ("`--what-if 1x`", "is 1"),
    "--what-if flops=1000x": ("`--what-if 1000x`", "from 0.01 to 100"),
    "--what-if nvlink=2x,scale_up=2x": ("`--what-if nvlink, scale_up`", "twice"),
    "--what-if each,flops=2x": ("`--what-if flops`", "more than `each`"),
    "--what-if network=2x": ("`--what-if scale_out=2x`", "has no second node"),
    "--what-if price=2x --price $3/h": ("`--what-if price=2x`", "`--price` says"),
    "--what-if flops=2x --engine erdil2025": ("`--what-if flops=2x`", "engines or layouts"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_supposed_is_refused(words):
    code, _, err = ran(
        "plan", ("--model", "llama-3.1-8b", "--topology", "h100-nvl8-x1", *words.split())
    )
    assert code == 2
    assert all(text in " ".join(err.split()) for text in REFUSED[words]), err


@pytest.mark.parametrize(
    ("command", "words", "fact"),
    [
        ("predict", "--device h100-sxm --what-if price=2x", "no figure of the answer is a cost"),
        ("repair", "--what-if flops=2x", "`plan place` has it"),
        ("pareto", "--topology h100-nvl8-x1 --what-if each", "is nothing to `plan pareto`"),
        ("predict", "--topology tpu-v5e-1x1 --what-if ici=2x", "has a second device"),
    ],
)
def test_what_changes_nothing_of_a_command_is_refused(command, words, fact):
    code, _, err = ran(command, ("--model", "llama-3.1-8b", *words.split()))
    assert code == 2
    assert fact in " ".join(err.split()), err


def test_rents_that_traffic_says_are_multiplied_too():
    kinds = str(ROOT / "examples/traffic.toml")
    with what_if(price=3.0):
        dear = load_traffic(kinds)
    rents, dear_rents = (
        [kind.hardware.groups[0].cluster.usd_per_hour for kind in traffic.supply.kinds]
        for traffic in (load_traffic(kinds), dear)
    )
    assert dear_rents == [pytest.approx(3.0 * rent) for rent in rents]


def test_every_fault_is_told_at_once():
    words = "--model llama-3.1-8b --topology h100-nvl8-x9999 --what-if foo=2x,flops=0x,bar=2x"
    code, _, err = ran("plan", tuple(words.split()))
    assert code == 2
    for text in ("for 4 reasons", "`--what-if foo`", "`--what-if bar`", "`--what-if 0x`"):
        assert text in err
