"""Whatever a user types or writes: a message that names it, an exit code, no traceback."""

from __future__ import annotations

import os
import re

import pytest

from tests.cli.files import LINKED, MODEL

BAD_OPTIONS = [
    # (command line, exit code, what the message must say)
    ("--model palm-54b", ["`--model palm-54b`", "no such model", "`palm-540b`"]),
    ("--model ''", ["`--model`", "is empty"]),
    ("--model nowhere.toml", ["`nowhere.toml`", "no such file"]),
    ("--topology tpu-v5-4x4x4", ["`--topology tpu-v5-4x4x4`", "no such topology"]),
    ("--topology tpu-v4-4x8x9", ["`--topology tpu-v4-4x8x9`", "`z`", "9", "`tpu-v4-4x8x8`"]),
    ("--topology dgx-a100-x1025", ["`--topology dgx-a100-x1025`", "1025", "`dgx-a100-x1024`"]),
    ("--topology tpu-v4-0x4x4", ["`--topology tpu-v4-0x4x4`", "cannot be 0"]),
    ("--input 0", ["`--input 0`", "is zero"]),
    ("--input -5", ["`--input -5`", "is negative"]),
    ("--input 2.5", ["`--input 2.5`", "is not a whole number"]),
    ("--output nan", ["`--output nan`", "is not a whole number"]),
    ("--output 1e99", ["`--output 1e99`", "is not a whole number"]),
    ("--output 99999999999999999999", ["beyond anything real"]),
    ("--latency-target 30", ["`--latency-target 30`", "no unit", "`30ms`"]),
    ("--latency-target 30GB", ["`--latency-target 30GB`", "a size", "a time"]),
    ("--latency-target 30mz", ["`--latency-target 30mz`", "unknown unit `mz`"]),
    ("--latency-target -5ms", ["`--latency-target -5ms`", "is negative"]),
    ("--latency-target 0ms", ["`--latency-target 0ms`", "is zero"]),
    ("--latency-target nan", ["`--latency-target nan`", "does not begin with a number"]),
    ("--latency-target 1e300s", ["beyond anything real"]),
    ("--latency-target ''", ["`--latency-target`", "is empty"]),
    ("--latency-target", ["`--latency-target`", "has no value", "30ms"]),
    ("--ttft-target '1,5 s'", ["`--ttft-target 1,5 s`", "has a comma"]),
    ("--max-cost 20", ["`--max-cost 20`", "no unit", "USD/Mtoken"]),
    ("--max-cost '$20/h'", ["`--max-cost $20/h`", "a price by the hour"]),
    ("--max-devices 0", ["`--max-devices 0`", "is zero"]),
    ("--min-batch sixteen", ["`--min-batch sixteen`", "is not a whole number"]),
    ("--demand 20000", ["`--demand 20000`", "no unit", "`20000tok/s`"]),
    ("--demand 0tok/s", ["`--demand 0tok/s`", "is zero"]),
    ("--demand -3tok/s", ["`--demand -3tok/s`", "is negative"]),
    ("--demand 30ms", ["`--demand 30ms`", "a time", "a rate of tokens"]),
    ("--demand 9tok/s --objective throughput", ["`--demand 9tok/s`", "cannot be the objective"]),
    ("--max-quality-loss 2", ["`--max-quality-loss 2`", "is not below 1"]),
    (
        "--model llama-3.1-70b --max-quality-loss 0.05% --weights int8",
        ["`--weights int8`", "loses 0.1% of", "more than `--max-quality-loss 0.05%`", "`bf16`"],
    ),
    (
        "--model deepseek-v3 --max-quality-loss 0.1% --kv fp8",
        ["`--kv fp8`", "loses 3% of quality", "write `bf16`"],
    ),
    ("--tp 0", ["`--tp 0`", "is zero"]),
    ("--tp two", ["`--tp two`", "is not a whole number"]),
    ("--pp", ["`--pp`", "has no value"]),
    ("--ep 8", ["`--ep 8`", "`palm-540b` is dense", "leave it out"]),
    ("--dp 2", ["`--dp 2`", "`palm-540b` is dense", "`--demand` decides"]),
    ("--tp 3", ["`--tp 3`", "no mesh of `tpu-v4-4x8x8` has it", "`--tp 2` or `--tp 4`"]),
    ("--pp 2", ["`--pp 2`", "nearest: `--pp 1`"]),
    (
        "--topology dgx-a100-x4 --tp 16 --pp 3",
        ["`--pp 3`", "no mesh of `dgx-a100-x4` has it with `--tp 16`", "nearest: `--pp 2`"],
    ),
    (
        "--engine roofline --model deepseek-v3 --topology h100-nvl8-x16 --ep 48",
        ["`--ep 48`", "nearest: `--ep 32` or `--ep 64`"],
    ),
    ("--price 0", ["`--price 0`", "is zero", "`$2.10/h`"]),
    ("--price -3", ["`--price -3`", "is negative"]),
    ("--price '-$2/h'", ["`--price -$2/h`", "is negative"]),
    (
        "--engine erdil2025 --demand 9tok/s --dp 8",
        ["`--dp 8`", "no copies of attention"],
    ),
    ("audit --speed 9tok/s --batch 8 --tp 8", ["`--tp 8`", "means nothing to an audit"]),
    (
        "audit --speed 9tok/s --batch 8 --demand 9tok/s --max-quality-loss 1%",
        ["`--demand 9tok/s`", "`--max-quality-loss 1%`", "means nothing to an audit"],
    ),
    ("--objective speed", ["`--objective speed`", "no such objective"]),
    ("--objective latncy", ["did you mean `latency`?"]),
    ("--weights bf17", ["`--weights bf17`", "no such number format", "`bf16`"]),
    ("--weights fp8_static", ["`--weights fp8_static`", "not served in this format", "`bf16`"]),
    (
        "--weights fp8",
        ["`--weights fp8`", "not served in this format", "nor does `tpu-v4` multiply it"],
    ),
    ("--weights ''", ["`--weights`", "is empty"]),
    ("--batch 9:1", ["`--batch 9:1`", "runs backwards", "`1:9`"]),
    ("--batch 1,two", ["`--batch 1,two`", "`two`"]),
    ("--batch 1:1000000", ["`--batch 1:1000000`", "more than 4096 batches"]),
    ("--batch 8 --batch 16", ["`--batch 16`", "is given twice"]),
    ("--prefill-batch ,", ["`--prefill-batch ,`", "an empty part"]),
    ("--prefill fast", ["`--prefill fast`", "no such policy", "latency or cost"]),
    ("--solver gurobi", ["`--solver gurobi`", "highs, cpsat or exhaustive"]),
    ("--time-limit 10", ["`--time-limit 10`", "no unit"]),
    ("--gap 200%", ["`--gap 200%`", "is not below 1"]),
    ("--threads 0", ["`--threads 0`", "is zero"]),
    ("--seed -1", ["`--seed -1`", "is negative"]),
    ("--rate 8req/s --output 300", ["`--input`", "is missing", "`--input 1500 --output 300`"]),
    ("place --model palm-62b --rate 8req/s --input 9", ["`--output`", "is missing"]),
    ("--max-utilisation 85%", ["`--max-utilisation 85%`", "there is none"]),
    ("--demand 9tok/s --max-utilisation 0", ["`--max-utilisation 0`", "is no share of a capacity"]),
    ("--json --quiet", ["`--quiet`", "cannot go with `--json`"]),
    ("--latncy-target 30ms", ["`--latncy-target 30ms`", "did you mean `--latency-target`?"]),
    ("--frobnicate", ["`--frobnicate`", "no such option", "`plan --help`"]),
    ("--json=yes", ["`--json=yes`", "takes no value"]),
    ("modles", ["`modles`", "no such command", "`plan models`"]),
    ("plan", ["`plan`", "is the command itself", "leave it out"]),
    ("palm-540b", ["`palm-540b`", "no such command"]),
    ("--json palm-540b", ["`palm-540b`", "belongs to no option"]),
    ("models palm-54b", ["`plan models palm-54b`", "no such model", "`palm-540b`"]),
    ("models palm-540b palm-62b", ["`palm-62b`", "takes one name"]),
    ("topologies --csv -", ["`--csv -`", "means nothing to `plan topologies`"]),
    ("topologies tpu-v4", ["tpu-v4.toml", "describes many clusters"]),
]


def assert_is_a_message(ran, *words):
    """Exit 2, an error and only that on stderr, in lines that fit, naming what is wrong."""
    assert ran.code == 2, ran
    assert ran.err.startswith("error: the request cannot be read")
    assert "Traceback" not in ran.out + ran.err
    assert max(map(len, ran.err.splitlines())) <= 100
    flat = " ".join(ran.err.split())
    for word in words:
        assert word in flat


@pytest.mark.parametrize(("line", "words"), BAD_OPTIONS, ids=[line for line, _ in BAD_OPTIONS])
def test_an_option_that_cannot_be_read_is_named(plan, line, words):
    assert_is_a_message(plan(line), *words)


PREDICT = "predict --model qwen3-8b --device h100-sxm --engine vllm --batch 8"
BAD_LOOPS = [
    ("--hit-rate 100%", ["`--hit-rate 100%`", "is not below 1"]),
    ("--waves 3", ["`--waves 3`", "means nothing without `--in-flight`"]),
    ("--rate 1req/s --waves 3", ["`--waves 3`", "means nothing without `--in-flight`"]),
    ("--rate 1e13req/s", ["`--rate 1e13req/s`", "is beyond anything real"]),
    ("--in-flight 8", ["`--in-flight 8`", "says what `--batch` says"]),
    ("--polled 5 --role decode", ["`--polled 5`", "is of replicas that read prompts"]),
    ("--client inferencex", ["`--client inferencex`", "means nothing without `--in-flight`"]),
]
BAD_DRAFTS = [
    ("--draft eagle --acceptance 1", ["`--acceptance 1`", "is no probability below 1"]),
    ("--draft eagle --acceptance 120%", ["`--acceptance 120%`", "is no probability below 1"]),
    ("--draft eagle --lookahead 0", ["`--lookahead 0`", "is zero"]),
    ("--draft mtp", ["`--draft mtp`"]),
    ("--draft oracle", ["`--draft oracle`", "no such drafter"]),
    ("--acceptance 80%", ["`--acceptance 80%`", "means nothing without `--draft`"]),
    (
        "--draft oracle --acceptance 1 --lookahead two",
        ["for 3 reasons", "no such drafter", "is no probability below 1", "`--lookahead two`"],
    ),
]


@pytest.mark.parametrize(("line", "words"), BAD_LOOPS, ids=[line for line, _ in BAD_LOOPS])
def test_loops_and_arrivals_that_cannot_be_are_named_and_nothing_else_is_said(plan, line, words):
    assert_is_a_message(plan(f"{PREDICT} {line}"), *words)


@pytest.mark.parametrize("rate", ["1e-6", "1e12"])
def test_any_rate_that_can_be_read_is_carried_or_not(plan, rate):
    assert plan(f"{PREDICT} --rate {rate}req/s").code == 0


@pytest.mark.parametrize(("line", "words"), BAD_DRAFTS, ids=[line for line, _ in BAD_DRAFTS])
def test_drafts_of_a_prediction_that_cannot_be_are_named(plan, line, words):
    assert_is_a_message(plan(f"{PREDICT} {line}"), *words)


@pytest.mark.parametrize("line", ["", "--draft eagle", "--draft eagle --acceptance 99%"])
def test_drafts_that_can_be_are_predicted(plan, line):
    assert plan(f"{PREDICT} {line}").code == 0


def edited(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


BAD_MODELS = {
    "empty": ("", ["is empty"]),
    "no TOML": ("n_layers 118", ["`bad.toml:1:", "is not TOML"]),
    "duplicate key": (
        edited(MODEL, "d_ff = 8192", "d_ff = 8192\nd_ff = 4096"),
        ["given before"],
    ),
    "misspelt key": (edited(MODEL, "d_model", "d_modle"), ["shape.d_modle", "d_model"]),
    "missing key": (edited(MODEL, "n_layers = 16\n", ""), ["shape.n_layers"]),
    "negative": (edited(MODEL, "n_layers = 16", "n_layers = -16"), ["shape.n_layers", "-16"]),
    "zero": (edited(MODEL, "d_head = 128", "d_head = 0"), ["shape.d_head"]),
    "a fraction": (edited(MODEL, "n_heads = 16", "n_heads = 16.5"), ["shape.n_heads", "16.5"]),
    "a text": (edited(MODEL, "d_ff = 8192", 'd_ff = "big"'), ["shape.d_ff", "big"]),
    "nan": (edited(MODEL, "value = 1.014e9", "value = nan"), ["check.n_params"]),
    "unknown format": (edited(MODEL, '"int8"', '"int9"'), ["formats.published.weights", "int9"]),
    "another size": (edited(MODEL, "value = 1.014e9", "value = 7e9"), ["check.n_params"]),
    "no source": (
        edited(MODEL, 'value = 1.014e9, source = "assumed" }', "value = 1.014e9 }"),
        ["check.n_params"],
    ),
    "heads that do not divide": (
        edited(MODEL, "n_kv_heads = 1", "n_kv_heads = 3"),
        ["n_kv_heads"],
    ),
}


@pytest.mark.parametrize("name", BAD_MODELS)
def test_a_model_file_with_a_fault_is_named_with_its_key(plan, folder, name):
    text, words = BAD_MODELS[name]
    (folder / "bad.toml").write_text(text, encoding="utf-8")
    assert_is_a_message(plan("--model bad.toml"), "bad.toml", *words)


BAD_POOLS = {
    "disconnected": (
        edited(LINKED, 'a = "b"\nb = "c"', 'a = "b"\nb = "a"'),
        ["`c`"],
    ),
    "unknown device on a link": (edited(LINKED, 'b = "c"', 'b = "z"'), ["z"]),
    "a link to itself": (edited(LINKED, 'a = "b"\nb = "c"', 'a = "c"\nb = "c"'), ["c"]),
    "a device twice": (edited(LINKED, '["a", "b", "c"]', '["a", "b", "b", "c"]'), ["devices"]),
    "negative bandwidth": (edited(LINKED, '"50 GB/s"', '"-50 GB/s"'), ["bandwidth", "negative"]),
    "bandwidth without a unit": (edited(LINKED, '"50 GB/s"', '"50"'), ["bandwidth", "no unit"]),
    "a time for a bandwidth": (edited(LINKED, '"50 GB/s"', '"50 us"'), ["bandwidth", "a time"]),
    "infinite latency": (edited(LINKED, '"1 us"', '"inf us"'), ["latency"]),
    "unknown device": (edited(LINKED, '"tpu-v4"', '"tpu-v9"'), ["cluster.device", "tpu-v9"]),
    "unknown convention": (
        edited(LINKED, 'activation_network = "tree"', 'activation_network = "fast"'),
        ["activation_network", "fast"],
    ),
    "no fabric": (LINKED.split("[linked]")[0], ["bad.toml"]),
}


@pytest.mark.parametrize("name", BAD_POOLS)
def test_a_topology_file_with_a_fault_is_named_with_its_key(plan, folder, name):
    text, words = BAD_POOLS[name]
    (folder / "bad.toml").write_text(text, encoding="utf-8")
    assert_is_a_message(plan("--topology bad.toml"), "bad.toml", *words)


@pytest.mark.parametrize("option", ["--model", "--topology"])
class TestWhatIsNoTextFile:
    def test_a_folder(self, plan, folder, option):
        (folder / "bad.toml").mkdir()
        assert_is_a_message(plan(f"{option} bad.toml"), "`bad.toml`", "is a folder")

    def test_binary(self, plan, folder, option):
        (folder / "bad.toml").write_bytes(bytes(range(256)))
        assert_is_a_message(plan(f"{option} bad.toml"), "`bad.toml`", "is not text")

    def test_without_permission(self, plan, folder, option, monkeypatch):
        """Simulated, since root may read everything."""
        (folder / "bad.toml").write_text("x", encoding="utf-8")

        open_any = os.open

        def refuse(path, *flags):
            if str(path).endswith("bad.toml"):
                raise PermissionError(13, "Permission denied", str(path))
            return open_any(path, *flags)

        monkeypatch.setattr(os, "open", refuse)
        assert_is_a_message(plan(f"{option} bad.toml"), "`bad.toml`", "permission denied")

    def test_a_link_to_itself(self, plan, folder, option):
        (folder / "bad.toml").symlink_to(folder / "bad.toml")
        assert_is_a_message(plan(f"{option} bad.toml"), "bad.toml")

    def test_a_name_beyond_all_bounds(self, plan, option):
        assert_is_a_message(plan(f"{option} {'x' * 5000}.toml"), "no such file")

    def test_a_device(self, plan, option):
        assert_is_a_message(plan(f"{option} /dev/null"), "`/dev/null`", "not a regular file")


class TestAllFaultsAtOnce:
    def test_of_options(self, plan):
        ran = plan("--latency-target 30 --batch 9:1 --bacth 4 --solver gurobi stray --input 0")
        assert_is_a_message(ran, "for 6 reasons", "no unit", "runs backwards", "`--bacth 4`")

    def test_of_options_and_names(self, plan):
        ran = plan("--topology tpu-v4-4x8x9 --model palm-54b --latency-target 30")
        assert_is_a_message(ran, "for 3 reasons", "`--topology tpu-v4-4x8x9`", "no unit")
        assert re.findall("^hint: ", ran.err, re.M) == ["hint: "] * 2

    def test_of_two_files_and_an_option(self, plan, folder):
        model = edited(edited(MODEL, "d_head = 128", "d_head = 0"), "d_ff", "dff")
        (folder / "model.toml").write_text(model, encoding="utf-8")
        pool = edited(LINKED, '"50 GB/s"', '"50"')
        (folder / "pool.toml").write_text(pool, encoding="utf-8")
        ran = plan("--model model.toml --topology pool.toml --gap 2")
        assert_is_a_message(ran, "shape.d_head", "shape.dff", "bandwidth", "`--gap 2`")

    def test_of_an_option_and_what_the_model_allows(self, plan):
        ran = plan("--weights fp8 --latency-target 30")
        assert_is_a_message(ran, "for 2 reasons", "`--weights fp8`", "no unit")


class TestWhatCannotBeMet:
    """The request is understood, and there is no plan: exit 1."""

    @pytest.mark.parametrize(
        "line",
        [
            "--topology tpu-v4-2x2x2",  # 540 GB of weights on 8 × 34 GB
            "--model palm-8b --topology tpu-v4-1x1x1 --latency-target 1us",
            "--model palm-8b --topology tpu-v4-2x2x2 --max-cost '$0.001/Mtoken'",
            "--model palm-8b --topology tpu-v4-2x2x2 --batch 1:8 --min-batch 64",
        ],
    )
    def test_says_why_and_what_is_reachable(self, plan, line):
        ran = plan(line)
        assert ran.code == 1
        assert ran.out == ""
        assert ran.err.startswith("error: no plan ")
        assert "Because " in ran.err
        assert "reachable" in ran.err
        assert "Traceback" not in ran.err


def test_a_request_beyond_all_bounds_is_refused_before_it_costs_memory(plan):
    ran = plan("--input 999999999 --batch 1:4096 --min-batch 99999999999")
    assert_is_a_message(ran, "`--input 999999999`", "`--min-batch 99999999999`")


SPOILT = '[device]\nname = "spoilt"\n'


def test_devices_with_faults_are_said_to_be_left_out(plan, folder):
    (folder / "topologies/devices").mkdir(parents=True)
    (folder / "topologies/devices/spoilt.toml").write_text(SPOILT)
    ran = plan("devices --json")
    assert ran.code == 0
    assert "spoilt" not in ran.out
    said = "is left out: it has 5 faults: `plan devices spoilt` lists them all"
    assert said in " ".join(ran.err.split())
    assert plan("devices spoilt").err.count("is missing") == 5


@pytest.mark.parametrize("kind", ["models", "topologies"])
def test_a_list_says_which_files_have_faults_and_how_to_see_them(plan, folder, kind):
    section = kind.replace("models", "model").replace("topologies", "cluster")
    (folder / kind).mkdir()
    (folder / kind / "spoilt.toml").write_text(f'[{section}]\nname = "spoilt"\n')
    listed = " ".join(plan(kind).out.split())
    assert f"faults: `plan {kind} spoilt` lists them all" in listed
    assert plan(f"{kind} spoilt").code == 2


def test_a_pattern_with_a_fault_is_told_of_and_no_other_name_is_proposed(plan, folder):
    (folder / "topologies").mkdir()
    (folder / "topologies/v100-nvl8.toml").write_text(
        '[cluster]\nname = "v100-nvl8-x{n}"\n[pattern]\nn = "many"\n'
    )
    ran = plan("--topology v100-nvl8-x2")
    assert ran.code == 2
    assert "`topologies/v100-nvl8.toml: pattern.n = many`" in ran.err
    assert "no such topology" not in ran.err
    assert "did you mean" not in ran.err
