"""Every kind of answer is one document, whose text and page say the same."""

from __future__ import annotations

import re

import pytest

from planner.report.answer_kinds import ANSWER_KINDS, document_of, kind_of
from planner.report.documents.as_html import page_of
from planner.report.documents.as_text import columns, text_of
from planner.report.documents.blocks import (
    Bar,
    Command,
    Document,
    Drawing,
    Note,
    Pairs,
    Table,
    hint,
    section,
)
from planner.results.listings import Engines, Failure
from planner.specs.files.engines import load_engine
from tests.report.rendering import ORIGIN, report_page, report_text, section_text, tree
from tests.report.test_as_json import ANSWERS
from tests.report.test_verification import TRUE

TOLD = [answer for answer in ANSWERS if not isinstance(answer, Failure)]
TOLD += [TRUE, Engines(engines=(load_engine("vllm"),))]
NAMES = [f"{kind_of(answer).name}-{i}" for i, answer in enumerate(TOLD)]
FIGURE = re.compile(r"[$\d][\w.,/×%]*")
LINKS = ("http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg")


def words_of(page: str) -> str:
    """What a reader sees of a page, without its style and its script."""
    root = tree(page)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("style", "script"):
                parent.remove(child)
    return " ".join(root.itertext())


def test_every_kind_but_an_error_has_a_document():
    assert {kind_of(answer).name for answer in TOLD} == {
        kind.name for kind in ANSWER_KINDS if kind.name != "error"
    }
    assert [kind.name for kind in ANSWER_KINDS if not kind.module] == ["error"]
    (failure, *_) = (answer for answer in ANSWERS if isinstance(answer, Failure))
    with pytest.raises(TypeError, match="no document"):
        document_of(failure)


@pytest.mark.parametrize("answer", TOLD, ids=NAMES)
class TestEveryAnswer:
    def test_a_page_says_every_figure_of_the_text(self, answer):
        page = words_of(report_page(answer))
        told = re.sub(r"(?m)^ *and [\d,]+ more: .*$", "", report_text(answer, 100))
        missing = {figure for figure in FIGURE.findall(told) if figure not in page}
        assert not missing

    def test_a_page_says_what_was_typed_when_and_who_answers(self, answer):
        page = report_page(answer)
        for said in (ORIGIN.command, ORIGIN.date, ORIGIN.version):
            assert said in words_of(page)
        document = document_of(answer)
        root = tree(page)
        assert root.findtext(".//{*}title") == root.findtext(".//{*}h1") == document.title
        assert [one.get("name") for one in root.iterfind(".//{*}meta[@name]")] == ["viewport"]

    def test_a_page_needs_nothing_else_and_has_one_style(self, answer):
        page = report_page(answer)
        root = tree(page)
        assert page.count("<style>") == page.count("<script>") == 1
        assert set(re.findall(r"https?://[^\"]+", page)) <= set(LINKS)
        for word in ("@import", "fetch(", "XMLHttpRequest", "innerHTML", "eval("):
            assert word not in page
        for node in root.iter():
            assert node.tag.rpartition("}")[2] not in ("link", "img", "iframe", "object", "image")
            assert not {"src", "srcset", "onload", "action"} & set(node.attrib)
        ids = [node.get("id") for node in root.iter() if node.get("id")]
        assert len(ids) == len(set(ids))

    def test_no_line_of_text_ends_in_a_blank_and_a_line_is_not_empty(self, answer):
        lines = report_text(answer, 80).splitlines()
        assert [line for line in lines if line != line.rstrip()] == []
        assert document_of(answer).line.strip()


def test_figures_stand_behind_the_heads_of_their_columns_where_a_screen_is_narrow():
    table = Table(heads=("a", "b", "c", "d"), rows=[("x", "1", "", "2")], align="<>>>")
    page = page_of(Document(title="t", line="l", head=(), sections=(section("s", table),)))
    (row,) = tree(page).iterfind(".//{*}tbody/{*}tr")
    assert [cell.get("data-h") for cell in row] == ["a", "b", "c", "d"]
    assert 'class="cards"' in page


def test_what_is_empty_is_left_out():
    empty = (Note(), Pairs([("label", "")]), Table(rows=()), Command(""), Drawing())
    document = Document(title="t", line="l", head=(), sections=(section("nothing", *empty),))
    assert text_of(document, 80) == ""
    assert "nothing" not in words_of(page_of(document))


def test_words_from_outside_are_shown_and_not_obeyed():
    evil = "<b>`x` & \x07"
    blocks = (Note(evil), Pairs([(evil, evil)]), Table(heads=(evil,), rows=[(evil,)]))
    document = Document(title=evil, line=evil, head=(), sections=(section(evil, *blocks),))
    root = tree(page_of(document))
    assert not list(root.iter("{http://www.w3.org/1999/xhtml}b"))
    assert [one.text for one in root.iterfind(".//{*}p/{*}code")] == ["x"]
    assert "\\x07" in words_of(page_of(document))


def test_the_last_cell_of_a_short_row_takes_the_room_of_the_others():
    rows = [("a", "1", "2"), ("bb", "a reason of several words")]
    assert columns(("", "x", "y"), rows, "<>>", 26) == [
        "    x  y",
        "a   1  2",
        "bb  a reason of several",
        "    words",
    ]


def test_words_beside_figures_take_as_many_lines_as_they_need():
    table = Table(rows=[("1", "one two three four five six seven")], wraps=True)
    assert section_text(section("s", table), 30).splitlines() == [
        "s",
        "  1  one two three four five",
        "     six seven",
    ]


def test_columns_go_one_after_the_other_where_a_line_is_too_long():
    heads, row = ("long head", "longer head", "c"), ("x" * 20, "y" * 20, "z")
    table = Table(heads=heads, rows=[row], spare=("long head", "c"))
    assert section_text(section("", table), 60).splitlines()[1].split() == [*row]
    assert section_text(section("", table), 40).splitlines()[1].split() == [*row[1:]]


def test_a_table_that_splits_has_its_first_column_twice():
    table = Table(heads=("", "aa", "bb"), rows=[("r", "1" * 30, "2" * 30), ("s", "why")], splits=2)
    lines = section_text(section("t", table), 60).splitlines()
    assert [line.split() for line in lines] == [
        ["t"],
        ["aa"],
        ["r", "1" * 30],
        ["s", "why"],
        [],
        ["bb"],
        ["r", "2" * 30],
    ]


def test_bars_are_shorter_where_there_is_less_room():
    table = Table(rows=[("x" * 20, Bar(1.0, 40))])
    assert section_text(section("", table), 80).count("█") == 40
    assert section_text(section("", table), 60).count("█") == 36
    assert section_text(section("", table), 20).count("█") == 40  # it never fits


def test_rows_that_text_leaves_out_are_counted_and_a_page_has_them():
    table = Table(rows=[(str(i),) for i in range(5)], listed=(1, 3), more="`--all` lists them")
    assert section_text(section("t", table), 80) == "t\n  1\n  3\n  and 3 more: `--all` lists them"
    page = page_of(Document(title="", line="", head=(), sections=(section("t", table),)))
    assert [cell.text for cell in tree(page).iterfind(".//{*}td")] == list("01234")


def test_a_command_in_a_hint_is_one_line():
    text = section_text(hint(f"it is `plan {'--batch 8 ' * 20}`"), 60)
    assert text.count("\n") == 0
    assert section_text(hint("word " * 30), 60).count("\n") > 0
