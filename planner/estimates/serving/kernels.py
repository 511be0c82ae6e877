"""Operations timed by the closed forms of a device's kernels and by its network."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.kernels import FAMILIES
from planner.equations.kernels.constants import ANY
from planner.equations.kernels.families import arguments_of
from planner.errors import Problem
from planner.estimates.serving.networks import COLLECTIVES, ServingNetwork
from planner.estimates.serving.operations import INPUT_BYTES, Operation
from planner.estimates.serving.passes import Grouping
from planner.specs.files.ledger import remark
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import DeviceSpec
from planner.specs.records.kernels import EngineSpec, Kernel, KernelTable
from planner.specs.records.mixers import GroupedAttention, LatentAttention
from planner.specs.records.served_formats import NUMBER_FORMATS, STATIC

BACKEND = "--experts-backend"

UNMEASURED_ERROR = 0.3
"""Relative error of what has no closed form of its own; `assumed` [1]."""

_ARITHMETIC = {
    "int4": "bf16",
    "mxfp4": "bf16",
    "mxfp4_mxfp8": "fp8",
    "fp8_block": "fp8",
    "nvfp4": "fp4",
}
"""Formats in which weights of another are multiplied; kernels' constants are shares of these."""

_FOUR_BITS = {"fp4": "nvfp4"}
"""What kernel tables call the four-bit floats of models: each 16 of them have a scale."""

_READS_CACHE = {GroupedAttention: "decode_attention", LatentAttention: "latent_decode"}
"""The family of kernels that reads what each kind of attention caches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One operation's time, with where it comes from.

    Args:
        seconds: of one run, (N,) or a scalar [s]; of each group where there are groups.
        error: median relative error of the closed form on rows that it was not fitted to [1].
        source: of its constants.
        formula: name of the closed form.
        constants: of it.
        among: groups of deployments that are alike.
    """

    seconds: FloatArray
    error: float
    source: str
    formula: str
    constants: Mapping[str, float]
    among: Grouping | None = None


@dataclass(frozen=True)
class KernelClock:
    """A device under an engine, and its network."""

    device: DeviceSpec
    table: KernelTable
    engine: EngineSpec
    network: ServingNetwork

    @cached_property
    def families(self) -> Collection[str]:
        return frozenset(
            family for (family, _), kernel in self.table.kernels.items() if _is_fitted(kernel)
        )

    @property
    def n_small_kernels(self) -> int:
        return self.engine.n_small_kernels

    @property
    def message_share(self) -> float:
        """Share of the multiprocessors that messages take while prompts are read [1]."""
        return self.engine.message_share

    def quantises(self, number_format: str) -> bool:
        """Whether inputs need a kernel of their own; not if the product's constants have it."""
        name = number_format.removesuffix(STATIC)
        if name not in INPUT_BYTES or self._is_quantised_before(number_format):
            return False
        return (
            "quant_fraction"
            not in self.table.kernel("gemm", self.kernel_format(number_format)).constants
        )

    def _is_quantised_before(self, number_format: str) -> bool:
        """Whether the norm before a product writes its input in the product's format."""
        return self.engine.fuses_quantisation and number_format.endswith(STATIC)

    def timing(self, operation: Operation, among: Grouping | None = None) -> Timing:
        """Time of one run, with its source; of deployments that are alike to it, once."""
        representative = among.one_of_each(operation) if among and _has_form(operation) else None
        if among is None or representative is None:
            return self._timing(operation)
        return replace(self._timing(representative), among=among)

    def _timing(self, operation: Operation) -> Timing:
        if operation.family in COLLECTIVES:
            return self._collective(operation)
        if operation.family in ("send", "between"):
            return self._send(operation)
        if operation.family in ("dispatch", "combine"):
            return self._exchange(operation)
        return self._kernel(operation)

    def kernel_format(self, number_format: str) -> str:
        """What kernel tables call a format on this device.

        Experts of `mxfp4` meet activations of 8 bits where the device multiplies these two, of
        16 bits elsewhere.
        """
        name = number_format.removesuffix(STATIC)
        name = _FOUR_BITS.get(name, name)
        if name == "mxfp4":
            return "mxfp4_mxfp8" if "mxfp4" in self.device.peak_flop_per_s else name
        return name

    def peak_flop_per_s(self, number_format: str) -> float:
        """Datasheet peak of what a format is multiplied in; of 16 bits where it has no own."""
        name = number_format.removesuffix(STATIC)
        name = self.kernel_format(name)
        wanted = (_ARITHMETIC.get(name, name), name.partition("_")[0], "bf16", "fp16")
        peaks = self.device.peak_flop_per_s
        return next(peaks[one] for one in wanted if one in peaks)

    def multiplied_in(self, operation: Operation) -> str:
        """Format of an operation's arithmetic: products their own, all else 16 bits."""
        is_product = operation.family.startswith(("gemm", "grouped_gemm", "experts", "scores"))
        return operation.format if is_product else "bf16"

    def _rates(self, number_format: str) -> dict[str, float]:
        return {
            "peak_flop_per_s": self.peak_flop_per_s(number_format),
            "hbm_bytes_per_s": self.device.hbm_bytes_per_s,
        }

    def _constants(self, family: str, number_format: str) -> tuple[Kernel, dict[str, float]]:
        wanted = self.kernel_format(number_format)
        kernel = self.table.kernel(family, wanted)
        if _stands_in(kernel, wanted):
            where = f"{self.table.device} under {self.table.engine}"
            fact = f"was not measured: timed as {kernel.format}"
            remark(Problem(where=where, key=family, value=wanted, fact=fact))
        constants = dict(kernel.constants)
        if self._is_quantised_before(number_format) and "quant_fraction" in constants:
            del constants["quant_fraction"]
            plain = self.table.kernel(family, "bf16").constants
            constants["floor_s"] = min(constants["floor_s"], plain["floor_s"])
        if "prologue_k" in constants and "n_sms" not in constants and self.table.n_sms:
            constants["n_sms"] = float(self.table.n_sms)
        return kernel, constants

    def _kernel(self, operation: Operation) -> Timing:
        rates = self._rates(self.multiplied_in(operation))
        if operation.family not in FAMILIES:
            return self._plain(operation, rates)
        kernel, constants = self._constants(operation.family, operation.format)
        known = arguments_of(FAMILIES[operation.family].function)
        arguments = {name: v for name, v in operation.arguments.items() if name in known}
        seconds = FAMILIES[operation.family].seconds(arguments, rates, constants)
        runs = np.asarray(_amount(operation), dtype=float) > 0
        return Timing(
            seconds=np.where(runs, seconds, 0.0),
            error=kernel.fit.relative_error,
            source=kernel.fit.source,
            formula=operation.family,
            constants=constants,
        )

    def _plain(self, operation: Operation, rates: Mapping[str, float]) -> Timing:
        """A roofline, for what has no closed form, at the shares that decode attention attains."""
        kernel, constants = self._constants("decode_attention", "bf16")
        shares = ("floor_s", "compute_fraction", "memory_fraction")
        used = {name: constants[name] for name in shares if name in constants}
        compute = used.get("compute_fraction", 1.0) * rates["peak_flop_per_s"]
        memory = used["memory_fraction"] * rates["hbm_bytes_per_s"]
        work = operation.arguments
        least = np.maximum(work["flop"] / compute, work["n_bytes"] / memory)
        return Timing(
            seconds=np.where(least > 0, used["floor_s"] + least, 0.0),
            error=max(kernel.fit.relative_error, UNMEASURED_ERROR),
            source=f"shares of decode attention: {kernel.fit.source}",
            formula="roofline",
            constants=used,
        )

    def _collective(self, operation: Operation) -> Timing:
        arguments = operation.arguments
        kind = operation.family
        measured = self.network.measured.get(kind)
        return Timing(
            seconds=self.network.collective_s(kind, arguments["n_bytes"], arguments["n_devices"]),
            error=self.network.measured_error if measured else self.network.error,
            source="measured collectives" if measured else "links of the topology",
            formula="two regimes" if measured else "latency + bytes / bandwidth",
            constants={},
        )

    def _send(self, operation: Operation) -> Timing:
        is_of_stages = operation.family == "send"
        takes = self.network.hand_s if is_of_stages else self.network.between_s
        seconds = takes(**operation.arguments)
        return Timing(
            seconds=seconds,
            error=self.network.error,
            source="links of the topology",
            formula="latency + bytes / bandwidth",
            constants={},
        )

    def _exchange(self, operation: Operation) -> Timing:
        arguments = dict(operation.arguments)
        devices = np.asarray(arguments.pop("n_devices"), dtype=float)
        groups, chosen = arguments.pop("n_groups"), arguments.pop("n_active_groups")
        nodes = self.network.n_nodes(devices)
        mode = "low_latency" if arguments.pop("is_short") else "normal"
        name = f"{operation.family}_{mode}"
        kernel, constants = self._constants(name, "any")
        arguments["n_nodes"] = nodes
        if mode == "normal" and groups > 1:
            arguments["n_nodes_hit"] = nodes_hit(groups, chosen, arguments["n_active"], nodes)
        seconds = FAMILIES[name].seconds(arguments, self._rates("bf16"), constants)
        return Timing(
            seconds=np.where(devices > 1, seconds, 0.0),
            error=kernel.fit.relative_error,
            source=kernel.fit.source,
            formula=name,
            constants=constants,
        )


def unmeasured(
    table: KernelTable, families: Collection[str], number_format: str, *, asked_by: str
) -> Iterator[Problem]:
    """One problem if kernels of some families were measured, and not in a format.

    Such a format would be timed by another's kernel, which says nothing of it. Of a device whose
    kernels are all assumed any format is as good as another.

    Args:
        table: of the device under the engine.
        families: one of them has to have a kernel of the format.
        number_format: as options name it.
        asked_by: the option.
    """
    plain = number_format.removesuffix(STATIC)
    plain = _FOUR_BITS.get(plain, plain)
    measured = {
        form
        for (family, form), kernel in table.kernels.items()
        if family in families and _is_fitted(kernel)
    }
    known = measured | {"fp16"} if "bf16" in measured else measured
    if measured and plain not in known and ANY not in measured:
        fact = f"{table.engine} has no measured kernel of it on {table.device}"
        remedy = f"it has {', '.join(sorted(measured))}"
        yield Problem(where=asked_by, value=number_format, fact=fact, remedy=remedy)


def outlier_problems(number_format: str, *, asked_by: str) -> Iterator[Problem]:
    """One problem of weights whose outliers are multiplied apart, in kernels nobody measured."""
    known = NUMBER_FORMATS.get(number_format)
    if known is not None and known.outlier_fraction:
        fact = "finds outliers and adds two products, of which nobody measured a kernel"
        remedy = "`--engine roofline` counts its bytes and products, and nothing else of it"
        yield Problem(where=asked_by, value=number_format, fact=fact, remedy=remedy)


def cache_problems(model: Architecture, table: KernelTable, cache: str) -> list[Problem]:
    """What is wrong with the format of a cache: no attention of the model was measured in it."""
    kinds = {type(layer.mixer) for layer in model.layers}
    families = [family for kind, family in _READS_CACHE.items() if kind in kinds]
    by_family = (unmeasured(table, (family,), cache, asked_by="--kv") for family in families)
    return list(dict.fromkeys(problem for problems in by_family for problem in problems))


def backend_problems(model: Architecture, table: KernelTable, experts: str) -> Iterator[Problem]:
    """Why a backend of experts that is asked for runs none of a model's.

    Args:
        experts: the format of their weights.
    """
    backend = table.experts_backend
    if backend and not model.expert_counts:
        fact = f"{model.name} has no experts"
        yield Problem(where=BACKEND, value=backend, fact=fact, remedy="leave it out")
    elif backend:
        for one in unmeasured(table, ("experts",), experts, asked_by=BACKEND):
            yield replace(one, value=backend, fact=f"was not measured in {experts}")


def nodes_hit(n_groups: int, n_chosen: int, n_active: int, n_nodes: FloatArray) -> FloatArray:
    """Nodes that a token's experts are on, where routing is limited to some groups of them (N,).

    Groups of experts lie on consecutive nodes. With more groups than nodes, a node is missed if
    all of the chosen groups are others'; with fewer, each chosen group has its experts drawn
    evenly from the nodes that it spans.
    """
    nodes = np.asarray(n_nodes, dtype=float)
    per_node = np.maximum(n_groups / nodes, 1.0)
    missed = np.ones_like(nodes)
    for place in range(n_chosen):
        missed = missed * np.maximum(n_groups - per_node - place, 0.0) / (n_groups - place)
    spans = np.maximum(nodes / n_groups, 1.0)
    within = spans * (1.0 - (1.0 - 1.0 / spans) ** (n_active / n_chosen))
    return np.where(nodes > n_groups, n_chosen * within, nodes * (1.0 - missed))


def _stands_in(kernel: Kernel, wanted: str) -> bool:
    """Whether a kernel was measured in another format than was wanted; scales apart."""
    wants_one = wanted not in (ANY, "fp16") and kernel.format != ANY
    is_another = kernel.format.partition("_")[0] != wanted.partition("_")[0]
    return wants_one and is_another and _is_fitted(kernel)


def _is_fitted(kernel: Kernel) -> bool:
    return kernel.fit.n_rows > 0


def _has_form(operation: Operation) -> bool:
    """Whether the time is one of the arguments alone, and not of what is moved and computed."""
    return operation.family in FAMILIES or operation.family in COLLECTIVES


def _amount(operation: Operation) -> ArrayLike:
    """What there is none of where an operation does not run."""
    arguments = operation.arguments
    amount: ArrayLike = next(
        arguments[key] for key in ("m", "tokens", "batch", "n_bytes") if key in arguments
    )
    return amount
