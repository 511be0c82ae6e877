"""What contexts and columns of a deployment add up to: how each quantity follows from the facts."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import numpy as np

from planner.equations.arrays import FloatArray
from planner.programs.quantities import Coefficients, Facts, Ways
from planner.quantities import GIB, MS, USD_PER_MTOKEN
from planner.specs.records import Workload
from planner.specs.request import Request

PREFILLED = "prefilled"
"""The second row of memory: what was prefilled, beside what decode writes."""
PREFILL, DECODE, REPLICAS = 0, 1, 2
"""Slots of a deployment."""


def ways_of(request: Request, without: Collection[str]) -> Ways:
    """How all that may be limited or minimised follows, each linear in contexts and columns.

    The device time of a request is t_prefill/B_prefill + steps × t_decode/B_decode: with the
    batch fixed by the column, a ratio becomes a coefficient. With a draft, t_decode is the
    time of a round over the tokens that it yields.
    """
    rent = request.cluster.usd_per_hour
    ways: dict[str, Callable[[Facts], Coefficients]] = {
        "cost": partial(_cost, request.workload, rent),
        "decode_cost": partial(_decode_cost, request.workload, rent),
        "latency": partial(_milliseconds, slot=DECODE),
        "ttft": partial(_milliseconds, slot=PREFILL),
        "throughput": partial(_throughput, request.workload),
        "device-throughput": partial(_device_throughput, request.workload),
        "rent": lambda facts: (_devices(facts) * rent, _nothing(facts)),
        "devices": lambda facts: (_devices(facts), _nothing(facts)),
        "batch": _negative_batch,
        "memory": _memory,
        PREFILLED: _prefilled,
    }
    demand = request.targets.demand_tokens_per_s
    if demand is None:
        return ways
    if "demand" in without:
        most = None if "devices" in without else request.targets.n_devices
        return ways | {"capacity": partial(_capacity, request.workload, most)}
    return ways | {
        "cost": lambda facts: _fleet_cost(facts, rent, demand),
        "rent": lambda facts: (_no_context(facts), _fleet(facts) * rent),
        "devices": lambda facts: (_no_context(facts), _fleet(facts)),
        "demand": partial(_demand, request.workload, demand),
    }


def _nothing(facts: Facts) -> FloatArray:
    return np.zeros(len(facts.context))


def _no_context(facts: Facts) -> FloatArray:
    return np.zeros(facts.n_contexts)


def _devices(facts: Facts) -> FloatArray:
    return facts.of_context["n_devices"].astype(float)


def _token_s(facts: Facts, workload: Workload) -> FloatArray:
    """Device time of an output token that a column takes [s]."""
    of = facts.of_column
    n_passes = np.where(of["slot"] == DECODE, float(workload.n_decode_steps), 1.0)
    return np.asarray(of["pass_s"] * n_passes / of["batch"] / workload.n_output_tokens)


def _cost(workload: Workload, rent: float, facts: Facts) -> Coefficients:
    usd = _token_s(facts, workload) * (_devices(facts) * rent)[facts.context] / 3600.0
    return _no_context(facts), np.asarray(usd * USD_PER_MTOKEN)


def _decode_cost(workload: Workload, rent: float, facts: Facts) -> Coefficients:
    context, column = _cost(workload, rent, facts)
    return context, np.where(facts.of_column["slot"] == DECODE, column, 0.0)


def _milliseconds(facts: Facts, *, slot: int) -> Coefficients:
    of = facts.of_column
    return _no_context(facts), np.where(of["slot"] == slot, of["pass_s"] * MS, 0.0)


def _throughput(workload: Workload, facts: Facts) -> Coefficients:
    return _no_context(facts), _token_s(facts, workload) * MS


def _device_throughput(workload: Workload, facts: Facts) -> Coefficients:
    devices = _devices(facts)[facts.context]
    return _no_context(facts), _token_s(facts, workload) * MS * devices


def _negative_batch(facts: Facts) -> Coefficients:
    of = facts.of_column
    return _no_context(facts), np.where(of["slot"] == DECODE, -of["batch"].astype(float), 0.0)


def _memory(facts: Facts) -> Coefficients:
    return facts.of_context["weight_bytes"] * GIB, facts.of_column["held_bytes"] * GIB


def _prefilled(facts: Facts) -> Coefficients:
    return facts.of_context["weight_bytes"] * GIB, facts.of_column["prefilled_bytes"] * GIB


def _n_replicas(facts: Facts) -> FloatArray:
    of = facts.of_column
    return np.where(of["slot"] == REPLICAS, of["batch"], 0).astype(float)


def _fleet(facts: Facts) -> FloatArray:
    """Devices of all replicas: with a demand, money and devices are theirs."""
    return np.asarray(_n_replicas(facts) * facts.of_context["n_devices"][facts.context])


def _fleet_cost(facts: Facts, rent: float, demand: float) -> Coefficients:
    return _no_context(facts), _fleet(facts) * rent / 3600.0 / demand * USD_PER_MTOKEN


def _demand(workload: Workload, demand: float, facts: Facts) -> Coefficients:
    """Replicas' worth of device time that the demand takes, less those beyond the first.

    At most 1, so that its tolerance is a share of one replica.
    """
    busy = _token_s(facts, workload) * MS / MS * demand
    beyond = np.where(facts.of_column["slot"] == REPLICAS, _n_replicas(facts) - 1.0, 0.0)
    return _no_context(facts), busy - beyond


def _capacity(workload: Workload, most_devices: int | None, facts: Facts) -> Coefficients:
    """Time of a token when as many replicas as there may be work on tokens [ms].

    Its least is one over the largest demand that can be met.
    """
    most = facts.of_context["n_rooms"]
    if most_devices is not None:
        most = np.minimum(most, most_devices // facts.of_context["n_devices"])
    n_replicas = np.maximum(most, 1)[facts.context]
    return _no_context(facts), _token_s(facts, workload) * MS / n_replicas
