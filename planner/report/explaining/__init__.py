"""Figures of answers traced to what they are made of: formula, terms, constants, sources, limits.

Rows of `figures.toml` say what each figure is the sum of: formulas over the record that has it, and
over what `accounts` makes of that.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.quantities.tables import packaged_table
from planner.quantities.units import show
from planner.report.catalogue.figures import value_text
from planner.report.documents.blocks import Block, Document, Note, Section, Table, notes, section
from planner.report.documents.screens import FIRST_SCREEN
from planner.report.explaining.accounts import Scope, subjects
from planner.report.words import percent
from planner.specs.files.formulas import FormulaError, item_of, value_of

Row = Mapping[str, Any]

TABLE = packaged_table("report/explaining/figures.toml")
ALL = "all"
NAMES = (ALL, *sorted({name for row in TABLE["figure"] for name in row["names"].split()}))
"""What may be explained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What a formula has a name for, one of several that are it together, or a constant.

    Args:
        symbol: in the formula; of a constant, the key that it has in its file.
        value: in the SI of its unit.
        words: what it is.
        least: what physics leaves of it; None where nothing bounds it.
        limit: what does, in words.
        source: who says so, of a constant.
    """

    symbol: str
    name: str
    value: float | str
    unit: str
    words: str = ""
    least: float | None = None
    limit: str = ""
    source: str = ""


def explained(document: Document, answer: object, names: Sequence[str]) -> Document:
    """What stands at the head of a document, and below it what figures are made of."""
    known = [*figures(answer)]
    has = {name: "" for _, row, _ in known for name in row["names"].split()}
    sections = [
        _section(heading, row, scope)
        for heading, row, scope in known
        if {ALL, *row["names"].split()} & {*names}
    ]
    words = f"this answer has none; it has {', '.join(sorted(has))}"
    sections += [section(name, Note(words)) for name in names if name not in (ALL, *has)]
    sections += [each for each in document.sections if each.title in ("accuracy", FIRST_SCREEN)]
    return replace(document, sections=tuple(sections), is_in_order=True)


def figures(answer: object) -> Iterator[tuple[str, Row, Scope]]:
    """What has a figure where an answer has several, the row of the figure, and its scope."""
    for heading, scope in subjects(answer):
        for row in TABLE["figure"]:
            is_of = type(scope["it"]).__name__ in row["of"].split()
            if is_of and _of(row, "given", scope, 1.0) and not _of(row, "unless", scope):
                more = row.get("with", {})
                yield heading, row, Scope({**scope, **{it: _of(more, it, scope) for it in more}})


def _section(heading: str, row: Row, scope: Scope) -> Section:
    formula = "".join(_SIGNS.get(sign, sign) for sign in row["formula"].replace("**", "^"))
    texts = (f"{row['title']} = {formula}" if formula else "", row.get("words", ""))
    said: list[Block] = [*notes(filter(None, texts)), _table([*terms_of(row, scope)])]
    for name, parts in _forms(scope.get("work")).items():
        said += [Note(name, kind="item"), *notes(parts, kind="part")]
    constants = [
        (f"  {it.name}", value_text(it.value, it.unit), f"{it.symbol}: {it.source}")
        for it in constants_of(row, scope)
    ]
    if constants:
        said += [Note(), Table(rows=constants, align="<><", wraps=True)]
    figure = value_text(value_of(row["value"], scope), row["unit"])
    return section(f"{heading}{row['title']}: {figure}", *said)


def _table(terms: Sequence[Term]) -> Table:
    """A line a term, beside what physics leaves of it where that is known of any."""
    heads = ("", "takes", "over", "physical limit", "") * any(it.least for it in terms)
    rows = [
        (f"  {it.name}", value_text(it.value, it.unit), *(_limit(it) if heads else ()), it.words)
        for it in terms
    ]
    return Table(heads=heads, rows=rows, align="<>><<" if heads else "<><", wraps=True)


_SIGNS = {"*": "×", "-": "−", "_": " "}
_OVERLAPPING = ("compute", "weights")
"""Terms that share their time: both together, `products`, are bounded."""


def _limit(term: Term) -> tuple[str, str]:
    """By how much a term is over what physics leaves of it, and that; empty where nothing does."""
    if not term.least:
        return "", ""
    over = float(term.value) / term.least
    words = "overlaps" if over < 1.0 and term.symbol in _OVERLAPPING else f"{over:.3g} ×"
    return words, f"{show(term.least, term.unit)}: {term.limit}"


def _of(row: Row, key: str, scope: Scope, usual: object = None) -> Any:  # noqa: ANN401
    """What a formula of a row is; the usual where it has none, None where that has no value."""
    try:
        return item_of(row[key], scope) if key in row else usual
    except FormulaError:
        return None


def terms_of(row: Row, scope: Scope) -> Iterator[Term]:
    """Terms of a figure; of one that lists records, each of these."""
    terms = row["terms"] if isinstance(row["terms"], list) else TABLE["terms"][row["terms"]]
    for term in terms:
        for item in _of(term, "lists", scope, (None,)):
            of = Scope({**scope, "item": item})
            rate = _of(term, "at", of)
            name = term.get("name", "{of[item].name}" if item else term["as"].replace("_", " "))
            yield Term(
                symbol=term["as"],
                name=name.format(of=of),
                value=value_of(term["is"], of),
                unit=term["unit"],
                words=term.get("words", "").format(of=of),
                least=_of(term, "least", of),
                limit=term.get("by", "").format(show(rate, term["at_unit"]) if rate else "", of=of),
            )


def constants_of(row: Row, scope: Scope) -> Iterator[Term]:
    """Values of files by their keys there, of those files that have them and say of whom."""
    for key in row.get("constants", "").split():
        constant = TABLE["constants"][key]
        sources = {it.key: it.source for it in scope["provenance"]}
        value = _of(constant, "is", scope)
        own = constant.get("key", key).format(of=scope)
        part = own.partition(".")[0]  # which `--price` says by itself
        if value and (source := sources.get(part) or sources.get(own)):
            field = constant.get("field", constant["is"].rpartition(".")[2])
            source = f"{scope['differs'].get(field, '')} {source}".strip()
            unit = constant["unit"]
            yield Term(symbol=own, name=constant["as"], value=value, unit=unit, source=source)


def _forms(work: Any) -> dict[str, tuple[str, ...]]:  # noqa: ANN401 a pass, or none
    """Closed forms that timed operations of a pass: law, constants, source, and what each timed."""
    forms: dict[str, tuple[str, ...]] = {}
    for line in getattr(work, "operations", ()):
        own = [f"source: {line.source}; ± {percent(line.error)}"]
        if line.constants:
            own.insert(0, f"constants: {_values(line.constants)}")
        own.append(f"{line.name}: {_values(line.arguments)}")
        name = f"{line.formula}, {line.format}: {TABLE['laws'].get(line.formula, '')}"
        forms[name] = (*dict.fromkeys((*forms.get(name, ()), *own)),)
    return forms


def _values(values: Mapping[str, float]) -> str:
    return ", ".join(f"{key}={value:.6g}" for key, value in values.items())
