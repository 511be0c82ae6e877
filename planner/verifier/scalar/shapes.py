"""A mesh, a model laid on it, and the widths of its heads, as the verifier sees them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, inf, prod

from planner.specs.records.architecture import Experts, FeedForward, Ffn, LayerClass
from planner.specs.records.devices import FORMAT_BYTES, ModelSpec
from planner.specs.records.mixers import Mixer
from planner.specs.records.shapes import fullest_stage
from planner.specs.validation.hints import from_fields

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
        layer: the kind of layers that is looked at; None of the model as a whole.
        activation_format: that activations are sent, held and multiplied in; empty where they are
            sent as the model has them, and multiplied in the format of weights.
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
    layer: LayerClass | None = None

    @property
    def mixer(self) -> Mixer | None:
        return self.layer.mixer if self.layer else None

    @property
    def dense(self) -> FeedForward:
        """The FFN without experts; none is as wide as nothing."""
        ffn = self.layer.ffn if self.layer else None
        return ffn if isinstance(ffn, FeedForward) else FeedForward(d_ff=0, n_matrices=2)

    @property
    def experts(self) -> Experts:
        assert self.layer is not None
        assert isinstance(self.layer.ffn, Experts)
        return self.layer.ffn

    activation_format: str = ""

    @property
    def activation_bytes(self) -> float:
        return FORMAT_BYTES[self.activation_format or self.model.activation_format]

    @property
    def product_format(self) -> str:
        """Of weights and activations the one of more bytes."""
        pair = (self.weights_format, self.activation_format or self.weights_format)
        return max(pair, key=lambda name: FORMAT_BYTES[name])

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
    """Layers of one stage that are alike; a window of `inf` is none.

    Args:
        layout: of such layers.
        is_chunk: the window stands still until it is full, and the next begins empty.
    """

    layout: Layout
    window: float
    n_layers: int
    is_chunk: bool = False

    @property
    def has_experts(self) -> bool:
        return isinstance(self.layout.layer and self.layout.layer.ffn, Experts)

    def seen(self, n_context: float, n_new: float) -> float:
        """Tokens in reach of a new one; half a chunk, on average, of those that are decoded."""
        if self.is_chunk and n_new < n_context > self.window:
            return self.window / 2
        return min(n_context, self.window)


def kinds_of(model: ModelSpec) -> tuple[LayerClass, ...]:
    """Kinds of layers: of one kind of model those with experts first, heads padded as served."""
    if model.layers:
        return model.layers
    mixer = model.mixer_of(model.n_heads_served)
    n_dense = model.moe.n_dense_layers if model.moe else model.n_layers
    ffns = dict.fromkeys(ffn_of(model, i) for i in (model.n_layers - 1, *range(min(1, n_dense))))
    return tuple(LayerClass(name="", n_layers=1, mixer=mixer, ffn=ffn) for ffn in ffns)


def ffn_of(model: ModelSpec, i: int) -> Ffn:
    """Of a layer of a model of one kind."""
    moe = model.moe
    if moe is None or i < moe.n_dense_layers:
        return FeedForward(d_ff=model.d_ff, n_matrices=model.n_ffn_matrices)
    n_active, d_shared = moe.n_active_experts, moe.n_shared_experts * moe.d_expert
    matrices = model.n_ffn_matrices
    return from_fields(Experts, moe, n_active=n_active, d_shared=d_shared, n_matrices=matrices)


def stage_layers(layout: Layout) -> list[LayerGroup]:
    """Layers of the busiest stage, a late one: the dense layers of a model come first.

    Of its layers, rounded down, as many have a window as in the whole model; of those with
    experts likewise. Of classes of layers it is the stage with the most parameters.
    """
    model, n_all = layout.model, layout.n_layers
    kinds = [replace(layout, layer=kind) for kind in kinds_of(model)]
    if model.layers:
        stage = fullest_stage(model.layers, model.order, model.d_model, layout.mesh.n_stages)
        return _classes(kinds, stage)
    n_experts = min(n_all, model.n_layers - model.moe.n_dense_layers) if model.moe else 0
    window = float(model.window.n_tokens) if model.window else inf
    n_windows = model.window.n_layers if model.window else 0
    windowed = n_all * n_windows // model.n_layers
    windowed_experts = n_experts * n_windows // model.n_layers
    windowed_dense = windowed - windowed_experts
    counts = (
        (kinds[0], inf, n_experts - windowed_experts),
        (kinds[0], window, windowed_experts),
        (kinds[-1], inf, n_all - n_experts - windowed_dense),
        (kinds[-1], window, windowed_dense),
    )
    return [LayerGroup(layout=kind, window=w, n_layers=n) for kind, w, n in counts if n]


def _classes(kinds: list[Layout], stage: Sequence[int]) -> list[LayerGroup]:
    """Of a stage, as many layers of each class as it has."""
    groups = []
    for i, kind in enumerate(kinds):
        if n_layers := stage.count(i):
            window = float(getattr(kind.mixer, "n_span_tokens", None) or inf)
            stands = getattr(kind.mixer, "span", "all") == "chunk"
            group = LayerGroup(layout=kind, window=window, n_layers=n_layers, is_chunk=stands)
            groups.append(group)
    return groups
