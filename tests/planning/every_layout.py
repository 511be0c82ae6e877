"""Small requests at random, and the best plan of each among all layouts, none left out.

Every subset of the axes of a mesh may cut E, cut experts, have copies, or gather weights; all
pairs of a prefill and a decode on weights that rest alike are looked at. What is no layout at all
stays out: weights of experts that are cut along E are not gathered, dense models have no copies.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import product
from random import Random

import numpy as np

from planner import load_model, load_topology
from planner.estimates.networks import network_table
from planner.estimates.steps import Machine, peak_of
from planner.layouts.geometry import LayoutTable, Pass, geometry
from planner.layouts.layer import residence
from planner.layouts.options import MICROBATCHES, PARTS_PER_STAGE
from planner.specs.ask.targets import Targets
from planner.specs.records.devices import FORMAT_BYTES, ClusterSpec, Workload
from planner.specs.records.models import ModelSpec
from planner.topology.meshes import MeshTable, mesh_table
from tests.estimates.step_times import step_times

POOLS = (
    *("dgx-a100-x1", "dgx-a100-x2", "dgx-a100-x3", "h100-nvl8-x1", "h100-nvl8-x2", "h20-nvl8-x1"),
    *("gb200-nvl72-x1", "mi300x-x1", "h100-pcie-x1", "tpu-v4-2x2x4", "tpu-v5e-4x4", "tpu-v4-4x4x4"),
)
DENSE = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "falcon-180b", "palm-62b")
OF_EXPERTS = ("mixtral-8x7b", "qwen3-30b-a3b", "qwen3-235b-a22b", "deepseek-v3", "gpt-oss-120b")
OBJECTIVES = ("cost", "latency", "ttft", "throughput")
NO_TARGETS = Targets()
Formats = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request of `plan`, all of whose choices are said."""

    model: ModelSpec
    cluster: ClusterSpec
    workload: Workload
    formats: tuple[tuple[str, ...], tuple[str, ...]]
    batches: tuple[tuple[int, ...], tuple[int, ...]]
    targets: Targets = NO_TARGETS
    objective: str = "cost"

    def as_arguments(self) -> dict[str, object]:
        """What `plan` is called with beside the model and the pool."""
        return {
            "workload": self.workload,
            "targets": self.targets,
            "objective": self.objective,
            "weights_formats": self.formats[0],
            "kv_formats": self.formats[1],
            "prefill_batches": self.batches[0],
            "batches": self.batches[1],
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """All pairs of a prefill and a decode that fit: what each takes, SI (P,)."""

    cost: np.ndarray
    latency: np.ndarray
    ttft: np.ndarray
    throughput: np.ndarray

    def __len__(self) -> int:
        return len(self.cost)

    def best(self, asked: Asked) -> float:
        """The least of the objective within the targets; inf where nothing is."""
        within = np.ones(len(self), dtype=np.bool_)
        for values, most in (
            (self.latency, asked.targets.tpot_s),
            (self.ttft, asked.targets.ttft_s),
            (self.cost, asked.targets.usd_per_token),
        ):
            within &= values <= (np.inf if most is None else most * (1 + 1e-12))
        return float(getattr(self, asked.objective)[within].min(initial=np.inf))


def drawn(seed: int) -> tuple[Asked, Pairs]:
    """A request, its target where some plans meet it and many do not, and all its pairs."""
    random = Random(seed)
    asked = _drawn(random)
    pairs = every_pair(asked)
    limited = random.choice(("ttft", "latency", "cost"))
    asked = replace(
        asked, objective=random.choice(OBJECTIVES[:2] if limited == "ttft" else OBJECTIVES)
    )
    if not len(pairs):
        return asked, pairs
    values = np.unique(getattr(pairs, limited))
    most = float(values[int(len(values) ** random.random()) - 1])
    name = {"ttft": "ttft_s", "latency": "tpot_s", "cost": "usd_per_token"}[limited]
    return replace(asked, targets=Targets(**{name: most})), pairs


def _drawn(random: Random) -> Asked:
    one = random.choice
    model = load_model(one(DENSE if random.random() < 0.5 else OF_EXPERTS))
    n_heads = one((8, 12, 16, 40, 64))
    n_kv_heads = n_heads if model.mla else one([n for n in (1, 2, 4, 8) if n_heads % n == 0])
    model = replace(
        model,
        n_layers=one((2, 3, 7, 12, 24, 72)),
        d_model=one((512, 1024, 2048, 5120)),
        d_ff=one((1024, 4096, 15360, 28672)),
        n_heads=n_heads,
        n_heads_served=n_heads,
        n_kv_heads=n_kv_heads,
        window=None,
        mtp=None,
        n_context_tokens=None,
    )
    if model.moe:
        n_experts = one((4, 6, 8, 9, 16, 20, 64))
        moe = replace(
            model.moe,
            n_experts=n_experts,
            n_active_experts=min(n_experts, one((1, 2, 3, 8))),
            d_expert=one((256, 1024, 2048)),
            n_dense_layers=one((0, 1)),
        )
        model = replace(model, moe=moe)
    return Asked(
        model=model,
        cluster=load_topology(one(POOLS)),
        workload=Workload(
            n_input_tokens=one((64, 512, 2048)), n_output_tokens=one((16, 256, 4096))
        ),
        formats=(model.weights_formats[-random.randint(1, 2) :], model.kv_formats[-1:]),
        batches=(
            tuple(sorted({1, *random.sample(range(2, 64), 3)})),
            tuple(sorted({*random.sample(range(1, 16), 3), *random.sample(range(16, 1024), 3)})),
        ),
    )


def every_pair(asked: Asked) -> Pairs:
    """Everything that fits, over all meshes, formats and ways in which weights may rest."""
    meshes = mesh_table(asked.cluster, max_stages=asked.model.n_layers)
    machine = Machine(
        device=asked.cluster.device,
        meshes=meshes,
        network=network_table(meshes, asked.cluster.fabric),
    )
    layouts = every_layout(meshes, asked.model)
    found = [_pairs_of(asked, machine, layouts, formats) for formats in product(*asked.formats)]
    return Pairs(
        **{f.name: np.concatenate([getattr(p, f.name) for p in found]) for f in fields(Pairs)}
    )


def every_layout(meshes: MeshTable, model: ModelSpec) -> LayoutTable:
    """Every subset of axes in every role; axes of one device have none."""
    rows = []
    for mesh in range(len(meshes)):
        used = sum(1 << axis for axis in range(3) if meshes.axis_size[mesh, axis] > 1)
        masks = [mask for mask in range(8) if not mask & ~used]
        roles = product(masks, masks, *([masks, masks] if model.moe else [[0], [0]]), (0, 1))
        most = 1 if meshes.n_stages[mesh] == 1 else PARTS_PER_STAGE * meshes.n_stages[mesh]
        parts = [n for n in MICROBATCHES if n <= most]
        for stored, gathered, data, sliced, attention in roles:
            if stored & (data | sliced) or gathered & data:
                continue
            if model.moe and stored and gathered:
                continue
            rows += [(mesh, stored, gathered, data, sliced, attention, n) for n in parts]
    names = ("mesh", "stored", "gathered", "data", "sliced", "attention", "n_microbatches")
    return LayoutTable(**dict(zip(names, np.array(rows).T, strict=True)))


def _pairs_of(asked: Asked, machine: Machine, layouts: LayoutTable, formats: Formats) -> Pairs:
    model, device, work = asked.model, machine.device, asked.workload
    room = device.hbm_bytes - device.reserve_bytes
    shape = geometry(layouts, machine.meshes)
    n_input, total = float(work.n_input_tokens), float(work.n_input_tokens + work.n_output_tokens)
    context = work.n_input_tokens + (work.n_output_tokens + 1) / 2
    passes = (
        Pass(n_new_tokens=n_input, n_context_tokens=n_input, n_cached_tokens=n_input),
        Pass(n_new_tokens=1.0, n_context_tokens=context, n_cached_tokens=total),
    )
    weight, cached = (FORMAT_BYTES[name] for name in formats)
    seconds, held = [], []
    for one, batches in zip(passes, asked.batches, strict=True):
        sequences = np.array([batches], dtype=float)
        size = (len(layouts), len(batches))
        times = step_times(
            model,
            machine,
            layouts,
            shape,
            work=one,
            n_sequences=sequences,
            weights_formats=np.array(weight),
            kv_formats=np.array(cached),
            peak_flop_per_s=np.array(peak_of(device, formats[0])),
        )
        kept = residence(
            model,
            shape,
            one,
            n_sequences=sequences,
            weight_bytes_per_number=np.array([[weight]]),
            kv_bytes_per_number=np.array([[cached]]),
        )
        working = kept.activation_bytes + kept.gather_bytes
        # of a decode batch, the input was there when the phase began
        found = n_input / one.n_cached_tokens if one is passes[1] else 0.0
        parts = (kept.weight_bytes, kept.kv_bytes, kept.kv_bytes * (1.0 - found), working)
        seconds.append(np.broadcast_to(times.total_s, size))
        held.append([np.broadcast_to(part, size) for part in parts])
    keys = np.stack([layouts.mesh, layouts.stored, layouts.data, layouts.sliced], axis=1)
    _, resting = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(resting.reshape(-1), kind="stable")
    ends = np.flatnonzero(np.diff(resting.reshape(-1)[order], append=-1)) + 1
    found = []
    for rows in np.split(order, ends[:-1]):
        found.append(
            _of_context(asked, machine, int(layouts.mesh[rows[0]]), rows, seconds, held, room)
        )
    return Pairs(
        **{f.name: np.concatenate([getattr(p, f.name) for p in found]) for f in fields(Pairs)}
    )


def _of_context(asked, machine, mesh, rows, seconds, held, room) -> Pairs:
    """Pairs of one way in which weights rest: each fits by itself, and both beside each other."""
    phases = []
    for which in (0, 1):
        weights, kv, written, working = (part[rows].ravel() for part in held[which])
        pass_s = seconds[which][rows].ravel()
        batch = np.tile(np.array(asked.batches[which], dtype=float), len(rows))
        fits = weights + kv + working <= room
        of_phase = (pass_s, batch, weights, kv, written, working)
        phases.append([values[fits] for values in of_phase])
    (prefill_s, n_prefill, weights, kv, _, working), (decode_s, n_decode, _, cache, new, _) = phases
    held_kv = np.maximum(cache[None, :], kv[:, None] + new[None, :])
    both = (weights + working)[:, None] + held_kv <= room
    work = asked.workload
    token_s = (prefill_s / n_prefill)[:, None] + ((work.n_output_tokens - 1) * decode_s / n_decode)
    token_s = token_s / work.n_output_tokens
    rent = machine.meshes.n_devices[mesh] * asked.cluster.usd_per_hour / 3600.0
    return Pairs(
        cost=(token_s * rent)[both],
        latency=np.broadcast_to(decode_s, both.shape)[both],
        ttft=np.broadcast_to(prefill_s[:, None], both.shape)[both],
        throughput=token_s[both],
    )
