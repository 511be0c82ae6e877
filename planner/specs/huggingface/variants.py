"""What a model was made from, said in a `variant.toml` beside its `config.json`.

Configs do not say it. Beside `NAME_config.json` the file is `NAME_variant.toml`. It has one table:

    [variant]
    of = "llama-3.3-70b"
    how = "pruned"
    quality = "97 % of its MMLU"
    quality_loss = "3%"
    source = "model card"

of which the loss, a share of a benchmark's score, may be left out where none is known; and for
diffusion decoders `n_denoising_steps` and `n_block_tokens`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planner.errors import Problem
from planner.specs.file_layouts import with_source
from planner.specs.ledger import Use
from planner.specs.model_coherence import variant_faults
from planner.specs.tables import Provenance, read_table
from planner.specs.validation.files import validate
from planner.specs.validation.layouts import Section, lay_out
from planner.specs.variants import Variant

_CONFIG, _FILE = "config.json", "variant.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantFile:
    """What a model was made from as its file has it."""

    variant: Variant
    provenance: tuple[Provenance, ...] = ()


lay_out(VariantFile, Section("", "variant", sourced=False))


def read_variant(config: Path, shown: str) -> tuple[Variant | None, list[Problem]]:
    """What a config is a variant of, and what is wrong with the file that says so.

    Args:
        config: the config's path.
        shown: the config as the user knows it, for messages.
    """
    path = config.with_name(config.name.replace(_CONFIG, _FILE))
    if path == config or not path.exists():
        return None, []
    where = str(Path(shown).with_name(path.name))
    table, unread = read_table(path, where, use=Use(kind="variant"))
    file, faults = validate(VariantFile, table, where, variant_faults) if table else (None, [])
    variant = with_source(file.variant, file.provenance) if file else None
    return variant, [*unread, *faults]
