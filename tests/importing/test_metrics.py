"""Prometheus scrapes as runs, against counts by hand."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from planner.commands.cli import main
from planner.errors import RequestError
from planner_workshop.importing.metrics import quantile, read_metrics

DATA = Path(__file__).parents[1] / "data" / "deployed"
MODEL = "meta-llama/Llama-3.1-70B-Instruct"
FLAGS = f"vllm serve {MODEL} --tensor-parallel-size 4 --max-num-seqs 64"
AUDIT = ["audit", "--flags", FLAGS, "--topology", "h100-nvl8-x1"]

COUNTERS = {
    "prompt_tokens_total": 1_500_000,
    "generation_tokens_total": 300_000,
    'request_success_total,finished_reason="stop"': 900,
    'request_success_total,finished_reason="length"': 100,
    "prefix_cache_queries_total": 1_500_000,
    "prefix_cache_hits_total": 375_000,
}
HISTOGRAMS = {
    "iteration_tokens_total": ({"8": 0, "16": 15_000, "512": 3_750, "+Inf": 0}, 1_800_000),
    "time_to_first_token_seconds": (
        {"0.1": 200, "0.25": 500, "0.5": 200, "1.0": 50, "2.5": 40, "+Inf": 10},
        320.0,
    ),
    "inter_token_latency_seconds": ({"0.025": 250_000, "0.05": 49_000, "+Inf": 0}, 7_800.0),
    "request_time_per_output_token_seconds": (
        {"0.025": 400, "0.05": 590, "0.075": 10, "+Inf": 0},
        27.0,
    ),
    "request_prompt_tokens": ({"1000": 100, "2000": 900, "+Inf": 0}, 1_500_000),
    "request_generation_tokens": ({"200": 100, "500": 900, "+Inf": 0}, 300_000),
}


def scrape(times: int = 1, *, ranks: int = 1, running: float = 17.0, drafts: int = 0) -> str:
    """What vLLM 0.33 exposes, of a thousand requests or several, on ranks that share them."""
    lines = ["# HELP process_start_time_seconds Start time", "process_start_time_seconds 1.79e+09"]
    for rank in range(ranks):
        labels = f'engine="{rank}",model_name="{MODEL}"'
        lines.append(f"vllm:num_requests_running{{{labels}}} {running}")
        lines.append(f"vllm:num_requests_waiting{{{labels}}} 1.0")
        lines.append(f"vllm:prompt_tokens_created{{{labels}}} 1.7933e+09")
        for name, value in COUNTERS.items():
            name, _, label = name.partition(",")
            own = f"{labels},{label}" if label else labels
            lines.append(f"vllm:{name}{{{own}}} {value * times / ranks}")
        if drafts:
            lines.append(f"vllm:spec_decode_num_drafts_total{{{labels}}} {drafts}")
            lines.append(f"vllm:spec_decode_num_accepted_tokens_total{{{labels}}} {drafts}")
        for name, (counts, total) in HISTOGRAMS.items():
            n = 0
            for le, count in counts.items():
                n += count
                lines.append(f'vllm:{name}_bucket{{{labels},le="{le}"}} {n * times / ranks}')
            lines.append(f"vllm:{name}_count{{{labels}}} {n * times / ranks}")
            lines.append(f"vllm:{name}_sum{{{labels}}} {total * times / ranks}")
    return "\n".join([*lines, ""])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    return tmp_path


def read(folder, *texts):
    names = [f"{i}.txt" for i in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        (folder / name).write_text(text)
    return read_metrics(names)


def test_a_percentile_is_interpolated_in_its_bucket_as_prometheus_does():
    buckets = [(0.1, 200.0), (0.25, 700.0), (0.5, 900.0), (1.0, 950.0), (math.inf, 1000.0)]
    assert quantile(buckets, 0.5) == (pytest.approx(0.1 + 0.15 * 300 / 500), 0.1, 0.25)
    assert quantile(buckets, 0.1) == (pytest.approx(0.05), 0.0, 0.1)  # from 0 in the first
    assert quantile(buckets, 0.99) == (1.0, 1.0, math.inf)  # the bound of the last but one
    assert quantile([(1.0, 0.0), (2.0, 4.0), (3.0, 4.0)], 1.0) == (2.0, 1.0, 2.0)


def test_a_scrape_is_a_run_by_hand(folder):
    run = read(folder, scrape())
    assert run.tpot_s == pytest.approx(27.0 / 1000)  # of requests, not of tokens
    assert run.ttft_s == pytest.approx(320.0 / 1000)
    assert run.options == {
        "--engine": "vllm",
        "--model": MODEL,
        "--input": "1500",
        "--output": "300",
        "--batch": "16",  # 300,000 tokens in 18,750 passes
        "--hit-rate": "0.25",
    }
    assert run.notes[0].startswith(f"1,000 requests of {MODEL}, counted since the server started")
    assert "p50 190 ms (100 ms to 250 ms), p90 500 ms (250 ms to 500 ms), p99 2.5 s" in run.notes[3]
    assert "p50 29.2 ms (25 ms to 50 ms)" in run.notes[2]


def test_two_scrapes_count_what_lies_between(folder):
    before, both = scrape(1), scrape(3, running=19.0)
    run = read(folder, before, both)
    assert run.notes[0] == f"2,000 requests of {MODEL}, counted between the two scrapes"
    assert run.tpot_s == pytest.approx(27.0 / 1000)
    assert run.options["--batch"] == "16"
    with pytest.raises(RequestError, match=r"0\.txt.*counts less than the scrape before it"):
        read_metrics(["1.txt", "0.txt"])
    with pytest.raises(RequestError, match="two of it"):
        read_metrics(["0.txt", "1.txt", "1.txt"])


def test_ranks_are_counted_together_and_batches_are_of_one(folder):
    run = read(folder, scrape(ranks=4))
    assert run.options["--batch"] == "16"  # each counts its own passes
    assert run.notes[0].startswith("1,000 requests")
    lines = scrape(ranks=4, running=20.0).splitlines()
    run = read(folder, "\n".join(it for it in lines if "iteration_tokens" not in it))
    assert run.options["--batch"] == "20"  # of a moment, of each rank
    assert "20 sequences a rank at the moment of the scrape, 4 waiting" in run.notes[1]
    assert f"together {4 * 20 / 0.027:.3g} tok/s" in run.notes[1]


def test_drafts_that_were_accepted_are_no_sequences(folder):
    assert read(folder, scrape(drafts=150_000)).options["--batch"] == "8"  # two tokens each


def test_the_example_of_the_documentation_of_sglang():
    run = read_metrics([str(DATA / "sglang.prom")])
    assert run.tpot_s == pytest.approx(866964.5791549598 / 7.400757e6)
    assert run.ttft_s == pytest.approx(2.3518979474117756e6 / 11008)
    assert run.options == {
        "--engine": "sglang",
        "--model": "meta-llama/Llama-3.1-8B-Instruct",
        "--input": f"{8.128902e6 / 11228:.0f}",
        "--output": f"{7.557572e6 / 11228:.0f}",
        "--batch": "162",
        "--hit-rate": "0",
    }
    p50 = 0.075 + 0.025 * (7.400757e6 / 2 - 433413) / (4.950195e6 - 433413)
    assert f"p50 {p50 * 1e3:.1f} ms (75 ms to 100 ms)" in run.notes[2]
    assert "p90 over 30 s, p99 over 30 s" in run.notes[3]
    assert "2826 waiting" in run.notes[1]


def test_devices_of_a_rank_repeat_what_it_runs(folder):
    text = (DATA / "sglang.prom").read_text()
    own = next(it for it in text.splitlines() if it.startswith("sglang:num_running_reqs"))
    ranks = [
        own.replace("{", f'{{dp_rank="{dp}",tp_rank="{tp}",').replace("162.0", f"{100 + 20 * dp}.0")
        for dp in range(2)
        for tp in range(4)
    ]
    run = read(folder, text.replace(own, "\n".join(ranks)))
    assert run.options["--batch"] == "110"


def test_older_names_are_read_too(folder):
    lines = [it for it in scrape().splitlines() if "request_time_per_output" not in it]
    halves = scrape().replace("request_time_per_output_token_seconds_count", "x")
    assert read(folder, halves).tpot_s == pytest.approx(7_800.0 / 299_000)
    assert "p50 15" not in read(folder, halves).notes[2]
    old = "\n".join(lines).replace("inter_token_latency", "time_per_output_token")
    assert read(folder, old).tpot_s == pytest.approx(7_800.0 / 299_000)
    ray = scrape().replace("vllm:", "ray_vllm_")
    assert read(folder, ray).tpot_s == pytest.approx(27.0 / 1000)


def test_series_of_a_configuration_have_no_model(folder):
    text = 'vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0"} 1.0\n' + scrape()
    assert read(folder, text).notes[0].startswith(f"1,000 requests of {MODEL}, ")


def test_bounds_of_buckets_that_are_none_are_passed_over(folder):
    text = re.sub('le="(0.25|0.05)"', 'le="x"', scrape()).replace('le="0.5"', 'le="NaN"')
    assert read(folder, text).ttft_s == pytest.approx(0.32)
    bare = "\n".join(it for it in scrape().splitlines() if "_bucket" not in it)
    assert read(folder, bare).notes[3] == "TTFT measured: no percentiles"


def test_two_scrapes_are_of_one_server(folder):
    with pytest.raises(RequestError, match="is no scrape of one server, or two of it"):
        read(folder, scrape().replace(MODEL, "Qwen/Qwen3-32B"), scrape(3))
    gone = f'vllm:request_success_total{{model_name="{MODEL}",finished_reason="abort"}} 5\n'
    with pytest.raises(RequestError, match="counts less than the scrape before it"):
        read(folder, scrape() + gone, scrape(3))  # the server started anew meanwhile


def test_an_audit_of_a_scrape_is_that_of_what_it_says(folder, capsys):
    (folder / "m.txt").write_text(scrape())
    assert main([*AUDIT, "--metrics", "m.txt"]) == 0
    text = capsys.readouterr().out
    said = "--input 1500 --output 300 --hit-rate 0.25 --batch 16 --speed 37.037037037tok/s"
    assert main([*AUDIT, *said.split()]) == 0
    alone = capsys.readouterr().out
    a, b = (it.partition("what runs")[2].splitlines() for it in (text, alone))
    for line in ("observed", "predicted", "at equal speed", "at equal cost", "no more devices"):
        assert [it for it in a if it.strip().startswith(line)] == [
            it for it in b if it.strip().startswith(line)
        ]
    assert "measured beside predicted" in text
    assert "16 sequences a rank in a pass, on average" in text
    assert "TTFT measured: p50 190 ms (100 ms to 250 ms)" in text
    assert "1,000 requests" not in alone
    drafted = ["--draft", "eagle", "--lookahead", "3"]
    assert main([*AUDIT, *drafted, "--metrics", "m.txt"]) == 0
    text = capsys.readouterr().out
    (tpot,) = re.findall(r"(?m)^ +predicted +TPOT (.*)", text)  # by the audit
    assert tpot not in alone
    assert f"TPOT 27 ms, predicted {tpot}:" in text


ODD = {
    "": "is empty",
    "hello world\n": "1: hello world` is no sample",
    'vllm:x{engine="0"} one\n': "is no sample",
    "up 1\n": "has metrics of no engine that is known here",
    re.sub("time_per_output|inter_token", "no", scrape()): "has no time per output token",
    f"vllm:x{{{'a' * 2**18}}} 1{' ' * 2**18}!\n": "1: vllm:x{aaa",
    scrape(0): "has no time per output token, time to first token, request that was answered",
    re.sub(r"((?:output|inter)_token.*_seconds)_count", r"\1_", scrape()): "no time per output",
    re.sub(r"(prompt_tokens_(?:total|sum).*) .*", r"\1 NaN", scrape()): "has no prompt",
    re.sub(r"(generation_tokens_(?:total|sum).*) .*", r"\1 -3", scrape()): "has no answer",
    scrape(running=0.0).replace("iteration_tokens", "no"): "has no sequence that runs",
    scrape() + scrape().replace("vllm:", "sglang:"): "has metrics of sglang and vllm",
    scrape() + scrape().replace(MODEL, "other/model"): f"has metrics of {MODEL} and other/model",
}


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_what_is_no_scrape_of_one_server_is_refused(text, folder, capsys):
    (folder / "m.txt").write_text(text)
    assert main([*AUDIT, "--metrics", "m.txt"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert ODD[text] in said
    assert "m.txt" in said
    assert "--batch" not in said.partition("error")[2]


def test_every_line_that_is_no_sample_is_told_but_only_the_first(folder, capsys):
    (folder / "m.txt").write_text("\n".join(f"line {i} of text" for i in range(100_000)))
    assert main([*AUDIT, "--metrics", "m.txt,missing.txt"]) == 2
    said = capsys.readouterr().err
    assert "m.txt:5:" in said
    assert "m.txt:6:" not in said
    assert "missing.txt" in said


def test_a_scrape_is_of_the_engine_that_flags_start(folder, capsys):
    (folder / "m.txt").write_text(scrape())
    words = ["audit", "--flags", f"python -m sglang.launch_server --model-path {MODEL} --tp 4"]
    assert main([*words, "--metrics", "m.txt", "--topology", "h100-nvl8-x1"]) == 2
    assert "is sglang on the command line" in " ".join(capsys.readouterr().err.split())
    few = ["audit", "--flags", FLAGS.replace("64", "8"), *AUDIT[3:], "--metrics", "m.txt"]
    assert main(few) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "has 16 sequences a rank, and `--flags` has 8 at most" in said
    assert main([*AUDIT, "--metrics", "m.txt", "--measured", "m.txt", "--speed", "3tok/s"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "and `--measured` say the same" in said
    assert "is what `--metrics` says" in said


@pytest.mark.parametrize("model", ["qwen3-32b", "Qwen/Qwen3-32B-FP8", "llama-3.1-8b"])
@pytest.mark.parametrize("source", ["--metrics", "--measured"])
def test_a_result_of_another_model_is_refused_and_a_name_of_ones_own_is_said(
    source, model, folder, capsys
):
    run = Path(__file__).parents[2] / "examples" / "run.json"
    texts = {"--metrics": scrape(), "--measured": run.read_text().replace("Qwen/Qwen3-32B", MODEL)}
    (folder / "m").with_suffix(run.suffix).write_text(texts[source])
    words = ["audit", "--engine", "vllm", "--topology", "h100-nvl8-x1", "--tp", "4", source]
    assert main([*words, "m.json", "--model", model]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"`--model {model}` is not {MODEL}, of which m.json is: name the model that ran" in said
    for name in (MODEL, "llama-3.1-70b"):
        (folder / "m.json").write_text(texts[source].replace(MODEL, name))
        assert main([*words, "m.json", "--model", "llama-3.1-70b", "--quiet"]) == 0
        assert "taken for" not in capsys.readouterr().err
    (folder / "m.json").write_text(texts[source].replace(MODEL, "our/tuned"))
    assert main([*words, "m.json", "--model", "llama-3.1-70b", "--quiet"]) == 0
    assert "`m.json` is of `our/tuned`, taken for `llama-3.1-70b`" in capsys.readouterr().err
