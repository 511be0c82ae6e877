"""Every option of `plan measure` and of `plan calibrate`, which reads its tables, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group

from planner.commands.options.groups import OUTPUT, TABLES, flag, text

_KERNELS = Group("Which kernels", sort_key=1)

USUAL_MODELS = "llama-3.1-8b,llama-3.1-70b,qwen3-30b-a3b"
USUAL_DEGREES = "1,4"
USUAL_BUDGET = "5min"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMeasurement:
    """Options of `plan measure`."""

    device: Annotated[
        str | None,
        text(TABLES, "NAME|FILE", "Device that this machine has; a processor needs none."),
    ] = None
    backend: Annotated[
        str,
        text(TABLES, "NAME", "cuda: the GPU, AMD's too; cpu: this processor, to try it out."),
    ] = "cuda"
    gpus: Annotated[
        str,
        text(TABLES, "N", "GPUs of this node between which collectives are timed too."),
    ] = "1"
    budget: Annotated[str, text(TABLES, "TIME", "Stop after this, with what was timed.")] = (
        USUAL_BUDGET
    )
    model: Annotated[
        str, text(_KERNELS, "NAME|FILE,…", "Models whose kernels are timed; see `plan models`.")
    ] = USUAL_MODELS
    tp: Annotated[str, text(_KERNELS, "N,…", "Devices that divide a model.")] = USUAL_DEGREES
    weights: Annotated[
        tuple[str, ...],
        text(
            _KERNELS,
            "FORMATS",
            "Formats of weights: bf16, fp16, fp8; default: bf16, and fp8 where it is multiplied.",
        ),
    ] = ()
    output: Annotated[
        str | None, text(OUTPUT, "FILE", "Write the table, which `plan calibrate` reads.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCalibration:
    """Options of `plan calibrate`."""

    table: Annotated[
        tuple[str, ...],
        text(TABLES, "FILE|FOLDER", "Tables to read; `--table` itself may be left out."),
    ] = ()
    device: Annotated[str | None, text(TABLES, "NAME|FILE", "Device that was measured.")] = None
    engine: Annotated[
        str | None, text(TABLES, "NAME", "Whose kernels they are: vllm, sglang, deepgemm, ….")
    ] = None
    engine_version: Annotated[str, text(TABLES, "TEXT", "Of the engine.")] = ""
    sms: Annotated[
        str | None,
        text(TABLES, "N", "Multiprocessors of the device; default: as its other tables say."),
    ] = None
    source: Annotated[
        str, text(TABLES, "TEXT", "Where the rows come from; default: the names of the files.")
    ] = ""
    kernels: Annotated[
        str | None,
        text(TABLES, "NAMES", "Of an engine's kernels of experts; default: all but rare ones."),
    ] = None
    output: Annotated[str | None, text(OUTPUT, "FILE", "Write the constants as a kernel file.")] = (
        None
    )
    network: Annotated[
        str | None,
        text(OUTPUT, "FILE", "Write collectives as sections of a topology file."),
    ] = None
    plot: Annotated[
        str | None, text(OUTPUT, "FILE", "Draw predicted against measured time, as SVG.")
    ] = None
    refused: Annotated[bool, flag(OUTPUT, "Name every row that was refused.")] = False
