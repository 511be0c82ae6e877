"""Traces are read as their publishers write them, and every malformed row is named by its line."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.specs.files.ledger import recording
from planner.specs.traffic.arrivals import percentile_of_sorted
from planner.specs.traffic.trace_files import load_parts, load_trace
from tests.clocks import least_s

DATA = Path(__file__).parents[2] / "data" / "fleet"

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"


def _written(tmp_path: Path, text: str, name: str = "some.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def _faults(path: Path) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_trace(path)
    return [str(one).replace(f"{path}", path.name) for one in caught.value.problems]


def _summaries() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    with (DATA / "trace_summaries.csv").open() as file:
        for row in csv.DictReader(file):
            found.setdefault(row["trace"], {})[row["quantity"]] = float(row["value"])
    return found


@pytest.mark.parametrize("name", ["azure2023_code", "azure2023_conv"])
def test_traces_of_azure_are_as_others_summarise_them(name: str) -> None:
    known, trace = _summaries()[name], load_trace(DATA / f"{name}.csv.gz")
    assert (trace.name, len(trace)) == (name, known["n"])
    minutes = Counter(int(at // 60.0) for at in trace.arrival_s)  # that began, the last as whole
    found = {
        "duration_s": trace.duration_s,
        "rate": trace.rate_per_s,
        "interarrival_cv2": trace.interarrival_cv2,
        "peak_to_mean_minute": max(minutes.values()) * (max(minutes) + 1) / len(trace),
        "input mean": trace.mean_input_tokens,
        "output mean": trace.mean_output_tokens,
    }
    for what, tokens in (("input", trace.n_input), ("output", trace.n_output)):
        for share in ("10", "25", "50", "75", "90", "95", "99", "99.9"):
            found[f"{what} {share}"] = percentile_of_sorted(sorted(tokens), float(share) / 100)
    assert found == pytest.approx({name: known[name] for name in found}, rel=1e-9)
    assert len(found) == len(known) - 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("azure.csv", AZURE + "2023-11-16 18:15:59.5000000,7,2\r\n2023-11-16 18:16:01,8,3\r\n"),
        ("zoned.csv", AZURE + "2023-11-16T18:15:59.5+01:00,7,2\r\n2023-11-16T17:16:01Z,8,3\r\n"),
        (
            "burst.csv",
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
            "5,ChatGPT,7,2,9,API log\n6.5,GPT-4,8,3,11,Conversation log\n",
        ),
        (
            "mooncake.jsonl",
            '{"timestamp": 2000, "input_length": 7, "output_length": 2, "hash_ids": [0, 1]}\n\n'
            '{"timestamp": 3500, "input_length": 8, "output_length": 3, "hash_ids": [0]}\n',
        ),
        ("vidur.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0.1,7,2\n1.6,8,3\n"),
        ("ms.csv", "arrival_ms,prompt_tokens,completion_tokens\n100,7,2\n1600,8,3\n"),
    ],
)
def test_a_trace_is_read_in_seconds_from_its_first_request(
    tmp_path: Path, name: str, text: str
) -> None:
    for path in (_written(tmp_path, text, name), tmp_path / f"{name}.gz"):
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(text.encode()))
        trace = load_trace(path)
        assert list(trace.arrival_s) == pytest.approx([0.0, 1.5])
        assert (list(trace.n_input), list(trace.n_output)) == ([7, 8], [2, 3])


def test_malformed_rows_are_named_by_line_all_at_once(tmp_path: Path) -> None:
    rows = ["1,10,5", "soon,10,5", "2,ten,5", "3,10,0", "4,-1,5", "5,10", "", "6,10,1.5"]
    path = _written(tmp_path, "time,input,output\n" + "\n".join(rows) + "\n")
    assert _faults(path) == [
        "some.csv:3: time `soon`  is no time: write seconds, or a date like 2023-11-16 18:15:46.68",
        "some.csv:4: input `ten`  is no whole number",
        "some.csv:5: output `0`  is zero: leave requests that failed out",
        "some.csv:6: input `-1`  is negative",
        "some.csv:7: output  is missing",
        "some.csv:9: output `1.5`  is no whole number",
    ]


def test_of_many_malformed_rows_the_first_ten_are_shown_and_the_others_counted(
    tmp_path: Path,
) -> None:
    path = _written(tmp_path, "time,input,output\n" + "1,x,5\n" * 25 + "1,1,1\n")
    found = _faults(path)
    assert len(found) == 11
    assert found[-1] == "some.csv  15 more lines like these, of 26"


def test_lines_that_are_no_objects_are_named(tmp_path: Path) -> None:
    good = '{"timestamp": 1, "input_tokens": 5, "output_tokens": 6}\n'
    bad = good.replace("5", "true") + '[1]\n{"timestamp": 1}\n{"t\n' + good.replace("5", "2.0")
    found = _faults(_written(tmp_path, good + bad, "some.jsonl"))
    assert [one.split("  ")[0] for one in found] == [
        "some.jsonl:2: input_tokens `True`",
        "some.jsonl:3 `[1]`",
        "some.jsonl:4: input_tokens",
        'some.jsonl:5 `{"t`',
        "some.jsonl:6: input_tokens `2.0`",
    ]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", AZURE, "has no requests"),
        ("a.csv", "when,in,GeneratedTokens\n1,2,3\n", "no column of arrival and input tokens"),
        ("a.txt", AZURE, "is neither `.csv` nor `.jsonl`"),
        ("a.csv.gz", AZURE, "is not what gzip writes"),
        ("b.csv", AZURE + '1,2,"' + "3" * 200_000 + '"\n', "is not CSV"),
    ],
)
def test_what_is_no_trace_says_so(tmp_path: Path, name: str, text: str, said: str) -> None:
    assert said in _faults(_written(tmp_path, text, name))[0]


def test_a_header_that_is_unknown_says_which_columns_are_understood(tmp_path: Path) -> None:
    found = _faults(_written(tmp_path, "when,in,out\n1,2,3\n"))[0]
    assert "the header is when, in, out" in found
    assert "`ContextTokens`" in found


def test_rows_that_are_not_in_order_are_sorted_with_a_remark(tmp_path: Path) -> None:
    path = _written(tmp_path, "time,input,output\n9,1,2\n7,3,4\n8,5,6\n")
    with recording() as ledger:
        trace = load_trace(path)
    assert list(trace.arrival_s) == [0.0, 1.0, 2.0]
    assert (list(trace.n_input), list(trace.n_output)) == ([3, 5, 1], [4, 6, 2])
    assert "not in order" in ledger.remarks[0].fact
    assert [file.kind for file in ledger.files] == ["trace"]


def test_a_number_among_dates_is_no_time(tmp_path: Path) -> None:
    path = _written(tmp_path, AZURE + "2023-11-16 18:15:59,7,2\n12.5,7,2\n")
    assert ":3: TIMESTAMP `12.5`  is no time" in _faults(path)[0]


def test_a_hundred_thousand_rows_take_half_a_second(tmp_path: Path) -> None:
    """A million rows are to take five; measured 1.5."""
    rows = "".join(f"2023-11-16 18:15:{i / 2000:010.7f},{i % 7 + 1},9\r\n" for i in range(100_000))
    path = _written(tmp_path, AZURE + rows)
    assert len(load_trace(path)) == 100_000
    (spent_s,) = least_s(lambda: load_trace(path), until=lambda spent: spent < 0.5)
    assert spent_s < 0.5


@pytest.mark.parametrize("more", ["ContextTokens", "contexttokens", "input_length"])
def test_two_columns_of_the_same_are_not_chosen_between(tmp_path: Path, more: str) -> None:
    path = _written(tmp_path, AZURE.replace("ContextTokens", f"ContextTokens,{more}") + "0,7,9,2\n")
    (fault,) = _faults(path)
    assert f"has several columns of the same: `ContextTokens` and `{more}`: leave one" in fault


MANY = (
    "time,Class,model,input,output\n5,chat,llama-3.1-8b,7,2\n6,code,llama-3.1-70b,8,3\n"
    "8,chat,llama-3.1-70b,9,4\n9,chat,llama-3.1-8b,1,1\n"
)


def test_classes_and_models_of_a_trace_keep_the_times_of_the_whole(tmp_path: Path) -> None:
    """Bursts that all have in common stay common: all begin again after 4 s and a mean gap."""
    path = _written(tmp_path, MANY)
    parts = {(one.of_class, one.model): one for one in load_parts(path)}
    times = {key: list(one.trace.arrival_s) for key, one in parts.items()}
    assert times == {
        ("chat", "llama-3.1-8b"): [0.0, 4.0],
        ("code", "llama-3.1-70b"): [1.0],
        ("chat", "llama-3.1-70b"): [3.0],
    }
    assert {one.trace.period_s for one in parts.values()} == {5.0}
    assert sum(one.trace.rate_per_s for one in parts.values()) == load_trace(path).rate_per_s
    assert parts["code", "llama-3.1-70b"].said_at == f"{path}:3: model"
    both = {one.of_class: len(one.trace) for one in load_parts(path, by_model=False)}
    assert both == {"chat": 3, "code": 1}


def test_a_row_that_names_no_class_is_refused_by_line_and_column(tmp_path: Path) -> None:
    assert _faults(_written(tmp_path, MANY + "9, ,llama-3.1-8b,1,1\n")) == [
        "some.csv:6: Class  is no name"
    ]
    rows = '{"time": 1, "class": "a", "input": 5, "output": 6}\n'
    lost = _written(tmp_path, rows + rows.replace('"a"', "3"), "some.jsonl")
    assert _faults(lost) == ["some.jsonl:2: class `3`  is no name"]
