"""Five runs of one's own draw predictions of the others of their series nearer."""

from __future__ import annotations

import numpy as np
import pytest

from research.sets import calibrating
from research.sets.calibrating import RunSet, draws, figures
from research.sets.folds import rows


def made_up(bias, scatter, n=20):
    """A set whose TPOT is off by a time of each decode pass, and by chance."""
    chance = np.random.default_rng(3)
    slopes = np.zeros((n, 2, 6))
    slopes[:, 0, 2] = np.linspace(20.0, 120.0, n)
    predicted = np.zeros((n, 2))
    measured = np.full((n, 2), np.nan)
    measured[:, 0] = bias * slopes[:, 0, 2] + scatter * chance.standard_normal(n)
    row = next(iter(rows()))  # nothing is predicted of it
    own = {"measured": measured, "predicted": predicted, "slopes": slopes}
    return RunSet(name=("made up",), rows=(row,) * n, **own)


@pytest.fixture
def free(monkeypatch):
    monkeypatch.setattr(calibrating, "least", lambda own: np.full(6, -np.inf))


def test_a_bias_is_taken_out_and_chance_is_let_alone(free):
    biased, by_chance = made_up(2e-3, 0.01), made_up(0.0, 0.2)
    assert biased.is_biased
    assert not by_chance.is_biased
    assert figures(draws(20, sets=[biased, by_chance]))["median of biased"] < 0.25
    alone = draws(20, sets=[by_chance])
    assert np.median([one.ratio for one in alone]) == pytest.approx(1.0, abs=0.1)


@pytest.mark.research
def test_what_docs_say_of_public_runs_holds():
    said = figures(draws(50))
    assert said["median"] <= 0.81
    assert said["median of biased"] <= 0.55
    assert said["worse by a tenth"] <= 0.055
    assert said["TPOT of biased"] <= 0.5
