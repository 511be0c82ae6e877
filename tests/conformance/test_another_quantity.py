"""Another quantity is one row and the coefficients of one runtime: all others refuse it by name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from subprocess import PIPE

import pytest

from tests.conformance.asking import RUNTIMES, SMALL, Ran
from tests.conformance.carbon import KG_PER_WH

TDP_W = 700.0
COUNTED = (*RUNTIMES["roofline"], *SMALL)
KG_PER_DEVICE = TDP_W * KG_PER_WH


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[..., Ran]]:
    """A command line, answered by a process in which there is that quantity."""
    command = [sys.executable, "-m", "tests.conformance.carbon"]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:

        def ran(*words: str) -> Ran:
            assert process.stdin is not None
            assert process.stdout is not None
            print(json.dumps(words), file=process.stdin, flush=True)
            return Ran(*json.loads(process.stdout.readline()))

        yield ran


def test_the_runtime_that_counts_it_keeps_the_limit_prints_it_and_is_verified(run, tmp_path):
    ran = run(*COUNTED, "--max-carbon", "0.9", "--objective", "latency", "--json")
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    deployment = answer["answer"]["deployment"]
    used = deployment["n_devices"] * KG_PER_DEVICE
    assert used <= 0.9
    free = json.loads(run(*COUNTED, "--objective", "latency", "--json").out)
    assert free["answer"]["deployment"]["n_devices"] * KG_PER_DEVICE > 0.9
    (limit,) = (one for one in answer["answer"]["limits"] if one["name"] == "carbon")
    assert (limit["used"], limit["limit"]) == (pytest.approx(used), 0.9)
    assert answer["request"]["targets"]["further"] == {"carbon": 0.9}
    path = tmp_path / "answer.json"
    path.write_text(ran.out)
    assert run("verify", str(path), "--quiet").code == 0
    report = run(*COUNTED, "--max-carbon", "0.9", "--objective", "latency")
    assert "kg CO2/h  ≤ 0.9" in report.out
    assert "--max-carbon KG" in run("--help").out


def test_out_of_reach_it_is_named_with_what_is_reachable(run):
    ran = run(*COUNTED, "--max-carbon", "0.1", "--json")
    assert ran.code == 1
    (obstacle,) = json.loads(ran.out)["answer"]["obstacles"]
    assert obstacle["name"] == "carbon"
    assert obstacle["reachable"] == pytest.approx(2 * KG_PER_DEVICE)
    assert f"--max-carbon {2 * KG_PER_DEVICE:g}" in json.loads(ran.out)["answer"]["command"]


@pytest.mark.parametrize("runtime", [name for name in RUNTIMES if name != "roofline"])
@pytest.mark.parametrize("command", [(), ("pareto",), ("compare",)])
def test_every_other_runtime_refuses_it_by_its_option(run, command, runtime):
    ran = run(*command, *RUNTIMES[runtime], *SMALL, "--max-carbon", "100")
    assert ran.code == 2
    assert "`--max-carbon" in ran.err
    assert "does not count kg CO2/h" in " ".join(ran.err.split())
