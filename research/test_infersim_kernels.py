"""Decode layers of two models that the fits have not seen, within 5 % in the median.

The constants of `infersim_held_out.csv` come from fits without these models' rows; 44 cited rows of
alibaba/InferSim f2293da judge them. With $PLANNER_BENCH the whole experiment is run instead.
"""

import numpy as np
import pytest

from research import infersim_kernels as experiment
from research.infersim_layers import chosen_layers


@pytest.mark.parametrize("model", experiment.MODELS, ids=lambda model: model.name)
def test_layers_of_a_model_left_out_are_within_five_percent(model):
    predicted, measured = np.array(list(chosen_layers(model))).T
    off = np.abs(predicted / measured - 1)
    assert np.median(off) <= 0.05
    assert np.percentile(off, 90) <= 0.10


@pytest.mark.skipif(experiment.bench() is None, reason="$PLANNER_BENCH names no folder")
@pytest.mark.parametrize(("model", "n_layers"), [(experiment.QWEN, 150), (experiment.DEEPSEEK, 92)])
def test_all_layers_left_out_are_within_five_percent(model, n_layers):
    tables = experiment.measured(model, experiment.bench())
    found = list(experiment.layers(model, tables, experiment.fitted(model, tables)))
    judged = experiment.judged(found)
    assert judged.n_rows == n_layers
    assert judged.median <= 0.05
    assert judged.p90 <= 0.10
