"""What a decode step takes beside its kernels, fitted to the calibrating half.

    python -m tests.papers.sets.overheads

`layer_gap` of `engines/*.toml` is of every layer, `inner_norms` of those with norms between their
projections, where the engine does not fuse them. Both are fitted together, to all engines, by
least absolute relative errors of TPOT; each model is left out in turn as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tests.papers.sets.halves import calibration_rows
from tests.papers.sets.predicted import Compared, architecture, clock, compared
from tests.papers.sets.rows import Served

FITTED_ON = frozenset({"h100-sxm", "h200", "b200"})
"""Devices with measured kernels, of which rows calibrate."""

SMALLEST_RESIDUAL = 0.01
"""Below which a residual has the same weight, in least absolute errors [1]."""

Numbers = NDArray[np.float64]


def fitted_rows() -> list[Served]:
    """Of the sample: InferenceX's own sweeps are left to judge with."""
    rows = (row for row in calibration_rows() if row.series.set_name == "S")
    return [row for row in rows if row.series.gpu in FITTED_ON]


def layers_of(row: Served) -> tuple[float, float]:
    """Layers of a row's model, and those with norms that its engine runs by themselves."""
    engine = clock(row.series.gpu, row.series.engine).engine
    layers = architecture(row.series.model).layers
    normed = [one for one in layers if one.mixer is not None and one.mixer.has_inner_norms]
    n_normed = sum(one.n_layers for one in normed) if engine.inner_norms_s else 0
    return float(sum(one.n_layers for one in layers)), float(n_normed)


def fitted(found: Sequence[Compared]) -> Numbers:
    """Seconds of a gap and of inner norms that are least wrong; both together at first.

    What predictions have of either is taken out before.
    """
    design, wanted = _system(found)
    constants = np.zeros(2)
    for _ in range(80):
        residual = np.abs(wanted - design @ constants)
        weights = 1.0 / np.sqrt(np.maximum(residual, SMALLEST_RESIDUAL))[:, None]
        constants = np.linalg.lstsq(design * weights, wanted * weights[:, 0], rcond=None)[0]
        constants = np.maximum(constants, 0.0)
    return constants


def errors(found: Sequence[Compared], constants: Numbers) -> Numbers:
    """Relative, of TPOT with other constants than an engine's."""
    design, wanted = _system(found)
    return np.asarray(design @ constants - wanted)


def _system(found: Sequence[Compared]) -> tuple[Numbers, Numbers]:
    """Layers over measured times, and shares of these times that nothing else explains."""
    measured = np.array([1e-3 * one.row.tpot_ms for one in found])
    layers = np.array([layers_of(one.row) for one in found])
    engines = [clock(one.row.series.gpu, one.row.series.engine).engine for one in found]
    own = np.array([(one.layer_gap_s, one.inner_norms_s) for one in engines])
    rest = np.array([1e-3 * one.tpot_ms for one in found]) - (layers * own).sum(axis=1)
    return layers / measured[:, None], 1.0 - rest / measured


def left_out(found: Sequence[Compared], key: Callable[[Compared], str]) -> Numbers:
    """Errors of each group of rows with constants that are fitted to all the others."""
    groups = np.array([key(one) for one in found])
    off = np.zeros(len(found))
    for group in np.unique(groups):
        inside = groups == group
        others = [one for one, here in zip(found, inside, strict=True) if not here]
        mine = [one for one, here in zip(found, inside, strict=True) if here]
        off[inside] = errors(mine, fitted(others))
    return off


def main() -> None:
    found = compared(fitted_rows())
    gap, norms = fitted(found)
    print(f"layer_gap {1e6 * gap:.1f} µs, inner_norms {1e6 * norms:.1f} µs, {len(found)} rows")
    dense = np.array([one.row.series.is_dense for one in found])
    kinds = (("fitted", errors(found, np.array([gap, norms]))),
             ("models left out", left_out(found, lambda one: one.row.series.model)),
             ("devices left out", left_out(found, lambda one: one.row.series.gpu)))  # fmt: skip
    for name, off in kinds:
        for kind, chosen in (("dense", dense), ("mixtures", ~dense)):
            size = 100.0 * np.abs(off[chosen])
            print(f"{name:18s}{kind:9s} mean {size.mean():5.1f} %  median {np.median(size):5.1f} %")


if __name__ == "__main__":
    main()
