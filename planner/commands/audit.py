"""`plan audit`: what runs, as options say it, to a call of the library and its report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from planner.commands.options.arguments import Arguments
from planner.commands.options.written import Written
from planner.commands.options.written_surveys import WrittenAudit
from planner.errors import Problem
from planner.report.delivery import Answer, answered
from planner.report.paint import width
from planner.specs.runtimes import LAYOUT_RUNTIMES, ROOFLINE

if TYPE_CHECKING:
    from planner.results.audits import Audit
    from planner.specs.records import ClusterSpec, ModelSpec

_NOTHING_ASKED = WrittenAudit()


def audit(
    written: Annotated[WrittenAudit, Parameter(name="*")] = _NOTHING_ASKED,
    *,
    said: Annotated[Arguments, Parameter(parse=False)],
) -> Answer:
    """Say how far a running deployment is from what its pool could do, and what would help."""
    from planner.commands.options.drafts import drafted
    from planner.commands.options.paths import with_paths
    from planner.commands.options.reading import read, read_allowed, read_drafting
    from planner.planning.audit import audit as find
    from planner.report.audit import audit_line, audit_text
    from planner.specs.reading import load_cluster, load_model

    said.refuse((written.engine or ROOFLINE.name,))
    if written.engine is not None and written.engine not in LAYOUT_RUNTIMES:
        from planner.commands.engine_audit import audit_engine

        seen, seen_problems = _seen(written)
        said.problems += seen_problems
        return audit_engine(written, said, seen)
    asked, problems = read(Written(**_of_plan(written)))
    drafting, draft_problems = read_drafting(written)
    allowed, format_problems = read_allowed(replace(written, weights=(), kv=()))  # of what runs
    seen, seen_problems = _seen(written)
    wrong = [*said.problems, *problems, *draft_problems, *format_problems]
    found = Arguments(problems=[*wrong, *seen_problems], hints=said.hints)
    model = found.collect(lambda: load_model(written.model))
    loaded = found.collect(lambda: load_cluster(written.topology))
    cluster = next(iter(found.priced(written.price, [loaded] if loaded else [])), None)
    speculation = drafted(drafting, found)
    for option, formats in (("--weights", asked.weights_formats), ("--kv", asked.kv_formats)):
        if formats and len(formats) > 1:
            value, fact = ",".join(formats), "what runs has one format"
            found.problems.append(Problem(where=option, value=value, fact=fact))
    if model is not None and cluster is not None and written.engine is None:
        found.problems += _which_engine(model, cluster)
    found.check()
    assert model is not None
    assert cluster is not None
    answer = find(
        model,
        cluster,
        weights_format=asked.weights_formats[0] if asked.weights_formats else None,
        kv_format=asked.kv_formats[0] if asked.kv_formats else None,
        allowed_formats=allowed,
        workload=asked.workload,
        speculation=speculation,
        options=replace(asked.options, gap=0.0),
        **seen,
    )
    named = (
        ("--model", written.model, model.name),
        ("--topology", written.topology, cluster.name),
    )
    changes = (
        replace(change, command=with_paths(change.command, named)) for change in answer.changes
    )
    answer = replace(answer, changes=tuple(changes))
    return answered(
        answer,
        lambda: audit_line(answer) if written.quiet else audit_text(answer, width()),
        is_json=written.json,
        files=_files(written, answer),
    )


def _which_engine(model: ModelSpec, cluster: ClusterSpec) -> list[Problem]:
    """What runs was started by one engine, and where there are several nobody else knows which."""
    from planner.estimates.serving.usual_engines import engines_of

    engines = engines_of(model, cluster)
    if not engines:
        return []
    fact = f"does not say what runs {model.name} on {cluster.device.name}"
    remedy = f"write `--engine` {', '.join(engines)} or `{ROOFLINE.name}`"
    return [Problem(where="--engine", fact=fact, remedy=remedy)]


def _files(written: WrittenAudit, answer: Audit) -> Iterator[tuple[str, str]]:
    if written.html is not None:
        from planner.planning.audit_curves import audit_curves
        from planner.report.audit_page import audit_page

        yield written.html, audit_page(answer, audit_curves(answer))


def _of_plan(written: WrittenAudit) -> dict[str, Any]:
    """The options that `plan` has too, those that mean something else here left out."""
    from dataclasses import fields

    names = {field.name for field in fields(Written)} - {"batch", "json", "quiet"}
    return {name: getattr(written, name) for name in names}


def _seen(written: WrittenAudit) -> tuple[dict[str, Any], list[Problem]]:
    """What runs: speed, batch or utilization, devices."""
    from planner.commands.options.counts import count
    from planner.commands.options.reading import Faults
    from planner.units import parse

    faults = Faults()
    speed = faults.read("--speed", written.speed, lambda text: parse(text, "token/s"))
    if written.speed is None:
        remedy = "write `--speed 70tok/s`"
        faults.problems.append(Problem(where="--speed", fact="is not given", remedy=remedy))
    share = faults.read("--utilization", written.utilization, lambda text: parse(text, "1"))
    batch = faults.read("--batch", written.batch or None, count)
    if bool(written.batch) == (written.utilization is not None):
        both = "and `--utilization` say the same" if written.batch else "is not given"
        remedy = "give it or `--utilization`"
        faults.problems.append(Problem(where="--batch", fact=both, remedy=remedy))
    seen = {
        "speed_tokens_per_s": speed,
        "batch": batch,
        "utilization_fraction": share,
        "n_devices": faults.read("--devices", written.devices, count),
    }
    return seen, faults.problems
