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

_NEVER_ZERO = frozenset(
    ("tpot_s", "ttft_s", "time_limit_s", "n_params_published", "n_active_params_published", "limit")
)
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


def may_be_zero(name: str, kind: type = float) -> bool:
    """Whether a number of this name may be 0: some counts, times, what has no unit."""
    if name in _MAY_BE_ZERO or kind is int:
        return name in _MAY_BE_ZERO
    is_free = dimension_of(name) in ("1", "s") and not name.endswith("_fraction")
    return is_free and name not in _NEVER_ZERO


def is_share(name: str) -> bool:
    """Whether a number of this name is a share."""
    return name.endswith("_fraction") or name in _BELOW_ONE


def fault_of(name: str, value: float) -> str:
    """What is wrong with a number of this name; empty if nothing is."""
    if not math.isfinite(value):
        return "is not a finite number"
    if value < 0:
        return "is negative"
    if value == 0:
        return "" if may_be_zero(name, type(value)) else "is zero"
    if isinstance(value, int):
        most = MOST_PARAMETERS if name.endswith("_params") else MOST_COUNT
        most = LARGEST_SEED if name == "seed" else most
        return f"is above {most:,}" if value > most else ""
    if name in _BELOW_ONE and value >= 1:
        return "is not below 1"
    if name.endswith("_fraction") and value > 1:
        return "is above 1"
    low, high, words = RANGES[dimension_of(name)]
    return "" if low <= value <= high else f"is beyond anything real, {words}"
