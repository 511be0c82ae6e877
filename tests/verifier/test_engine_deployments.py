"""What a pass of an engine has no room for, by the judge's own rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import plan, verify
from planner.specs.ask.engine import DraftOptions
from planner.specs.ask.targets import Degrees, Targets
from planner.specs.files.reading import load_architecture, load_cluster
from planner.specs.records.devices import Workload
from planner.verifier.runtimes.engines import _unoffered
from tests.verifier.answers import answer

PLAN = answer("plan of an engine")
DRAFTING = DraftOptions(kind="mtp", acceptance=(0.7,), lookaheads=(3,))


@pytest.mark.parametrize(
    ("chunk", "n_drafted", "fits"),
    [(33, 0, True), (32, 0, False), (33, 3, False), (129, 3, True)],
)
def test_a_chunk_holds_what_decodes_and_its_drafts_and_a_prompt_beside(chunk, n_drafted, fits):
    """Thirty-two sequences with three drafted tokens each are 128 tokens of a pass."""
    request = replace(PLAN.request, chunks=(chunk,), batches=(32,), drafting=DRAFTING)
    drafter = "mtp" if n_drafted else ""
    choice = {"batch": 32, "chunk_tokens": chunk, "n_drafted": n_drafted, "drafter": drafter}
    says = replace(PLAN.deployment, **choice)
    found = [one.fact for one in _unoffered(request, says)]
    tokens = 32 * (1 + n_drafted)
    assert found == ([] if fits else [f"has no room for prompts beside {tokens} tokens"])


@pytest.fixture(scope="module")
def wide():
    """DeepSeek-V3 over 32 devices, with a redundant expert on each."""
    return plan(
        load_architecture("deepseek-v3"),
        load_cluster("h800-nvl8-x4"),
        "sglang",
        workload=Workload(n_input_tokens=2048, n_output_tokens=256),
        targets=Targets(degrees=Degrees(tensor=1, data=32, pipeline=1, expert=32)),
        batches=(16,),
        chunks=(8192,),
    )


def test_copies_of_experts_are_counted_again(wide):
    copies = wide.deployment.redundant_experts
    assert copies.n_redundant == 32
    assert 1.0 < copies.fullest_factor < 1.01
    assert copies.copies_bytes == pytest.approx(58 * 3 * 7168 * 2048, rel=1e-3)  # and scales
    assert "32 redundant experts" in wide.deployment.summary
    assert "--ep-num-redundant-experts 32" in wide.deployment.launch.command
    assert verify(wide).is_true


@pytest.mark.parametrize(
    "changes",
    [
        {"n_redundant": 0},
        {"n_redundant": 64},
        {"n_redundant": -256},
        {"fullest_factor": 1.0},
        {"copies_bytes": 0.0},
        None,
    ],
)
def test_other_copies_are_refused(wide, changes):
    copies = changes and replace(wide.deployment.redundant_experts, **changes)
    says = replace(wide, deployment=replace(wide.deployment, redundant_experts=copies))
    assert not verify(says).is_true


def test_an_engine_that_gives_others_is_refused(wide):
    records = wide.request.records
    engine = replace(records.engine, n_redundant_experts=64)
    request = replace(wide.request, records=replace(records, engine=engine))
    pointers = [one.pointer for one in verify(replace(wide, request=request)).falsehoods]
    assert "/request/records/engine/n_redundant_experts" in pointers
