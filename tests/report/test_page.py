"""The page of a frontier: well formed, alone, the same every time, and true to the points."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from planner.report.documents.as_html import page_of
from planner.report.documents.blocks import Document, Note
from planner.report.drawings.chart import Line, chart, point_text
from planner.results.surveys import Case, Curve
from tests.report.rendering import report_page, tree
from tests.report.surveys import CASE, CURVE, MANY, MISSING, THREE

HTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
TWO = (CURVE, Curve(case=replace(CASE, topology="toy-8x8x8"), frontier=MANY, reason=""))


def charts(root):
    return [svg for svg in root.iter(f"{SVG}svg") if svg.get("class") == "chart"]


def uses(svg):
    return [use for use in svg.iter(f"{SVG}use") if "p" in use.get("class", "").split()]


@pytest.mark.parametrize("curves", [(CURVE,), TWO, (CURVE, MISSING)], ids=["one", "two", "missing"])
class TestAnyPage:
    def test_is_well_formed_and_has_its_parts(self, curves):
        root = tree(report_page(curves))
        assert root.tag == f"{HTML}html"
        assert [svg.get("id") for svg in charts(root)] == ["log-chart", "linear-chart"]
        radios = [node for node in root.iter(f"{HTML}input") if node.get("type") == "radio"]
        assert [node.get("id") for node in radios] == ["log", "linear"]
        assert len(list(root.iter(f"{HTML}details"))) == sum(
            curve.frontier is not None for curve in curves
        )

    def test_needs_nothing_else(self, curves):
        text = report_page(curves)
        root = tree(text)
        for node in root.iter():
            for name, value in node.attrib.items():
                if name.endswith("href"):
                    assert value.startswith("#")
                assert name not in ("src", "srcset", "data", "action", "onload")
            assert node.tag.split("}")[-1] not in ("link", "img", "iframe", "object", "image")
        assert "@import" not in text
        assert "url(" not in text
        assert set(re.findall(r"https?://[^\"]+", text)) == {
            "http://www.w3.org/1999/xhtml",
            "http://www.w3.org/2000/svg",
        }
        for word in ("fetch", "XMLHttpRequest", "import(", "eval", "innerHTML"):
            assert word not in text

    def test_is_the_same_every_time(self, curves):
        assert report_page(curves) == report_page(curves)

    def test_has_unique_ids_and_refers_only_to_them(self, curves):
        root = tree(report_page(curves))
        ids = [node.get("id") for node in root.iter() if node.get("id")]
        assert len(ids) == len(set(ids))
        for node in root.iter():
            target = node.get("href") or node.get("for")
            assert target is None or target.lstrip("#") in ids


@pytest.mark.parametrize("is_log", [True, False])
def test_every_point_is_drawn_where_it_belongs_and_says_what_it_is(is_log):
    """Speeds of 10, 40, 100 tokens/s at $20, $40, $160: in logarithms 1 : 3 of the height."""
    svg = ElementTree.fromstring(chart([Line(label="a", frontier=THREE)], is_log=is_log, name="c"))
    *points, star = uses(svg)
    places = [(float(use.get("x")), float(use.get("y"))) for use in points]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert x0 < x1 < x2
    assert y0 > y1 > y2  # pixels count downwards
    if is_log:
        assert (y0 - y1) / (y0 - y2) == pytest.approx(1 / 3, abs=0.01)
    else:
        assert (y0 - y1) / (y0 - y2) == pytest.approx(20 / 140, abs=0.01)
        assert (x1 - x0) / (x2 - x0) == pytest.approx(30 / 90, abs=0.01)
    assert (float(star.get("x")), float(star.get("y"))) == places[1]
    titles = [use.find(f"{SVG}title").text for use in points]
    assert titles == [point_text(Line(label="a", frontier=THREE), i) for i in range(3)]
    assert "40 token/s per user: TPOT 25 ms" in titles[1]
    assert "preferred: the most speed^3 / price" in titles[1]
    assert "the cheapest within the targets" in titles[1]
    assert "decode WS 2D × 8" in titles[2]


@pytest.mark.parametrize("is_log", [True, False])
def test_times_above_stand_among_the_points_by_their_length(is_log):
    """Points of 100, 25 and 10 ms, from left to right: a shorter time is further right."""
    svg = ElementTree.fromstring(chart([Line(label="a", frontier=THREE)], is_log=is_log, name="c"))
    *points, _ = uses(svg)
    drawn = list(zip((100.0, 25.0, 10.0), (float(use.get("x")) for use in points), strict=True))
    texts = [node for node in svg.iter(f"{SVG}text") if node.get("class") == "faint"]
    title, *times = [node for node in texts if float(node.get("y")) == float(texts[0].get("y"))]
    assert title.text == "TPOT"
    assert times
    for node in times:
        number, unit = node.text.split()
        time_ms = float(number) * {"ms": 1.0, "s": 1e3}[unit]
        for point_ms, x in drawn:
            if time_ms != point_ms:
                assert (time_ms > point_ms) == (float(node.get("x")) < x), node.text


def test_the_line_is_a_staircase_through_every_point():
    svg = ElementTree.fromstring(chart([Line(label="a", frontier=THREE)], is_log=True, name="c"))
    line = next(node for node in svg.iter(f"{SVG}path") if node.get("class") == "line")
    steps = re.findall(r"([MVH])([\d.]+)", line.get("d"))
    assert "".join(letter for letter, _ in steps) == "MHVHVH"
    *points, _ = uses(svg)
    runs = [value for letter, value in steps if letter == "H"]
    assert runs == [use.get("x") for use in points]
    rises = [value for letter, value in steps if letter == "V"]
    assert rises == [use.get("y") for use in points[1:]]


def test_targets_are_lines_and_the_cheapest_within_them_has_a_ring():
    svg = ElementTree.fromstring(chart([Line(label="a", frontier=THREE)], is_log=True, name="c"))
    texts = [node.text for node in svg.iter(f"{SVG}text") if node.get("class") == "target-text"]
    assert texts == ["TPOT ≤ 30 ms", "cost ≤ $50/Mtoken"]
    (ring,) = [node for node in svg.iter(f"{SVG}circle") if node.get("class") == "ring"]
    *points, _ = uses(svg)
    assert (ring.get("cx"), ring.get("cy")) == (points[1].get("x"), points[1].get("y"))


def test_everything_drawn_is_inside_the_picture():
    for is_log in (True, False):
        svg = ElementTree.fromstring(
            chart([Line(label="a", frontier=MANY)], is_log=is_log, name="c")
        )
        _, _, width, height = map(float, svg.get("viewBox").split())
        for use in uses(svg):
            assert 0 <= float(use.get("x")) <= width
            assert 0 <= float(use.get("y")) <= height


@pytest.mark.parametrize("is_log", [True, False])
@pytest.mark.parametrize("found", [THREE, MANY])
def test_what_a_curve_says_of_its_devices_is_inside_the_picture(found, is_log):
    """The leftmost point has no room on its left; letters are taken for seven pixels wide."""
    svg = ElementTree.fromstring(chart([Line(label="a", frontier=found)], is_log=is_log, name="c"))
    _, _, width, _ = map(float, svg.get("viewBox").split())
    texts = [one for one in svg.iter(f"{SVG}text") if "device" in (one.text or "")]
    assert texts
    for one in texts:
        x, long = float(one.get("x")), 7 * len(one.text)
        left = x - long if one.get("text-anchor") == "end" else x
        assert 0 <= left < left + long <= width, one.text


def test_curves_differ_in_more_than_colour():
    svg = charts(tree(report_page(TWO)))[0]
    lines = [node for node in svg.iter(f"{SVG}path") if node.get("class") == "line"]
    assert len({node.get("stroke-dasharray") for node in lines}) == 2
    shapes = [{use.get("href") for use in group.iter(f"{SVG}use")} for group in groups(svg)]
    assert "#log-chart-s0" in shapes[0]
    assert "#log-chart-s1" in shapes[1]


def groups(svg):
    return [g for g in svg.iter(f"{SVG}g") if re.fullmatch(r"c\d", g.get("class", ""))]


def test_a_case_without_a_plan_says_why_and_markup_is_text():
    text = report_page((CURVE, MISSING))
    assert "no plan: HBM ≤ 32 GB is out of reach: 90 GB" in text
    assert "big &amp; &lt;bold&gt;" in text
    assert "<bold>" not in text


def test_labels_name_only_what_differs():
    words = " ".join(tree(report_page(TWO)).itertext())
    assert re.search(r"\btoy-8x8x8 +all 200 points\b", " ".join(words.split()))
    alone = " ".join(tree(report_page((CURVE,))).itertext())
    assert "tiny-7b on toy-4x4x4 all 3 points" in " ".join(alone.split())


@pytest.mark.parametrize("x_name", ["latency", "ttft"])
@pytest.mark.parametrize("y_name", ["cost", "rent", "throughput"])
def test_every_pair_of_axes_can_be_drawn(x_name, y_name):
    curve = Curve(
        case=Case(model="m", topology="t", weights=""),
        frontier=replace(THREE, x_name=x_name, y_name=y_name, y_dimension="1"),
        reason="",
    )
    if y_name == "cost":
        curve = replace(curve, frontier=replace(curve.frontier, y_dimension="USD/token"))
    assert len(charts(tree(report_page((curve,))))) == 2


@pytest.mark.parametrize(("said", "is_lead"), [("1 device", True), ("error: no plan:", False)])
def test_the_first_line_stands_out_unless_the_title_has_said_the_verdict(said, is_lead):
    document = Document(title="no plan", line="", head=(Note(said), Note("because")), sections=())
    assert ('class="verdict lead"' in page_of(document)) == is_lead
