"""Tables that lie beside the modules that read them, and are part of the package."""

import tomllib
from importlib.resources import files
from typing import Any


def packaged_table(path: str, package: str = "planner") -> dict[str, Any]:
    """What a TOML file of a package says.

    Args:
        path: from the folder of the package, like `specs/options/options.toml`.
    """
    return tomllib.loads(files(package).joinpath(path).read_text(encoding="utf-8"))
