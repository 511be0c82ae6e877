"""What a layout cannot deal out evenly is said, with what the busiest part has."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from planner.layouts import degrees
from planner.layouts.degrees import expert_layout_name
from planner.layouts.geometry import OVER_BATCH, OVER_HEADS, LayoutTable
from planner.results.deployments import DraftChoice, PhaseChoice
from planner.runtimes.describe import axes_of, mesh_of
from planner.topology.meshes import mesh_table
from planner.verifier.layouts.meshes import mesh_of as true_mesh_of
from planner.verifier.layouts.phases import Tokens, counted, phase_plan, resting
from tests.layouts.test_conformance import MULTI_HEAD
from tests.layouts.test_expert_conformance import FEW, LATENTS
from tests.topology.pools import nodes

MESHES = mesh_table(nodes(4))


def one(label: str, **columns: int) -> LayoutTable:
    """A layout on a mesh of four nodes of eight."""
    row = {"mesh": MESHES.label.index(label), "stored": 0, "gathered": 0, "n_microbatches": 1}
    return LayoutTable(
        **{name: np.array([n]) for name, n in {**row, "attention": OVER_HEADS, **columns}.items()}
    )


def of(model, layout: LayoutTable, batch: int = 64) -> set[tuple[str, int, int, int, int]]:
    """Of the account, which is told the layout in words."""
    axes = (axes_of(MESHES, layout, name, 0) for name in ("data", "sliced", "gathered"))
    copied, sliced, gathered = axes
    kept = DraftChoice(
        n_drafted=0,
        attention=degrees.attention_name(layout, 0),
        storage=degrees.notation(MESHES, layout, 0),
        gathered_axes=gathered,
        copied_axes=copied,
        sliced_axes=sliced,
    )
    cluster, chosen = nodes(4), mesh_of(SimpleNamespace(meshes=MESHES), int(layout.mesh[0]))
    mesh, _ = true_mesh_of(cluster, chosen)
    rests = resting(model, cluster, mesh, ("bf16", "bf16"), kept)
    way = PhaseChoice(
        batch=batch,
        n_microbatches=1,
        attention=kept.attention,
        gathered_axes=gathered,
    )
    pass_ = counted(rests, way, Tokens(n_new=1.0, n_context=64.0, n_cached=64.0))
    found = phase_plan("decode", pass_, cluster.device).divisions
    return {(d.things, d.n_things, d.n_parts, d.n_most, d.n_copies) for d in found}


def test_what_comes_out_even_is_not_mentioned():
    """64 heads on 32 devices, 4 layers in 2 stages."""
    assert of(MULTI_HEAD, one("TP 32")) == set()
    assert of(MULTI_HEAD, one("TP 8 × PP 2")) == set()


def test_heads_that_devices_outnumber_have_copies_and_others_come_in_whole():
    """8 KV heads on 32 devices are on 4 each; of 40 query heads on 32 some device has 2."""
    model = replace(MULTI_HEAD, n_heads=40, n_heads_served=40, n_kv_heads=8)
    expected = {("query heads", 40, 32, 2, 1), ("KV heads", 8, 32, 1, 4)}
    assert of(model, one("TP 32")) == expected


def test_over_batch_only_the_devices_of_a_sequence_share_its_heads():
    """64 sequences on 32 devices: each device has whole sequences, so all their heads."""
    model = replace(MULTI_HEAD, n_heads=40, n_heads_served=40, n_kv_heads=8)
    assert of(model, one("TP 32", attention=OVER_BATCH)) == set()


def test_layers_of_the_longest_stage():
    """4 layers in 3 stages: two in one of them."""
    assert of(MULTI_HEAD, one("TP 8 × PP 3")) == {("layers", 4, 3, 2, 1)}


def test_latents_and_experts():
    """One latent on all eight; 12 experts on 8 devices, or cut in two on four groups evenly."""
    model = replace(LATENTS, moe=replace(FEW, n_experts=12))
    latent = ("latents", 1, 8, 1, 8)
    assert of(model, one("TP 8")) == {latent, ("experts", 12, 8, 2, 1)}
    assert of(model, one("TP 8 (2×4)", sliced=0b001)) == {latent}


def test_the_name_of_a_layout_with_experts_says_every_cut():
    """2×4 devices, and 16 over two nodes."""

    def name(label: str, n_experts: int = 16, **columns: int) -> str:
        return expert_layout_name(MESHES, one(label, **columns), 0, n_experts)

    assert name("TP 8") == "TP 8, EP 8"
    assert name("TP 8 (2×4)", stored=0b001) == "TP 8 2D, EP 4"
    assert name("TP 8 (2×4)", data=0b001) == "DP 2 × TP 4, EP 8"
    assert name("TP 8 (2×4)", gathered=0b011) == "WG 8, EP 8"
    assert name("TP 8 (2×4)", data=0b001, gathered=0b010) == "DP 2 × WG 4, EP 8"
    assert name("TP 16 (2×4×2)", data=0b100, stored=0b001) == "DP 2 × TP 8 2D, EP 8"
    assert name("TP 16 (2×4×2)", sliced=0b001) == "TP 16, EP 8 × TP 2"
    assert name("TP 16 (2×4×2)", n_experts=8) == "TP 16, EP 8 × TP 2"
