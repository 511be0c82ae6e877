"""Pages are valid HTML, whatever they are of; they show what a name brings along, and obey none."""

from __future__ import annotations

from collections import Counter

import pytest

from planner.report.documents.as_html import page_of
from planner.report.documents.blocks import Command, Document, Figure, Note, Table, hint, section
from planner.report.words import escape
from tests.report.rendering import ORIGIN, report_page, tree
from tests.report.test_documents import NAMES, TOLD

PHRASES = frozenset(["a", "b", "br", "button", "code", "input", "label", "output", "span", "svg"])
"""Elements that stand within a line."""
WITHIN = {
    "p": PHRASES,
    "dl": {"div", "dt", "dd"},
    "ul": {"li"},
    "table": {"thead", "tbody"},
    "thead": {"tr"},
    "tbody": {"tr"},
    "tr": {"th", "td"},
    "td": PHRASES,
    "th": PHRASES,
    "pre": frozenset(),
    "h1": PHRASES,
    "h2": PHRASES,
    "summary": PHRASES | {"h2"},
    "label": PHRASES - {"label"},
}
"""What each element may have within it, directly. Source: content models of the HTML standard."""


def name_of(node):
    return node.tag.rpartition("}")[2]


def faults(page: str) -> list[str]:
    """What a page has that HTML does not allow, or that leaves a reader without words."""
    root, told = tree(page), []
    parent = {child: node for node in root.iter() for child in node}
    ids = Counter(node.get("id") for node in root.iter() if node.get("id"))
    told += [f"id {name} {n} times" for name, n in ids.items() if n > 1]
    for node in root.iter():
        name = name_of(node)
        if name in WITHIN:
            wrong = {name_of(child) for child in node} - WITHIN[name]
            told += [f"{one} in {name}" for one in sorted(wrong)]
        for key in ("href", "for", "aria-labelledby"):
            if node.get(key) and node.get(key).lstrip("#") not in ids:
                told.append(f"{key} to nothing: {node.get(key)}")
        if name == "svg" and node.get("role") == "img" and not node.get("aria-label"):
            told.append("a drawing without a name")
        if name == "details" and [name_of(child) for child in node][:1] != ["summary"]:
            told.append("details without a summary")
        if name == "input" and name_of(parent[node]) != "label" and not node.get("id"):
            told.append("an input without a label")
    for table in root.iter("{http://www.w3.org/1999/xhtml}table"):
        told += table_faults(table)
    for name in ("h1", "main", "header"):
        found = len(list(root.iter(f"{{http://www.w3.org/1999/xhtml}}{name}")))
        told += [f"{found} times {name}"] * (found != 1)
    return told


def table_faults(table) -> list[str]:
    """Rows that are longer than the heads, and heads that say nothing of what they head."""
    rows = list(table.iter("{http://www.w3.org/1999/xhtml}tr"))
    lengths = [sum(int(cell.get("colspan", "1")) for cell in row) for row in rows]
    heads = table.find("{*}thead")
    told = [] if heads is None or len(set(lengths)) == 1 else [f"rows of {set(lengths)} columns"]
    scopes = [cell.get("scope") for cell in table.iter("{http://www.w3.org/1999/xhtml}th")]
    return told + ["a head without a scope"] * any(scope != "col" for scope in scopes)


@pytest.mark.parametrize("answer", TOLD, ids=NAMES)
def test_a_page_is_valid(answer):
    assert faults(report_page(answer)) == []


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("<main", '<main id="tip"', ""),
        ('id="tip"', 'id="answer"', "id answer 2 times"),
        ("<h1>", "<h1><div/>", "div in h1"),
        ('href="#answer"', 'href="#question"', "href to nothing: #question"),
        ("</main>", "<table><thead><tr><th>a</th></tr></thead></table></main>", "a head without"),
    ],
)
def test_what_is_not_valid_is_seen(right, wrong, fault):
    page = page_of(Document(title="t", line="l", head=(Note("n"),), sections=()), ORIGIN)
    if fault:
        assert any(one.startswith(fault) for one in faults(page.replace(right, wrong, 1)))
    else:
        assert faults(page) == []


def paged(*blocks):
    return tree(page_of(Document(title="t", line="l", head=(), sections=(section("s", *blocks),))))


def test_figures_of_a_table_that_sorts_are_numbers_whatever_their_unit():
    rows = [("a", "1.2 s", "$2.5/Mtoken", "best"), ("b", "39 ms", "$920/Mtoken", "7 %")]
    root = paged(Table(heads=("", "TPOT", "cost", "loses"), rows=rows, sorts=True))
    told = [[cell.get("data-n") for cell in row] for row in root.iterfind(".//{*}tbody/{*}tr")]
    assert told == [[None, "1.2", "2.5e-06", None], [None, "0.039", "0.00092", "0.07"]]
    assert "sorts" in root.find(".//{*}table").get("class").split()


def test_a_figure_says_its_own_number_and_one_row_is_not_sorted():
    root = paged(Table(heads=("", "loses"), rows=[("a", Figure("best", 0.0))], sorts=True))
    assert root.find(".//{*}tbody/{*}tr")[1].get("data-n") == "0.0"
    assert "sorts" not in root.find(".//{*}table").get("class").split()


def test_a_command_is_copied_alone_wherever_it_stands():
    hinted = hint("this has a plan: `plan --batch 8`")
    document = Document(title="t", line="l", head=(Command("vllm serve m"),), sections=(hinted,))
    boxes = tree(page_of(document, ORIGIN)).iterfind(".//{*}div[@class='command']/{*}pre")
    assert [box.text for box in boxes] == ["vllm serve m", "plan --batch 8", ORIGIN.command]


def test_a_long_page_has_links_to_its_sections_and_a_short_one_none():
    sections = [section(f"part {i}: {i} ms", Note("words")) for i in range(5)]
    for n, texts in ((4, []), (5, [f"part {i}" for i in range(5)])):
        document = Document(title="t", line="l", head=(), sections=(*sections[:n], section("no")))
        links = tree(page_of(document)).findall(".//{*}nav//{*}a")
        assert [link.text for link in links] == texts


def test_marks_and_what_does_not_print_are_shown():
    assert escape('<b a="1">&\u202e') == r"&lt;b a=&quot;1&quot;&gt;&amp;\u202e"


def test_lines_and_tied_spaces_stay():
    assert escape("a\nb\u00a0c") == "a\nb\u00a0c"
