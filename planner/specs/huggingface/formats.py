"""What a checkpoint holds, from `quantization_config` or the type that it was saved in.

Sources of the names: transformers, `utils/quantization_config.py`; ModelOpt, `quant_algo`;
compressed-tensors, `config_groups`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.errors import Problem, SpecError
from planner.specs.files.tables import is_count, literal
from planner.specs.huggingface.excluded import ATTENTION, EXPERTS, FFNS, leaves_out, unread
from planner.specs.huggingface.names import ALGORITHMS, DTYPES
from planner.specs.records.served_formats import STATIC, Checkpoint
from planner.specs.validation.problems import Problems

Table = dict[str, Any]

_METHODS = {"fbgemm_fp8": "fp8", "mxfp4": "mxfp4"}
_BY_BITS = {4: "int4", 8: "int8"}
_BITS_METHODS = ("gptq", "awq", "auto-round", "hqq")
_COMPRESSED = ("compressed-tensors", "compressed_tensors")
_MODELOPT = ("modelopt", "modelopt_fp4", "modelopt_mixed")

_OTHERS = ("bitsandbytes", "compressed-tensors", "fp8", "modelopt")

_CACHES = {"FP8": "fp8", "FP8_E4M3": "fp8", "INT8": "int8", "NVFP4": "fp4"}
"""`kv_cache_quant_algo` of ModelOpt; `kv_cache_scheme` where it is text."""

_WORDS = {"fp8_block": "fp8", "nvfp4": "fp4"}
"""What models call the formats of checkpoints."""

_MICROSCALED = 32
"""Numbers that share a scale in the formats of OCP, `mxfp4`; 16 do in `nvfp4`."""


_NO_WAY = "is no way of quantizing that is understood"
_NAMELESS = "names no format of weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantised:
    """What most of a checkpoint's numbers are in, as kernels tell formats apart.

    Args:
        weights: of attention and dense FFNs; None where they are left as they were.
        experts: of routed experts, likewise.
        cache: that keys and values have scales for; None if it has none.
    """

    weights: str | None
    experts: str | None
    cache: str | None = None

    def checkpoint(self, *, sixteen: str, has_experts: bool, source: str) -> Checkpoint:
        """The record, of experts where there are some."""
        weights = self.weights or sixteen
        experts = (self.experts or sixteen).removesuffix(STATIC) if has_experts else weights
        named = (experts if has_experts else weights).removesuffix(STATIC)
        if named == sixteen:
            named = weights.removesuffix(STATIC)
        return Checkpoint(
            format=_WORDS.get(named, named),
            weights=weights,
            experts=experts.removesuffix(STATIC),
            source=source,
        )


Both = tuple[str | None, str | None]
"""Formats of the dense matrices and of the experts."""

Place = tuple[str, str]
"""The file as the user knows it, and the key of the table in it."""


def _refused(at: Place, key: str, fact: str, value: object = None, remedy: str = "") -> SpecError:
    """What is wrong at a key of a table, which says it as it is; of None nothing is shown."""
    place, said = f"{at[1]}.{key}", "" if value is None else str(value)
    return SpecError([Problem(where=at[0], key=place, value=said, fact=fact, remedy=remedy)])


def format_of_dtype(word: object, shown: str) -> str | None:
    """The format of a `dtype`; None where there is none.

    Raises:
        SpecError: it is no type that is understood.
    """
    name = "" if word is None else str(word).removeprefix("torch.")
    if word is not None and name not in DTYPES:
        fact, remedy = "is no type of weights that is understood", f"known are {', '.join(DTYPES)}"
        raise SpecError([Problem(where=shown, key="dtype", value=name, fact=fact, remedy=remedy)])
    return DTYPES.get(name)


def quantised(
    table: object, shown: str, key: str, *, n_layers: int, has_experts: bool
) -> Quantised | None:
    """What a `quantization_config` says of a checkpoint; None where it is null.

    Args:
        n_layers: of the model.
        has_experts: whether any of them routes tokens to experts.

    Raises:
        SpecError: it says what is not understood; all of it is listed.
    """
    if table is None:
        return None
    if not isinstance(table, dict):
        raise SpecError([Problem(where=shown, key=key, value=str(table), fact="is not a table")])
    inner = table.get("quantization")
    table = {**table, **inner} if isinstance(inner, dict) else table
    wrong, at = Problems(), (shown, key)
    both = wrong.collect(lambda: _parts(table, at, has_experts=has_experts))
    cache = wrong.collect(lambda: _cache(table, at))
    wrong.problems += unread(table, shown, key)
    wrong.settle()
    assert both is not None  # or something is wrong with the table
    dense, routed = both
    if dense == routed:  # else each was listed by itself
        parts = ATTENTION if has_experts else FFNS
        dense = None if leaves_out(table, parts, n_layers) else dense
        routed = None if leaves_out(table, EXPERTS, n_layers, about="experts") else routed
    return Quantised(weights=dense, experts=routed, cache=cache)


def _parts(table: Table, at: Place, *, has_experts: bool) -> Both:
    method = str(table.get("quant_method", "")).lower()
    algorithm = table.get("quant_algo")
    if algorithm == "MIXED_PRECISION":
        return _mixed(table, at, has_experts=has_experts)
    if method in _COMPRESSED and algorithm is None:
        return _compressed(table.get("config_groups"), at)
    common = _common(table, at, method)
    return common, common


def _common(table: Table, at: Place, method: str) -> str:
    """The format of all matrices that are quantised."""
    algorithm = table.get("quant_algo")
    if method in _MODELOPT or algorithm is not None:
        return _modelopt(algorithm, at)
    if method == "fp8":
        return _fp8(table, at)
    if method in _METHODS:
        return _METHODS[method]
    if method in _BITS_METHODS:
        return _of_bits(table.get("bits", table.get("w_bit")), at, "bits")
    if method == "bitsandbytes":
        return "int4" if table.get("load_in_4bit") else "llm_int8"
    known = ", ".join(sorted({*_METHODS, *_BITS_METHODS, *_OTHERS}))
    raise _refused(at, "quant_method", _NO_WAY, method, f"known are {known}")


def _fp8(table: Table, at: Place) -> str:
    """Scales of blocks, or of tensors; those of inputs in the checkpoint, or found on the way."""
    block = table.get("weight_block_size")
    if block is None:
        return f"fp8{STATIC}" if table.get("activation_scheme") == "static" else "fp8"
    if isinstance(block, list) and len(block) == 2 and all(map(is_count, block)):
        return "fp8_block"
    fact, remedy = "is no block of rows and columns", "write `[128, 128]`, or leave it out"
    raise _refused(at, "weight_block_size", fact, literal(block), remedy)


def _modelopt(algorithm: object, at: Place) -> str:
    if isinstance(algorithm, str) and algorithm in ALGORITHMS:
        return ALGORITHMS[algorithm]
    raise _refused(at, "quant_algo", _NO_WAY, algorithm, f"known are {', '.join(ALGORITHMS)}")


def _mixed(table: Table, at: Place, *, has_experts: bool) -> Both:
    """A checkpoint in several formats, layer by layer.

    Beside experts attention is what is dense; without, FFNs are the most of it.
    """
    layers = table.get("quantized_layers")
    counted = list(_counted(layers.items() if isinstance(layers, dict) else ()))
    if not counted:
        raise _refused(at, "quantized_layers", "names no layer whose format is understood")
    # experts of a checkpoint by the method `fp8` were made anew
    usual = _fp8(table, at) if table.get("quant_method") == "fp8" else None
    routed = [name for module, name in counted if "experts" in module]
    dense = [
        name
        for module, name in counted
        if "experts" not in module and (has_experts or "mlp" in module)
    ]
    return _most(dense) or usual, _most(routed)


def _most(names: Iterable[str]) -> str | None:
    """The commonest of some names, if there are any."""
    return next((name for name, _ in Counter(names).most_common(1)), None)


def _counted(layers: Iterable[tuple[object, object]]) -> Iterator[tuple[str, str]]:
    """Modules of layers, each with the format that it is in."""
    for module, said in layers:
        algorithm = said.get("quant_algo") if isinstance(said, dict) else None
        if isinstance(algorithm, str) and algorithm in ALGORITHMS and "lm_head" not in str(module):
            yield str(module), ALGORITHMS[algorithm]


def _compressed(groups: object, at: Place) -> Both:
    """Groups of layers, each with the names of its targets."""
    if not isinstance(groups, dict) or not groups:
        raise _refused(at, "config_groups", _NAMELESS)
    wrong = Problems()
    read = wrong.each(lambda group: (_targets(group), _group(group, at)), groups.values())
    wrong.settle()
    routed = next((name for targets, name in read if "experts" in targets), read[0][1])
    return next((name for targets, name in read if "experts" not in targets), None), routed


def _targets(group: object) -> str:
    targets = group.get("targets") if isinstance(group, dict) else None
    return " ".join(map(str, targets)) if isinstance(targets, list) else ""


def _group(group: object, at: Place) -> str:
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(group, dict) or not isinstance(weights, dict):
        raise _refused(at, "config_groups", _NAMELESS)
    bits, inputs = weights.get("num_bits"), group.get("input_activations")
    has_scales = isinstance(inputs, dict) and inputs.get("dynamic") in (False, "local")
    if weights.get("type") == "float" and bits == 8:
        is_of_blocks = weights.get("strategy") == "block"
        return "fp8_block" if is_of_blocks else "fp8" + STATIC * has_scales
    if weights.get("type") == "float" and bits == 4:
        is_micro = weights.get("group_size") == _MICROSCALED
        return "mxfp4" if is_micro else "nvfp4" + STATIC * has_scales
    return _of_bits(bits, at, "config_groups.weights.num_bits")


def _of_bits(bits: object, at: Place, key: str) -> str:
    if isinstance(bits, int) and bits in _BY_BITS:
        return _BY_BITS[bits]
    raise _refused(at, key, "is no number of bits that is understood", bits, "it is 4 or 8")


def _cache(table: Table, at: Place) -> str | None:
    """The format that the checkpoint has scales of keys and values for; None without.

    Engines cache in it unless told otherwise (vLLM, `--kv-cache-dtype auto`).
    """
    keys = ("kv_cache_quant_algo", "kv_cache_scheme")
    key = next((key for key in keys if table.get(key) is not None), "")
    if not key:
        return None
    said = table[key]
    word = said.upper() if isinstance(said, str) else _scheme(said)
    if word in _CACHES:
        return _CACHES[word]
    fact, remedy = "is no format of a cache that is understood", "known are fp8 and int8"
    raise _refused(at, key, fact, str(said)[:60], remedy)


def _scheme(said: object) -> str:
    kind, bits = (said.get("type"), said.get("num_bits")) if isinstance(said, dict) else ("", 0)
    known = {("float", 8): "FP8", ("int", 8): "INT8", ("float", 4): "NVFP4"}
    return known.get((str(kind), bits if isinstance(bits, int) else 0), "")


def together(formats: Sequence[Quantised]) -> Quantised:
    """What a config and the file beside it say: the first says what, either that it caches so."""
    return replace(formats[0], cache=next((it.cache for it in formats if it.cache), None))
