"""JSON: everything of the records, valid by the committed schemas, free of NaN."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from planner.errors import Problem, RequestError
from planner.report.answer_kinds import ANSWER_KINDS
from planner.report.as_json import Json, answer_json, dumps, failure_of
from planner.results.audits import LayoutPrediction, ToyModel, Traffic
from planner.results.listings import Catalogue, CatalogueEntry, CatalogueList, Devices
from planner.results.staging import StagingConflict
from planner.results.surveys import Curves
from planner.specs.files.reading import load_device, load_model
from planner.specs.records.devices import Link, LinkedFabric, NodesFabric
from tests.report.economics_examples import (
    ECONOMICS_ALONE,
    ECONOMICS_COMPARISON,
    ECONOMICS_CURVE,
    ECONOMICS_PLAN,
)
from tests.report.engines import ENGINE_AUDIT, ENGINE_CONFLICT, ENGINE_CURVE, ENGINE_PLAN
from tests.report.examples import CERTIFICATE, CLUSTER, CONFLICT, PLAN, RELAXED, REQUEST
from tests.report.expert_plans import EXPERT_PLAN, MOVED_PLAN
from tests.report.fleets import APART, FLEET, STAIRCASE
from tests.report.floorplans import REPAIR
from tests.report.placements import PLACEMENT, PLACEMENT_CONFLICT
from tests.report.predictions import PREDICTION
from tests.report.schema import answer_schema
from tests.report.solver_reports import SOLVER_REPORT
from tests.report.staging import PLACEMENT as LAYERS, STAGES
from tests.report.surveys import AUDIT, COMPARISON, CURVE, MISSING

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
ERROR = RequestError([Problem(where="--batch", value="0", fact="is zero")], hint="more")
FAILURE = failure_of(ERROR, exit_code=2)
MODELS = CatalogueList(
    title="models",
    hint="`plan models NAME` describes one",
    entries=(
        CatalogueEntry(
            name="llama-3.1-8b",
            title="Llama 3.1 8B",
            description="dense",
            examples=("like-it",),
            file="models/llama-3.1-8b.toml",
            facts="8 billion",
        ),
    ),
)
ANSWERS = (
    PLAN,
    CONFLICT,
    replace(CONFLICT, closest=None),
    RELAXED,
    FAILURE,
    failure_of(KeyboardInterrupt(), exit_code=130),
    Curves(curves=(CURVE, MISSING)),
    COMPARISON,
    AUDIT,
    replace(AUDIT, possible=None, equal_speed=None, equal_cost=None),
    ECONOMICS_PLAN,
    ECONOMICS_ALONE,
    Curves(curves=(ECONOMICS_CURVE,)),
    ECONOMICS_COMPARISON,
    PREDICTION,
    LayoutPrediction(
        plan=PLAN,
        longest_context=43_000,
        decode_traffic=(Traffic(kind="all-gather", axes="xyz", received_bytes=3e6),),
    ),
    LayoutPrediction(
        plan=ECONOMICS_PLAN,
        toy=ToyModel(n_devices=24.0, n_requests=180.0, token_s=6e-3, usd_per_token=2e-6),
    ),
    Devices(devices=(load_device("h20"), load_device("tpu-v4"))),
    Catalogue(title="models", lists=(MODELS,), models=(load_model("llama-3.1-8b"),)),
    Catalogue(title="mini", sites=(CLUSTER,)),
    STAGES,
    replace(STAGES, even_s=None),
    LAYERS,
    ENGINE_PLAN,
    REPAIR,
    ENGINE_CONFLICT,
    ENGINE_AUDIT,
    Curves(curves=(ENGINE_CURVE,)),
    EXPERT_PLAN,
    MOVED_PLAN,
    PLACEMENT,
    PLACEMENT_CONFLICT,
    FLEET,
    APART,
    STAIRCASE,
    SOLVER_REPORT,
    StagingConflict(what="mini on two groups", facts=("8 GB are missing",), remedy="add one"),
)
"""One answer of each kind at least."""


def read(name: str) -> Json:
    schema: Json = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return schema


@pytest.mark.parametrize("kind", ANSWER_KINDS, ids=lambda kind: kind.name)
def test_the_committed_schema_is_what_the_records_say(kind):
    """A field that comes or goes shows in docs/schema, or here.

    To accept a change: `python -m tests.report.test_as_json`.
    """
    assert read(kind.name) == answer_schema(kind)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda one: type(one).__name__)
def test_output_is_valid_by_its_schema(answer):
    record = json.loads(dumps(answer_json(answer)))
    validator = jsonschema.Draft202012Validator(read(record["kind"]))
    assert list(validator.iter_errors(record)) == []


@pytest.mark.parametrize(
    "path", [("answer", "deployment", "mesh"), ("certificate", "gap"), ("request",), ("digest",)]
)
def test_the_schema_misses_what_is_left_out(path):
    """A schema that accepts everything would prove nothing."""
    record = answer_json(PLAN)
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
    record = answer_json(replace(PLAN, request=request))
    assert record["request"]["cluster"]["fabric"]["kind"] == kind
    assert jsonschema.Draft202012Validator(read("plan")).is_valid(json.loads(dumps(record)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_null(value):
    record = answer_json(replace(PLAN, certificate=replace(CERTIFICATE, bound=value)))
    assert json.loads(dumps(record))["certificate"]["bound"] is None


def test_figures_are_those_of_the_record_in_si_units():
    record = answer_json(PLAN)
    assert (record["schema"], record["kind"]) == ("planner.answer/1", "plan")
    answer = record["answer"]
    assert answer["deployment"]["tpot_s"] == PLAN.deployment.tpot_s
    assert answer["deployment"]["prefill"]["step"]["network_s"] == 0.060
    assert answer["deployment"]["memory"]["free_bytes"] == 10.5e9
    assert record["request"]["targets"]["ttft_s"] is None
    assert answer["n_assumed"] == 2


def test_batches_are_runs_that_name_first_last_and_step():
    request = replace(REQUEST, batches=(1, 2, 3, 8, 16, 24), prefill_batches=(5,))
    record = answer_json(replace(PLAN, request=request))["request"]
    assert record["batches"] == [[1, 3, 1], [8, 24, 8]]
    assert record["prefill_batches"] == [[5, 5, 1]]


def test_an_error_lists_its_problems():
    record = answer_json(FAILURE)["answer"]
    assert record["error"] == "RequestError"
    assert record["problems"] == [
        {"where": "--batch", "fact": "is zero", "key": "", "value": "0", "remedy": ""}
    ]


def test_the_text_passes_through_any_terminal():
    assert dumps(answer_json(PLAN)).isascii()


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda one: type(one).__name__)
def test_no_key_is_written_that_the_schema_does_not_name(answer):
    record = json.loads(dumps(answer_json(answer)))
    closed = _closed(read(record["kind"]))
    assert list(jsonschema.Draft202012Validator(closed).iter_errors(record)) == []


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
    for kind in ANSWER_KINDS:
        path = SCHEMAS / f"{kind.name}.schema.json"
        path.write_text(_text(answer_schema(kind)), encoding="utf-8")


if __name__ == "__main__":
    _write_schemas()
