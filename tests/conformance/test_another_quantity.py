"""Another quantity is one row and the coefficients of one runtime: all others refuse it by name."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conformance.asking import RUNTIMES, SMALL
from tests.conformance.carbon import KG_PER_WH

TDP_W = 700.0
COUNTED = (*RUNTIMES["roofline"], *SMALL)
KG_PER_DEVICE = TDP_W * KG_PER_WH


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.conformance.carbon", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_runtime_that_counts_it_keeps_the_limit_prints_it_and_is_verified(tmp_path):
    ran = run(*COUNTED, "--max-carbon", "0.9", "--objective", "latency", "--json")
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    deployment = answer["answer"]["deployment"]
    used = deployment["n_devices"] * KG_PER_DEVICE
    assert used <= 0.9
    free = json.loads(run(*COUNTED, "--objective", "latency", "--json").stdout)
    assert free["answer"]["deployment"]["n_devices"] * KG_PER_DEVICE > 0.9
    (limit,) = (one for one in answer["answer"]["limits"] if one["name"] == "carbon")
    assert (limit["used"], limit["limit"]) == (pytest.approx(used), 0.9)
    assert answer["request"]["targets"]["further"] == {"carbon": 0.9}
    path = tmp_path / "answer.json"
    path.write_text(ran.stdout)
    assert run("verify", str(path), "--quiet").returncode == 0
    report = run(*COUNTED, "--max-carbon", "0.9", "--objective", "latency")
    assert "kg CO2/h  ≤ 0.9" in report.stdout
    assert "--max-carbon KG" in run("--help").stdout


def test_out_of_reach_it_is_named_with_what_is_reachable():
    ran = run(*COUNTED, "--max-carbon", "0.1", "--json")
    assert ran.returncode == 1
    (obstacle,) = json.loads(ran.stdout)["answer"]["obstacles"]
    assert obstacle["name"] == "carbon"
    assert obstacle["reachable"] == pytest.approx(2 * KG_PER_DEVICE)
    assert f"--max-carbon {2 * KG_PER_DEVICE:g}" in json.loads(ran.stdout)["answer"]["command"]


@pytest.mark.parametrize("runtime", [name for name in RUNTIMES if name != "roofline"])
@pytest.mark.parametrize("command", [(), ("pareto",), ("compare",)])
def test_every_other_runtime_refuses_it_by_its_option(command, runtime):
    ran = run(*command, *RUNTIMES[runtime], *SMALL, "--max-carbon", "100")
    assert ran.returncode == 2
    assert "`--max-carbon" in ran.stderr
    assert "does not count kg CO2/h" in " ".join(ran.stderr.split())
