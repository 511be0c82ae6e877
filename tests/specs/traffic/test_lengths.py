"""Lengths are the same as cells, as draws and as moments; nonsense is refused by name."""

from __future__ import annotations

import math
import random
from itertools import islice, pairwise
from pathlib import Path
from statistics import fmean, stdev

import pytest

from planner.quantities.units import UnitError
from planner.specs.traffic.distributions import FixedTokens, TokenDistribution
from planner.specs.traffic.lengths import (
    DividedLengths,
    IndependentLengths,
    Lengths,
    TraceLengths,
)
from planner.specs.traffic.strata import strata_of
from planner.specs.traffic.texts import arrivals_of, tokens_of
from planner.specs.traffic.trace_files import load_trace

DATA = Path(__file__).parents[2] / "data" / "fleet"
CDFS = DATA / "fleetsim_cdfs.json"
N_DRAWN = 20_000

WRITTEN = [
    "1500",
    "uniform:100:2000",
    "exponential:300",
    "exponential:300:max=512",
    "lognormal:1500:p99=8000",
    "lognormal:1500:p99=8000:max=4096",
    "lognormal:5:cv=2",
    "percentiles:p50=900:p90=3000:max=9000",
    f"cdf:{CDFS}:azure_2023",
    f"cdf:{CDFS}:azure_2023:max=3000",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_distribution_is_what_is_drawn_of_it(text: str) -> None:
    """Means within four standard errors; shares within four of theirs; nothing beyond the ends."""
    law, source = tokens_of(text), random.Random(7)
    drawn = [law.draw(source) for _ in range(N_DRAWN)]
    assert all(isinstance(one, int) for one in drawn[:10])
    assert 1 <= min(drawn) <= max(drawn) <= law.most_tokens
    variance = law.moment_upto(math.inf, 2) - law.mean_tokens**2
    error = 4.0 * math.sqrt(max(variance, 0.25) / N_DRAWN)
    assert sum(drawn) / N_DRAWN == pytest.approx(law.mean_tokens, abs=error)
    for share in (0.1, 0.5, 0.9, 0.99):
        edge = law.tokens_at(share)
        below = sum(one <= edge + 1.0 for one in drawn) / N_DRAWN
        assert below >= share - 4.0 * math.sqrt(share * (1 - share) / N_DRAWN)
        assert law.share_upto(edge) >= share - 1e-9


@pytest.mark.parametrize("text", WRITTEN)
def test_moments_are_those_of_the_quantiles(text: str) -> None:
    """∫ n(q)ᵏ dq by the midpoints of twenty thousand shares."""
    law, n = tokens_of(text), 20_000
    at = [law.tokens_at((i + 0.5) / n) for i in range(n)]
    for power, rel in ((1, 2e-3), (2, 3e-2)):
        assert law.moment_upto(math.inf, power) == pytest.approx(
            sum(x**power for x in at) / n, rel=rel
        )
        middle = at[n // 2]
        assert law.moment_upto(middle, power) == pytest.approx(
            sum(x**power for x in at if x <= middle) / n, rel=rel
        )


@pytest.mark.parametrize("text", WRITTEN)
def test_strata_keep_requests_and_tokens_and_heed_cuts(text: str) -> None:
    law = tokens_of(text)
    parts = strata_of(law, 8, (700.0, 1200.0))
    assert sum(one.weight for one in parts) == pytest.approx(1.0, rel=1e-12)
    tokens = sum(one.weight * one.mean_tokens for one in parts)
    assert tokens == pytest.approx(law.mean_tokens, rel=1e-12)
    for cut in (700.0, 1200.0):
        below = sum(one.weight for one in parts if one.mean_tokens <= cut)
        assert below == pytest.approx(law.share_upto(cut), abs=1e-12)
    assert len(parts) <= 8 + 2


def test_what_a_lognormal_says_of_itself_holds() -> None:
    law = tokens_of("lognormal:1500:p99=8000")
    assert law.mean_tokens == pytest.approx(1500, rel=1e-4)
    assert law.tokens_at(0.99) == pytest.approx(8000)
    wide = tokens_of("lognormal:1500:cv=1.2:max=1000000")
    cv2 = wide.moment_upto(math.inf, 2) / wide.mean_tokens**2 - 1.0
    assert cv2 == pytest.approx(1.44, rel=1e-3)


def test_percentiles_are_those_that_were_given() -> None:
    law = tokens_of("percentiles:p90=3000:p50=900:max=9000")
    assert [law.tokens_at(q) for q in (0.25, 0.5, 0.9, 1.0)] == pytest.approx(
        [450.5, 900, 3000, 9000]
    )


def _lengths() -> list[Lengths]:
    inputs, outputs = tokens_of("lognormal:1500:p99=8000"), tokens_of("exponential:300")
    return [
        IndependentLengths(input=inputs, output=outputs),
        IndependentLengths(input=FixedTokens(n_tokens=512), output=outputs),
        DividedLengths(total=tokens_of(f"cdf:{CDFS}:azure_2023"), input_fraction=0.8),
        TraceLengths(trace=load_trace(DATA / "azure2023_conv.csv.gz")),
    ]


@pytest.mark.parametrize("lengths", _lengths(), ids=["both", "fixed", "divided", "trace"])
def test_cells_draws_and_moments_are_of_the_same_requests(lengths: Lengths) -> None:
    cells = lengths.cells(64)
    assert len(cells) <= 64
    assert math.fsum(cells.weight) == pytest.approx(1.0, rel=1e-12)
    assert cells.mean_input_tokens == pytest.approx(lengths.mean_input_tokens, rel=1e-12)
    assert cells.mean_output_tokens == pytest.approx(lengths.mean_output_tokens, rel=1e-12)
    drawn = list(islice(lengths.drawn(random.Random(3)), N_DRAWN))
    assert min(map(min, drawn)) >= 1
    for power in ((1, 0), (0, 1), (1, 1), (2, 0)):
        found = [a ** power[0] * b ** power[1] for a, b in drawn]
        error = 4.0 * stdev(found) / math.sqrt(N_DRAWN)
        assert fmean(found) == pytest.approx(lengths.moment(*power), abs=error)
    within = zip(cells.weight, cells.n_input, cells.n_output, strict=True)
    both = sum(w * a * b for w, a, b in within)
    assert both == pytest.approx(lengths.moment(1, 1), rel=0.05)


@pytest.mark.parametrize("lengths", _lengths(), ids=["both", "fixed", "divided", "trace"])
def test_no_cell_is_across_a_cut(lengths: Lengths) -> None:
    cuts, drawn = (512.0, 2048.0), list(islice(lengths.drawn(random.Random(3)), N_DRAWN))
    cells = lengths.cells(32, cuts)
    assert cells.mean_input_tokens == pytest.approx(lengths.mean_input_tokens, rel=1e-12)
    for cut in cuts:
        below = sum(w for w, a in zip(cells.weight, cells.n_input, strict=True) if a <= cut)
        assert below == pytest.approx(sum(a <= cut for a, _ in drawn) / N_DRAWN, abs=0.02)


def test_cuts_of_a_trace_part_it_exactly() -> None:
    trace = load_trace(DATA / "azure2023_conv.csv.gz")
    cells = TraceLengths(trace=trace).cells(9, (1020.0,))
    below = sum(w for w, a in zip(cells.weight, cells.n_input, strict=True) if a <= 1020.0)
    assert below == pytest.approx(sum(a <= 1020 for a in trace.n_input) / len(trace))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1.5k", "`1.5k` is no whole number"),
        ("0", "`0` is not positive"),
        ("-3", "`-3` is not positive"),
        ("99999999999", "beyond anything real"),
        ("", "is no whole number"),
        ("lognorm:1500:p99=8000", "did you mean `lognormal`?"),
        ("normal", "is no whole number"),
        ("gauss:5", "has no distribution `gauss`"),
        ("lognormal:1500", "does not say how wide it is"),
        ("lognormal:1500:p99=8000:cv=2", "says how wide it is twice"),
        ("lognormal:1500:p99=1200", "`p99` is not above the mean"),
        ("lognormal:1500:p99=80000", "a lognormal's is at most 15 times it"),
        ("lognormal:1500:p10=1600", "`p10` is not below the mean"),
        ("lognormal:1500:p100=8000", "`p100` is no percentile"),
        ("lognormal:1500:q=3", "has an unknown `q`"),
        ("lognormal:nan:cv=1", "has a mean that cannot be"),
        ("lognormal:1500:cv=1:cv=1", "says one thing twice"),
        ("lognormal:cv=1", "has 0 behind its name, where 1 number belongs"),
        ("uniform:9:3", "write `uniform:3:9`"),
        ("uniform:9", "where 2 numbers belong"),
        ("exponential:1", "has a mean of one token"),
        ("percentiles:p50=900", "does not say what is longest"),
        ("percentiles:p50=900:p90=800:max=9000", "has 800 tokens of share 0.9 behind 900 of 0.5"),
        ("cdf:nowhere.json", "`nowhere.json` no such file"),
        (f"cdf:{CDFS}", "names none of the distributions of the file"),
        (f"cdf:{CDFS}:chat", "names none of the distributions of the file"),
        (f"cdf:{CDFS}:source", "names none of the distributions of the file"),
    ],
)
def test_nonsense_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(UnitError) as caught:
        tokens_of(text)
    assert said in str(caught.value)


def _mean_and_cv2(text: str, rate_per_s: float, n: int) -> tuple[float, float]:
    times = list(islice(arrivals_of(text).times_s(rate_per_s, random.Random(5)), n))
    gaps = [b - a for a, b in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    return mean, sum((gap - mean) ** 2 for gap in gaps) / len(gaps) / mean**2


@pytest.mark.parametrize(
    ("text", "cv2", "rel"),
    [
        ("poisson", 1.0, 0.03),
        ("cv2:173", 173.0, 0.15),
        ("cv2:0.2", 0.2, 0.03),
        ("cv2:1", 1.0, 0.03),
    ],
)
def test_arrivals_have_the_rate_and_the_variance_that_they_say(
    text: str, cv2: float, rel: float
) -> None:
    n = 300_000 if cv2 > 100 else 60_000
    mean, found = _mean_and_cv2(text, 20.0, n)
    assert mean == pytest.approx(0.05, rel=4.0 * math.sqrt(cv2 / n))
    assert found == pytest.approx(cv2, rel=rel)
    assert arrivals_of(text).cv2 == cv2


def test_constant_arrivals_are_even() -> None:
    times = list(islice(arrivals_of("constant").times_s(8.0, random.Random(5)), 4))
    assert times == [0.125, 0.25, 0.375, 0.5]
    assert arrivals_of("cv2:0") == arrivals_of("constant")


@pytest.mark.parametrize("text", ["gamma", "cv2", "cv2:", "cv2:-1", "cv2:1e9", "poisson:3", ""])
def test_patterns_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UnitError):
        arrivals_of(text)


def test_distributions_are_values() -> None:
    one: TokenDistribution = tokens_of("lognormal:1500:p99=8000")
    assert one == tokens_of("lognormal:1500:p99=8000")
    assert hash(one) == hash(tokens_of("lognormal:1500:p99=8000"))
