"""Rows as a user types them: the command of each, and what it answers.

    python -m research.sets typed    the command of each row that is compared

Options state what the source publishes: degrees, formats of the checkpoint, tokens of a pass and
rounds between two looks as the server's script has them, requests in flight, and the client. What
the source does not say is left to defaults.
"""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout

from planner.commands.cli import main
from planner.specs.files.engines import load_engine
from research.sets.predicted import CONFIGS, formats
from research.sets.rows import CLIENTS, Served
from research.sets.servers import n_chunk_tokens, n_polled_rounds


def words(row: Served) -> list[str]:
    """What follows `plan`."""
    series, chosen = row.series, formats(row)
    engine = load_engine(series.engine)
    chunk, polled = n_chunk_tokens(row, engine), n_polled_rounds(row)
    options: dict[str, object] = {
        "--model": CONFIGS / f"{series.model}_config.json",
        "--device": series.gpu,
        "--engine": series.engine,
        "--tp": row.tensor,
        "--dp": row.data if row.data > 1 else "",
        "--ep": "" if series.is_dense else row.expert,
        "--weights": chosen.weights,
        "--experts": "" if series.is_dense else chosen.experts,
        "--kv": chosen.cache,
        "--chunk": chunk if chunk != engine.n_chunk_tokens else "",
        "--polled": polled if polled != engine.n_polled_rounds else "",
        "--input": row.n_input,
        "--output": row.n_output,
        "--in-flight": row.in_flight,
        "--client": CLIENTS.get(series.harness, "unknown"),
    }
    said = [(name, str(value)) for name, value in options.items() if value != ""]
    return ["predict", *(word for pair in said for word in pair)]


def command(row: Served) -> str:
    return shlex.join(["plan", *words(row)])


def answered(row: Served) -> tuple[float, float] | None:
    """TTFT as its source states it, and TPOT, by the command; None where it refuses [s]."""
    text = io.StringIO()
    with redirect_stdout(text), redirect_stderr(io.StringIO()):
        code = main([*words(row), "--json"])
    if code:
        return None
    answer = json.loads(text.getvalue())["answer"]
    first_s = answer["ttft_s"]["value"]
    if row.series.statistic == "median" and answer["waves"]:
        first_s = answer["waves"]["median_s"]
    return first_s + answer["queue_s"], answer["tpot_s"]["value"]


def report(rows: Iterable[Served]) -> Iterator[str]:
    """Each row with its command and the times that were measured."""
    for row in rows:
        yield f"{row.name}  TTFT {row.ttft_ms:g} ms, TPOT {row.tpot_ms:g} ms\n  {command(row)}"
