"""Command × runtime × quantity: a limit holds for every answer, or is refused by its option."""

from __future__ import annotations

import json
from functools import cache

import pytest

from planner.quantities import QUANTITIES, Quantity, limited
from tests.conformance.asking import RUNTIMES, Ran, asked, loosest, refuses, run, tightest, told

CELLS = [(runtime, one.name) for runtime in RUNTIMES for one in limited()]
ON_PLACES = [one.name for one in limited()]
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
@pytest.mark.parametrize(("runtime", "name"), CELLS)
def test_every_plan_of_a_survey_keeps_a_limit_or_it_is_refused(command, runtime, name):
    """The limit is half-way between the plans without it; of a frontier, on none of its axes."""
    one = QUANTITIES[name]
    if command == "pareto" and one.objective in ("latency", "cost"):
        return  # the axes: points tell whether they meet a target
    free = surveyed(command, runtime, *written(name, loosest(one)))
    if free.code == 2:
        assert refuses(free, one.option)
        return
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
    """Whether a placement that is not to be had, or its refusal, names a limit.

    Limits on each replica by itself are told together, as the targets of a model.
    """
    words = " ".join(ran.err.split())
    return one.label in words or one.option in words or "targets llama" in words


@pytest.mark.parametrize("name", ON_PLACES)
def test_a_placement_names_a_limit_out_of_reach_or_refuses_it(name):
    one = QUANTITIES[name]
    ran = run("place", *SITE, *written(name, tightest(one)))
    assert ran.code in (1, 2)
    assert names(ran, one), ran.err


@pytest.mark.parametrize("name", ON_PLACES)
def test_a_repair_names_a_limit_out_of_reach_or_refuses_it(name, tmp_path):
    one = QUANTITIES[name]
    placed = run("place", *SITE, "--replicas", "2", "--json")
    path, state = tmp_path / "placement.json", tmp_path / "state.toml"
    path.write_text(json.dumps(placed.answer))
    state.write_text(STATE)
    ran = run("repair", str(path), "--state", str(state), *written(name, tightest(one)))
    assert ran.code in (1, 2)
    assert names(ran, one), ran.err
