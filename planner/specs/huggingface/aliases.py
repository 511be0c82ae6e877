"""Checkpoints by their names on Hugging Face: which model file knows one, in which formats.

A model file names the checkpoint that engines load, those of its number formats, and others of the
same shape: `[[alias]]`.
"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from planner.specs.files.places import Kind, exists, files
from planner.specs.files.tables import read_table
from planner.specs.records.devices import ModelSpec
from planner.specs.records.served_formats import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCheckpoint:
    """A checkpoint that a model file names.

    Args:
        file: name of the model file.
        repository: `org/name` on Hugging Face.
        published: number format that it is called by; empty for that of the model.
        weights: format of the kernels that run, where the file has no checkpoint of the format.
        kv: format that the cache is published in; empty for that of the model.
        source: where that is said.
    """

    file: str
    repository: str
    published: str = ""
    weights: str = ""
    kv: str = ""
    source: str = ""

    def of(self, model: ModelSpec) -> ModelSpec:
        """The model as this checkpoint has it: what engines load, and in which formats."""
        model = replace(model, repository=self.repository)
        if not self.published:
            return model
        checkpoints = [one for one in model.checkpoints if one.format == self.published]
        if self.weights:
            said = {"weights": self.weights, "experts": self.weights, "source": self.source}
            checkpoints = [Checkpoint(format=self.published, **said)]
        return replace(
            model,
            weights_formats=(self.published,),
            published_weights=(self.published,),
            kv_format=self.kv or model.kv_format,
            checkpoints=tuple(checkpoints),
        )


def known_checkpoint(name: str) -> ListedCheckpoint | None:
    """The checkpoint of a name, `org/name` or without `org`, in any case; None if none is known.

    What is there as a path stands for itself.
    """
    wanted, paths = name.casefold(), list(files(Kind.MODEL))
    is_file = name.endswith((".toml", ".json")) or exists(Path(name))
    if is_file or any(path.stem in (name, wanted) for path in paths):
        return None
    every = (one for path in paths for one in _named(path))
    start = 0 if "/" in name else 1  # a name without `org` is the last part of one
    return next(
        (one for one in every if wanted == "/".join(one.repository.casefold().split("/")[start:])),
        None,
    )


def model_named(name: str) -> str:
    """The name of the model that a checkpoint is one of; the name itself where none is known."""
    return _model_named(name, Path.cwd())


def are_two_models(name: str, other: str) -> bool:
    """Whether both names are known, of two models; a name of a user's own may be of any."""
    both = {model_named(it).casefold() for it in (name, other)}
    return len(both) == len(both & {path.stem for path in files(Kind.MODEL)}) == 2


@cache  # a table has the same few names in thousands of rows
def _model_named(name: str, _: Path) -> str:
    known = known_checkpoint(name)
    return known.file if known else name


def _named(path: Path) -> list[ListedCheckpoint]:
    """The checkpoints that a model file names, as far as it can be read."""
    table, _ = read_table(path, path.name)
    head, formats, others = table.get("model"), table.get("checkpoints"), table.get("alias")
    said: list[dict[str, Any]] = [head] if isinstance(head, dict) else []
    if isinstance(formats, dict):
        said += [{**one, "published": key, "weights": ""} for key, one in formats.items()]
    said += others if isinstance(others, list) else []
    return [
        ListedCheckpoint(
            file=path.stem,
            repository=str(entry["repository"]),
            **{key: str(entry.get(key, "")) for key in ("published", "weights", "kv", "source")},
        )
        for entry in said
        if "repository" in entry
    ]
