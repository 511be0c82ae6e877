"""What lies in the memory of one device."""

from dataclasses import dataclass
from math import ceil

from planner.specs.records.devices import FORMAT_BYTES
from planner.verifier.scalar import experts, shapes

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

    def cache_bytes(n_tokens: float) -> float:
        return sum(
            layers.n_layers * kv_layer_bytes(layout, batch, min(n_tokens, layers.window), cut=cut)
            for layers in shapes.stage_layers(layout)
        )

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
        if layers.has_experts:
            one_layer = experts.resting_common_params(layout) + experts.own_expert_params(layout)
        else:
            one_layer = experts.dense_layer_params(model) / n_holders
        params += layers.n_layers * one_layer
    n_matrices = 1 if mesh.n_stages > 1 or model.tied_embeddings else 2
    params += n_matrices * model.vocab_size * model.d_model / mesh.n_devices
    return params * layout.weight_bytes + 2.0 * model.n_encoder_params / mesh.n_devices


def kv_layer_bytes(layout: shapes.Layout, n_sequences: int, n_tokens: float, *, cut: int) -> float:
    """Keys and values in one layer, sequences cut over the axes `cut`.

    A head is never cut, devices beyond the heads hold copies.
    """
    model, mesh = layout.model, layout.mesh
    n_heads = shapes.cached_heads(model)
    one_head = shapes.cached_width(model) / n_heads * layout.kv_bytes
    per_token = layout.own_heads(n_heads, cut=cut) * one_head
    return ceil(n_sequences / mesh.size(cut)) * n_tokens * per_token


def _activations(layout: shapes.Layout, n_sequences: int, n_new_tokens: float) -> float:
    """The fullest layer: one with a whole FFN, if the model has any, or one with experts."""
    model, mesh = layout.model, layout.mesh
    heads = shapes.query_width(model) + shapes.cached_width(model)
    has_dense = model.moe is None or model.moe.n_dense_layers > 0
    ffn = (model.n_ffn_matrices - 1) * model.d_ff if has_dense else 0
    hidden = heads + ffn if model.block == "parallel" else max(heads, ffn)
    # residual stream and its successor at rest, the gathered input, and the partial sums
    always = 2 * model.d_model / mesh.size(layout.rest)
    always += model.d_model / mesh.size(layout.e_axes)
    numbers = always + hidden / mesh.size(layout.f_axes)
    if model.moe:
        numbers = max(numbers, always + _visited_numbers(layout) / mesh.size(layout.rest))
    n_tokens = layout.group_sequences(n_sequences) * n_new_tokens
    return n_tokens * numbers * FORMAT_BYTES[model.activation_format]


def _visited_numbers(layout: shapes.Layout) -> float:
    """A copy of a token for each expert that it visits, and the hidden inputs of these.

    Of the copy a device along x has its part of E, but it makes partial sums of all inputs.
    """
    model, moe = layout.model, experts.moe_of(layout.model)
    n_sums = (model.n_ffn_matrices - 1) * layout.mesh.size(layout.e_axes)
    per_expert = model.d_model + n_sums * moe.d_expert
    return (moe.n_active_experts + moe.n_shared_experts) * per_expert


def _gather_buffers(layout: shapes.Layout) -> float:
    """Room for the largest gathered matrix, twice; none where nothing is gathered.

    Routed experts never are.
    """
    model, mesh = layout.model, layout.mesh
    if mesh.size(layout.gathered) == 1:
        return 0.0
    widest = shapes.query_width(model)
    if model.moe is None or model.moe.n_dense_layers > 0:
        widest = max(widest, model.d_ff)
    if model.moe is not None:
        widest = max(widest, model.moe.n_shared_experts * model.moe.d_expert)
    share = model.d_model * widest / mesh.size(layout.rest)
    return N_GATHER_BUFFERS * share * layout.weight_bytes
