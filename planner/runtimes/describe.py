"""A chosen candidate as the account writes it: the columns of a program in the words of layouts."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import SupportsFloat

import numpy as np

from planner.errors import RequestError, SolverError
from planner.estimates.candidates import CandidateTable
from planner.estimates.steps import Machine
from planner.layouts import degrees
from planner.layouts.geometry import LayoutTable
from planner.programs.amounts import PREFILLED
from planner.programs.blocks import BlockProgram
from planner.programs.deployment import DECODE, PREFILL, REPLICAS
from planner.programs.layout import Assignment
from planner.quantities.table import GIB, QUANTITIES
from planner.results.deployments import Deployment, DraftChoice, LayoutChoice, Mesh, PhaseChoice
from planner.results.phase_deployments import PhaseDeployment
from planner.specs.ask.request import Request
from planner.specs.ask.targets import Targets
from planner.specs.files.ledger import recording
from planner.specs.files.reading import load_cluster
from planner.specs.records.devices import ClusterSpec, NodesFabric
from planner.topology.meshes import MeshTable
from planner.verifier.findings import Invalid
from planner.verifier.layouts.deployments import Context, layout_deployment
from planner.verifier.layouts.meshes import Handing, Opening
from planner.verifier.quantities import HBM, MEASURES
from planner.verifier.runtimes.layouts import phase_deployment

APART = ("throughput", "decode_cost", HBM)
"""What programs have of one replica, of all tokens but the first, and of each phase by itself."""


def describe(
    table: CandidateTable,
    posed: BlockProgram,
    request: Request,
    assignment: Assignment,
    ground: Context | None = None,
) -> Deployment:
    """The deployment that an assignment stands for, by the account.

    Args:
        ground: of a replica that is placed.

    Raises:
        SolverError: the arrays say otherwise, or the account refuses the choice.
    """
    columns = list(assignment.columns)
    layout, batches = table.arms.take(posed.arm[columns]), posed.batch[columns]
    phases = {
        role: _phase(table.machine.meshes, layout, slot, int(batches[slot]))
        for role, slot in (("prefill", PREFILL), ("decode", DECODE))
    }
    n_replicas, demand = posed.fleet(REPLICAS, assignment, request.targets)
    choice = _choice(table, int(posed.arm[columns[DECODE]]), phases)
    draft = _draft(table, posed, request, columns[DECODE])
    choice = replace(choice, draft=draft, n_replicas=n_replicas)
    targets = replace(request.targets, demand_tokens_per_s=demand)
    try:
        deployment, _ = layout_deployment(replace(request, targets=targets), choice, ground=ground)
    except Invalid as refused:
        raise SolverError(f"the account refuses the choice: {refused.at(())}") from None
    figures = {}
    for name, measure in MEASURES.items():
        row = QUANTITIES[name]
        is_counted = row.program in posed.quantities and row.row is None and name not in APART
        if is_counted and (measure.fields or name in deployment.further):
            searched = row.in_si(posed.amount(row.program, assignment))
            figures[name] = searched, measure.of(deployment)
    memory, facts = deployment.memory, posed.quantities.facts
    held = max(posed.amount(name, assignment) for name in ("memory", PREFILLED)) / GIB
    held += memory.reserve_bytes
    if memory.fullest == "decode":  # whose pass by itself no program has
        held = max(held, memory.used_bytes)
    figures["memory"] = held, memory.used_bytes
    figures["weights"] = facts.of_context["weight_bytes"][assignment.context], memory.weights_bytes
    agree(figures)
    return deployment


def describe_phase(
    table: CandidateTable, request: Request, role: str, arm: int, batch: int, ground: Context
) -> PhaseDeployment:
    """The replica that a candidate of one phase stands for, by the account.

    Args:
        arm: of the table.

    Raises:
        SolverError: the account refuses the choice.
    """
    layout = table.arms.take(np.array([arm]))
    phases = {role: _phase(table.machine.meshes, layout, 0, batch)}
    try:
        return phase_deployment(request, _choice(table, arm, phases), ground)[0]
    except Invalid as refused:
        raise SolverError(f"the account refuses the choice: {refused.at(())}") from None


def ground_of(machine: Machine, row: int, n_alike: int) -> Context:
    """What a replica that is placed counts on, of its mesh: links along axes, or between stages."""
    meshes = machine.meshes
    x, y, z = (bool(one) for one in meshes.axis_wraps[row])
    widths = meshes.axis_bytes_per_s[row].tolist()
    if not meshes.axis_is_switch[row].any():
        opening = Opening(closes=(x, y, z), link_bytes_per_s=(widths[0], widths[1], widths[2]))
        return Context(opening=opening, n_alike=n_alike)
    rate, hop_s = float(meshes.stage_bytes_per_s[row]), float(meshes.stage_hop_s[row])
    return Context(handing=Handing(bytes_per_s=rate, hop_s=hop_s), n_alike=n_alike)


def _choice(table: CandidateTable, arm: int, phases: dict[str, PhaseChoice]) -> LayoutChoice:
    """How an arm lays a model out, with what phases make of it."""
    meshes, layout = table.machine.meshes, table.arms.take(np.array([arm]))
    formats = table.formats[int(table.arm_formats[arm])]
    return LayoutChoice(
        mesh=mesh_of(table.machine, int(layout.mesh[0])),
        weights_format=formats.weights,
        kv_format=formats.kv,
        activation_format=formats.activations,
        storage=degrees.notation(meshes, layout, 0),
        copied_axes=axes_of(meshes, layout, "data", 0),
        sliced_axes=axes_of(meshes, layout, "sliced", 0),
        phases=phases,
    )


def _phase(meshes: MeshTable, layout: LayoutTable, row: int, batch: int) -> PhaseChoice:
    return PhaseChoice(
        batch=batch,
        n_microbatches=int(layout.n_microbatches[row]),
        attention=degrees.attention_name(layout, row),
        gathered_axes=axes_of(meshes, layout, "gathered", row),
    )


def _draft(
    table: CandidateTable, posed: BlockProgram, request: Request, column: int
) -> DraftChoice | None:
    """The draft of a decode column; None where it decodes without one."""
    variant, drafts = table.variants[int(posed.variant[column])], table.drafts
    if variant.n_drafted == 0 or request.speculation is None or drafts is None:
        return None
    arm, meshes = int(posed.arm[column]), table.machine.meshes
    row = drafts.chosen[int(table.arm_formats[arm]), int(table.arms.mesh[arm]), variant.rank]
    layout = drafts.arms.take(np.array([row]))
    return DraftChoice(
        n_drafted=variant.n_drafted,
        attention=degrees.attention_name(layout, 0),
        storage=degrees.notation(meshes, layout, 0),
        gathered_axes=axes_of(meshes, layout, "gathered", 0),
        copied_axes=axes_of(meshes, layout, "data", 0),
        sliced_axes=axes_of(meshes, layout, "sliced", 0),
    )


def axes_of(meshes: MeshTable, layout: LayoutTable, of: str, row: int) -> str:
    """Axes of a mask of a layout, by name: `gathered`, `data`, `sliced`."""
    return degrees.axes_text(meshes.group_size[layout.mesh[row]], int(getattr(layout, of)[row]))


def mesh_of(machine: Machine, row: int) -> Mesh:
    meshes = machine.meshes
    x, y, z = (int(size) for size in meshes.axis_size[row])
    wraps = tuple(bool(wrap) for wrap in meshes.axis_wraps[row])
    return Mesh(
        label=meshes.words(row),
        axes=(x, y, z),
        axes_wrap=(wraps[0], wraps[1], wraps[2]),
        is_torus=not bool(meshes.axis_is_switch[row].any()),
        n_stages=int(meshes.n_stages[row]),
        n_devices=int(meshes.n_devices[row]),
        n_positions=int(meshes.n_positions[row]),
    )


MORE_NODES = 4
"""How many sizes of a pool of nodes are tried, from as many devices as one layout takes."""


def larger_pools(
    cluster: ClusterSpec, targets: Targets, served_tokens_per_s: float
) -> Iterator[ClusterSpec]:
    """Pools of more such nodes, in proportion to the demand, by the names that patterns give."""
    assert targets.demand_tokens_per_s is not None
    fabric, name = cluster.fabric, cluster.name
    if not isinstance(fabric, NodesFabric) or not name.endswith(f"-x{fabric.n_nodes}"):
        return
    family = name.removesuffix(f"x{fabric.n_nodes}")
    times = targets.demand_tokens_per_s / served_tokens_per_s
    n_nodes = math.ceil(fabric.n_nodes * times * (1 - 1e-9))
    for n in range(max(n_nodes, fabric.n_nodes + 1), n_nodes + MORE_NODES):
        try:
            with recording():  # looked at, not used
                larger = load_cluster(f"{family}x{n}")
        except RequestError:  # a name of the user's own, or more nodes than the pattern allows
            return
        if larger.device.name == cluster.device.name:
            yield replace(larger, usd_per_hour=cluster.usd_per_hour)


TOLERANCE = 1e-9
"""Relative: another order of summation makes some 1e-13 of it."""


def agree(figures: Mapping[str, tuple[SupportsFloat, SupportsFloat]]) -> None:
    """Go on only if two sums are the same.

    Args:
        figures: of the arrays, and of the account, by name.

    Raises:
        SolverError: some differ; all of them are named.
    """
    wrong = [
        f"{name} {float(searched)!r} is {float(counted)!r}"
        for name, (searched, counted) in figures.items()
        if not math.isclose(searched, counted, rel_tol=TOLERANCE)
    ]
    if wrong:
        raise SolverError("the account disagrees with the search: " + "; ".join(wrong))
