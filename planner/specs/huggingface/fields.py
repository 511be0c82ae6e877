"""A `config.json` asked field by field; what is wrong with it is collected, not raised.

A value that is missing or wrong is replaced by a harmless one, so that the rest of the
file is still read; checks that need it are left out.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from planner.errors import Problem
from planner.specs.files.tables import Provenance
from planner.specs.files.texts import visible
from planner.specs.huggingface.names import MEANINGS, is_irrelevant, is_shapely

_MAX_COUNT = 10**9
_MAX_OF = {"n_layers": 10_000}  # they are listed one by one
_MAX_SHOWN = 60
_MAX_UNKNOWN = 5
_EVERY_NAME = {name: meaning for meaning, names in MEANINGS.items() for name in names}

Table = dict[str, Any]
_Harmless = TypeVar("_Harmless")


class Fields:
    """The fields of one decoder.

    Args:
        table: the keys, those of `text_config` if there is one.
        shown: the file as the user knows it.
        inside: dotted path of the table in its file, with a dot at the end; empty at the top.
        model_type: family; its defaults are its source.
    """

    def __init__(self, table: Table, *, shown: str, inside: str, model_type: str) -> None:
        self._table, self._shown, self._inside = table, shown, inside
        self._model_type = model_type
        self._asked: dict[str, None] = {}
        self._unsound: set[str] = set()
        self._missing: list[tuple[str, str]] = []
        self._faults: list[Problem] = []
        self._defaults: dict[str, object] = {}

    def has(self, meaning: str) -> bool:
        """Whether a field is there and not `null`."""
        return self.raw(meaning) is not None

    def count(self, meaning: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number of at least `least`; required if there is no default."""
        value = _said_once(self.raw(meaning))
        if value is None:
            return self._absent(meaning, default, 1)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            return self._wrong(meaning, "is not a whole number", max(1, least))
        if not least <= value <= _MAX_OF.get(meaning, _MAX_COUNT):
            fact = "is negative" if value < 0 else "is zero" if value == 0 else "is out of range"
            return self._wrong(meaning, fact, max(1, least), remedy=f"it is {least} or more")
        return value

    def optional(self, meaning: str) -> int | None:
        """A whole number, or None where there is none; zero counts as none."""
        value = self.raw(meaning)
        if value is None or (value == 0 and value is not False):
            return None
        return self.count(meaning)

    def flag(self, meaning: str, *, default: bool) -> bool:
        value = self.raw(meaning)
        if value is None:
            return bool(self._absent(meaning, default, default))
        if not isinstance(value, bool):
            return self._wrong(meaning, "is neither true nor false", default)
        return value

    def switch(self, meaning: str, *, default: bool) -> bool:
        """A flag that few families have: where it is not there, nothing is assumed of it."""
        return self.flag(meaning, default=default) if self.has(meaning) else default

    def text(self, meaning: str, default: str = "") -> str:
        value = self.raw(meaning)
        if value is None:
            return default
        return value if isinstance(value, str) else self._wrong(meaning, "is not text", "")

    def raw(self, meaning: str) -> Any:  # noqa: ANN401 as JSON has it
        """A value of any type."""
        self.dismiss(meaning)
        said = {name: self._table.get(name) for name in MEANINGS[meaning]}
        values = {name: value for name, value in said.items() if value is not None}
        if len({_shown(value) for value in values.values()}) > 1 and self.is_sound(meaning):
            _, *others = values
            same = ", ".join(f"`{name}` is {_shown(values[name])}" for name in others)
            self.fault(meaning, f"is not what the same field says by another name: {same}")
        return next(iter(values.values()), None)

    def words(self, meaning: str, n_wanted: int, known: Sequence[str]) -> list[str] | None:
        """One word a layer, each of them `known`; None where the field is absent or wrong."""
        value = self.raw(meaning)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            return self._wrong(meaning, "is not a list of words", None)
        for word in dict.fromkeys(value):
            if word not in known:
                fact = f"holds `{word[:_MAX_SHOWN]}`, which is not understood"
                self.fault(meaning, fact, f"known are {', '.join(known)}")
        if len(value) != n_wanted and self.is_sound("n_layers"):
            self.fault(meaning, f"has {len(value)} entries, but there are {n_wanted} layers")
        return value if self.is_sound(meaning) and len(value) == n_wanted else None

    def numbers(self, meaning: str) -> list[int] | None:
        """A list of whole numbers; None where the field is absent or wrong."""
        value = self.raw(meaning)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            return self._wrong(meaning, "is not a list of whole numbers", None)
        return value

    def fault(self, meaning: str, fact: str, remedy: str = "") -> None:
        """Note what is wrong with a field that could be read."""
        self._unsound.add(meaning)
        key = self._key(meaning)
        problem = self._problem(key, self._table.get(key), fact, remedy)
        if problem not in self._faults:
            self._faults.append(problem)

    def is_sound(self, *meanings: str) -> bool:
        """Whether nothing is wrong with any of these fields."""
        return not self._unsound.intersection(meanings)

    def dismiss(self, *meanings: str) -> None:
        """Say that these fields are understood and change nothing in this family."""
        self._asked |= dict.fromkeys(meanings)

    def problems(self) -> list[Problem]:
        """Everything that is wrong, the keys that nothing is known of among it."""
        unknown = list(self._unknown())
        meant = {name for _, _, name in unknown if name}
        missing = [key for _, key in self._missing if key not in meant]
        fact = f"is not understood in a config of `{self._model_type}`, and could change its shape"
        remedies = {name: f"did you mean `{name}`?" for name in meant} | {"": ""}
        return [
            *(self._problem(key, None, "is missing", "") for key in missing),
            *self._faults,
            *(self._problem(key, value, fact, remedies[name]) for key, value, name in unknown),
        ]

    def provenance(self, source: str) -> Iterator[Provenance]:
        """Each field that was read, and each that was assumed from its family."""
        for meaning in self._asked:
            if self.has(meaning):
                yield Provenance(key=self._key(meaning), source=source)
            elif meaning in self._defaults:
                default = f"default of `{self._model_type}`"
                yield Provenance(key=self._key(meaning), source=default)

    def _unknown(self) -> Iterator[tuple[str, object, str]]:
        """Keys that could change the shape: key, value, and the name that was meant."""
        missing = [key for _, key in self._missing]
        for key, value in self._table.items():
            if not value or self._is_known(key):
                continue
            meant = "" if key in _EVERY_NAME else _near(key, missing)
            if meant or is_shapely(key, value):
                yield key, value, meant

    def _is_known(self, key: str) -> bool:
        meaning = _EVERY_NAME.get(key)
        return meaning in self._asked or is_irrelevant(key) or key == self._inside.rstrip(".")

    def _key(self, meaning: str) -> str:
        """The name that a field has in this file, or usually has."""
        names = MEANINGS[meaning]
        return next((name for name in names if name in self._table), names[0])

    def _absent(self, meaning: str, default: int | None, harmless: int) -> int:
        if default is not None:
            self._defaults[meaning] = default
            return default
        if meaning not in self._unsound:
            self._unsound.add(meaning)
            self._missing.append((meaning, self._key(meaning)))
        return harmless

    def _wrong(
        self, meaning: str, fact: str, harmless: _Harmless, *, remedy: str = ""
    ) -> _Harmless:
        if self.is_sound(meaning):
            self.fault(meaning, fact, remedy)
        return harmless

    def _problem(self, key: str, value: object, fact: str, remedy: str) -> Problem:
        written = "" if value is None else _shown(value)
        place = f"{self._inside}{key}"
        return Problem(where=self._shown, key=place, value=written, fact=fact, remedy=remedy)


def _said_once(value: object) -> object:
    """The number that a list says of each layer, where it is the same of all; else the value."""
    if isinstance(value, list) and value and value.count(value[0]) == len(value):
        return value[0]
    return value


def _near(key: str, missing: Sequence[str]) -> str:
    """The name that a key was meant to be: of a field that is missing, or very like any."""
    from difflib import get_close_matches

    close = get_close_matches(key, missing, n=1, cutoff=0.75)
    close = close or get_close_matches(key, list(_EVERY_NAME), n=1, cutoff=0.9)
    return close[0] if close else ""


def _shown(value: object) -> str:
    """A value as JSON writes it, cut short."""
    import json

    if isinstance(value, list) and len(value) > _MAX_UNKNOWN:
        return f"[{', '.join(_shown(item) for item in value[:_MAX_UNKNOWN])}, …]"
    if isinstance(value, int) and value.bit_length() > 1_000:
        return "an integer of hundreds of digits"
    text = json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, str):
        text = text[1:-1]
    text = visible(text)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
