"""Classes of traffic from numbers, texts and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import RequestError
from planner.quantities.units import UnitError
from planner.specs.files.reading import load_architecture
from planner.specs.traffic.building import traffic_class
from planner.specs.traffic.distributions import FixedTokens
from planner.specs.traffic.lengths import IndependentLengths, TraceLengths
from planner.specs.traffic.percentiles import GoodputTarget, PercentileTarget, goodput_of

TRACE = Path(__file__).parents[2] / "data" / "fleet" / "azure2023_code.csv.gz"
MODEL = load_architecture("llama-3.1-8b")


def refused(**said):
    with pytest.raises(RequestError) as caught:
        traffic_class("chat", MODEL, **said)
    return [str(one).split("  ")[0] for one in caught.value.problems]


def test_numbers_and_texts_make_a_class():
    one = traffic_class(
        "chat",
        [MODEL],
        rate_per_s=8.0,
        input=1500,
        output="exponential:300",
        arrivals="cv2:4",
        targets={"ttft_p95": 1.0, "tpot-p99.9": "40 ms"},
        goodput="99% e2e<1min",
        cuts=[1000],
    )
    assert isinstance(one.lengths, IndependentLengths)
    assert one.lengths.input == FixedTokens(n_tokens=1500)
    assert one.targets == (
        PercentileTarget(quantity="ttft", share=0.95, at_most_s=1.0),
        PercentileTarget(quantity="tpot", share=0.999, at_most_s=0.04),
    )
    assert (one.arrivals.cv2, one.cuts) == (4.0, (1000,))
    assert one.goodput == GoodputTarget(share=0.99, e2e_s=60.0)


def test_a_trace_says_lengths_arrivals_and_rate_unless_others_do():
    one = traffic_class("code", MODEL, trace=TRACE)
    assert isinstance(one.lengths, TraceLengths)
    assert one.arrivals.trace is one.lengths.trace
    assert one.rate_per_s == pytest.approx(2.57, abs=0.01)
    other = traffic_class("code", MODEL, trace=TRACE, rate_per_s=1.0, arrivals="poisson")
    assert (other.arrivals.trace, other.rate_per_s) == (None, 1.0)


def test_all_that_cannot_be_read_is_said_at_once():
    found = refused(input="x", arrivals="3", goodput="9", targets={"foo": 1.0, "itl_p99": "2"})
    assert found == [
        "chat: rate_per_s",
        "chat: output",
        "chat: input `x`",
        "chat: arrivals `3`",
        "chat: targets.foo",
        "chat: targets.itl_p99 `2`",
        "chat: goodput `9`",
    ]
    assert refused(trace="none.csv", arrivals="cv2:x") == [
        "--trace `none.csv`",
        "chat: arrivals `cv2:x`",
    ]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "does not begin with a share"),
        ("ttft<1s", "does not begin with a share"),
        ("120% ttft<1s", "does not begin with a share"),
        ("99%", "has no limits"),
        ("99% itl<1s", "limits no `itl`"),
        ("99% ttft<1s ttft<2s", "limits `ttft` twice"),
        ("99% ttft<1", "no unit"),
        ("99% ttft", "is empty"),
    ],
)
def test_a_goodput_that_is_none_says_why(text, fact):
    with pytest.raises(UnitError) as caught:
        goodput_of(text)
    assert caught.value.fact.startswith(fact)


def test_spaces_around_limits_do_not_count():
    assert goodput_of("0.95  TTFT < 2s tpot<= 50ms") == GoodputTarget(
        share=0.95, ttft_s=2.0, tpot_s=0.05
    )
