"""An answer goes out whole: files, then its text; what the system refuses is said."""

from __future__ import annotations

import io
import signal
import sys
from pathlib import Path

import pytest

from planner.report.files import Answer, deliver


class Refusing(io.StringIO):
    """A stream that the system does not let write."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error

    def fileno(self) -> int:
        return 1


FULL = OSError(28, "No space left on device")


def test_text_goes_to_stdout_and_the_rest_to_stderr(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    answer = Answer(text="a plan", files=(("a\x07.html", "page"),), message="error: none", code=1)
    assert deliver(answer) == 1
    assert capsys.readouterr() == ("a plan\n", "wrote a\\x07.html\nerror: none\n")
    assert (tmp_path / "a\x07.html").read_text(encoding="utf-8") == "page"


def test_a_file_that_cannot_be_written_keeps_neither_the_others_nor_the_text_back(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    files = (("gone/a.html", "page"), ("b.csv", "1,2"))
    assert deliver(Answer(text="a plan", files=files)) == 3
    out, err = capsys.readouterr()
    assert out == "a plan\n"
    assert err == (
        "wrote b.csv\n"
        "error: `gone/a.html` was not written, and is as it was: no such file or directory\n"
    )


@pytest.mark.parametrize(("code", "told"), [(0, 3), (1, 3), (2, 3), (4, 4), (130, 130)])
def test_a_full_disk_is_no_success_whatever_the_answer(monkeypatch, capsys, code, told):
    monkeypatch.setattr(sys, "stdout", Refusing(FULL))
    assert deliver(Answer(text="{}", is_data=True, code=code)) == told
    assert capsys.readouterr().err == (
        "error: the answer was not written: no space left on device\n"
    )


@pytest.mark.parametrize("code", [0, 1])
def test_a_reader_who_has_seen_enough_is_no_failure(monkeypatch, capsys, code):
    monkeypatch.setattr(sys, "stdout", Refusing(BrokenPipeError(32, "Broken pipe")))
    assert deliver(Answer(text="a plan", code=code)) == code
    assert capsys.readouterr().err == ""


def test_a_message_that_cannot_be_written_leaves_the_code(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Refusing(FULL))
    assert deliver(Answer(message="error: no", code=2)) == 2


def test_data_that_a_stream_has_no_characters_for_is_utf_8(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert deliver(Answer(text="4×4×4", is_data=True)) == 0
    assert raw.getvalue() == "4×4×4\n".encode()


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_at_the_last_moment_lets_the_answer_out(tmp_path, monkeypatch):
    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            signal.raise_signal(signal.SIGINT)
            return super().write(text)

    stream = Interrupted()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.chdir(tmp_path)
    assert deliver(Answer(text="a plan", files=(("a.html", "page"),))) == 0
    assert stream.getvalue() == "a plan\n"
    assert Path("a.html").read_text(encoding="utf-8") == "page"
