"""Tables that lie beside the modules that read them, and are part of the package."""

import tomllib
from pathlib import Path
from typing import Any

PACKAGES = Path(__file__).parents[2]
"""Folder of all packages; `importlib.resources` takes a twentieth of the start of the command."""


def packaged_table(path: str, package: str = "planner") -> dict[str, Any]:
    """What a TOML file of a package says.

    Args:
        path: from the folder of the package, like `specs/options/options.toml`.
    """
    return tomllib.loads(PACKAGES.joinpath(package, path).read_text(encoding="utf-8"))
