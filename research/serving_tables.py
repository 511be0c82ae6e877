"""Tables of `docs/accuracy.md` about serving: InferSim's, kernels, and published measurements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.equations.tails import sigmas
from planner.estimates.kernel_files import load_kernels
from planner.specs.files.places import Kind, files
from planner.specs.records.kernels import Fit
from planner.specs.records.model_errors import QUANTITIES, model_errors
from research.inference import cases
from research.infersim_kernels import MODELS
from research.infersim_layers import chosen_layers
from research.sets import intervals
from research.sets.constants import out_of_fold
from research.sets.predicted import Compared
from research.sets.report import both, by_harness, groups
from research.sets.rows import saturated
from research.sets.saturating import throughputs
from research.tables import percent


def infersim_errors():
    return np.abs([case.error for case in cases()])


def infersim_table() -> str:
    lines = [
        "| model | phase | measured | here | error | InferSim | its error |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for case in cases():
        lines.append(
            f"| {case.model} | {case.phase} | {case.measured:.0f} | {case.predicted:.0f} "
            f"| {100 * case.error:+.1f} % | {case.theirs:.0f} | {100 * case.their_error:+.1f} % |"
        )
    return "\n".join(lines)


def layers_table() -> str:
    lines = ["| model | device | layers | median | largest |", "| --- | --- | ---: | ---: | ---: |"]
    for model in MODELS:
        predicted, measured = np.array(list(chosen_layers(model))).T
        size = np.abs(predicted / measured - 1.0)
        lines.append(
            f"| {model.name} | {model.device} | {len(size)} | {percent(np.median(size))} "
            f"| {percent(size.max())} |"
        )
    return "\n".join(lines)


def kernels_table() -> str:
    """Errors on what was left out of the shipped fits; a fit that several files hold counts once.

    Fits that were never tried on shapes left out (`assumed`) are not in it.
    """
    found: dict[tuple[str, str, str, Fit], set[str]] = {}
    for table in (load_kernels(str(path)) for path in files(Kind.KERNELS)):
        for (family, number_format), kernel in table.kernels.items():
            if kernel.fit.left_out_p90_error is not None:
                one = (table.device, family, number_format, kernel.fit)
                found.setdefault(one, set()).add(table.engine)
    lines = [
        "| left out of fits of | fits | rows | median | worst median | 90th | worst 90th |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        _kernels("**all**", [one[-1] for one in found]),
    ]
    for place, kind in ((1, "family"), (0, "device")):
        for value in sorted({one[place] for one in found}):
            some = [one[-1] for one in found if one[place] == value]
            lines.append(_kernels(f"{kind} `{value}`", some))
    for engine in sorted(set().union(*found.values())):
        some = [one[-1] for one, engines in found.items() if engine in engines]
        lines.append(_kernels(f"engine `{engine}`", some))
    return "\n".join(lines)


def _kernels(name: str, fits: Sequence[Fit]) -> str:
    medians, tails = (
        np.array([getattr(fit, f"left_out_{kind}_error") for fit in fits])
        for kind in ("median", "p90")
    )
    n_rows = sum(fit.n_rows for fit in fits)
    cells = (np.median(medians), medians.max(), np.median(tails), tails.max())
    return f"| {name} | {len(fits)} | {n_rows} | {' | '.join(map(percent, cells))} |"


def served_table(quantity: str) -> str:
    """All rows, each without its fold, beside the peer on those that it answers."""
    found, apart = out_of_fold(), []
    if quantity == "ttft":
        found, apart = by_harness(found)
    lines = [
        f"| {quantity.upper()} | rows | mean | median | 90th | bias | in its 90 % | half width "
        "| answered by AIConfigurator | mean | median | here, on these: mean | median |",
        f"| --- |{' ---: |' * 12}",
    ]
    for name, some in (*groups(found), ("nobody says how requests were sent", apart)):
        if some:
            title = name.strip() if name.startswith(" ") else f"**{name}**"
            lines.append(_line(title, some, quantity))
    return "\n".join(lines)


def _line(name: str, some: Sequence[Compared], quantity: str) -> str:
    errors = np.array([getattr(one, f"{quantity}_error") for one in some])
    size, shared = np.abs(errors), both(some, quantity)
    beside = (
        f"{100 * value:.1f} %" if len(shared.ours) else ""
        for one in (shared.theirs, shared.ours)
        for value in ((one.mean(), np.median(one)) if len(one) else (0.0, 0.0))
    )
    return (
        f"| {name} | {len(size)} | {100 * size.mean():.1f} % | {100 * np.median(size):.1f} % "
        f"| {100 * np.quantile(size, 0.9):.1f} % | {100 * errors.mean():+.1f} % "
        f"| {' | '.join(_interval(some, quantity))} | {len(shared.ours)} | {' | '.join(beside)} |"
    )


def _interval(some: Sequence[Compared], quantity: str) -> tuple[str, str]:
    """How often intervals that say 90 % hold, and half of what they are wide in the median."""
    found, rows = out_of_fold(), model_errors()
    error = intervals.errors_of(rows, intervals.client_error(found, rows))
    which = "TPOT" if quantity == "tpot" else "TTFT"
    missed = intervals.missed(some, which)
    wide = sigmas(intervals.STATED) * np.hypot(missed.kernels, [error(it, which) for it in some])
    return f"{100 * np.mean(missed.off <= wide):.0f} %", f"{100 * np.median(wide):.0f} %"


def left_out_table() -> str:
    """How intervals do of devices, versions and sources that nobody has seen."""
    lines = [
        "| 90 % of | left out | values | hold on average | least | below 60 % | score | plain |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for quantity in QUANTITIES:
        for name in ("devices", "versions", "sources"):
            parts = [*intervals.left_out(out_of_fold(), quantity, intervals.AXES[name]).values()]
            shares = np.array([part.shares[1] for part in parts])
            score, plain = np.mean([(part.score, part.plain_score) for part in parts], axis=0)
            lines.append(
                f"| {quantity} | {name} | {len(parts)} | {100 * shares.mean():.1f} % "
                f"| {100 * shares.min():.0f} % | {np.sum(shares < intervals.LEAST_SHARE)} "
                f"| {score:.2f} | {plain:.2f} |"
            )
    return "\n".join(lines)


def spreads_table() -> str:
    """What errors are made of, by kind of model and quantity."""
    names = [*intervals.EFFECTS, "what is left"]
    lines = [f"| effect of | {' | '.join(names)} |", f"| --- |{' ---: |' * len(names)}"]
    for quantity in QUANTITIES:
        for is_dense, kind in ((True, "dense"), (False, "mixtures")):
            some = [one for one in out_of_fold() if one.row.series.is_dense is is_dense]
            spread = intervals.spreads(some, quantity)
            cells = " | ".join(f"{100 * spread[name]:.0f} %" for name in names)
            lines.append(f"| {quantity}, {kind} | {cells} |")
    return "\n".join(lines)


def saturated_table() -> str:
    found = throughputs(saturated())
    lines = [
        "| output tokens/s | rows | mean | median | bias |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for is_dense, name in ((True, "dense"), (False, "mixtures of experts")):
        errors = np.array([one.error for one in found if one.row.series.is_dense is is_dense])
        size = np.abs(errors)
        lines.append(
            f"| {name} | {len(size)} | {100 * size.mean():.1f} % | {100 * np.median(size):.1f} % "
            f"| {100 * errors.mean():+.1f} % |"
        )
    return "\n".join(lines)
