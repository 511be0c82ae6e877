"""What a number may be, by its name: names say units (`hbm_bytes`), and units have ranges."""

from __future__ import annotations

import math
from functools import cache

from planner.units import RANGES

MOST_COUNT = 10**9
MOST_PARAMETERS = 10**15
LARGEST_SEED = 2**31 - 1  # solvers hold it in 32 bits

_DIMENSIONS = (
    ("bytes_per_s", "B/s"),
    ("flop_per_s", "FLOP/s"),
    ("tokens_per_s", "token/s"),
    ("requests_per_s", "request/s"),
    ("usd_per_hour", "USD/h"),
    ("usd_per_token", "USD/token"),
    ("_bytes", "B"),
    ("_s", "s"),
    ("_w", "W"),
)
"""The dimension of a number, by how its name ends."""

_MAY_BE_ZERO = frozenset(
    (
        *("seed", "layer", "order", "present", "n_groups", "n_other_params", "n_norm_params"),
        *("n_shared_experts", "n_dense_layers", "n_conv_taps", "d_conv", "d_shared"),
        *("d_rope", "d_nope", "reserve_bytes", "rates_tokens_per_s", "matrix_tokens_per_s"),
        *("from_coordinator_tokens_per_s", "to_coordinator_tokens_per_s"),
        *("quality_loss_fraction", "bandwidth_fraction", "hit_fraction", "n_waves", "priority"),
        *("n_small_kernels", "n_own_blocks", "reserved_fraction", "watermark_fraction", "n_rows"),
    )
)
"""Counts, amounts and fractions that may be 0; so may times, and numbers without a unit."""

_MUST_TAKE_TIME = frozenset({"tpot_s", "ttft_s", "time_limit_s"})
_BELOW_ONE = frozenset(
    (
        *("loss", "gap", "sort_price", "acceptance", "confidence", "hit_fraction"),
        *("quality_loss_fraction", "quality_losses", "kv_quality_losses"),
    )
)


class FaultError(ValueError):
    """A value that cannot be.

    Args:
        fact: what is wrong with it.
        remedy: what to write instead; may be empty.
        is_misfit: it is of another type, and nothing else can be said of it.
    """

    def __init__(self, fact: str, remedy: str = "", *, is_misfit: bool = False) -> None:
        self.fact, self.remedy, self.is_misfit = fact, remedy, is_misfit
        super().__init__(fact)


@cache
def dimension_of(name: str) -> str:
    """The dimension of a number of this name; `1` of one without a unit."""
    return next((dimension for end, dimension in _DIMENSIONS if name.endswith(end)), "1")


@cache
def may_be_zero(name: str) -> bool:
    """Whether an amount of this name may be 0."""
    dimension = dimension_of(name)
    is_unitless = dimension == "1" and not name.endswith("_fraction")
    is_time = dimension == "s" and name not in _MUST_TAKE_TIME
    return is_unitless or is_time or name in _MAY_BE_ZERO


def is_below_one(name: str) -> bool:
    """Whether a share of this name cannot be all."""
    return name in _BELOW_ONE


def count_may_be_zero(name: str) -> bool:
    """Whether a whole number of this name may be 0."""
    return name in _MAY_BE_ZERO


def count_fault(name: str, value: int) -> str:
    """What is wrong with a whole number of this name; empty if nothing is."""
    most = MOST_PARAMETERS if name.endswith("_params") else MOST_COUNT
    most = LARGEST_SEED if name == "seed" else most
    if value < 0:
        return "is negative"
    if value == 0 and name not in _MAY_BE_ZERO:
        return "is zero"
    return f"is above {most:,}" if value > most else ""


def amount_fault(name: str, value: float) -> str:
    """What is wrong with a number of this name; empty if nothing is."""
    if not math.isfinite(value):
        return "is not a finite number"
    if value < 0:
        return "is negative"
    if value == 0:
        return "" if may_be_zero(name) else "is zero"
    is_fraction = name.endswith("_fraction") or name in _BELOW_ONE
    if is_fraction and (value > 1 or (value == 1 and name in _BELOW_ONE)):
        return "is not below 1" if name in _BELOW_ONE else "is above 1"
    low, high, words = RANGES[dimension_of(name)]
    return "" if low <= value <= high else f"is beyond anything real, {words}"
