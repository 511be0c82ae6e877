"""What the files say, as frozen records in SI units.

Bandwidth is per device and one way, always. `provenance` lists where each value
comes from; a value without a published source says `assumed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ASSUMED = "assumed"

FORMAT_BYTES: Mapping[str, float] = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}
"""Bytes of one number, by format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where one value of a file comes from: a source, or `assumed`."""

    key: str
    source: str

    @property
    def is_assumed(self) -> bool:
        return self.source == ASSUMED


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """An accelerator: datasheet values, and the fractions of them that are attained."""

    name: str
    title: str
    peak_flop_per_s: Mapping[str, float]
    hbm_bytes: float
    hbm_bytes_per_s: float
    reserve_bytes: float
    usd_per_hour: float
    price_date: str
    compute_fraction: float
    hbm_fraction: float
    layer_overhead_s: float
    roofline_exponent: float
    provenance: tuple[Provenance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TorusFabric:
    """A torus of devices, cut into slices.

    Args:
        shape: devices along each of three axes.
        link_bytes_per_s: one link, one direction.
        hop_s: latency from one device to the next.
        wrap_multiple: a slice wraps around only where each of its dimensions is a multiple of it.
        slice_dims: dimensions that a slice may have.
        activation_network: convention by which activation collectives are costed.
        bulk_network: convention by which gathers of weights are costed.
    """

    shape: tuple[int, int, int]
    link_bytes_per_s: float
    hop_s: float
    wrap_multiple: int
    slice_dims: tuple[int, ...]
    activation_network: str
    bulk_network: str

    @property
    def n_devices(self) -> int:
        a, b, c = self.shape
        return a * b * c


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesFabric:
    """Nodes with a switched scale-up fabric inside and a switched scale-out fabric between."""

    n_nodes: int
    n_devices_per_node: int
    scale_up_bytes_per_s: float
    scale_up_latency_s: float
    scale_up_fraction: float
    scale_out_bytes_per_s: float
    scale_out_latency_s: float
    scale_out_fraction: float
    activation_network: str
    bulk_network: str

    @property
    def n_devices(self) -> int:
        return self.n_nodes * self.n_devices_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One listed connection between two devices or switches; bandwidth one way."""

    a: str
    b: str
    bytes_per_s: float
    latency_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedFabric:
    """Devices and links listed one by one, for what no pattern describes."""

    devices: tuple[str, ...]
    links: tuple[Link, ...]
    activation_network: str
    bulk_network: str

    @property
    def n_devices(self) -> int:
        return len(self.devices)


Fabric = TorusFabric | NodesFabric | LinkedFabric


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """A pool of devices to plan on."""

    name: str
    title: str
    device: DeviceSpec
    fabric: Fabric
    usd_per_hour: float
    provenance: tuple[Provenance, ...] = ()

    @property
    def n_devices(self) -> int:
        return self.fabric.n_devices


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A decoder-only Transformer to serve.

    `n_heads_served` counts the heads as deployed: published heads may be padded so
    that they divide over a mesh. All work and memory count padded heads; MFU counts
    the published parameters.
    """

    name: str
    title: str
    n_layers: int
    d_model: int
    d_ff: int
    n_heads: int
    n_heads_served: int
    n_kv_heads: int
    d_head: int
    vocab_size: int
    n_ffn_matrices: int
    block: str
    tied_embeddings: bool
    n_params_published: float
    weights_formats: tuple[str, ...]
    kv_format: str
    activation_format: str
    provenance: tuple[Provenance, ...] = ()

    @property
    def n_params(self) -> int:
        """Parameters as published, counted from the shape."""
        return self.n_layers * self._layer_params(self.n_heads) + self.embedding_params

    @property
    def n_params_served(self) -> int:
        """Parameters as deployed, padded heads included."""
        return self.n_layers * self.layer_params_served + self.embedding_params

    @property
    def layer_params_served(self) -> int:
        return self._layer_params(self.n_heads_served)

    @property
    def embedding_params(self) -> int:
        return self.vocab_size * self.d_model * (1 if self.tied_embeddings else 2)

    @property
    def n_ffn_inputs(self) -> int:
        """FFN matrices that read the residual stream: two if gated, one if plain."""
        return self.n_ffn_matrices - 1

    @property
    def is_parallel(self) -> bool:
        """Attention and FFN read the same input, so that their collectives are shared."""
        return self.block == "parallel"

    @property
    def d_query(self) -> int:
        return self.n_heads_served * self.d_head

    @property
    def d_kv(self) -> int:
        """Width of the keys of one token in one layer; the values are as wide."""
        return self.n_kv_heads * self.d_head

    @property
    def kv_bytes_per_token(self) -> float:
        """Keys and values of one token in all layers."""
        return self.n_layers * 2 * self.d_kv * FORMAT_BYTES[self.kv_format]

    def _layer_params(self, n_heads: int) -> int:
        ffn = self.n_ffn_matrices * self.d_model * self.d_ff
        attention = 2 * self.d_model * (n_heads * self.d_head + self.d_kv)
        return ffn + attention


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a request looks like: tokens read, tokens written."""

    n_input_tokens: int
    n_output_tokens: int

    @property
    def n_decode_steps(self) -> int:
        """Decode passes of one request: prefill yields the first output token."""
        return self.n_output_tokens - 1

    @property
    def n_cached_tokens(self) -> int:
        """Tokens whose keys and values must be held when the request ends."""
        return self.n_input_tokens + self.n_output_tokens

    @property
    def mean_decode_context(self) -> float:
        """Cached tokens that a decode step reads, averaged over the steps."""
        return self.n_input_tokens + (self.n_output_tokens + 1) / 2
