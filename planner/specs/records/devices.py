"""What the files say, as frozen records in SI units: devices, clusters, workloads; and models.

Bandwidth is per device and one way, always. `provenance` lists where each value
comes from; a value without a published source says `assumed`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from planner.specs.files.tables import Provenance
from planner.specs.records.architecture import Architecture
from planner.specs.records.models import FORMAT_BYTES, Format, ModelSpec
from planner.specs.records.served_formats import NUMBER_FORMATS
from planner.specs.validation.hints import LATER, computed
from planner.specs.validation.values import NOT_EMPTY, Date, Sequences, Share, between, one_of

__all__ = ["FORMAT_BYTES", "ModelSpec", "Provenance"]
"""Of other modules, for those who have them from here."""

Network = Annotated[
    str, one_of("network convention", ("ring", "axis", "flat", "tree", "two-regime", "nccl"))
]
STORES = ("device", "host")
Store = Annotated[str, one_of("store", STORES)]
Algorithm = Annotated[str, one_of("algorithm", ("tree", "ring"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """An accelerator: datasheet values, and the fractions of them that are attained.

    None where nobody says: `tdp_w`, its power as supplied; `host_bytes_per_s`, what it reads of the
    memory of its host, one way, as attained.
    `what_if` has the factors by which it, its pool and their kernels are other than as files say.
    """

    name: str
    title: str
    peak_flop_per_s: Annotated[Mapping[Format, float], NOT_EMPTY]
    hbm_bytes: float
    hbm_bytes_per_s: float
    reserve_bytes: float
    usd_per_hour: float
    price_date: Date
    compute_fraction: float
    hbm_fraction: float
    layer_overhead_s: float
    roofline_exponent: Annotated[float, between(1, 100)]
    tdp_w: float | None = None
    host_bytes_per_s: float | None = field(default=None, metadata={LATER: True})
    provenance: tuple[Provenance, ...] = ()
    what_if: Mapping[str, float] = field(default_factory=dict, metadata={LATER: True})

    @property
    def formats(self) -> tuple[str, ...]:
        """Number formats that it multiplies; weights in any other are converted first."""
        return tuple(self.peak_flop_per_s)

    def multiplies(self, number_format: str) -> str | None:
        """The format in which weights of a format are multiplied: its own, or else 16 bits.

        Weights that the device does not multiply are read as they are and widened on the way to
        its units: fewer bytes, no more arithmetic. None where there is nothing to widen them to.

        Source: vLLM, quantization hardware support: fp8 on Ampere and fp4 on Hopper are served by
        Marlin kernels, of weights alone, at the rate of 16 bits.
        """
        made_of = NUMBER_FORMATS.get(number_format)
        known = (number_format, made_of.main if made_of else "", "bf16", "fp16")
        return next((name for name in known if name in self.peak_flop_per_s), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorusFabric:
    """A torus of devices, cut into slices.

    Args:
        shape: devices along each of three axes.
        link_bytes_per_s: one link, one direction.
        hop_s: latency from one device to the next.
        wrap_multiple: a slice wraps around only where each of its dimensions is a multiple of it.
        wraps_each_axis: an axis wraps around where its own dimension is such a multiple,
            whatever the others are.
        slice_dims: dimensions that a slice may have.
        activation_network: convention by which activation collectives are costed.
        bulk_network: convention by which gathers of weights are costed.
    """

    shape: tuple[int, int, int]
    link_bytes_per_s: float
    hop_s: float
    wrap_multiple: int
    slice_dims: Annotated[tuple[int, ...], NOT_EMPTY]
    activation_network: Network
    bulk_network: Network
    wraps_each_axis: bool = False

    @property
    def n_devices(self) -> int:
        a, b, c = self.shape
        return a * b * c


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRegimes:
    """One collective as measured: the faster of two forms, latency + bytes / bandwidth.

    One value of each tuple for each group size. The bytes are those of the whole buffer of a
    device: gathered, before it is scattered, reduced, or exchanged.
    """

    n_devices: Annotated[tuple[int, ...], NOT_EMPTY]
    short_latency_s: tuple[float, ...]
    short_bytes_per_s: tuple[float, ...]
    long_latency_s: tuple[float, ...]
    long_bytes_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCollectives:
    """What the collectives inside one node were measured to take."""

    all_reduce: TwoRegimes
    all_gather: TwoRegimes
    reduce_scatter: TwoRegimes
    all_to_all: TwoRegimes


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclProtocol:
    """One way in which NCCL sends: what it costs to start, to hop, and of the bandwidth.

    Args:
        algorithm: `tree` or `ring`; it says how many hops a message makes.
    """

    name: str
    algorithm: Algorithm
    scale_up_hop_s: float
    scale_out_hop_s: float
    base_s: float
    bandwidth_fraction: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesFabric:
    """Nodes with a scale-up fabric inside and a switched scale-out fabric between.

    Args:
        scale_up_bytes_per_s: what one device sends inside its node, to all others together.
        scale_up_pair_bytes_per_s: what it sends to one other, where each pair has links of
            its own; None where a switch lets it send everything to one.
        scale_up_measured: what the convention `two-regime` reads.
        protocols: what the convention `nccl` chooses from.
        host_bytes: memory of the host of a node; None where nobody says.
    """

    n_nodes: int
    n_devices_per_node: int
    scale_up_bytes_per_s: float
    scale_up_latency_s: float
    scale_up_fraction: float
    scale_out_bytes_per_s: float
    scale_out_latency_s: float
    scale_out_fraction: float
    activation_network: Network
    bulk_network: Network
    scale_up_pair_bytes_per_s: float | None = None
    scale_up_measured: MeasuredCollectives | None = None
    protocols: tuple[NcclProtocol, ...] = ()
    host_bytes: float | None = field(default=None, metadata={LATER: True})

    @property
    def n_devices(self) -> int:
        return self.n_nodes * self.n_devices_per_node

    def group_scale_up_bytes_per_s(self, n_devices: int) -> float:
        """What one device sends to a group of `n_devices` in its node, itself among them."""
        if self.scale_up_pair_bytes_per_s is None:
            return self.scale_up_bytes_per_s
        to_the_others = max(1, n_devices - 1) * self.scale_up_pair_bytes_per_s
        return min(self.scale_up_bytes_per_s, to_the_others)


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

    devices: Annotated[tuple[str, ...], NOT_EMPTY]
    links: tuple[Link, ...]
    activation_network: Network
    bulk_network: Network

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

    @computed
    def n_devices(self) -> int:
        return self.fabric.n_devices


MOST_TOKENS = 10**8
Tokens = Annotated[int, between(1, MOST_TOKENS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a request looks like: tokens read, tokens written.

    Args:
        hit_fraction: share of the input that an engine's prefix cache already has, like the former
            turns of a conversation; nobody else has them, so that they take room as others do.
        n_shared_tokens: first tokens that the prompts of all requests have in common.
        n_samples: answers that are drawn from one prompt, each of `n_output_tokens`.
        offload: where hits lie that are not shared: on the `device`, or its `host`.
    """

    n_input_tokens: Tokens
    n_output_tokens: Tokens
    hit_fraction: float = field(default=0.0, metadata={LATER: True})
    n_shared_tokens: int = field(default=0, metadata={LATER: True})
    n_samples: Sequences = field(default=1, metadata={LATER: True})
    offload: Store = field(default=STORES[0], metadata={LATER: True})

    @property
    def n_written_tokens(self) -> int:
        """Tokens of all answers to one request."""
        return self.n_output_tokens * self.n_samples

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


AnyModel = ModelSpec | Architecture
"""A model as the layouts shard it, or layer by layer as engines run it."""
