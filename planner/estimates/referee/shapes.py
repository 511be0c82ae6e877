"""A mesh, and a model laid on it, as the referee sees them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from planner.specs.records import ModelSpec

OVER_HEADS = "heads"  # any other attention is over the batch
N_AXES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RefereeMesh:
    """The devices of one tensor group, and the stages it is repeated in.

    Args:
        axes: devices along each axis.
        wraps: whether each axis closes into a ring.
        is_switch: whether switches join the devices, axis 0 the innermost tier.
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

    @property
    def n_devices(self) -> int:
        """Devices of one tensor group."""
        return prod(self.axes)

    def members(self, group: int) -> list[int]:
        """Axes of a mask that have more than one device."""
        return [axis for axis in range(N_AXES) if group & 1 << axis and self.axes[axis] > 1]

    def size(self, group: int) -> int:
        """Devices along the axes of a mask."""
        return prod(self.axes[axis] for axis in self.members(group))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A model laid on a mesh: the pieces of each tensor that one device has to do with.

    After gathering over `gathered` each group of devices that is left, `rest`, works on its
    own share of the batch. There E is cut over `e_axes` and F and the heads over `f_axes`.
    """

    model: ModelSpec
    mesh: RefereeMesh
    stored: int
    gathered: int
    attention: str
    n_microbatches: int
    weights_format: str

    @property
    def rest(self) -> int:
        return ~self.gathered & 7

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
    def layer_params(self) -> int:
        m = self.model
        ffn = m.n_ffn_matrices * m.d_model * m.d_ff
        queries_and_output = 2 * m.d_model * m.n_heads_served * m.d_head
        keys_and_values = 2 * m.d_model * m.n_kv_heads * m.d_head
        return ffn + queries_and_output + keys_and_values

    def batch_axes(self, n_sequences: int) -> int:
        """Axes over which attention cuts a batch.

        Gathered axes always do. Over batch, as many more as leave every device a sequence,
        the largest product first; of equal products, the first in the order of masks.
        """
        if self.attention == OVER_HEADS:
            return self.gathered
        best = self.gathered
        for group in range(1 << N_AXES):
            keeps_gathered = group & self.gathered == self.gathered
            fits = self.mesh.size(group) <= n_sequences
            if keeps_gathered and fits and self.mesh.size(group) > self.mesh.size(best):
                best = group
        return best
