"""`planner.predict` takes the options of `plan predict` by name, and answers the same."""

from __future__ import annotations

import json

import pytest

import planner
from planner.commands.cli import main
from planner.results.audits import LayoutPrediction

GIVEN = {"topology": "h100-nvl8-x1", "tp": 2, "batch": 8}


def told(answer):
    return answer.to_dict()["answer"]


def test_it_answers_what_the_command_answers(capsys):
    options = {**GIVEN, "engine": "vllm", "hit_rate": "50%", "memory_fraction": 0.8}
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    words = [word.replace("_", "-") for word in words]
    assert main(["predict", "--model", "llama-3.1-8b", *words, "--json"]) == 0
    assert (
        told(planner.predict("llama-3.1-8b", **options))
        == json.loads(capsys.readouterr().out)["answer"]
    )


def test_layouts_are_predicted_too():
    answer = planner.predict("palm-540b", topology="tpu-v4-4x4x4", batch=64, layout=None)
    assert isinstance(answer, LayoutPrediction)
    assert answer.plan.deployment.decode.batch == 64


@pytest.mark.parametrize(
    ("options", "where", "said"),
    [
        ({**GIVEN, "tpp": 2}, "--tpp", "did you mean `--tp`?"),
        ({**GIVEN, "rate": 8}, "--rate", "write `8req/s`"),
        ({**GIVEN, "json": True}, "predict", "leave it out"),
        ({**GIVEN, "explain": True}, "predict", "leave it out"),
        ({**GIVEN, "batch": {}}, "predict", ""),
        ({**GIVEN, "latency_target": "30ms"}, "--latency-target", "plan"),
        ({"topology": "h100"}, "--topology", ""),
        ({**GIVEN, "tp": 3}, "--tp", ""),
    ],
)
def test_what_is_wrong_is_a_problem_of_its_option(options, where, said):
    with pytest.raises(planner.RequestError) as caught:
        planner.predict("llama-3.1-8b", **options)
    problem = next(it for it in caught.value.problems if it.where == where)
    assert said in problem.remedy
