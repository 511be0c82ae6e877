"""Command lines of requests: what is not usual is said, and reads back."""

from __future__ import annotations

import shlex
from dataclasses import replace

from planner.quantities.table import QUANTITIES
from planner.specs.ask.defaults import command_of
from planner.specs.ask.targets import Speculation, Targets
from planner.specs.files.reading import load_model
from tests.verifier.answers import answer

REQUEST = answer("plan on a torus").request


def options(request, **changes):
    words = shlex.split(command_of(request, changes))
    assert words[0] == "plan"
    return dict(zip(words[1::2], words[2::2], strict=True))


def test_limits_are_said_in_the_unit_of_their_option():
    targets = Targets(
        tpot_s=0.0305,
        usd_per_token=2e-5,
        n_devices=64,
        demand_tokens_per_s=500.0,
        quality_loss_fraction=0.008,
        further={"rent": 12.5, "power": 20e3},
    )
    said = options(replace(REQUEST, targets=targets))
    assert said["--latency-target"] == "30.5ms"
    assert said["--max-cost"] == "$20/Mtoken"
    assert said["--max-devices"] == "64"
    assert said["--demand"] == "500tok/s"
    assert said["--max-quality-loss"] == "0.8%"
    assert said["--max-rent"] == "$12.5/h"
    assert said["--max-power"] == "20kW"
    assert not {"--ttft-target", "--min-batch", "--replicas"} & said.keys()


def test_a_draft_is_said_with_what_is_not_usual_of_it():
    draft = Speculation(draft=load_model("llama-3.1-8b"))
    assert "--draft" not in options(REQUEST)
    usual = options(replace(REQUEST, speculation=draft))
    assert usual["--draft"] == "llama-3.1-8b"
    assert not {"--acceptance", "--lookahead", "--speculation"} & usual.keys()
    other = replace(draft, acceptance=0.5, lookaheads=(2, 4))
    said = options(replace(REQUEST, speculation=other))
    assert (said["--acceptance"], said["--lookahead"]) == ("0.5", "2,4")


def test_what_is_reached_is_rounded_to_the_side_that_has_a_plan():
    tpot, demand = QUANTITIES["tpot"], QUANTITIES["demand"]
    assert tpot.written(tpot.relaxed(0.0123456)) == "12.4ms"
    assert demand.written(demand.relaxed(1234.5)) == "1230tok/s"


def test_changes_stand_in_place_of_what_was_asked():
    assert options(REQUEST, **{"--latency-target": "9ms"})["--latency-target"] == "9ms"
