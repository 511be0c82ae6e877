"""Which kernels to time: those that passes of a model are made of, over batches and lengths."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest

import numpy as np

from planner.equations.collectives import KINDS
from planner.equations.kernels import FAMILIES
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.networks import COLLECTIVES
from planner.estimates.serving.operations import Operation, PassShape
from planner.estimates.serving.passes import pass_operations
from planner.estimates.serving.rules import is_valid
from planner.specs.records.architecture import Architecture
from planner.specs.records.served_formats import ServedFormats
from planner_workshop.calibration.tables import FITTED

BATCHES = (1, 4, 16, 64, 256)
CONTEXTS = (256, 2_048, 8_192, 32_768)
"""Sequences that decode together, and the tokens that each of them has cached."""

PROMPTS = ((128, 0), (512, 0), (2_048, 0), (8_192, 0), (2_048, 6_144))
"""New tokens of a prompt that one pass reads, and those that are cached before them."""

COPIED_BYTES = tuple(4.0**power for power in range(6, 16))
"""Read and written by a copy, 4 KiB to 1 GiB [bytes]."""

SENT_BYTES = tuple(2.0**power for power in range(10, 29, 2))
"""Buffers that collectives are timed with, 1 KiB to 256 MiB [bytes]."""

CACHE = "bf16"
"""Format of the keys and values that attention reads."""

ELEMENTWISE = "elementwise"
TIMED = ("gemm", "decode_attention", "prefill_attention", "experts", "sampling", ELEMENTWISE)
"""Families that a bench may be asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCase:
    """One kernel to time.

    Args:
        family: a key of `calibration.tables.FITTED`.
        format: number format of its operands; of attention, that of the cache.
        dimensions: of the family's function, as a table of measured kernels names them.
    """

    family: str
    format: str
    dimensions: Mapping[str, float]

    @property
    def name(self) -> str:
        """`gemm bf16, m 64, n 4096, k 4096`."""
        sizes = ", ".join(
            f"{key} {value:.15g}"
            for key, value in self.dimensions.items()
            if key == "n_bytes" or not key.endswith("_bytes")
        )
        return f"{self.family} {self.format}, {sizes}"

    @property
    def work(self) -> tuple[float, float]:
        """The least that any program must do: FLOP, bytes."""
        flop, traffic = FITTED[self.family].work(**self.dimensions)
        return float(flop), float(traffic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Kernels to time, and families of the models' kernels that no bench is asked for."""

    kernels: tuple[KernelCase, ...]
    others: tuple[str, ...] = ()


def wanted_kernels(
    models: Iterable[Architecture], degrees: Sequence[int], formats: Sequence[str]
) -> Catalogue:
    """Every kernel that passes of the models run, each once, in an order that ends anywhere.

    Whatever part of it is timed is spread over families and sizes.

    Args:
        models: whose passes.
        degrees: of tensor parallelism; those that a model cannot have are left out.
        formats: of weights.
    """
    kernels: dict[str, KernelCase] = {}
    others: set[str] = set()
    for operation in _operations(models, degrees, formats):
        if operation.family in TIMED:
            kernel = _of(operation)
            kernels.setdefault(kernel.name, kernel)
        elif operation.family in FAMILIES:
            others.add(operation.family)
    for n_bytes in COPIED_BYTES:
        kernel = KernelCase(family=ELEMENTWISE, format="any", dimensions={"n_bytes": n_bytes})
        kernels.setdefault(kernel.name, kernel)
    return Catalogue(kernels=tuple(_in_turn(kernels)), others=tuple(sorted(others)))


def wanted_collectives(n_gpus: int) -> tuple[KernelCase, ...]:
    """Collectives in groups of 2, 4, … of so many GPUs, and of all, in an order that ends anywhere.

    Args:
        n_gpus: of one node, at least two.
    """
    sizes = sorted({*(2**power for power in range(1, n_gpus.bit_length())), n_gpus})
    kernels = [
        KernelCase(
            family=kind, format=CACHE, dimensions={"n_devices": float(size), "n_bytes": n_bytes}
        )
        for kind in KINDS
        for size in sizes
        for n_bytes in SENT_BYTES
    ]
    return tuple(_in_turn({one.name: one for one in kernels}))


def possible_degrees(model: Architecture, degrees: Sequence[int]) -> tuple[int, ...]:
    """The degrees of tensor parallelism that a model can be cut by."""
    formats = ServedFormats(weights=CACHE, experts=CACHE, cache=CACHE)
    table = deployments(formats=formats, n_tensor=np.asarray(degrees))
    return tuple(
        degree for degree, fits in zip(degrees, is_valid(model, table), strict=True) if fits
    )


def _operations(
    models: Iterable[Architecture], degrees: Sequence[int], formats: Sequence[str]
) -> Iterator[Operation]:
    shapes = tuple(_shapes())
    for model in models:
        for degree in possible_degrees(model, degrees):
            for number_format in formats:
                served = ServedFormats(weights=number_format, experts=number_format, cache=CACHE)
                table = deployments(formats=served, n_tensor=degree)
                for shape in shapes:
                    yield from (
                        operation
                        for operation in pass_operations(
                            model, table, shape, served, families=("experts",), n_small_kernels=0
                        )
                        if operation.family not in (*COLLECTIVES, ELEMENTWISE) and _runs(operation)
                    )


def _shapes() -> Iterator[PassShape]:
    for batch in BATCHES:
        for context in CONTEXTS:
            yield PassShape(n_decoding=float(batch), context=float(context))
    for tokens, past in PROMPTS:
        yield PassShape(n_prompts=1.0, prompt_tokens=float(tokens), past_tokens=float(past))


def _runs(operation: Operation) -> bool:
    arguments = operation.arguments
    amount = next((arguments[key] for key in ("m", "tokens", "batch") if key in arguments), 1.0)
    return bool(np.max(amount) > 0)


def _of(operation: Operation) -> KernelCase:
    family = FAMILIES[operation.family]
    named = [
        name for name in (*family.dimensions, "past_tokens", "n_up") if name in operation.arguments
    ]
    sizes = {name: float(np.max(operation.arguments[name])) for name in named}
    whole = {
        name: value if name.endswith("_bytes") else float(np.ceil(value))
        for name, value in sizes.items()
    }
    return KernelCase(
        family=operation.family,
        format="any" if operation.family == "sampling" else operation.format,
        dimensions=whole,
    )


def _in_turn(kernels: Mapping[str, KernelCase]) -> Iterator[KernelCase]:
    """One of each family and format after the other; within these in no order of size."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for name in sorted(kernels, key=lambda name: sha256(name.encode()).digest()):
        kinds.setdefault((kernels[name].family, kernels[name].format), []).append(name)
    for row in zip_longest(*(kinds[kind] for kind in sorted(kinds))):
        yield from (kernels[name] for name in row if name is not None)
