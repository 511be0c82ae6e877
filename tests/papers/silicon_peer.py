"""What AIConfigurator 0.12 predicts for the rows of `silicon.py`: both are judged on the same.

    python -m tests.papers.silicon_peer        where `aiconfigurator==0.12.0` is installed

writes `tests/data/silicon_peer.csv`: the row's name, its predicted TTFT and TPOT [ms]. A row that
the program refuses is not in it. Each is asked with the number formats that the row states; where
it has no table of them, with those that it infers from the model. Its database is its current one,
as its users have it, and not that of the engine's version in the row.
"""

from __future__ import annotations

import contextlib
import csv
import io
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tests.papers.silicon import CONFIG_OF, SELECTION, Row, exclusion, read_rows, whole_file

WRITTEN = Path(__file__).parents[1] / "data" / "silicon_peer.csv"

ALIASES = {
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "zhipuai/GLM-5": "zai-org/GLM-5-FP8",
}
"""Names that it knows models by, where they differ from the file's."""


def asked(entry: dict[str, str], row: Row, formats: dict[str, str]) -> dict[str, object]:
    """Keywords of `cli_estimate`."""
    return {
        "backend_name": row.engine,
        "backend_version": "current",
        "isl": row.n_input,
        "osl": row.n_output,
        "batch_size": row.batch,
        "tp_size": row.tensor,
        "pp_size": int(entry["pp_size"] or 1),
        "attention_dp_size": row.data,
        **({} if row.is_dense else {"moe_tp_size": row.expert_tensor, "moe_ep_size": row.expert}),
        **formats,
    }


def answer(estimate: Callable[..., object], entry: dict[str, str], row: Row) -> object | None:
    """With the row's formats, or else with those that it infers."""
    stated = {
        key: entry[key] for key in ("gemm_quant_mode", "moe_quant_mode") if entry[key].strip()
    }
    name = ALIASES.get(row.model, row.model)
    if row.short == "GLM-5" and row.weights == "nvfp4":
        name = "nvidia/GLM-5-NVFP4"
    for formats in (stated, {}) if stated else ({},):
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            return estimate(name, row.system, **asked(entry, row, formats))
    return None


def main() -> None:
    from aiconfigurator.cli.api import cli_estimate  # an optional program, see above

    logging.disable(logging.CRITICAL)
    path = whole_file() or SELECTION
    rows = {row.name: row for row in read_rows(path) if not exclusion(row)}
    with path.open(encoding="utf-8", newline="") as file:
        entries = [one for one in csv.DictReader(file) if one["id"] in rows]
    found = []
    for number, entry in enumerate(entries):
        got = answer(cli_estimate, entry, rows[entry["id"]])
        if got is not None:
            found.append((entry["id"], f"{got.ttft:.6g}", f"{got.tpot:.6g}"))
        if os.isatty(2):
            print(
                f"\r{number + 1} of {len(entries)}, {len(found)} answered", end="", file=sys.stderr
            )
    with WRITTEN.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("id", "ttft_ms", "tpot_ms"))
        writer.writerows(sorted(set(found)))
    models = len({row.model for row in rows.values()} & set(CONFIG_OF))
    print(f"{len(found)} of {len(entries)} rows of {models} models answered")


if __name__ == "__main__":
    main()
