"""Names and units that several reports use."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from html import escape as escape_marks
from typing import TYPE_CHECKING, Any

from planner.quantities.table import QUANTITIES, limited_text, objective_of, objectives
from planner.quantities.tables import packaged_table
from planner.quantities.units import show
from planner.specs.ask.targets import DEGREE_OPTIONS, PhaseLayout, Targets
from planner.specs.files.texts import visible

if TYPE_CHECKING:
    from planner.results.experts import RedundantExperts
    from planner.results.predictions import Interval
    from planner.specs.records.devices import ClusterSpec
    from planner.specs.records.kernels import ServingCalibration

LABEL = 14  # columns of a label, indent included

TIED = "\u00a0"  # a space at which no line breaks
_UNITS = re.compile(r"(?<=\d) (?=[a-zA-Z%])|(?<=[≤≥×]) (?=\S)")
_EIGHTHS = " ▏▎▍▌▋▊▉"


def labelled(rows: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Lines of a label and a text that wraps beside it; rows without text are left out."""
    lines: list[str] = []
    for label, text in rows:
        if text:
            room = max(20, width - LABEL - 2)
            first, *rest = wrapped(text, room)
            lines += [f"{label:<{LABEL}}{first}", *(" " * LABEL + line for line in rest)]
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines of at most `width`, broken at spaces, never between a number and its unit."""
    tied = _UNITS.sub(TIED, text)
    lines = textwrap.wrap(tied, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace(TIED, " ") for line in lines] or [""]


def bar(fraction: float, width: int) -> str:
    """A bar of `width` columns for a fraction of 1, to an eighth of a column.

    >>> bar(0.5, 8), bar(0.0, 8)
    ('████', '')
    """
    eighths = round(min(max(fraction, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def escape(text: str) -> str:
    """Text as an element or an attribute holds it: marks, and what does not print, are shown."""
    return escape_marks(visible(text, keeps="\n\u00a0"))


_LABELS: Mapping[str, str] = {"prefill_batch": "prefill batch"}
"""Of what is reported beside quantities and has other words."""

_TABLE = packaged_table("report/words.toml")
PREFILL_WORDS: Mapping[str, str] = _TABLE["prefill"]
HINTS: Mapping[str, str] = _TABLE["hints"]
"""What to type, by what it is about."""

BOUND_WORDS: Mapping[str, str] = {
    "compute": "compute",
    "memory": "memory",
    "network": "network",
    "latency": "latency",
    "idle": "–",
}


def limit_label(name: str) -> str:
    return QUANTITIES[name].label if name in QUANTITIES else _LABELS.get(name, name)


def limit_text(name: str, value: float, dimension: str) -> str:
    """The same of what is reported beside quantities, too."""
    known = QUANTITIES.get(name)
    return known.limit_text(value) if known else f"≤ {limited_text(value, dimension)}"


def objective_dimension(name: str) -> str:
    """Of an objective of a plan, as `units.show` takes it; of others a plain number's."""
    return objective_of(name).dimension if name in objectives() else "1"


def target_texts(targets: Targets) -> list[str]:
    """Every target that is set: `TPOT ≤ 30 ms`."""
    most = targets.limits()
    demand, loss = most.pop("demand", None), targets.quality_loss_fraction
    said = [f"{limit_label(name)} {QUANTITIES[name].limit_text(most[name])}" for name in most]
    if demand is not None:
        said.append(f"demand {show(demand, 'token/s')} on average, {_queue_text(targets)}")
    if loss is not None:
        said.append(f"quality loss ≤ {show(100 * loss, '1')} %")
    degrees = targets.degrees.fixed().items()
    return [
        *said,
        *(f"{DEGREE_OPTIONS[name].lstrip('-').upper()} {degree}" for name, degree in degrees),
        *(f"{phase} {layout_text(one)}" for phase, one in targets.layouts.fixed().items()),
    ]


def _queue_text(targets: Targets) -> str:
    """What keeps requests from waiting: nothing that is counted, or idle time."""
    if targets.max_utilisation == 1.0:
        return "without a queue"
    return f"busy ≤ {show(100 * targets.max_utilisation, '1')} % of the time"


def layout_text(layout: PhaseLayout) -> str:
    """`WS 2D over batch`, `WS 1D over heads in 4 parts`."""
    over = layout.attention and f"over {layout.attention}"
    parts = f"in {plural(layout.n_microbatches, 'part')}" if layout.n_microbatches else None
    return " ".join(filter(None, (layout.name, over, parts)))


def amount(number: float) -> str:
    """A large count in words: `540 billion`."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:.3g} {word}"
    return f"{number:,.0f}"


def plural(number: int, word: str, many: str = "") -> str:
    """`1 place`, `12 places`."""
    return f"{number:,} {word if number == 1 else many or word + 's'}"


def percent(fraction: float) -> str:
    """A fraction in percent, three significant digits; less than all is never called all of it.

    >>> percent(0.0123), percent(1.0), percent(0.99999), percent(math.inf)
    ('1.23 %', '100 %', 'over 99.9 %', 'an unknown share')
    """
    if not math.isfinite(fraction):
        return "an unknown share"
    share = round(fraction, 9)
    return "over 99.9 %" if 0.9995 <= share < 1.0 else f"{100 * share:.3g} %"


def user_speed(tpot_s: float) -> str:
    """`43.9 tok/s`: what one user reads."""
    return f"{1.0 / tpot_s:.3g} tok/s"


def between(times: Interval) -> str:
    """`28 ms (26 ms to 31 ms)`."""
    low, high = show(times.low, "s"), show(times.high, "s")
    return f"{show(times.value, 's')} ({low} to {high})"


def balance_words(balance: RedundantExperts) -> str:
    """What copies of experts hold, and how level they leave the devices."""
    return (
        f"{show(balance.copies_bytes, 'B')}, {balance.n_redundant} redundant experts a layer: the "
        f"fullest device gets {balance.fullest_factor:.3g} times the mean in the long run"
    )


def calibrated_words(own: ServingCalibration) -> str:
    """`calibrated by 5 runs of mine.toml: TPOT was 21 % off, …`."""
    return f"calibrated by {plural(own.n_runs, 'run')} of {own.file}: {off_words(own)}"


def off_words(own: ServingCalibration) -> str:
    """`TPOT was 21 % off, 3 % by constants of the other runs; TTFT …`."""
    parts = []
    for name in ("tpot", "ttft"):
        off, left_out = getattr(own, f"{name}_off"), getattr(own, f"{name}_left_out")
        after = "" if left_out is None else f", {percent(left_out)} by constants of the other runs"
        parts.append(f"{name.upper()} was {percent(off)} off{after}")
    return "; ".join(parts)


def what_if_texts(requests: Iterable[object]) -> list[str]:
    """What machines of requests are supposed to have more or less of; nothing where none is."""
    from planner.specs.files.what_if import has
    from planner.specs.records.devices import ClusterSpec
    from planner.specs.records.kernels import inner_records

    pools = [pool for one in requests for _, pool in inner_records(one, ClusterSpec)]
    said = ((pool, name) for pool in pools for name in pool.device.what_if if has(pool, name))
    texts = dict.fromkeys(_supposed(pool, name) for pool, name in said)
    return [", ".join(texts)] if texts else []


def _supposed(pool: ClusterSpec, name: str) -> str:
    """`HBM bandwidth 1.3 times that of h100-sxm (4.36 TB/s)`."""
    from planner.specs.files.what_if import resources

    row, device = resources()[name], pool.device
    parts = (pool, device, pool.fabric)
    values = (getattr(part, key, None) for key in row["shows"].split() for part in parts)
    value: Any = next(filter(None, values), None)
    value = next(iter(value.values())) if isinstance(value, Mapping) else value
    figure = f" ({show(value, row['unit'])})" if value else ""
    return f"{row['words']} {device.what_if[name]:.12g} times that of {device.name}{figure}"
