"""Serving runs in, constants of an engine out: planted ones come back, and answers have them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.commands.cli import main
from planner.commands.serving_runs import _given
from planner.errors import SpecError
from planner.estimates.calibrated import slowed_table
from planner.specs.ask.calibrations import load_calibrations
from planner_workshop.calibration.serving_fit import PRIOR_SDS, fit, likeliest_cause, telling

SENT = (
    *((1, 4, 1024, 256), (1, 32, 1024, 256), (2, 64, 1024, 512), (2, 8, 4096, 512)),
    *((4, 1, 512, 128), (4, 128, 2048, 256)),
)
HEADER = "model,engine,device,tp,n_input,n_output,in_flight,n_prompts,tpot_ms,ttft_ms"
NAMED = {"--model": "qwen3-32b", "--device": "h200", "--engine": "vllm"}


def times(options, *, slower=1.0, host_s=0.0):
    """TPOT and TTFT of an engine whose kernels and passes take longer [ms]."""
    given = _given(options)
    machines = given.machines
    engine = replace(machines.engine, decode_host_s=machines.engine.decode_host_s + host_s)
    kernels = slowed_table(machines.kernels, slower)
    planted = replace(given, machines=replace(machines, engine=engine, kernels=kernels)).times()
    return 1e3 * float(planted.tpot_s[0]), 1e3 * float((planted.ttft_s + planted.queue_s)[0])


def runs_of(path, **planted):
    lines = [HEADER]
    for tp, n, n_input, n_output in SENT:
        sent = {"--tp": tp, "--input": n_input, "--output": n_output, "--in-flight": n}
        sent = {name: str(value) for name, value in sent.items()} | {"--waves": "10"}
        tpot, ttft = times({**NAMED, **sent}, **planted)
        served = ",".join(NAMED[name] for name in ("--model", "--engine", "--device"))
        lines.append(f"{served},{tp},{n_input},{n_output},{n},{10 * n},{tpot:.6g},{ttft:.6g}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def slow_host(tmp_path_factory):
    """Runs of an engine whose decode passes take 1.5 ms longer, and the file made of them."""
    folder = tmp_path_factory.mktemp("runs")
    runs, mine = runs_of(folder / "runs.csv", host_s=1.5e-3), str(folder / "mine.toml")
    assert main(["calibrate", runs, "--output", mine]) == 0
    return runs, mine


def run(capsys, *words):
    code = main(list(words))
    return code, *capsys.readouterr()


PREDICT = ("predict", "--model=qwen3-32b", "--device=h200", "--engine=vllm", "--tp=2")
SIXTEEN = ("--in-flight=16", "--input=1024", "--output=512")


def test_a_planted_host_time_comes_back(capsys, slow_host):
    code, out, _ = run(capsys, "calibrate", slow_host[0])
    assert code == 0
    assert "most like a time of each decode pass: +1.4" in out or "+1.5" in out
    assert "plan predict --model qwen3-32b --device h200 --engine vllm --tp 2 --input 4096" in out
    (own,) = load_calibrations(slow_host[1])
    assert own.n_runs == 6
    assert own.statistic == "mean"
    assert own.decode_host_s > 1e-3
    assert own.tpot_off > 0.05
    assert own.tpot_left_out < 0.4 * own.tpot_off


@pytest.mark.parametrize("tpot", ["1e300", "1e-9"])
def test_runs_that_no_deployment_like_it_can_have_made_are_refused(capsys, tmp_path, tpot):
    """One beside a plausible one is listed; by itself nothing is left, and nothing is written."""
    rows = [f"qwen3-32b,vllm,h200,2,1024,256,4,40,{it},90" for it in ("12", tpot)]
    for some in (rows, rows[1:]):
        (tmp_path / "runs.csv").write_text("\n".join([HEADER, *some]) + "\n")
        mine = tmp_path / f"{len(some)}.toml"
        words = ("calibrate", str(tmp_path / "runs.csv"), "--output", str(mine))
        code, out, err = run(capsys, *words)
        assert (code, mine.exists()) == ((0, True) if some == rows else (2, False))
        assert "TPOT is" in out + err
        assert "times what is predicted: is it this model" in " ".join((out + err).split())


def test_planted_kernels_come_back(capsys, tmp_path):
    mine = str(tmp_path / "mine.toml")
    code, out, _ = run(
        capsys, "calibrate", runs_of(tmp_path / "a.csv", slower=1.2), "--output", mine
    )
    assert code == 0
    assert "most like launches and bytes of kernels that take longer: × 1.2" in out
    (own,) = load_calibrations(mine)
    assert 1.13 < own.bytes_slowness < 1.25
    assert own.flop_slowness == pytest.approx(1.0, abs=0.03)


def test_what_is_predicted_with_a_calibration_is_nearer_and_says_so(capsys, slow_host):
    sent = {**NAMED, "--tp": "2", "--in-flight": "16", "--input": "1024", "--output": "512"}
    true_ms, _ = times(sent, host_s=1.5e-3)
    shipped_ms, _ = times(sent)
    mine = f"--calibration={slow_host[1]}"
    code, out, _ = run(capsys, *PREDICT, *SIXTEEN, mine, "--json")
    assert code == 0
    answer = json.loads(out)["answer"]
    tpot_ms = 1e3 * answer["tpot_s"]["value"]
    assert abs(tpot_ms - true_ms) < 0.3 * abs(shipped_ms - true_ms)
    _, out, _ = run(capsys, *PREDICT, *SIXTEEN, mine)
    assert "calibrated by 6 runs of" in out


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "--device=h200", "--tp=2", *SIXTEEN),
        ("--topology=h200-nvl8-x1", "--batch=16,64", "--input=512", "--output=64"),
        ("place", "--topology=h200-nvl8-x1", "--input=512", "--output=64", "--batch=16,64"),
    ],
)
def test_a_calibrated_answer_holds(capsys, tmp_path, slow_host, words):
    mine = f"--calibration={slow_host[1]}"
    own = ("--model=qwen3-32b", "--engine=vllm", mine, "--json")
    code, out, _ = run(capsys, *words, *own)
    assert code == 0
    assert '"calibration": {' in out
    path = tmp_path / "answer.json"
    path.write_text(out)
    code, out, _ = run(capsys, "verify", str(path), "--prove")
    assert code == 0
    assert out.startswith("verified")


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("--model=llama-3.1-8b", "--engine=vllm"), "no entry for llama-3.1-8b under vllm on h200"),
        (("--model=qwen3-32b", "--engine=sglang"), "no entry for qwen3-32b under sglang on h200"),
    ],
)
def test_an_engine_or_model_that_no_run_was_of_is_refused(capsys, slow_host, words, fact):
    code, _, err = run(capsys, "predict", "--device=h200", *words, f"--calibration={slow_host[1]}")
    assert code == 2
    said = " ".join(err.split())
    assert fact in said
    assert "it has qwen3-32b under vllm on h200" in said


def test_faults_of_a_file_are_told_at_once(tmp_path, slow_host):
    text = Path(slow_host[1]).read_text(encoding="utf-8")
    wrong = text.replace('"mean"', '"avg"').replace("flop_slowness", "flop_slow")
    path = tmp_path / "wrong.toml"
    path.write_text(wrong + text)
    with pytest.raises(SpecError) as error:
        load_calibrations(str(path))
    keys = {problem.key for problem in error.value.problems}
    assert {"calibration[0].statistic", "calibration[0].flop_slow"} <= keys
    path.write_text(text + text)
    with pytest.raises(SpecError, match="is a second entry of qwen3-32b under vllm on h200"):
        load_calibrations(str(path))


def test_what_nobody_says_is_an_error_that_names_the_option(capsys, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("n_input,n_output,in_flight,tpot_ms,ttft_ms\n512,64,4,10,50\n")
    code, _, err = run(capsys, "calibrate", str(path), "--plot=a.svg")
    assert code == 2
    for option in ("--model", "--device", "--engine", "--tp", "--plot"):
        assert option in err


def test_a_folder_is_of_the_runs_in_it(capsys, tmp_path):
    (tmp_path / "runs.csv").write_text("tp,tpot_ms\n1,20\n")
    (tmp_path / "notes.txt").write_text("")
    of_folder, of_file = (
        run(capsys, "calibrate", str(it)) for it in (tmp_path, tmp_path / "runs.csv")
    )
    assert of_folder == of_file


def test_a_run_that_contradicts_the_command_is_refused_and_listed(capsys, slow_host):
    code, out, _ = run(capsys, "calibrate", slow_host[0], "--tp=2")
    assert code == 0
    assert "2 runs" in out
    assert "--tp 1: is 2 on the command line" in out


def test_an_audit_reads_what_was_measured(capsys, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("n_input,n_output,in_flight,n_prompts,tpot_ms,ttft_ms\n512,64,8,80,16,60\n")
    served = ("--model=qwen3-32b", "--topology=h200-nvl8-x1", "--engine=vllm", "--tp=2")
    code, out, _ = run(capsys, "audit", f"--measured={path}", *served)
    assert code == 0
    assert "16 ms a token" in out
    assert "batch 8" in out
    assert "TTFT 60 ms, predicted" in out
    code, _, err = run(capsys, "audit", f"--measured={path}", *served, "--speed=9tok/s")
    assert code == 2
    assert "is what `--measured` says" in " ".join(err.split())


def linear(at_zero, slopes):
    return lambda constants: at_zero + slopes @ constants


def test_constants_that_help_no_run_left_out_are_let_alone():
    """Two runs with one residual of either sign, and one constant that moves both alike."""
    slopes = np.zeros((2, 2, 6))
    slopes[:, 0, 2] = 100.0
    measured, least = np.array([[0.2, 0.0], [-0.2, 0.0]]), np.full(6, -np.inf)
    own = fit(measured, linear(np.zeros((2, 2)), slopes), least)
    assert own.share == 0.0
    assert not own.constants.any()


def test_no_constant_falls_below_the_least():
    slopes = np.zeros((3, 2, 6))
    slopes[:, 0, 2] = 100.0
    measured = np.full((3, 2), -0.3)
    measured[:, 1] = np.nan
    least = np.array([-np.inf, -np.inf, -1e-3, 0.0, 0.0, 0.0])
    own = fit(measured, linear(np.zeros((3, 2)), slopes), least)
    assert own.constants[2] == pytest.approx(-1e-3)


def test_a_run_that_is_far_off_counts_less():
    """Four runs say 1 ms, one says 20: a mean would be 4.8 ms, were there no Huber."""
    slopes = np.zeros((5, 2, 6))
    slopes[:, 0, 2] = 100.0
    measured = np.full((5, 2), np.nan)
    measured[:, 0] = [0.1, 0.1, 0.1, 0.1, 2.0]
    own = fit(measured, linear(np.zeros((5, 2)), slopes), np.full(6, -np.inf))
    assert own.constants[2] / max(own.share, 1e-9) < 2e-3 or own.share == 0.0
    assert likeliest_cause(own.before, own.slopes)[0] == "decode_host_s"


def test_the_next_run_is_of_the_constant_that_nobody_knows():
    """Decode is known to a tenth of its prior; a run that tells of requests comes first."""
    known, offered = np.zeros((4, 2, 6)), np.zeros((2, 2, 6))
    known[:, 0, 2] = offered[0, 0, 2] = 1.0 / PRIOR_SDS[2]
    offered[1, 1, 5] = 1.0 / PRIOR_SDS[5]
    assert telling(known, offered, 1) == [1]
