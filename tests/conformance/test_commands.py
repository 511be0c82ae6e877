"""Command × runtime × quantity: a limit holds for every answer, or is refused by its option."""

from __future__ import annotations

import json
from functools import cache

import pytest

from planner.quantities.table import QUANTITIES, Quantity, limited
from tests.conformance.asking import (
    REFUSED,
    REFUSED_ON_PLACES,
    RUNTIMES,
    Ran,
    asked,
    loosest,
    refuses,
    run,
    tightest,
    told,
)

CELLS = [(runtime, one.name) for runtime in RUNTIMES for one in limited()]
ON_PLACES = [one.name for one in limited()]
AXES = {("pareto", "tpot"), ("pareto", "cost")}
"""Limits on the axes of a frontier, whose points tell whether they meet a target."""
OTHER_ENGINES = ("sglang", "trtllm")
"""Surveyed by the same lines as the first engine; of plans their limits are tried too."""
CLOSE = 1e-9
SITE = (
    *("--model", "llama-3.1-70b", "--topology", "h100-nvl8-x1"),
    *("--weights", "bf16", "--batch", "16"),
)


@cache
def surveyed(command: str, runtime: str, *words: str) -> Ran:
    return asked(runtime, "--json", *words, command=(command,))


def deployments(ran: Ran) -> list[dict]:
    """All deployments of an answer, wherever they stand in it."""
    found, stack = [], [ran.answer["answer"]]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            found += [inner for key, inner in value.items() if key == "deployment" and inner]
            stack += value.values()
        elif isinstance(value, list):
            stack += value
    return found


def written(name: str, limit: float) -> tuple[str, str]:
    return QUANTITIES[name].option, QUANTITIES[name].written(limit)


@pytest.mark.parametrize("command", ["pareto", "compare"])
@pytest.mark.parametrize(("runtime", "name"), sorted(REFUSED))
def test_a_survey_refuses_what_a_runtime_cannot_count(command, runtime, name):
    one = QUANTITIES[name]
    assert refuses(surveyed(command, runtime, *written(name, loosest(one))), one.option)


@pytest.mark.parametrize(
    ("command", "runtime", "name"),
    [
        (command, *cell)
        for command in ("pareto", "compare")
        for cell in CELLS
        if cell[0] not in OTHER_ENGINES
        if cell not in REFUSED and (command, cell[1]) not in AXES
    ],
)
def test_every_plan_of_a_survey_keeps_a_limit(command, runtime, name):
    """The limit is half-way between the plans without it; of a frontier, on none of its axes."""
    one = QUANTITIES[name]
    free = surveyed(command, runtime, *written(name, loosest(one)))
    values = sorted(told(one, each) for each in deployments(free))
    assert values
    middle = values[len(values) // 2]
    ran = surveyed(command, runtime, *written(name, middle))
    kept = [told(one, each) for each in deployments(ran)]
    assert kept
    assert all(one.is_kept(value, middle, tolerance=CLOSE) for value in kept)
    beyond = surveyed(command, runtime, *written(name, tightest(one)))
    assert beyond.code == 1
    assert one.label in beyond.out + beyond.err or name in beyond.out


@pytest.mark.parametrize(("runtime", "name"), CELLS)
def test_an_audit_and_a_prediction_refuse_limits_by_their_options(runtime, name):
    """They say what runs, and what would: there is nothing to limit."""
    one = QUANTITIES[name]
    option = written(name, loosest(one))
    ran = asked(runtime, "--speed", "20tok/s", *option, command=("audit",))
    assert refuses(ran, one.option)
    if runtime in ("vllm", "sglang", "trtllm"):
        ran = asked(runtime, *option, command=("predict",))
        assert refuses(ran, one.option)


STATE = 'failed = ["node0/gpu0"]\n'


def names(ran: Ran, one: Quantity) -> bool:
    """Whether a placement that is not to be had names a limit.

    Limits on each replica by itself are told together, as the targets of a model.
    """
    words = " ".join(ran.err.split())
    return one.label in words or (one.placed == "each" and "targets llama" in words)


@pytest.mark.parametrize("name", ON_PLACES)
def test_a_repair_names_a_limit_out_of_reach_and_refuses_what_it_cannot_keep(name, tmp_path):
    one = QUANTITIES[name]
    placed = run("place", *SITE, "--replicas", "2", "--json")
    path, state = tmp_path / "placement.json", tmp_path / "state.toml"
    path.write_text(json.dumps(placed.answer))
    state.write_text(STATE)
    ran = run("repair", str(path), "--state", str(state), *written(name, tightest(one)))
    if name in REFUSED_ON_PLACES:
        assert refuses(ran, one.option)
    else:
        assert ran.code == 1
        assert names(ran, one), ran.err
