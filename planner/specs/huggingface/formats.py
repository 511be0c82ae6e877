"""What a checkpoint holds, from `quantization_config` or the type that it was saved in.

Sources of the names: transformers, `utils/quantization_config.py`; ModelOpt, `quant_algo`;
compressed-tensors, `config_groups`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.errors import Problem
from planner.specs.files.tables import is_count, literal
from planner.specs.huggingface.excluded import ATTENTION, EXPERTS, FFNS, excluded, unread
from planner.specs.huggingface.names import ALGORITHMS, DTYPES
from planner.specs.records.served_formats import STATIC, Checkpoint

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


Read = tuple[Quantised | None, list[Problem]]
Named = tuple[str | None, list[Problem]]


def format_of_dtype(word: object, shown: str, key: str) -> Named:
    """The format of a `dtype`; None where there is none."""
    if word is None:
        return None, []
    name = str(word).removeprefix("torch.")
    if name in DTYPES:
        return DTYPES[name], []
    remedy = f"known are {', '.join(DTYPES)}"
    fact = "is no type of weights that is understood"
    return None, [Problem(where=shown, key=key, value=name, fact=fact, remedy=remedy)]


def quantised(table: object, shown: str, key: str, *, n_layers: int, has_experts: bool) -> Read:
    """What a `quantization_config` says of a checkpoint; None where it is null.

    Args:
        n_layers: of the model.
        has_experts: whether any of them routes tokens to experts.
    """
    if table is None:
        return None, []
    if not isinstance(table, dict):
        return None, [Problem(where=shown, key=key, value=str(table), fact="is not a table")]
    inner = table.get("quantization")
    table = {**table, **inner} if isinstance(inner, dict) else table
    both, problems = _parts(table, shown, key, has_experts=has_experts)
    cache, more = _cache(table, shown, key)
    problems += [*more, *unread(table, shown, key)]
    if both is None or problems:
        return None, problems
    dense, routed = both
    if dense == routed:  # else each was listed by itself
        parts = ATTENTION if has_experts else FFNS
        dense = None if excluded(table).has(parts, n_layers) else dense
        routed = None if excluded(table, about="experts").has(EXPERTS, n_layers) else routed
    return Quantised(weights=dense, experts=routed, cache=cache), []


Both = tuple[tuple[str | None, str | None] | None, list[Problem]]
"""Formats of the dense matrices and of the experts."""


def _parts(table: Table, shown: str, key: str, *, has_experts: bool) -> Both:
    method = str(table.get("quant_method", "")).lower()
    groups, algorithm = table.get("config_groups"), table.get("quant_algo")
    if algorithm == "MIXED_PRECISION":
        return _mixed(table, shown, key, has_experts=has_experts)
    if method in _MODELOPT or algorithm is not None:
        return _common(_modelopt(algorithm, shown, f"{key}.quant_algo"))
    if method in _COMPRESSED:
        return _compressed(groups, shown, key)
    if method == "fp8":
        return _common(_fp8(table, shown, key))
    if method in _METHODS:
        return _common((_METHODS[method], []))
    if method in _BITS_METHODS:
        return _common(_of_bits(table.get("bits", table.get("w_bit")), shown, f"{key}.bits"))
    if method == "bitsandbytes":
        return _common(("int4" if table.get("load_in_4bit") else "llm_int8", []))
    fact = "is no way of quantizing that is understood"
    known = sorted({*_METHODS, *_BITS_METHODS, *_OTHERS})
    remedy = f"known are {', '.join(known)}"
    place = f"{key}.quant_method"
    return None, [Problem(where=shown, key=place, value=method, fact=fact, remedy=remedy)]


def _common(named: Named) -> Both:
    name, problems = named
    return (None if name is None else (name, name)), problems


def _fp8(table: Table, shown: str, key: str) -> Named:
    """Scales of blocks, or of tensors; those of inputs in the checkpoint, or found on the way."""
    block = table.get("weight_block_size")
    if block is None:
        return f"fp8{STATIC}" if table.get("activation_scheme") == "static" else "fp8", []
    if isinstance(block, list) and len(block) == 2 and all(map(is_count, block)):
        return "fp8_block", []
    place, fact = f"{key}.weight_block_size", "is no block of rows and columns"
    problem = Problem(
        where=shown,
        key=place,
        value=literal(block),
        fact=fact,
        remedy="write `[128, 128]`, or leave it out",
    )
    return None, [problem]


def _modelopt(algorithm: object, shown: str, key: str) -> Named:
    if isinstance(algorithm, str) and algorithm in ALGORITHMS:
        return ALGORITHMS[algorithm], []
    remedy = f"known are {', '.join(ALGORITHMS)}"
    fact = "is no way of quantizing that is understood"
    value = "" if algorithm is None else str(algorithm)
    return None, [Problem(where=shown, key=key, value=value, fact=fact, remedy=remedy)]


def _mixed(table: Table, shown: str, key: str, *, has_experts: bool) -> Both:
    """A checkpoint in several formats, layer by layer.

    Beside experts attention is what is dense; without, FFNs are the most of it.
    """
    layers = table.get("quantized_layers")
    counted = list(_counted(layers.items() if isinstance(layers, dict) else ()))
    if not counted:
        fact = "names no layer whose format is understood"
        return None, [Problem(where=shown, key=f"{key}.quantized_layers", fact=fact)]
    # experts of a checkpoint by the method `fp8` were made anew
    usual, problems = _fp8(table, shown, key) if table.get("quant_method") == "fp8" else (None, [])
    dense = _most(name for module, name in counted if _is_dense(module, has_experts=has_experts))
    routed = _most(name for module, name in counted if "experts" in module)
    return None if problems else (dense or usual, routed), problems


def _is_dense(module: str, *, has_experts: bool) -> bool:
    return "experts" not in module and (has_experts or "mlp" in module)


def _most(names: Iterable[str]) -> str | None:
    """The commonest of some names, if there are any."""
    return next((name for name, _ in Counter(names).most_common(1)), None)


def _counted(layers: Iterable[tuple[object, object]]) -> Iterator[tuple[str, str]]:
    """Modules of layers, each with the format that it is in."""
    for module, said in layers:
        algorithm = said.get("quant_algo") if isinstance(said, dict) else None
        if isinstance(algorithm, str) and algorithm in ALGORITHMS and "lm_head" not in str(module):
            yield str(module), ALGORITHMS[algorithm]


def _compressed(groups: object, shown: str, key: str) -> Both:
    """Groups of layers, each with the names of its targets."""
    groups_found = list(groups.values()) if isinstance(groups, dict) else []
    read: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for group in groups_found:
        name, more = _group(group, shown, key)
        problems += more
        if name is not None:
            targets = group.get("targets")
            read.append((" ".join(map(str, targets)) if isinstance(targets, list) else "", name))
    if not groups_found:
        fact = "names no format of weights"
        problems = [Problem(where=shown, key=f"{key}.config_groups", fact=fact)]
    if problems:
        return None, problems
    routed = next((name for targets, name in read if "experts" in targets), read[0][1])
    dense = next((name for targets, name in read if "experts" not in targets), None)
    return (dense, routed), []


def _group(group: object, shown: str, key: str) -> Named:
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(group, dict) or not isinstance(weights, dict):
        fact = "names no format of weights"
        return None, [Problem(where=shown, key=f"{key}.config_groups", fact=fact)]
    bits, inputs = weights.get("num_bits"), group.get("input_activations")
    has_scales = isinstance(inputs, dict) and inputs.get("dynamic") in (False, "local")
    if weights.get("type") == "float" and bits == 8:
        if weights.get("strategy") == "block":
            return "fp8_block", []
        return ("fp8" + STATIC * has_scales), []
    if weights.get("type") == "float" and bits == 4:
        if weights.get("group_size") == _MICROSCALED:
            return "mxfp4", []
        return ("nvfp4" + STATIC * has_scales), []
    return _of_bits(bits, shown, f"{key}.config_groups.weights.num_bits")


def _of_bits(bits: object, shown: str, key: str) -> Named:
    if isinstance(bits, int) and bits in _BY_BITS:
        return _BY_BITS[bits], []
    value = "" if bits is None else str(bits)
    fact = "is no number of bits that is understood"
    problem = Problem(where=shown, key=key, value=value, fact=fact, remedy="it is 4 or 8")
    return None, [problem]


def _cache(table: Table, shown: str, key: str) -> Named:
    """The format that the checkpoint has scales of keys and values for; None without.

    Engines cache in it unless told otherwise (vLLM, `--kv-cache-dtype auto`).
    """
    for name in ("kv_cache_quant_algo", "kv_cache_scheme"):
        said = table.get(name)
        if said is None:
            continue
        word = said.upper() if isinstance(said, str) else _scheme(said)
        if word in _CACHES:
            return _CACHES[word], []
        fact, remedy = "is no format of a cache that is understood", "known are fp8 and int8"
        value = str(said)[:60]
        place = f"{key}.{name}"
        return None, [Problem(where=shown, key=place, value=value, fact=fact, remedy=remedy)]
    return None, []


def _scheme(said: object) -> str:
    kind, bits = (said.get("type"), said.get("num_bits")) if isinstance(said, dict) else ("", 0)
    known = {("float", 8): "FP8", ("int", 8): "INT8", ("float", 4): "NVFP4"}
    return known.get((str(kind), bits if isinstance(bits, int) else 0), "")


def together(formats: Sequence[Quantised]) -> Quantised:
    """What a config and the file beside it say: the first says what, either that it caches so."""
    caches: Iterator[str | None] = (one.cache for one in formats if one.cache is not None)
    return replace(formats[0], cache=next(caches, None))
