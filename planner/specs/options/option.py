"""An option of the command line, as `options.toml` says it."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

Read = Callable[[str], Any]
"""A text to its value; raises `UnitError`, with why, where it has none."""

Gather = Callable[[Sequence[str], Callable[[str, Read], Any]], Any]
"""All texts of an option to one value. Each part of them is read by the function that it gets,
which collects what is wrong and returns None."""


def as_written(text: str) -> str:
    """The text itself: a name, a path, anything."""
    return text


def in_digits(number: float) -> str:
    """A number without a unit, as the command line reads it."""
    return f"{number:.12g}"


def joined(words: Sequence[str]) -> str:
    """Words with commas between, as the command line reads them."""
    return ",".join(words)


def new_file(text: str) -> str:
    """The path of a file to write, which is looked at before anything is searched."""
    return text


@dataclass(frozen=True, slots=True)
class Option:
    """An option.

    Args:
        usage: its name, and what help calls its value: `--input TOKENS`. Without that it takes
            none. A name without dashes is a word that stands alone.
        words: for help.
        reads: its text to its value.
        usual: its text where it is left out.
        gathers: all its texts to its value, where it may be given again.
        of: commands to which this row belongs, where another row of the name is of the others.
        sets: the argument of the library, or the field of a record, that it is: `Workload.n`.
        needs: an option without which it says nothing.
        required: what to write where it is left out and must not be.
        lack: what is said of a command without it.
        example: of a value, for messages.
        writes: a value of a request to its text, where a command line of it says that as it is.
        values: what shells complete: words, constants of the planner, kinds of files in capitals.
    """

    usage: str
    words: str
    reads: Read = as_written
    _: KW_ONLY
    usual: str | None = None
    gathers: Gather | None = None
    of: tuple[str, ...] = ()
    sets: str = ""
    needs: str = ""
    required: str = ""
    lack: str = "is not given"
    example: str = ""
    writes: Callable[[Any], str] | None = None
    values: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.usage.partition(" ")[0]

    @property
    def value(self) -> str:
        """What help calls its value; it takes none where empty."""
        name, _, value = self.usage.partition(" ")
        return value if name.startswith("-") else name

    @property
    def argument(self) -> str:
        """As a name of Python.

        >>> Option("--ttft-p99.9 TIME", "").argument
        'ttft_p99_9'
        """
        return self.name.lstrip("-").replace("-", "_").replace(".", "_").lower()
