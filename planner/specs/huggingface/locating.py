"""Where a `config.json` is: a file, a folder that holds one, or the cache of Hugging Face.

The cache is searched offline: `$HF_HOME/hub/models--org--name/snapshots/*/config.json`.

What a model was made from configs do not say: a `variant.toml` beside one does. Beside
`NAME_config.json` the file is `NAME_variant.toml`. It has one table:

    [variant]
    of = "llama-3.3-70b"
    how = "pruned"
    quality = "97 % of its MMLU"
    quality_loss = "3%"
    source = "model card"

of which the loss, a share of a benchmark's score, may be left out where none is known; and for
diffusion decoders `n_denoising_steps` and `n_block_tokens`.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from planner.errors import Problem, SpecError
from planner.specs.files.file_layouts import with_source
from planner.specs.files.ledger import Use
from planner.specs.files.model_coherence import variant_faults
from planner.specs.files.places import exists, is_folder
from planner.specs.files.tables import Provenance, read_table
from planner.specs.files.texts import UnreadError, read_text, visible
from planner.specs.records.variants import Variant
from planner.specs.validation.files import validate

CONFIG = "config.json"

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_REVISION = re.compile(r"\w+")
_LONGEST_REVISION = 100
_CACHED = re.compile(r"models--(?P<org>.+?)--(?P<name>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubConfig:
    """A config, and what the model is called.

    Args:
        path: the file.
        shown: the file as the user knows it.
        name: name of the model.
        repository: what engines find the whole model by: `org/name`, or the folder of a file
            that is called `config.json`; empty of others.
    """

    path: Path
    shown: str
    name: str
    repository: str


def is_config(name: str) -> bool:
    """Whether a name stands for a config: a `.json` file, a folder's path, or `org/name`.

    `org/name` is no path: neither it nor a folder `org` is there.
    """
    if name.endswith(".json"):
        return True
    if name.endswith(".toml") or "/" not in name.replace(os.sep, "/"):
        return False
    if is_folder(Path(name)):
        return True
    is_repository = _REPOSITORY.fullmatch(name) and name[0] not in ".~"
    return bool(is_repository) and not exists(Path(name)) and not is_folder(Path(name).parent)


def locate(name: str, *, asked_by: str) -> HubConfig:
    """The config that a name stands for.

    Raises:
        SpecError: there is none.
    """
    path = Path(name)
    if name.endswith(".json"):
        if not exists(path):
            raise SpecError([Problem(where=name, fact="no such file")])
        return _of_file(path, name)
    if path.is_dir():
        inner = path / CONFIG
        if not exists(inner):
            fact = f"is a folder without a `{CONFIG}`"
            raise SpecError([Problem(where=asked_by, value=name, fact=fact)])
        return _of_file(inner, str(inner))
    return _cached(name, asked_by)


def _cached(name: str, asked_by: str) -> HubConfig:
    folder = cache_folder() / f"models--{name.replace('/', '--')}"
    snapshots = folder / "snapshots"
    folders = [snapshots / _main_revision(folder), *sorted(snapshots.glob("*"))]
    for snapshot in folders:
        path = snapshot / CONFIG
        if exists(path):
            shown = f"{name}/{CONFIG}"
            return HubConfig(path=path, shown=shown, name=name.split("/")[1], repository=name)
    fact = "is neither a file nor a model in the cache of Hugging Face"
    hint = f"`hf download {name} {CONFIG}` puts it there, in {cache_folder()}"
    raise SpecError([Problem(where=asked_by, value=name, fact=fact)], hint=hint)


def cache_folder() -> Path:
    """The cache as `huggingface_hub` finds it."""
    if hub := os.environ.get("HF_HUB_CACHE", ""):
        return Path(hub)
    if home := os.environ.get("HF_HOME", ""):
        return Path(home) / "hub"
    root = os.environ.get("XDG_CACHE_HOME", "") or str(Path("~/.cache").expanduser())
    return Path(root) / "huggingface" / "hub"


def _main_revision(folder: Path) -> str:
    """The snapshot that the branch `main` points to."""
    try:
        revision = read_text(folder / "refs" / "main", most_bytes=_LONGEST_REVISION).strip()
    except UnreadError:
        return "-"
    return revision if _REVISION.fullmatch(revision) else "-"


def _of_file(path: Path, shown: str) -> HubConfig:
    """A config of a file: what it is called by its folder, by the cache's, or by the file."""
    folders = map(_CACHED.fullmatch, reversed(path.absolute().parts[:-1]))
    if cached := next(filter(None, folders), None):
        name, repository = cached["name"], f"{cached['org']}/{cached['name']}"
    else:
        stem = path.stem.removesuffix("config").rstrip("_-.")
        name = stem.split("--")[-1] if stem else path.absolute().parent.name
        repository = str(path.parent) if path.name == CONFIG else ""
    return HubConfig(path=path, shown=shown, name=visible(name), repository=visible(repository))


_VARIANT = "variant.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantFile:
    """What a model was made from as its file has it."""

    variant: Variant
    provenance: tuple[Provenance, ...] = ()


def read_variant(config: Path, shown: str) -> tuple[Variant | None, list[Problem]]:
    """What a config is a variant of, and what is wrong with the file that says so.

    Args:
        config: the config's path.
        shown: the config as the user knows it, for messages.
    """
    path = config.with_name(config.name.replace(CONFIG, _VARIANT))
    if path == config or not path.exists():
        return None, []
    where = str(Path(shown).with_name(path.name))
    table, unread = read_table(path, where, use=Use(kind="variant"))
    file, faults = validate(VariantFile, table, where, variant_faults) if table else (None, [])
    variant = with_source(file.variant, file.provenance) if file else None
    return variant, [*unread, *faults]
