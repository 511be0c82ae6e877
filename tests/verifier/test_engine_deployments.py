"""What a pass of an engine has no room for, by the judge's own rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.specs.engine_request import AskedDrafting
from planner.verifier.engine_deployments import _unoffered
from tests.verifier.answers import answer

PLAN = answer("plan of an engine")
DRAFTING = AskedDrafting(kind="mtp", acceptance=(0.7,), lookaheads=(3,))


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
    (asked,) = request.models
    found = [one.fact for one in _unoffered(request, asked, says)]
    tokens = 32 * (1 + n_drafted)
    assert found == ([] if fits else [f"has no room for prompts beside {tokens} tokens"])
