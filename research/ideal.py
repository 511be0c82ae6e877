"""The paper's own formula: peaks, one flat bandwidth, max(compute, memory) + network.

It has no constant to fit; beside it one sees what calibration buys.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from planner.equations.collectives import transferred_fraction
from planner.estimates.networks import GroupRates, NetworkTable
from planner.estimates.steps import Machine
from planner.specs.files.reading import load_cluster

TPU_BYTES_PER_S = 270e9
"""[Pope2022] §4: interconnect of a TPU v4 chip, all six links."""


def papers_formula(machine: Machine) -> Machine:
    """[Pope2022] §2 and appendix A: no attainable fractions, no overhead, no latency."""
    device = replace(
        machine.device,
        compute_fraction=1.0,
        hbm_fraction=1.0,
        layer_overhead_s=0.0,
        roofline_exponent=inf,
    )
    return replace(machine, device=device, network=_flat_network(machine))


def _flat_network(machine: Machine) -> NetworkTable:
    """270 GB/s for any group of a torus; between GPUs the switches at their full rate."""
    sizes = machine.meshes.group_size
    groups = sizes > 1
    if machine.meshes.axis_is_switch.any():
        rates = _switches_at_full_rate(machine)
    else:
        rates = np.where(groups, TPU_BYTES_PER_S, inf)
    groups_s = GroupRates(
        bytes_per_s=rates,
        hop_s=np.zeros(sizes.shape),
        all_to_all_s_per_byte=transferred_fraction(sizes) / rates,
        stage_bytes_per_s=machine.meshes.stage_bytes_per_s,
        stage_hop_s=machine.meshes.stage_hop_s,
    )
    return NetworkTable(activation=groups_s, bulk=groups_s)


def _switches_at_full_rate(machine: Machine) -> np.ndarray:
    fabric = load_cluster("dgx-a100-x1").fabric
    assert fabric.scale_up_fraction == fabric.scale_out_fraction, "else the tiers scale apart"
    rates = machine.network.activation
    assert isinstance(rates, GroupRates)
    return rates.bytes_per_s / fabric.scale_up_fraction
