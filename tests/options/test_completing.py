"""What shells offer: words of the moment, by `plan --complete`, as bash, zsh and fish ask it."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planner.commands.cli import main
from planner.commands.options.commands import COMMANDS, options_of
from planner.commands.options.helping import completions, install
from planner.commands.options.parsing import parse
from planner.errors import RequestError

TIMEOUT_S = 30.0


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("--model llama-3.1-7", ["llama-3.1-70b"]),
        ("--model=llama-3.1-7", ["--model=llama-3.1-70b"]),
        ("--topology h100-nvl8-x", [f"h100-nvl8-x{n}" for n in (4, 1, 2, 8)]),
        ("--topology tpu-v4-4x", [f"tpu-v4-4x{end}" for end in ("4x4", "8x8", "4x8")]),
        ("place --topology h100-fat-tree-x5", ["h100-fat-tree-x512"]),
        ("predict --device h100-s", ["h100-sxm"]),
        ("--engine v", ["vllm"]),
        ("--objective th", ["throughput"]),
        ("--roles a", ["apart"]),
        ("--weights bf16,mx", ["bf16,mxfp4"]),
        ("--allow-formats bf16,int8,mx", ["bf16,int8,mxfp4"]),
        ("--emit k", ["k8s"]),
        ("--emit k8s ", []),
        ("--layout prefill=WS2D,decode=WGXYZ", ["prefill=WS2D,decode=WGXYZ"]),
        ("--what-if nvl", ["nvlink="]),
        ("predict --role p", ["prefill"]),
        ("fleet --arrivals c", ["constant", "cv2:"]),
        ("compare --model palm-540b,palm-6", ["palm-540b,palm-62b"]),
        ("models palm-6", ["palm-62b"]),
        ("devices h100-s", ["h100-sxm"]),
        ("reproduce pope2022-table-2", ["pope2022-table-2"]),
        ("topologies imp", ["import"]),
        ("topologies import --format nv", ["nvidia-smi"]),
        ("par", ["pareto"]),
        ("--latency", ["--latency-target"]),
        ("--vers", ["--version"]),
        ("models --vers", []),
        ("verify ", []),
        ("--input ", []),
    ],
)  # fmt: skip
def test_what_may_follow_is_offered(line, offered):
    assert completions(line.split(" ")) == offered


def test_equals_signs_may_be_words_as_bash_has_them():
    assert completions(["--model", "=", "palm-6"]) == ["--model=palm-62b"]
    assert completions(["--model", "="])[:1] == ["--model=deepseek-r1"]


def test_every_value_that_is_offered_is_read():
    beside = {"--emit": " out"}
    for command in COMMANDS:
        for name, row in options_of(command).items():
            for text in completions([*COMMANDS_WORDS[command], name, ""]) if row.values else ():
                if text.endswith(("=", ":")) or not name.startswith("-"):
                    continue
                said = parse([*COMMANDS_WORDS[command], f"{name}={text}{beside.get(name, '')}"])
                assert [it for it in said.problems if "no such" in it.fact] == []


COMMANDS_WORDS = {
    name: [] if name == "plan" else name.split("-") if name == "topologies-import" else [name]
    for name in COMMANDS
}


def test_every_command_and_option_is_offered():
    assert {name.partition("-")[0] for name in COMMANDS} - {"plan"} == set(completions([""]))
    for command in COMMANDS:
        offered = completions([*COMMANDS_WORDS[command], "-"])
        assert {name for name in options_of(command) if name.startswith("-")} <= set(offered)


def test_a_file_of_the_working_folder_is_offered(tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "zebra.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert completions(["--model", "ze"]) == ["zebra"]


def test_the_command_prints_a_word_a_line(capsys):
    assert main(["--complete", "--roles", ""]) == 0
    assert capsys.readouterr().out.split() == ["together", "apart", "free"]
    assert main(["--complete", "verify", ""]) == 0
    assert capsys.readouterr().out.strip() == ""


def test_completion_of_an_unknown_shell_is_refused(monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/ksh")
    with pytest.raises(RequestError, match="ksh"):
        install()


@pytest.fixture
def script(tmp_path, monkeypatch, request):
    """The script of a shell that is here, and an environment whose `plan` is this one."""
    shell = request.param
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    called = tmp_path / "bin" / "plan"
    called.parent.mkdir()
    called.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m planner "$@"\n', encoding="utf-8")
    called.chmod(0o755)
    monkeypatch.setenv("PATH", f"{called.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "request.toml").write_text("", encoding="utf-8")
    return Path(install().split()[2].rstrip(","))


LINES = {
    "plan --model llama-3.1-7": "0b",
    "plan --model=llama-3.1-7": "0b",
    "plan --what-if nvl": "ink=",
    "plan --weights bf16,mx": "fp4",
    "plan topologies imp": "ort",
    "plan topologies import --format nv": "idia-smi",
    "plan --emit k8s requ": "est.toml",
    "plan verify requ": "est.toml",
    "plan predict --rol": "e",
}
"""What is typed before a tab, and what the tab adds."""


@pytest.mark.parametrize("script", ["bash", "zsh"], indirect=True)
def test_a_tab_adds_what_is_missing(script):
    shell = "zsh" if script.name == "_plan" else "bash"
    begins = {
        "bash": f"source {script}; PS1=; bind 'set enable-bracketed-paste off'",
        "zsh": f"fpath=({script.parent} $fpath); autoload -Uz compinit && compinit -u -D; PS1=",
    }
    process, terminal = pty.fork()
    if process == 0:
        os.execvp(shell, [shell, *(["--norc", "-i"] if shell == "bash" else ["-f", "-i"])])
    try:
        os.write(terminal, f"{begins[shell]}; echo rea''dy\n".encode())
        read_until(terminal, "ready")
        for line, added in LINES.items():
            os.write(terminal, f"{line}\t".encode())
            read_until(terminal, f"{line}{added}")
            os.write(terminal, b"\x15")  # the line is not run
    finally:
        os.kill(process, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(process, 0)


def read_until(terminal, text):
    """What a terminal shows up to a text; without it, a failure."""
    shown, until = b"", time.monotonic() + TIMEOUT_S
    while text not in re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]|[\r\a]", "", shown.decode(errors="replace")):
        if time.monotonic() > until:
            pytest.fail(f"no {text!r} in {shown!r}")
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 4096)


@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish_offers_what_is_missing(script):
    """`complete -C` says what a tab would."""
    for line, added in LINES.items():
        said = subprocess.run(
            ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
        )  # fmt: skip
        offered = [text.split("\t")[0] for text in said.stdout.splitlines()]
        assert any(f"{line}{added}".endswith(text) for text in offered), (line, offered)
