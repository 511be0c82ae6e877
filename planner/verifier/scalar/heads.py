"""Widths of what attention projects, moves and keeps, in numbers a token."""

from __future__ import annotations

from math import ceil

from planner.specs.records import ModelSpec


def attention_params(model: ModelSpec) -> int:
    """Projections of one layer, heads padded as served.

    Latent attention: queries, through a latent of theirs or not; down to the latent of keys
    and values and the rotated key; up from it, to each head's key and value; and out.
    """
    e, heads, mla = model.d_model, model.n_heads_served, model.mla
    if mla is None:
        return 2 * e * heads * model.d_head + 2 * e * model.n_kv_heads * model.d_head
    per_head = mla.d_nope + mla.d_rope
    if mla.d_q_latent is None:
        queries = e * heads * per_head
    else:
        queries = e * mla.d_q_latent + mla.d_q_latent * heads * per_head
    down = e * (mla.d_kv_latent + mla.d_rope)
    up = mla.d_kv_latent * heads * mla.d_nope + mla.d_kv_latent * heads * mla.d_value
    return queries + down + up + heads * mla.d_value * e


def query_width(model: ModelSpec) -> int:
    return model.n_heads_served * model.d_head


def cached_width(model: ModelSpec) -> int:
    """A key and a value of each KV head, or the latent and the rotated key of all heads."""
    if model.mla is None:
        return 2 * model.n_kv_heads * model.d_head
    return model.mla.d_kv_latent + model.mla.d_rope


def cached_heads(model: ModelSpec) -> int:
    """Pieces that the cache of a token falls into: a latent is whole."""
    return model.n_kv_heads if model.mla is None else 1


def own_heads(n_heads: int, n_devices: int) -> int:
    """Heads of the busiest device, none of which is cut."""
    return ceil(n_heads / n_devices)


def meets_latents(model: ModelSpec, n_new_tokens: float, n_context_tokens: float) -> bool:
    """Queries meet the latents themselves, except where all of the context is new.

    Then keys and values are made, once for each token, in the projections; of tokens from
    an earlier pass only the latent is left.
    """
    return model.mla is not None and n_new_tokens < n_context_tokens


def pair_width(model: ModelSpec, *, on_latents: bool) -> int:
    """Multiply-adds of one head for one pair of tokens: the score, and the weighted value."""
    if model.mla is None:
        return 2 * model.d_head
    if on_latents:
        return (model.mla.d_kv_latent + model.mla.d_rope) + model.mla.d_kv_latent
    return (model.mla.d_nope + model.mla.d_rope) + model.mla.d_value


def moved_widths(model: ModelSpec, *, on_latents: bool) -> tuple[int, int]:
    """What travels to a token's sequence, and what comes back, when heads are elsewhere.

    The matrices that make keys and values of a latent, or bring queries to it, lie with the
    heads; so what they make travels. Keys made from latents do, but not the latents, which
    every device has had for making them.
    """
    heads, mla = model.n_heads_served, model.mla
    if mla is None:
        return query_width(model) + cached_width(model), query_width(model)
    if on_latents:
        latent_query = mla.d_kv_latent + mla.d_rope
        return heads * latent_query + cached_width(model), heads * mla.d_kv_latent
    made = heads * (mla.d_nope + mla.d_value)
    return query_width(model) + made, heads * mla.d_value
