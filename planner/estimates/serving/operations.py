"""A pass as a list of operations: kernels with their shapes, messages.

Every operation names the closed form that times it and carries that form's arguments, per
device, of shape (N,) for N deployments, or scalars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.specs.records.served_formats import NUMBER_FORMATS, STATIC

Part = Literal["project", "attend", "feed", "share", "dispatch", "combine", "reduce", "model"]
"""What an operation belongs to, for the phases that overlap:

project   projections ahead of attention, norms
attend    attention itself, and the output projection
feed      the FFN or the routed experts, router included
share     shared experts
dispatch  tokens to their experts
combine   and back
reduce    all-reduces of tensor parallelism, which nothing hides
model     embedding, head, sampling, hand-over between stages
"""

INPUT_BYTES: Mapping[str, float] = {
    name: one.input_bytes for name, one in NUMBER_FORMATS.items() if one.input_bytes < 2.0
}
"""Bytes of one activation that a product reads; 2 where the format is of weights alone."""


def number_bytes(number_format: str) -> float:
    """Bytes of one stored number, its share of scales included."""
    known = NUMBER_FORMATS[number_format.removesuffix(STATIC)]
    return known.n_bytes + known.scale_bytes


def input_bytes(number_format: str) -> float:
    """Bytes of one activation that a product in a format reads."""
    return INPUT_BYTES.get(number_format.removesuffix(STATIC), 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassShape:
    """Tokens of one pass on one attention rank, each (N,) or a scalar.

    Args:
        n_decoding: sequences that decode.
        n_positions: positions that each of them scores: 1, or more with drafts.
        context: tokens that each of them has cached.
        n_prompts: prompts that are read.
        prompt_tokens: tokens of each that this pass reads.
        past_tokens: tokens of each that are cached already.
    """

    n_decoding: FloatArray | float = 0.0
    n_positions: float = 1.0
    context: FloatArray | float = 0.0
    n_prompts: FloatArray | float = 0.0
    prompt_tokens: FloatArray | float = 0.0
    past_tokens: FloatArray | float = 0.0

    @property
    def decoded_tokens(self) -> FloatArray:
        return np.multiply(self.n_decoding, self.n_positions)

    @property
    def read_tokens(self) -> FloatArray:
        return np.multiply(self.n_prompts, self.prompt_tokens)

    @property
    def n_tokens(self) -> FloatArray:
        """Tokens that every matrix sees."""
        return self.decoded_tokens + self.read_tokens

    @property
    def n_logits(self) -> FloatArray:
        """Positions whose next token is wanted."""
        return np.add(self.decoded_tokens, self.n_prompts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One kernel or message of a pass, on one device.

    Args:
        name: what reports call it: `qkv projection`.
        layer: class of layers that it belongs to, which `within` says; `model` outside of all.
        part: what it belongs to inside a layer.
        family: name of its closed form.
        format: number format of it.
        arguments: of the closed form.
        n_times: how often a pass runs it.
    """

    name: str
    part: Part
    family: str
    layer: str = ""
    format: str = "bf16"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    n_times: float = 1.0

    def within(self, layer: str, n_layers: float) -> Operation:
        """The same in each layer of a class."""
        return replace(self, layer=layer, n_times=self.n_times * n_layers)


def kernel(
    name: str,
    part: Part,
    family: str,
    number_format: str = "bf16",
    **arguments: Any,  # noqa: ANN401 as the closed form has them
) -> Operation:
    """One kernel; `arguments` are those of the closed form of its family."""
    return Operation(name=name, part=part, family=family, format=number_format, arguments=arguments)


def gemm(
    name: str, part: Part, m: ArrayLike, *, n: ArrayLike, k: ArrayLike, number_format: str
) -> Operation:
    """m tokens times a matrix of k rows and n columns."""
    ends = {"weight_bytes": number_bytes(number_format), "input_bytes": input_bytes(number_format)}
    return kernel(name, part, "gemm", number_format, m=m, n=n, k=k, **ends)


def grouped_gemm(
    name: str,
    part: Part,
    tokens: ArrayLike,
    *,
    n_hit: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    number_format: str,
    reads: bool = False,
) -> Operation:
    """Rows of tokens, each times the matrix of its group; `n_hit` matrices are read.

    Args:
        reads: the pass reads prompts; engines use another kernel for these.
    """
    family = "grouped_gemm_prefill" if reads else "grouped_gemm_decode"
    ends = {"weight_bytes": number_bytes(number_format), "input_bytes": input_bytes(number_format)}
    return kernel(
        name, part, family, number_format, tokens=tokens, n_groups_hit=n_hit, n=n, k=k, **ends
    )


def elementwise(name: str, part: Part, n_bytes: ArrayLike, *, n_kernels: ArrayLike) -> Operation:
    """Kernels that read and write numbers once each."""
    return kernel(name, part, "elementwise", n_bytes=n_bytes, n_kernels=n_kernels)


def message(
    name: str, part: Part, kind: str, *, n_bytes: ArrayLike, n_devices: ArrayLike
) -> Operation:
    """A collective over consecutive devices; `n_bytes` is the whole buffer of one device."""
    return kernel(name, part, kind, n_bytes=n_bytes, n_devices=n_devices)


def all_reduce(
    name: str, part: Part, tokens: FloatArray, d_model: int, n_devices: ArrayLike
) -> Operation:
    """Sums of what devices have of each token, in 16 bits."""
    return message(name, part, "all_reduce", n_bytes=tokens * (d_model * 2.0), n_devices=n_devices)
