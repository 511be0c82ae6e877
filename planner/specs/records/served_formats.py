"""Number formats in which an engine serves a model, as asked and as they run.

Who asks names a format as models do: `fp8`. What runs is a checkpoint: one that is published in
`fp8` has a scale for each tensor or for each block of 128 × 128, or keeps attention in 16 bits.
Kernels are told apart by that: `fp8_block`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Protocol

from planner.errors import Problem
from planner.specs.validation.values import one_of

if TYPE_CHECKING:
    from planner.specs.records.kernels import EngineSpec

STATIC = "_static"
"""Ending of a format whose inputs have scales in the checkpoint, none that is found on the way:
the norm before a product quantises them, and the product needs no kernel for that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """A number format.

    Args:
        n_bytes: of one number; scales are left out where files differ in how many.
        scale_bytes: of its share of the usual scales, where they are left out.
        input_bytes: of an activation that meets such weights; 2 where it is of weights alone.
        is_of_models: models are said to be in it; else only their checkpoints are.
        main: format that all columns but those of outliers are multiplied in; empty for its own.
        outlier_fraction: share of the columns that are kept and multiplied in 16 bits.
    """

    n_bytes: float
    scale_bytes: float = 0.0
    input_bytes: float = 2.0
    is_of_models: bool = True
    main: str = ""
    outlier_fraction: float = 0.0


OUTLIERS = 1e-3
"""Of LLM.int8(): more than 99.9 % of values are multiplied in 8 bits, arXiv 2208.07339, abstract.

Whatever finds outliers in each activation, scales rows and adds both products takes time that is
not counted: in BLOOM-176B on eight A100 a token took 1.22 to 1.29 times that of bf16.
Source: Hugging Face, Incredibly Fast BLOOM Inference, benchmarks: Accelerate, int8 and bf16."""

NUMBER_FORMATS: Mapping[str, NumberFormat] = {
    "fp32": NumberFormat(n_bytes=4.0),
    "bf16": NumberFormat(n_bytes=2.0),
    "fp16": NumberFormat(n_bytes=2.0),
    "fp8": NumberFormat(n_bytes=1.0, input_bytes=1.0),
    "fp8_block": NumberFormat(
        n_bytes=1.0, scale_bytes=4.0 / 128**2, input_bytes=1.0 + 4.0 / 128, is_of_models=False
    ),
    "int8": NumberFormat(n_bytes=1.0, input_bytes=1.0),
    "llm_int8": NumberFormat(
        n_bytes=1.0 + OUTLIERS, input_bytes=1.0, main="int8", outlier_fraction=OUTLIERS
    ),
    "mxfp4": NumberFormat(n_bytes=0.5 + 1.0 / 32),
    "nvfp4": NumberFormat(n_bytes=0.5 + 1.0 / 16, input_bytes=0.5 + 1.0 / 16, is_of_models=False),
    "int4": NumberFormat(n_bytes=0.5, scale_bytes=2.0 / 128),
    "fp4": NumberFormat(n_bytes=0.5, scale_bytes=1.0 / 16, input_bytes=0.5 + 1.0 / 16),
}
"""All by name. Scales: one of 4 bytes in 128 × 128 numbers of `fp8_block`, of 1 byte in 16 of
`nvfp4`, which models call `fp4`, in 32 of `mxfp4`, of 2 bytes in 128 of `int4`."""

KNOWN_FORMATS = (*NUMBER_FORMATS, *(name + STATIC for name in ("fp8", "nvfp4")))
"""Formats that something may be served in."""

KnownFormat = Annotated[str, one_of("number format", KNOWN_FORMATS)]

RUN = tuple(name for name in KNOWN_FORMATS if name not in ("fp32", "fp4"))
"""Formats of checkpoints, as kernels tell them apart."""

RunFormat = Annotated[str, one_of("number format of a checkpoint", RUN)]

ACTIVATIONS = ("bf16", "fp16", "int8", "fp8")
"""Formats that activations may be asked to be in."""

ActivationFormat = Annotated[str, one_of("activation format", ACTIVATIONS)]

UNSERVED = ("fp32",)
"""Formats that models are published in and that nobody serves.

They are served in 16 bits: vLLM, `--dtype auto`.
"""

_WORDS = {"nvfp4": "fp4"}
"""Other words of formats than those of models."""

_SCALED = {"fp8": f"fp8{STATIC}", "fp4": f"nvfp4{STATIC}", "nvfp4": f"nvfp4{STATIC}"}
"""What formats are in checkpoints that have the scales of inputs, as ModelOpt makes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedFormats:
    """Number formats of what is held, by the words of models or those of kernel tables.

    Args:
        weights: of the dense matrices.
        experts: of routed experts.
        cache: of cached keys and values, or latents.
    """

    weights: str
    experts: str
    cache: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a model's checkpoint in a number format holds; of `RUN`.

    Args:
        format: that it is called by: one of the model's `weights_formats`.
        weights: of attention and dense FFNs.
        experts: of routed experts; of the weights where there are none.
        repository: `org/name` on Hugging Face; empty for the model's own.
        source: where that is said.
    """

    format: str
    weights: RunFormat
    experts: RunFormat
    repository: str = ""
    source: str = ""


def product_format(weights: str, activations: str) -> str | None:
    """What weights and activations are multiplied in: the wider of both.

    Where nothing is said of activations, products take them in the format of weights. None where
    both are as wide and not alike, 16 bits apart: int8 and fp8 have no product, nor has what is
    int8 but for its outliers.
    """
    plain = "int8" if NUMBER_FORMATS[weights].outlier_fraction else weights
    widths = NUMBER_FORMATS[plain].n_bytes, NUMBER_FORMATS[activations or plain].n_bytes
    if widths[0] == widths[1] < 2.0 and activations not in ("", plain):
        return None
    return activations if widths[1] > widths[0] else weights


def input_format(name: str) -> str:
    """What an engine's products with weights in a format of `KNOWN_FORMATS` take as inputs."""
    plain = name.removesuffix(STATIC)
    return plain.removesuffix("_block") if NUMBER_FORMATS[plain].input_bytes < 2.0 else "bf16"


class PublishedModel(Protocol):
    """What a model says of the formats that it is published in."""

    @property
    def name(self) -> str: ...
    @property
    def weights_formats(self) -> tuple[str, ...]: ...
    @property
    def published_weights(self) -> tuple[str, ...]: ...
    @property
    def activation_format(self) -> str: ...
    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]: ...


def checkpoint_of(model: PublishedModel, word: str) -> Checkpoint | None:
    """The checkpoint of a model that a word asks for, if one is known."""
    wanted = _WORDS.get(word, word)
    return next((one for one in model.checkpoints if one.format == wanted), None)


def as_run(model: PublishedModel, formats: ServedFormats, engine: EngineSpec) -> ServedFormats:
    """Formats of the kernels that run where formats are asked for.

    A format of which the model has a checkpoint is that checkpoint's. Others are made by the
    engine from 16 bits, with scales that are found as tokens pass; an engine that cannot needs a
    checkpoint with the scales of inputs in it. The names of kernels stand for themselves; those
    of experts find scales by themselves.
    """
    dense, routed = (checkpoint_of(model, word) for word in (formats.weights, formats.experts))
    made = _SCALED if engine.needs_input_scales else {}
    return replace(
        formats,
        weights=dense.weights if dense else made.get(formats.weights, formats.weights),
        experts=routed.experts if routed else formats.experts.removesuffix(STATIC),
    )


def unpublished(model: PublishedModel, option: str, format_name: str) -> Iterator[Problem]:
    """One problem where a format is asked for that no checkpoint of the model is known in."""
    plain = format_name.removesuffix(STATIC)
    word = {"fp8_block": "fp8", "fp16": "bf16"}.get(plain, _WORDS.get(plain, plain))
    known = checkpoint_of(model, word)
    alike = (word, plain) if known is None else (word, known.weights, known.experts)
    if word not in model.weights_formats and word != "bf16":
        fact = f"no checkpoint of {model.name} is known in it: times are those of one like others"
        yield Problem(
            where=option, value=format_name, fact=fact, remedy=_listed(model.weights_formats)
        )
    elif known is not None and format_name not in (*alike, *_WORDS, "fp16"):
        which = known.repository or model.name
        fact = f"{which} is in {known.weights}, which other kernels multiply"
        yield Problem(where=option, value=format_name, fact=fact, remedy=f"write `{word}` for it")


def _listed(formats: tuple[str, ...]) -> str:
    return f"write {' or '.join(f'`{name}`' for name in formats)}"


def as_published(model: PublishedModel) -> tuple[str, ...]:
    """Formats that weights are served in as they are published; of 16 bits where none is known."""
    served = tuple(name for name in model.published_weights if name not in UNSERVED)
    return served or (model.activation_format,)
