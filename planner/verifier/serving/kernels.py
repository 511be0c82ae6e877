"""One run of a kernel on a device, timed by the closed form that its constants were fitted to."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.equations.kernels import FAMILIES
from planner.equations.kernels.families import arguments_of
from planner.specs.records.devices import DeviceSpec
from planner.specs.records.kernels import EngineSpec, Kernel, KernelTable

STATIC = "_static"
"""Ending of a format whose inputs the norm before has quantised."""

STORED = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0 + 4.0 / 128**2,
    "int8": 1.0,
    "llm_int8": 0.999 * 1.0 + 0.001 * 2.0,
    "mxfp4": 0.5 + 1.0 / 32,
    "nvfp4": 0.5 + 1.0 / 16,
    "int4": 0.5 + 2.0 / 128,
    "fp4": 0.5 + 1.0 / 16,
}
"""Bytes of a number of a matrix, with its part of a scale."""

READ = {
    "fp8": 1.0,
    "fp8_block": 1.0 + 4.0 / 128,
    "int8": 1.0,
    "llm_int8": 1.0,
    "nvfp4": 0.5 + 1.0 / 16,
    "fp4": 0.5 + 1.0 / 16,
}
"""Bytes of a number that meets such a matrix, where it is quantised too; 2 of others."""

_MULTIPLIED = {
    "int4": "bf16",
    "mxfp4": "bf16",
    "mxfp4_mxfp8": "fp8",
    "fp8_block": "fp8",
    "nvfp4": "fp4",
}
"""Formats whose peak is that of another."""

UNMEASURED = 0.3
"""Relative error of what has no closed form, `assumed`."""

_PRODUCTS = ("gemm", "grouped_gemm", "experts", "scores")


def stored_bytes(number_format: str) -> float:
    return STORED[number_format.removesuffix(STATIC)]


def read_bytes(number_format: str) -> float:
    return READ.get(number_format.removesuffix(STATIC), 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A kernel that a device runs once, or a message that it sends.

    Args:
        name: what reports call it.
        part: of the layer: kernels that quantise run once for the products of a part, and
            messages hide behind some parts.
        family: of its closed form; of a message, which collective.
        format: of its numbers.
        arguments: of the closed form.
        implied: further ones, which follow from these and the network.
        flop: of one run.
        hbm_bytes: that one run must move.
        sent_bytes: that one device sends.
    """

    name: str
    part: str
    family: str
    format: str = "bf16"
    arguments: Mapping[str, float] = field(default_factory=dict)
    implied: Mapping[str, float] = field(default_factory=dict)
    flop: float = 0.0
    hbm_bytes: float = 0.0
    sent_bytes: float = 0.0


def product(name: str, part: str, m: float, n: float, k: float, number_format: str) -> Run:
    """m rows of k numbers times a matrix of n columns, whose results have 16 bits."""
    weight, read = stored_bytes(number_format), read_bytes(number_format)
    return Run(
        name=name,
        part=part,
        family="gemm",
        format=number_format,
        arguments={"m": m, "n": n, "k": k, "weight_bytes": weight, "input_bytes": read},
        flop=2.0 * m * n * k,
        hbm_bytes=n * k * weight + m * k * read + m * n * 2.0,
    )


def grouped_product(
    name: str,
    part: str,
    rows: float,
    hit: float,
    shape: tuple[float, float],
    number_format: str,
    *,
    reads: bool = False,
) -> Run:
    """Rows that each meet the matrix of their group; `hit` of these are read.

    Args:
        shape: columns and rows of a matrix.
    """
    n, k = shape
    weight, read = stored_bytes(number_format), read_bytes(number_format)
    return Run(
        name=name,
        part=part,
        family="grouped_gemm_prefill" if reads else "grouped_gemm_decode",
        format=number_format,
        arguments={
            "tokens": rows,
            "n_groups_hit": hit,
            "n": n,
            "k": k,
            "weight_bytes": weight,
            "input_bytes": read,
        },
        flop=2.0 * rows * n * k,
        hbm_bytes=hit * n * k * weight + rows * (k * read + n * 2.0),
    )


def moved(name: str, part: str, n_bytes: float, n_kernels: float = 1.0) -> Run:
    """Kernels that read and write numbers once each."""
    arguments = {"n_bytes": n_bytes, "n_kernels": n_kernels}
    return Run(name=name, part=part, family="elementwise", arguments=arguments, hbm_bytes=n_bytes)


def message(name: str, part: str, kind: str, n_bytes: float, n_devices: int) -> Run:
    """A collective of one layer, of a buffer of so many bytes on each device.

    Each device sends what others have not: all but its own share, twice where sums go back.
    """
    share = (n_devices - 1) / n_devices * (2.0 if kind == "all_reduce" else 1.0)
    arguments = {"n_bytes": n_bytes, "n_devices": n_devices}
    return Run(name=name, part=part, family=kind, arguments=arguments, sent_bytes=n_bytes * share)


def has_form(run: Run) -> bool:
    """Whether a closed form times it, as kernels and exchanges of tokens have one."""
    return run.family in FAMILIES


class Kernels:
    """Kernels of a device.

    Args:
        table: what was measured of it.
        engine: that runs them.
    """

    def __init__(self, device: DeviceSpec, table: KernelTable, engine: EngineSpec) -> None:
        self.device, self.table, self.engine = device, table, engine
        self.has_quantising_norms = engine.fuses_quantisation
        self._known_s: dict[tuple[object, ...], float] = {}

    @property
    def has_fused_experts(self) -> bool:
        """Whether experts were measured as one kernel."""
        return any(
            family == "experts" and kernel.fit.n_rows > 0
            for (family, _), kernel in self.table.kernels.items()
        )

    def quantises(self, number_format: str) -> bool:
        """Whether inputs of products are quantised by kernels of their own."""
        is_static = number_format.endswith(STATIC)
        if number_format.removesuffix(STATIC) not in READ or (
            is_static and self.has_quantising_norms
        ):
            return False
        return (
            "quant_fraction" not in self.table.kernel("gemm", self.called(number_format)).constants
        )

    def seconds(self, run: Run) -> float:
        """Of one run; none where it has nothing to do.

        Passes of a deployment have products in common, whatever their contexts: each is timed once.
        """
        key = (run.family, run.format, *run.arguments.items(), *run.implied.items())
        if key not in self._known_s:
            self._known_s[key] = self._seconds(run)
        return self._known_s[key]

    def _seconds(self, run: Run) -> float:
        amounts = (run.arguments[name] for name in ("m", "tokens", "batch", "n_bytes")
                   if name in run.arguments)  # fmt: skip
        if next(amounts) <= 0:
            return 0.0
        form = FAMILIES[run.family]
        known = arguments_of(form.function)
        given = {**run.arguments, **run.implied}
        arguments = {name: value for name, value in given.items() if name in known}
        rates = {"peak_flop_per_s": self.peak(run), "hbm_bytes_per_s": self.device.hbm_bytes_per_s}
        return float(form.seconds(arguments, rates, self.constants(run)))

    def error(self, run: Run) -> float:
        """Relative error of a run's form, of one without any no less than what is assumed."""
        if run.family == "scores":
            return max(self.of_scores().fit.relative_error, UNMEASURED)
        return self.table.kernel(run.family, self.called(run.format)).fit.relative_error

    def roofline_s(self, run: Run) -> float:
        """Of a run without a closed form, at the shares that decode attention attains."""
        shares = self.of_scores().constants
        compute = shares.get("compute_fraction", 1.0) * self.peak(run)
        memory = shares["memory_fraction"] * self.device.hbm_bytes_per_s
        least = max(run.flop / compute, run.hbm_bytes / memory)
        return shares["floor_s"] + least if least > 0 else 0.0

    def of_scores(self) -> Kernel:
        """Whose shares a run without a form attains."""
        return self.table.kernel("decode_attention", self.called("bf16"))

    def source(self, run: Run) -> str:
        """Where the constants of a run come from."""
        return self.table.kernel(run.family, self.called(run.format)).fit.source

    def constants(self, run: Run) -> dict[str, float]:
        """Of the form of a run."""
        constants = dict(self.table.kernel(run.family, self.called(run.format)).constants)
        is_narrow = run.format.endswith(STATIC) and self.has_quantising_norms
        if is_narrow and "quant_fraction" in constants:
            del constants["quant_fraction"]
            plain = self.table.kernel(run.family, "bf16").constants
            constants["floor_s"] = min(constants["floor_s"], plain["floor_s"])
        if "prologue_k" in constants and self.table.n_sms:
            constants.setdefault("n_sms", float(self.table.n_sms))
        return constants

    def called(self, number_format: str) -> str:
        """What tables call a format: `mxfp4` meets 8 bits where the device multiplies these.

        The `fp4` of models is the `nvfp4` of tables.
        """
        name = number_format.removesuffix(STATIC)
        name = "nvfp4" if name == "fp4" else name
        with_eight = name == "mxfp4" and "mxfp4" in self.device.peak_flop_per_s
        return "mxfp4_mxfp8" if with_eight else name

    def peak(self, run: Run) -> float:
        """Of what a run multiplies in: products in their format, all else in 16 bits."""
        return self.peak_of(run.format if run.family.startswith(_PRODUCTS) else "bf16")

    def peak_of(self, number_format: str) -> float:
        """Of what numbers of a format are multiplied in."""
        name = self.called(number_format)
        peaks = self.device.peak_flop_per_s
        wanted = (_MULTIPLIED.get(name, name), name.partition("_")[0], "bf16", "fp16")
        return next(peaks[one] for one in wanted if one in peaks)
