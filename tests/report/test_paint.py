"""Colour where it is wanted, plain text elsewhere, ASCII where nothing else passes."""

from __future__ import annotations

import io

import pytest

from planner.report.paint import width, write, write_data

TEXT = "error: no plan\n\n  TPOT ≤ 5 ms on 4×4×4 ██▌"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def written(stream: io.StringIO) -> str:
    write(TEXT, stream)
    return stream.getvalue()


def test_a_terminal_gets_colour_and_the_same_text():
    import re

    text = written(Terminal())
    assert "\x1b[" in text
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == TEXT + "\n"


def test_a_pipe_gets_plain_text():
    assert written(io.StringIO()) == TEXT + "\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_wants_no_colour_gets_none(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert written(Terminal()) == TEXT + "\n"


def test_an_ascii_stream_gets_ascii():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write(TEXT, stream)
    assert raw.getvalue() == b"error: no plan\n\n  TPOT <= 5 ms on 4x4x4 ###\n"


def test_a_bar_keeps_its_columns_in_ascii_and_leaves_no_blank_behind():
    """What is too short for a `#` is a blank, so that the next column stays in its place."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    write("0.8 %  ▏   5.5 %\n1.5 %  █▎\n0.4 %  ▎", stream)
    stream.seek(0)
    assert stream.read() == "0.8 %      5.5 %\n1.5 %  #\n0.4 %\n"


def test_data_is_written_as_it_is():
    stream = Terminal()
    write_data('{"a": 1}', stream)
    assert stream.getvalue() == '{"a": 1}\n'


@pytest.mark.parametrize(
    ("asked", "columns"), [("72", 72), ("20", 60), ("500", 120), ("0", 100), ("wide", 100)]
)
def test_columns_are_those_asked_for_within_what_reads_well(monkeypatch, asked, columns):
    monkeypatch.setenv("COLUMNS", asked)
    monkeypatch.setattr("os.get_terminal_size", _no_terminal)
    assert width() == columns


def _no_terminal(*_: object) -> object:
    raise OSError


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_what_a_name_brings_along_is_shown_and_not_obeyed(stream):
    out = stream()
    write("wrote a\x1b]0;title\x07b\u202ec", out)
    assert r"wrote a\x1b]0;title\x07b\u202ec" in out.getvalue()
    assert "\u202e" not in out.getvalue()
