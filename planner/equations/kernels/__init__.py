"""Closed forms of the time of kernels: one file a family, each a pure function on arrays.

Constants are data: `kernels/*.toml` holds them by device and serving engine, each with the rows
it was fitted to, `calibration.kernel_files` reads them, and `plan calibrate` makes them from tables
of measured kernels.
"""

from collections.abc import Mapping

from planner.equations.kernels.block_families import BLOCKS, PRODUCTS
from planner.equations.kernels.families import Family
from planner.equations.kernels.mixing import MIXERS
from planner.equations.kernels.others import MOVERS

FAMILIES: Mapping[str, Family] = {one.name: one for one in (*PRODUCTS, *MIXERS, *BLOCKS, *MOVERS)}
"""Every family, by the name that kernel files give it."""
