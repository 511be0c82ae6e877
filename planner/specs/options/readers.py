"""Texts of options to what they mean: every reader raises `UnitError` where a text means nothing.

What a reader needs of the rest of the planner it imports when it is called: help needs none of it.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from planner.quantities.tables import packaged_table
from planner.quantities.units import UnitError, parse
from planner.specs.options import counts
from planner.specs.options.option import Gather, Read

LARGEST_ALPHA = 100.0
OF_THE_MODEL = -1
"""Groups of the model's own routing."""


def quantity(unit: str, *, example: str = "", allow_zero: bool = False) -> Callable[[str], float]:
    """A reader of a quantity of a dimension, in SI."""
    return lambda text: parse(text, unit, example=example, allow_zero=allow_zero)


seconds = quantity("s")
requests_per_s = quantity("request/s")
tokens_per_s = quantity("token/s")
fraction = quantity("1")
share = quantity("1", example="1%", allow_zero=True)
power_law = quantity("1", example="1.0", allow_zero=True)
size = quantity("B", example="2GiB", allow_zero=True)
memory = quantity("B", example="20 GB")


def below_one(example: str) -> Callable[[str], float]:
    """A reader of a share below 1."""

    def read(text: str) -> float:
        value = parse(text, "1", example=example, allow_zero=True)
        if value >= 1:
            remedy = f"write `{example}` or `{parse(example, '1'):g}`"
            raise UnitError(text, "is not below 1", remedy)
        return value

    return read


few_percent = below_one("1%")
most_cases = below_one("90%")


def memory_share(text: str) -> float:
    """A share of a device's memory: more than nothing, and not all of it."""
    parse(text, "1", example="92%")  # refuses zero
    return below_one("92%")(text)


def utilisation(text: str) -> float:
    """A share of a capacity: more than nothing, and all of it at most."""
    value = few_percent(text)
    if value <= 0.0:
        raise UnitError(text, "is no share of a capacity", "write `85%`")
    return value


def price(text: str) -> float:
    """Rent of a device; a bare zero lacks more than its unit."""
    try:
        if float(text) <= 0:
            fact = "is zero" if float(text) == 0 else "is negative"
            raise UnitError(text, fact, "write a price above zero, like `$2.10/h`")
    except ValueError as error:
        if isinstance(error, UnitError):
            raise
    return parse(text, "USD/h")


def alpha(text: str) -> float:
    """A weight of speed against price."""
    value = parse(text, "1", example="3", allow_zero=True)
    if not value <= LARGEST_ALPHA:
        raise UnitError(text, "is beyond anything real", "write `3`")
    return value


def one_of(what: str, *allowed: str) -> Callable[[str], str]:
    """A reader of one of these words."""

    def read(text: str) -> str:
        word = text.strip()
        if word in allowed:
            return word
        *some, last = allowed
        fact = f"no such {what}" if word else "is empty"
        near = closest(word.lower(), allowed, cutoff=0.6)
        remedy = f"did you mean `{near}`?" if near else f"it is {', '.join(some)} or {last}"
        raise UnitError(text, fact, remedy)

    return read


def word_of(what: str, known: str) -> Callable[[str], str]:
    """A reader of a word that a constant lists: `planner.specs.ask.targets.PROOFS`."""
    module, _, constant = known.rpartition(".")

    def read(text: str) -> str:
        return one_of(what, *getattr(import_module(module), constant))(text)

    return read


number_format = word_of("number format", "planner.specs.records.served_formats.KNOWN_FORMATS")


def launch_files(text: str) -> tuple[str, str]:
    """What launch files are for, and their folder, which is empty or not there yet.

    A folder that has something is left alone: files of another plan would start beside.
    """
    target, _, folder = text.partition(" ")
    word_of("target of launch files", "planner.specs.records.runtimes.TARGETS")(target)
    path = Path(folder)
    if not folder.strip():
        raise UnitError(text, "names no folder", f"write `--emit {target} out`")
    if path.exists() and not path.is_dir():
        raise UnitError(text, "is no folder", f"name one: `--emit {target} out`")
    if path.is_dir() and any(path.iterdir()):
        remedy = f"empty it, or name another: `--emit {target} {folder.rstrip('/')}-2`"
        raise UnitError(text, "has files already, which would start beside", remedy)
    return target, folder


def synonyms() -> dict[str, str]:
    """What people write, and the words here that it means, the likeliest first."""
    return packaged_table("specs/options/synonyms.toml")


def closest(word: str, known: Sequence[str], *, cutoff: float) -> str:
    """What a word was probably meant to be; empty where nothing is like it.

    >>> closest("disaggregated", ("together", "apart"), cutoff=0.6)
    'apart'
    """
    from difflib import get_close_matches  # only a mistake needs it

    bare = {name.lstrip("-"): name for name in known}
    stem = word.lstrip("-")
    meant = [name for name in synonyms().get(word.lower(), "").split() if name in known]
    longer = [name for name in bare if name.startswith(stem)]
    shorter = [name for name in bare if stem.startswith(f"{name}_")]
    close = get_close_matches(stem, bare, n=1, cutoff=cutoff)
    near = map(bare.__getitem__, longer if len(longer) == 1 else shorter or close)
    return next(iter(meant or near), "")


def names(text: str) -> tuple[str, ...]:
    """Names of a list that commas divide, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",")))


def engines(text: str) -> tuple[str, ...]:
    """Names of engines that commas divide, each once; one at least."""
    names_read = tuple(filter(None, names(text)))
    if not names_read:
        raise UnitError(text, "names no engine", "leave it out, or write `--engine vllm`")
    return names_read


def roles(text: str) -> tuple[str, ...]:
    """Choices of roles that commas divide, each once."""
    read = word_of("choice of roles", "planner.specs.records.roles.ASKED_ROLES")
    return tuple(dict.fromkeys(read(word) for word in text.split(",")))


def acceptances(text: str) -> tuple[float, ...]:
    """Probabilities by position of a draft: `0.8`, `0.85,0.5`, or a CSV of two models' own."""
    if text.endswith(".csv"):
        from planner.specs.files.acceptance import acceptance_of

        return acceptance_of(text)
    return tuple(parse(part, "1", example="0.85,0.5", allow_zero=True) for part in text.split(","))


def acceptances_below_one(text: str) -> tuple[float, ...]:
    """Probabilities of drafted tokens, none of which is certain."""
    values = acceptances(text)
    if max(values) >= 1.0:
        raise UnitError(text, "is no probability below 1")
    return values


def acceptance(text: str) -> float:
    """One probability of all drafted tokens; of a file, the mean of its positions."""
    if text.endswith(".csv"):
        values = acceptances_below_one(text)
        return sum(values) / len(values)
    return few_percent(text)


def groups(text: str) -> int:
    """Groups of experts; `model` takes those of the model's routing."""
    return OF_THE_MODEL if text.strip() == "model" else counts.count(text)


def rates(text: str) -> tuple[float, float]:
    """A range of rates of requests; the unit may be said once [1/s].

    >>> rates("1:200req/s")
    (1.0, 200.0)
    """
    example = "write `1:200req/s`"
    low, colon, high = text.partition(":")
    if not colon:
        raise UnitError(text, "is no range of rates", example)
    most = parse(high, "request/s")
    unit = high.strip().lstrip("+0123456789._eE").lstrip("-0123456789")
    is_bare = low.strip().replace(".", "", 1).replace("_", "").isdecimal()
    least = parse(f"{low.strip()}{unit}" if is_bare else low, "request/s")
    if not least < most:
        raise UnitError(text, "does not ascend", example)
    return least, most


def later(name: str) -> Read:
    """A reader of the planner by its name, `specs.traffic.texts.tokens_of`, imported when used."""
    module, _, function = name.rpartition(".")
    return lambda text: getattr(import_module(f"planner.{module}"), function)(text)


def each(texts: Sequence[str], read: Callable[[str, Read], Any]) -> tuple[str, ...]:
    """Texts of an option that may be given again, as they are."""
    return tuple(texts)


def listed(texts: Sequence[str], read: Callable[[str, Read], Any]) -> tuple[str, ...]:
    """Names that commas, or the option given again, divide; each once."""
    words = (word.strip() for text in texts for word in text.split(","))
    return tuple(dict.fromkeys(words))


def words_of(what: str, known: str) -> Gather:
    """A reader of a list of words, each one that a constant of the planner lists."""
    read_word = word_of(what, known)

    def gather(texts: Sequence[str], read: Callable[[str, Read], Any]) -> tuple[str, ...]:
        values = (read(word, read_word) for word in listed(texts, read))
        return tuple(word for word in values if word)

    return gather


number_formats = words_of("number format", "planner.specs.records.served_formats.KNOWN_FORMATS")


def by_name(reads: Read, what: str, divided: str = "") -> Gather:
    """A reader of NAME=VALUE given again for other names; `""` where a text has no name.

    Args:
        what: it is that has a name, for people.
        divided: `divided` where commas divide several in one text.
    """

    def gather(texts: Sequence[str], read: Callable[[str, Read], Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        parts = [part for text in texts for part in text.split(",")] if divided else texts
        for text in parts:
            name, equals, value = text.rpartition("=")
            key = name.strip() if equals else ""
            if key in values:
                fact = "is given twice" if key else f"is given twice: write {what}=VALUE"
                read(text, _refusing(fact))
                continue
            number = read(value, reads)
            if number is not None:
                values[key] = number
        return values

    return gather


def _refusing(fact: str) -> Read:
    def read(text: str) -> None:
        raise UnitError(text, fact)

    return read
