"""Every option of `plan fleet` moves what is asked: the request that a fleet is planned for."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.commands.cli import main
from planner.errors import PlannerError
from planner.specs.traffic.percentiles import USUAL_TARGETS
from tests.conformance.test_options import parsed

TRACE = str(Path(__file__).parents[1] / "data" / "fleet" / "azure2023_code.csv.gz")
FILE = """
[[class]]
name = "chat"
model = "llama-3.1-8b"
rate = "2 req/s"
input = 500
output = 100
[[kind]]
device = "h100-sxm"
count = 4
"""
CLASS = {"--model": "llama-3.1-8b", "--rate": "8req/s", "--input": "1500", "--output": "300"}
BASE = {**CLASS, "--engine": "vllm", "--topology": "h100-nvl8-x1"}
NOT_OF_ONE = dict.fromkeys((*CLASS, "--topology"))

Words = dict[str, str | None]
MOVES: dict[str, tuple[str, Words]] = {
    "--traffic": ("traffic.toml", NOT_OF_ONE),
    "--model": ("qwen3-8b", {}),
    "--rate": ("9req/s", {}),
    "--input": ("lognormal:1500:p99=8000", {}),
    "--output": ("exponential:300", {}),
    "--trace": (TRACE, {"--rate": None, "--input": None, "--output": None}),
    "--arrivals": ("cv2:4", {}),
    "--topology": ("h100-nvl8-x2", {}),
    "--state": ("state.toml", {}),
    "--count": ("h100-sxm=4", {}),
    "--price": ("h100-sxm=$2/h", {}),
    "--max-devices": ("4", {}),
    "--max-rent": ("$20/h", {}),
    "--max-power": ("5kW", {}),
    "--max-quality-loss": ("1%", {}),
    "--goodput": ("99% ttft<2s tpot<50ms", {}),
    "--engine": ("sglang", {}),
    "--roles": ("free", {}),
    "--connector": ("wire", {"--roles": "apart"}),
    "--prefill-devices": ("2", {}),
    "--decode-devices": ("2", {}),
    "--cuts": ("free", {}),
    "--no-sharing": ("", {}),
    "--router": ("random", {}),
    "--weights": ("fp8", {}),
    "--kv": ("fp8", {}),
    "--batch": ("64,256", {}),
    "--chunk": ("2048", {}),
    "--replica-devices": ("2", {}),
    "--simulated": ("5000", {}),
    "--solver": ("cpsat", {}),
    "--time-limit": ("100s", {}),
    "--gap": ("1%", {}),
    "--threads": ("2", {}),
    "--seed": ("7", {}),
    "--proof": ("one", {}),
    "--sorts": ("1", {}),
    "--sort-price": ("5%", {}),
    "--confidence": ("75%", {}),
    "--what-if": ("flops=2x", {}),
}
"""A value of each option that moves the request, and what else has to be said for that."""

ELSEWHERE = {
    *("--staircase", "--workers", "--html", "--csv", "--json", "--quiet", "--emit"),
    *("--save-request", "--brief", "--full", "--explain", "--keep-program", "--solver-report"),
}
"""Options that say how to answer: `test_fleet` of the commands."""

OF_ENGINES = {"--memory-fraction", "--workspace", "--rules", "--calibration"}
"""What engines take of a device, and what they start: of their tables in the answer."""


class AskedError(PlannerError):
    """Raised in place of an answer."""


@pytest.fixture
def asked(monkeypatch, tmp_path, capsys):
    """What a command line asks for."""
    found = []

    def keep(request, *, on_round):
        found.append(request)
        raise AskedError

    monkeypatch.setattr("planner.placing.fleets.planning.fleet", keep)
    monkeypatch.chdir(tmp_path)
    Path("traffic.toml").write_text(FILE)
    Path("state.toml").write_text('busy = ["node0/gpu0"]\n')

    def ask(words):
        typed = [w for key, value in words.items() if value is not None for w in (key, value) if w]
        main(["fleet", *typed])
        assert found, capsys.readouterr().err
        return found.pop()

    return ask


def test_every_option_moves_the_request(asked):
    assert parsed("fleet").keys() == MOVES.keys() | ELSEWHERE | OF_ENGINES | USUAL_TARGETS.keys()
    before: dict[str, object] = {}
    still = []
    for option, (value, beside) in MOVES.items():
        base = {**BASE, **beside}
        key = repr(base)
        if key not in before and option not in ("--traffic", "--trace"):
            before[key] = asked(base)
        if asked({**base, option: value}) == before.get(key):
            still.append(option)
    assert still == []


def test_every_percentile_is_a_target(asked):
    times = {option: f"{i + 1}ms" for i, option in enumerate(USUAL_TARGETS)}
    (one,) = asked({**BASE, **times}).classes
    assert {target.option: round(target.at_most_s * 1e3) for target in one.targets} == {
        option: i + 1 for i, option in enumerate(USUAL_TARGETS)
    }


def test_a_file_says_classes_and_kinds(asked):
    (one,) = (request := asked({"--engine": "vllm", "traffic.toml": ""})).classes
    assert (one.name, one.rate_per_s, request.site.n_devices) == ("chat", 2.0, 8)
    assert request.counts == {"h100-sxm": 4}


def test_a_trace_says_lengths_arrivals_and_rate(asked):
    asked_for = asked(
        {**BASE, "--trace": TRACE, **dict.fromkeys(("--rate", "--input", "--output"))}
    )
    (one,) = asked_for.classes
    assert one.arrivals.trace is one.lengths.trace
    assert one.rate_per_s == pytest.approx(2.57, abs=0.01)
