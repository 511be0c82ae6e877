"""What mixes tokens: attention over heads or over the batch, and states of recurrences alike.

Over heads, each device keeps the KV heads of its query heads; where the devices outnumber
the KV heads they are replicated, and with one KV head (multi-query) every device holds and
reads all of it. Heads arrive in pieces of one n-th, so devices that share a head, of KV or
of queries, complete it among themselves. Over batch, each device keeps the KV of its own
sequences: queries, keys and values travel there by an all-to-all, and the results travel
back.

A cached latent is one head. It is made in pieces, as queries' own latent is, and gathered by
the devices that need all of it: those of its sequence, and where keys and values are made
those of all heads. So is what an indexer makes of the residual stream; each device has all of the
indexer's heads, as engines have, and scores all tokens of its sequences.

A state is cut by its heads, or rests with its sequence; what writes to the states of a group of
heads is shared by them, as keys are by query heads.

Source: [Pope2022] §3.3, figures 4 and 5; latents: [DeepSeek2024] §2.1; states over heads: Mamba 2,
arXiv 2405.21060 §8.1; indexers: DeepSeek-V3.2, arXiv 2512.02556 §2.1.
"""

from dataclasses import dataclass, field

import numpy as np

from planner.equations.arrays import FloatArray
from planner.equations.kernels.recurrence import (
    State,
    recurrence_decode_work,
    recurrence_prefill_work,
)
from planner.layouts.geometry import ALL_AXES, Geometry, Pass, Spread
from planner.layouts.work import ALL_GATHER, ALL_TO_ALL, Message
from planner.specs.records.architecture import state_bytes
from planner.specs.records.devices import FORMAT_BYTES, ModelSpec
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Mixer, Recurrence

INDEX_BYTES = 1.0
"""Of one number of an indexer's keys as it reads them, whatever the cache is in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixerWidths:
    """Numbers of one token in one layer, all devices together.

    Args:
        n_shared: what query heads share: KV heads, the latent, groups of states.
        made, attended: by projections, of the residual stream; and what the last one takes back.
        heads, shared: of all heads, and of what they share, where devices complete them.
        gathered: that devices make in pieces and all need whole, by what they are.
        there, back: that travel to a token's sequence, and back, over the batch.
        pair_flop: score and weighted value of one pair of tokens.
    """

    n_shared: int = 1
    made: int = 0
    attended: int = 0
    heads: int = 0
    shared: int = 0
    gathered: dict[str, int] = field(default_factory=dict)
    there: int = 0
    back: int = 0
    pair_flop: float = 0.0


def widths_of(mixer: Mixer | None, *, on_latents: bool = False) -> MixerWidths:
    """Of a kind of layers; all nothing where no tokens are mixed.

    Args:
        on_latents: queries meet the cached latents themselves, see `Pass.is_decode`.
    """
    if isinstance(mixer, GroupedAttention):
        return _of_groups(mixer)
    if isinstance(mixer, LatentAttention):
        return _of_latents(mixer, on_latents=on_latents)
    return MixerWidths() if mixer is None else _of_states(mixer)


def _of_groups(mixer: GroupedAttention) -> MixerWidths:
    d_heads, d_values = mixer.n_heads * mixer.d_head, mixer.n_heads * mixer.d_value_head
    return MixerWidths(
        n_shared=mixer.n_kv_heads,
        made=mixer.d_queries + mixer.d_keys_and_values,
        attended=d_values,
        heads=d_heads,
        shared=mixer.d_cached,
        there=d_heads + mixer.d_cached,
        back=d_values,
        pair_flop=2.0 * (d_heads + d_values),
    )


def _of_latents(mixer: LatentAttention, *, on_latents: bool) -> MixerWidths:
    """The matrices that bring queries to latents, or make keys and values of them, lie with
    the heads; so what they make travels."""
    n_heads, d_latent, d_cached = mixer.n_heads, mixer.d_kv_latent, mixer.d_cached
    d_heads, d_values = n_heads * mixer.d_head, n_heads * mixer.d_value_head
    index, d_from = mixer.own_indexer, mixer.d_q_latent
    gathered = {"latents of queries": d_from or 0}
    if not on_latents:
        gathered["latents of keys and values"] = d_cached
    d_index = 0
    if index is not None:  # its key and the weights of its heads; its queries, if of no latent
        d_index = index.d_head + index.n_heads + (0 if d_from else index.n_heads * index.d_head)
        gathered["what an indexer scores with"] = d_index
    made_keys = n_heads * (mixer.d_nope + mixer.d_value_head)
    pair = d_cached + d_latent if on_latents else mixer.d_head + mixer.d_value_head
    return MixerWidths(
        made=(d_from or d_heads) + d_cached + d_index,
        attended=d_values,
        heads=d_heads,
        shared=d_cached if on_latents else 0,
        gathered=gathered,
        there=(n_heads + 1) * d_cached if on_latents else d_heads + made_keys,
        back=n_heads * d_latent if on_latents else d_values,
        pair_flop=2.0 * n_heads * pair,
    )


def _of_states(mixer: Recurrence) -> MixerWidths:
    return MixerWidths(
        n_shared=mixer.n_groups,
        made=mixer.n_input_columns,
        attended=mixer.n_output_rows,
        heads=mixer.n_heads * mixer.d_value,
        shared=2 * mixer.n_groups * mixer.d_key,
        there=mixer.n_input_columns,
        back=mixer.n_output_rows,
    )


def layer_widths(model: ModelSpec, work: Pass) -> MixerWidths:
    return widths_of(model.mixer, on_latents=work.is_decode)


def _busiest_share(n_heads: int, shape: Geometry, batch: Spread) -> FloatArray:
    """Share of the heads that the busiest device has: whole heads, so more than 1/n at times."""
    return np.asarray(np.ceil(n_heads / (shape.n_tensor / batch.n_batch_ways)) / n_heads)


def cache_bytes(
    model: ModelSpec, shape: Geometry, batch: Spread, n_tokens: float, width: int
) -> FloatArray:
    """Keys and values of one layer on the busiest device, at one byte a number [bytes].

    Args:
        width: numbers of a token: that are kept, or that are read.
    """
    share = _busiest_share(widths_of(model.mixer).n_shared, shape, batch)
    return batch.n_device_sequences * (n_tokens * width * share)


def attended_tokens(model: ModelSpec, work: Pass) -> float:
    """Tokens that queries meet: of those in reach the ones that an indexer picks."""
    mixer, n_tokens = model.mixer, work.n_context_tokens
    if isinstance(mixer, LatentAttention) and mixer.indexer is not None:
        return min(n_tokens, mixer.indexer.n_selected_tokens)
    return n_tokens


def mixing_work(
    model: ModelSpec, shape: Geometry, batch: Spread, work: Pass
) -> dict[str, FloatArray]:
    """Scores, values and states of the busiest device in one layer: fields of `LayerWork`, the
    cache at one byte a number. Each new token meets its context, masked or not."""
    mixer = model.mixer
    if mixer is None:
        names = ("attention_flop", "index_flop", "kv_bytes", "fixed_bytes")
        return dict.fromkeys(names, np.zeros((1, 1)))
    n_met, n_new = attended_tokens(model, work), work.n_new_tokens
    flop, fixed, index_flop = layer_widths(model, work).pair_flop * n_new * n_met, 0.0, 0.0
    share = of_fixed = _busiest_share(mixer.n_heads, shape, batch)
    if isinstance(mixer, Recurrence):
        state = State(
            n_heads=mixer.n_heads, d_key=mixer.d_key, d_value=mixer.d_value, d_conv=mixer.d_conv
        )
        if work.is_decode:
            taps, number = mixer.n_conv_taps, mixer.state_bytes_per_number
            done = recurrence_decode_work(n_new, n_conv_taps=taps, state_bytes=number, **state)
        else:
            done = recurrence_prefill_work(1, n_new, **state)
        flop, fixed = map(float, done)
    if isinstance(mixer, LatentAttention) and mixer.own_indexer is not None:
        scored, n_heads = (
            work.n_context_tokens * mixer.own_indexer.d_head,
            mixer.own_indexer.n_heads,
        )
        index_flop, fixed = 2.0 * n_heads * n_new * scored, scored * INDEX_BYTES
        of_fixed = np.ones((1, 1))  # each device has all of an indexer's heads
    return {
        "attention_flop": batch.n_device_sequences * (flop * share),
        "index_flop": batch.n_device_sequences * index_flop,
        "kv_bytes": cache_bytes(model, shape, batch, n_met, mixer.d_read),
        "fixed_bytes": batch.n_device_sequences * (fixed * of_fixed),
    }


def held_bytes(
    model: ModelSpec, shape: Geometry, batch: Spread, n_tokens: float
) -> tuple[FloatArray, FloatArray]:
    """Of one layer on the busiest device: its cache at one byte a number, and states [bytes]."""
    if model.mixer is None:
        return np.zeros((1, 1)), np.zeros((1, 1))
    share = _busiest_share(model.mixer.n_heads, shape, batch)
    states = batch.n_device_sequences * (state_bytes(model.mixer) * share)
    return cache_bytes(model, shape, batch, n_tokens, model.mixer.d_kept), states


def messages(model: ModelSpec, shape: Geometry, batch: Spread, work: Pass) -> tuple[Message, ...]:
    """All-to-alls into and out of batch sharding, and the copies of shared heads."""
    if model.mixer is None:
        return ()
    bytes_per_number = FORMAT_BYTES[model.activation_format]
    moved_axes = batch.batch_axes & ~shape.cut
    n_moved = batch.n_batch_ways / shape.n_cut
    held_tokens = batch.n_group_sequences * (work.n_new_tokens * bytes_per_number)
    widths = layer_widths(model, work)

    def moved(purpose: str, width: int) -> Message:
        return Message(
            purpose=purpose,
            kind=ALL_TO_ALL,
            group=moved_axes,
            n_devices=n_moved,
            n_bytes=held_tokens * (width / shape.n_rest),
        )

    n_over_heads = shape.n_tensor / batch.n_batch_ways
    own_tokens = batch.n_device_sequences * (work.n_new_tokens * bytes_per_number)

    def copies(purpose: str, width: int, n_heads: int) -> Message:
        ways = np.minimum(n_over_heads, n_heads)
        return Message(
            purpose=purpose,
            kind=ALL_GATHER,
            group=ALL_AXES & ~batch.batch_axes,
            n_devices=n_over_heads / ways,
            n_bytes=own_tokens * (width / ways),
        )

    gathered = (
        Message(
            purpose=purpose,
            kind=ALL_GATHER,
            group=shape.rest,
            n_devices=shape.n_rest,
            n_bytes=held_tokens * float(width),
        )
        for purpose, width in widths.gathered.items()
        if width
    )
    shared = copies("copies of shared KV heads", widths.shared, widths.n_shared)
    return (
        moved("queries, keys, values to their sequences", widths.there),
        moved("attention results to their heads", widths.back),
        *gathered,
        *((shared,) if widths.shared else ()),
        copies("copies of shared query heads", widths.heads, model.mixer.n_heads),
    )
