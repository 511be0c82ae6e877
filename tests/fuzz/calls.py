"""Calls of the library with arguments that nobody should pass, and with records altered."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import networkx as nx
import numpy as np

import planner
from planner.errors import PlannerError
from planner.specs.validation.hints import hints_of
from tests.fuzz.files import ROOT


def _heard(*said: object) -> None:
    """Called with anything."""


WRONG: tuple[object, ...] = (
    *(None, True, False, 0, -1, 1, 2.5, -0.0, 10**9, 10**400, -(10**30), 1e400, 1e-300, math.nan),
    *(
        -math.inf,
        "",
        "x",
        "cost",
        b"x",
        "\udcff",
        [],
        [None],
        ["bf16", 3],
        (),
        {},
        {"a": 1},
        {1, 2},
    ),
    *(object(), int, print, 1j, Fraction(1, 3), np.int64(3), np.float32(0.5), np.float64("nan")),
    *(np.array([1, 2]), np.array([[1.5]]), np.array(["a"]), np.bool_(True), range(3), iter([1])),
    *(range(10**12), [[[]]], nx.Graph(), nx.path_graph(3), Ellipsis, NotImplemented, _heard),
)


@cache
def good() -> dict[str, tuple[Callable[..., object], dict[str, Any]]]:
    """Calls that answer: of each function of the library, its arguments."""
    model, larger = planner.load_model("llama-3.1-8b"), planner.load_model("llama-3.1-70b")
    pool, torus = planner.load_cluster("h100-nvl8-x1"), planner.load_cluster("tpu-v4-2x2x2")
    layered = planner.load_architecture("llama-3.1-8b")
    few = {"batches": (1, 8), "workload": planner.Workload(n_input_tokens=64, n_output_tokens=8)}
    asked = {**few, "targets": planner.Targets(), "options": planner.SolverOptions()}
    served = planner.Serve(model=model, replicas=1)
    standing = planner.place(pool, served, **few)
    machines = planner.load_layers(ROOT / "examples" / "machines" / "quality-10.toml")
    small = dataclasses.replace(machines, machines=machines.machines[:2])
    traffic = planner.traffic_class("chat", layered, rate_per_s=1.0, input=64, output=8)
    state = planner.State(failed=("node0/gpu0",))
    return {
        "plan": (planner.plan, {"model": model, "cluster": pool, "prefill_batches": (1,), **asked}),
        "plan on a torus": (planner.plan, {"model": model, "cluster": torus, **few}),
        "plan_engine": (
            planner.plan,
            {"model": layered, "cluster": pool, "engine": "vllm", **asked},
        ),
        "frontier": (planner.frontier, {"model": model, "cluster": pool, "alpha": 3.0, **few}),
        "compare": (planner.compare, {"models": [model], "clusters": [pool], **few}),
        "place": (planner.place, {"cluster": pool, "models": served, "state": state, **few}),
        "place on a torus": (planner.place, {"cluster": torus, "models": served, **few}),
        "fleet": (
            planner.fleet,
            {"traffic": traffic, "cluster": pool, "engine": "vllm", "n_simulated": 300},
        ),
        "traffic_class": (
            planner.traffic_class,
            {"name": "chat", "models": layered, "rate_per_s": 1.0, "input": 64, "output": 8},
        ),
        "repair": (planner.repair, {"placement": standing, "state": state, "loss": 0.0}),
        "audit_engine": (
            planner.audit_engine,
            {
                "model": layered,
                "cluster": pool,
                "speed_tokens_per_s": 20.0,
                "degrees": planner.specs.ask.targets.Degrees(tensor=1),
                "batch": 8,
            },
        ),
        "cut_stages": (
            planner.cut_stages,
            {"model": layered, "groups": "h100-sxm:tp1x2", "batch": 1, "time_limit_s": 5.0},
        ),
        "place_layers": (planner.place_layers, {"layers": small, "gap": 0.1, "time_limit_s": 2.0}),
        "place_experts": (
            planner.place_experts,
            {"loads": [4.0, 1.0, 3.0, 1.0], "n_ranks": 2, "n_slots": 3, "split": "equal"},
        ),
        "load_model": (planner.load_model, {"name_or_path": "llama-3.1-8b"}),
        "load_architecture": (planner.load_architecture, {"name_or_path": "llama-3.1-8b"}),
        "load_cluster": (planner.load_cluster, {"name_or_path": "h100-nvl8-x1"}),
        "load_device": (planner.load_device, {"name_or_path": "h100-sxm"}),
        "load_pool": (planner.load_pool, {"name_or_path": "h100-fat-tree-x2"}),
        "load_state": (planner.load_state, {"path": "nowhere.toml"}),
        "load_layers": (planner.load_layers, {"path": "nowhere.toml"}),
        "load_traffic": (planner.load_traffic, {"path": "nowhere.toml"}),
        "load_trace": (planner.load_trace, {"path": "nowhere.csv"}),
        "load_placement": (planner.load_placement, {"path": "nowhere.json"}),
    } | {"larger model": (planner.plan, {"model": larger, "cluster": pool, **few})}


_NOT_SPOILT = {"return", "choices", "asked", "on_progress", "on_points", "on_case", "on_round"}
"""The first are no arguments; what a listener of the caller's raises is the caller's."""


def spoilt_call(rng: random.Random) -> tuple[str, Callable[[], object]]:
    """What a call is, in words, and the call."""
    name = rng.choice(tuple(good()))
    function, arguments = good()[name]
    arguments = dict(arguments)
    told = []
    for _ in range(rng.choice((1, 1, 2))):
        argument = rng.choice(sorted(hints_of(function).keys() - _NOT_SPOILT))
        if argument in arguments and rng.random() < 0.6:
            arguments[argument], what = _altered(rng, arguments[argument])
        else:
            arguments[argument] = rng.choice(WRONG)
            what = _short(arguments[argument])
        told.append(f"{argument} = {what}")
    return f"{name}: {', '.join(told)}", lambda: function(**arguments)


def _altered(rng: random.Random, value: object) -> tuple[object, str]:
    """A record with a field altered, however deep; of anything else, something wrong."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        wrong = rng.choice(WRONG)
        return wrong, _short(wrong)
    fields = [field for field in dataclasses.fields(value) if field.init]
    if not fields:
        return value, "as it was"
    field = rng.choice(fields)
    before = getattr(value, field.name)
    if isinstance(before, tuple) and before and rng.random() < 0.5:
        inner, what = _altered(rng, before[0])
        after, what = (inner, *before[1:]), f"[0] {what}"
    elif isinstance(before, (int, float)) and not isinstance(before, bool) and rng.random() < 0.7:
        after = rng.choice((0, -before, before * 1e-20, before * 1e20, before + 1, math.nan, -1))
        after = int(after) if isinstance(before, int) and math.isfinite(after) else after
        what = _short(after)
    else:
        after, what = _altered(rng, before)
    try:
        return dataclasses.replace(value, **{field.name: after}), f".{field.name} {what}"
    except Exception:  # a record may refuse by itself
        return value, "as it was"


def complaint(call: Callable[[], object]) -> str:
    """What is wrong with how a call ended; it may answer, or refuse by an error of the planner."""
    try:
        call()
    except PlannerError as error:
        return "" if error.exit_code < 4 else f"{type(error).__name__}: {error}"[:300]
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    return ""


def _short(value: object) -> str:
    try:
        return repr(value)[:60]
    except ValueError:
        return "a number of hundreds of digits"
