"""Names and units that several reports use."""

from __future__ import annotations

from collections.abc import Mapping

from planner.results import Deployment
from planner.specs.targets import DEGREE_OPTIONS, Targets
from planner.units import show

LIMIT_LABELS: Mapping[str, str] = {
    "tpot": "TPOT",
    "ttft": "TTFT",
    "cost": "cost",
    "devices": "devices",
    "batch": "decode batch",
    "demand": "demand",
    "replicas": "replicas",
    "prefill_batch": "prefill batch",
    "hbm": "HBM",
}
_AT_LEAST = frozenset({"batch", "demand"})

OBJECTIVE_WORDS: Mapping[str, str] = {
    "cost": "least rent per output token",
    "rent": "least rent per hour",
    "latency": "least time per output token",
    "ttft": "least time to first token",
    "throughput": "most output tokens per second",
    "devices": "fewest devices",
}
PREFILL_WORDS: Mapping[str, str] = {
    "latency": "each request alone, for its least TTFT",
    "cost": "requests together, for their least cost",
}
OBJECTIVE_DIMENSIONS: Mapping[str, str] = {
    "cost": "USD/token",
    "rent": "USD/h",
    "latency": "s",
    "ttft": "s",
    "throughput": "token/s",
    "devices": "1",
}


def limit_label(name: str) -> str:
    return LIMIT_LABELS.get(name, name)


def limit_text(name: str, value: float, dimension: str) -> str:
    """`≤ 30 ms`, `≥ 16`."""
    sign = "≥" if name in _AT_LEAST else "≤"
    return f"{sign} {limited_text(value, dimension)}"


def limited_text(value: float, dimension: str) -> str:
    """A quantity that can be limited: devices and sequences are counted, not rounded.

    >>> limited_text(1024.0, "1"), limited_text(0.0301234, "s")
    ('1024', '30.1 ms')
    """
    counted = dimension == "1" and float(value).is_integer()
    return f"{value:.0f}" if counted else show(value, dimension)


def target_texts(targets: Targets) -> list[str]:
    """Every target that is set: `TPOT ≤ 30 ms`."""
    values = (
        ("tpot", targets.tpot_s, "s"),
        ("ttft", targets.ttft_s, "s"),
        ("cost", targets.usd_per_token, "USD/token"),
        ("devices", targets.n_devices, "1"),
        ("batch", targets.min_batch, "1"),
    )
    degrees = targets.degrees.fixed().items()
    loss, demand = targets.quality_loss_fraction, targets.demand_tokens_per_s
    others = [
        *(() if demand is None else (f"demand {show(demand, 'token/s')}",)),
        *(() if loss is None else (f"quality loss ≤ {show(100 * loss, '1')} %",)),
        *(f"{DEGREE_OPTIONS[name].lstrip('-').upper()} {degree}" for name, degree in degrees),
    ]
    limits = [
        f"{limit_label(name)} {limit_text(name, value, dimension)}"
        for name, value, dimension in values
        if value is not None
    ]
    return limits + others


def headline(deployment: Deployment) -> str:
    """What a deployment does and costs, in one line."""
    return ", ".join(
        (
            f"TPOT {show(deployment.tpot_s, 's')}",
            f"TTFT {show(deployment.ttft_s, 's')}",
            show(deployment.usd_per_token, "USD/token"),
            show(deployment.usd_per_hour, "USD/h"),
        )
    )


def amount(number: float) -> str:
    """A large count in words: `540 billion`."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:.3g} {word}"
    return f"{number:,.0f}"


def plural(number: int, word: str, many: str = "") -> str:
    """`1 place`, `12 places`."""
    return f"{number:,} {word if number == 1 else many or word + 's'}"
