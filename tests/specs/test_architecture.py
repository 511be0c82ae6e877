"""Parameters, whole and as one token meets them: what adds to them, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.specs.architecture import Experts
from planner.specs.reading import load_architecture

NAMES = ("llama-3.1-8b", "deepseek-v3", "gpt-oss-120b", "qwen3-30b-a3b")
N_MORE = 7


def counts(model):
    return model.n_params, model.n_active_params


def grown(part):
    return replace(part, n_other_params=part.n_other_params + N_MORE)


@pytest.mark.parametrize("name", NAMES)
def test_a_token_meets_all_but_the_experts_that_it_is_not_sent_to(name):
    model = load_architecture(name)
    idle = sum(
        one.n_layers * (one.ffn.n_experts - one.ffn.n_active) * one.ffn.expert_params(model.d_model)
        for one in model.layers
        if isinstance(one.ffn, Experts)
    )
    assert model.n_params - model.n_active_params == idle


@pytest.mark.parametrize("name", NAMES)
def test_what_a_part_has_besides_its_matrices_is_met_by_every_token(name):
    """Biases, norms and sinks: of an FFN, of attention, of a layer, of the model."""
    model = load_architecture(name)
    before, n_layers = counts(model), sum(one.n_layers for one in model.layers)
    for change in (
        lambda one: replace(one, ffn=grown(one.ffn)),
        lambda one: replace(one, mixer=grown(one.mixer)),
        lambda one: replace(one, n_norm_params=one.n_norm_params + N_MORE),
        grown,
    ):
        layers = tuple(change(one) for one in model.layers)
        more = tuple(n + n_layers * N_MORE for n in before)
        assert counts(replace(model, layers=layers)) == more
    assert counts(grown(model)) == tuple(n + N_MORE for n in before)
