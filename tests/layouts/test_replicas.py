"""Why models without experts have no replicas inside one mesh: smaller meshes do as well.

Where the batch is cut over axes along which all weights have copies, the groups that are left
have nothing to say to each other. Each is a deployment of its own on a smaller mesh, and so
many of these, side by side, serve the same requests on the same devices.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from planner.estimates.networks import network_table
from planner.estimates.steps import Machine
from planner.layouts.geometry import LayoutTable, geometry
from planner.layouts.layer import residence
from planner.topology.meshes import mesh_table
from tests.estimates.step_times import step_times
from tests.layouts.test_conformance import DECODE, MULTI_HEAD, MULTI_QUERY, PREFILL, WEIGHT_BYTES
from tests.topology.pools import nodes

BATCHES = np.array([[2.0, 3.0, 7.0, 8.0, 64.0, 333.0, 512.0]])
ROWS = list(product((0, 1), (0, 1), (0, 1)))  # E over the axis, gathered over it, attention


def time_and_bytes(model, label, work, batches, *, axis, data):
    """Of the layouts of `ROWS` on one axis of a mesh, with copies along another."""
    cluster = nodes(1)
    meshes = mesh_table(cluster)
    stored, gathered, attention = (np.array(column) for column in zip(*ROWS, strict=True))
    layouts = LayoutTable(
        mesh=np.full(len(ROWS), meshes.label.index(label)),
        stored=stored << axis,
        gathered=gathered << axis,
        attention=attention,
        n_microbatches=np.ones(len(ROWS), np.int64),
        data=np.full(len(ROWS), data),
    )
    shape = geometry(layouts, meshes)
    machine = Machine(
        device=cluster.device, meshes=meshes, network=network_table(meshes, cluster.fabric)
    )
    time = step_times(
        model,
        machine,
        layouts,
        shape,
        work=work,
        n_sequences=batches,
        weights_formats=WEIGHT_BYTES,
    ).total_s
    held = residence(model, shape, work, n_sequences=batches, weight_bytes_per_number=WEIGHT_BYTES)
    parts = held.weight_bytes, held.kv_bytes, held.activation_bytes, held.gather_bytes
    return time, sum(np.broadcast_to(part, time.shape) for part in parts)


@pytest.mark.parametrize("model", [MULTI_HEAD, MULTI_QUERY], ids=lambda m: m.name)
@pytest.mark.parametrize("work", [PREFILL, DECODE], ids=["prefill", "decode"])
def test_two_replicas_in_a_node_are_two_deployments_of_half_of_it(model, work):
    """TP 4 twice in a node of 8, each with half of the batch; embeddings, of which each replica
    has its own, left out on both sides."""
    model = replace(model, vocab_size=0)
    together = time_and_bytes(model, "TP 8 (2×4)", work, BATCHES, axis=1, data=0b001)
    half = np.ceil(BATCHES / 2)
    apart = time_and_bytes(model, "TP 4", work, half, axis=0, data=0)
    even = (BATCHES % 2 == 0)[0]
    for inside, alone in zip(together, apart, strict=True):
        np.testing.assert_allclose(inside[:, even], alone[:, even], rtol=1e-12)
    # of an odd batch the mesh may cut fewer ways than a half of it does: then as over heads
    over_heads = np.arange(len(ROWS)) // 2 * 2
    no_worse = [
        np.logical_and.reduce(
            [
                alone[rows] <= inside * (1 + 1e-12)
                for inside, alone in zip(together, apart, strict=True)
            ]
        )
        for rows in (np.arange(len(ROWS)), over_heads)
    ]
    assert (no_worse[0] | no_worse[1]).all()
    assert not no_worse[0].all()
