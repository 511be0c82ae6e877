"""How often tokens that an engine's drafter proposes are accepted, position by position.

The first token of a round is guessed from what the model itself has computed, each further one
from what the drafter made of its own guess before: positions differ. A rate is of the tokens at a
position whose predecessors were all accepted; the last one holds for all positions beyond.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from planner.quantities.tables import packaged_table
from planner.quantities.units import UnitError
from planner.specs.files.ledger import Use
from planner.specs.files.texts import UnreadError, csv_of, read_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Rates of a kind of drafter.

    Args:
        rates: by position [1].
        source: where they are published; `assumed` if they are not.
    """

    rates: tuple[float, ...]
    source: str


PUBLISHED: Mapping[str, Published] = {
    drafter: Published(rates=tuple(row["rates"]), source=row["source"])
    for drafter, row in packaged_table("specs/published.toml")["acceptance"].items()
}
"""Rates where nothing is said, by the name of the drafter."""


COLUMNS = ("context", "token", "target", "draft")
"""Of a file of probabilities; a `position` in the draft, from 1, may stand beside them."""
_ROUNDING = 1e-6


def acceptance_of(path: str) -> tuple[float, ...]:
    """Rates by position from the probabilities that two models give to the same tokens.

    A token drawn from q is accepted with min(1, p/q), so a context accepts Σ min(p, q) over its
    tokens, of those that the file lists at the least; the rate is the mean of its contexts.

    Source: [Leviathan2023] Corollary 3.6; [Erdil2025] §4.1.

    Raises:
        UnitError: the file cannot be read, or holds no such probabilities.
    """
    accepted: dict[tuple[int, str], dict[str, float]] = defaultdict(dict)
    sums: dict[tuple[int, str, str], float] = defaultdict(float)
    for number, row in _rows(path):
        position, shares = _read_row(path, number, row)
        context = position, row["context"]
        if row["token"] in accepted[context]:
            raise UnitError(path, f"line {number}: token {row['token']} is there twice")
        accepted[context][row["token"]] = min(shares)
        for name, share in zip(COLUMNS[2:], shares, strict=True):
            sums[*context, name] += share
            if sums[*context, name] > 1 + _ROUNDING:
                fact = f"line {number}: {name} adds up to {sums[*context, name]:.6g} in a context"
                raise UnitError(path, fact)
    if not accepted:
        raise UnitError(path, "holds no probability")
    rates = defaultdict(list)
    for (position, _), tokens in accepted.items():
        rates[position].append(min(sum(tokens.values()), 1.0))
    if sorted(rates) != list(range(1, len(rates) + 1)):
        raise UnitError(path, f"has positions {', '.join(map(str, sorted(rates)))}, not 1, 2, …")
    return tuple(fmean(rates[position]) for position in sorted(rates))


def _rows(path: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Lines of a file with their numbers, by column."""
    try:
        lines = csv_of(read_text(path, use=Use(kind="probabilities", name=path)))
    except UnreadError as error:
        raise UnitError(path, error.fact) from None
    head = [name.strip() for name in lines[0]]
    if missing := [name for name in COLUMNS if name not in head]:
        raise UnitError(path, f"has no column {' and '.join(missing)}", f"it has {', '.join(head)}")
    for number, cells in enumerate(lines[1:], start=2):
        if any(cells):
            yield number, dict(zip(head, map(str.strip, cells), strict=False))


def _read_row(path: str, number: int, row: Mapping[str, str]) -> tuple[int, tuple[float, ...]]:
    """The position of a line, and what the target and the draft give to its token."""
    try:
        position = int(row.get("position", "1"))
        shares = tuple(float(row[name]) for name in COLUMNS[2:])
    except (KeyError, ValueError):
        raise UnitError(path, f"line {number}: is no line of {', '.join(COLUMNS)}") from None
    if not all(0.0 <= share <= 1.0 for share in shares):
        raise UnitError(path, f"line {number}: a probability is not from 0 to 1")
    return position, shares


def acceptance_text(rates: Sequence[float]) -> str:
    """Rates as an option takes them.

    >>> acceptance_text((0.85, 0.5))
    '0.85,0.5'
    """
    return ",".join(f"{rate:.12g}" for rate in rates)


def source_of(kind: str, rates: Sequence[float]) -> str:
    """Where the rates of a drafter are published; empty of any others."""
    known = PUBLISHED.get(kind)
    return known.source if known and tuple(rates) == known.rates else ""
