"""What lies in the memory of one device."""

from dataclasses import dataclass, replace
from math import ceil

from planner.specs.records.architecture import Experts, state_bytes
from planner.specs.records.mixers import Mixer
from planner.verifier.scalar import parts, shapes

N_GATHER_BUFFERS = 2  # gathered matrices held at once: one in use, one in flight


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarBytes:
    """What lies in the memory of the busiest device; of its cache, what the phase writes."""

    weights_bytes: float
    kv_bytes: float
    written_bytes: float
    activation_bytes: float
    gather_bytes: float


def held_bytes(
    layout: shapes.Layout,
    *,
    batch: int,
    n_new_tokens: float,
    n_cached_tokens: float,
    n_found_tokens: float = 0.0,
) -> ScalarBytes:
    """Memory of the busiest device while the pass runs.

    `n_cached_tokens` of each sequence of the whole batch are held, and fewer in layers with
    a window; only the micro-batch in work has activations. The cache of `n_found_tokens` of
    them was there before the phase.
    """
    n_sequences = ceil(batch / layout.n_microbatches)
    cut = layout.batch_axes(n_sequences)  # a sequence rests where its micro-batch is worked on

    groups = shapes.stage_layers(layout)

    def cache_bytes(n_tokens: float) -> float:
        total = 0.0
        for layers in groups:
            mixer, on = layers.layout.mixer, layers.layout
            if mixer is not None:
                kept = min(n_tokens, layers.window)
                one_layer = kv_layer_bytes(on, batch, kept, cut=cut, width=mixer.d_kept)
                states = state_layer_bytes(on, mixer, batch, cut=cut) if n_tokens else 0.0
                total += layers.n_layers * (one_layer + states)
        return total

    kv_bytes = cache_bytes(n_cached_tokens)
    return ScalarBytes(
        weights_bytes=_weights_at_rest(layout),
        kv_bytes=kv_bytes,
        written_bytes=kv_bytes - cache_bytes(n_found_tokens),
        activation_bytes=_activations(layout, n_sequences, n_new_tokens),
        gather_bytes=_gather_buffers(layout),
    )


def _weights_at_rest(layout: shapes.Layout) -> float:
    """Layers of a stage, and its embeddings: one matrix of a pipeline's end, or all.

    All but routed experts and embeddings have copies along the axes of `data`. What sees or hears
    is in 16 bits.
    """
    model, mesh = layout.model, layout.mesh
    n_holders = mesh.n_devices / mesh.size(layout.data)
    params = 0.0
    for layers in shapes.stage_layers(layout):
        on, layer = layers.layout, layers.layout.layer
        if layers.has_experts:
            one_layer = parts.resting_common_params(on) + parts.own_expert_params(on)
        else:
            one_layer = parts.dense_layer_params(on) / n_holders
        if layer is not None and mesh.n_stages == 1:  # a block that an earlier layer has here
            one_layer -= layer.n_borrowed_params / n_holders
        params += layers.n_layers * (one_layer + parts.whole_params(on.mixer))
    n_matrices = 1 if mesh.n_stages > 1 or model.tied_embeddings else 2
    params += n_matrices * model.vocab_size * model.d_model / mesh.n_devices
    return params * layout.weight_bytes + 2.0 * model.n_encoder_params / mesh.n_devices


def kv_layer_bytes(
    layout: shapes.Layout, n_sequences: int, n_tokens: float, *, cut: int, width: int
) -> float:
    """Keys and values in one layer, so many numbers a token, sequences cut over the axes `cut`.

    A head is never cut, devices beyond the heads hold copies.
    """
    n_heads = parts.shared_heads(layout.mixer)
    per_token = layout.own_heads(n_heads, cut=cut) * (width / n_heads * layout.kv_bytes)
    return ceil(n_sequences / layout.mesh.size(cut)) * n_tokens * per_token


def state_layer_bytes(layout: shapes.Layout, mixer: Mixer, n_sequences: int, *, cut: int) -> float:
    """States in one layer, cut as sequences and by whole heads."""
    share = layout.own_heads(mixer.n_heads, cut=cut) / mixer.n_heads
    return ceil(n_sequences / layout.mesh.size(cut)) * state_bytes(mixer) * share


def _activations(layout: shapes.Layout, n_sequences: int, n_new_tokens: float) -> float:
    """The fullest layer, of whichever kind."""
    model, mesh = layout.model, layout.mesh
    # residual stream and its successor at rest, the gathered input, and the partial sums
    always = 2 * model.d_model / mesh.size(layout.rest)
    always += model.d_model / mesh.size(layout.e_axes)
    numbers = 0.0
    for kind in shapes.kinds_of(model):
        on = replace(layout, layer=kind)
        heads, ffn = parts.widest(kind.mixer), (on.dense.n_matrices - 1) * on.dense.d_ff
        hidden = heads + ffn if model.block == "parallel" else max(heads, ffn)
        numbers = max(numbers, always + hidden / mesh.size(layout.f_axes))
        if isinstance(kind.ffn, Experts):
            numbers = max(numbers, always + _visited_numbers(on) / mesh.size(layout.rest))
    n_tokens = layout.group_sequences(n_sequences) * n_new_tokens
    return n_tokens * numbers * layout.activation_bytes


def _visited_numbers(layout: shapes.Layout) -> float:
    """A copy of a token for each expert that it visits, and the hidden inputs of these.

    Of the copy a device along x has its part of E, but it makes partial sums of all inputs.
    """
    moe = layout.experts
    n_sums = (moe.n_matrices - 1) * layout.mesh.size(layout.e_axes)
    per_expert = layout.model.d_model + n_sums * moe.d_expert
    return (moe.n_active + moe.d_shared // moe.d_expert) * per_expert


def _gather_buffers(layout: shapes.Layout) -> float:
    """Room for the largest gathered matrix, twice; none where nothing is gathered.

    Routed experts never are.
    """
    model, mesh = layout.model, layout.mesh
    if mesh.size(layout.gathered) == 1:
        return 0.0
    kinds = shapes.kinds_of(model)
    widest = 0
    for kind in kinds:
        if kind.mixer is not None:
            back = parts.hidden_widths(kind.mixer)[1]
            widest = max(widest, parts.query_width(kind.mixer), back)
        if isinstance(kind.ffn, Experts):
            widest = max(widest, kind.ffn.d_shared)
        elif kind.ffn is not None:
            widest = max(widest, kind.ffn.d_ff)
    share = model.d_model * widest / mesh.size(layout.rest)
    return N_GATHER_BUFFERS * share * layout.weight_bytes
