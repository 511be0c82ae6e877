"""The array code and the scalar referee were written apart: they must say the same.

Each example draws a model, a mesh and a pass, and compares several batches and both kinds of
attention: of a dense model all 64 pairs of axis masks, of one with experts all pairs of axes along
which attention is data-parallel and of axes that cut E, or over which weights are gathered.
"""

from __future__ import annotations

import numpy as np
from hypothesis import Phase, given, settings, strategies as st

from planner.estimates.networks import network_table
from planner.estimates.phases import NumberFormats, format_costs
from planner.estimates.steps import Machine
from planner.layouts.geometry import ATTENTION_NAMES, LayoutTable, geometry
from planner.layouts.layer import residence
from planner.layouts.work import Residence
from planner.specs.records.devices import FORMAT_BYTES, ModelSpec
from planner.topology.meshes import MeshTable
from planner.verifier.scalar.memory import held_bytes
from planner.verifier.scalar.shapes import Layout, ScalarMesh
from planner.verifier.scalar.times import step_time
from tests.estimates.step_times import StepTimes, step_times
from tests.verifier.drawn import (
    BATCHES,
    DEVICES,
    KV,
    WEIGHTS,
    class_models,
    models,
    networks,
    passes,
    switched_meshes,
    torus_meshes,
)

RELATIVE = 1e-9
EXAMPLES = settings(
    max_examples=30,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # an example is big: shrinking is slow
)
MANY_EXAMPLES = settings(EXAMPLES, max_examples=40)


def as_table(mesh: ScalarMesh) -> MeshTable:
    """The same mesh, as the one row of a table."""
    return MeshTable(
        label=("drawn",),
        axis_size=np.array([mesh.axes]),
        axis_wraps=np.array([mesh.wraps]),
        axis_is_switch=np.array([[mesh.is_switch] * 3]),
        axis_bytes_per_s=np.array([mesh.axis_bytes_per_s]),
        axis_hop_s=np.array([mesh.axis_hop_s]),
        n_stages=np.array([mesh.n_stages]),
        stage_bytes_per_s=np.array([mesh.stage_bytes_per_s]),
        stage_hop_s=np.array([mesh.stage_hop_s]),
        n_devices=np.array([mesh.n_devices * mesh.n_stages]),
        n_positions=np.array([1]),
        axis_tier=np.array([mesh.tiers]),
    )


def every_layout(model: ModelSpec, n_microbatches: int) -> LayoutTable:
    """More than anyone enumerates: masks that mean the same, and copies of dense models."""
    masks = range(8)
    if model.moe:
        rests = [(stored, data) for data in masks for stored in masks if not stored & data]
        cuts = [(stored, 0, data, sliced) for stored, data in rests for sliced in (0, 1, 6)]
        apart = [(gathered, data) for data in masks for gathered in masks if not gathered & data]
        cuts += [(0, gathered, data, 2) for gathered, data in apart if gathered]
    else:
        cuts = [(stored, gathered, 0, 0) for stored in masks for gathered in masks]
        cuts += [(stored, 0, data, 0) for stored in (0, 6) for data in masks if data]
    rows = np.array([(*cut, attention) for cut in cuts for attention in (0, 1)])
    stored, gathered, data, sliced, attention = rows.T
    return LayoutTable(
        mesh=np.zeros(len(rows), np.int64),
        stored=stored,
        gathered=gathered,
        data=data,
        sliced=sliced,
        attention=attention,
        n_microbatches=np.full(len(rows), n_microbatches),
    )


def scalar_arguments(layouts: LayoutTable, row: int) -> dict[str, object]:
    return {
        "stored": int(layouts.stored[row]),
        "gathered": int(layouts.gathered[row]),
        "data": int(layouts.data[row]),
        "sliced": int(layouts.sliced[row]),
        "attention": ATTENTION_NAMES[layouts.attention[row]],
        "n_microbatches": int(layouts.n_microbatches[row]),
    }


def assert_same(arrays: StepTimes | Residence, scalars: list, shape: tuple[int, int]) -> None:
    """Every field of every case to 1e-9; names may differ in a plural."""
    for theirs in type(scalars[0]).__dataclass_fields__:
        ours = theirs if hasattr(arrays, theirs) else theirs.replace("weights", "weight")
        expected = np.array([getattr(scalar, theirs) for scalar in scalars]).reshape(shape)
        actual = np.broadcast_to(getattr(arrays, ours), shape)
        # terms of one sum, over some hundred layers: its rounding is 1e-13 of the total
        scale = np.abs(np.array([_scale(scalar) for scalar in scalars])).reshape(shape)
        wrong = np.abs(actual - expected) > RELATIVE * np.maximum(np.abs(expected), 1e-4 * scale)
        assert not wrong.any(), (
            f"{theirs}: {actual[wrong][0]} is {expected[wrong][0]} to the referee, "
            f"and {wrong.sum()} of {wrong.size}; first at {np.argwhere(wrong)[0]}"
        )


def _scale(scalar: object) -> float:
    return max(getattr(scalar, name) for name in type(scalar).__dataclass_fields__)


def times_agree(model, device, network, work, batches, formats, n_microbatches):
    (mesh, fabric), (weights, kv) = network, formats
    meshes, layouts = as_table(mesh), every_layout(model, n_microbatches)
    machine = Machine(device=device, meshes=meshes, network=network_table(meshes, fabric))
    pair = NumberFormats(weights=weights, kv=kv or model.kv_format)
    weight_bytes, kv_bytes, peak, _ = format_costs(device, [pair])
    arrays = step_times(
        model,
        machine,
        layouts,
        geometry(layouts, meshes),
        work=work,
        n_sequences=np.array(batches),
        weights_formats=weight_bytes,
        kv_formats=kv_bytes if kv else None,
        peak_flop_per_s=peak,
    )
    scalars = [
        step_time(
            Layout(
                model=model,
                mesh=mesh,
                weights_format=weights,
                kv_format=kv,
                **scalar_arguments(layouts, row),
            ),
            device,
            fabric,
            batch=batch,
            n_new_tokens=work.n_new_tokens,
            n_context_tokens=work.n_context_tokens,
        )
        for row in range(len(layouts))
        for batch in batches
    ]
    assert_same(arrays, scalars, (len(layouts), len(batches)))


def bytes_agree(model, mesh, work, batches, formats, n_microbatches):
    weights, kv = formats
    meshes, layouts = as_table(mesh), every_layout(model, n_microbatches)
    arrays = residence(
        model,
        geometry(layouts, meshes),
        work,
        n_sequences=np.array([batches], dtype=float),
        weight_bytes_per_number=np.array(FORMAT_BYTES[weights]),
        kv_bytes_per_number=np.array(FORMAT_BYTES[kv]) if kv else None,
    )
    scalars = [
        held_bytes(
            Layout(
                model=model,
                mesh=mesh,
                weights_format=weights,
                kv_format=kv,
                **scalar_arguments(layouts, row),
            ),
            batch=batch,
            n_new_tokens=work.n_new_tokens,
            n_cached_tokens=work.n_cached_tokens,
            n_found_tokens=work.n_found_tokens,
        )
        for row in range(len(layouts))
        for batch in batches
    ]
    assert_same(arrays, scalars, (len(layouts), len(batches)))


MESHES = st.one_of(torus_meshes(), switched_meshes())
DRAWN = {
    "work": passes(),
    "batches": BATCHES,
    "formats": st.tuples(WEIGHTS, KV),
    "n_microbatches": st.sampled_from([1, 2, 3, 8]),
}


@MANY_EXAMPLES
@given(model=models(with_experts=False), device=DEVICES, network=networks(), **DRAWN)
def test_the_referee_gives_every_step_of_a_dense_model_the_same_time(model, **drawn):
    times_agree(model, **drawn)


@MANY_EXAMPLES
@given(model=models(with_experts=True), device=DEVICES, network=networks(), **DRAWN)
def test_the_referee_gives_every_step_with_experts_the_same_time(model, **drawn):
    times_agree(model, **drawn)


@EXAMPLES
@given(model=models(with_experts=False), mesh=MESHES, **DRAWN)
def test_the_referee_holds_the_same_bytes_of_a_dense_model(model, **drawn):
    bytes_agree(model, **drawn)


@MANY_EXAMPLES
@given(model=models(with_experts=True), mesh=MESHES, **DRAWN)
def test_the_referee_holds_the_same_bytes_of_a_model_with_experts(model, **drawn):
    bytes_agree(model, **drawn)


@MANY_EXAMPLES
@given(model=class_models(), device=DEVICES, network=networks(), **DRAWN)
def test_the_referee_gives_every_step_of_classes_of_layers_the_same_time(model, **drawn):
    times_agree(model, **drawn)


@MANY_EXAMPLES
@given(model=class_models(), mesh=MESHES, **DRAWN)
def test_the_referee_holds_the_same_bytes_of_classes_of_layers(model, **drawn):
    bytes_agree(model, **drawn)
