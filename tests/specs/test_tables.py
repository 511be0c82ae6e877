"""A file that is no TOML is told as a problem, whatever is in it."""

from pathlib import Path

import pytest

from planner.specs.files.tables import literal, read_table


def problem_of(tmp_path, content: bytes):
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    table, problems = read_table(path, "x.toml")
    assert table == {}
    assert len(problems) == 1
    return problems[0]


def test_a_sound_file_is_a_table_without_problems(tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\n")  # with the mark that some editors put first
    assert read_table(path, "x.toml") == ({"a": 1}, ())


def test_a_syntax_error_names_line_and_column_and_shows_the_line(tmp_path):
    problem = problem_of(tmp_path, b"a = 1\nb = = 2\n")
    assert (problem.where, problem.value) == ("x.toml:2:5", "b = = 2")
    assert problem.fact == "is not TOML: invalid value"


def test_a_file_that_ends_too_early_says_so(tmp_path):
    problem = problem_of(tmp_path, b'a = "')
    assert problem.where == "x.toml"
    assert problem.fact.endswith("at the end")


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (b"a = 1\na = 2\n", "gives a key that was given before"),
        (b"[a]\nb = 1\n[a]\n", "begins a table that was begun before"),
        (b"a = { b = 1 }\na.c = 2\n", "adds to a table that is complete"),
        (b"a = { b = 1, b = 2 }\n", "gives a key that was given before"),
    ],
)
def test_what_is_given_twice_is_told_in_plain_words(tmp_path, content, fact):
    problem = problem_of(tmp_path, content)
    assert problem.fact == fact
    assert problem.remedy


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"# only a comment\n", "is empty"),
        (b"\x80\x81\xfe\xff", "is not text (UTF-8)"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "is not TOML: "),
        (b"a = " + b"[" * 100_000, "is nested deeper than 64 levels"),
        (b"a = " + b"9" * 10_000, "has a number of thousands of digits"),
    ],
)
def test_a_file_that_is_something_else_is_refused(tmp_path, content, fact):
    assert problem_of(tmp_path, content).fact.startswith(fact)


def test_a_missing_file_a_folder_and_a_device_are_no_files(tmp_path):
    for path, fact in (
        (tmp_path / "missing.toml", "no such file"),
        (tmp_path, "is a folder, not a file"),
        (Path("/dev/null"), "is not a regular file"),
        (Path("a\0b"), "no such file"),
    ):
        _, problems = read_table(path, "shown")
        assert [(p.where, p.fact) for p in problems] == [("shown", fact)]


def test_a_file_that_may_not_be_read_is_a_problem(tmp_path, monkeypatch):
    def refuse(path, flags):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", refuse)
    assert problem_of_path(tmp_path).fact == "cannot be read: permission denied"


def problem_of_path(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("a = 1")
    return read_table(path, "x.toml")[1][0]


def test_a_file_of_many_megabytes_is_not_read(tmp_path):
    with (tmp_path / "x.toml").open("wb") as file:
        file.truncate(9 * 2**20)
    _, problems = read_table(tmp_path / "x.toml", "x.toml")
    assert problems[0].fact == "is larger than 8 MiB"


def test_literals_are_written_as_toml_writes_them_and_kept_short():
    assert [literal(v) for v in (True, 3, 0.5, "a", [1, [2]], {"a": 1})] == [
        "true",
        "3",
        "0.5",
        "a",
        "[1, [2]]",
        "",
    ]
    assert len(literal("a" * 1_000)) == 60
    assert literal("a\x1b[31m") == r"a\x1b[31m"
    assert literal(10**5_000) == "an integer of hundreds of digits"
