"""A mesh, a model laid on it, and the widths of its heads, as the verifier sees them."""

from dataclasses import dataclass
from functools import cache
from math import ceil, inf, prod

from planner.specs.records.devices import FORMAT_BYTES, ModelSpec

OVER_HEADS = "heads"  # any other attention is over the batch
N_AXES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarMesh:
    """The devices of one tensor group, and the stages it is repeated in.

    Args:
        axes: devices along each axis.
        wraps: whether each axis closes into a ring.
        is_switch: whether switches join the devices, axis 0 the innermost tier.
        tiers: the switch or dimension of each axis; axes of one are one axis counted off in two.
        axis_bytes_per_s: one link and direction; behind a switch, one device one way.
        axis_hop_s: latency of one hop along each axis.
        n_stages: pipeline stages.
        stage_bytes_per_s: from a device to its peer in the next stage.
        stage_hop_s: latency of that transfer.
    """

    axes: tuple[int, int, int]
    wraps: tuple[bool, bool, bool]
    is_switch: bool
    axis_bytes_per_s: tuple[float, float, float]
    axis_hop_s: tuple[float, float, float]
    n_stages: int
    stage_bytes_per_s: float
    stage_hop_s: float
    tiers: tuple[int, int, int] = (0, 1, 2)

    @property
    def n_devices(self) -> int:
        """Devices of one tensor group."""
        return prod(self.axes)

    def members(self, group: int) -> list[int]:
        """Axes of a mask that have more than one device."""
        return [axis for axis in range(N_AXES) if group & 1 << axis and self.axes[axis] > 1]

    def size(self, group: int) -> int:
        """Devices along the axes of a mask."""
        return _sizes(self.axes)[group & 7]


@cache  # asked of a few meshes, thousands of times
def _sizes(axes: tuple[int, int, int]) -> tuple[int, ...]:
    """Devices along the axes of each mask."""
    return tuple(
        prod(n for axis, n in enumerate(axes) if group & 1 << axis) for group in range(1 << N_AXES)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A model laid on a mesh: the pieces of each tensor that one device has to do with.

    The batch is cut over the axes along which weights are gathered before use, or have
    copies. Each group of devices that is left, `rest`, works on its own share of the batch.
    There E is cut over `e_axes` and F and the heads over `f_axes`. Routed experts have no
    copies and are not gathered: those axes cut them too, and E over `e_axes` like all else.
    Axes of `sliced` cut the FFN dimension of each expert.

    Args:
        model: what is served.
        mesh: the devices.
        stored: mask of the axes that cut E of the weights at rest.
        gathered: mask of the axes over which weights are gathered before use.
        attention: `heads` or `batch`.
        n_microbatches: parts that a pass is cut into.
        weights_format: format of the weights.
        kv_format: format of the cache; the model's own without it.
        data: mask of the axes along which all but experts has copies.
    """

    model: ModelSpec
    mesh: ScalarMesh
    stored: int
    gathered: int
    attention: str
    n_microbatches: int
    weights_format: str
    kv_format: str | None = None
    data: int = 0
    sliced: int = 0

    @property
    def cut(self) -> int:
        return self.gathered | self.data

    @property
    def rest(self) -> int:
        return ~self.cut & 7

    @property
    def e_axes(self) -> int:
        return self.rest & self.stored

    @property
    def f_axes(self) -> int:
        return self.rest & ~self.stored

    @property
    def n_layers(self) -> int:
        """Layers of the longest stage."""
        return ceil(self.model.n_layers / self.mesh.n_stages)

    @property
    def weight_bytes(self) -> float:
        return FORMAT_BYTES[self.weights_format]

    @property
    def kv_bytes(self) -> float:
        return FORMAT_BYTES[self.kv_format or self.model.kv_format]

    @property
    def is_dispatched(self) -> bool:
        """Tokens are sent to the devices of their experts: each part of the batch is elsewhere."""
        return self.mesh.size(self.cut) > 1

    @property
    def n_expert_devices(self) -> int:
        """Devices that have different experts or different slices of them."""
        return self.mesh.n_devices // self.mesh.size(self.e_axes)

    def group_sequences(self, n_sequences: int) -> int:
        """Sequences of the busiest group that shares its weights."""
        return ceil(n_sequences / self.mesh.size(self.cut))

    def batch_axes(self, n_sequences: int) -> int:
        """Axes over which attention cuts a batch.

        Those that cut it anyhow always do. Over batch, as many more as leave every device a
        sequence, the largest product first; of equal products, the first in the order of
        masks.
        """
        if self.attention == OVER_HEADS:
            return self.cut
        best = self.cut
        for group in range(1 << N_AXES):
            keeps_cut = group & self.cut == self.cut
            fits = self.mesh.size(group) <= n_sequences
            if keeps_cut and fits and self.mesh.size(group) > self.mesh.size(best):
                best = group
        return best

    def own_heads(self, n_heads: int, *, cut: int) -> float:
        """Heads of a sequence that the busiest device has, where `cut` cuts the batch."""
        return ceil(n_heads / self.mesh.size(~cut & 7))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Layers of one stage that are alike; a window of `inf` is none."""

    has_experts: bool
    window: float
    n_layers: int


def stage_layers(layout: Layout) -> list[LayerGroup]:
    """Layers of the busiest stage, a late one: the dense layers of a model come first.

    Of its layers, rounded down, as many have a window as in the whole model; of those with
    experts likewise.
    """
    model, n_all = layout.model, layout.n_layers
    n_experts = min(n_all, model.n_layers - model.moe.n_dense_layers) if model.moe else 0
    window = float(model.window.n_tokens) if model.window else inf
    n_windows = model.window.n_layers if model.window else 0
    windowed = n_all * n_windows // model.n_layers
    windowed_experts = n_experts * n_windows // model.n_layers
    windowed_dense = windowed - windowed_experts
    counts = (
        (True, inf, n_experts - windowed_experts),
        (True, window, windowed_experts),
        (False, inf, n_all - n_experts - windowed_dense),
        (False, window, windowed_dense),
    )
    return [LayerGroup(has_experts=e, window=w, n_layers=n) for e, w, n in counts if n]


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
