"""What AIConfigurator 0.12 predicts for the rows of S and X: both are judged on the same.

    python -m research.sets.peer        where `aiconfigurator==0.12.0` is installed

writes `tests/data/serving/peer.csv`: the row's name, its predicted TTFT and TPOT [ms]. A row that
the program refuses, or of a device that it does not know, is not in it. Each is asked with the
lengths that the row's harness sends on average, as the planner is, and with the number formats
that the row states; where it has no table of them, with those that it infers from the model. Its
database is its current one, as its users have it, and not that of the engine's version in the row.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from collections.abc import Callable
from functools import cache

import numpy as np

from research.sets.folds import rows
from research.sets.rows import Served, Table

PEER = Table(name="peer", columns=("row", "ttft_ms", "tpot_ms"))

SYSTEMS = {"h100-sxm": "h100_sxm", "h200": "h200_sxm", "b200": "b200_sxm", "b300": "b300_sxm"}
SYSTEMS |= {"gb200": "gb200"}

ALIASES = {
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/Meta-Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "zhipuai/GLM-5": "zai-org/GLM-5-FP8",
    "nvidia/Qwen3-32B-NVFP4": "Qwen/Qwen3-32B",
    "nvidia/DeepSeek-R1-NVFP4": "deepseek-ai/DeepSeek-R1",
    "nvidia/DeepSeek-V3.1-NVFP4": "deepseek-ai/DeepSeek-V3",
}
"""Names that it knows models by, where they differ from the source's."""


def asked(row: Served, formats: dict[str, str]) -> dict[str, object]:
    """Keywords of `cli_estimate`."""
    share = row.series.mean_length
    experts = {"moe_tp_size": row.expert_tensor, "moe_ep_size": row.expert}
    return {
        "backend_name": row.series.engine,
        "backend_version": "current",
        "isl": round(share * row.n_input),
        "osl": round(share * row.n_output),
        "batch_size": max(1, round(row.batch)),
        "tp_size": row.tensor,
        "pp_size": 1,
        "attention_dp_size": row.data,
        **({} if row.series.is_dense else experts),
        **formats,
    }


def answer(estimate: Callable[..., object], row: Served) -> object | None:
    """With the row's formats, or else with those that it infers."""
    series = row.series
    named = {"gemm_quant_mode": series.weights, "moe_quant_mode": series.experts}
    stated = {key: value for key, value in named.items() if value}
    name = ALIASES.get(series.checkpoint, series.checkpoint)
    if series.model == "GLM-5" and series.weights == "nvfp4":
        name = "nvidia/GLM-5-NVFP4"
    for formats in (stated, {}) if stated else ({},):
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            return estimate(name, SYSTEMS[series.gpu], **asked(row, formats))
    return None


@cache
def peer_times() -> dict[str, tuple[float, float]]:
    """What it predicts, (TTFT, TPOT) by the name of a row [ms]."""
    return {one["row"]: (float(one["ttft_ms"]), float(one["tpot_ms"])) for one in PEER.read()}


def main() -> None:
    from aiconfigurator.cli.api import cli_estimate  # an optional program, see above

    logging.disable(logging.CRITICAL)
    known = [row for row in rows() if row.series.gpu in SYSTEMS]
    found = []
    for number, row in enumerate(known):
        got = answer(cli_estimate, row)
        if got is not None and np.isfinite([got.ttft, got.tpot]).all():
            found.append(
                {"row": row.name, "ttft_ms": f"{got.ttft:.6g}", "tpot_ms": f"{got.tpot:.6g}"}
            )
        if os.isatty(2):
            print(f"\r{number + 1} of {len(known)}", end="", file=sys.stderr)
    PEER.write(found)
    print(f"{len(found)} of {len(known)} rows answered")


if __name__ == "__main__":
    main()
