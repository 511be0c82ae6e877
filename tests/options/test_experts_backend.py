"""`--experts-backend`: which of an engine's programs runs experts, and where there is none."""

from __future__ import annotations

import json
import shlex

import pytest

from planner.estimates.kernel_files import kernel_table, load_kernels
from tests.conformance.test_options import ran

MIXTURE = ("--model", "qwen3-30b-a3b")
B200 = ("--device", "b200", "--engine", "trtllm", "--batch", "32")
POOL = ("--topology", "b200-nvl8-x1", "--engine", "trtllm")
FEW = ("--tp", "1", "--batch", "16", "--chunk", "8192", "--weights", "nvfp4")


def predicted(*words, on=B200):
    return whole(*words, on=on)["answer"]


def whole(*words, on):
    code, out, err = ran("predict", (*MIXTURE, *on, *words, "--json"))
    assert code == 0, err
    return json.loads(out)


def tpot(*words):
    return predicted(*words)["tpot_s"]["value"]


def test_another_backend_has_other_times_and_the_engines_own_choice_has_a_name():
    four = ("--weights", "nvfp4")
    usual = tpot(*four)
    assert tpot(*four, "--experts-backend", "TRTLLM") == usual
    assert tpot(*four, "--experts-backend", "CUTLASS") > 1.2 * usual
    sixteen = ("--weights", "bf16")
    assert tpot(*sixteen, "--experts-backend", "CUTLASS") == tpot(*sixteen)


@pytest.mark.parametrize(
    ("device", "engine", "number", "backend", "says"),
    [
        ("b200", "trtllm", "fp8_block", "DEEPGEMM", "moe_config: {backend: DEEPGEMM}"),
        ("b200", "trtllm", "fp8", "DEEPGEMM", "moe_config: {backend: DEEPGEMM}"),
        ("b200", "sglang", "fp8_block", "triton", "--moe-runner-backend triton"),
        ("h100-sxm", "vllm", "fp8_block", "triton", "--moe-backend triton"),
    ],
)
def test_each_engine_is_started_with_it(device, engine, number, backend, says):
    of = ("--device", device, "--engine", engine, "--batch", "32", "--weights", number)
    asked = whole("--experts-backend", backend, on=of)
    assert says in asked["answer"]["launch"]["command"]
    assert says.split()[0] not in predicted(on=of)["launch"]["command"]
    assert asked["request"]["records"]["kernels"]["experts_backend"] == backend


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        ((*MIXTURE, "--experts-backend", "WIDEEP"), "there are `CUTLASS`, `DEEPGEMM`, `TRTLLM`"),
        ((*MIXTURE, "--experts-backend", "DEEPGEMM", "--weights", "nvfp4"), "measured in nvfp4"),
        (("--model", "llama-3.1-8b", "--experts-backend", "CUTLASS"), "has no experts"),
    ],
)
def test_what_no_table_has_is_refused_by_the_option(words, fact):
    for command, on in (("predict", B200), ("plan", POOL)):
        code, _, err = ran(command, (*on, *words))
        assert code == 2
        assert "--experts-backend" in err
        assert fact in " ".join(err.split())


def test_a_plan_is_by_it_and_commands_that_ask_again_say_it():
    asked = (*MIXTURE, *POOL, *FEW, "--experts-backend", "CUTLASS", "--json")
    code, out, err = ran("plan", asked)
    assert code == 0, err
    best = json.loads(out)["answer"]["deployment"]
    assert "{backend: CUTLASS}" in best["launch"]["command"]
    words = shlex.split(best["command"])
    assert words[words.index("--experts-backend") + 1] == "CUTLASS"
    code, again, err = ran("predict", (*words[2:], "--json"))
    assert code == 0, err
    again = json.loads(again)["answer"]
    assert again["tpot_s"]["value"] == pytest.approx(best["tpot_s"]["value"])


def test_another_backend_than_was_asked_for_is_found_when_verified(tmp_path):
    _, out, _ = ran("plan", (*MIXTURE, *POOL, *FEW, "--experts-backend", "CUTLASS", "--json"))
    for is_altered in (False, True):
        path = tmp_path / f"{is_altered}.json"
        path.write_text(out.replace("CUTLASS}", "TRTLLM}") if is_altered else out)
        code, said, err = ran("verify", (str(path),))
        assert code == int(is_altered), said + err


def test_a_table_has_only_the_experts_of_its_backend():
    own, asked = kernel_table("b200", "trtllm"), kernel_table("b200", "trtllm", "CUTLASS")
    shipped = load_kernels("b200-trtllm-blocks").kernels
    assert own.kernels["experts", "nvfp4"] == shipped["experts", "nvfp4"]
    formats = {number for family, number in asked.kernels if family == "experts"}
    assert formats == {"bf16", "fp8", "nvfp4"}
    assert "moe_torch_flow_cutlass" in asked.kernels["experts", "nvfp4"].fit.source
    rest = {key: one for key, one in own.kernels.items() if key[0] != "experts"}
    assert rest == {key: one for key, one in asked.kernels.items() if key[0] != "experts"}
