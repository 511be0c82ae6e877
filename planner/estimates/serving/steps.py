"""Seconds of a pass: every operation by its closed form, then phases in their order.

Without overlap, operations follow each other. Two micro-batches of half the tokens hide each
other's messages in the order that DeepSeek documents:

    prefill   2 layers = max(A, combine) + max(A, dispatch) + max(M, dispatch) + max(M, combine)
              with A attention and its projections, M experts; kernels that compute leave some
              multiprocessors to the messages
    decode    2 layers = 2 [max(projections + shared expert, dispatch) + experts
                            + max(attention and output projection, combine)]
              messages take no multiprocessors

Source: deepseek-ai/profile-data, deepseek-ai/open-infra-index day 6.

Where experts have devices of their own, micro-batches go to and fro: see `pools`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.pools import to_and_fro_s
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.kernels import Timing
from planner.estimates.serving.operations import Operation, Part, PassShape
from planner.estimates.serving.passes import Grouping, grouping_of, pass_operations
from planner.specs.records.architecture import Architecture, Experts, LayerClass
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.mixers import LatentAttention, Recurrence
from planner.specs.records.served_formats import ServedFormats

OUTSIDE = "model"
"""What operations outside of all layers have as their layer."""


class Clock(Protocol):
    """What times operations: kernels of a device under an engine, and its network."""

    @property
    def engine(self) -> EngineSpec: ...
    @property
    def families(self) -> Collection[str]: ...

    @property
    def n_small_kernels(self) -> int: ...

    @property
    def message_share(self) -> float:
        """Share of multiprocessors that messages take while prompts are read."""
        ...

    def quantises(self, number_format: str) -> bool:
        """Whether inputs in a format need kernels of their own that quantise them."""
        ...

    def timing(self, operation: Operation, among: Grouping | None = None) -> Timing:
        """Time of one run on each deployment, once for those that are alike to it.

        Args:
            among: deployments that may be alike to it.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedRun:
    """An operation with the time of one run.

    Args:
        timing: of one run, of each group of deployments that are alike to it where it has groups.
        n_deployments: N.
    """

    operation: Operation
    timing: Timing
    n_deployments: int

    @property
    def run_s(self) -> FloatArray:
        """Of one run on each deployment (N,) [s]."""
        seconds, among = self.timing.seconds, self.timing.among
        return np.broadcast_to(among.spread(seconds) if among else seconds, self.n_deployments)

    @property
    def total_s(self) -> FloatArray:
        """Of all its runs in a pass, before anything is hidden."""
        return self.run_s * self.operation.n_times


def added(timed: Iterable[TimedRun], *, weighs_errors: bool = False) -> FloatArray:
    """What all runs of operations take together, (N,) or (1,) [s]; groups are spread once.

    Args:
        weighs_errors: each as often as its relative error says.
    """
    total: FloatArray = np.zeros(1)
    alike: dict[int, tuple[Grouping, FloatArray]] = {}
    for operation in timed:
        among, often = operation.timing.among, operation.operation.n_times
        often *= operation.timing.error if weighs_errors else 1.0
        spent = np.asarray(operation.timing.seconds, dtype=float) * often
        if among is None:
            total = total + spent
        else:
            before = alike.get(id(among), (among, 0.0))[1]
            alike[id(among)] = (among, before + spent)
    for among, spent in alike.values():
        total = total + among.spread(spent)
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTime:
    """Time of one pass, (N,) [s].

    Args:
        total_s: of the pass on the devices, host left out.
        hidden_s: what the operations add up to beyond that: messages behind kernels, and
            kernels behind messages.
        operations: of one micro-batch, with their times.
        n_microbatches: passes through the operations, (N,).
    """

    total_s: FloatArray
    hidden_s: FloatArray
    operations: tuple[TimedRun, ...]
    n_microbatches: FloatArray

    def of(self, row: IntArray) -> PassTime:
        """Of deployments whose passes are the same as some of these (N,)."""
        known: dict[int, Grouping] = {}

        def alike(among: Grouping | None) -> Grouping:
            group = row if among is None else among.group[row]
            first = np.arange(len(self.total_s)) if among is None else among.first
            return known.setdefault(id(among), Grouping(first=first, group=group))

        operations = tuple(
            replace(
                operation,
                timing=replace(operation.timing, among=alike(operation.timing.among)),
                n_deployments=len(row),
            )
            for operation in self.operations
        )
        return PassTime(
            total_s=self.total_s[row],
            hidden_s=self.hidden_s[row],
            operations=operations,
            n_microbatches=self.n_microbatches[row],
        )


def no_pass(table: DeploymentTable) -> PassTime:
    """Of deployments that run no such pass."""
    nothing = np.zeros(len(table))
    return PassTime(total_s=nothing, hidden_s=nothing, operations=(), n_microbatches=nothing)


def pass_time(
    model: Architecture,
    table: DeploymentTable,
    work: PassShape,
    formats: ServedFormats,
    clock: Clock,
) -> PassTime:
    """Time of one pass of every deployment; all have the same formats."""
    parts = np.where(table.overlaps, 2.0, 1.0)
    if table.has_pools:
        parts = np.minimum(table.n_microbatches, work.n_decoding)
    halved = replace(
        work,
        n_decoding=np.divide(work.n_decoding, parts),
        n_prompts=np.divide(work.n_prompts, parts),
    )
    listed = pass_operations(
        model,
        table,
        halved,
        formats,
        families=clock.families,
        n_small_kernels=clock.n_small_kernels,
        quantises=clock.quantises(formats.weights),
        whole=work,
    )
    same = grouping_of((table.n_tensor, halved.n_decoding, halved.n_prompts, halved.prompt_tokens))
    timed = tuple(
        TimedRun(
            operation=operation, timing=clock.timing(operation, same), n_deployments=len(table)
        )
        for operation in listed
    )
    outside = added(t for t in timed if t.operation.layer == OUTSIDE)
    layers = added(t for t in timed if t.operation.layer != OUTSIDE)
    plain = np.broadcast_to(parts * layers + outside, (len(table),))
    total = plain
    if table.has_pools:
        # of each further micro-batch, what is between kernels of layers is no part of the host's
        gaps_s = decode_gaps_s(model, clock.engine, np.zeros(1)) - clock.engine.decode_host_s
        total = outside + (parts - 1.0) * gaps_s
        total = total + to_and_fro_s(model, dict(_by_layer(timed)), parts)
        total = np.broadcast_to(total, (len(table),))
    elif np.any(table.overlaps):
        total = np.where(table.overlaps, _overlapped(timed, work, clock.message_share), plain)
    return PassTime(total_s=total, hidden_s=plain - total, operations=timed, n_microbatches=parts)


def _sum(values: Iterable[FloatArray]) -> FloatArray:
    return sum(values, np.zeros(1))


def _overlapped(timed: Sequence[TimedRun], work: PassShape, message_share: float) -> FloatArray:
    """Two micro-batches through all layers, and one after the other outside of them (N,)."""
    total: FloatArray = np.zeros(1)
    reads = bool(np.any(work.n_prompts))
    for layer, parts in _by_layer(timed):
        if layer == OUTSIDE:
            total = total + _sum(parts.values())
        elif not (np.any(parts.get("dispatch", 0.0)) or np.any(parts.get("combine", 0.0))):
            total = total + 2.0 * _sum(parts.values())
        elif reads:
            total = total + _prefill_phases(parts, message_share)
        else:
            total = total + _decode_phases(parts)
    return total


def _by_layer(timed: Sequence[TimedRun]) -> Iterator[tuple[str, dict[Part, FloatArray]]]:
    for layer in dict.fromkeys(t.operation.layer for t in timed):
        yield layer, _by_part([t for t in timed if t.operation.layer == layer])


def _by_part(timed: Sequence[TimedRun]) -> dict[Part, FloatArray]:
    seconds: dict[Part, FloatArray] = {}
    for one in timed:
        part = one.operation.part
        seconds[part] = seconds.get(part, np.zeros(1)) + one.total_s
    return seconds


def _of(parts: dict[Part, FloatArray], *names: Part) -> FloatArray:
    return sum((parts[name] for name in names if name in parts), np.zeros(1))


def _prefill_phases(parts: dict[Part, FloatArray], message_share: float) -> FloatArray:
    left = 1.0 - message_share
    mixing = _of(parts, "project", "attend") / left
    feeding = _of(parts, "feed", "share") / left
    there, back = _of(parts, "dispatch"), _of(parts, "combine")
    hidden = np.maximum(mixing, back) + np.maximum(mixing, there)
    hidden = hidden + np.maximum(feeding, there) + np.maximum(feeding, back)
    return hidden + 2.0 * _of(parts, "reduce")


def _decode_phases(parts: dict[Part, FloatArray]) -> FloatArray:
    ahead = np.maximum(_of(parts, "project", "share"), _of(parts, "dispatch"))
    behind = np.maximum(_of(parts, "attend"), _of(parts, "combine"))
    return 2.0 * (ahead + _of(parts, "feed", "reduce") + behind)


def decode_gaps_s(model: Architecture, engine: EngineSpec, n_sequences: FloatArray) -> FloatArray:
    """Of whole decode passes of so many sequences each, beside their kernels (N,) [s]."""
    layers = sum(layer.n_layers * layer_gap_s(layer, engine) for layer in model.layers)
    return engine.decode_host_s + layers + engine.decode_sequence_s * n_sequences


def layer_gap_s(layer: LayerClass, engine: EngineSpec) -> float:
    """Of one layer of a decode pass [s]."""
    has_norms = layer.mixer is not None and layer.mixer.has_inner_norms
    return engine.layer_gap_s + (engine.inner_norms_s if has_norms else 0.0)


def prefill_gaps_s(model: Architecture, engine: EngineSpec) -> float:
    """Of a whole pass that reads prompts, beside its kernels [s]."""
    layers = sum(layer.n_layers * prefill_gap_s(layer, engine) for layer in model.layers)
    return engine.prefill_host_s + layers


def prefill_gap_s(layer: LayerClass, engine: EngineSpec) -> float:
    """Of one layer of a pass that reads prompts [s]."""
    has_experts = isinstance(layer.ffn, Experts)
    return has_experts * engine.prefill_experts_s + _scans(layer) * engine.prefill_scans_s


def _scans(layer: LayerClass) -> bool:
    """Whether it carries a state over the prompt, or chooses what each token attends to."""
    mixer = layer.mixer
    if isinstance(mixer, LatentAttention):
        return mixer.indexer is not None and not mixer.indexer.is_shared
    return isinstance(mixer, Recurrence)
