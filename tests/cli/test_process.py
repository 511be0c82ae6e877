"""The command as a process: what it loads, what it costs, what it writes to a pipe."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.benchmarks.interrupts import hear_ctrl_c

ROOT = Path(__file__).parents[2]
HEAVY = ("numpy", "highspy", "ortools", "networkx", "pydantic_core", "pandas")
HELP_CPU_S = 0.30

_LOADED = """\
import sys
import time
from planner.commands.cli import main
code = main(sys.argv[1:])
print([name for name in {heavy} if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""
_MAIN = "import sys; from planner.commands.cli import main; sys.exit(main())"


def spawn(*argv: str, code: str = _MAIN, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return subprocess.run(
        [sys.executable, "-c", code, *argv],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env={**kept, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **environment},
        timeout=60,
        check=False,
        preexec_fn=hear_ctrl_c,
    )


@pytest.mark.parametrize("argv", [("--help",), ("--version",), ("models", "x", "y")])
def test_nothing_heavy_is_loaded_to_help(argv):
    ran = spawn(*argv, code=_LOADED.format(heavy=HEAVY))
    assert ran.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["models", "topologies"])
def test_lists_read_files_and_load_no_solver(command):
    """What is known of each name is read off its file, which pydantic's schemas check."""
    ran = spawn(command, code=_LOADED.format(heavy=HEAVY))
    assert ran.stderr.splitlines()[-1] == "['pydantic_core']"


def test_help_takes_little_processor_time():
    """User and system time, the best of up to eight: what a machine under load adds is not ours.

    On a machine on which Python alone takes more than a quarter of that to start, four times its
    time is allowed.
    """
    seconds: list[float] = []
    while len(seconds) < 8 and min(seconds, default=HELP_CPU_S) >= HELP_CPU_S:
        seconds.append(_cpu_s(lambda: spawn("--help")))
    least = min(seconds)
    if least >= HELP_CPU_S:
        yardstick = [sys.executable, "-c", "import dataclasses, importlib.metadata, pathlib"]
        python = min(_cpu_s(lambda: subprocess.run(yardstick, check=True)) for _ in range(4))
        assert least < 4 * python


def _cpu_s(start: Callable[[], subprocess.CompletedProcess]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert start().returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


_INTERRUPTED = """\
import _thread, builtins, sys
real = builtins.__import__
def slow(name, *rest, **more):
    if name == "{module}":
        _thread.interrupt_main()
    return real(name, *rest, **more)
builtins.__import__ = slow
from planner.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "module",
    ["planner.commands.cli", "planner.quantities.table", "planner.planning.plans", "highspy"],
)
def test_ctrl_c_while_modules_are_imported_ends_in_one_line(module):
    """As it does when it falls into the first tenth of a second."""
    ran = spawn("--topology", "tpu-v4-4x4x4", code=_INTERRUPTED.format(module=module))
    assert ran.returncode == 130
    assert ran.stdout == ""
    assert ran.stderr == "error: interrupted before a plan was found\n"


_INTERRUPTED_IN_A_CLASS = """\
import builtins, signal, sys
real = builtins.__import__
class Named:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)
def slow(name, *rest, **more):
    if name == "planner.commands.options.parsing":
        type("Owner", (), {"field": Named()})
    return real(name, *rest, **more)
builtins.__import__ = slow
from planner.__main__ import main
sys.exit(main())
"""


def test_ctrl_c_while_a_class_is_made_ends_in_one_line():
    """Python makes a `RuntimeError` of what its fields raise as they learn their names."""
    ran = spawn("models", code=_INTERRUPTED_IN_A_CLASS)
    assert ran.stderr == "error: interrupted before a plan was found\n"
    assert (ran.returncode, ran.stdout) == (130, "")


_STARVED_TWICE = """\
import sys
import time
import planner.running.endings
from planner.__main__ import main
def starved(*rest):
    raise MemoryError
import planner.commands.cli
planner.commands.cli.main = planner.running.endings.cause_of = starved
sys.exit(main())
"""


def test_memory_that_ends_while_its_end_is_told_is_told_all_the_same():
    ran = spawn("models", code=_STARVED_TWICE)
    assert ran.stderr == "error: out of memory before a plan was found\n"
    assert (ran.returncode, ran.stdout) == (3, "")


def test_the_installed_command_is_the_guarded_one():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'plan = "planner.__main__:main"' in text


@pytest.mark.parametrize(
    ("argv", "code"), [(("--batch", "0"), 2), (("--topology", "tpu-v4-1x1x1"), 1), (("models",), 0)]
)
def test_the_exit_code_is_that_of_the_process(argv, code):
    ran = spawn(*argv)
    assert ran.returncode == code
    assert "Traceback" not in ran.stderr
    assert bool(ran.stdout) is (code == 0)


def test_a_pipe_gets_no_colour_and_lines_of_a_hundred_columns():
    ran = spawn("topologies", "tpu-v4-4x8x8")
    assert "\x1b" not in ran.stdout
    assert 80 < max(map(len, ran.stdout.splitlines())) <= 100


def test_a_stream_that_knows_only_ascii_is_no_error():
    ran = spawn("topologies", "tpu-v4-2x2x2", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert ran.returncode == 0
    assert "2x2x2" in ran.stdout


def on_terminal(code: str) -> tuple[str, list[float]]:
    """What a process writes to a terminal as its stderr, and when, from its first word on [s]."""
    leader, follower = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=follower,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb"},
        text=True,
    )
    os.close(follower)
    text, times = "", []
    with contextlib.suppress(OSError):  # as a terminal ends
        while piece := os.read(leader, 10_000):
            text += piece.decode()
            times.append(time.monotonic())
    os.close(leader)
    answer, _ = process.communicate(timeout=60)
    assert (process.returncode, bool(answer)) == (0, True)
    return text, [at - times[0] for at in times]


_SLOW = """\
import sys, time
import planner.planning.plans as plans, planner.programs.bounding as bounding
def slowly(function):
    def run(*rest, **more):
        time.sleep(2.5)
        return function(*rest, **more)
    return run
plans.candidates_of, plans.judge_plan = slowly(plans.candidates_of), slowly(plans.judge_plan)
bounding.Bounding._look_at = slowly(bounding.Bounding._look_at)
import planner.runtimes.engine_source as source
source.MOST_TIMED = 0
from planner.__main__ import main
sys.argv = ["plan", "--model", "llama-3.1-8b", "--topology", "h100-nvl8-x1", "--engine", "vllm",
            "--tp", "1", "--batch", "16", "--weights", "bf16", "--quiet"]
print(file=sys.stderr, flush=True)
sys.exit(main())
"""


def test_a_terminal_hears_something_in_every_two_seconds_and_a_pipe_nothing():
    """Reading, timing and verifying are slowed, and nothing of these tells of itself."""
    text, times = on_terminal(_SLOW)
    assert max(b - a for a, b in pairwise(times)) < 2.0
    for words in ("working, ", "timing deployments of vLLM on up to 8 devices, ", "verifying, "):
        assert words in text
    assert text.endswith("\r")  # the line is empty in the end
    assert spawn("--topology", "tpu-v4-2x2x2", "--model", "palm-8b", "--quiet").stderr == ""


def test_a_terminal_gets_colour():
    """A pseudo-terminal as stdout: the same text, with escapes."""
    leader, follower = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _MAIN, "models"],
        stdout=follower,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "NO_COLOR": ""},
    )
    assert process.wait(timeout=60) == 0
    os.close(follower)
    assert b"\x1b[" in os.read(leader, 100_000)
    os.close(leader)


def test_a_terminal_gets_the_first_screen_and_a_pipe_all():
    argv = ("predict", "--model", "llama-3.1-8b", "--topology", "h100-nvl8-x1", "--engine", "vllm")
    leader, follower = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _MAIN, *argv],
        stdout=follower,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100"},
    )
    assert process.wait(timeout=60) == 0
    os.close(follower)
    shown = os.read(leader, 100_000).decode().splitlines()
    os.close(leader)
    whole = spawn(*argv, COLUMNS="100").stdout.splitlines()
    assert shown[:-2] == whole[: len(shown) - 2]
    assert re.fullmatch(r"… \d+ more lines: `--full`", shown[-1])
    assert len(shown) <= 24 < len(whole)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("models >&-", 3),
        ("--batch 0 >&-", 2),
        ("--batch 0 2>&-", 2),
        ("--batch 0 --json >&- 2>&-", 3),
    ],
)
def test_a_stream_that_the_caller_closed_is_no_defect(line, code):
    shell = f'"{sys.executable}" -c "{_MAIN}" {line}'
    ran = subprocess.run(
        ["sh", "-c", shell],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert ran.returncode == code
    assert "Traceback" not in ran.stderr
    assert "defect" not in ran.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_half_an_answer_is_no_success(tmp_path, unbuffered):
    """A file that takes 1 or 2 kB of an answer of 5 (blocks are the shell's), then no more."""
    shell = f'ulimit -f 2; "{sys.executable}" -c "{_MAIN}" models > "{tmp_path / "half"}"'
    environment = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered}
    ran = subprocess.run(
        ["sh", "-c", shell],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=60,
        check=False,
    )
    assert 0 < (tmp_path / "half").stat().st_size <= 2048
    assert (ran.returncode, ran.stderr) == (
        3,
        "error: the answer was not written: file too large\n",
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_full_disk_is_said_in_one_line():
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-c", _MAIN, "models"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=60,
            check=False,
        )
    said = "error: the answer was not written: no space left on device\n"
    assert (ran.returncode, ran.stderr) == (3, said)


def test_a_closed_pipe_does_not_turn_an_error_into_a_success():
    process = subprocess.Popen(
        [sys.executable, "-c", _MAIN, "--batch", "0"],
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stderr is not None
    process.stderr.close()
    assert process.wait(timeout=60) == 2


def test_a_closed_pipe_ends_the_command_quietly():
    process = subprocess.Popen(
        [sys.executable, "-c", _MAIN, "topologies", "tpu-v4-16x16x16"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_the_package_runs_says_its_version_and_is_typed(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "planner", "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
        capture_output=True,
        text=True,
    )
    import planner

    assert ran.stdout.strip() == planner.__version__
    assert (Path(planner.__file__).parent / "py.typed").exists()
