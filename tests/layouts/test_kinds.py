"""Kinds of layers: how many of each the busiest stage has, and what a window leaves to see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.layouts.geometry import Pass
from planner.layouts.work import LayerKind, layer_kinds
from planner.specs.files.reading import load_model

WINDOWED = LayerKind(
    model=load_model("palm-8b"), has_experts=False, n_window_tokens=128, n_layers=np.ones((1, 1))
)


@pytest.mark.parametrize(
    ("context", "cached", "seen", "held"),
    [(2000.0, 2001.0, 128, 128), (100.0, 101.0, 100, 101), (127.5, 128.0, 127.5, 128)],
)
def test_no_more_than_the_window_is_seen_and_held(context, cached, seen, held):
    work = Pass(n_new_tokens=7.0, n_context_tokens=context, n_cached_tokens=cached)
    within = WINDOWED.within(work)
    assert (within.n_new_tokens, within.n_context_tokens, within.n_cached_tokens) == (7, seen, held)
    assert replace(WINDOWED, n_window_tokens=None).within(work) == work


def counted(name, n_stages):
    kinds = layer_kinds(load_model(name), np.array([[float(n_stages)]]))
    return {(kind.has_experts, kind.n_window_tokens): float(kind.n_layers[0, 0]) for kind in kinds}


def test_half_of_the_layers_of_gpt_oss_have_a_window():
    """36 layers with experts, 18 with a window of 128; five stages have at most 8, 4 of each."""
    assert counted("gpt-oss-120b", 1) == {(True, None): 18, (True, 128): 18}
    assert counted("gpt-oss-120b", 5) == {(True, None): 4, (True, 128): 4}


def test_the_busiest_stage_has_as_many_layers_with_experts_as_it_can():
    """DeepSeek-V3 has 61 layers, the first 3 dense; of four stages one has 16 with experts."""
    assert counted("deepseek-v3", 1) == {(True, None): 58, (False, None): 3}
    assert counted("deepseek-v3", 4) == {(True, None): 16}


def test_a_window_that_does_not_divide_is_rounded_so_that_no_stage_has_more_without():
    """Of 36 layers 18 see a window; a stage of 5 has 2 of them and 3 that see all."""
    assert counted("gpt-oss-120b", 8) == {(True, None): 3, (True, 128): 2}
