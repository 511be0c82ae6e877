"""`--expert-loads`: of files and of laws, refused where nothing can be meant."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.conformance.test_options import ran

MIXTURE = ("--model", "qwen3-30b-a3b", "--device", "h100-sxm", "--batch", "32")


def tpot(*words):
    code, out, err = ran("predict", (*MIXTURE, *words, "--json"))
    assert code == 0, err
    return json.loads(out)["answer"]["tpot_s"]["value"]


def test_a_file_of_equal_loads_is_the_exponent_of_none(tmp_path):
    path = tmp_path / "loads.csv"
    path.write_text(",".join(["7"] * 128))
    even, usual = tpot("--expert-loads", str(path)), tpot()
    assert even == pytest.approx(tpot("--expert-loads", "0"))
    assert even > 1.02 * usual


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("--model", "llama-3.1-8b", "--expert-loads", "0"), "llama-3.1-8b has no experts"),
        ((*MIXTURE[:2], "--expert-loads", "none.csv"), "no such file"),
        ((*MIXTURE[:2], "--expert-loads", "few.csv"), "has 2 loads for 128 experts"),
        ((*MIXTURE[:2], "--expert-loads", "rows.csv"), "keep the row of one layer"),
        *(
            ((*MIXTURE[:2], "--expert-loads", text), "write one from 0 to 10, or the path")
            for text in ("nan", "inf", "-1", "1e6", "")
        ),
    ],
)
def test_what_is_wrong_is_said_by_the_option(words, fact, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.csv").write_text("1,2")
    (tmp_path / "rows.csv").write_text("1,2\n3,4")
    for command, where in (("predict", ("--device", "h100-sxm")), ("plan", ("--engine", "vllm"))):
        code, _, err = ran(command, (*words, *where))
        assert code == 2
        assert "--expert-loads" in err
        assert fact in " ".join(err.split())


def test_the_steeper_a_law_the_fewer_experts_are_read():
    """Those that are visited less than once in 10¹² times are never visited."""
    assert tpot("--expert-loads", "10") < tpot("--expert-loads", "2") < tpot("--expert-loads", "0")


def test_commands_that_ask_again_say_the_loads():
    pool = ("--engine", "vllm", "--model", "qwen3-30b-a3b", "--topology", "h100-nvl8-x1")
    few = ("--tp", "1", "--batch", "16", "--chunk", "8192", "--expert-loads", "0")
    code, out, err = ran("plan", (*pool, *few, "--json"))
    assert code == 0, err
    words = shlex.split(json.loads(out)["answer"]["deployment"]["command"])
    assert words[words.index("--expert-loads") + 1] == "0"
