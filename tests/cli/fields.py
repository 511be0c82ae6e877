"""Every number of every kind of file, altered: an answer changes, or a warning names the key.

A number that changes nothing, and of which nothing is said, is one that its writer believes in for
no reason. Each kind of file is here once, small; each of its numbers is altered in several ways,
one at a time, and commands that read the file are run until one answers otherwise.

A number may also be spoilt: left out, or replaced by what no number of the kind can be. A command
then refuses the file with a message that names the key, or it is as with any other number.

`python -m tests.cli.fields` goes through all of them.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import os
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.commands.cli import main
from tests.cli.field_files import FILES
from tests.cli.field_readers import READERS

Keys = tuple[str | int, ...]

TEXTS = frozenset({"source", "note", "name", "title", "description", "version", "date", "type"})
"""Keys of words."""

DESCRIPTIVE = frozenset({"n_rows", "p90_error", "left_out_p90_error", "best"})
"""Numbers that say how far to trust a fit, or what others reached; no answer is made of them."""

ABSENT = object()
"""In place of a value: the key is left out."""

SPOILT = (ABSENT, 0, -1, 1e30, -1e-30, 10**400, math.nan, math.inf, True, "x", "", [], {})
"""What a number may be written as by mistake or malice."""

NOT_ANSWERS = frozenset(
    {"request", "provenance", "data", "versions", "digest", "kinds", "title", "n_assumed"}
    | {"wall_s", "solve_s", "spent_s", "seconds", "peak_flop_per_s", "unverified", "proofs"}
)
"""Keys of JSON that repeat what was asked, or how long an answer took."""

CHECKED = {
    "check.": "the shape is counted and compared",
    "pattern.": "says which names there are",
    "shape.context": "requests that are longer are refused",
    "kv_quality.": "a cache that loses more than is allowed is refused where it is asked for",
    "torus.slice_dims": "in ascending order, and altered alone some are not",
}
UNNEEDED = {
    "shape.context": "without it nothing limits requests, and these fit",
    "check.tolerance": "the usual one is enough for this shape",
    "links.between": "links of which nothing is said carry whatever comes",
    "links.coordinator": "likewise",
}
COUPLED = ("shape.n_heads", "shape.n_kv_heads", "shape.d_head", "mla.d_rope", "mla.d_nope")
"""With latents each head has keys of its own, and d_head is the sum of two widths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One number of one file."""

    file: str
    keys: Keys

    @property
    def name(self) -> str:
        return f"{self.file}: {dotted(self.keys)}"


def dotted(keys: Keys) -> str:
    """`link[0].bandwidth`, as messages have it."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.lstrip(".").removesuffix(".value")


def cases() -> Iterator[Case]:
    """Every number of every file."""
    for file, text in FILES.items():
        for keys in _numbers(tomllib.loads(text)):
            yield Case(file=file, keys=keys)


def fault(case: Case, folder: Path, known: dict[str, object]) -> str:
    """What is wrong with how a number counts; empty if it does, or if a warning names it.

    Args:
        folder: where all files are, as they should be; it is the working folder.
        known: answers of commands on these files, filled as they are run.
    """
    table = tomllib.loads(FILES[case.file])
    path, reasons = folder / case.file, []
    try:
        for line in READERS[case.file]:
            if line not in known:
                path.write_text(FILES[case.file], encoding="utf-8")
                code, known[line], errors = _answer(line)
                if code:
                    return f"`plan {line}` is refused: {errors}"
            for value in _altered(_at(table, case.keys)):
                path.write_text(_toml(_with(table, case.keys, value)), encoding="utf-8")
                code, answer, errors = _answer(line)
                if code == 4:
                    return f"`plan {line}` fails with {value!r}: {errors}"
                if code == 2:
                    reasons.append(errors)
                elif answer != known[line] or _names(errors, case):
                    return ""
    finally:
        path.write_text(FILES[case.file], encoding="utf-8")
    checked = dotted(case.keys).startswith(tuple(CHECKED))
    if reasons and (checked or (case.file == "models/toymix.toml" and _is_coupled(case))):
        return ""
    return "changes no answer, and no warning names it"


def spoilt(case: Case, value: object, folder: Path, known: dict[str, object]) -> str:
    """What is wrong with how a value that may be none is met; empty if nothing is.

    Args:
        value: in place of the number; `ABSENT` for none.
        folder, known: as for `fault`.
    """
    table = tomllib.loads(FILES[case.file])
    path = folder / case.file
    wrong = _without(table, case.keys) if value is ABSENT else _with(table, case.keys, value)
    try:
        for line in READERS[case.file]:
            path.write_text(FILES[case.file], encoding="utf-8")
            if line not in known:
                _, known[line], _ = _answer(line)
            path.write_text(_toml(wrong), encoding="utf-8")
            code, answer, errors = _answer(line)
            if code == 2:
                return "" if _is_told(case, errors) else f"is refused by another name: {errors}"
            if code not in (0, 1):
                return f"`plan {line}` fails: {errors}"
            if answer != known[line] or _names(errors, case):
                return ""
    finally:
        path.write_text(FILES[case.file], encoding="utf-8")
    return "" if _says_the_same(case, value) else "changes no answer, and no warning names it"


def _is_told(case: Case, errors: str) -> bool:
    """Whether a message names the file, and the key or the count of all parameters."""
    word = next(key for key in reversed(case.keys) if isinstance(key, str) and key != "value")
    said = " ".join(errors.split())
    return case.file in said and (word in said or "check.n_params" in said)


def _says_the_same(case: Case, value: object) -> bool:
    """Whether a file without a number, or with another, says what it said."""
    if value is ABSENT:
        return dotted(case.keys) in UNNEEDED
    return bool(value == _at(tomllib.loads(FILES[case.file]), case.keys))


def _is_coupled(case: Case) -> bool:
    return dotted(case.keys) in COUPLED


def _names(errors: str, case: Case) -> bool:
    """Whether a warning is of this key, or of a table that it is in."""
    said = " ".join(errors.split())
    for place in re.findall(r"warning: `([^`]*)`", said):
        _, _, keys = place.partition(": ")
        for key in keys.partition(" = ")[0].split(", "):
            if key and (dotted(case.keys) + ".").startswith((f"{key}.", f"{key}[")):
                return True
    return False


def _answer(line: str) -> tuple[int, object, str]:
    """Exit code, what is answered without what was asked, and messages."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(shlex.split(line))
    return code, (code, _stripped(json.loads(out.getvalue() or "null"))), err.getvalue()


def _stripped(value: Any) -> object:
    if isinstance(value, dict):
        return {key: _stripped(one) for key, one in value.items() if key not in NOT_ANSWERS}
    return [_stripped(one) for one in value] if isinstance(value, list) else value


def _numbers(value: object, keys: Keys = ()) -> Iterator[Keys]:
    """Where numbers and quantities are."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in TEXTS | DESCRIPTIVE:
                yield from _numbers(one, (*keys, key))
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from _numbers(one, (*keys, i))
    elif isinstance(value, str):
        if re.match(r"\$?[\d.]+ ?[A-Za-z%/]*$", value):
            yield keys
    elif not isinstance(value, bool):
        yield keys


def _altered(value: Any) -> tuple[Any, ...]:
    """Other numbers of the same kind; some may be none that the file may hold."""
    if isinstance(value, int):
        return (2 * value, value // 2, value + 1, value - 1, 4 * value)
    if isinstance(value, float):
        return (0.5 * value, 1.1 * value, 0.97 * value, 1e-9)
    match = re.fullmatch(r"(\$?)([\d.]+)(.*)", value)
    assert match
    before, number, after = match.groups()
    return tuple(f"{before}{float(number) * scale:.6g}{after}" for scale in (0.5, 1.9, 30.0, 0.01))


def _at(table: Any, keys: Keys) -> Any:
    for key in keys:
        table = table[key]
    return table


def _with(table: Any, keys: Keys, value: object) -> Any:
    changed = copy.deepcopy(table)
    _at(changed, keys[:-1])[keys[-1]] = value
    return changed


def _without(table: Any, keys: Keys) -> Any:
    changed = copy.deepcopy(table)
    del _at(changed, keys[:-1])[keys[-1]]
    return changed


def _toml(table: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(key)} = {_inline(value)}\n" for key, value in table.items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(key)} = {_inline(one)}" for key, one in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value)


def write_all(folder: Path) -> None:
    """All files, as they should be."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def run_all() -> int:
    """Alter every number; how many count for nothing."""
    n_wrong, known = 0, {}
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        write_all(Path(name))
        every = [one for one in cases() if not sys.argv[1:] or sys.argv[1] in one.name]
        for case in every:
            met = [fault(case, Path(name), known)]
            met += [spoilt(case, value, Path(name), known) for value in SPOILT]
            n_wrong += any(met)
            for found in filter(None, met):
                print(f"{case.name}: {found}", flush=True)
        os.chdir("/")
    print(
        f"{len(every)} numbers of {len(FILES)} files altered, and spoilt in {len(SPOILT)} ways: "
        f"{n_wrong} without effect or warning"
    )
    return n_wrong


if __name__ == "__main__":
    sys.exit(bool(run_all()))
