"""The sub-slices of a torus: shapes, wrap-around, and every place where they fit.

A shape is written in ascending order, (2, 4, 8); an *orientation* is a shape laid
along the axes of the pool, (8, 2, 4). An *offset* is the corner where a slice starts.

Two rules describe an optically switched torus. Its hardware is cubes of
`wrap_multiple` devices a side, and switches join the faces of whole cubes:

* **Wrap-around.** A slice of whole cubes is closed into a torus of its own, wherever it
  lies. A slice with any dimension that is not a multiple of the cube is an open mesh.
* **Alignment.** Along each axis a slice starts at a multiple of the greatest common
  divisor of its dimension and the cube: 8 at every 4th device, 2 at every 2nd, 1
  anywhere. So slices of whole cubes are made of whole cubes, and smaller ones tile them.

A slice may run over the edge of the pool and go on at the other side only if the pool
itself is closed there.

Source: [Jouppi2023] §2 for the cubes and the optical switches. Alignment below the size
of a cube is a choice that keeps the places few; around failed devices it may cost some.
"""

from itertools import combinations_with_replacement, permutations
from math import gcd, prod

from planner.specs.records.devices import TorusFabric

Shape = tuple[int, int, int]


def slice_shapes(fabric: TorusFabric) -> tuple[Shape, ...]:
    """All distinct shapes that fit the pool in some orientation, by devices, then dimensions."""
    pool = sorted(fabric.shape)
    fitting = [
        (a, b, c)
        for a, b, c in combinations_with_replacement(sorted(set(fabric.slice_dims)), 3)
        if a <= pool[0] and b <= pool[1] and c <= pool[2]
    ]
    return tuple(sorted(fitting, key=lambda shape: (prod(shape), shape)))


def orientations(fabric: TorusFabric, shape: Shape) -> tuple[Shape, ...]:
    """The distinct ways to lay a shape along the axes of the pool, in ascending order."""
    turned = sorted({(a, b, c) for a, b, c in permutations(shape)})
    return tuple(t for t in turned if all(d <= p for d, p in zip(t, fabric.shape, strict=True)))


def axis_wraps(
    shape: Shape, wrap_multiple: int, *, each_axis: bool = False
) -> tuple[bool, bool, bool]:
    """Whether each axis of a torus of this shape closes into a ring.

    All axes close or none does, unless `each_axis` closes by itself; and two devices or
    fewer have no ring to close.
    """
    closes = [d % wrap_multiple == 0 for d in shape]
    x, y, z = closes if each_axis else [all(closes)] * 3
    a, b, c = shape
    return x and a > 2, y and b > 2, z and c > 2


def slice_wraps(fabric: TorusFabric, shape: Shape) -> tuple[bool, bool, bool]:
    """Whether each axis of a slice of the fabric closes into a ring."""
    return axis_wraps(shape, fabric.wrap_multiple, each_axis=fabric.wraps_each_axis)


def axis_offsets(fabric: TorusFabric, axis: int, dim: int) -> range:
    """Where a slice of `dim` devices along `axis` may start; empty if it does not fit."""
    pool_dim = fabric.shape[axis]
    if dim >= pool_dim:
        return range(1 if dim == pool_dim else 0)
    stride = gcd(dim, fabric.wrap_multiple)
    pool_closed = slice_wraps(fabric, fabric.shape)[axis]
    return range(0, pool_dim if pool_closed else pool_dim - dim + 1, stride)


def n_positions(fabric: TorusFabric, shape: Shape) -> int:
    """Places where a shape fits, over all orientations; each is another set of devices."""
    return sum(
        prod(len(axis_offsets(fabric, axis, dim)) for axis, dim in enumerate(orientation))
        for orientation in orientations(fabric, shape)
    )


def torus_device(x: int, y: int, z: int) -> str:
    """The name of the device at one coordinate: `0,3,7`."""
    return f"{x},{y},{z}"
