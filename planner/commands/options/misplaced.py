"""Options that mean nothing beside the others."""

from __future__ import annotations

from planner.commands.options.written import OF_ENGINES, WrittenPlan
from planner.errors import Problem


def without_engine(written: WrittenPlan) -> list[Problem]:
    """Options that mean nothing, as no engine is named."""
    said = {name: getattr(written, name[2:].replace("-", "_")) for name in OF_ENGINES}
    said["--overlap"] = ",".join(written.overlap) or None
    fact, remedy = "means nothing without a serving engine", "name one: `--engine vllm`"
    return [
        Problem(where=name, value=value, fact=fact, remedy=remedy)
        for name, value in said.items()
        if value is not None
    ]
