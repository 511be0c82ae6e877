"""Command × runtime × option: what an option says moves the answer, so that it is not ignored.

Every option that a command has and a runtime means is in one of three tables: with a value that
moves the answer of a small request, with one that only its request tells, or as one that is held
elsewhere. An option that is in none of them turns this red, as does one that moves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from planner.quantities.table import limited
from tests.conformance.test_options import ENGINES, is_meant, parsed, ran

CELLS = [
    *[("plan", runtime) for runtime in ("roofline", "vllm", "erdil2025")],
    *[("audit", runtime) for runtime in ("roofline", "vllm")],
    *[("place", runtime) for runtime in ("roofline", "vllm")],
    *[(command, "vllm") for command in ("pareto", "compare", "predict")],
]

SURVEYS = ("pareto", "compare")
"""They hand on what `plan` has, by the same lines: each tries half of that."""

ELSEWHERE = {
    *(one.option for one in limited()),  # `test_limits`, `test_commands`, `test_placements`
    *("--json", "--quiet", "--all", "--explain", "--ranks", "--html", "--svg", "--csv"),  # reports
    *("--brief", "--full"),  # `tests/report/test_screens.py`
    *(
        "--flags",
        "--metrics",
    ),  # `tests/launch/test_read_back.py`, `tests/importing/test_metrics.py`
    "--emit",  # `tests/launch/test_emitted.py`
    *("--engine", "--keep-program", "--save-request", "--state", "--align", "--device"),
    "--solver-report",  # `tests/cli/test_solver_report.py`
}
"""Options whose effect is tried by tests of their own."""

IN_THE_REQUEST: dict[str, tuple[str, object]] = {
    "--solver": ("cpsat", "cpsat"),
    "--gap": ("50%", 0.5),
    "--threads": ("2", 2),
    "--seed": ("7", 7),
    "--proof": ("one", "one"),
    "--time-limit": ("100s", 100.0),
    "--prefer": ("objective", "objective"),  # placements': `tests/placing/test_preferring.py`
    "--sorts": ("3", 3),
    "--sort-price": ("5%", 0.05),  # what they move: `tests/placing/test_spreading.py`
}
"""Options that only say how to search: the answer is the same, its request tells each of them."""

Words = dict[str, str | None]
SMALL, LARGE, MIXTURE = "llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b"
SERVED: Words = {"--model": LARGE, "--topology": "h100-nvl8-x1", "--weights": "bf16"}
PLANNED: Words = {**SERVED, "--input": "512", "--output": "64", "--batch": "16,64"}
BASES: dict[str, Words] = {
    **dict.fromkeys(("plan", "pareto", "compare", "place"), PLANNED),
    "audit": {**SERVED, "--batch": "8", "--speed": "20tok/s"},
    "predict": {"--model": LARGE, "--topology": "h100-nvl8-x1", "--batch": "8", "--tp": "4"},
}
"""A small request of each command."""

OWN_RULES = Path(__file__).with_name("own_rules.toml")
"""A rule of a user's own: eight devices a replica, whose name is the option's."""
OWN_CALIBRATION = Path(__file__).with_name("own_calibration.toml")
"""An engine twice as slow."""
OWN_RUN = Path(__file__).with_name("own_run.csv")
TOWER = Path(__file__).with_name("tower.json")
"""A small decoder beside a tower."""
QUICK: Words = {"--objective": "latency"}
DRAFTED: Words = {"--draft": SMALL, "--acceptance": "95%", **QUICK}
ROUTED: Words = {"--model": MIXTURE, "--tp": "4", "--dp": "2"}
ASKED_OF_ALL: Words = {"--rate": "2req/s", "--objective": "rent"}
APART: Words = {"--model": MIXTURE, "--role": "decode", "--tp": "1", "--dp": "4", "--batch": "32"}
MOVES: dict[str, tuple[str, Words]] = {
    "--model": (SMALL, {}),
    "--topology": ("a100-nvl8-x1", {}),
    "--input": ("4096", {}),
    "--output": ("512", {}),
    "--price": ("h100-sxm=$100/h", {}),
    "--what-if": ("hbm_bandwidth=2x", {}),
    "--rate": ("1req/s", {}),
    "--max-utilisation": ("10%", ASKED_OF_ALL),
    "--rules": (str(OWN_RULES), {}),
    "--calibration": (str(OWN_CALIBRATION), {}),
    "--measured": (str(OWN_RUN), {}),
    "--in-flight": ("16", {}),
    "--waves": ("3", {}),
    "--client": ("inferencex", {"--batch": None, "--in-flight": "16"}),
    "--polled": ("20", {}),
    "--micro-batches": ("2", {}),
    "--expert-devices": ("8", {**ASKED_OF_ALL, "--model": "deepseek-v3", "--weights": None}),
    "--max-quality-loss": ("0.001%", {"--weights": "fp8"}),
    "--tp": ("8", {}),
    "--pp": ("8", {}),
    "--ep": ("2", {"--model": MIXTURE, **QUICK}),
    "--dp": ("2", {"--model": MIXTURE, "--tp": "1"}),
    "--layout": ("decode=WGXYZ", {}),
    "--objective": ("latency", {}),
    "--weights": ("fp8", {}),
    "--kv": ("fp8", {}),
    "--activations": ("bf16", {"--weights": "bf16,fp8"}),
    "--images": ("1x256", {"--model": str(TOWER)}),
    "--allow-formats": ("bf16", {"--weights": None, "--model": "deepseek-v3"}),
    "--draft": (SMALL, QUICK),
    "--acceptance": ("99%", DRAFTED),
    "--lookahead": ("9", DRAFTED),
    "--speculation": ("capped", DRAFTED),
    "--batch": ("2", {}),
    "--prefill-batch": ("2:2", {}),
    "--prefill": ("latency", {}),
    "--memory": ("one-microbatch", {"--batch": "2048"}),
    "--variants": ("all", {"--model": SMALL, "--max-quality-loss": "8%"}),
    "--chunk": ("1024", {}),
    "--redundant-experts": ("8", {**ROUTED, "--ep": "8"}),
    "--overlap": ("two-batch", {**ROUTED, "--ep": "8", "--objective": "throughput"}),
    "--hit-rate": ("90%", {}),
    "--expert-loads": ("0", {"--model": MIXTURE}),
    "--experts-backend": ("triton", {"--model": MIXTURE, "--weights": "fp8_block"}),
    "--memory-fraction": ("0.5", {}),
    "--workspace": ("20GiB", {}),
    "--confidence": ("70%", {}),
    "--by": ("formats", {"--weights": "bf16,fp8"}),
    "--x": ("ttft", {}),
    "--y": ("rent", {}),
    "--alpha": ("0.1", {}),
    "--speed": ("30tok/s", {}),
    "--utilization": ("10%", {}),
    "--devices": ("4", {}),
    "--shared": ("100", {}),
    "--samples": ("4", {}),
    "--kv-offload": ("host", {"--hit-rate": "90%"}),
    "--experts": ("fp8", {"--model": MIXTURE}),
    "--replica-devices": ("1", {}),
    "--role": ("decode", {}),
    "--roles": ("apart", ASKED_OF_ALL),
    "--connector": ("wire", {**ASKED_OF_ALL, "--roles": "apart"}),
    "--prefill-devices": ("4", {**ASKED_OF_ALL, "--roles": "apart"}),
    "--decode-devices": ("4", {**ASKED_OF_ALL, "--roles": "apart"}),
}
"""A value of each option that moves the answer, and what else has to be said for that."""

IN_PLACE_OF = {"--utilization": ("--batch",), "--measured": ("--speed", "--batch")}
"""Options that say what others say."""

OF_ONE: dict[tuple[str, str], tuple[str, Words]] = {
    ("audit", "--pp"): ("2", {}),
    ("audit", "--ep"): ("4", {"--model": MIXTURE}),
    ("audit", "--dp"): ("2", {"--model": MIXTURE}),
    ("predict", "--pp"): ("2", {}),
    ("predict", "--ep"): ("8", {**ROUTED, "--ep": "1"}),
    ("predict", "--dp"): ("2", {"--model": MIXTURE}),
    ("predict", "--in-flight"): ("16", {"--batch": None}),
    ("predict", "--expert-devices"): ("4", APART),
    ("predict", "--micro-batches"): ("2", {**APART, "--expert-devices": "4"}),
    ("predict", "--waves"): ("3", {"--batch": None, "--in-flight": "16"}),
    ("predict", "--overlap"): ("two-batch", {**ROUTED, "--ep": "8"}),
    ("place", "--objective"): ("latency", {"--replicas": "1"}),
    ("place", "--ep"): ("2", {"--model": MIXTURE, "--replicas": "1", **QUICK}),
}
"""The same, where a command needs another."""

UNTOLD = {"digest", "proof", "proofs", "versions", "command"}
"""What an answer says of its search, and of how it was asked for."""


def told(value: Any, *, with_request: bool) -> Any:
    """An answer without its search, and without its request unless that is asked for."""
    if isinstance(value, list):
        return [told(one, with_request=with_request) for one in value]
    if not isinstance(value, dict):
        return value
    if "objective_name" in value:  # a certificate
        return {key: value.get(key) for key in ("objective", "status")}
    left_out = UNTOLD if with_request else {*UNTOLD, "request"}
    return {
        key: told(one, with_request=with_request)
        for key, one in value.items()
        if key not in left_out or (key == "proof" and isinstance(one, str))
    }


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """All that is told, by its path."""
    if not isinstance(value, dict | list):
        yield path, value
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(inner, f"{path}.{key}")


def answered(
    command: str, runtime: str, words: Words, *, with_request: bool
) -> tuple[int, object, str]:
    """Exit code, what is answered, and the message."""
    typed = [word for key, text in words.items() if text is not None for word in (key, text)]
    code, out, err = ran(command, ("--engine", runtime, "--json", *typed))
    return code, told(json.loads(out), with_request=with_request), err


def trial(command: str, runtime: str, option: str) -> tuple[str, Words]:
    """What an option is to say, beside what."""
    base = {**BASES[command], **({"--tp": "4"} if (command, runtime) == ("audit", "vllm") else {})}
    value, beside = OF_ONE.get((command, option), MOVES.get(option, ("", {})))
    if runtime in ENGINES:
        beside = {**beside, **({"--draft": "eagle"} if "--draft" in beside else {})}
        if command == "audit" and "--draft" in beside:  # what runs drafts so many
            beside = {"--lookahead": "3", **beside}
        value = "eagle" if option == "--draft" else value
    if "--rate" not in beside and option not in ("--rate", "--roles"):
        beside = {"--chunk": "2048", **beside}  # a third of the deployments
    known = {key: text for key, text in beside.items() if is_meant(command, runtime, key)}
    return value, {**base, **known}


def tried(command: str, meant: Sequence[str]) -> list[str]:
    """Options whose answers are compared: of surveys, which hand on what `plan` has, in turns."""
    named = [one for one in meant if one not in {*ELSEWHERE, *IN_THE_REQUEST}]
    if command not in SURVEYS:
        return named
    of_plan, turn = parsed("plan"), SURVEYS.index(command)
    return [one for k, one in enumerate(named) if one not in of_plan or k % 2 == turn]


@pytest.mark.parametrize(("command", "runtime"), CELLS)
def test_every_option_moves_the_answer(command, runtime):
    meant = [option for option in parsed(command) if is_meant(command, runtime, option)]
    bases: dict[str, tuple[int, object, str]] = {}
    still = []
    for option in tried(command, meant):
        assert option in MOVES, option
        value, base = trial(command, runtime, option)
        key = json.dumps(base)
        if key not in bases:
            bases[key] = answered(command, runtime, base, with_request=False)
        words = {**base, option: value}
        words |= dict.fromkeys(IN_PLACE_OF.get(option, ()))
        before, after = bases[key], answered(command, runtime, words, with_request=False)
        assert before[0] in (0, 1), (option, before[2])
        assert after[0] in (0, 1) or option in after[2], (option, after[2])
        if before[:2] == after[:2]:
            still.append(option)
    assert still == []


@pytest.mark.parametrize(("command", "runtime"), CELLS)
def test_every_option_of_a_search_is_told(command, runtime):
    """All are said at once, each with a value of its own, which stands where another stood."""
    said = {
        option: asked
        for option, asked in IN_THE_REQUEST.items()
        if option in parsed(command) and is_meant(command, runtime, option)
        if (command, option) != ("place", "--prefer")
    }
    _, base = trial(command, runtime, "")
    base = {**base, **(ASKED_OF_ALL if "--sorts" in said else {})}
    words = {**base, **{option: value for option, (value, _) in said.items()}}
    before, after = (answered(command, runtime, one, with_request=True) for one in (base, words))
    assert before[0] == after[0] == 0, after[2]
    known = set(leaves(before[1]))
    told_now = [value for path, value in leaves(after[1]) if (path, value) not in known]
    assert [option for option, (_, value) in said.items() if value not in told_now] == []


def test_an_answer_is_the_same_when_nothing_else_is_said():
    """What is compared holds nothing that moves by itself."""
    for command in ("plan", "pareto"):
        first, second = (
            answered(command, "vllm", BASES[command], with_request=True) for _ in range(2)
        )
        assert first == second
