"""Keys that a file has in vain, or lacks: what was meant, and where it belongs."""

from __future__ import annotations

from collections.abc import Iterator

from planner.errors import Problem
from planner.specs.tables import literal
from planner.specs.validation.hints import hints_of, is_list, kind_of
from planner.specs.validation.layouts import layout_of, record_in
from planner.specs.validation.problems import Fault, Way, did_you_mean, dotted

_NO_SOURCE = 'name where the value comes from, or write source = "assumed"'


def file_problems(faults: list[Fault], record: type, shown: str) -> Iterator[Problem]:
    """Faults of a table as problems: a misspelt key, or a section that is missing, told once."""
    unknown = [one for one in faults if one.kind == "extra_forbidden"]
    meant = {one.way: _meant(one, faults, record) for one in unknown}
    told = {(*way[:-1], key) for way, key in meant.items()}
    for fault in faults:
        key, value, fact, remedy = dotted(fault.way), literal(fault.value), fault.fact, fault.remedy
        if fault.kind == "extra_forbidden":
            value, remedy = "", _remedy(str(fault.way[-1]), meant[fault.way], record)
        elif fault.kind == "missing":
            way = _shallowest(fault)
            if way in told:
                continue
            told.add(way)
            key, value = dotted(way), ""
            if way[-1] in ("source", "value"):
                key, fact = dotted(way[:-1]), f"has no {way[-1]}"
                remedy = _NO_SOURCE if way[-1] == "source" else ""
        elif fault.kind == "tuple_type" and isinstance(fault.value, dict):
            remedy = f"open it with [[{key}]], once for each"
        elif fault.kind == "tuple_type" and isinstance(fault.value, str):
            remedy = f'write ["{value}"]'
        yield Problem(where=shown, key=key, value=value, fact=fact, remedy=remedy)


def _remedy(place: str, meant: str, record: type) -> str:
    """What to do about an unknown key: to move it, or to spell it as it was meant."""
    section = _section_with(place.rpartition(".")[2], record)
    if section:
        return f"write it in {section}"
    return f"did you mean `{meant.rpartition('.')[2]}`?" if meant else ""


def _shallowest(fault: Fault) -> Way:
    """The way to what is missing: to its section where all of that is."""
    *outer, place = fault.way
    parts = str(place).split(".")
    above = [".".join(parts[:n]) for n in range(1, len(parts))]
    return (*outer, next((one for one in above if one not in fault.value), place))


def _meant(fault: Fault, faults: list[Fault], record: type) -> str:
    """The key that a misspelt one was meant to be; empty if none is near."""
    *outer, place = fault.way
    inside: type | None = record
    for part in outer:
        field = layout_of(inside).get(str(part)) if inside and isinstance(part, str) else None
        inside = record_in(hints_of(inside)[field.field]) if inside and field else inside
    section, _, word = str(place).rpartition(".")
    before = f"{section}." if section else ""
    missing = [one.way[-1] for one in faults if one.kind == "missing" and one.way[:-1] == (*outer,)]
    known = [str(one) for one in (*missing, *(layout_of(inside) if inside else ()))]
    beside = [one[len(before) :].partition(".")[0] for one in known if one.startswith(before)]
    remedy = did_you_mean(word, dict.fromkeys(beside))
    return before + remedy.split("`")[1] if remedy else ""


def _section_with(key: str, record: type) -> str:
    """The section that an unknown key belongs to, `[torus]` or `[[link]]`; empty if none has it."""
    layout = layout_of(record)
    for place, (field, _) in layout.items():
        section, _, name = place.rpartition(".")
        if name == key and section:
            return f"[{section}]"
        hint = hints_of(record)[field]
        inner = record_in(hint)
        if inner and key in layout_of(inner):
            return f"[[{place}]]" if is_list(kind_of(hint)) else f"[{place}]"
    return ""
