"""What reports say of the times of each runtime: errors on the rows that nothing was fitted to.

python -m research.judged            prints them
python -m research.judged --write    writes planner/specs/judged.csv
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from planner.specs.records.model_errors import QUANTITIES
from planner.specs.records.runtimes import MeasuredErrors
from research import rows
from research.inference import cases
from research.records import as_csv
from research.reproduced import reproduced
from research.sets import rooflines
from research.sets.constants import out_of_fold, tells
from research.sets.predicted import Compared
from research.tables import errors

FILE = Path(__file__).parents[1] / "planner" / "specs" / "judged.csv"

POPE = "[Pope2022] Tables 2, 3, D.2-D.4: papers/pope2022.csv"
SERVING = "aiconfigurator-core 0.12.0 and InferenceX, each without its fold: tests/data/serving"
INFERSIM = "[InferSim] Table 2: papers/infersim-table-2.toml"

_SERVER = "one server, no stages, no drafts"
_UNKNOWN = "nobody says how requests were sent"


def judged_rows() -> list[MeasuredErrors]:
    """All of them, computed."""
    return [*_of_pope(), *_of_rooflines(), *_of_serving(), *_of_infersim()]


def _of_pope() -> Iterator[MeasuredErrors]:
    for device, chosen, what, off_beyond in (
        ("tpu-v4", rows.tpu_held_out(), "PaLM and MT-NLG by JAX", _of_256_chips()),
        ("a100-80gb", rows.a100_held_out(), "MT-NLG by FasterTransformer", 0.0),
    ):
        of_device = _judged(
            "roofline", device, "dense", "whole batches", errors(chosen), what, POPE
        )
        most = max(row.n_chips for row in chosen)
        beyond, longer = "", 100 / (1 + off_beyond) - 100
        if off_beyond:
            beyond = f"the least step of [Pope2022] on up to 256 is {longer:.0f} % longer"
        yield replace(
            of_device, n_most_devices=most, beyond=beyond, beyond_fraction=round(off_beyond, 4)
        )


def _of_256_chips() -> float:
    """How far off the one figure is that the paper has of more chips than its tables have."""
    series, label = "§4, Figure 1", "least step at batch 64 on up to 256 chips, int8"
    (row,) = (
        one
        for one in reproduced("pope2022-statements").rows
        if (one.row.series, one.row.label) == (series, label)
    )
    assert row.error is not None
    return row.error


def _of_rooflines() -> Iterator[MeasuredErrors]:
    """Decode steps on GPUs, as `plan` times them where no engine is named."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in rooflines.judged():
        kind = "dense" if one.row.series.is_dense else "mixture"
        groups[one.row.series.gpu, kind].append(one.error)
    what = "one server under any engine, prompts beside decodes not timed"
    for (device, kind), found in sorted(groups.items()):
        yield _judged("roofline", device, kind, "TPOT", found, what, SERVING)


def _of_serving() -> Iterator[MeasuredErrors]:
    """TPOT at every load, and TTFT of harnesses that say how they send requests."""
    groups: dict[tuple[str, str, str], list[Compared]] = defaultdict(list)
    for one in out_of_fold():
        series = one.row.series
        kind = "dense" if series.is_dense else "mixture"
        groups[series.engine, series.gpu, kind].append(one)
    for (engine, device, kind), some in sorted(groups.items()):
        for quantity in QUANTITIES:
            told = [one for one in some if tells(one, quantity)]
            for is_known, what in ((True, _SERVER), (False, f"{_SERVER}, {_UNKNOWN}")):
                of_kind = [one for one in told if bool(one.row.series.harness) is is_known]
                off = [getattr(one, f"{quantity.lower()}_error") for one in of_kind]
                if off:
                    yield _judged(engine, device, kind, quantity, off, what, SERVING)


def _of_infersim() -> Iterator[MeasuredErrors]:
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for case in cases():
        kind = "dense" if case.model == "qwen3-8b" else "mixture"
        groups[case.device, kind].append(case.error)
    for (device, kind), found in sorted(groups.items()):
        what = "passes by themselves"
        yield _judged("sglang", device, kind, "tokens/s of a device", found, what, INFERSIM)


def _judged(
    runtime: str,
    device: str,
    kind: str,
    quantity: str,
    found: Iterable[float],
    what: str,
    source: str,
) -> MeasuredErrors:
    values = np.array(list(found))
    return MeasuredErrors(
        runtime=runtime,
        device=device,
        kind=kind,
        quantity=quantity,
        n_rows=len(values),
        mean_error_fraction=round(float(np.abs(values).mean()), 4),
        bias_fraction=round(float(values.mean()), 4),
        rows=what,
        source=source,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m research.judged", description=__doc__)
    parser.add_argument("--write", action="store_true")
    text = as_csv(MeasuredErrors, judged_rows())
    if parser.parse_args().write:
        FILE.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
