"""One phase of layouts at every batch and in every number format: seconds, margins, bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.equations.tails import planned_sigmas
from planner.estimates.steps import ONE_BYTE, Formats, Machine, pass_times, peak_of, stage_work
from planner.layouts.geometry import LayoutTable, Pass, geometry
from planner.layouts.layer import residence
from planner.specs.ask.request import Request
from planner.specs.records.devices import FORMAT_BYTES, DeviceSpec, ModelSpec, Workload
from planner.specs.records.model_errors import Quantity, roofline_error
from planner.specs.records.runtimes import beyond_measured, quickness
from planner.specs.records.served_formats import ACTIVATIONS, product_format

PHASES = ("prefill", "decode")

_ACTIVATIONS = ("", *ACTIVATIONS)

AT_ONCE = 32_768
"""Layouts times batches that are evaluated together: such arrays stay in a processor's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormats:
    """Formats of a candidate's weights, KV cache and activations, by name; empty as is usual."""

    weights: str
    kv: str
    activations: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseCandidates:
    """One phase of some arms at all batches.

    Args:
        batches: batches considered, (B,).
        pass_s: time of one pass, (N, B) [s]; infinite where the phase is not offered the layout.
        kv_bytes: cache of the batch on the busiest device, (N, B) [bytes].
        written_bytes: of it, what the phase adds to what it found: in prefill all (N, B) [bytes].
        working_bytes: activations and gathered weights during a pass, (N, B) [bytes].
    """

    batches: IntArray
    pass_s: FloatArray
    kv_bytes: FloatArray
    written_bytes: FloatArray
    working_bytes: FloatArray

    def lengthened(self, factor: float | FloatArray) -> PhaseCandidates:
        """The same, every pass so many times as long, or those of each layout (N, 1)."""
        return replace(self, pass_s=self.pass_s * factor)


def passes(workload: Workload, n_diffusion_passes: float = 0.0) -> dict[str, Pass]:
    """Tokens of a pass of each phase; decode is taken at its mean context.

    Of a diffusion decoder every pass is over prompt and answer, of which all attend to all and
    nothing is kept; the first one stands for prefill. Source: LLaDA, arXiv 2502.09992 §2.4.
    """
    n_input = float(workload.n_input_tokens)
    if n_diffusion_passes:
        n = n_input + workload.n_output_tokens
        whole = Pass(n_new_tokens=n, n_context_tokens=n, n_cached_tokens=0.0, n_logits=n)
        return {"prefill": whole, "decode": replace(whole, n_times=n_diffusion_passes)}
    return {
        "prefill": Pass(n_new_tokens=n_input, n_context_tokens=n_input, n_cached_tokens=n_input),
        "decode": Pass(
            n_new_tokens=1.0,
            n_context_tokens=workload.mean_decode_context,
            n_cached_tokens=float(workload.n_cached_tokens),
            n_found_tokens=n_input,
        ),
    }


def formats_of(request: Request) -> tuple[NumberFormats, ...]:
    """Formats to choose from, whose weights and activations have a product."""
    return tuple(
        NumberFormats(weights=weights, kv=kv, activations=activations)
        for weights in request.weights_formats
        for kv in request.kv_formats
        for activations in request.activation_formats or ("",)
        if product_format(weights, activations)
    )


def format_costs(device: DeviceSpec, formats: Sequence[NumberFormats]) -> FloatArray:
    """Bytes of a weight and of a cached number, peak of the products, format of activations.

    The last is a place in `_ACTIVATIONS`; (4, formats).
    """

    def costs(it: NumberFormats) -> tuple[float, float, float, int]:
        peak = peak_of(device, product_format(it.weights, it.activations) or it.weights)
        sent = _ACTIVATIONS.index(it.activations)
        return FORMAT_BYTES[it.weights], FORMAT_BYTES[it.kv], peak, sent

    return np.array([costs(it) for it in formats]).T


def evaluate_phase(
    model: ModelSpec,
    machine: Machine,
    arms: LayoutTable,
    work: Pass,
    batches: IntArray,
    costs: FloatArray,
) -> PhaseCandidates:
    """Evaluate each layout once for all formats of weights and cache, block by block.

    Formats that cost the same are one. Arrays that stay in the cache are twice as fast.

    Args:
        costs: of the formats of each arm, see `format_costs`, (4, N).
    """
    size = (len(arms), len(batches))
    pass_s, kv_bytes, working_bytes = np.empty(size), np.empty(size), np.empty(size)
    written_bytes = np.empty(size) if work.n_found_tokens else kv_bytes
    n_sequences = batches[None, :].astype(float)
    layouts, layout = arms.distinct()
    prices, price = np.unique(costs, axis=1, return_inverse=True)
    price = price.reshape(-1)
    order = np.argsort(layout, kind="stable")
    block = max(1, AT_ONCE // len(batches))
    whole = dict.fromkeys(("weight_bytes_per_number", "kv_bytes_per_number"), ONE_BYTE)
    for start in range(0, len(layouts), block):
        rows = np.arange(start, min(start + block, len(layouts)))
        part = layouts.take(rows)
        shape = geometry(part, machine.meshes)
        first, last = np.searchsorted(layout, [start, start + len(rows)], sorter=order)
        here = order[first:last]
        for place in np.unique(costs[3, here]).tolist():
            alike, attention = here[costs[3, here] == place], model.activation_format
            own = replace(model, activation_format=_ACTIVATIONS[int(place)] or attention)
            stage = stage_work(own, machine, part, shape, work, n_sequences, attention)
            held = residence(own, shape, work, n_sequences=n_sequences, **whole)
            for which in np.flatnonzero(np.bincount(price[alike])).tolist():
                mine = alike[price[alike] == which]
                weight, cached, peak = prices[:3, which].reshape(3, 1, 1)
                inside, again = np.unique(layout[mine] - start, return_inverse=True)
                formats = Formats(weight_bytes=weight, kv_bytes=cached, peak_flop_per_s=peak)
                times = pass_times(machine, stage.take(inside), formats)
                pass_s[mine] = np.broadcast_to(times, (len(inside), len(batches)))[again]
                at = layout[mine] - start
                growing = held.kv_bytes - held.fixed_bytes
                kv_bytes[mine] = (growing * cached + held.fixed_bytes)[at]
                if work.n_found_tokens:
                    written_bytes[mine] = (held.written_bytes * cached)[at]
                gathered = held.gather_bytes * weight
                working_bytes[mine] = (held.activation_bytes + gathered)[at]
    return PhaseCandidates(
        batches=batches,
        pass_s=pass_s,
        kv_bytes=kv_bytes,
        written_bytes=written_bytes,
        working_bytes=working_bytes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """Planned over predicted time of a pass of each phase [1].

    All passes of one model on one device err alike: what they leave out is the same. So that one
    factor lengthens every prefill, another one every decode pass, those of a draft too; and a third
    one those on more devices than any that was measured.
    """

    prefill: float = 1.0
    decode: float = 1.0
    n_most_devices: int = 0
    beyond: float = 1.0

    def decode_on(self, n_devices: IntArray) -> FloatArray:
        """Of decode passes of layouts on so many devices (N,), for all batches (N, 1)."""
        beyond = np.where(n_devices > self.n_most_devices, self.beyond, 1.0)
        return np.asarray(self.decode * beyond[:, None])

    def of(self, phase: str) -> float:
        return self.prefill if phase == "prefill" else self.decode


NONE = Margins()


def margins_of(request: Request) -> Margins:
    """What holds in the share of cases that is asked for.

    Without one, what decode passes take on average, where rooflines are known to be quick. Whole
    sequences pass a diffusion decoder as prompts do.
    """
    if request.model.n_diffusion_passes:
        prefill = margins_of(replace(request, model=replace(request.model, variant=None))).prefill
        return Margins(prefill=prefill, decode=prefill)
    device, kind = request.cluster.device, request.model.kind
    n_most, beyond = beyond_measured(device.name, kind)
    if request.confidence is None:
        decode = quickness(device.name, kind)
        return Margins(decode=decode, n_most_devices=n_most, beyond=beyond)
    n_sigmas = float(planned_sigmas(request.confidence, True))
    if not n_sigmas:
        return NONE

    def upper(quantity: Quantity) -> float:
        return 1.0 + n_sigmas * (roofline_error(device, kind, quantity) or 0.0)

    return Margins(
        prefill=upper("TTFT"), decode=upper("TPOT"), n_most_devices=n_most, beyond=beyond
    )
