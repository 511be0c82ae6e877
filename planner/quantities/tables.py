"""Tables that lie beside the modules that read them, and are part of the package."""

import tomllib
from importlib.resources import files
from typing import Any


def packaged_table(path: str) -> dict[str, Any]:
    """What a TOML file of the package says.

    Args:
        path: from `planner/`, like `specs/options/options.toml`.
    """
    return tomllib.loads(files("planner").joinpath(path).read_text(encoding="utf-8"))
