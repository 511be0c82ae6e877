"""A request that `--save-request` writes is answered by `plan run` as by its own command."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from planner.commands.cli import main
from planner.commands.options.commands import COMMANDS
from planner.commands.requests import SAVE

MODEL = Path(__file__).parents[2] / "models" / "llama-3.1-8b.toml"
SMALL = ("--model", "mine.toml", "--topology", "h100-nvl8-x1", "--batch", "16")
LENGTHS = ("--input", "512", "--output", "64")
REQUESTS = {
    "plan": (*SMALL, *LENGTHS, "--latency-target", "30ms"),
    "place": (*SMALL, "--engine", "vllm", "--demand", "200tok/s", "--html", "page.html"),
    "fleet": (*SMALL, *LENGTHS, "--rate", "2req/s", "--ttft-p99.9", "20s", "--simulated", "200"),
    "predict": (*SMALL, "--tp", "2", "--explain", "tpot"),
    "pareto": (*SMALL, *LENGTHS, "--engine", "vllm", "--csv", "-"),
    "compare": (
        *SMALL,
        *LENGTHS,
        "--weights",
        "bf16,fp8",
        "--by",
        "formats",
        "--engine",
        "vllm",
        "--json",
    ),
    "audit": (*SMALL, "--engine", "vllm", "--tp", "4", "--speed", "20tok/s"),
}
_SECONDS = re.compile(r'.*(?:HiGHS|enumeration|provers|"(?:wall|solve)_s": |"digest").*')
"""Lines that say how long a search took; of a page, which has no others, durations."""
_DURATION = re.compile(r"[\d.]+ (?:s|ms|us)\b")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(MODEL, "mine.toml")
    (tmp_path / "requests").mkdir()
    return tmp_path


def ran(capsys, *words):
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, _SECONDS.sub("…", out), err


def typed(command, words):
    return [*([] if command == "plan" else [command]), *words]


def test_every_command_that_takes_a_request_saves_it():
    own = {name for name, command in COMMANDS.items() if SAVE in command.names}
    assert own == {*REQUESTS, "repair", "stages", "layers", "experts"}


@pytest.mark.parametrize("command", REQUESTS)
def test_a_saved_request_is_answered_as_its_command_line(command, folder, capsys):
    """The seconds of the search apart, byte for byte; the file lies in another folder."""
    path = "requests/request.toml"
    first = ran(capsys, *typed(command, REQUESTS[command]), SAVE, path)
    assert first[0] == 0, first[2]
    pages = [page.replace(page.with_name("first")).read_text() for page in Path().glob("*.html")]
    again = ran(capsys, "run", path)
    assert again[:2] == first[:2]
    pages_again = [page.read_text() for page in Path().glob("*.html")]
    assert len(pages) == (command == "place")
    assert [_DURATION.sub("", it) for it in pages] == [_DURATION.sub("", it) for it in pages_again]
    saved = tomllib.loads(Path(path).read_text())
    assert saved["command"] == command
    assert saved["topology"] == "h100-nvl8-x1"
    assert "../mine.toml" in saved["model"]


def test_keys_are_options_as_they_were_typed(folder, capsys):
    ran(capsys, "fleet", *REQUESTS["fleet"], SAVE, "request.toml")
    text = Path("request.toml").read_text()
    assert text.startswith("# Request of `plan fleet`, 20")
    assert tomllib.loads(text) == {
        "command": "fleet",
        "model": "mine.toml",
        "topology": "h100-nvl8-x1",
        "batch": "16",
        "input": "512",
        "output": "64",
        "rate": "2req/s",
        "ttft-p99.9": "20s",
        "simulated": "200",
    }


def test_a_request_without_a_plan_is_saved_and_one_that_cannot_be_read_is_not(folder, capsys):
    assert ran(capsys, *SMALL, "--latency-target", "1us", SAVE, "none.toml")[0] == 1
    assert ran(capsys, "run", "none.toml")[0] == 1
    assert ran(capsys, *SMALL, "--latency-target", "30", SAVE, "unread.toml")[0] == 2
    assert not Path("unread.toml").exists()
    code, _, err = ran(capsys, *SMALL, SAVE, "nowhere/request.toml")
    assert (code, "its folder does not exist" in err) == (2, True)


def test_options_behind_the_file_replace_its_own(folder, capsys):
    words = (*SMALL, *LENGTHS, "--json")
    ran(capsys, *words, "--latency-target", "30ms", SAVE, "request.toml")
    behind = ("--latency-target", "20ms", "--quiet")
    direct = ran(capsys, *words[:-1], *behind)
    assert ran(capsys, "run", "request.toml", *behind) == direct
    assert direct[0] == 0
    assert ran(capsys, "run", "request.toml", *behind, SAVE, "other.toml")[0] == 0
    saved = tomllib.loads(Path("other.toml").read_text())
    assert (saved["latency-target"], saved["quiet"], "json" in saved) == ("20ms", True, False)


def test_files_are_named_from_the_folder_of_the_request(folder, capsys, monkeypatch):
    ran(capsys, *SMALL, "--quiet", SAVE, "requests/request.toml")
    here = ran(capsys, "run", "requests/request.toml")
    monkeypatch.chdir("requests")
    assert ran(capsys, "run", "request.toml") == here


def test_a_name_that_is_not_utf_8_is_refused(folder, capsys):
    words = ("predict", "--model", "m\udcff.toml", "--topology", "h100-nvl8-x1", "--tp", "2")
    code, _, err = ran(capsys, *words, SAVE, "request.toml")
    assert (code, "cannot hold a name that is not UTF-8" in err) == (2, True)
    assert not Path("request.toml").exists()
    shutil.copy("mine.toml", "größer.toml")
    words = ("predict", "--model", "größer.toml", "--topology", "h100-nvl8-x1", "--tp", "2")
    assert ran(capsys, *words, SAVE, "request.toml")[0] == 0
    assert ran(capsys, "run", "request.toml")[0] == 0


def test_the_folder_of_an_option_of_two_words_is_moved(folder, capsys):
    words = ("predict", *SMALL, "--tp", "2", "--emit", "shell", "out", SAVE)
    assert ran(capsys, *words, "requests/request.toml")[0] == 0
    saved = tomllib.loads(Path("requests/request.toml").read_text())
    assert saved["emit"] == "shell ../out"
    shutil.rmtree("out")
    assert ran(capsys, "run", "requests/request.toml")[0] == 0
    assert Path("out").is_dir()


def test_all_that_means_nothing_is_refused_with_its_line(folder, capsys):
    Path("bad.toml").write_text(
        '# mine\ncommand = "plan"\nmodel = "mine.toml"\nlatnecy-target = "30ms"\nbach = 8\n'
    )
    code, _, err = ran(capsys, "run", "bad.toml")
    assert code == 2
    assert "`bad.toml: line 4: latnecy-target`  is no option of `plan`: did you mean" in err
    assert "`bad.toml: line 5: bach`" in err
    Path("bad.toml").write_text('topology = "h100-nvl8-x1"\nlatency-target = 30\nchunk = "?"\n')
    code, _, err = ran(capsys, "run", "bad.toml", "--chunk", "2048")
    assert code == 2
    assert "`bad.toml: line 2: latency-target = 30`  no unit: write `30ms`" in err
    assert "chunk" not in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('command = "sweep"', "is no command that is run"),
        ("model = {a = 1}", "is no value of an option"),
        ("model = ", "is not TOML"),
        ("", "is empty"),
    ],
)
def test_a_file_that_holds_no_request_is_refused(text, message, folder, capsys):
    Path("bad.toml").write_text(text)
    code, _, err = ran(capsys, "run", "bad.toml")
    assert (code, message in err) == (2, True)


def test_a_run_without_a_file_says_where_it_stands(folder, capsys):
    for words in ((), ("--json",), ("--quiet", "request.toml")):
        code, _, err = ran(capsys, "run", *words)
        assert code == 2
        assert "name its file before all options" in " ".join(err.split())
    assert "no such file" in ran(capsys, "run", "none.toml")[2]
    assert ran(capsys, "run", "--help")[1].startswith("usage: plan run FILE")
