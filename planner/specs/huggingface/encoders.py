"""Parameters of what sees or hears beside a decoder: towers of a `config.json`, and projectors.

Matrices, patches and positions are counted, biases and norms are not: a thousandth of a tower.
Source of each shape: the class of its `model_type` in transformers 5.24.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.errors import Problem
from planner.specs.files.ledger import remark

Table = Mapping[str, Any]

_KEYS = ("vision_config", "audio_config")
_WIDTH = ("embed_dim", "d_model", "hidden_size")
_DEPTH = ("num_hidden_layers", "depth", "encoder_layers")
_MOST_PARAMS = 10**12  # of a tower: one that is said to have more is a mistake
_N_CHANNELS = ("num_channels", "in_channels", "in_chans")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tower:
    """A tower of a family, and what brings its tokens to the decoder's width.

    Args:
        projector: its parameters, of both tables, the tower's width and the decoder's.
        n_matrices: of an FFN.
    """

    projector: Callable[[Table, Table, int, int], float]
    n_matrices: int = 2


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
_OF_ONE_MATRIX = ("gemma3", "paligemma", "idefics3", "qwen2_audio")
_TOWERS: Mapping[str, Tower] = {
    **dict.fromkeys(_QWEN, Tower(projector=_merger)),
    "qwen2_5_vl": Tower(projector=_merger, n_matrices=3),
    **dict.fromkeys(_LLAVA, Tower(projector=_perceptron(1))),
    "internvl": Tower(projector=_perceptron(4)),
    "mistral3": Tower(projector=_merged, n_matrices=3),
    **dict.fromkeys(_OF_ONE_MATRIX, Tower(projector=_linear)),
    "llama4": Tower(projector=_shuffled),
    "voxtral": Tower(projector=_perceptron(4)),  # of as many frames
}


def encoder_params(config: Table, d_model: int, shown: str) -> int:
    """Parameters of all towers whose shapes are known; it is remarked what no answer has of them.

    Args:
        shown: the file, for people.
    """
    towers = encoders_of(config, d_model)
    for key, n_params in towers.items():
        counted = "is of a shape that is not known: neither its memory nor its time is counted"
        if n_params is not None:
            millions = f"{n_params / 1e6:.4g} million parameters"
            counted = f"its {millions} are counted in memory, its time is not"
        fact = f"{counted}; tokens of images or sound are of `--input`"
        remark(Problem(where=shown, key=key, fact=fact))
    return sum(n_params or 0 for n_params in towers.values())


def encoders_of(config: Table, d_model: int) -> dict[str, int | None]:
    """Parameters of each tower with its projector, by key; None where its shape is not known.

    Args:
        config: the whole of the file.
        d_model: of the decoder.
    """
    family = _TOWERS.get(str(config.get("model_type")))
    towers = {key: config[key] for key in _KEYS if isinstance(config.get(key), dict)}
    if family is None:
        return dict.fromkeys(towers)
    return {key: _counted(family, config, one, d_model) for key, one in towers.items()}


def _counted(family: Tower, config: Table, tower: Table, d_model: int) -> int | None:
    try:
        width = _first(tower, _WIDTH)
        d_ff = tower.get("intermediate_size") or tower.get("encoder_ffn_dim")
        d_ff = d_ff or tower["mlp_ratio"] * width
        layer = width * (4 * width + family.n_matrices * d_ff)
        read = _of_sound(tower, width) if "num_mel_bins" in tower else _of_images(tower, width)
        projector = family.projector(config, tower, width, d_model)
        counted = [_first(tower, _DEPTH) * layer, read, projector]
    # a key is missing, or is no number that could be one
    except (ArithmeticError, LookupError, StopIteration, TypeError, ValueError):
        return None
    is_sound = min(counted) > 0 and sum(counted) <= _MOST_PARAMS
    return int(sum(counted)) if is_sound else None


def _first(tower: Table, keys: tuple[str, ...]) -> int:
    return next(int(tower[key]) for key in keys if tower.get(key) is not None)


def _of_images(tower: Table, width: int) -> int:
    """Patches, and positions where they are learned."""
    patch, image = _side(tower["patch_size"]), _side(tower.get("image_size") or 0)
    n_channels = next((tower[key] for key in _N_CHANNELS if key in tower), 3)
    n_frames = tower.get("temporal_patch_size") or 1
    n_positions = tower.get("num_position_embeddings") or 0
    n_positions += tower.get("pos_emb_height", 0) * tower.get("pos_emb_width", 0)
    if tower.get("model_type") != "pixtral":  # which turns them
        n_positions += (image // patch) ** 2
    return int(n_channels * n_frames * patch**2 + n_positions) * width


def _side(size: int | list[int]) -> int:
    return size[0] if isinstance(size, list) else size


def _of_sound(tower: Table, width: int) -> int:
    """Two convolutions of three frames, and positions."""
    return int(3 * (tower["num_mel_bins"] + width) + tower["max_source_positions"]) * width
