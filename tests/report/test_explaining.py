"""`--explain`: figures that reports print have a formula, whose terms add up to what is printed.

Whatever a report prints beside a label is explained, or stands in `WITHOUT` with a reason. Terms as
they are printed, to three digits, make up the figure as it is printed; at full precision they are
it.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner.commands.cli import answer_to
from planner.quantities.tables import packaged_table
from planner.quantities.units import parse
from planner.report.answer_kinds import document_of
from planner.report.catalogue.figures import value_text
from planner.report.documents.as_text import text_of
from planner.report.documents.blocks import Pairs, Table
from planner.report.explaining import _OVERLAPPING, Term, constants_of, figures, terms_of
from planner.report.explaining.accounts import subjects
from planner.results.engines import EngineDeployment
from planner.results.plans import Plan
from planner.specs.files.formulas import value_of
from planner.verifier.serving.ranks import COUNTED, MEASURED

ROWS = packaged_table("report/explaining/figures.toml")["figure"]
EXAMPLES = Path(__file__).parents[2] / "examples"
MEASURED_ROWS = EXAMPLES / "measured.csv"

COMMANDS = (
    "--model llama-3.1-70b --engine vllm --topology h100-nvl8-x2 --input 1500 --output 300"
    " --ttft-target 1s --latency-target 40ms --rate 8req/s",
    "--model qwen3-8b --engine sglang --topology h100-nvl8-x1 --confidence 50%",
    "--model qwen3-30b-a3b --engine vllm --topology h200-nvl8-x1 --weights fp8 --batch 64",
    "--model palm-540b --topology tpu-v4-4x4x4 --latency-target 30ms",
    "--model palm-540b --draft palm-8b --topology tpu-v4-4x4x4 --latency-target 22ms --batch 1:16",
    "--model llama-3.1-70b --engine roofline --topology h100-nvl8-x2 --demand 2000tok/s"
    " --max-power 20kW --batch 1:64",
    "--model llama-3.1-8b --engine roofline --topology h100-nvl8-x1 --pp 2 --batch 64"
    " --weights int4",
    "--model mixtral-8x22b --engine roofline --topology h100-nvl8-x1 --tp 4 --ep 2",
    "--model llama-3.1-70b --engine erdil2025 --topology h100-nvl8-x2",
    "--model llama-3.1-70b --engine erdil2025 --topology h100-nvl8-x1 --draft llama-3.1-8b",
    "--model llama-3.1-70b --engine erdil2025 --topology h100-nvl8-x2 --memory one-microbatch",
    "predict --engine vllm --model llama-3.1-70b --topology h100-nvl8-x2 --tp 4 --batch 49"
    " --input 1500 --output 300 --rate 4req/s",
    "predict --engine sglang --model deepseek-v3 --topology h100-nvl8-x4 --dp 32 --ep 32"
    " --batch 64",
    "predict --engine trtllm --model llama-3.1-8b --topology h100-nvl8-x1 --tp 2 --batch 16"
    " --role decode",
    "predict --engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --tp 2 --role prefill",
    "predict --engine sglang --model deepseek-v3 --topology h200-nvl8-x2 --tp 8 --dp 2 --ep 16"
    " --batch 32 --draft mtp --overlap two-batch",
    "predict --engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --in-flight 64 --waves 2",
    "predict --engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --pp 3 --batch 9",
    "predict --engine vllm --model qwen3-32b --topology b200-nvl8-x1 --weights nvfp4 --batch 64",
    "predict --engine roofline --model llama-3.1-8b --topology h100-nvl8-x1 --tp 4 --batch 16",
    "predict --engine erdil2025 --model llama-3-70b --topology h100-nvl8-x1 --tp 8 --batch 16",
    "predict --engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --batch 4000 --input 4000",
    "predict --engine sglang --model deepseek-v3 --topology h200-nvl8-x4 --role decode --dp 8"
    " --batch 96 --expert-devices 16 --micro-batches 3",
    "pareto --model llama-3.1-8b --engine roofline --topology h100-nvl8-x1 --batch 1:16",
    "pareto --model llama-3.1-8b --engine vllm --topology h100-nvl8-x1 --batch 16,64",
    "pareto --model llama-3.1-8b --engine erdil2025 --topology h100-nvl8-x1",
    "compare --model llama-3.1-8b --engine vllm,roofline --topology h100-nvl8-x1 --batch 16,64",
    f"repair {EXAMPLES}/placement.json --state {EXAMPLES}/state-later.toml --loss 5%",
    "audit --engine roofline --model llama-3-70b --topology h100-nvl8-x1 --weights bf16"
    " --speed 35tok/s --batch 8",
    "audit --engine vllm --model llama-3.1-70b --topology h100-nvl8-x1 --tp 4 --batch 16"
    " --speed 20tok/s",
    "audit --engine erdil2025 --model llama-3-70b --topology h100-nvl8-x2 --tp 8 --batch 16"
    " --speed 40tok/s",
    "place --model llama-3.1-8b --engine vllm --topology h100-nvl8-x1 --rate 8req/s --input 1500"
    " --output 300",
    "place --model palm-62b --topology tpu-v4-4x4x4 --replicas 2",
    "place --engine roofline --model llama-3.1-70b --topology h100-nvl8-x2 --roles apart"
    " --demand 500tok/s --batch 1:64",
    "place --engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --roles apart --rate 4req/s"
    " --input 1500 --output 300 --confidence 0",
    f"place --engine table:{MEASURED_ROWS} --model llama-3.1-70b --topology h100-nvl8-x2"
    " --demand 500tok/s --input 1500 --output 300",
    "fleet --model llama-3.1-8b --topology h100-nvl8-x1 --engine vllm --rate 8req/s --input 1500"
    " --output 300 --ttft-p95 1s --tpot-p95 40ms --replica-devices 1 --chunk 2048 --simulated 2000",
)
"""Of every kind of answer and every runtime."""


@cache
def answered(command: str) -> Any:
    answer = answer_to(command.split(), began_s=time.perf_counter())
    assert answer.record is not None, answer.message
    return answer.record


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """A figure as it is explained."""

    title: str
    value: float
    unit: str
    formula: str
    terms: tuple[Term, ...]
    constants: tuple[Term, ...]


@cache
def of(command: str) -> tuple[Explanation, ...]:
    return tuple(
        Explanation(
            title=f"{heading}{row['title']}",
            value=value_of(row["value"], scope),
            unit=row["unit"],
            formula=row["formula"],
            terms=tuple(terms_of(row, scope)),
            constants=tuple(constants_of(row, scope)),
        )
        for heading, row, scope in figures(answered(command))
    )


def numbers(one: Explanation) -> dict[str, float]:
    """Values of symbols: what several records have adds up."""
    values: dict[str, float] = {}
    for term in one.terms:
        values[term.symbol] = values.get(term.symbol, 0.0) + float(term.value)
    return values


def half_digit(value: float, unit: str) -> float:
    """What is lost where a figure is printed: half of its third digit; nothing of a whole count."""
    if not value or (unit == "1" and value.is_integer()):
        return 0.0
    return 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - 2)


def as_read(text: str, unit: str) -> float:
    """A printed figure as a reader types it into a calculator."""
    scales = {"%": 1e-2, "billion": 1e9, "million": 1e6, "trillion": 1e12, "$": 1.0}
    if unit in ("share", "count"):
        number, _, word = text.replace(",", "").partition(" ")
        return float(number) * scales.get(word, 1.0)
    if unit == "FLOP/B":
        return float(text.partition(" ")[0])
    return parse(text, unit, positive=False)


@pytest.mark.parametrize("command", COMMANDS)
def test_terms_at_full_precision_make_up_the_figure(command):
    said = of(command)
    assert any(one.formula for one in said)
    for one in said:
        if one.formula:
            assert value_of(one.formula, numbers(one)) == pytest.approx(one.value, rel=1e-7), one


@pytest.mark.parametrize("command", COMMANDS)
def test_terms_as_printed_make_up_the_figure_as_printed(command):
    for one in of(command):
        if not one.formula:
            continue
        printed: dict[str, float] = {}
        lost: dict[str, float] = {}
        for term in one.terms:
            text = value_text(term.value, term.unit)
            printed[term.symbol] = printed.get(term.symbol, 0.0) + as_read(text, term.unit)
            half = half_digit(float(term.value), term.unit)
            lost[term.symbol] = lost.get(term.symbol, 0.0) + half
        made = value_of(one.formula, printed)
        swing = sum(
            abs(value_of(one.formula, {**printed, name: value + lost[name]}) - made)
            for name, value in printed.items()
            if name
        )
        shown = as_read(value_text(one.value, one.unit), one.unit)
        room = 1.05 * (swing + half_digit(one.value, one.unit)) + 1e-9 * abs(shown)
        assert abs(made - shown) <= room, (one.title, made, shown)


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_takes_less_than_physics_leaves_of_it(command):
    n_bounded = 0
    for one in of(command):
        for term in one.terms:
            if term.least is not None and term.symbol not in _OVERLAPPING:
                assert float(term.value) >= term.least * (1 - 1e-9), (one.title, term)
                n_bounded += 1
    has_no_passes = "table:" in command or command.startswith(
        "pareto --model llama-3.1-8b --engine e"
    )
    assert n_bounded or has_no_passes


@pytest.mark.parametrize("command", COMMANDS)
def test_every_constant_has_a_key_and_somebody_who_says_it(command):
    constants = [it for one in of(command) for it in one.constants]
    assert constants or "table:" in command
    for it in constants:
        assert it.source, it
        assert "." in it.symbol, it


LAYOUTS = [
    command
    for command in COMMANDS
    if command.startswith("--model") and ("tpu-v4" in command or "--engine roofline" in command)
]


@pytest.mark.parametrize("command", LAYOUTS)
def test_limits_of_a_roofline_come_to_its_times_by_attained_shares(command):
    """What compute and weights take at what is attained overlaps to what is printed of both."""
    device = answered(command).request.cluster.device
    n_passes = 0
    for figure in of(command):
        terms = {term.name: term for term in figure.terms}
        if "products" not in terms:
            continue
        longer, p = float(terms["planned"].value), device.roofline_exponent
        c = terms["compute"].least / device.compute_fraction
        w = terms["weights"].least / device.hbm_fraction
        both = longer * (c**p + w**p) ** (1 / p)
        assert terms["products"].value == pytest.approx(both, rel=1e-6)
        assert terms["products"].least == max(terms["compute"].least, terms["weights"].least)
        share = terms["attention"].least * longer / terms["attention"].value
        shares = sorted((device.compute_fraction, device.hbm_fraction))
        assert shares[0] * (1 - 1e-6) <= share <= shares[1] * (1 + 1e-6)
        n_passes += 1
    assert n_passes >= 2


def test_limits_of_the_reference_model_are_its_attained_shares():
    command = "--model llama-3.1-70b --engine erdil2025 --topology h100-nvl8-x2"
    device = answered(command).request.device
    (terms,) = ({it.name: it for it in one.terms} for one in of(command) if one.title == "pass")
    assert terms["memory"].least == pytest.approx(terms["memory"].value * device.hbm_fraction)
    assert terms["arithmetic"].least == pytest.approx(
        terms["arithmetic"].value * device.compute_fraction
    )


@pytest.mark.parametrize(
    ("command", "links"),
    [
        ("predict --engine vllm --model llama-3.1-70b --topology h100-nvl8-x2 --tp 4", 450e9),
        (
            "predict --engine sglang --model deepseek-v3 --topology h100-nvl8-x4 --dp 32 --ep 32",
            5e11,
        ),
    ],
)
def test_limits_of_an_operation_are_its_work_at_the_rates_of_data_sheets(command, links):
    record = answered(command)
    for line in record.passes:
        said = {
            (it.name, round(float(it.value), 12)): it
            for one in of(command)
            if one.title == f"{line.name} pass"
            for it in one.terms
        }
        for work in line.operations:
            term = said[work.name, round(line.spent_s(work), 12)]
            share = max(work.mfu_fraction, work.hbm_fraction)
            least = max(share * line.spent_s(work), line.n_runs(work) * work.sent_bytes / links)
            assert term.least == pytest.approx(least, rel=1e-9)
            by = "FLOP" if work.mfu_fraction > work.hbm_fraction else "bytes"
            assert f"its {by} at " in term.limit


@pytest.mark.parametrize(
    ("words", "links"),
    [
        ("vllm --topology tpu-v5e-4x8", 4 * 45e9),  # a torus of two axes
        ("vllm --topology trn2-16", 4 * 128e9),
        ("sglang --topology tpu-v4-4x4x4", 6 * 45e9),
        ("sglang --topology mi300x-x1", 64e9),  # a link for each pair
        ("vllm --topology h100-nvl8-x2", 450e9),
    ],
)
def test_limits_of_messages_are_at_the_links_that_a_device_has(words, links):
    small = f"predict --engine {words} --model llama-3.1-8b --tp 2 --batch 8"
    (decode,) = (one for one in of(small) if one.title == "decode pass")
    (term,) = (it for it in decode.terms if it.name == "all-reduce after mixing")
    assert term.least == pytest.approx(32 * 8 * 4096 * 2 / links)


TWO_NODES = """\
[cluster]
name = "two"
title = "Two servers of one H100"
device = "h100-sxm"
[nodes]
source = "assumed"
n_nodes = 2
n_devices_per_node = 1
activation_network = "tree"
bulk_network = "tree"
[nodes.scale_up]
source = "assumed"
bandwidth = "450 GB/s"
latency = "2 us"
attainable_fraction = 0.5
[nodes.scale_out]
source = "assumed"
bandwidth = "50 GB/s"
latency = "5 us"
attainable_fraction = 0.8
"""
TWO_LINKED = """\
[cluster]
name = "two"
title = "Two H100, joined by a link"
device = "h100-sxm"
[linked]
source = "assumed"
devices = ["a", "b"]
activation_network = "tree"
bulk_network = "tree"
[[link]]
source = "assumed"
a = "a"
b = "b"
bandwidth = "50 GB/s"
latency = "5 us"
"""


@pytest.mark.parametrize("pool", [TWO_NODES, TWO_LINKED])
def test_limits_of_layouts_are_what_the_links_between_their_devices_carry(pool, tmp_path):
    """Two all-reduces a layer of 4 tokens, 4096 numbers of 2 bytes, half of them twice."""
    path = tmp_path / "two.toml"
    path.write_text(pool, encoding="utf-8")
    small = f"predict --engine roofline --model llama-3.1-8b --topology {path} --tp 2 --batch 4"
    (decode,) = (one for one in of(small) if one.title == "decode pass")
    (term,) = (it for it in decode.terms if it.name == "network")
    assert term.least == pytest.approx(32 * 2 * 4 * 4096 * 2 / 50e9)


WITHOUT = {
    "request": "what was asked, and no figure of the answer",
    "traffic": "what was asked",
    "what runs": "what the user said",
    "first screen": "what other sections say, first",
    "accuracy": "how far off such times were, as judged: docs/accuracy.md",
    "certificate": "figures of the search and its proof: docs/verification.md",
    "constants": "counts of values and who published them",
    "measured region": "which settings were measured, and what others would cost: solved again",
    "plans": "rows of a comparison, by their names: figures of each plan are explained behind them",
    **dict.fromkeys(
        ("repair", "replicas that change", "moves", "bytes against the objective"),
        "bytes that move, of which `moves` lists each: what stands after them is explained",
    ),
    "next best plans": "other plans: each is explained where it is asked for",
    "engines side by side": "other plans",
    "mix": "another answer: `plan place --explain`",
    "what rules of engines cost": "other plans",
    "what would help, at this speed or better": "other plans",
    "try": "commands",
    "versions": "words",
    "variants": "losses of quality as published, with their source",
    "layout": "how it is cut, in whole numbers",
    "deployment": "how it is cut, in whole numbers",
    "received by the busiest device in a pass": "bytes of collectives: docs/layouts",
    "balance of decode": "the rule stands beside each line",
    "site": "counts of devices",
    "cluster": "counts of devices",
    "recipes": "replicas: each is explained by its number",
    "replicas": "where they lie",
    "narrowest links": "of the topology, which says its sources",
    "ranks": "where they lie",
    "rounds": "solutions on the way",
    "simulation": "how it was simulated",
    "bounds": "bounds of the search: docs/fleets.md",
    "other fleets": "other answers",
    "what percentiles are of": "words",
    "frontiers": "a drawing",
    "hand-over": "the line above says by what, its latency and its rate",
    "attention on 8 devices, experts on 16": "stations: each is the sum of its operations",
    "memory of a device of experts": "as that of a device of attention",
    "what explains it": "factors of the distance in cost, which stand there without a label",
}
"""Sections of reports whose figures are not explained, and why."""

LABELS = {
    **dict.fromkeys(("quality", "loaded", "model", "copies"), "formats and names, in words"),
    "requested": "what was asked",
    "ties": "other plans",
    "simplest": "what the best would have: `certificate` proves it",
    **dict.fromkeys(("layout", "in parts", "batch", "devices"), "how it is cut, in whole numbers"),
    **dict.fromkeys(("points", "*", "o", "proved by", "besides", "time", "solved"), "the proof"),
    "in the pass": "a command",
    "context": "what the user said",
}
"""Labels without an explanation, and why."""


def labelled(record: Any) -> Iterator[tuple[str, str]]:
    """Section and label of what a report prints with a figure beside it."""
    for section in document_of(record).sections:
        for block in section.blocks:
            rows = block.rows if isinstance(block, Pairs | Table) else ()
            for label, *cells in rows:
                texts = " ".join(map(str, cells))
                if isinstance(label, str) and label and re.search(r"\d", texts):
                    yield section.title, label.strip()


@pytest.mark.parametrize("command", COMMANDS)
def test_whatever_a_report_prints_beside_a_label_is_explained(command):
    record = answered(command)
    kinds = {type(scope["it"]).__name__ for _, scope in subjects(record)}
    known = {label for row in ROWS if kinds & {*row["of"].split()} for label in row["labels"]}
    names = {term.name for one in of(command) for term in one.terms}
    names |= {line.layer for it in getattr(record, "passes", ()) for line in it.operations}
    missing = [
        (section, label)
        for section, label in labelled(record)
        if label not in known | names | {*LABELS} and section not in WITHOUT
    ]
    assert not missing


PRINTED = {
    *("TPOT", "TPOT as planned", "TTFT", "TTFT as planned", "TTFT, a prefill pass", "ITL"),
    *("decode pass", "prefill pass", "pass", "rent", "cost of an output token", "KV cache"),
    *("memory in use", "free memory", "weights of the busiest device", "activations", "power"),
}
"""Figures that reports print in the same digits."""


@pytest.mark.parametrize("command", [it for it in COMMANDS if it.startswith(("--", "predict"))])
def test_what_is_explained_is_what_the_report_prints(command):
    record = answered(command)
    text = " ".join(text_of(document_of(record), 100).split())
    explained = {
        it.title: value_text(it.value, it.unit) for it in of(command) if it.title in PRINTED
    }
    if isinstance(record, Plan) and isinstance(record.deployment, EngineDeployment):
        for title in ("activations", "ITL", "decode pass", "prefill pass"):
            del explained[title]  # which the report leaves to `plan predict`
    assert {title: it for title, it in explained.items() if it not in text} == {}
    assert len(explained) >= 4


def test_every_closed_form_that_times_an_operation_has_its_law():
    families = packaged_table("equations/kernels/families.toml")["families"]
    table = packaged_table("report/explaining/figures.toml")
    assert {*families, MEASURED, COUNTED, "roofline"} == {*table["laws"]}


def test_every_row_of_the_table_is_a_figure_of_some_answer():
    met = [row for command in COMMANDS for _, row, _ in figures(answered(command))]
    assert [row["title"] for row in ROWS if row not in met] == []


def said(command: str) -> str:
    answer = answer_to(command.split(), began_s=time.perf_counter())
    return f"{answer.text}\n{answer.message}"


def test_a_figure_is_in_place_of_the_report_and_all_of_them_are_more():
    small = "predict --engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --batch 8"
    tpot, every = (said(f"{small} --explain {name}") for name in ("tpot", "all"))
    assert "TPOT = ITL / yielded + prompts × each / output" in tpot
    assert "memory of a device" not in tpot
    assert "weights of the fullest device" in every
    assert "weights of the fullest device" not in tpot


def test_a_price_that_is_said_is_its_own_source():
    small = "--engine roofline --model llama-3.1-8b --topology h100-nvl8-x1 --batch 8"
    assert "price.on_demand: --price" in said(f"{small} --price h100-sxm=$2/h --explain rent")
    assert "price.on_demand: --price" not in said(f"{small} --explain rent")


def test_what_a_machine_is_supposed_to_have_is_said_above_figures_of_it():
    small = "--engine roofline --model llama-3.1-8b --topology h100-nvl8-x1 --batch 8"
    supposed = "hbm_bandwidth=2x,flops=3x,price=0.5x,overheads=0.5x"
    text = " ".join(said(f"{small} --what-if {supposed} --explain tpot,rent").split())
    assert "what if HBM bandwidth 2 times" in text
    for facts in (
        "HBM bandwidth 6.7 TB/s memory.hbm_bandwidth: 2 times that of nvidia-h100-datasheet",
        "peak 2.97 PFLOP/s peak.bf16: 3 times that of nvidia-h100-datasheet",
        "price of a device $1.48/h price.on_demand: 0.5 times that of aimultiple",
        "overhead of a layer 30 us attainable.layer_overhead: 0.5 times that of fitted",
        "overlap exponent 3 attainable.roofline_exponent: kernel_fits",
    ):
        assert facts in text


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        ("--explain tpt", "did you mean `tpot`?"),
        ("--explain", "write `--explain tpot`"),
        ("--explain tpot --json", "cannot go with `--json`"),
        ("--explain tpot --quiet", "cannot go with `--quiet`"),
        ("--explain tpot --full", "cannot go with `--full`"),
    ],
)
def test_what_cannot_be_explained_so_is_refused(words, fact):
    assert fact in said(f"--engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 {words}")


@pytest.mark.parametrize("words", ["pareto --batch 1:16 --all", "place --replicas 1 --ranks"])
def test_what_lists_more_of_a_report_does_not_stand_beside_explanations(words):
    text = said(f"{words} --model llama-3.1-8b --engine roofline --explain rent")
    assert f"`--explain`  cannot go with `{words.split()[-1]}`" in text


def test_a_figure_that_an_answer_has_not_is_said_with_those_that_it_has():
    text = said("--engine erdil2025 --model llama-3.1-8b --topology h100-nvl8-x1 --explain ttft")
    assert "this answer has none; it has bound, cache, cost, decode" in text


def test_preferred_points_of_several_curves_are_told_apart():
    small = "pareto --engine vllm,sglang --model llama-3.1-8b --topology h100-nvl8-x1 --batch 16,64"
    text = said(f"{small} --explain rent")
    for engine in ("vllm", "sglang"):
        assert re.search(rf"^preferred: {engine}: 8 devices TP 8", text, re.M)
        assert re.search(rf"^{engine}, rent: \$23.6/h$", text, re.M)


def test_figures_of_a_recipe_are_those_of_one_replica_of_it():
    small = "place --model llama-3.1-8b --engine vllm --topology h100-nvl8-x1 --rate 40req/s"
    text = said(f"{small} --input 1500 --output 300 --explain rent")
    assert "rent: $11.8/h\n" in text
    assert "a replica of recipe 0, rent: $2.95/h\n" in text


@pytest.mark.parametrize("engine", ["vllm", "roofline"])
def test_slow_devices_and_links_in_use_are_not_said_to_be_those_of_data_sheets(engine, tmp_path):
    state = tmp_path / "state.toml"
    state.write_text(
        '[[slow]]\ndevices = ["node{0..1}/gpu{0..7}"]\nspeed = "80%"\n'
        '[[link]]\nnic = ["node{0..1}/gpu{0..7}"]\nbandwidth = "50%"\n',
        encoding="utf-8",
    )
    text = said(
        f"place --model llama-3.1-405b --engine {engine} --topology h100-nvl8-x2 --replicas 1"
        f" --input 1500 --output 300 --state {state} --what-if flops=2x --explain decode"
    )
    for facts in (
        "1.58 PFLOP/s peak.bf16: 1.6 times that of nvidia",
        "2.68 TB/s memory.hbm_bandwidth: 0.8 times that of nvidia",
        "25 GB/s nodes.scale_out.bandwidth: where it stands, at most that of nvidia",
    ):
        assert facts in " ".join(text.split())


def test_percentiles_are_called_as_in_the_report():
    text = said(f"{COMMANDS[-1]} --explain p95")
    assert re.search(r"^    TTFT p95 +209 ms$", text, re.M)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_no_message_of_devices_that_are_joined_in_pairs_is_faster_than_its_links(tp):
    large = f"predict --engine vllm --model llama-3.1-70b --topology mi300x-x1 --tp {tp} --batch 64"
    lines = re.findall(
        r"^ +(?:all-reduce|gather) .* ([\d.]+) ×  .* at (\d+) GB/s",
        said(f"{large} --explain decode,prefill"),
        re.M,
    )
    assert len(lines) == 8
    for times, rate in lines:
        assert float(times) >= 1.0
        assert int(rate) == 64 * (tp - 1)


def test_deviations_beyond_what_is_predicted_have_the_law_that_they_are_counted_by():
    told = (it for row in ROWS for it in row.get("terms", ()) if isinstance(it, dict))
    words = [it["words"] for it in told if it["as"] == "deviations"]
    assert len(words) == 2
    assert all("Student's t of two degrees" in one for one in words)
