"""What was measured of a device's kernels: closed forms' constants, with their fits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, TypeVar

from planner.specs.files.tables import Provenance
from planner.specs.records.engine_rules import EngineRule
from planner.specs.validation.hints import LATER
from planner.specs.validation.values import NOT_EMPTY, Duration, Share, between, number, one_of

_T = TypeVar("_T")

MOST_ERROR = 10.0
"""A closed form that misses its rows by more than this factor describes nothing [1]."""

Constant = Annotated[float, number(1e300, "the SI unit of its name")]
Error = Annotated[float, number(MOST_ERROR, "shares, like `0.05` for 5 %")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How well constants describe the rows that they were fitted to.

    Args:
        source: table and version that the rows come from; `assumed` without rows.
        n_rows: rows fitted.
        median_error: of |predicted / measured − 1| [1].
        p90_error: ninetieth percentile of the same [1].
        left_out_median_error: the same for shapes that a fit on the others did not see; None if
            that was not tried [1].
        left_out_p90_error: ninetieth percentile of the same [1].
        left_out: what was left out: `shapes`, or `rows` where there is one shape only.
    """

    source: str
    n_rows: int
    median_error: Error
    p90_error: Error
    left_out_median_error: Error | None = None
    left_out_p90_error: Error | None = None
    left_out: str = "shapes"

    @property
    def relative_error(self) -> float:
        """The honest median: of shapes left out where that is known [1]."""
        left_out = self.left_out_median_error
        return self.median_error if left_out is None else left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Constants of one closed form for one number format.

    Args:
        family: name of the form, a key of `equations.kernels.FAMILIES`.
        format: number format that it runs in, like `bf16`, `fp8`, `fp8_block`; of attention, the
            format of the cache.
        constants: keyword arguments of the form, in SI units.
    """

    family: str
    format: str
    constants: Annotated[Mapping[str, Constant], NOT_EMPTY]
    fit: Fit


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTable:
    """The kernels of one device under one serving engine.

    Args:
        device: name of the device's file.
        engine: `vllm`, `sglang`, `trtllm`, or `deepgemm` and the like for loose kernels.
        version: of the engine.
        kernels: by (family, format).
        n_sms: multiprocessors of the device; 0 if that is not known.
        rivals: kernels that other engines' tables have of the device, by engine.
        measured_by: engines and versions whose measured kernels these are; empty if all of them
            are assumed.
        experts_backend: that was asked for: of several programs that the engine has for routed
            experts, in its own words; empty for the engine's own choice.
    """

    device: str
    engine: str
    version: str
    kernels: Mapping[tuple[str, str], Kernel]
    n_sms: int = 0
    provenance: tuple[Provenance, ...] = ()
    rivals: Mapping[str, Mapping[tuple[str, str], Kernel]] = field(default_factory=dict)
    measured_by: tuple[str, ...] = ()
    experts_backend: str = ""

    def kernel(self, family: str, number: str) -> Kernel:
        """The kernel of a family for a number format, or for the nearest that there is.

        A format with a suffix falls back on the format itself, `fp8_block` on `fp8`; then on
        whatever the family has, `any` before others.

        Raises:
            KeyError: the table has no kernel of the family.
        """
        for form in (number, number.partition("_")[0], "any"):
            if (family, form) in self.kernels:
                return self.kernels[family, form]
        others = [form for name, form in self.kernels if name == family]
        if not others:
            raise KeyError(f"{self.device} under {self.engine} has no kernel `{family}`")
        return self.kernels[family, min(others)]


STATISTICS = ("mean", "median", "mixed")
"""What times of runs are of their requests; `mixed` where runs differ."""

Slowness = Annotated[float, between(0.1, 10.0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCalibration:
    """Constants of one engine on one device for one model, fitted to a user's own serving runs.

    Args:
        engine, device, model: names, as requests have them.
        bytes_slowness: launches and bytes of kernels take as many times as long [1].
        flop_slowness: their arithmetic does [1].
        decode_host_s, decode_sequence_s, prefill_host_s, request_s: what the engine's constants of
            these names become.
        tpot_error, ttft_error: relative standard deviations of its times beyond their kernels' [1].
        n_runs: that constants are fitted to.
        statistic: of the times of runs, one of `STATISTICS`.
        source: where the runs come from.
        tpot_off, ttft_off: mean |predicted / measured - 1| of the runs by the files that ship [1].
        tpot_left_out, ttft_left_out: the same, each run by constants of the others; None of one
            run [1].
        file: that says so; empty before it is written.
    """

    engine: str
    device: str
    model: str
    bytes_slowness: Slowness
    flop_slowness: Slowness
    decode_host_s: Duration
    decode_sequence_s: Duration
    prefill_host_s: Duration
    request_s: Duration
    tpot_error: Error
    ttft_error: Error
    n_runs: int
    statistic: Annotated[str, one_of("statistic", STATISTICS)]
    source: str
    tpot_off: Error
    ttft_off: Error
    tpot_left_out: Error | None = None
    ttft_left_out: Error | None = None
    file: str = ""


ENGINE_CONSTANTS = ("decode_host_s", "decode_sequence_s", "prefill_host_s", "request_s")
"""Fields of an engine that a calibration of serving runs sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """A serving engine: what it spends besides kernels, and how it shares memory and batches.

    Args:
        memory_fraction: share of a device's memory that weights, cache and buffers may take.
        workspace_bytes: buffers, graphs and the runtime inside that share, besides activations.
        n_block_tokens: tokens of one block of the paged cache.
        n_chunk_tokens: most tokens of one step where prefill is chunked into decode steps.
        prefill_host_s: time of a prefill step that no kernel fills.
        prefill_experts_s: the same of each of its layers with experts; 0 where kernels of prompts
            are launched ahead of the device.
        prefill_scans_s: of each layer besides that carries a state over the prompt, or chooses by
            an indexer of its own what tokens attend to.
        decode_host_s: the same of a decode step, whatever the model: 0 where the next step is
            scheduled while the device works.
        decode_sequence_s: the same of each sequence in it, which is sampled and handed out.
        layer_gap_s: the same of each of its layers.
        inner_norms_s: of each layer with norms between its projections besides, which are kernels
            of their own; 0 where they are fused with what follows.
        fuses_quantisation: the norm before a product quantises its input, where scales are static.
        needs_input_scales: 8 and 4 bits of floats are read from checkpoints that have the scales of
            inputs, never made from 16 bits.
        n_small_kernels: elementwise kernels of one layer: norms, rotations, activations.
        request_s: of a request before its first pass: it is received, read, put in line.
        request_token_s: the same for each token of its prompt.
        n_polled_rounds: decode rounds between two looks for new requests.
        composes_ahead: a pass is composed while the one before it runs.
        n_own_blocks: blocks of the cache that no request gets.
        watermark_fraction: of all blocks, those that stay free when a request begins beside others.
        caches_prefixes: blocks that nobody holds are found again by what is in them.
        reserved_fraction: of the output that a request has yet to write, the share that it has
            to find room for when it begins; the rest grows where there is room, and a request
            that finds none begins again.
        retracts: who begins and who loses its place go by SGLang's clauses: `Station.retracts`.
        mixes_prefill: chunks of prompts ride on decode passes; without, prompts are read alone
            and first.
        message_share: share of the multiprocessors that dispatch and combine take while prompts
            are read in two overlapped micro-batches.
        n_balanced_groups: fewest groups of experts that are levelled by copies, unless that is
            said otherwise; 0 of an engine whose groups never are.
        n_redundant_experts: copies of a layer that they have then, at least.
        version: whose kernels times were measured with, mostly.
        started_version: whose flags start it, and whose rules these are; empty if nobody says.
        rules: what it starts.
        lifted: names of rules that a user's file lifts; they are not among those.
        rules_file: that file, which may have added some; empty without.
        calibration: that set constants of this engine and of its kernels; None without.
    """

    name: str
    title: str
    version: str
    memory_fraction: float
    workspace_bytes: float
    n_block_tokens: int
    n_chunk_tokens: int
    prefill_host_s: Duration
    n_small_kernels: int
    decode_host_s: Duration = 0.0
    decode_sequence_s: Duration = field(default=0.0, metadata={LATER: True})
    layer_gap_s: Duration = 0.0
    inner_norms_s: Duration = 0.0
    prefill_experts_s: Duration = 0.0
    prefill_scans_s: Duration = 0.0
    fuses_quantisation: bool = False
    needs_input_scales: bool = False
    request_s: Duration = 0.0
    request_token_s: Duration = 0.0
    n_polled_rounds: int = 1
    composes_ahead: bool = False
    n_own_blocks: int = 0
    watermark_fraction: float = 0.0
    caches_prefixes: bool = False
    reserved_fraction: float = 1.0
    retracts: bool = False
    mixes_prefill: bool = True
    message_share: Share = 0.0
    n_balanced_groups: int = 0
    n_redundant_experts: int = 0
    started_version: str = ""
    rules: tuple[EngineRule, ...] = ()
    lifted: tuple[str, ...] = ()
    rules_file: str = ""
    provenance: tuple[Provenance, ...] = ()
    calibration: ServingCalibration | None = field(default=None, metadata={LATER: True})


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTables:
    """What times and holds of an engine follow from on one device."""

    engine: EngineSpec
    kernels: KernelTable


def inner_records(
    record: object, kind: type[_T], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], _T]]:
    """Records of a kind in an answer, and where they stand."""
    if isinstance(record, kind):
        yield path, record
    elif isinstance(record, tuple | list):
        for i, inner in enumerate(record):
            yield from inner_records(inner, kind, (*path, str(i)))
    elif is_dataclass(record):
        for one in fields(record):
            yield from inner_records(getattr(record, one.name), kind, (*path, one.name))
