"""What lies in the memory of one device."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from planner.estimates.referee.shapes import Layout, RefereeMesh
from planner.specs.records import FORMAT_BYTES, ModelSpec

N_GATHER_BUFFERS = 2  # gathered matrices held at once: one in use, one in flight


@dataclass(frozen=True, slots=True, kw_only=True)
class RefereeBytes:
    """What lies in the memory of the busiest device."""

    weights_bytes: float
    kv_bytes: float
    activation_bytes: float
    gather_bytes: float


def held_bytes(
    model: ModelSpec,
    mesh: RefereeMesh,
    *,
    stored: int,
    gathered: int,
    attention: str,
    n_microbatches: int,
    batch: int,
    n_new_tokens: float,
    n_cached_tokens: float,
    weights_format: str,
) -> RefereeBytes:
    """Memory of the busiest device while the pass runs; arguments as in `step_time`.

    `n_cached_tokens` of each sequence of the whole batch are held, over the axes that cut its
    micro-batch; only the micro-batch in work has activations.
    """
    layout = Layout(
        model=model,
        mesh=mesh,
        stored=stored,
        gathered=gathered,
        attention=attention,
        n_microbatches=n_microbatches,
        weights_format=weights_format,
    )
    n_sequences = ceil(batch / n_microbatches)
    return RefereeBytes(
        weights_bytes=_weights_at_rest(layout),
        kv_bytes=layout.n_layers
        * kv_layer_bytes(layout, batch, n_cached_tokens, cut=layout.batch_axes(n_sequences)),
        activation_bytes=_activations(layout, n_sequences, n_new_tokens),
        gather_bytes=_gather_buffers(layout),
    )


def _weights_at_rest(layout: Layout) -> float:
    """Layers of a stage, and its embeddings: one matrix of a pipeline's end, or all."""
    model, mesh = layout.model, layout.mesh
    n_matrices = 1 if mesh.n_stages > 1 or model.tied_embeddings else 2
    embeddings = n_matrices * model.vocab_size * model.d_model
    params = layout.n_layers * layout.layer_params + embeddings
    return params * FORMAT_BYTES[layout.weights_format] / mesh.n_devices


def kv_layer_bytes(layout: Layout, n_sequences: int, n_tokens: float, *, cut: int) -> float:
    """Keys and values in one layer, sequences cut over the axes `cut`.

    A head is never cut: devices beyond the heads hold copies, and where the heads do not
    divide, the busiest device has one more than others.
    """
    model, mesh = layout.model, layout.mesh
    n_own_sequences = ceil(n_sequences / mesh.size(cut))
    n_own_heads = ceil(model.n_kv_heads / mesh.size(~cut & 7))
    per_token = 2 * n_own_heads * model.d_head * FORMAT_BYTES[model.kv_format]
    return n_own_sequences * n_tokens * per_token


def _activations(layout: Layout, n_sequences: int, n_new_tokens: float) -> float:
    """Residual stream and its successor at rest, the gathered input, and the partial sums."""
    model, mesh = layout.model, layout.mesh
    heads = (model.n_heads_served + 2 * model.n_kv_heads) * model.d_head
    ffn = (model.n_ffn_matrices - 1) * model.d_ff
    hidden = heads + ffn if model.block == "parallel" else max(heads, ffn)
    at_rest = 2 * model.d_model / mesh.size(layout.rest)
    gathered_input = model.d_model / mesh.size(layout.e_axes)
    partial_sums = hidden / mesh.size(layout.f_axes)
    n_tokens = ceil(n_sequences / mesh.size(layout.gathered)) * n_new_tokens
    numbers = n_tokens * (at_rest + gathered_input + partial_sums)
    return numbers * FORMAT_BYTES[model.activation_format]


def _gather_buffers(layout: Layout) -> float:
    """Room for the largest gathered matrix, twice; none where nothing is gathered."""
    model, mesh = layout.model, layout.mesh
    if mesh.size(layout.gathered) == 1:
        return 0.0
    widest = max(model.d_ff, model.n_heads_served * model.d_head)
    share = model.d_model * widest / mesh.size(layout.rest)
    return N_GATHER_BUFFERS * share * FORMAT_BYTES[layout.weights_format]
