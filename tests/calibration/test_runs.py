"""Results of serving runs: each harness's file is the requests of `plan predict` that it was."""

import json
from pathlib import Path

import pytest

from planner.errors import RequestError
from planner_workshop.calibration.runs import read_runs, run_files

DATA = Path(__file__).parents[1] / "data" / "runs"
SENT = {"--input": "1024", "--output": "256"}
LOOP_OF_32 = {**SENT, "--in-flight": "32", "--waves": "10"}


def read(name):
    runs, refused = read_runs(DATA / name)
    assert not refused
    return runs


def test_a_result_of_vllm_is_a_closed_loop_with_its_waves():
    (run,) = read("vllm.json")
    assert run.options == {**LOOP_OF_32, "--model": "Qwen/Qwen3-32B"}
    assert (run.tpot_s, run.ttft_s, run.statistic) == (0.0345, 0.33, "mean")


def test_a_line_of_sglang_is_a_run_and_a_rate_is_as_many_as_were_in_flight():
    _, many, at_a_rate = read("sglang.jsonl")
    assert many.options == LOOP_OF_32
    assert many.place == f"{DATA / 'sglang.jsonl'}:2"
    assert at_a_rate.options == {**SENT, "--in-flight": "13"}
    assert at_a_rate.is_rate
    assert not many.is_rate


@pytest.mark.parametrize("name", ["profile_export_aiperf.json", "profile_export_genai_perf.json"])
def test_exports_of_aiperf_and_of_its_forerunner_say_the_same(name):
    (run,) = read(name)
    loop = {"--in-flight": "16", "--waves": "10", "--model": "Qwen/Qwen3-32B"}
    assert run.options == {**SENT, **loop}
    assert (run.tpot_s, run.ttft_s) == (0.027, 0.2)


def test_guidellm_has_a_run_for_each_benchmark_and_no_first_token_in_tpot():
    few, many = read("guidellm.json")
    assert few.options["--in-flight"] == "8"
    assert many.options == LOOP_OF_32
    assert many.tpot_s == 0.035  # its time per output token is 36 ms


def changed(tmp_path, **changes):
    run = json.loads((DATA / "vllm.json").read_text())
    run |= changes
    path = tmp_path / "run.json"
    path.write_text(json.dumps({key: value for key, value in run.items() if value != "left out"}))
    return path


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"failed": 4, "completed": 316}, "4 of 320 requests failed or were cut short"),
        ({"completed": 200}, "120 of 320 requests failed"),
        ({"mean_tpot_ms": "left out", "median_tpot_ms": "left out"}, "has no TPOT"),
        ({"mean_ttft_ms": 0.0}, "has no TTFT"),
        ({"total_output_tokens": 320}, "writes one token a request"),
        ({"max_concurrency": None, "request_rate": None, "request_throughput": None}, "in flight"),
    ],
)
def test_a_run_that_failed_or_lacks_a_time_is_refused(tmp_path, changes, reason):
    runs, (row,) = read_runs(changed(tmp_path, **changes))
    assert not runs
    assert reason in row.reason


def test_what_is_no_number_in_a_table_is_named_as_it_stands(tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text("n_input,n_output,in_flight,tpot_ms,ttft_ms\n1024,abc,4,-3,60\n")
    runs, (row,) = read_runs(file)
    assert not runs
    assert row.reason == "has n_output `abc`, tpot_ms `-3`, no number from 0"


def test_three_of_three_hundred_and_twenty_may_fail(tmp_path):
    assert read_runs(changed(tmp_path, failed=3, completed=317))[0]


def test_the_median_stands_in_where_there_is_no_mean(tmp_path):
    (run,), _ = read_runs(changed(tmp_path, mean_tpot_ms="left out"))
    assert (run.statistic, run.ttft_s) == ("median", 0.165)


def test_all_at_once_is_a_loop_of_one_wave(tmp_path):
    (run,), _ = read_runs(changed(tmp_path, max_concurrency=None))
    assert (run.options["--in-flight"], run.options["--waves"]) == ("320", "1")


def table(tmp_path, text):
    path = tmp_path / "runs.csv"
    path.write_text(text)
    return path


HEADER = "tp,n_input,n_output,in_flight,tpot_ms,ttft_ms,statistic,n_gpus,rate\n"


def test_a_row_of_a_csv_is_a_run_with_options_of_its_own(tmp_path):
    rows = "4,512,128,8,10,50,median,4,\n2,512,129,,10,50,,,5\n4,512,128,8,10,50,mean,8,\n"
    (first, second), refused = read_runs(table(tmp_path, HEADER + rows))
    assert (first.options["--tp"], first.statistic) == ("4", "median")
    # 5 requests a second that stay 50 ms and 128 times 10 ms
    assert (second.options["--in-flight"], second.is_rate) == ("7", True)
    assert [str(row) for row in refused] == [
        f"{tmp_path}/runs.csv:4  has 8 devices, and its degrees 4"
    ]


def test_a_run_of_several_replicas_is_what_one_of_them_did(tmp_path):
    rows = "2,1000,200,24,20,150,mean,6,\n2,1000,200,24,20,150,mean,2,\n"
    rows += "2,1000,200,,20,150,mean,6,6\n"
    (loop, at_rate), refused = read_runs(table(tmp_path, HEADER + rows), 3)
    assert [it.reason for it in refused] == ["has 2 devices, and its degrees 6"]
    assert loop.options["--in-flight"] == at_rate.options["--in-flight"] == "8"  # 2/s for 4.13 s


def test_all_columns_that_are_wrong_are_told_at_once(tmp_path):
    with pytest.raises(RequestError) as error:
        read_runs(table(tmp_path, "tpot_ms,n_inputs,what\n1,2,3\n"))
    said = {(it.value, it.fact) for it in error.value.problems}
    assert ("n_inputs", "no such column") in said
    assert ("ttft_ms", "is no column") in said


def test_files_of_others_are_no_runs(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"a": 1}')
    with pytest.raises(RequestError, match="no run of a harness that is known"):
        read_runs(path)
    kernels = table(tmp_path, "family,format,m,n,k,latency_us\n")
    assert run_files(kernels) == []
    assert len(run_files(DATA)) == 5
