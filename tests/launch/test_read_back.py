"""Launch files as deployments again: what `--emit` writes is what `--flags` predicts."""

from __future__ import annotations

from pathlib import Path

import pytest

import planner
from planner.commands.cli import main
from planner.report.launch.flags import tables
from planner.report.launch.servers import entrances_of
from planner.report.launch.writing import obstacles, written
from planner.results.predictions import Prediction
from planner.specs.records.runtimes import ENGINES
from planner_workshop.importing.deployments import read_servers
from tests.launch.test_emitted import STARTING, placed, predictions, readers

N_PREDICTED = 9


def starts(texts: dict[str, str]) -> str:
    """The file that starts servers."""
    return next(it for it in texts if it == "start.sh" or it.endswith(".yaml"))


def read_back(said: Prediction, path: Path) -> Prediction:
    """The prediction of what a file starts; what no file says is given beside it."""
    beside: dict[str, object] = {"topology": said.network, "input": 1500, "output": 300}
    assert said.launch is not None
    if "CHECKPOINT" in said.launch.variables:
        beside["weights"] = said.formats["weights"]
    answer = planner.predict(said.model, flags=str(path), **beside)
    assert isinstance(answer, Prediction)
    return answer


@pytest.mark.parametrize("target", STARTING)
def test_what_is_emitted_is_predicted_the_same_when_it_is_read_back(target, tmp_path):
    engines = set()
    for said in predictions(N_PREDICTED):
        plan = entrances_of(said)
        if list(obstacles(plan, target)):
            continue
        texts = written(plan, target, readers=readers)
        path = tmp_path / starts(texts)
        path.write_text(texts[path.name])
        again = read_back(said, path)
        engines.add(plan[0].pools[0].engine)
        assert again.tpot_s.value == said.tpot_s.value, texts[path.name]
        assert again.ttft_s.value == said.ttft_s.value, texts[path.name]
        assert again.formats == said.formats
        (server,) = read_servers(str(path), asked_by="--flags", model="")
        assert server.n_servers * server.n_devices == plan[0].pools[0].n_devices
    assert engines == {*tables()["targets"][target]["engines"]} & {*ENGINES}


@pytest.mark.parametrize("target", ["shell", "k8s", "llm-d", "dynamo", "ray"])
@pytest.mark.parametrize("engine", ENGINES)
def test_phases_apart_are_read_back_with_all_their_servers(engine, target, tmp_path):
    plan = placed(engine, "apart")
    if list(obstacles(plan, target)):
        return
    texts = written(plan, target, readers=readers)
    path = tmp_path / starts(texts)
    path.write_text(texts[path.name])
    servers = read_servers(str(path), asked_by="--flags", model="")
    planned = {it.role: it.n_devices for it in plan[0].pools}
    counted = {it.options.get("role"): it.n_servers * it.n_devices for it in servers}
    if (engine, target) == ("trtllm", "shell"):  # whose orchestrator alone knows which is which
        assert sum(it.n_servers * it.n_devices for it in servers) == sum(planned.values())
        return
    assert counted == planned


def test_a_file_of_two_phases_is_predicted_one_by_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    texts = written(placed("vllm", "apart"), "dynamo", readers=readers)
    Path("two.yaml").write_text(texts[starts(texts)])
    words = ["predict", "--flags", "two.yaml", "--topology", "h100-nvl8-x1"]
    lengths = ["--input", "2000", "--output", "500"]
    assert main([*words, *lengths]) == 2
    assert "write `--role prefill` or `--role decode`" in " ".join(capsys.readouterr().err.split())
    for role in ("prefill", "decode"):
        assert main([*words, *lengths, "--role", role]) == 0
        out, _ = capsys.readouterr()
        assert "llama-3.1-70b on" in out
        assert f"--role {role}" in " ".join(out.split())
    assert main(["audit", "--flags", "two.yaml", "--speed", "30tok/s"]) == 2
