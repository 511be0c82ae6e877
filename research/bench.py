"""One model on one mesh, ready to be timed: what a row of a published table ran on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from planner.estimates.networks import network_table
from planner.estimates.steps import Machine
from planner.layouts.degrees import attention_name, layout_name, notation
from planner.layouts.geometry import ALL_AXES, Geometry, LayoutTable, Pass, geometry
from planner.layouts.layer import residence
from planner.layouts.options import all_layouts
from planner.layouts.work import Residence
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.records.devices import ModelSpec
from planner.topology.meshes import mesh_table
from tests.estimates.step_times import StepTimes, step_times

TPU_POOL = {8: "2x2x2", 16: "2x2x4", 32: "2x4x4", 64: "4x4x4"}
"""Slices by their chips; the paper gives no shapes, these are the most compact ones."""

Physics = Callable[[Machine], Machine]
"""Another network or other constants for the same machine."""


def as_loaded(machine: Machine) -> Machine:
    """The machine as its files describe it."""
    return machine


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bench:
    """A model, a machine of one mesh, and layouts on it."""

    model: ModelSpec
    machine: Machine
    layouts: LayoutTable
    shape: Geometry

    def only(self, chosen: np.ndarray) -> Bench:
        """The same with some of the layouts."""
        layouts = self.layouts.take(np.flatnonzero(chosen))
        return with_layouts(self.model, self.machine, layouts)

    def times(self, step: Step, physics: Physics = as_loaded) -> StepTimes:
        """A pass under every layout, (N, 1)."""
        return step_times(
            self.model,
            physics(self.machine),
            self.layouts,
            self.shape,
            work=step.work,
            n_sequences=np.array([step.n_sequences]),
            weights_formats=np.array(step.bytes_per_weight),
        )

    def held(self, step: Step) -> Residence:
        """Memory of the busiest device under every layout, (N, 1)."""
        return residence(
            self.model,
            self.shape,
            step.work,
            n_sequences=np.array([[float(step.n_sequences)]]),
            weight_bytes_per_number=np.array([[step.bytes_per_weight]]),
        )

    def held_bytes(self, step: Step) -> np.ndarray:
        """The sum of all that is held, (N,) [bytes]."""
        held = self.held(step)
        parts = (held.weight_bytes, held.kv_bytes, held.activation_bytes, held.gather_bytes)
        return np.broadcast_to(sum(parts), (len(self.layouts), 1))[:, 0]

    def name(self, row: int) -> tuple[str, str]:
        """FFN layout and attention of a layout, as the paper's tables name them."""
        ffn = layout_name(self.machine.meshes, self.layouts, row)
        return ffn, attention_name(self.layouts, row)

    def notation(self, row: int) -> str:
        return notation(self.machine.meshes, self.layouts, row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One pass of a batch."""

    n_sequences: int
    n_new_tokens: float
    n_context_tokens: float
    bytes_per_weight: float = 2.0

    @property
    def work(self) -> Pass:
        return Pass(
            n_new_tokens=self.n_new_tokens,
            n_context_tokens=self.n_context_tokens,
            n_cached_tokens=self.n_context_tokens,
        )


def prefill(n_sequences: int, n_tokens: int, bytes_per_weight: float = 2.0) -> Step:
    """The pass that reads the input."""
    return Step(
        n_sequences=n_sequences,
        n_new_tokens=n_tokens,
        n_context_tokens=n_tokens,
        bytes_per_weight=bytes_per_weight,
    )


def decode(n_sequences: int, n_context: float, bytes_per_weight: float = 2.0) -> Step:
    """A pass that writes one token."""
    return Step(
        n_sequences=n_sequences,
        n_new_tokens=1,
        n_context_tokens=n_context,
        bytes_per_weight=bytes_per_weight,
    )


def with_layouts(model: ModelSpec, machine: Machine, layouts: LayoutTable) -> Bench:
    """A bench of given layouts."""
    shape = geometry(layouts, machine.meshes)
    return Bench(model=model, machine=machine, layouts=layouts, shape=shape)


@cache
def machine_of(cluster_name: str, label: str) -> Machine:
    """One mesh of a cluster by its label, with its network."""
    cluster = load_cluster(cluster_name)
    table = mesh_table(cluster)
    mesh = table.take(np.array([table.label.index(label)]))
    return Machine(device=cluster.device, meshes=mesh, network=network_table(mesh, cluster.fabric))


@cache
def bench(model_name: str, cluster_name: str, label: str) -> Bench:
    """Every layout of a model on one mesh."""
    machine = machine_of(cluster_name, label)
    return with_layouts(load_model(model_name), machine, all_layouts(machine.meshes))


def tpu_bench(model_name: str, n_chips: int) -> Bench:
    """Every layout of a model on the compact slice of so many TPU v4 chips."""
    pool = TPU_POOL[n_chips]
    return bench(model_name, f"tpu-v4-{pool}", pool.replace("x", "×"))


@cache
def tpu_bench_of(model_name: str, n_chips: int, ffn: str, attention: str) -> Bench:
    """The layouts that a row's words leave open: which axes cut E, in `WS2D`."""
    everything = tpu_bench(model_name, n_chips)
    layouts, size = everything.layouts, everything.machine.meshes.group_size[0]
    if ffn == "WGXYZ":  # cuts the batch by itself, whatever attention says
        return everything.only(size[layouts.gathered] == size[ALL_AXES])
    assert ffn == "WS2D"
    stationary = (layouts.gathered == 0) & (size[layouts.stored] > 1)
    return everything.only(stationary & (layouts.attention == ("heads", "batch").index(attention)))
