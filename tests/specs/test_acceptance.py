"""Rates of drafters: as published, and as options say them."""

from __future__ import annotations

import json

import pytest

from planner.commands.cli import main
from planner.equations.speculation import tokens_by_position
from planner.estimates.serving.drafting import KINDS
from planner.specs.acceptance import PUBLISHED

PREDICT = ("predict", "--model", "deepseek-v3", "--topology", "h200-nvl8-x1", "--tp", "8", "--json")
"""Of a model with a layer that predicts further tokens."""


def predicted(capsys, *words):
    code = main([*PREDICT, "--engine", "sglang", "--draft", *words])
    out, err = capsys.readouterr()
    return code, json.loads(out) if code == 0 else {}, err


def test_every_drafter_has_rates_and_says_where_from():
    assert PUBLISHED.keys() == {*KINDS}
    for kind in ("eagle", "mtp"):
        assert "arXiv" in PUBLISHED[kind].source
        first, *rest = PUBLISHED[kind].rates
        assert all(rate < first for rate in rest)  # a guess on a guess is worse


def test_further_tokens_of_one_layer_leave_the_published_length_of_a_round():
    """GLM-5, Table 2: 2.55 tokens a round of DeepSeek-V3.2 with four steps."""
    assert tokens_by_position(4, PUBLISHED["mtp"].rates) == pytest.approx(2.55, abs=0.01)


@pytest.mark.parametrize("kind", ["mtp", "eagle"])
def test_a_drafter_has_its_own_rates_where_nothing_is_said(capsys, kind):
    code, found, _ = predicted(capsys, kind, "--lookahead", "2")
    assert code == 0
    assert found["request"]["acceptance"] == [*PUBLISHED[kind].rates]
    assert found["answer"]["tokens_per_step"] == pytest.approx(
        tokens_by_position(2, PUBLISHED[kind].rates)
    )


def test_an_option_says_them_by_position(capsys):
    _, found, _ = predicted(capsys, "mtp", "--lookahead", "3", "--acceptance", "90%,0.5")
    assert found["request"]["acceptance"] == [0.9, 0.5]
    assert found["answer"]["tokens_per_step"] == pytest.approx(1 + 0.9 + 0.45 + 0.225)


@pytest.mark.parametrize("text", ["0.9,1", "0.9,", "0.9,often", "0.9,-0.1"])
def test_what_is_no_list_of_probabilities_is_refused(capsys, text):
    code, _, err = predicted(capsys, "mtp", "--acceptance", text)
    assert code == 2
    assert f"`--acceptance {text}`" in err
