"""Quantities are read exactly or refused with a remedy, and shown so that they read back."""

import math

import pytest
from hypothesis import given, settings, strategies as st

from planner.quantities.units import RANGES, UnitError, parse, show

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("30ms", "s", 0.03),
        ("30 ms", "s", 0.03),
        (" 1.5us ", "s", 1.5e-6),
        ("105 µs", "s", 105e-6),  # micro sign
        ("105 μs", "s", 105e-6),  # Greek mu
        ("2min", "s", 120),
        ("2 hr", "s", 7200),
        ("80GB", "B", 80e9),
        ("80GiB", "B", 80 * GIB),
        ("1 kB", "B", 1000),
        ("8_192 B", "B", 8192),
        ("1EB", "B", 1e18),
        ("8 Gb", "B", 1e9),
        ("450 Gb/s", "B/s", 56.25e9),
        ("450 GB/s", "B/s", 450e9),
        ("400Gbps", "B/s", 50e9),
        ("400 Gbit/s", "B/s", 50e9),
        ("450 GB per s", "B/s", 450e9),
        ("1e9 B/s", "B/s", 1e9),
        ("989 TFLOP/s", "FLOP/s", 989e12),
        ("989 TFLOPS", "FLOP/s", 989e12),
        ("20 TFLOP", "FLOP", 20e12),
        ("$3.22/h", "USD/h", 3.22),
        ("$2/hr", "USD/h", 2),
        ("$ 3.22 / h", "USD/h", 3.22),
        ("3.22 USD/h", "USD/h", 3.22),
        ("3.22 $/h", "USD/h", 3.22),
        ("$0.01/s", "USD/h", 36),
        ("$2/Mtoken", "USD/token", 2e-6),
        ("2 USD/Mtoken", "USD/token", 2e-6),
        ("$2 per Mtok", "USD/token", 2e-6),
        ("500 token/s", "token/s", 500),
        ("20kW", "W", 2e4),
        ("5%", "1", 0.05),
        ("0.8", "1", 0.8),
        ("+.5", "1", 0.5),
    ],
)
def test_a_number_with_a_unit_is_read_exactly(text, dimension, value):
    assert parse(text, dimension) == value


@pytest.mark.parametrize(
    ("text", "dimension", "fact", "remedy"),
    [
        ("30", "s", "no unit", "write `30ms` or `30s`"),
        ("0.03", "s", "no unit", "write `30ms` or `0.03s`"),
        ("80", "B", "no unit", "write `80GB` or `80GiB`"),
        ("80e9", "B", "no unit", "write `80e9B`"),
        ("3.22", "USD/h", "no unit", "write `3.22USD/h`"),
        ("30GB", "s", "is a size (B), but a time (s) is wanted", "write `30ms` or `0.03s`"),
        ("5%", "s", "is a plain number, but a time (s) is wanted", "write `30ms` or `0.03s`"),
        ("30ms", "1", "is a time (s), but a plain number is wanted", "write `0.8` or `80%`"),
        ("80 Gigs", "B", "unknown unit `Gigs`", "did you mean `80 GB`?"),
        ("80 gb", "B", "unknown unit `gb`", "did you mean `80 GB`?"),
        ("80KB", "B", "unknown unit `KB`", "did you mean `80kB`?"),
        ("30 seconds", "s", "unknown unit `seconds`", "did you mean `30 s`?"),
        ("30 MS", "s", "unknown unit `MS`", "did you mean `30 ms`?"),
        ("275 TFLOPs", "FLOP/s", "unknown unit `TFLOPs`", "did you mean `275 TFLOPS`?"),
        ("$0.12/kWh", "USD/h", "unknown unit `$/kWh`", "write `3.22 USD/h` or `$3.22/h`"),
        ("700V", "s", "unknown unit `V`", "write `30ms` or `0.03s`"),
        ("", "s", "is empty", "write `30ms` or `0.03s`"),
        ("  ", "s", "is empty", "write `30ms` or `0.03s`"),
        ("ms", "s", "does not begin with a number", "write `30ms` or `0.03s`"),
        ("1,000 GB", "B", "has a comma", "write `.` before decimals, `_` between thousands"),
        ("-5ms", "s", "is negative", "write `30ms` or `0.03s`"),
        ("0s", "s", "is zero", "write `30ms` or `0.03s`"),
        ("1e400 s", "s", "is beyond anything real, 1e-15 s to 1e9 s", "write `30ms` or `0.03s`"),
        ("1e31 B", "B", "is beyond anything real, 1 B to 1 EB", "write `80 GiB` or `80 GB`"),
        ("0.1 B", "B", "is beyond anything real, 1 B to 1 EB", "write `80 GiB` or `80 GB`"),
    ],
)
def test_what_is_refused_comes_with_a_fact_and_a_remedy(text, dimension, fact, remedy):
    with pytest.raises(UnitError) as caught:
        parse(text, dimension)
    assert (caught.value.fact, caught.value.remedy) == (fact, remedy)
    assert caught.value.text == text


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("nan s", "s"),
        ("inf s", "s"),
        ("infinity", "1"),
        ("30 ms ms", "s"),
        ("30ms, please", "s"),
        ("3 0 ms", "s"),
        ("--5 s", "s"),
        ("1__0 s", "s"),
        ("_10 s", "s"),
        ("1.2.3 s", "s"),
        ("0x10 s", "s"),
        ("٣ ms", "s"),  # digits, but not ours
        ("−5 ms", "s"),  # a minus, but not ours
        ("5 m", "s"),
        ("1/s", "B/s"),
        ("450 GB/s/chip", "B/s"),
        ("400 Gbps/s", "B/s"),
        ("450 GB/", "B/s"),
        ("450 GB", "B/s"),
        ("$", "USD/h"),
        ("$2", "USD/h"),
        ("$$2/h", "USD/h"),
        ("$2 USD/h", "USD/h"),
        ("€3/h", "USD/h"),
        ("2 h/USD", "USD/h"),
        ("2 USD/token", "USD/h"),
        ("12:30", "s"),
    ],
)
def test_a_text_that_other_parsers_guess_at_is_refused(text, dimension):
    with pytest.raises(UnitError):
        parse(text, dimension)


def test_an_example_takes_the_place_of_the_usual_remedy():
    with pytest.raises(UnitError, match="write `540e9`"):
        parse("many", "1", example="540e9")


def test_zero_and_negative_numbers_pass_where_they_are_asked_for():
    assert parse("0 us", "s", allow_zero=True) == 0
    assert parse("-5 ms", "s", positive=False) == -0.005
    with pytest.raises(UnitError, match="is negative"):
        parse("-5 ms", "s", allow_zero=True)


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (0.0285, "s", "28.5 ms"),
        (105e-6, "s", "105 us"),
        (0.9996, "s", "1 s"),  # rounds up into the next unit
        (85.2, "s", "85.2 s"),
        (180, "s", "3 min"),
        (7200, "s", "2 h"),
        (-0.5, "s", "-500 ms"),
        (0, "s", "0 s"),
        (34.36e9, "B", "34.4 GB"),
        (999.9e3, "B", "1 MB"),
        (1.2e12, "B/s", "1.2 TB/s"),
        (275e12, "FLOP/s", "275 TFLOP/s"),
        (206.08, "USD/h", "$206/h"),
        (13189.12, "USD/h", "$13200/h"),
        (1.86e-6, "USD/token", "$1.86/Mtoken"),
        (0.7612, "1", "0.761"),
        (math.inf, "s", "inf s"),
        (math.nan, "s", "nan s"),
    ],
)
def test_a_quantity_is_shown_with_three_digits_and_a_unit(value, dimension, text):
    assert show(value, dimension) == text


@settings(deadline=None, derandomize=True, database=None, max_examples=300)
@given(dimension=st.sampled_from(sorted(RANGES.keys() - {"token"})), data=st.data())
def test_what_is_shown_reads_back_to_three_digits(dimension, data):
    low, high, _ = RANGES[dimension]
    value = data.draw(st.floats(min_value=1.01 * low, max_value=0.99 * high))
    assert parse(show(value, dimension), dimension) == pytest.approx(value, rel=5.001e-3)


@pytest.mark.parametrize("dimension", [name for name in RANGES if name not in ("token", "1")])
def test_a_range_ends_where_its_words_say(dimension):
    low, high, words = RANGES[dimension]
    first, last = words.split(" to ")
    first = f"{first} token/s" if dimension == "token/s" else first  # the unit is said once
    assert [parse(end, dimension) for end in (first, last)] == pytest.approx([low, high])


@settings(deadline=None, derandomize=True, database=None, max_examples=500)
@given(
    text=st.text(alphabet="0123456789.eE+-_ $%/,kMGiBbstokenFLOPSUDhmn µ", max_size=14),
    dimension=st.sampled_from(["s", "B/s", "USD/h", "1"]),
)
def test_any_text_is_read_as_a_positive_number_or_refused(text, dimension):
    try:
        value = parse(text, dimension)
    except UnitError:
        return
    assert 0 < value <= 1e30
