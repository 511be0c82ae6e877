"""What the files may say, section by section: the shape of TOML, checked by pydantic.

A value of the world is a table `{ value = …, source = … }`. Where a whole section
comes from one place, the section has the `source`, and its values may stand alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Generic, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from planner.specs.values import (
    Algorithm,
    Block,
    Bytes,
    BytesPerSecond,
    Count,
    Date,
    Exponent,
    FfnMatrices,
    FlopPerSecond,
    Format,
    Fraction,
    How,
    Loss,
    Network,
    Number,
    RunFormat,
    Seconds,
    SpareBytes,
    SpareCount,
    Text,
    Unit,
    UsdPerHour,
    Watts,
    not_empty,
)

DEFAULT_TOLERANCE = 0.02
"""Relative difference between parameters counted and published; of active ones always."""

T = TypeVar("T")


class Strict(BaseModel):
    """A table whose keys are all known and whose values are of the type written.

    `named` says what a record calls a key, where it is not the key with the unit behind it.
    """

    named: ClassVar[Mapping[str, str]] = {}

    # Deferred, a section is compiled once, inside its file, and not also by itself.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class Sourced(Strict, Generic[T]):
    """A value of the world and where it comes from; a value alone has no source."""

    value: T
    source: Text
    note: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _value_alone(cls, raw: object) -> object:
        return raw if isinstance(raw, dict) else {"value": raw}


class Section(Strict):
    """A table whose `source`, if it has one, covers the values that stand alone."""

    plain: ClassVar[frozenset[str]] = frozenset({"source"})
    source: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _share_source(cls, raw: object) -> object:
        if not isinstance(raw, dict) or not isinstance(raw.get("source"), str):
            return raw
        covered = cls.model_fields.keys() - cls.plain
        return {
            key: {"value": value, "source": raw["source"]}
            if key in covered and not isinstance(value, dict)
            else value
            for key, value in raw.items()
        }


@cache
def field_names(schema: type[Strict]) -> Mapping[str, str]:
    """By key of a section the field of a record that holds its value: `hop_s` for `hop`."""
    names = {key: schema.named.get(key) or _with_unit(schema, key) for key in schema.model_fields}
    return {key: name for key, name in names.items() if key != "source"}


def _with_unit(schema: type[Strict], key: str) -> str:
    unit = unit_of(schema.model_fields[key].annotation)
    if unit is None or key.endswith(unit.ending):
        return key
    return key.removesuffix("bandwidth") + unit.ending


def unit_of(annotation: Any) -> Unit | None:  # noqa: ANN401
    """The unit of a value, or of each of a list, sourced or alone; None without."""
    generic = getattr(annotation, "__pydantic_generic_metadata__", {"args": ()})
    inside = (*get_args(annotation), *getattr(annotation, "__metadata__", ()), *generic["args"])
    units = (one if isinstance(one, Unit) else unit_of(one) for one in inside)
    return next((unit for unit in units if unit), None)


class DeviceHead(Strict):
    name: Text
    title: Text
    description: Text = ""


class Memory(Section):
    hbm: Sourced[Bytes]
    hbm_bandwidth: Sourced[BytesPerSecond]
    reserve: Sourced[SpareBytes]


class DatedPrice(Sourced[UsdPerHour]):
    date: Date


class Price(Strict):
    on_demand: DatedPrice


class Power(Section):
    tdp: Sourced[Watts]


class Attainable(Section):
    compute_fraction: Sourced[Fraction]
    hbm_fraction: Sourced[Fraction]
    layer_overhead: Sourced[Seconds]
    roofline_exponent: Sourced[Exponent]


class DeviceFile(Strict):
    device: DeviceHead
    peak: dict[Format, Sourced[FlopPerSecond]] = Field(min_length=1)
    memory: Memory
    price: Price
    power: Power | None = None
    attainable: Attainable


class ClusterHead(Strict):
    name: Text
    title: Text
    device: Text
    description: Text = ""
    examples: list[Text] = []


class Torus(Section):
    plain = frozenset({"source", "shape"})
    shape: list[Count] = Field(min_length=3, max_length=3)
    link_bandwidth: Sourced[BytesPerSecond]
    hop: Sourced[Seconds]
    wrap_multiple: Sourced[Count]
    slice_dims: Sourced[Annotated[list[Count], AfterValidator(not_empty)]]
    wraps_each_axis: Sourced[bool] | None = None
    activation_network: Sourced[Network]
    bulk_network: Sourced[Network]


class Tier(Section):
    named = {"attainable_fraction": "fraction"}
    bandwidth: Sourced[BytesPerSecond]
    latency: Sourced[Seconds]
    attainable_fraction: Sourced[Fraction]


class TwoRegimes(Section):
    n_devices: Sourced[Annotated[list[Count], AfterValidator(not_empty)]]
    short_latency: Sourced[list[Seconds]]
    short_bandwidth: Sourced[list[BytesPerSecond]]
    long_latency: Sourced[list[Seconds]]
    long_bandwidth: Sourced[list[BytesPerSecond]]


class Measured(Strict):
    all_reduce: TwoRegimes
    all_gather: TwoRegimes
    reduce_scatter: TwoRegimes
    all_to_all: TwoRegimes


class ScaleUp(Tier):
    plain = frozenset({"source", "measured"})
    pair_bandwidth: Sourced[BytesPerSecond] | None = None
    measured: Measured | None = None


class NcclProtocol(Section):
    plain = frozenset({"source", "name"})
    name: Text
    algorithm: Sourced[Algorithm]
    scale_up_hop: Sourced[Seconds]
    scale_out_hop: Sourced[Seconds]
    base: Sourced[Seconds]
    bandwidth_fraction: Sourced[Fraction]


class Nodes(Section):
    plain = frozenset({"source", "n_nodes", "scale_up", "scale_out", "protocol"})
    n_nodes: Count
    n_devices_per_node: Sourced[Count]
    activation_network: Sourced[Network]
    bulk_network: Sourced[Network]
    scale_up: ScaleUp
    scale_out: Tier
    protocol: list[NcclProtocol] = []


class Linked(Section):
    plain = frozenset({"source", "devices", "switches"})
    devices: Annotated[list[Text], AfterValidator(not_empty)]
    switches: list[Text] = []
    activation_network: Sourced[Network]
    bulk_network: Sourced[Network]


class LinkEntry(Section):
    plain = frozenset({"source", "a", "b"})
    a: Text
    b: Text
    bandwidth: Sourced[BytesPerSecond]
    latency: Sourced[Seconds]


class ClusterFile(Strict):
    cluster: ClusterHead
    price: Price | None = None
    torus: Torus | None = None
    nodes: Nodes | None = None
    linked: Linked | None = None
    link: list[LinkEntry] = []


class ModelHead(Strict):
    name: Text
    title: Text
    repository: Text = ""
    family: Text = ""
    description: Text = ""


class Shape(Section):
    named = {"context": "n_context_tokens"}
    n_layers: Sourced[Count]
    d_model: Sourced[Count]
    d_ff: Sourced[Count]
    n_heads: Sourced[Count]
    n_heads_served: Sourced[Count] | None = None
    n_kv_heads: Sourced[Count]
    d_head: Sourced[Count]
    vocab_size: Sourced[Count]
    n_ffn_matrices: Sourced[FfnMatrices]
    block: Sourced[Block]
    tied_embeddings: Sourced[bool]
    norms_heads: Sourced[bool] | None = None
    context: Sourced[Count] | None = None


class Moe(Section):
    n_experts: Sourced[Count]
    n_active_experts: Sourced[Count]
    n_shared_experts: Sourced[SpareCount] | None = None
    d_expert: Sourced[Count]
    n_dense_layers: Sourced[SpareCount] | None = None
    n_groups: Sourced[Count] | None = None
    n_active_groups: Sourced[Count] | None = None


class Mla(Section):
    d_kv_latent: Sourced[Count]
    d_q_latent: Sourced[Count] | None = None
    d_rope: Sourced[Count]
    d_nope: Sourced[Count]
    d_value: Sourced[Count]


class Window(Section):
    n_tokens: Sourced[Count]
    n_layers: Sourced[Count]


class Mtp(Section):
    named = {"n_params": "n_params_published"}
    n_modules: Sourced[Count]
    n_params: Sourced[Number] | None = None


SomeFormats = Annotated[list[Format], AfterValidator(not_empty)]


class Published(Section):
    weights: Sourced[SomeFormats]
    kv: Sourced[Format]


class Formats(Section):
    plain = frozenset({"source", "published"})
    published: Published
    weights: Sourced[SomeFormats]
    kv: Sourced[SomeFormats]
    activation: Sourced[Format]


class Checkpoint(Section):
    plain = frozenset({"source", "repository"})
    repository: Text = ""
    weights: Sourced[RunFormat]
    experts: Sourced[RunFormat] | None = None


class Alias(Strict):
    repository: Text
    source: Text
    published: Format | None = None
    weights: RunFormat | None = None
    kv: Format | None = None


class Check(Strict):
    n_params: Sourced[Number]
    n_params_active: Sourced[Number] | None = None
    tolerance: Fraction = DEFAULT_TOLERANCE


class Variant(Section):
    of: Sourced[Text]
    how: Sourced[How]
    quality: Sourced[Text]
    quality_loss: Sourced[Loss] | None = None
    n_denoising_steps: Sourced[Count] | None = None
    n_block_tokens: Sourced[Count] | None = None


class ModelFile(Strict):
    model: ModelHead
    variant: Variant | None = None
    shape: Shape
    moe: Moe | None = None
    mla: Mla | None = None
    window: Window | None = None
    mtp: Mtp | None = None
    formats: Formats
    checkpoints: dict[Format, Checkpoint] = {}
    alias: list[Alias] = []
    quality: dict[Format, Sourced[Loss]] = {}
    kv_quality: dict[Format, Sourced[Loss]] = {}
    check: Check
