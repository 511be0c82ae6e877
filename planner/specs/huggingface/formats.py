"""Formats of weights, from `quantization_config` or the type that they were saved in.

Sources of the names: transformers, `utils/quantization_config.py`; ModelOpt, `quant_algo`;
compressed-tensors, `config_groups`.
"""

from __future__ import annotations

from typing import Any

from planner.errors import Problem

Table = dict[str, Any]

_DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float8_e4m3fn": "fp8",
}
_METHODS = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "mxfp4"}
_ALGORITHMS = {
    "FP8": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
    "FP8_PB_WO": "fp8",
    "NVFP4": "fp4",
    "W4A16_NVFP4": "fp4",
    "MXFP4": "mxfp4",
    "W4A16_AWQ": "int4",
    "W4A8_AWQ": "int4",
    "INT8_SQ": "int8",
}
_BY_BITS = {4: "int4", 8: "int8"}
_BITS_METHODS = ("gptq", "awq", "auto-round", "hqq")

Read = tuple[str | None, list[Problem]]


def format_of_dtype(word: object, shown: str, key: str) -> Read:
    """The format of a `dtype`; None where there is none."""
    if word is None:
        return None, []
    name = str(word).removeprefix("torch.")
    if name in _DTYPES:
        return _DTYPES[name], []
    remedy = f"known are {', '.join(_DTYPES)}"
    fact = "is no type of weights that is understood"
    return None, [Problem(where=shown, key=key, value=name, fact=fact, remedy=remedy)]


def format_of_quantization(table: object, shown: str, key: str) -> Read:
    """The format that most weights are in, by a `quantization_config`; None where it is null."""
    if table is None:
        return None, []
    if not isinstance(table, dict):
        return None, [Problem(where=shown, key=key, value=str(table), fact="is not a table")]
    method = str(table.get("quant_method", "")).lower()
    if method in _METHODS:
        return _METHODS[method], []
    if method in ("compressed-tensors", "compressed_tensors"):
        return _compressed(table, shown, key)
    if method in ("modelopt", "modelopt_fp4", "modelopt_mixed") or "quant_algo" in table:
        return _modelopt(table, shown, key)
    if method in _BITS_METHODS:
        return _of_bits(table.get("bits", table.get("w_bit")), shown, f"{key}.bits")
    if method == "bitsandbytes":
        return ("int4" if table.get("load_in_4bit") else "int8"), []
    fact = "is no way of quantizing that is understood"
    known = sorted({*_METHODS, *_BITS_METHODS, "bitsandbytes", "compressed-tensors", "modelopt"})
    remedy = f"known are {', '.join(known)}"
    place = f"{key}.quant_method"
    return None, [Problem(where=shown, key=place, value=method, fact=fact, remedy=remedy)]


def _modelopt(table: Table, shown: str, key: str) -> Read:
    inner = table.get("quantization")
    table = inner if isinstance(inner, dict) else table
    algorithm = table.get("quant_algo")
    if algorithm in _ALGORITHMS:
        return _ALGORITHMS[algorithm], []
    if algorithm == "MIXED_PRECISION":
        return _mixed(table, shown, key)
    remedy = f"known are {', '.join(_ALGORITHMS)}"
    fact = "is no way of quantizing that is understood"
    value = "" if algorithm is None else str(algorithm)
    place = f"{key}.quant_algo"
    return None, [Problem(where=shown, key=place, value=value, fact=fact, remedy=remedy)]


def _mixed(table: Table, shown: str, key: str) -> Read:
    """The format of most layers of a checkpoint in several."""
    from collections import Counter

    layers = table.get("quantized_layers")
    named = layers.values() if isinstance(layers, dict) else ()
    counts = Counter(
        _ALGORITHMS[layer["quant_algo"]]
        for layer in named
        if isinstance(layer, dict) and layer.get("quant_algo") in _ALGORITHMS
    )
    if counts:
        return counts.most_common(1)[0][0], []
    fact = "names no layer whose format is understood"
    return None, [Problem(where=shown, key=f"{key}.quantized_layers", fact=fact)]


def _compressed(table: Table, shown: str, key: str) -> Read:
    groups = table.get("config_groups")
    group = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(weights, dict):
        fact = "names no format of weights"
        return None, [Problem(where=shown, key=f"{key}.config_groups", fact=fact)]
    bits, kind = weights.get("num_bits"), weights.get("type")
    if kind == "float" and bits in (4, 8):
        return {4: "fp4", 8: "fp8"}[bits], []
    return _of_bits(bits, shown, f"{key}.config_groups.weights.num_bits")


def _of_bits(bits: object, shown: str, key: str) -> Read:
    if isinstance(bits, int) and bits in _BY_BITS:
        return _BY_BITS[bits], []
    value = "" if bits is None else str(bits)
    fact = "is no number of bits that is understood"
    problem = Problem(where=shown, key=key, value=value, fact=fact, remedy="it is 4 or 8")
    return None, [problem]
