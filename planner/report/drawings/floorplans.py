"""A placement as one drawing, in SVG: nested boxes of a fabric, or a torus cut into z-slices.

Devices have the colour of their replica, and its number stands on each patch of them; what is
busy is hatched, what has failed is crossed, what is spare is empty. A device says what it is
when the pointer rests on it. Colours are those of Okabe and Ito and follow a light or a dark
page; with several models each has a hue, and neighbouring replicas differ in shade.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from math import ceil, sqrt
from pathlib import Path

from planner.quantities.units import show
from planner.report.words import escape, plural
from planner.results.floorplans import Box, FloorPlan, Spot
from planner.results.placements import Placed, Rank, Replica

WIDTH = 960.0
MARGIN, GAP = 12.0, 10.0
LINE = 17.0
TALLEST = 1050.0
"""Of the slices of a torus, where they can be drawn so low."""
N_HUES, N_SHADES = 7, 3
SMALLEST_FONT = 10.0
_MOST_LINKS = 4
_NARROWEST, _NAMED = 240.0, 14.0
"""Width of a leaf with its name; the side of a device from which nodes have names."""
SIZES = ((64, 34.0), (256, 22.0), (1024, 14.0), (4096, 9.5), (1 << 40, 6.0))
"""Most devices, and the side of the square of one."""

_PATTERNS = """\
<defs><pattern id="busy" width="4.5" height="4.5" patternUnits="userSpaceOnUse" \
patternTransform="rotate(45)"><path class="hatch" d="M0 0V4.5"/></pattern>
<pattern id="reserved" width="4" height="4" patternUnits="userSpaceOnUse">\
<circle class="dots" cx="1.2" cy="1.2" r=".8"/></pattern></defs>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """What a device does in a placement."""

    replica: Replica
    number: int
    rank: Rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A device where it is drawn."""

    spot: Spot
    x: float
    y: float
    size: float


@cache
def style() -> str:
    """What a page needs beside the drawing."""
    return Path(__file__).with_name("floor.css").read_text(encoding="utf-8")


def drawing_file(placed: Placed, floorplan: FloorPlan) -> str:
    """The drawing with its legend, by itself a file."""
    groups = _models(placed)
    legend = _legend(groups, floorplan)
    return "\n".join([*_drawing(placed, floorplan, groups, legend), ""])


def drawing(placed: Placed, floorplan: FloorPlan, groups: Groups | None = None) -> str:
    """The drawing for a page that has its style, and the legend as paragraphs.

    Args:
        groups: of replicas, each of which has a hue of its own; None where models are those, if
            there are several.
    """
    drawn = groups or _models(placed)
    said = [f'<p class="faint">{escape(text)}</p>' for text in _legend(drawn, floorplan)]
    if groups:
        for i in range(len(groups.legend)):
            swatch = '<svg class="floor swatch" width="12" height="12">'
            box = f'<rect class="h{i % N_HUES}" width="12" height="12"/></svg> '
            said[i] = said[i].replace(">", f">{swatch}{box}", 1)
    return "\n".join([*_drawing(placed, floorplan, drawn), *said])


def _legend(groups: Groups, floorplan: FloorPlan) -> list[str]:
    """What colours, numbers and hatching stand for, and links that are not as others."""
    more = len(floorplan.lines) - _MOST_LINKS
    return [
        *groups.legend,
        *(f"link {line}" for line in floorplan.lines[:_MOST_LINKS]),
        *([f"and {more} more links"] if more > 0 else []),
        "empty: spare; hatched: busy; dotted: reserved; crossed: failed",
    ]


def _drawing(
    placed: Placed, floorplan: FloorPlan, groups: Groups, legend: Sequence[str] = ()
) -> Iterator[str]:
    """With a legend it is a file of its own, which has the style too."""
    seats = seats_of(placed)
    cells, around, bottom, right = _torus(floorplan) if floorplan.pool else _fabric(floorplan)
    height = bottom + len(legend) * LINE + MARGIN * bool(legend)
    width = WIDTH if legend else right + MARGIN
    yield f'<svg class="floor" role="img" aria-label="{escape(f"{placed.title}: {placed}")}" '
    yield 'xmlns="http://www.w3.org/2000/svg" '
    yield f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">'
    yield from [f"<style>{style()}</style>"] * bool(legend)
    yield _PATTERNS
    yield f'<rect class="page" width="{width:g}" height="{height:g}"/>'
    yield from around
    yield from (_device(cell, seats.get(cell.spot.name), groups) for cell in cells)
    yield from _numbers(cells, seats)
    for i, text in enumerate(legend, start=1):
        yield f'<text x="{MARGIN:g}" y="{bottom + i * LINE:g}">{escape(text)}</text>'
    yield "</svg>"


def seats_of(placed: Placed) -> dict[str, Seat]:
    """What each device that is in use does, by its name."""
    return {
        rank.device: Seat(replica=replica, number=number, rank=rank)
        for number, replica in enumerate(placed.replicas)
        for rank in replica.ranks
    }


def number_of(replica: Replica) -> str:
    """The number of a replica among those of its model."""
    return replica.name.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Replicas that have one hue, and what stands below the drawing.

    Args:
        hues: by name of the replica; of those that have none each has its own.
        legend: lines.
    """

    hues: Mapping[str, int]
    legend: Sequence[str]


def _models(placed: Placed) -> Groups:
    """A hue for each model, where there are several."""
    models = list(dict.fromkeys(one.model for one in placed.replicas))
    is_one = len(models) < 2
    hues = {} if is_one else {one.name: models.index(one.model) for one in placed.replicas}
    return Groups(hues=hues, legend=legend_lines(placed))


def _paint(seat: Seat, groups: Groups) -> str:
    """The class of a replica: by its group, else by itself."""
    number = int(number_of(seat.replica))
    if seat.replica.name in groups.hues:
        hue, shade = groups.hues[seat.replica.name], number
    else:
        hue, shade = number, number // N_HUES
    return f"h{hue % N_HUES} s{shade % N_SHADES}"


def side(n_devices: int) -> float:
    """The side of the square of a device, smaller where there are many."""
    return next(size for most, size in SIZES if n_devices <= most)


def _fabric(floorplan: FloorPlan) -> tuple[list[Cell], list[str], float, float]:
    """Leaves below each other, two abreast where there are many; nodes in them, in rows."""
    size = side(floorplan.n_devices)
    n_abreast = 2 if len(floorplan.leaves) >= 4 else 1
    width = (WIDTH - 2 * MARGIN - (n_abreast - 1) * GAP) / n_abreast
    rows = [[_sizes(node, it, size)[2] + 6 for node in it.boxes] for it in floorplan.leaves]
    width = min(width, 15 + max(_NARROWEST, *map(sum, rows)))
    cells: list[Cell] = []
    around: list[str] = []
    y = MARGIN
    for first in range(0, len(floorplan.leaves), n_abreast):
        lowest = y
        for i, leaf in enumerate(floorplan.leaves[first : first + n_abreast]):
            corner = (MARGIN + i * (width + GAP), y)
            bottom = _leaf(leaf, corner, (width, size), (cells, around))
            lowest = max(lowest, bottom)
        y = lowest + GAP
    return cells, around, y, MARGIN + n_abreast * (width + GAP) - GAP


def _leaf(
    leaf: Box,
    corner: tuple[float, float],
    sizes: tuple[float, float],
    drawn: tuple[list[Cell], list[str]],
) -> float:
    """One leaf and its nodes; where it ends."""
    (x, y), (width, size), (cells, around) = corner, sizes, drawn
    top = y + LINE + 4
    is_named = size >= _NAMED
    at_x, at_y, tallest = x + 8, top, 0.0
    boxes = []
    for node in leaf.boxes:
        across, w, w_box = _sizes(node, leaf, size)
        h, name = ceil(len(node.spots) / across) * size + 6, _short(node.name, leaf.name)
        if at_x + w_box > x + width - 6:
            at_x, at_y, tallest = x + 8, at_y + tallest + 6, 0.0
        head = 13.0 if is_named else 0.0
        if is_named:
            boxes.append(f'<text class="faint minor" font-size="10" x="{at_x:g}" y="{at_y + 9:g}">')
            boxes[-1] += f"{escape(name)}</text>"
        boxes.append(
            f'<rect class="node" x="{at_x:g}" y="{at_y + head:g}" width="{w:g}" height="{h:g}" '
            f'rx="2"><title>{escape(node.name)}</title></rect>'
        )
        cells += [
            Cell(
                spot=spot,
                x=at_x + 3 + (i % across) * size,
                y=at_y + head + 3 + (i // across) * size,
                size=size,
            )
            for i, spot in enumerate(node.spots)
        ]
        at_x += w_box + 6
        tallest = max(tallest, h + head)
    bottom = at_y + tallest + 8
    n_devices = sum(len(node.spots) for node in leaf.boxes)
    label = f"{leaf.name}: {plural(len(leaf.boxes), 'node')}, {plural(n_devices, 'device')}"
    around.append(
        f'<rect class="leaf" x="{x:g}" y="{y:g}" width="{width:g}" height="{bottom - y:g}" rx="4"/>'
    )
    around.append(f'<text class="minor" x="{x + 8:g}" y="{y + 14:g}">{escape(label)}</text>')
    around += boxes
    return bottom


def _sizes(node: Box, leaf: Box, size: float) -> tuple[int, float, float]:
    """Devices of a node in a row, the width of its box, and that with its name."""
    across = _across(len(node.spots))
    width, letters = across * size + 6, 6.2 * len(_short(node.name, leaf.name)) + 4
    return across, width, max(width, letters) if size >= _NAMED else width


def _across(n_devices: int) -> int:
    """Devices of a node in one row: a divisor, so that rows come out even.

    >>> [_across(n) for n in (1, 4, 8, 16, 72)]
    [1, 4, 4, 8, 12]
    """
    least = sqrt(2 * n_devices)
    return next(
        k for k in range(1, n_devices + 1) if n_devices % k == 0 and k >= min(least, n_devices)
    )


def _short(name: str, leaf: str) -> str:
    """The name of a node without what its leaf is called as well."""
    group = leaf.rpartition("/")[0]
    return name.removeprefix(f"{group}/") if group else name


def _torus(floorplan: FloorPlan) -> tuple[list[Cell], list[str], float, float]:
    """Slices of equal z, in rows; x to the right, y downwards."""
    assert floorplan.pool is not None
    nx, ny, nz = floorplan.pool
    best, size = _abreast(floorplan.pool)
    cells, around = [], []
    for z in range(nz):
        x = MARGIN + (z % best) * (nx * size + GAP)
        y = MARGIN + (z // best) * (ny * size + LINE + GAP)
        if nz > 1:
            around.append(f'<text class="faint minor" x="{x:g}" y="{y + 11:g}">z = {z}</text>')
        cells += [
            Cell(
                spot=floorplan.spots[(i * ny + j) * nz + z],
                x=x + i * size,
                y=y + LINE + j * size,
                size=size,
            )
            for i in range(nx)
            for j in range(ny)
        ]
    height = MARGIN + ceil(nz / best) * (ny * size + LINE + GAP)
    return cells, around, height, max(it.x for it in cells) + size


def _abreast(pool: tuple[int, int, int]) -> tuple[int, float]:
    """Slices in a row and the side of a device: as large as fits a page, or as low as can be."""
    nx, ny, nz = pool
    room = WIDTH - 2 * MARGIN
    ways = []
    for n in range(1, nz + 1):
        size = min((room - (n - 1) * GAP) / (n * nx), 34.0)
        height = ceil(nz / n) * (ny * size + LINE + GAP)
        fits = (-size, height)  # as large as can be, then as low
        ways.append((height > TALLEST, (height, n) if height > TALLEST else fits, n, size))
    _, _, n, size = min(ways)
    return n, size


def _device(cell: Cell, seat: Seat | None, groups: Groups) -> str:
    spot, inset = cell.spot, 0.6 if cell.size >= 9 else 0.4
    x, y, w = cell.x + inset, cell.y + inset, cell.size - 2 * inset
    box = f'x="{x:.5g}" y="{y:.5g}" width="{w:.4g}" height="{w:.4g}"'
    title = f"<title>{escape(told(spot, seat))}</title>"
    if seat is not None:
        return f'<rect class="d {_paint(seat, groups)}" {box}>{title}</rect>'
    if spot.state in ("busy", "reserved"):
        return f'<rect class="d taken" fill="url(#{spot.state})" {box}>{title}</rect>'
    drawn = f'<rect class="d {spot.state}" {box}>{title}</rect>'
    if spot.state == "failed":
        far_x, far_y = x + w, y + w
        drawn += (
            f'<path class="cross" d="M{x:.5g} {y:.5g}L{far_x:.5g} {far_y:.5g}'
            f'M{far_x:.5g} {y:.5g}L{x:.5g} {far_y:.5g}"/>'
        )
    return drawn


def told(spot: Spot, seat: Seat | None) -> str:
    """What a device is, in a line."""
    slow = (
        "" if spot.speed_fraction == 1 else f", at {100 * spot.speed_fraction:.3g} % of its speed"
    )
    if seat is None:
        return f"{spot.name}: {'spare' if spot.state == 'free' else spot.state}{slow}"
    rank = seat.rank
    where = ",".join(map(str, rank.axes))
    stage = f", stage {rank.stage}" if rank.stage else ""
    return f"{spot.name}: {seat.replica.name}, rank {rank.rank} at {where}{stage}{slow}"


def _numbers(cells: Sequence[Cell], seats: Mapping[str, Seat]) -> Iterator[str]:
    """The number of its replica on each patch of devices that is large enough."""
    for patch in _patches(cells, seats):
        text = number_of(seats[patch[0].spot.name].replica)
        left, top, right, bottom = _widest(patch)
        font = min(14.0, (right - left) / (0.62 * len(text)), 0.95 * (bottom - top))
        if font >= SMALLEST_FONT:
            x, y = (left + right) / 2, (top + bottom) / 2 + 0.36 * font
            yield f'<text class="n" font-size="{font:.3g}" x="{x:.5g}" y="{y:.5g}">{text}</text>'


def _widest(patch: Sequence[Cell]) -> tuple[float, float, float, float]:
    """All of a patch that is a rectangle; else the longest run of its rows."""
    size = patch[0].size
    rows: dict[float, list[float]] = {}
    for cell in patch:
        rows.setdefault(round(cell.y, 2), []).append(cell.x)
    ends = {(min(xs), max(xs)) for xs in rows.values()}
    if len(ends) == 1 and len(patch) == len(rows) * len(next(iter(rows.values()))):
        ((left, right),) = ends
        return left, min(rows), right + size, max(rows) + size
    top, xs = max(rows.items(), key=lambda row: len(row[1]))
    return min(xs), top, max(xs) + size, top + size


def _patches(cells: Sequence[Cell], seats: Mapping[str, Seat]) -> Iterator[list[Cell]]:
    """Rectangles of neighbouring devices of one replica: the largest part of each."""
    left: dict[tuple[int, int, int], Cell] = {}
    for cell in cells:
        seat = seats.get(cell.spot.name)
        if seat is not None:
            quarter = cell.size / 4  # fine enough that gaps between boxes are no neighbours
            left[seat.number, round(cell.x / quarter), round(cell.y / quarter)] = cell
    while left:
        patch, queue = [], [next(iter(left))]
        while queue:
            number, x, y = at = queue.pop()
            if at in left:
                patch.append(left.pop(at))
                queue += [(number, x + 4, y), (number, x - 4, y)]
                queue += [(number, x, y + 4), (number, x, y - 4)]
        yield patch


def legend_lines(placed: Placed) -> list[str]:
    """Of each recipe: its replicas, by number, and the narrowest link of theirs."""
    lines = []
    for number, recipe in enumerate(placed.recipes):
        mine = [one for one in placed.replicas if one.recipe == number]
        numbers = runs([int(number_of(one)) for one in mine])
        label = recipe.label
        each = plural(recipe.deployment.n_devices, "device")
        text = f"{recipe.model} {numbers}: {label}, {each}"
        channels = [channel for one in mine for channel in one.channels]
        if channels:
            narrowest = min(channels, key=lambda channel: channel.bytes_per_s)
            width = show(narrowest.bytes_per_s, "B/s")
            text += f"; narrowest link {narrowest.link[0]} – {narrowest.link[1]}, {width}"
        lines.append(text)
    return lines


def runs(numbers: Iterable[int]) -> str:
    """Numbers with their runs shortened.

    >>> runs([0, 1, 2, 3, 5, 6, 9])
    '0–3, 5, 6, 9'
    """
    ordered = sorted(numbers)
    texts = []
    for _, group in groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        texts += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else list(map(str, run))
    return ", ".join(texts)
