"""One given deployment, evaluated: parts add up, bounds and limits are what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import RequestError
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.report.answer_kinds import document_of
from planner.report.documents.as_text import text_of
from planner.report.explaining import explained
from planner.runtimes.predicting import Speculating, drafts_for, impossible, predict
from planner.specs.files.ledger import recording
from planner.specs.files.reading import load_architecture, load_cluster
from tests.report.predictions import FP8, PREDICTION, machines, predicted
from tests.report.rendering import report_page, report_text

LARGE = predicted(
    "deepseek-v3",
    "h800-nvl8-x16",
    "sglang",
    n_data=128,
    n_expert_parallel=128,
    batch=64,
    overlaps=True,
)


@pytest.mark.parametrize("one", [PREDICTION, LARGE], ids=["dense", "experts"])
def test_operations_add_up_to_their_pass(one):
    for line in one.passes:
        spent = sum(
            part.total_s * (1 if part.layer == "model" else line.n_microbatches)
            for part in line.operations
        )
        assert line.total_s.value == pytest.approx(spent - line.hidden_s + line.host_s)


@pytest.mark.parametrize("one", [PREDICTION, LARGE], ids=["dense", "experts"])
def test_nothing_beats_the_roofline(one):
    for line in one.passes:
        for part in line.operations:
            assert part.mfu_fraction <= 1.0, part.name
            assert part.hbm_fraction <= 1.05, part.name


def test_every_interval_holds_its_value_and_every_number_its_source():
    for line in LARGE.passes:
        assert line.total_s.low < line.total_s.value < line.total_s.high
        assert all(part.source for part in line.operations)
    assert LARGE.n_assumed == sum(p.source.startswith("assumed") for p in LARGE.provenance)


def test_bounds_follow_the_intensity():
    bounds = {part.name: part for line in PREDICTION.passes for part in line.operations}
    decode, prefill = ({part.name: part for part in line.operations} for line in PREDICTION.passes)
    assert decode["decode attention"].bound == "memory"
    assert decode["decode attention"].flop_per_byte < decode["decode attention"].ridge_flop_per_byte
    assert prefill["FFN up"].bound == "compute"
    assert "all-reduce after mixing" not in bounds  # on one device there is none


def test_balance_points_are_those_of_the_literature():
    """H20: R = 296 / 4 = 74 in FP8; groups at R/2, latents R/4, experts R/2S, products R/2.

    Weights have a scale of 4 bytes in 128 × 128, which products wait for too.
    """
    scaled = 1.0 + 4.0 / 128**2
    points = {line.name: line.balanced for line in PREDICTION.balance}
    assert points["tokens of a product"] == pytest.approx(37 * scaled)
    assert points["heads that share keys and values"] == pytest.approx(37)
    h20 = predicted("deepseek-v3", "h20-nvl8-x4", "sglang", n_data=32, n_expert_parallel=32)
    points = {line.name: line.balanced for line in h20.balance}
    assert points["heads that share a latent"] == pytest.approx(74 / 4, rel=0.07)
    assert points["tokens of all ranks, for their experts"] == pytest.approx(74 * scaled * 256 / 16)
    # where each stands: 32 sequences, 32 heads of 8; 128 heads, one sequence on each of 32 ranks
    assert [line.present for line in PREDICTION.balance] == [32.0, 4.0]
    assert [line.present for line in h20.balance] == [1.0, 128.0, 32.0]


def test_the_largest_batch_fits_and_one_more_does_not():
    most = PREDICTION.memory.largest_batch
    full = predicted("qwen3-8b", "h20-nvl8-x1", "sglang", batch=most)
    assert full.queue_s == 0
    assert full.memory.cache_bytes < full.memory.limit_bytes - full.memory.weights_bytes
    assert predicted("qwen3-8b", "h20-nvl8-x1", "sglang", batch=most + 8).queue_s > 0


def test_drafts_are_counted_in_tokens_per_pass():
    found = predict(
        load_architecture("qwen3-8b"),
        machines("h20-nvl8-x1", "sglang"),
        deployments(formats=FP8, batch=4),
        Traffic(n_input_tokens=1024, n_output_tokens=256),
        speculating=Speculating(kind="eagle", n_drafted=3, acceptance=(0.8, 0.5)),
    )
    assert found.tokens_per_step == pytest.approx(1 + 0.8 + 0.4 + 0.2)
    assert found.tpot_s.value < found.itl_s.value
    decode = found.passes[0].total_s.value
    assert found.itl_s.value > decode  # three passes of the drafter come before it
    text = " ".join(report_text(found, 100).split())
    assert "from 2.4 tokens to the next" in text


@pytest.mark.parametrize("one", [PREDICTION, LARGE], ids=["dense", "experts"])
def test_parts_of_the_first_token_add_up_as_printed_and_constants_say_their_source(one):
    assert sum(part.seconds for part in one.ttft_parts) == pytest.approx(one.ttft_s.value)
    sourced = {part.name: part.source for part in one.ttft_parts if part.source}
    assert list(sourced) == ["receiving the request"]
    assert all("tests/data/fleet" in source for source in sourced.values())
    text = report_text(one, 100)
    assert "first token: " in text
    assert all(f"  {name}: fitted: " in text for name in sourced)


def test_ranks_without_experts_are_copies():
    two = predicted("qwen3-8b", "h20-nvl8-x1", "sglang", n_data=2, batch=64)
    assert (two.n_copies, PREDICTION.n_copies, LARGE.n_copies) == (2, 1, 1)
    assert "2 of the model, which share nothing" in report_text(two, 100)
    assert two.device_tokens_per_s == pytest.approx(
        predicted("qwen3-8b", "h20-nvl8-x1", "sglang", batch=64).device_tokens_per_s
    )


def test_what_engines_refuse_is_an_error_with_every_reason():
    with pytest.raises(RequestError) as caught:
        predicted("qwen3-30b-a3b", "h20-nvl8-x1", "sglang", n_tensor=3, n_expert_parallel=2)
    assert len(caught.value.problems) >= 2


def test_weights_that_do_not_fit_say_by_how_much():
    with pytest.raises(RequestError, match=r"weights take 673 GB of a device"):
        predicted("deepseek-v3", "h20-nvl8-x1", "sglang", n_tensor=1)


def test_the_report_says_it_all_and_traces_on_demand():
    plain = report_text(LARGE, 100)
    assert "decode pass" in plain
    assert "hidden by overlap" in plain
    assert "fits: batch" in plain
    said = text_of(explained(document_of(LARGE), LARGE, ["tpot"]), 100)
    assert "InferSim" in said
    assert "constants: floor_s" in said


def test_the_picture_is_well_formed_and_has_every_operation_with_flop():
    from xml.etree import ElementTree

    page = report_page(LARGE)
    tree = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    circles = tree.findall(".//{*}circle")
    expected = sum(
        part.flop > 0 and part.flop_per_byte > 0
        for line in LARGE.passes
        for part in line.operations
    )
    assert len(circles) == expected


def test_the_axes_begin_at_the_decade_of_the_slowest_operation():
    from xml.etree import ElementTree

    tree = ElementTree.fromstring(report_page(PREDICTION).removeprefix("<!DOCTYPE html>\n"))
    pictures = [svg for svg in tree.findall(".//{*}svg") if svg.findall(".//{*}circle")]
    assert len(pictures) == len(PREDICTION.passes)
    for svg in pictures:
        lines = [path.get("d") for path in svg.findall(".//{*}g[@class='grid']/{*}path")]
        levels = sorted(float(d.split()[1].split("H")[0]) for d in lines if "H" in d)
        decade = levels[1] - levels[0]
        heights = [float(circle.get("cy")) for circle in svg.findall(".//{*}circle")]
        assert min(heights) >= levels[0]
        assert levels[-1] - decade <= max(heights) <= levels[-1]


def test_the_bar_of_a_pass_is_as_long_in_parts_as_they_take():
    """With two micro-batches what is inside layers runs twice, what is outside them once."""
    from xml.etree import ElementTree

    tree = ElementTree.fromstring(report_page(LARGE).removeprefix("<!DOCTYPE html>\n"))
    bars = [
        [part for part in svg.findall("{*}rect") if "box" in part.get("class").split()]
        for svg in tree.findall(".//{*}svg")
    ]
    for parts, one in zip(filter(None, bars), LARGE.passes, strict=True):
        assert one.n_microbatches == 2
        sizes = [line.total_s * (1 if line.layer == "model" else 2) for line in one.operations] + (
            [one.host_s] if one.host_s else []
        )
        widths = [float(part.get("width")) for part in parts]
        expected = [size / sum(sizes) * sum(widths) for size in sizes]
        assert widths == pytest.approx(expected, abs=0.02)


def refused(engine="vllm", topology="h100-nvl8-x1", model="qwen3-8b", drafts=None, **degrees):
    """Option and value of each problem of a deployment."""
    found = impossible(
        load_architecture(model),
        replace(machines(topology, engine), n_devices=load_cluster(topology).n_devices),
        deployments(**{"formats": FP8, **degrees}),
        Traffic(n_input_tokens=512, n_output_tokens=64),
        drafts=drafts,
    )
    return [(problem.where, problem.value) for problem in found]


def test_a_chunk_has_room_for_a_token_of_each_sequence_and_one_of_a_prompt():
    assert refused(batch=64, chunk_tokens=64) == [("--chunk", "64")]
    assert refused(batch=64, chunk_tokens=65) == []


def test_a_chunk_has_room_for_what_is_drafted_too():
    """Three drafted tokens and the next one, of 64 sequences each."""
    drafts = drafts_for(
        load_architecture("qwen3-8b"), Speculating(kind="eagle", n_drafted=3, acceptance=(0.8,))
    )
    assert refused(batch=64, chunk_tokens=256, drafts=drafts) == [("--chunk", "256")]
    assert refused(batch=64, chunk_tokens=257, drafts=drafts) == []


def test_an_engine_that_reads_prompts_alone_has_room_in_any_chunk():
    assert refused("sglang", batch=64, chunk_tokens=1) == []


def test_a_chunk_of_the_engines_own_is_no_exception():
    assert refused(batch=8192, chunk_tokens=8192)[0] == ("--chunk", "8192")


@pytest.mark.parametrize(
    ("model", "topology", "cache", "is_refused"),
    [
        ("qwen3-8b", "h100-nvl8-x1", "int4", True),
        ("qwen3-8b", "h100-nvl8-x1", "fp8", False),
        ("qwen3-8b", "h100-nvl8-x1", "fp16", False),  # as fast as bf16
        ("qwen3-8b", "a100-nvl8-x1", "fp8", True),
        ("qwen3-8b", "mi300x-x1", "fp8", False),  # all of its kernels are assumed
        ("qwen3-8b", "mi300x-x1", "int4", True),  # of which the engine has no cache
        ("kimi-k2", "h20-nvl8-x16", "fp8", True),  # its latents: plain attention was measured
    ],
)
def test_a_cache_in_a_format_that_was_not_measured_is_refused(model, topology, cache, is_refused):
    formats = replace(FP8, cache=cache)
    big = {"n_tensor": 64} if model == "kimi-k2" else {}
    found = refused(model=model, topology=topology, formats=formats, **big)
    assert (("--kv", cache) in found) == is_refused


def test_a_topology_holds_the_deployment():
    assert refused(n_tensor=8, n_stages=2) == [("--topology", "h100-nvl8-x1")]
    assert refused(n_tensor=8) == []


def test_a_kernel_that_stands_in_for_another_format_is_said():
    """The head is of 16 bits, and of H20 products were measured in 8."""
    with recording() as ledger:
        predicted("qwen3-8b", "h20-nvl8-x1", "sglang")
    said = [(one.where, one.key, one.value, one.fact) for one in ledger.remarks]
    where = "h20 under sglang"
    assert said == [(where, "gemm", "bf16", "was not measured: timed as fp8_block")]
    with recording() as ledger:
        predicted("qwen3-8b", "h100-nvl8-x1", "sglang")
    assert ledger.remarks == ()
