"""Requests for fleets: what `traffic.toml` says, and everything that is wrong with one, at once."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.specs.files.ledger import recording
from planner.specs.files.pools import PoolSpec
from planner.specs.traffic.arrivals import REPLAYED
from planner.specs.traffic.lengths import DividedLengths, IndependentLengths, TraceLengths
from planner.specs.traffic.percentiles import (
    USUAL_TARGETS,
    GoodputTarget,
    PercentileTarget,
    percentile_named,
)
from planner.specs.traffic.reading import load_traffic
from planner.specs.traffic.records import FleetTraffic
from planner.specs.traffic.trace_files import load_trace

DATA = Path(__file__).parents[2] / "data" / "fleet"

WHOLE = """
connector = "nixl"

[[class]]
name = "chat"
model = "llama-3.1-70b"
rate = "8 req/s"
input = "lognormal:1500:p99=8000"
output = 300
arrivals = "cv2:4"
cuts = [2048, 8192]
[class.targets]
ttft_p95 = "1 s"
"tpot-p99.9" = "40 ms"
goodput = "99%"
ttft = "2 s"
e2e = "1 min"

[[class]]
name = "code"
model = ["llama-3.1-8b", "qwen3-8b"]
trace = "code.csv.gz"
rate = "20 req/s"
priority = 2

[[class]]
name = "mixed"
model = "llama-3.1-8b"
rate = "1 req/s"
total = "uniform:100:2000"
input_share = "80%"
cuts = "free"

[[kind]]
device = "h100-sxm"
count = 20
price = "$2.10/h"
failed = ["node0/gpu1"]

[[kind]]
name = "cheap"
topology = "l40s-x2"
site = "west"
state = "state.toml"
"""


def _read(folder: Path, text: str) -> FleetTraffic:
    file = folder / "traffic.toml"
    file.write_text(text)
    return load_traffic(file)


def _faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        _read(folder, text)
    return [str(one).replace(f"{folder / 'traffic.toml'}: ", "") for one in caught.value.problems]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(DATA / "azure2023_code.csv.gz", tmp_path / "code.csv.gz")
    (tmp_path / "state.toml").write_text('busy = ["node1"]\n')
    return tmp_path


def test_classes_say_models_lengths_arrivals_and_targets(folder: Path) -> None:
    chat, code, mixed = _read(folder, WHOLE).classes
    assert (chat.name, chat.model.name, chat.rate_per_s) == ("chat", "llama-3.1-70b", 8.0)
    assert isinstance(chat.lengths, IndependentLengths)
    assert (chat.arrivals.cv2, chat.cuts) == (4.0, (2048, 8192))
    assert chat.targets == (
        PercentileTarget(quantity="ttft", share=0.95, at_most_s=1.0),
        PercentileTarget(quantity="tpot", share=0.999, at_most_s=0.04),
    )
    assert [one.name for one in chat.targets] == ["TTFT p95", "TPOT p99.9"]
    assert chat.goodput == GoodputTarget(share=0.99, ttft_s=2.0, e2e_s=60.0)
    assert [model.name for model in code.models] == ["llama-3.1-8b", "qwen3-8b"]
    assert isinstance(code.lengths, TraceLengths)
    assert (code.arrivals.pattern, code.priority, code.cuts) == (REPLAYED, 2, ())
    assert isinstance(mixed.lengths, DividedLengths)
    assert (mixed.lengths.input_fraction, mixed.cuts) == (0.8, "free")


def test_kinds_say_devices_counts_rents_and_what_is_taken(folder: Path) -> None:
    supply = _read(folder, WHOLE).supply
    assert supply is not None
    assert supply.connector is not None
    assert supply.connector.name == "nixl"
    h100, cheap = supply.kinds
    assert isinstance(h100.hardware, PoolSpec)
    cluster = h100.hardware.groups[0].cluster
    assert (h100.name, h100.n_devices, cluster.usd_per_hour) == ("h100-sxm", 20, 2.1)
    assert cluster.device.name == "h100-sxm"
    assert h100.hardware.n_devices == 24  # three servers of eight
    assert h100.state is not None
    assert h100.state.failed == ("node0/gpu1",)
    assert (cheap.name, cheap.n_devices, cheap.site) == ("cheap", 16, "west")
    assert cheap.state is not None
    assert cheap.state.busy == ("node1",)


def test_a_rate_makes_a_trace_faster_with_a_remark(folder: Path) -> None:
    with recording() as ledger:
        code = _read(folder, WHOLE).classes[1]
    trace = load_trace(folder / "code.csv.gz")
    assert [one.fact for one in ledger.remarks] == [
        "is of 2.57 req/s, and stands for 7.79 times as many"
    ]
    first = list(islice(code.requests(seed=1), len(trace)))
    assert [one.n_input for one in first] == list(trace.n_input)
    assert [one.n_output for one in first] == list(trace.n_output)
    times = 20.0 / trace.rate_per_s
    assert [one.at_s for one in first] == pytest.approx([at / times for at in trace.arrival_s])


def test_a_trace_alone_says_its_rate(folder: Path) -> None:
    text = '[[class]]\nname = "code"\nmodel = "llama-3.1-8b"\ntrace = "code.csv.gz"\n'
    read = _read(folder, text)
    assert read.rate_per_s == pytest.approx(2.566686)
    assert read.supply is None


def test_a_trace_may_be_of_lengths_alone(folder: Path) -> None:
    text = '[[class]]\nname = "code"\nmodel = "llama-3.1-8b"\ntrace = "code.csv.gz"\n'
    one = _read(folder, text + 'arrivals = "poisson"\n').classes[0]
    found, trace = list(islice(one.requests(seed=3), 50)), load_trace(folder / "code.csv.gz")
    assert [request.n_input for request in found] != list(trace.n_input[:50])
    assert one.arrivals.cv2 == 1.0
    assert found == list(islice(one.requests(seed=3), 50))
    assert found != list(islice(one.requests(seed=4), 50))


def test_a_class_takes_its_own_rows_of_a_trace_of_several(folder: Path) -> None:
    (folder / "both.csv").write_text(
        "time,class,input,output\n0,a,1,9\n1,code,2,8\n3,code,3,7\n4,a,4,6\n"
    )
    text = '[[class]]\nname = "code"\nmodel = "llama-3.1-8b"\ntrace = "both.csv"\n'
    code = _read(folder, text).classes[0]
    found = [(it.at_s, it.n_input) for it in islice(code.requests(seed=1), 4)]
    assert found == [(1.0, 2), (3.0, 3), (6.0, 2), (8.0, 3)]
    assert code.rate_per_s == 0.5
    fault = _faults(folder, text.replace("code", "chat"))[0]
    assert "has no `chat` in its column of classes, but `a`, `code`" in fault


CLASS = '[[class]]\nname = "chat"\nmodel = "llama-3.1-8b"\n'
LENGTHS = "input = 100\noutput = 10\n"
WELL = CLASS + LENGTHS + 'rate = "1 req/s"\n'
TARGETS = WELL + "[class.targets]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ('connector = "nixl"', "class  is missing"),
        (CLASS + 'rate = "1req/s"', "class[0]  says nothing of lengths"),
        (CLASS + 'input = 5\nrate = "1req/s"', "class[0].output  is missing"),
        (CLASS + LENGTHS, 'class[0].rate  is missing: write `rate = "8 req/s"`'),
        (CLASS + LENGTHS + "rate = 8", "class[0].rate `8`  no unit: write `8req/s`"),
        (WELL + 'trace = "code.csv.gz"', "class[0]  says lengths twice"),
        (WELL + 'arrivals = "trace"', "class[0].arrivals  replays a trace, and there is none"),
        (CLASS + 'trace = "no.csv"\n', "class[0].trace `no.csv`  no such file"),
        (CLASS + 'trace = "state.toml"\n', "is neither `.csv` nor `.jsonl`"),
        (WELL.replace("8b", "8c"), "class[0].model `llama-3.1-8c`  no such model"),
        (WELL.replace('"llama-3.1-8b"', "[]"), "class[0].model `[]`  is empty"),
        (WELL + WELL, "class[1].name `chat`  is the name of another class"),
        (WELL + "replicas = 3\n", "class[0].replicas  unknown key"),
        (WELL + "priority = -1\n", "class[0].priority `-1`  is negative"),
        (WELL + "cuts = [9, 3]\n", "class[0].cuts `[9, 3]`  is not in ascending order"),
        (WELL + "cuts = 3\n", "class[0].cuts `3`  is no list of tokens"),
        (CLASS + 'total = "1000"\ninput_share = 1.0\nrate = "1req/s"', "leaves no token"),
        (WELL.replace("100", "true"), "class[0].input `true`  is neither a number"),
        (WELL.replace("100", "9" * 400), "beyond anything real"),
        (TARGETS + "ttft_p95 = 1", "class[0].targets.ttft_p95 `1`  no unit"),
        (TARGETS + 'ttft_p95 = "0 s"', "class[0].targets.ttft_p95 `0 s`  is zero"),
        (TARGETS + "ttft_p95 = true", "class[0].targets.ttft_p95 `true`  is not a quantity"),
        (TARGETS + 'ttft_p100 = "1 s"', "class[0].targets.ttft_p100  is no target"),
        (TARGETS + 'itl = "1 s"', "is of tokens, not of requests"),
        (TARGETS + 'tpot = "1 s"', "class[0].targets.tpot  does not say of how many requests"),
        (TARGETS + 'goodput = "99%"', "class[0].targets.goodput  has no limits"),
        (TARGETS + 'goodput = "990%"\nttft = "1 s"', "class[0].targets.goodput  is above 1"),
        (TARGETS + 'ttft_p95 = "1s"\n"ttft-p95" = "2s"', "`TTFT p95`  is asked for twice"),
        (WELL + "[[kind]]\ncount = 3\n", "kind[0]  names no devices"),
        (WELL + '[[kind]]\ndevice = "h100-sxm"\n', "kind[0].count  is missing"),
        (WELL + '[[kind]]\ndevice = "h100"\ncount = 3\n', "kind[0].device `h100`  no such device"),
        (
            WELL + '[[kind]]\ntopology = "h100-nvl8-x1"\ncount = 9\n',
            "kind[0].count `9`  is more than the 8 devices of `h100-nvl8-x1`",
        ),
        (
            WELL + '[[kind]]\ntopology = "h100-nvl8-x1"\nprice = 0\n',
            "kind[0].price `0`",
        ),
        (
            WELL + '[[kind]]\ntopology = "l40s-x2"\nstate = "state.toml"\nbusy = ["node0"]\n',
            "kind[0].state `state.toml`  says what is busy and failed already",
        ),
        (
            WELL + '[[kind]]\ntopology = "l40s-x2"\n' * 2,
            "kind[1].name `l40s-x2`  is the name of another kind",
        ),
        ('connector = "nixxl"\n' + WELL, "connector `nixxl`  no such connector"),
    ],
)
def test_what_cannot_be_is_named(folder: Path, text: str, said: str) -> None:
    found = _faults(folder, text)
    assert len(found) == 1
    assert said in found[0]


def test_requests_that_a_model_cannot_attend_to_are_named(folder: Path) -> None:
    text = WELL.replace("llama-3.1-8b", "llama-3-8b").replace("100", '"lognormal:2000:p99=9000"')
    (found,) = _faults(folder, text)
    assert "class[0].model `llama-3-8b`  attends to 8192 tokens at most" in found
    assert _read(folder, text.replace("9000", "9000:max=8000")).classes[0].lengths.longest == (
        8000,
        10,
    )


def test_a_trace_of_one_moment_cannot_be_replayed(folder: Path) -> None:
    (folder / "at_once.csv").write_text("time,input,output\n1,2,3\n1,4,5\n")
    text = CLASS + 'trace = "at_once.csv"\nrate = "1 req/s"\n'
    assert "has all requests at one time" in _faults(folder, text)[0]
    assert _read(folder, text + 'arrivals = "poisson"\n').classes[0].lengths.mean_input_tokens == 3


def test_all_that_is_wrong_is_said_at_once(folder: Path) -> None:
    text = (
        'connector = "nixxl"\n'
        + CLASS.replace("8b", "8c")
        + 'arrivals = "trace"\n[class.targets]\ntps_p9 = "3 s"\n'
        + '[[kind]]\ndevice = "h100"\ncount = 2\n[[kind]]\n'
    )
    keys = [one.split("  ")[0].split(" `")[0] for one in _faults(folder, text)]
    assert keys == [
        "class[0]",
        "class[0].rate",
        "class[0].arrivals",
        "class[0].targets.tps_p9",
        "class[0].model",
        "kind[0].device",
        "kind[1]",
        "connector",
    ]


def test_options_of_targets_are_read_back() -> None:
    assert len(USUAL_TARGETS) == 20
    for option, target in USUAL_TARGETS.items():
        assert percentile_named(option) == (target.quantity, target.share)
        assert target.option == option


@pytest.mark.parametrize(
    ("times", "is_met"),
    [((1.0, 0.1, 9.0), True), ((1.1, 0.1, 9.0), False), ((1.0, 0.2, 9.0), False)],
)
def test_goodput_is_of_requests_that_meet_all(
    times: tuple[float, float, float], is_met: bool
) -> None:
    assert GoodputTarget(share=0.9, ttft_s=1.0, tpot_s=0.1).is_met(*times) is is_met
