"""Sweeps: the same rows however many share them, none lost and none twice whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest

import planner
from planner.commands.cli import main
from planner.commands.sweeping.crews import Shift, processes
from planner.commands.sweeping.requests import load_sweep
from planner.commands.sweeping.tasks import Task
from planner.report.answers.sweeps import document, frontier_of
from planner.report.documents.as_html import page_of
from tests.cli import dying

ROOT = Path(__file__).parents[2]
SWEEP = """\
[options]
engine = "roofline"
batch = "8"
[grid]
model = ["llama-3.1-8b"]
topology = ["h100-nvl8-x1"]
latency-target = ["10ms", "20ms", "1us"]
[[grid.workload]]
input = 512
output = 64
[[grid.workload]]
input = 2048
output = 128
[[request]]
command = "place"
model = "llama-3.1-8b"
topology = "h100-nvl8-x1"
replicas = 1
[[request]]
model = "llama-3.1-8b"
topology = "h100-nvl8-x1"
tp = 2
weights = ["bf16", "fp8"]
"""
N = 8


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "sweep.toml"
    path.write_text(SWEEP)
    return path


def rows_of(found):
    """Rows by index without what a clock says; each index once."""
    rows = {}
    for row in found:
        assert row["index"] not in rows
        rows[row["index"]] = {key: value for key, value in row.items() if key != "wall_s"}
    return rows


@pytest.fixture(scope="module")
def alone(file):
    return rows_of(planner.sweep(file, workers=1))


def test_each_request_is_a_row_with_its_plan_or_its_reason(alone):
    assert sorted(alone) == [*range(N)]
    assert [alone[i]["code"] for i in range(N)] == [0, 0, 0, 0, 1, 1, 0, 0]
    assert "no plan decodes `llama-3.1-8b`" in alone[4]["reason"]
    assert alone[0]["tpot_s"] <= 0.010 < alone[2]["tpot_s"] or alone[0] != alone[2]
    assert (alone[6]["kind"], alone[6]["n_replicas"]) == ("placement", 1)
    assert alone[7]["--weights"] == "bf16,fp8"
    assert alone[1]["command"].endswith("--latency-target 10ms --input 2048 --output 128")


def test_a_row_is_the_answer_of_its_command(alone, capsys):
    for i in (3, 4, 7):
        code = main([*alone[i]["command"].split()[1:], "--json"])
        envelope = json.loads(capsys.readouterr().out)
        assert (code, envelope["digest"]) == (alone[i]["code"], alone[i]["answer_digest"])
    deployment = envelope["answer"]["deployment"]
    assert deployment["tpot_s"] == alone[7]["tpot_s"]
    assert deployment["usd_per_token"] == alone[7]["usd_per_token"]


def test_threads_of_another_s_executor_give_the_same_rows(file, alone):
    with ThreadPoolExecutor(2) as executor:
        assert rows_of(planner.sweep(file, executor=executor)) == alone


def test_a_worker_that_is_killed_loses_no_row(file, alone):
    found = planner.sweep(file, workers=2)
    rows = iter(found)
    first = next(rows)
    os.kill(next(iter(found._crew.executor._processes)), signal.SIGKILL)
    assert rows_of([first, *rows]) == alone


def test_what_kills_its_workers_is_given_up_and_nothing_beside_it(tmp_path):
    words = {1: ("die",), 3: ("die",), 4: ("once", str(tmp_path / "four")), 5: ("die",)}
    tasks = [Task(index=i, words=words.get(i, ("slow",)), command="") for i in range(8)]
    crew = processes(2)
    shift = Shift(crew, dying.work, given_up=lambda task, _: -task.index, tick=lambda: None)
    try:
        done = [one for some in shift.results(tasks) for one in some]
    finally:
        crew.close()
    assert sorted(done) == [-5, -3, -1, 0, 2, 4, 6, 7]


def test_a_sweep_that_is_killed_goes_on_and_its_workers_end(file, alone, tmp_path, capsys):
    folder = tmp_path / "rows"
    words = ["sweep", str(file), "--folder", str(folder), "--workers", "2", "--keep", "answers"]
    process = subprocess.Popen(
        [sys.executable, "-m", "planner", *words],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    journal = folder / "rows-00001.jsonl"
    wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 2)
    process.kill()
    process.wait()
    wait_until(lambda: not is_there(process.pid))
    kept = journal.read_bytes()
    journal.write_bytes(kept + b'{"index": 7, "co')
    assert main(words) == 0
    assert rows_of(map(json.loads, journal.read_bytes().splitlines())) == alone
    assert journal.read_bytes().startswith(kept)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert [part["n_rows"] for part in manifest["parts"]] == [N] == [manifest["n_done"]]
    assert "8 requests: 6 plans, 2 without" in capsys.readouterr().out
    assert main(["verify", str(folder / "answers" / "000003.json"), "--quiet"]) == 0


def wait_until(holds, limit_s=120.0):
    until_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def is_there(group):
    """Whether a process of a group is alive."""
    with suppress(ProcessLookupError):
        os.killpg(group, 0)
        return True
    return False


def test_rows_in_parquet_are_the_same_and_are_found_again(file, alone, tmp_path):
    pytest.importorskip("pyarrow")
    with ThreadPoolExecutor(1) as executor:
        made = {"executor": executor, "folder": tmp_path / "rows", "parts": "parquet"}
        assert rows_of(planner.sweep(file, **made)) == alone
        assert not [*(tmp_path / "rows").glob("*.jsonl")]
        again = planner.sweep(file, **made)
        assert rows_of(again.rows.values()) == alone
        frame = again.frame()
    assert [*frame["code"]] == [alone[i]["code"] for i in range(N)]


def test_rows_of_other_requests_are_not_added_to(file, tmp_path):
    folder = tmp_path / "rows"
    with ThreadPoolExecutor(1) as executor:
        planner.sweep(file, executor=executor, folder=folder).close()
        other = [{"model": "llama-3.1-8b", "topology": "h100-nvl8-x1", "engine": "roofline"}]
        with pytest.raises(planner.RequestError, match="holds another sweep: 1 of 1 requests"):
            planner.sweep(other, executor=executor, folder=folder)
        held = planner.sweep(file, executor=executor, folder=folder)
        with pytest.raises(planner.RequestError, match="is being written by another process"):
            planner.sweep(file, executor=executor, folder=folder)
        held.close()


def test_a_file_that_changed_makes_another_request(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "models" / "llama-3.1-8b.toml").read_text()
    requests = [{"model": "own.toml", "topology": "h100-nvl8-x1", "engine": "roofline"}]
    digests = []
    with ThreadPoolExecutor(1) as executor:
        for note in ("", "\n# otherwise\n"):
            Path("own.toml").write_text(text + note)
            digests.append(planner.sweep(requests, executor=executor).tasks[0].digest)
    assert digests[0] != digests[1]


FAULTS = """\
command = "pareto"
grids = 1
[options]
json = true
latency_target = "30ms"
latency-target = "30ms"
[grid]
model = "llama-3.1-8b"
seed = [[{a = 1}]]
"""
OPTION_FAULTS = """\
[options]
engine = "roofline"
[grid]
model = ["llama-3.1-8b", "llama-3.1-9b"]
latency-target = ["30ms", "3"]
chunk = [512]
[[request]]
speed = "3"
"""


def test_faults_of_the_file_are_said_all_at_once(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(FAULTS)
    with pytest.raises(planner.SpecError) as raised:
        load_sweep(path)
    assert {(one.key, one.fact) for one in raised.value.problems} >= {
        ("grids", "means nothing in a sweep"),
        ("grid.model", "is no list of values"),
    }
    path.write_text(FAULTS.replace('model = "llama-3.1-8b"', 'model = ["llama-3.1-8b"]'))
    with pytest.raises(planner.SpecError) as raised:
        load_sweep(path)
    assert {(one.key, one.fact) for one in raised.value.problems} == {
        ("command", "is no command that is swept"),
        ("grids", "means nothing in a sweep"),
        ("options.json", "is of an answer alone"),
        ("options.latency-target", "is `options.latency_target` too"),
        ("grid.seed[0]", "is no value of an option"),
    }
    path.write_text("[options]\nseed = 1\n")
    with pytest.raises(planner.SpecError, match="holds no request"):
        load_sweep(path)
    path.write_text("[grid]\n" + "".join(f"a{i} = {[*range(50)]}\n" for i in range(3)))
    with pytest.raises(planner.SpecError, match="holds 125,000 requests: at most 100,000"):
        load_sweep(path)


def test_a_request_that_stands_there_twice_is_refused(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text('[options]\nmodel = "llama-3.1-8b"\n[[request]]\n[[request]]\n')
    with pytest.raises(planner.RequestError) as raised:
        planner.sweep(path, folder=tmp_path / "rows", workers=1)
    assert {one.fact for one in raised.value.problems} == {"is there several times"}


def test_faults_of_options_are_said_where_they_are_written_before_anything_runs(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(OPTION_FAULTS)
    with ThreadPoolExecutor(1) as executor, pytest.raises(planner.RequestError) as raised:
        planner.sweep(path, executor=executor, folder=tmp_path / "rows")
    assert {(one.key, one.value) for one in raised.value.problems} == {
        ("grid.model[1]", "llama-3.1-9b"),
        ("grid.latency-target[1]", "3"),
        ("grid.chunk[0]", "512"),
        ("request[0].speed", "3"),
    }
    assert "the first of 5 is `plan --engine roofline --model llama-3.1-8b" in raised.value.hint
    assert not (tmp_path / "rows").exists()


def test_options_of_the_command_itself_are_checked(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--workers", "0", "--parts", "csv", "--keep", "all", "--dask", "tcp://x:1"]
    assert main(["sweep", "none.toml", *words]) == 2
    message = capsys.readouterr().err
    for name in ("`none.toml`    no such file", "`--workers 0`", "`--parts csv`", "`--keep all`"):
        assert name in message
    assert main(["sweep"]) == 2
    assert "no file is given" in capsys.readouterr().err


def test_a_page_has_frontiers_and_every_row(alone):
    rows = [{**alone[i], "wall_s": 0.0} for i in range(N)]
    text = page_of(document(rows, folder="rows", elapsed_s=1.0))
    page = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))
    (table,) = (one for one in page.iterfind(".//{*}table") if "sorts" in one.get("class", ""))
    assert len([*table.iterfind(".//{*}tr")]) == N + 1
    assert len([*page.iterfind(".//{*}use")]) == 2 * len(
        frontier_of([r for r in rows if r["tpot_s"]])
    )
    assert "no plan decodes" in "".join(table.itertext())


def test_a_frontier_keeps_what_nothing_beats_in_both():
    rows = [
        {"index": i, "tpot_s": tpot, "usd_per_token": cost}
        for i, (tpot, cost) in enumerate([(1, 5), (2, 5), (2, 4), (3, 4), (4, 1), (4, 2)])
    ]
    assert [row["index"] for row in frontier_of(rows)] == [4, 2, 0]


@pytest.mark.dask
def test_a_dask_cluster_gives_the_same_rows(file, alone, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        folder = tmp_path / "rows"
        words = ["--dask", cluster.scheduler_address, "--folder", str(folder)]
        assert main(["sweep", str(file), *words]) == 0
    assert (
        rows_of(map(json.loads, (folder / "rows-00001.jsonl").read_bytes().splitlines())) == alone
    )
