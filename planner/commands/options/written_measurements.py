"""Every option of `plan measure`, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group

from planner.commands.options.groups import OUTPUT, TABLES, text

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
