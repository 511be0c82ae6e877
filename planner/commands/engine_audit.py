"""`plan audit --engine`: what an engine runs, as options say it, to its audit in text."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from planner.commands.options.arguments import Arguments
from planner.commands.options.written_surveys import WrittenAudit
from planner.errors import Problem
from planner.report.delivery import Answer, answered
from planner.report.paint import width


def audit_engine(written: WrittenAudit, said: Arguments, seen: dict[str, Any]) -> Answer:
    """Compare what runs with its prediction and with the best.

    Args:
        seen: speed and batch, as `plan audit` reads them.

    Raises:
        RequestError: with the problems of words, options and files together.
    """
    from planner.commands.options.engines import read_engine
    from planner.commands.options.expert_loads import with_expert_loads
    from planner.commands.options.paths import with_paths
    from planner.planning.engine_audit import audit_engine as find
    from planner.runtimes.engine_requests import machines_of
    from planner.specs.reading import load_architecture, load_cluster

    found = said
    asked = read_engine(replace(written, batch=written.batch or "1"), found)
    model = found.collect(lambda: load_architecture(written.model))
    model = with_expert_loads(model, written.expert_loads, found)
    cluster = found.collect(lambda: load_cluster(written.topology))
    for pool in found.priced(written.price, [cluster] if cluster else []):
        found.collect(partial(machines_of, pool, str(written.engine), asked["experts_backend"]))
    chunks = asked["chunks"] or (None,)
    formats = [asked[name] or (None,) for name in ("weights_formats", "kv_formats")]
    for option, values in (("--chunk", chunks), ("--weights", formats[0]), ("--kv", formats[1])):
        if len(values) > 1:
            value, fact = ",".join(map(str, values)), "what runs has one"
            found.problems.append(Problem(where=option, value=value, fact=fact))
    found.check()
    assert model is not None
    answer = find(
        model,
        pool,
        str(written.engine),
        speed_tokens_per_s=seen["speed_tokens_per_s"],
        degrees=asked["targets"].degrees,
        batch=seen["batch"],
        chunk_tokens=chunks[0],
        weights_format=formats[0][0],
        kv_format=formats[1][0],
        workload=asked["workload"],
        hit_fraction=asked["hit_fraction"],
        experts_backend=asked["experts_backend"],
        options=asked["options"],
    )
    named = (
        ("--model", written.model, model.name),
        ("--topology", written.topology, pool.name),
    )
    runs = replace(answer.predicted, command=with_paths(answer.predicted.command, named))
    answer = replace(answer, command=with_paths(answer.command, named), predicted=runs)
    from planner.report.engine_audit import engine_audit_line, engine_audit_text

    is_short = written.quiet
    return answered(
        answer,
        lambda: engine_audit_line(answer) if is_short else engine_audit_text(answer, width()),
        is_json=written.json,
    )
