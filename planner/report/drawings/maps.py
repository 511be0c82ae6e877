"""A placement as a map in text: a letter for each device, or for each cube of a large torus.

a … z, A … Z   replicas, in their order, and from the start again
.  spare       #  busy or reserved       x  failed       +  several of these in one cube
"""

from collections.abc import Callable, Sequence
from string import ascii_letters

from planner.report.drawings.floorplans import seats_of
from planner.results.floorplans import Box, FloorPlan, Spot
from planner.results.placements import Placed

MOST_LETTERS = 1024
"""Devices of a torus, one by one; of a larger one cubes."""
MOST_LINES = 40
"""Of the nodes of a fabric."""
_SIGNS = {"free": ".", "busy": "#", "reserved": "#", "failed": "x"}


def placement_map(placed: Placed, floorplan: FloorPlan, width: int) -> list[str]:
    """Lines of at most `width` columns."""
    seats = seats_of(placed)

    def letter(spot: Spot) -> str:
        seat = seats.get(spot.name)
        if seat is None:
            return _SIGNS[spot.state]
        return ascii_letters[seat.number % len(ascii_letters)]

    if floorplan.pool is not None:
        return [_KEY, *_torus(floorplan, floorplan.pool, letter, width)]
    lines = [line for leaf in floorplan.leaves for line in _leaf(leaf, letter, width)]
    if len(lines) > MOST_LINES:
        return [f"{floorplan.n_devices} devices: a page draws them"]
    return [_KEY, *lines]


_KEY = "a letter a replica; . spare, # in use by others, x failed"


def _torus(
    floorplan: FloorPlan, pool: tuple[int, int, int], letter: Callable[[Spot], str], width: int
) -> list[str]:
    """Slices of equal z beside each other; x to the right, y downwards."""
    nx, ny, nz = pool
    step = 1
    while nx * ny * nz > MOST_LETTERS * step**3:
        step *= 2
    across, along, deep = (-(-n // step) for n in pool)

    def sign(i: int, j: int, k: int) -> str:
        letters = {
            letter(floorplan.spots[(x * ny + y) * nz + z])
            for x in range(i * step, min(nx, (i + 1) * step))
            for y in range(j * step, min(ny, (j + 1) * step))
            for z in range(k * step, min(nz, (k + 1) * step))
        }
        return letters.pop() if len(letters) == 1 else "+"

    heads = [
        f"z {k * step}" + (f"–{min(nz, (k + 1) * step) - 1}" if step > 1 else "")
        for k in range(deep)
    ]
    room = max(across, *map(len, heads))
    n_abreast = max(1, (width - 2) // (room + 2))
    lines = [f"each letter {step}×{step}×{step} devices, + where they differ"] if step > 1 else []
    for first in range(0, deep, n_abreast):
        ks = range(first, min(deep, first + n_abreast))
        lines.append("  ".join(f"{heads[k]:<{room}}" for k in ks).rstrip())
        lines += [
            "  ".join(
                f"{''.join(sign(i, j, k) for i in range(across)):<{room}}" for k in ks
            ).rstrip()
            for j in range(along)
        ]
    return lines


def _leaf(leaf: Box, letter: Callable[[Spot], str], width: int) -> list[str]:
    """A leaf's nodes, as many in a line as there is room for."""
    texts = [f"{_last(node.name)} {''.join(map(letter, node.spots))}" for node in leaf.boxes]
    head = f"{leaf.name}: "
    return _packed(head, texts, width - 2)


def _packed(head: str, texts: Sequence[str], width: int) -> list[str]:
    room = max(map(len, texts), default=0)
    per_line = max(1, (width - len(head)) // (room + 2))
    lines = []
    for first in range(0, len(texts), per_line):
        start = head if first == 0 else " " * len(head)
        lines.append(start + "  ".join(f"{t:<{room}}" for t in texts[first : first + per_line]))
    return [line.rstrip() for line in lines]


def _last(name: str) -> str:
    return name.rpartition("/")[2] or name
