"""Which columns of a trace say what, by the names that public traces give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.specs.tables import literal

ARRIVAL, INPUT, OUTPUT = "arrival", "input tokens", "output tokens"

_NAMES = {
    ARRIVAL: (
        *("timestamp", "time", "arrival", "arrival_time", "arrived_at", "arrival_s", "time_s"),
        *("timestamp_s", "arrival_ms", "time_ms", "timestamp_ms"),
    ),
    INPUT: (
        *("ContextTokens", "input_length", "Request tokens", "input_tokens", "prompt_tokens"),
        *("num_prefill_tokens", "prompt_length", "n_input", "input", "prompt_len", "input_len"),
    ),
    OUTPUT: (
        *("GeneratedTokens", "output_length", "Response tokens", "output_tokens"),
        *("completion_tokens", "num_decode_tokens", "output_len", "n_output", "output"),
    ),
}
"""Azure: TIMESTAMP, ContextTokens, GeneratedTokens; BurstGPT: Timestamp, Request tokens, Response
tokens; Mooncake: timestamp, input_length, output_length; Vidur: arrived_at, num_prefill_tokens,
num_decode_tokens; and what people call the same."""

_LABELS = {"class": ("class", "class_name", "traffic_class"), "model": ("model", "model_name")}
"""Columns that a trace may have besides: of several classes, for several models."""

_MOONCAKE = frozenset({"timestamp", "inputlength", "outputlength"})
"""Its timestamps are milliseconds: FAST25-release/traces of kvcache-ai/Mooncake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Where a row says what: names as the file has them.

    Args:
        named: of the arrival, of tokens in and out, then of the class and of the model; empty of
            what a trace does not say.
        seconds: of one unit of a time that is a number.
    """

    named: tuple[str, ...]
    seconds: float

    @property
    def read(self) -> tuple[str, ...]:
        """Those that there are."""
        return tuple(filter(None, self.named))


def columns_of(names: Sequence[str]) -> tuple[Columns | None, str]:
    """The columns of a header, or None and what is wrong with it."""
    found = {what: _all(known, names) for what, known in (_NAMES | _LABELS).items()}
    missing = [what for what in _NAMES if not found[what]]
    if missing:
        shown = literal(", ".join(names))
        return None, f"has no column of {' and '.join(missing)}: the header is {shown}"
    doubled = [" and ".join(f"`{name}`" for name in each) for each in found.values() if each[1:]]
    if doubled:
        return None, f"has several columns of the same: {'; '.join(doubled)}: leave one"
    named = tuple(next(iter(each), "") for each in found.values())
    return Columns(named=named, seconds=_unit_s(named[0], names)), ""


def _unit_s(arrival: str, names: Sequence[str]) -> float:
    """Seconds of one unit of a column of times."""
    is_ms = _bare(arrival).endswith("ms") or {_bare(name) for name in names} >= _MOONCAKE
    return 1e-3 if is_ms else 1.0


def understood() -> str:
    """All names that are known, for a remedy."""
    said = (f"{what}: {', '.join(f'`{name}`' for name in names)}" for what, names in _NAMES.items())
    return f"capitals and `_` do not count; {'; '.join(said)}"


def _all(known: Sequence[str], names: Sequence[str]) -> list[str]:
    return [name for name in names if _bare(name) in map(_bare, known)]


def _bare(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
