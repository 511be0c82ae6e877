"""`plan audit`: what runs, as options say it, to a call of the library and its report."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from planner.commands.options.parsing import Said
from planner.commands.reporting import reported
from planner.report.files import Answer
from planner.specs.runtimes import LAYOUT_RUNTIMES, ROOFLINE

if TYPE_CHECKING:
    from planner.results.surveys import Curve
    from planner.specs.records import ClusterSpec, ModelSpec


def audit(said: Said) -> Answer:
    """What runs, under an engine or as layouts, beside the best."""
    if said.is_given("--batch") == said.is_given("--utilization"):
        is_twice = said.is_given("--batch")
        both = "and `--utilization` say the same" if is_twice else "is not given"
        said.refuse("--batch", both, "give it or `--utilization`", value="")
    said.refuse_under((said.engine or ROOFLINE.name,))
    is_layouts = said.engine is None or said.engine in LAYOUT_RUNTIMES
    return _of_layouts(said) if is_layouts else _of_engine(said, said.engine)


def _of_layouts(said: Said) -> Answer:
    from planner.commands.options.reading import read_layouts, with_paths
    from planner.planning.audit import audit as find
    from planner.specs.reading import load_cluster, load_model

    asked = read_layouts(said)
    model = said.collect(lambda: load_model(said.model))
    cluster = said.collect(lambda: load_cluster(said.topology))
    for pool in said.priced([cluster] if cluster else []):
        cluster = pool
    weights, cache = (_only(said, name, asked[key]) for name, key in _FORMATS.items())
    if model is not None and cluster is not None and said.engine is None:
        _refuse_without_engine(said, model, cluster)
    said.check()
    assert model is not None
    assert cluster is not None
    answer = find(
        model,
        cluster,
        speed_tokens_per_s=said.speed,
        batch=said.batch,
        utilization_fraction=said.utilization,
        n_devices=said.devices,
        weights_format=weights,
        kv_format=cache,
        allowed_formats=said.allow_formats or None,
        workload=asked["workload"],
        speculation=asked["speculation"],
        options=asked["options"],
    )
    named = partial(with_paths, written=_named(said, model, cluster))
    changes = (replace(change, command=named(change.command)) for change in answer.changes)
    answer = replace(answer, changes=tuple(changes))
    curves: tuple[Curve, ...] = ()
    if said.html is not None:
        from planner.planning.audit_curves import audit_curves

        curves = audit_curves(answer)
    return reported(said, answer, curves=curves)


def _of_engine(said: Said, engine: str) -> Answer:
    """What an engine runs, with its prediction and with the best."""
    from planner.commands.options.reading import read_engines, with_expert_loads, with_paths
    from planner.planning.engine_audit import audit_engine as find
    from planner.runtimes.engine_requests import machines_of
    from planner.specs.reading import load_architecture, load_cluster

    asked, backend = read_engines(said, ()), said.experts_backend or ""
    model = with_expert_loads(said.collect(lambda: load_architecture(said.model)), said)
    cluster = said.collect(lambda: load_cluster(said.topology))
    for pool in said.priced([cluster] if cluster else []):
        cluster = pool
        said.collect(partial(machines_of, pool, engine, backend))
    chunk = _only(said, "--chunk", said.chunk)
    weights, cache = (_only(said, name, asked[key]) for name, key in _FORMATS.items())
    said.check()
    assert model is not None
    assert cluster is not None
    answer = find(
        model,
        cluster,
        engine,
        speed_tokens_per_s=said.speed,
        degrees=asked["targets"].degrees,
        batch=said.batch,
        chunk_tokens=chunk,
        weights_format=weights,
        kv_format=cache,
        workload=asked["workload"],
        hit_fraction=said.hit_rate or 0.0,
        experts_backend=backend,
        options=asked["options"],
    )
    named = partial(with_paths, written=_named(said, model, cluster))
    runs = replace(answer.predicted, command=named(answer.predicted.command))
    answer = replace(answer, command=named(answer.command), predicted=runs)
    return reported(said, answer)


_FORMATS = {"--weights": "weights_formats", "--kv": "kv_formats"}


def _only(said: Said, name: str, values: tuple[Any, ...] | None) -> Any:  # noqa: ANN401
    """The one value of an option of which what runs has one; None where none is said."""
    if values and len(values) > 1:
        said.refuse(name, "what runs has one", value=",".join(map(str, values)))
    return values[0] if values else None


def _named(said: Said, model: Any, cluster: ClusterSpec) -> tuple[tuple[str, str, str], ...]:  # noqa: ANN401
    return ("--model", said.model, model.name), ("--topology", said.topology, cluster.name)


def _refuse_without_engine(said: Said, model: ModelSpec, cluster: ClusterSpec) -> None:
    """What runs was started by one engine, and where there are several nobody else knows which."""
    from planner.estimates.serving.usual_engines import engines_of

    engines = engines_of(model, cluster)
    if engines:
        fact = f"does not say what runs {model.name} on {cluster.device.name}"
        remedy = f"write `--engine` {', '.join(engines)} or `{ROOFLINE.name}`"
        said.refuse("--engine", fact, remedy)
