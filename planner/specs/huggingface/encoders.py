"""Parameters of what sees or hears beside a decoder: towers of a `config.json`, and projectors.

Matrices, patches and positions are counted, biases and norms are not: a thousandth of a tower.
Source of each shape: the class of its `model_type` in transformers 5.24.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.errors import Problem
from planner.specs.files.ledger import remark
from planner.specs.records.encoders import Encoder

Table = Mapping[str, Any]

_KEYS = ("vision_config", "audio_config")
_WIDTH = ("embed_dim", "d_model", "hidden_size")
_DEPTH = ("num_hidden_layers", "depth", "encoder_layers")
_MERGED = ("spatial_merge_size", "scale_factor", "usual")
_MOST_PARAMS = 10**12  # of a tower: one that is said to have more is a mistake
_N_CHANNELS = ("num_channels", "in_channels", "in_chans")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tower:
    """A tower of a family, and what brings its tokens to the decoder's width.

    Args:
        projector: its parameters, of both tables, the tower's width and the decoder's.
        n_matrices: of an FFN.
        n_joined: patches that become one token; as the tables say where it is 0.
    """

    projector: Callable[[Table, Table, int, int], float]
    n_matrices: int = 2
    n_joined: int = 0


def _merger(whole: Table, tower: Table, width: int, d_model: int) -> float:
    """Neighbours joined, and two matrices; again for each layer that is tapped."""
    joined = (tower.get("spatial_merge_size") or 2) ** 2 * width
    out = tower.get("out_hidden_size") or d_model
    if "embed_dim" in tower:  # Qwen2-VL, whose `hidden_size` is the decoder's
        out = tower["hidden_size"]
    return (1 + len(tower.get("deepstack_visual_indexes") or ())) * joined * (joined + out)


def _perceptron(n_joined: int) -> Callable[[Table, Table, int, int], float]:
    return lambda whole, tower, width, d_model: (n_joined * width + d_model) * d_model


def _merged(whole: Table, tower: Table, width: int, d_model: int) -> float:
    joined = (whole.get("spatial_merge_size") or 2) ** 2
    return joined * width**2 + (width + d_model) * d_model


def _linear(whole: Table, tower: Table, width: int, d_model: int) -> float:
    return width * d_model * float(whole.get("scale_factor") or 1) ** 2


def _shuffled(whole: Table, tower: Table, width: int, d_model: int) -> float:
    between, out = tower["projector_input_dim"], tower["projector_output_dim"]
    joined = (tower["intermediate_size"] + out) * between
    return float(joined + tower["vision_output_dim"] * d_model)


_QWEN = ("qwen2_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "kimi_vl", "kimi_k25")
_LLAVA = ("llava", "llava_next", "llava_onevision")
_OF_ONE_MATRIX = {"gemma3": 16, "paligemma": 1, "idefics3": 0, "qwen2_audio": 2}
_TOWERS: Mapping[str, Tower] = {
    **dict.fromkeys(_QWEN, Tower(projector=_merger)),
    "qwen2_5_vl": Tower(projector=_merger, n_matrices=3),
    **dict.fromkeys(_LLAVA, Tower(projector=_perceptron(1), n_joined=1)),
    "internvl": Tower(projector=_perceptron(4), n_joined=4),
    "mistral3": Tower(projector=_merged, n_matrices=3),
    **{name: Tower(projector=_linear, n_joined=n) for name, n in _OF_ONE_MATRIX.items()},
    "llama4": Tower(projector=_shuffled, n_joined=4),
    "voxtral": Tower(projector=_perceptron(4), n_joined=4),  # of as many frames
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
    family = _TOWERS.get(str(config.get("model_type")))
    towers = {key: config[key] for key in _KEYS if isinstance(config.get(key), dict)}
    if family is None:
        return dict.fromkeys(towers)
    return {key: _counted(family, config, one, d_model) for key, one in towers.items()}


def _counted(family: Tower, config: Table, tower: Table, d_model: int) -> Encoder | None:
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
            n_matrices=family.n_matrices,
            n_read_params=int(read * width),
            n_position_params=int(positions * width),
            n_projector_params=int(family.projector(config, tower, width, d_model)),
            n_joined=family.n_joined or merged**2,
        )
    # a key is missing, or is no number that could be one
    except (ArithmeticError, LookupError, StopIteration, TypeError, ValueError):
        return None
    counts = (depth, width, encoder.d_ff, encoder.n_read_params, encoder.n_projector_params)
    return encoder if min(counts) > 0 and encoder.n_params <= _MOST_PARAMS else None


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
