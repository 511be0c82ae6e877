"""What every kind of answer can do for whoever reads it in a program or a notebook."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_LONGEST = 280
"""Letters of a representation."""


class AnswerRecord:
    """An answer: shown in one line, in a notebook as its page, as a dictionary, as a data frame.

    Reports lie above records, and are imported when somebody looks.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__repr__ = AnswerRecord.__repr__  # type: ignore[method-assign]  # a dataclass keeps its own

    def __repr__(self) -> str:
        """What it is and its headline, in one line of less than 300 characters."""
        line = _report("answer_kinds").line_of(self.whole())
        text = " ".join(f"{type(self).__name__}: {line}".split())
        return f"<{text if len(text) <= _LONGEST else f'{text[: _LONGEST - 1]}…'}>"

    def _repr_html_(self) -> str:
        """Its headline and its page, as notebooks show them."""
        document = _report("answer_kinds").document_of(self.whole())
        html: str = _report("documents.as_html").embedded(document)
        return html

    def whole(self) -> AnswerRecord:
        """The answer that it is, or is a part of."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """What `--json` writes, as `docs/schema` has it, in SI units."""
        envelope: dict[str, Any] = _report("as_json").answer_json(self.whole())
        return envelope

    def to_frame(self) -> Any:  # noqa: ANN401 of whichever library there is
        """Its rows as a frame of pandas, or of polars without that; columns are keys of its JSON.

        Rows are points of a frontier, a plan and its alternatives, replicas, pools, steps, …

        Raises:
            TypeError: this kind of answer has no rows.
            ImportError: neither library is installed.
        """
        rows = _report("as_json").rows_of(self.whole())
        for library in ("pandas", "polars"):
            try:
                return import_module(library).DataFrame(rows)
            except ModuleNotFoundError as error:
                if error.name != library:
                    raise
        raise ImportError("a frame needs pandas or polars: `pip install pandas`")


def _report(module: str) -> Any:  # noqa: ANN401 a module
    return import_module(f"planner.report.{module}")
