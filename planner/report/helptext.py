"""Help in aligned columns without boxes; `cyclopts` calls it for every section of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.report.lines import wrapped
from planner.report.paint import width, write

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

_COLUMN = 28  # where words begin; `--prefill-batch BATCHES` fits before it


class HelpText:
    """A formatter for `cyclopts.App(help_formatter=...)` in `plaintext` format."""

    def render_usage(self, console: Console, options: ConsoleOptions, usage: object) -> None:
        text = str(usage).strip()
        if text:
            write(text + "\n", console.file)

    def render_description(
        self, console: Console, options: ConsoleOptions, description: object
    ) -> None:
        text = _plain(description)
        if text:
            write("\n".join(wrapped(text, width())) + "\n", console.file)

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        entries = [(", ".join(e.display_labels_with_metavar), _words(e)) for e in panel.entries]
        if not entries:
            return
        lines = [str(panel.title).lower()]
        for sentence in _plain(panel.description).splitlines():
            first, *rest = wrapped(sentence, width() - 4)
            lines += [f"  {first}", *(f"    {line}" for line in rest)]
        for label, words in entries:
            first, *rest = wrapped(words, width() - _COLUMN)
            lines.append(f"  {label:<{_COLUMN - 4}}  {first}".rstrip())
            lines += [" " * _COLUMN + line for line in rest]
        write("\n".join(lines) + "\n", console.file)


def _words(entry: HelpEntry) -> str:
    default = f" [{entry.default}]" if entry.default not in (None, "", "()") else ""
    return _plain(entry.description) + default


def _plain(description: object) -> str:
    """The text inside the renderable that `plaintext` makes."""
    inner = getattr(description, "primary_renderable", description)
    return str(getattr(inner, "plain", inner or "")).strip()
