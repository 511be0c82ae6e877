"""Drawings, pages and maps of placements: every device once, as what it is."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from planner.report.drawings.floorplans import drawing, drawing_file
from planner.report.drawings.maps import placement_map
from planner.results.floorplans import Box, FloorPlan, Spot
from tests.report.floorplans import FABRIC, ON_FABRIC, ON_TORUS, TORUS
from tests.report.rendering import report_page, tree

SVG = "{http://www.w3.org/2000/svg}"


def _devices(svg: str) -> dict[str, str]:
    """What the pointer reads on each device, and its class."""
    root = ElementTree.fromstring(svg)
    found = {}
    for box in root.iter(f"{SVG}rect"):
        title = box.find(f"{SVG}title")
        if box.get("class", "").startswith("d ") and title is not None:
            found[title.text or ""] = box.get("class", "")
    return found


@pytest.mark.parametrize(("placement", "floorplan"), [(ON_FABRIC, FABRIC), (ON_TORUS, TORUS)])
def test_every_device_is_drawn_once_and_says_what_it_is(placement, floorplan):
    told = _devices(drawing_file(placement, floorplan))
    names = [text.split(":")[0] for text in told]
    spots = [
        *floorplan.spots,
        *(s for leaf in floorplan.leaves for n in leaf.boxes for s in n.spots),
    ]
    assert {spot.name for spot in spots} <= set(names)
    assert len(told) == floorplan.n_devices
    assert sum("rank" in text for text in told) == 4


def test_replicas_differ_in_colour_and_states_in_hatching():
    svg = drawing_file(ON_FABRIC, FABRIC)
    told = _devices(svg)
    first, second = (
        told[f"node0/gpu{i}: palm-540b/{k}, rank 0 at 0,0"] for i, k in ((0, 0), (2, 1))
    )
    assert first != second
    assert told["node1/gpu1: failed"] == "d failed"
    assert "node0/gpu3: palm-540b/1, rank 1 at 1,0, at 50 % of its speed" in told
    assert 'fill="url(#busy)"' in svg
    assert "node1/gpu0 – leaf0 down" in svg
    assert "450 GB/s" in svg


def test_a_patch_of_devices_has_its_number_once():
    root = ElementTree.fromstring(drawing_file(ON_FABRIC, FABRIC))
    numbers = [t.text for t in root.iter(f"{SVG}text") if t.get("class") == "n"]
    assert numbers == ["0", "1"]


def test_four_thousand_devices_stay_on_one_page():
    nodes = tuple(
        Box(
            name=f"node{n}",
            spots=tuple(Spot(name=f"node{n}/gpu{i}", state="free") for i in range(8)),
        )
        for n in range(512)
    )
    leaves = tuple(Box(name=f"leaf{k}", boxes=nodes[32 * k : 32 * k + 32]) for k in range(16))
    svg = drawing_file(ON_FABRIC, FloorPlan(title="large", leaves=leaves))
    root = ElementTree.fromstring(svg)
    assert len(_devices(svg)) == 4096
    assert float(root.get("height", "0")) < 2000
    boxes = [box for box in root.iter(f"{SVG}rect") if box.get("class", "").startswith("d ")]
    assert max(float(b.get("x")) + float(b.get("width")) for b in boxes) <= 960


def _places(svg: str, kind: str) -> list[tuple[float, float, float, float]]:
    drawn = ElementTree.fromstring(svg).iter(f"{SVG}rect")
    return [
        tuple(float(box.get(name)) for name in ("x", "y", "width", "height"))
        for box in drawn
        if box.get("class") == kind
    ]


def test_four_leaves_stand_two_abreast_as_far_from_each_other_as_from_the_next_row():
    node = Box(name="node", spots=(Spot(name="gpu", state="free"),))
    leaves = tuple(Box(name=f"leaf{k}", boxes=(node,)) for k in range(4))
    floorplan = FloorPlan(title="four", leaves=leaves)
    places = _places(drawing_file(ON_FABRIC, floorplan), "leaf")
    (x, y, width, height), beside, below, last = places
    gap = below[1] - (y + height)
    assert gap > 0
    assert beside[:2] == (pytest.approx(x + width + gap), y)
    assert (below[0], last) == (x, (beside[0], *below[1:]))
    on_page = re.search(
        r'<svg class="floor".*?width="([\d.]+)"', drawing(ON_FABRIC, floorplan), re.S
    )
    assert on_page is not None
    assert float(on_page[1]) == pytest.approx(beside[0] + width + x)  # a margin on either side


@pytest.mark.parametrize("n_nodes", [1, 9, 40, 200])
def test_nodes_stand_in_rows_inside_their_leaf_and_neither_they_nor_names_overlap(n_nodes):
    sizes = [1 + n % 8 for n in range(n_nodes)]
    nodes = tuple(
        Box(
            name=f"node{n}",
            spots=tuple(Spot(name=f"node{n}/gpu{i}", state="free") for i in range(size)),
        )
        for n, size in enumerate(sizes)
    )
    leaf = Box(name="leaf0", boxes=nodes)
    svg = drawing_file(ON_FABRIC, FloorPlan(title="one leaf", leaves=(leaf,)))
    ((left, top, width, height),) = _places(svg, "leaf")
    places = _places(svg, "node")
    assert len(places) == n_nodes
    for i, (x, y, w, h) in enumerate(places):
        assert left < x < x + w < left + width
        assert top < y < y + h < top + height
        for other_x, other_y, other_w, _ in places[i + 1 :]:
            beside = other_x > x + w or other_x + other_w < x
            assert beside or other_y > y + h, i
    letter = 8.0  # the height of one of ten pixels, above its line
    texts = ElementTree.fromstring(svg).iter(f"{SVG}text")
    small = [one for one in texts if one.get("font-size") == "10"]
    names = [(float(one.get("x")), float(one.get("y"))) for one in small]
    assert len(names) == n_nodes
    for at, line in names:
        inside = [(x, y) for x, y, w, h in places if x <= at <= x + w and y < line < y + h + letter]
        assert not inside, (at, line)


@pytest.mark.parametrize(("n_leaves", "n_abreast", "n_rows"), [(3, 1, 3), (4, 2, 2), (5, 2, 3)])
def test_leaves_stand_two_abreast_from_four_on_and_none_overlaps(n_leaves, n_abreast, n_rows):
    node = Box(name="node0", spots=(Spot(name="node0/gpu0", state="free"),))
    leaves = tuple(Box(name=f"leaf{k}", boxes=(node,)) for k in range(n_leaves))
    svg = drawing_file(ON_FABRIC, FloorPlan(title="leaves", leaves=leaves))
    places = _places(svg, "leaf")
    assert len(places) == n_leaves
    assert len({x for x, *_ in places}) == n_abreast
    assert len({y for _, y, *_ in places}) == n_rows
    for i, (x, y, width, height) in enumerate(places):
        for other_x, other_y, *_ in places[i + 1 :]:
            assert other_x >= x + width or other_x < x or other_y >= y + height


def test_the_page_is_whole_and_well_formed():
    page = report_page(ON_FABRIC, floorplan=FABRIC)
    words = " ".join(tree(page).itertext())
    assert page.count("<style>") == 1
    for text in ("palm-540b/1", "all 4 ranks", "certificate"):
        assert text in words
    for text in ("node0/gpu0", ".floor{"):
        assert text in page


def test_the_first_row_of_a_table_and_no_other_is_its_head():
    tables = tree(report_page(ON_FABRIC, floorplan=FABRIC)).findall(".//{*}table")
    tables = [one for one in tables if one.find("{*}thead") is not None]
    assert tables
    for table in tables:
        rows = ({cell.tag.rpartition("}")[2] for cell in row} for row in table.iterfind(".//{*}tr"))
        head, *rows = rows
        assert head == {"th"}
        assert rows == [{"td"}] * len(rows) != []


def test_a_map_has_a_letter_for_each_device():
    key, line = placement_map(ON_FABRIC, FABRIC, 80)
    assert line == "leaf0: node0 aabb  node1 #x#."
    assert key.startswith("a letter")


def test_a_map_of_a_torus_has_its_slices_side_by_side():
    assert placement_map(ON_TORUS, TORUS, 80)[1:] == ["z 0  z 1", "ab   .b", "a.   .#"]


def test_a_large_torus_is_mapped_by_cubes():
    spots = tuple(
        Spot(name=f"{x},{y},{z}", state="busy" if x < 2 or (x, y, z) == (2, 0, 0) else "free")
        for x in range(16)
        for y in range(16)
        for z in range(16)
    )
    plan = replace(TORUS, pool=(16, 16, 16), spots=spots)
    lines = placement_map(replace(ON_TORUS, replicas=()), plan, 100)
    assert lines[1] == "each letter 2×2×2 devices, + where they differ"
    assert lines[3].split()[0] == "#+......"
    assert lines[4].split()[0] == "#......."
