"""Whatever a user points at is read at once or refused at once, with a fact."""

from __future__ import annotations

import os
import socket
import time
import tomllib
from pathlib import Path

import pytest

from planner.specs.files.ledger import Use, recording
from planner.specs.files.texts import (
    MOST_DEPTH,
    UnreadError,
    csv_of,
    json_of,
    read_bytes,
    read_text,
    toml_of,
)


def fact_of(call, *arguments, **keywords) -> str:
    with pytest.raises(UnreadError) as caught:
        call(*arguments, **keywords)
    return str(caught.value)


class TestReadText:
    @pytest.mark.parametrize(
        ("content", "text"),
        [(b"\xef\xbb\xbfa = 1\r\n", "a = 1\r\n"), ("×".encode(), "×"), (b"a\0b", "a\0b")],
    )
    def test_text_is_utf_8_with_a_mark_or_without(self, tmp_path, content, text):
        path = tmp_path / "a"
        path.write_bytes(content)
        assert read_text(path) == read_text(str(path)) == text

    @pytest.mark.parametrize(
        ("content", "fact"),
        [
            (b"", "is empty"),
            (b" \n", "is empty"),
            (b"\xff\xfea\0", "is not text (UTF-8)"),
            ("é".encode("latin-1"), "is not text (UTF-8)"),
        ],
    )
    def test_what_is_no_text(self, tmp_path, content, fact):
        (tmp_path / "a").write_bytes(content)
        assert fact_of(read_text, tmp_path / "a") == fact

    def test_what_is_read_for_a_use_is_entered_and_what_is_looked_through_is_not(self, tmp_path):
        (tmp_path / "a").write_text("a")
        with recording() as ledger:
            read_text(tmp_path / "a")
            assert ledger.files == ()
            read_text(tmp_path / "a", use=Use(kind="state"))
        assert [file.kind for file in ledger.files] == ["state"]


class TestReadBytes:
    def test_what_is_no_regular_file(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "loop").symlink_to("loop")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "socket"))
        for name, fact in (
            ("pipe", "is not a regular file"),
            ("socket", "is not a regular file"),
            ("loop", "cannot be read: too many levels of symbolic links"),
            ("nowhere", "no such file"),
            ("a\0b", "no such file"),
            ("x" * 300, "cannot be read: file name too long"),
            (".", "is a folder, not a file"),
        ):
            assert fact_of(read_bytes, tmp_path / name) == fact
        for device in ("/dev/zero", "/dev/random", "/dev/null"):
            assert fact_of(read_bytes, device) == "is not a regular file"

    def test_a_pipe_that_takes_a_file_s_place_at_the_last_moment_does_not_hang(
        self, tmp_path, monkeypatch
    ):
        (tmp_path / "file").write_text("a")
        os.mkfifo(tmp_path / "pipe")
        regular = (tmp_path / "file").stat()
        monkeypatch.setattr(Path, "stat", lambda path: regular)
        assert fact_of(read_bytes, tmp_path / "pipe") == "is not a regular file"

    def test_a_file_without_end_is_read_as_far_as_it_may_be_long(self, tmp_path):
        with (tmp_path / "sparse").open("wb") as file:
            file.truncate(2**40)
        assert fact_of(read_bytes, tmp_path / "sparse") == "is larger than 8 MiB"
        (tmp_path / "b").write_bytes(b"12345")
        assert read_bytes(tmp_path / "b", most_bytes=5) == b"12345"
        assert fact_of(read_bytes, tmp_path / "b", most_bytes=4).startswith("is larger than")


class TestDepth:
    """A level more than the most is refused, whatever it is made of."""

    @pytest.mark.parametrize("n", [MOST_DEPTH + 1, 900, 100_000])
    def test_json(self, n):
        assert fact_of(json_of, "[" * n + "]" * n) == "is nested deeper than 64 levels"
        assert fact_of(json_of, '{"a":' * n + "1" + "}" * n) == "is nested deeper than 64 levels"

    @pytest.mark.parametrize("n", [MOST_DEPTH + 1, 900, 100_000])
    def test_toml(self, n):
        assert fact_of(toml_of, "a = " + "[" * n + "]" * n) == "is nested deeper than 64 levels"

    @pytest.mark.parametrize("part", ["a", '"a b"', "'a.b'", "a "])
    @pytest.mark.parametrize("form", ["{}b = 1", "[{}b]", "[[{}b]]", "x = {{ {}b = 1 }}"])
    def test_a_dotted_key_takes_no_time(self, part, form):
        """The parser takes time and memory by the square of its parts: gigabytes for these."""
        began_s = time.process_time()
        text = "y = 1\n" + form.format(f"{part}." * 200_000)
        assert fact_of(toml_of, text) == "is nested deeper than 64 levels"
        assert time.process_time() - began_s < 2.0

    def test_what_is_as_deep_as_may_be(self):
        n = MOST_DEPTH
        assert json_of("[" * n + "]" * n)
        assert toml_of(".".join("a" * (n - 1)) + ' = { a = 1 }\nb = "1.2.3.4"')
        assert toml_of(f'a = "{"x." * 30}"\n# {"x " * 1000}')


def test_numbers_of_thousands_of_digits_are_refused():
    assert fact_of(json_of, "9" * 5_000) == "has a number of thousands of digits"
    assert fact_of(toml_of, "a = " + "9" * 5_000) == "has a number of thousands of digits"


def test_what_is_not_json_is_said_with_its_place():
    assert fact_of(json_of, "{\n,") == (
        "is not JSON: expecting property name enclosed in double quotes at line 2, column 1"
    )
    assert fact_of(json_of, '{"a": 1, "a": 2}') == "a is said twice"


def test_what_is_not_toml_is_the_parser_s():
    with pytest.raises(tomllib.TOMLDecodeError):
        toml_of("a")


def test_cells_of_csv_may_be_quoted():
    assert csv_of('a,"b\n,c"\r\n1') == [["a", "b\n,c"], ["1"]]
    assert fact_of(csv_of, '"' + "x" * 200_000).startswith("is not CSV: field larger")


def test_a_fact_becomes_a_problem_of_the_file():
    problem = UnreadError("is said twice", key="a").problem("x.json")
    assert str(problem) == "x.json: a  is said twice"
