"""JSON: everything of the records, valid by the committed schemas, free of NaN."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from planner.errors import Problem, RequestError
from planner.report.as_json import (
    Json,
    any_conflict_json,
    audit_json,
    comparison_json,
    conflict_json,
    devices_json,
    dumps,
    economics_json,
    engine_audit_json,
    engine_conflict_json,
    engine_json,
    error_json,
    experts_json,
    frontiers_json,
    layers_json,
    placement_json,
    plan_json,
    prediction_json,
    repair_json,
    stages_json,
)
from planner.report.schema import (
    audit_schema,
    comparison_schema,
    conflict_schema,
    devices_schema,
    economics_schema,
    engine_audit_schema,
    engine_conflict_schema,
    engine_schema,
    error_schema,
    experts_schema,
    frontiers_schema,
    layers_schema,
    placement_conflict_schema,
    placement_schema,
    plan_schema,
    prediction_schema,
    repair_schema,
    stages_schema,
)
from planner.specs.reading import load_device
from planner.specs.records import Link, LinkedFabric, NodesFabric
from tests.report.economics_examples import (
    ECONOMICS_ALONE,
    ECONOMICS_COMPARISON,
    ECONOMICS_CURVE,
    ECONOMICS_PLAN,
)
from tests.report.engines import ENGINE_AUDIT, ENGINE_CONFLICT, ENGINE_CURVE, ENGINE_PLAN
from tests.report.examples import CERTIFICATE, CLUSTER, CONFLICT, PLAN, REQUEST
from tests.report.expert_plans import EXPERT_PLAN, MOVED_PLAN
from tests.report.floorplans import REPAIR
from tests.report.placements import PLACEMENT, PLACEMENT_CONFLICT
from tests.report.predictions import PREDICTION
from tests.report.staging import PLACEMENT as LAYERS
from tests.report.staging import STAGES
from tests.report.surveys import AUDIT, COMPARISON, CURVE, MISSING

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
ERROR = RequestError([Problem(where="--batch", value="0", fact="is zero")], hint="more")


def read(name: str) -> Json:
    schema: Json = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return schema


GENERATED = {
    "plan": plan_schema,
    "conflict": conflict_schema,
    "error": error_schema,
    "frontiers": frontiers_schema,
    "comparison": comparison_schema,
    "audit": audit_schema,
    "economics": economics_schema,
    "prediction": prediction_schema,
    "devices": devices_schema,
    "stages": stages_schema,
    "layers": layers_schema,
    "engine": engine_schema,
    "repair": repair_schema,
    "engine-conflict": engine_conflict_schema,
    "engine-audit": engine_audit_schema,
    "experts": experts_schema,
    "placement": placement_schema,
    "placement-conflict": placement_conflict_schema,
}


@pytest.mark.parametrize(("name", "generated"), GENERATED.items())
def test_the_committed_schema_is_what_the_records_say(name, generated):
    """A field that comes or goes shows in docs/schema, or here.

    To accept a change: `python -m tests.report.test_as_json`.
    """
    assert read(name) == generated()


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("plan", plan_json(PLAN)),
        ("conflict", conflict_json(CONFLICT)),
        ("conflict", conflict_json(replace(CONFLICT, closest=None))),
        ("error", error_json(ERROR, exit_code=2)),
        ("error", error_json(KeyboardInterrupt(), exit_code=130)),
        ("frontiers", frontiers_json([CURVE, MISSING])),
        ("comparison", comparison_json(COMPARISON)),
        ("audit", audit_json(AUDIT)),
        ("audit", audit_json(replace(AUDIT, possible=None, equal_speed=None, equal_cost=None))),
        ("economics", economics_json(ECONOMICS_PLAN)),
        ("economics", economics_json(ECONOMICS_ALONE)),
        ("frontiers", frontiers_json([ECONOMICS_CURVE])),
        ("comparison", comparison_json(ECONOMICS_COMPARISON)),
        ("prediction", prediction_json(PREDICTION)),
        ("devices", devices_json([load_device("h20"), load_device("tpu-v4")])),
        ("stages", stages_json(STAGES)),
        ("stages", stages_json(replace(STAGES, even_s=None))),
        ("layers", layers_json(LAYERS)),
        ("engine", engine_json(ENGINE_PLAN)),
        ("repair", repair_json(REPAIR)),
        ("engine-conflict", engine_conflict_json(ENGINE_CONFLICT)),
        ("engine-audit", engine_audit_json(ENGINE_AUDIT)),
        ("frontiers", frontiers_json([ENGINE_CURVE])),
        ("experts", experts_json(EXPERT_PLAN)),
        ("experts", experts_json(MOVED_PLAN)),
        ("placement", placement_json(PLACEMENT)),
        ("placement-conflict", any_conflict_json(PLACEMENT_CONFLICT)),
    ],
)
def test_output_is_valid_by_its_schema(name, record):
    validator = jsonschema.Draft202012Validator(read(name))
    assert list(validator.iter_errors(json.loads(dumps(record)))) == []


@pytest.mark.parametrize("path", [("deployment", "mesh"), ("certificate", "gap"), ("request",)])
def test_the_schema_misses_what_is_left_out(path):
    """A schema that accepts everything would prove nothing."""
    record = plan_json(PLAN)
    *parents, last = path
    inner = record
    for key in parents:
        inner = inner[key]
    del inner[last]
    assert not jsonschema.Draft202012Validator(read("plan")).is_valid(record)


@pytest.mark.parametrize(
    ("fabric", "kind"),
    [
        (CLUSTER.fabric, "torus"),
        (
            NodesFabric(
                n_nodes=2,
                n_devices_per_node=8,
                scale_up_bytes_per_s=300e9,
                scale_up_latency_s=2e-6,
                scale_up_fraction=0.5,
                scale_out_bytes_per_s=25e9,
                scale_out_latency_s=5e-6,
                scale_out_fraction=0.5,
                activation_network="tree",
                bulk_network="tree",
            ),
            "nodes",
        ),
        (
            LinkedFabric(
                devices=("a", "b"),
                links=(Link(a="a", b="b", bytes_per_s=1e9, latency_s=1e-6),),
                activation_network="tree",
                bulk_network="tree",
            ),
            "linked",
        ),
    ],
)
def test_every_kind_of_fabric_says_which_it_is(fabric, kind):
    request = replace(REQUEST, cluster=replace(CLUSTER, fabric=fabric))
    record = plan_json(replace(PLAN, request=request))
    assert record["request"]["cluster"]["fabric"]["kind"] == kind
    assert jsonschema.Draft202012Validator(read("plan")).is_valid(json.loads(dumps(record)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_null(value):
    record = plan_json(replace(PLAN, certificate=replace(CERTIFICATE, bound=value)))
    assert json.loads(dumps(record))["certificate"]["bound"] is None


def test_figures_are_those_of_the_record_in_si_units():
    record = plan_json(PLAN)
    assert record["schema"] == "planner.plan/1"
    assert record["deployment"]["tpot_s"] == PLAN.deployment.tpot_s
    assert record["deployment"]["prefill"]["step"]["network_s"] == 0.060
    assert record["deployment"]["memory"]["free_bytes"] == 10e9
    assert record["request"]["targets"]["ttft_s"] is None
    assert record["n_assumed"] == 2


def test_batches_are_runs_that_name_first_last_and_step():
    request = replace(REQUEST, batches=(1, 2, 3, 8, 16, 24), prefill_batches=(5,))
    record = plan_json(replace(PLAN, request=request))["request"]
    assert record["batches"] == [[1, 3, 1], [8, 24, 8]]
    assert record["prefill_batches"] == [[5, 5, 1]]


def test_an_error_lists_its_problems():
    record = error_json(ERROR, exit_code=2)
    assert record["kind"] == "RequestError"
    assert record["problems"] == [
        {"where": "--batch", "fact": "is zero", "key": "", "value": "0", "remedy": ""}
    ]


def test_the_text_passes_through_any_terminal():
    assert dumps(plan_json(PLAN)).isascii()


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("plan", plan_json(PLAN)),
        ("conflict", conflict_json(CONFLICT)),
        ("frontiers", frontiers_json([CURVE])),
        ("comparison", comparison_json(COMPARISON)),
        ("audit", audit_json(AUDIT)),
        ("economics", economics_json(ECONOMICS_PLAN)),
        ("prediction", prediction_json(PREDICTION)),
        ("devices", devices_json([load_device("h20"), load_device("tpu-v4")])),
        ("stages", stages_json(STAGES)),
        ("stages", stages_json(replace(STAGES, even_s=None))),
        ("layers", layers_json(LAYERS)),
        ("engine", engine_json(ENGINE_PLAN)),
        ("engine-conflict", engine_conflict_json(ENGINE_CONFLICT)),
        ("experts", experts_json(EXPERT_PLAN)),
        ("experts", experts_json(MOVED_PLAN)),
        ("placement", placement_json(PLACEMENT)),
        ("placement-conflict", any_conflict_json(PLACEMENT_CONFLICT)),
    ],
)
def test_no_key_is_written_that_the_schema_does_not_name(name, record):
    closed = _closed(read(name))
    assert (
        list(jsonschema.Draft202012Validator(closed).iter_errors(json.loads(dumps(record)))) == []
    )


def _closed(schema: object) -> object:
    """A schema whose objects with named properties take no others."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    return {**closed, "additionalProperties": False} if "required" in closed else closed


def _text(schema: Json) -> str:
    """JSON with what is short on one line."""
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    innermost = re.compile(r"([\[{])\s+([^\[\]{}]{1,70}?)\s+([\]}])")
    for _ in range(2):
        text = innermost.sub(lambda m: m[1] + re.sub(r"\s+", " ", m[2]) + m[3], text)
    return text + "\n"


def _write_schemas() -> None:
    for name, generated in GENERATED.items():
        (SCHEMAS / f"{name}.schema.json").write_text(_text(generated()), encoding="utf-8")


if __name__ == "__main__":
    _write_schemas()
