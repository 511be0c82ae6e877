"""What a deployment of layouts comes to, from its two passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.verifier.answers import answer

ONE = answer("plan on a torus").deployment
DRAFTED = answer("plan with a draft").deployment


def test_a_decoded_token_costs_the_rent_of_its_time_over_the_batch():
    at_once = replace(ONE, decode=replace(ONE.decode, batch=2 * ONE.decode.batch))
    assert ONE.usd_per_decoded_token == pytest.approx(
        ONE.usd_per_hour / 3600 * ONE.decode.step.total_s / ONE.decode.batch
    )
    assert at_once.usd_per_decoded_token == pytest.approx(ONE.usd_per_decoded_token / 2)


def test_a_token_with_a_draft_takes_a_round_over_what_it_yields():
    draft = DRAFTED.draft
    round_s = DRAFTED.decode.step.total_s + draft.n_drafted * draft.step.total_s
    assert DRAFTED.tpot_s == pytest.approx(round_s / draft.n_yielded)
    assert replace(DRAFTED, draft=None).tpot_s == DRAFTED.decode.step.total_s


def test_output_is_that_of_all_replicas_and_of_a_device_its_part():
    twice = replace(ONE, n_replicas=2)
    assert twice.output_tokens_per_s == pytest.approx(2 * ONE.output_tokens_per_s)
    assert ONE.output_tokens_per_s == pytest.approx(ONE.n_output_tokens / ONE.request_s)
    assert twice.device_tokens_per_s == pytest.approx(ONE.device_tokens_per_s)
    assert ONE.device_tokens_per_s == pytest.approx(ONE.output_tokens_per_s / ONE.n_devices)


@pytest.mark.parametrize("name", ["tpot", "ttft"])
def test_the_fastest_pass_is_that_of_the_phase_and_its_largest_part_is_named(name):
    phase = ONE.decode if name == "tpot" else ONE.prefill
    fact = ONE.fastest(name, " within 64 devices")
    assert fact.startswith(f"the fastest {phase.phase} pass within 64 devices takes ")
    part, _ = max(phase.step.parts(), key=lambda one: one[1])
    assert fact.endswith(f"of it is {part}")
