"""Where files may be, and which of them come with the planner.

Files of each kind have a folder of one name, in the working folder, in each folder of
`$PLANNER_PATH`, and among what comes with the planner. The first of these that holds a name wins.
"""

import os
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path

SEARCH_PATH = "PLANNER_PATH"


class Kind(Enum):
    """What a file describes: the word for it, its folder, and the command that lists them."""

    MODEL = ("model", "models", "plan models")
    CLUSTER = ("topology", "topologies", "plan topologies")
    FABRIC = ("fabric", "topologies/fabrics", "")
    DEVICE = ("device", "topologies/devices", "plan devices")
    KERNELS = ("kernel table", "kernels", "")
    ENGINE = ("engine", "engines", "plan engines")
    RULES = ("file of rules", "engines/rules", "")
    CONNECTOR = ("connector", "connectors", "plan connectors")
    CLIENT = ("client", "clients", "plan clients")
    CALIBRATION = ("calibration", "calibrations", "")
    PAPER = ("table of a paper", "papers", "plan reproduce --list")

    def __init__(self, word: str, folder: str, lister: str) -> None:
        self.word, self.folder, self.lister = word, folder, lister


_FOLDERS = {kind.folder for kind in Kind}
_SECOND = {Path(kind.folder).name for kind in Kind if "/" in kind.folder}


def is_path(name: str) -> bool:
    """Whether it names a file by its path: it ends in `.toml` or `.json`, or has a separator."""
    separators = {os.sep, os.altsep, "/"} - {None}
    is_file = name.endswith((".toml", ".json"))
    return is_file or any(separator in name for separator in separators if separator)


def folders(kind: Kind) -> tuple[Path, ...]:
    """Folders that may hold files of a kind, the first to be searched first."""
    roots = [Path(), *map(Path, filter(None, os.environ.get(SEARCH_PATH, "").split(os.pathsep)))]
    by_name: dict[str, Path] = {}
    for folder in [*(root / kind.folder for root in roots), _shipped_root() / kind.folder]:
        if is_folder(folder):
            by_name.setdefault(os.path.realpath(folder), folder)
    return tuple(by_name.values())


def files(kind: Kind, *, within: tuple[Path, ...] | None = None) -> Iterator[Path]:
    """Files of a kind; one that is hidden by another of the same name is left out.

    Args:
        kind: what they describe.
        within: folders to look in, the first to win first; all of the kind's where it is left out.
    """
    by_name: dict[str, Path] = {}
    for folder in folders(kind) if within is None else within:
        for path in sorted(folder.glob("*.toml")):
            by_name.setdefault(path.name, path)
    yield from by_name.values()


def shipped_as(path: Path) -> str:
    """A file that comes with the planner, relative to all of these; empty of any other file.

    >>> shipped_as(Path("nowhere/models/palm-540b.toml"))
    ''
    """
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError):
        return ""
    root = _shipped_beside(__file__)[1]
    inside = real.removeprefix(root + os.sep).replace(os.sep, "/")
    is_ours = real.startswith(root + os.sep) and inside.rpartition("/")[0] in _FOLDERS
    return inside if is_ours else ""


def is_as_shipped(path: Path) -> bool:
    """Whether a file comes with the planner, or is a copy of one, as in a clone of this project."""
    from filecmp import cmp

    if shipped_as(path):
        return True
    below = path.parts[-3:] if path.parent.name in _SECOND else path.parts[-2:]
    ours = shipped_file("/".join(below))
    return ours is not None and cmp(path, ours)


def shipped_file(name: str) -> Path | None:
    """The file that `shipped_as` calls so; None if there is none.

    >>> shipped_file("models/palm-540b.toml").name
    'palm-540b.toml'
    >>> shipped_file("models/../pyproject.toml")
    """
    path = _shipped_root() / name
    return path if shipped_as(path) == name and exists(path) else None


def common_to_engines() -> Path:
    """The file of what holds under every engine whose own file does not say otherwise."""
    return _shipped_root() / Kind.ENGINE.folder / "common" / "steps.toml"


def shown_path(path: Path) -> str:
    """The path, relative to the working folder if it is below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(path)


def exists(path: Path) -> bool:
    """Whether there is such a file; not if there cannot be."""
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, or with a null character
        return False


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; not if there cannot be."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _shipped_root() -> Path:
    """What comes with the planner: inside it in a wheel, beside it in a checkout."""
    return _shipped_beside(__file__)[0]


@cache  # asked of every file that may be one of these
def _shipped_beside(file: str) -> tuple[Path, str]:
    """What comes with a module of the planner, and the real path of that."""
    package = Path(file).resolve().parents[2]
    packed = package / "_data"
    root = packed if packed.is_dir() else package.parent
    return root, os.path.realpath(root)
