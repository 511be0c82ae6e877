"""Parameters, whole and as one token meets them: what adds to them, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.specs.files.reading import load_architecture
from planner.specs.records.architecture import Experts
from planner.specs.records.mixers import GroupedAttention, Indexer, LatentAttention

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


D = 101
GROUPED = GroupedAttention(n_heads=6, n_kv_heads=2, d_head=7, d_value_head=5)
LATENT = LatentAttention(
    n_heads=6, d_kv_latent=11, d_q_latent=None, d_rope=3, d_nope=4, d_value_head=5
)
INDEXER = Indexer(n_heads=2, d_head=13, n_selected_tokens=64)


@pytest.mark.parametrize(
    ("mixer", "matrices"),
    [
        (GROUPED, [(D, 42), (D, 14), (D, 10), (30, D)]),
        (replace(GROUPED, is_gated=True), [(D, 84), (D, 14), (D, 10), (30, D)]),
        (replace(GROUPED, shares_values=True), [(D, 42), (D, 14), (30, D)]),
        (replace(GROUPED, makes_keys=False), [(D, 42), (30, D)]),
        (LATENT, [(D, 42), (D, 14), (11, 24), (11, 30), (30, D)]),
        (
            replace(LATENT, d_q_latent=17),
            [(D, 17), (17, 42), (D, 14), (11, 24), (11, 30), (30, D)],
        ),
        (
            replace(LATENT, indexer=INDEXER),
            [(D, 42), (D, 14), (11, 24), (11, 30), (30, D), (D, 26), (D, 13), (D, 2)],
        ),
        (
            replace(LATENT, d_q_latent=17, indexer=INDEXER),
            [(D, 17), (17, 42), (D, 14), (11, 24), (11, 30), (30, D), (17, 26), (D, 13), (D, 2)],
        ),
        (
            replace(LATENT, indexer=replace(INDEXER, is_shared=True)),
            [(D, 42), (D, 14), (11, 24), (11, 30), (30, D)],
        ),
    ],
)
def test_parameters_of_attention_are_those_of_its_matrices(mixer, matrices):
    """Queries, keys, values, output; of latents: down, up to keys, up to values."""
    assert mixer.n_params(D) == sum(rows * columns for rows, columns in matrices)
    assert replace(mixer, n_other_params=9).n_params(D) == mixer.n_params(D) + 9
