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

from pathlib import Path

from planner.errors import Problem
from planner.specs.ledger import Use
from planner.specs.tables import Table, is_count, literal, read_table
from planner.specs.variants import HOWS, Variant
from planner.units import UnitError, parse

_CONFIG, _FILE = "config.json", "variant.toml"
_TEXTS = ("of", "how", "quality", "source")
_LOSS = "quality_loss"
_COUNTS = ("n_denoising_steps", "n_block_tokens")


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
    table, problems = read_table(path, where, use=Use(kind="variant"))
    if problems:
        return None, list(problems)
    inner = table.get("variant")
    if not isinstance(inner, dict):
        return None, [Problem(where=where, key="variant", fact="is missing")]
    faults = [
        Problem(where=where, key=f"variant.{key}", value=literal(value), fact=fact, remedy=remedy)
        for key, value, fact, remedy in _faults(inner)
    ]
    return (None, faults) if faults else (_variant(inner), [])


def _faults(table: Table) -> list[tuple[str, object, str, str]]:
    """Key, value, fact, remedy."""
    known = f"it is one of {', '.join(HOWS)}"
    faults: list[tuple[str, object, str, str]] = []
    for key in _TEXTS:
        value = table.get(key)
        if value is None:
            faults.append((key, "", "is missing", known if key == "how" else ""))
        elif not isinstance(value, str) or not value.strip():
            faults.append((key, value, "is not text", ""))
        elif key == "how" and value not in HOWS:
            faults.append((key, value, "is no way to make a variant", known))
    if _LOSS in table and _loss(table) is None:
        faults.append((_LOSS, table[_LOSS], "is no share below 1", 'write `"3%"`'))
    for key in _COUNTS:
        if key in table and not is_count(table[key]):
            faults.append((key, table[key], "is not a positive whole number", ""))
        elif key in table and table.get("how") != "diffusion":
            faults.append((key, table[key], "is of diffusion decoders only", ""))
    if table.get("how") == "diffusion":
        faults += [(key, "", "is missing", "") for key in _COUNTS if key not in table]
    faults += [
        (key, value, "unknown key", "")
        for key, value in table.items()
        if key not in (*_TEXTS, *_COUNTS, _LOSS)
    ]
    return faults


def _loss(table: Table) -> float | None:
    """The share that is lost; None where it cannot be read, or is not there."""
    try:
        loss = parse(str(table[_LOSS]), "1", allow_zero=True)
    except (KeyError, UnitError):
        return None
    return loss if 0.0 <= loss < 1.0 else None


def _variant(table: Table) -> Variant:
    return Variant(
        of=table["of"],
        how=table["how"],
        quality=f"{table['quality']} ({table['source']})",
        n_denoising_steps=table.get("n_denoising_steps"),
        n_block_tokens=table.get("n_block_tokens"),
        quality_loss_fraction=_loss(table),
    )
