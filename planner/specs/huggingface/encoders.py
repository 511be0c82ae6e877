"""Parameters of what sees or hears beside a decoder: towers of a `config.json`, and projectors.

Matrices, patches and positions are counted, biases and norms are not: a thousandth of a tower.
`encoders.toml` has the families whose shapes are known.
"""

from collections.abc import Mapping
from typing import Any

from planner.errors import Problem
from planner.quantities.tables import packaged_table
from planner.specs.files.formulas import value_of
from planner.specs.files.ledger import remark
from planner.specs.records.encoders import Encoder

Table = Mapping[str, Any]

_KEYS = ("vision_config", "audio_config")
_WIDTH = ("embed_dim", "d_model", "hidden_size")
_DEPTH = ("num_hidden_layers", "depth", "encoder_layers")
_MERGED = ("spatial_merge_size", "scale_factor", "usual")
_MOST_PARAMS = 10**12  # of a tower: one that is said to have more is a mistake
_N_CHANNELS = ("num_channels", "in_channels", "in_chans")


_FAMILIES: Mapping[str, Table] = {
    name: row
    for row in packaged_table("specs/huggingface/encoders.toml")["families"]
    for name in row["names"].split()
}


def known_encoders(config: Table, d_model: int, shown: str) -> list[Encoder]:
    """All towers whose shapes are known; it is remarked what no answer has of them.

    Args:
        shown: the file, for people.
    """
    towers = encoders_of(config, d_model)
    for key, tower in towers.items():
        counted = "is of a shape that is not known: neither its memory nor its time is counted"
        if tower is not None:
            millions = f"{tower.n_params / 1e6:.4g} million parameters"
            counted = f"its {millions} are counted in memory, its time is not without `--images`"
        fact = f"{counted}; tokens of images or sound are of `--input`, and no tower was measured"
        remark(Problem(where=shown, key=key, fact=fact))
    return [tower for tower in towers.values() if tower is not None]


def encoders_of(config: Table, d_model: int) -> dict[str, Encoder | None]:
    """Each tower with its projector, by key; None where its shape is not known.

    Args:
        config: the whole of the file.
        d_model: of the decoder.
    """
    family = _FAMILIES.get(str(config.get("model_type")))
    towers = {key: config[key] for key in _KEYS if isinstance(config.get(key), dict)}
    if family is None:
        return dict.fromkeys(towers)
    return {key: _counted(family, config, one, d_model) for key, one in towers.items()}


def _counted(family: Table, config: Table, tower: Table, d_model: int) -> Encoder | None:
    try:
        width, depth = _first(tower, _WIDTH), _first(tower, _DEPTH)
        d_ff = tower.get("intermediate_size") or tower.get("encoder_ffn_dim")
        read, positions = (_of_sound if "num_mel_bins" in tower else _of_images)(tower)
        merged = _first({**config, **tower, "usual": 2}, _MERGED)
        whole = tower.get("fullatt_block_indexes")
        window = tower.get("window_size", 0) // _side(tower.get("patch_size") or 1)
        encoder = Encoder(
            n_layers=depth,
            n_full_layers=depth if whole is None else len(whole),
            n_window_patches=window**2,
            width=width,
            d_ff=int(d_ff or tower["mlp_ratio"] * width),
            n_matrices=family.get("n_matrices", 2),
            n_read_params=int(read * width),
            n_position_params=int(positions * width),
            n_projector_params=_projector(family, config, tower, width, d_model),
            n_joined=family.get("n_joined") or merged**2,
        )
    # a key is missing, or is no number that could be one
    except (ArithmeticError, LookupError, StopIteration, TypeError, ValueError):
        return None
    counts = (depth, width, encoder.d_ff, encoder.n_read_params, encoder.n_projector_params)
    return encoder if min(counts) > 0 and encoder.n_params <= _MOST_PARAMS else None


def _projector(family: Table, config: Table, tower: Table, width: int, d_model: int) -> int:
    """Parameters of what brings a tower's tokens to the decoder's width."""
    d_out = tower.get("out_hidden_size") or d_model
    if "embed_dim" in tower:  # Qwen2-VL, whose `hidden_size` is the decoder's
        d_out = tower.get("hidden_size")
    names = {
        "width": width,
        "d_model": d_model,
        "tower": tower,
        "taps": 1 + len(tower.get("deepstack_visual_indexes") or ()),
        "n_side": tower.get("spatial_merge_size") or 2,
        "n_outer_side": config.get("spatial_merge_size") or 2,
        "d_out": d_out,
        "scale": config.get("scale_factor") or 1,
    }
    return int(value_of(family["projector"], names))


def _first(tower: Table, keys: tuple[str, ...]) -> int:
    return next(int(tower[key]) for key in keys if tower.get(key) is not None)


def _of_images(tower: Table) -> tuple[int, int]:
    """Numbers of a patch, and positions where they are learned."""
    patch, image = _side(tower["patch_size"]), _side(tower.get("image_size") or 0)
    n_channels = next((tower[key] for key in _N_CHANNELS if key in tower), 3)
    n_frames = tower.get("temporal_patch_size") or 1
    n_positions = tower.get("num_position_embeddings") or 0
    n_positions += tower.get("pos_emb_height", 0) * tower.get("pos_emb_width", 0)
    if tower.get("model_type") != "pixtral":  # which turns them
        n_positions += (image // patch) ** 2
    return n_channels * n_frames * patch**2, n_positions


def _side(size: int | list[int]) -> int:
    return size[0] if isinstance(size, list) else size


def _of_sound(tower: Table) -> tuple[int, int]:
    """Two convolutions of three frames, and positions."""
    return 3 * (tower["num_mel_bins"] + _first(tower, _WIDTH)), tower["max_source_positions"]
