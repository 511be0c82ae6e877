"""Activations in a format of their own: bytes on links and in memory, and what products run at."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from planner import NoPlanError, RequestError, answer_json, plan, verify
from planner.commands.cli import main
from planner.specs.ask.targets import Degrees, Targets, layouts_of
from planner.specs.files.reading import load_architecture, load_cluster, load_model
from planner.specs.records.devices import Workload
from planner.specs.records.served_formats import input_format, product_format
from planner.verifier.plans import judge_plan

GPUS, SLICES = "h100-nvl8-x1", "tpu-v4-4x4x4"
WORK = Workload(n_input_tokens=2048, n_output_tokens=64)


def planned(model="llama-3.1-70b", pool=GPUS, *, weights=("int8",), activations=None, **asked):
    """One layout at one batch where nothing else is asked."""
    given = {
        "batches": (64,),
        "prefill_batches": (8,),
        "objective": "throughput",
        "workload": WORK,
        "targets": Targets(
            degrees=Degrees(tensor=8, pipeline=1),
            layouts=layouts_of("prefill=WS1D/heads,decode=WS1D/heads"),
        ),
    } | asked
    return plan(load_model(model), load_cluster(pool), "roofline", weights_formats=weights,
                activation_formats=activations, **given)  # fmt: skip


def test_half_the_bytes_of_activations_are_sent_and_held():
    """Messages of `ring` networks take as long as their bytes; hops are overhead."""
    layouts = layouts_of("decode=WS2D/batch,prefill=WS2D/batch")
    asked = {"targets": Targets(layouts=layouts, degrees=Degrees(tensor=64, pipeline=1))}
    wide = planned("palm-540b", SLICES, **asked).deployment
    narrow = planned("palm-540b", SLICES, activations=("int8",), **asked).deployment
    assert (wide.activation_format, narrow.activation_format) == ("", "int8")
    for phase in ("prefill", "decode"):
        before, after = (getattr(one, phase).step for one in (wide, narrow))
        assert after.network_s == pytest.approx(before.network_s / 2)
        assert (after.overhead_s, after.attention_s) == (before.overhead_s, before.attention_s)
        assert (after.compute_s, after.weights_s) == (before.compute_s, before.weights_s)
    assert narrow.memory.activation_bytes == pytest.approx(wide.memory.activation_bytes / 2)
    assert narrow.memory.kv_bytes == wide.memory.kv_bytes


def test_products_run_at_the_rate_of_the_wider_format():
    """FLOP of a prefill of 8 × 2048 tokens over 8 devices, at the peak of each pair, attained."""
    device = load_cluster(GPUS).device
    rates = {}
    for weights, activations, rate in (
        ("int8", None, "int8"),
        ("int8", ("int8",), "int8"),
        ("int8", ("bf16",), "bf16"),
        ("bf16", ("int8",), "bf16"),
        ("int4", ("int8",), "int8"),
    ):
        best = planned(weights=(weights,), activations=activations).deployment
        rates[weights, activations] = best.prefill.step.compute_s * device.peak_flop_per_s[rate]
        flop = best.prefill.mfu_fraction * best.prefill.step.total_s
        used = device.peak_flop_per_s[rate]
        token_flop = 2 * 8 * 2048 * load_model("llama-3.1-70b").n_params_published
        assert flop * used * 8 == pytest.approx(token_flop)
    slowest, quickest = max(rates.values()), min(rates.values())
    assert slowest < 1.02 * quickest  # but for what reading weights overlaps with


@pytest.mark.parametrize(
    ("weights", "activations", "product"),
    [
        ("fp8", "", "fp8"),
        ("fp8", "fp8", "fp8"),
        ("fp8", "bf16", "bf16"),
        ("int4", "fp8", "fp8"),
        ("bf16", "fp16", "bf16"),
        ("fp8", "int8", None),
        ("int8", "fp8", None),
        ("llm_int8", "fp8", None),
        ("llm_int8", "int8", "llm_int8"),
    ],
)
def test_what_is_multiplied_in_what(weights, activations, product):
    assert product_format(weights, activations) == product


def test_inputs_of_engines_are_those_of_their_kernels():
    kernels = ("bf16", "fp16", "fp8", "fp8_block", "fp8_static", "int8", "int4", "mxfp4", "nvfp4")
    wide, eight = "bf16", "fp8"
    expected = (wide, wide, eight, eight, eight, "int8", wide, wide, "nvfp4")
    assert tuple(map(input_format, kernels)) == expected


def test_the_best_of_several_formats_is_chosen_and_verified():
    both = planned(weights=("int8", "bf16"), activations=("bf16", "int8"))
    each = {
        (w, a): planned(weights=(w,), activations=(a,)).deployment.output_tokens_per_s
        for w in ("int8", "bf16")
        for a in ("bf16", "int8")
    }
    best = both.deployment
    assert each[best.weights_format, best.activation_format] == max(each.values())
    assert best.output_tokens_per_s == max(each.values())
    assert both.certificate.status == "optimal"
    assert verify(both, prove=True).is_true
    assert "int8 activations" in best.summary


def test_another_format_than_was_chosen_is_told():
    record = answer_json(planned(activations=("bf16", "int8")))
    for name, field in (("", "activation_format"), ("bf16", "prefill/step/network_s"),
                        ("fp8", "activation_format")):  # fmt: skip
        forged = copy.deepcopy(record)
        forged["answer"]["deployment"]["activation_format"] = name
        told = {one.pointer for one in verify(forged).falsehoods}
        assert f"/answer/deployment/{field}" in told


def test_formats_that_have_no_product_are_not_chosen():
    best = planned(weights=("fp8", "int8"), activations=("int8", "fp8"))
    deployment = best.deployment
    assert deployment.weights_format == deployment.activation_format
    for name, other in (("fp8", "int8"), ("int8", "fp8")):
        mixed = replace(deployment, weights_format=name, activation_format=other)
        _, wrong = judge_plan(replace(best, deployment=mixed))
        assert any(one.path == ("deployment", "activation_format") for one in wrong)


def test_an_answer_without_the_field_is_read_as_usual():
    record = answer_json(planned())
    del record["answer"]["deployment"]["activation_format"]
    del record["request"]["activation_formats"]
    del record["request"]["model"]["activation_losses"]
    assert verify(record).is_true


def test_engines_choose_weights_whose_products_take_the_format():
    asked = {"workload": WORK, "batches": (16,), "chunks": (2048,)}
    model, pool = load_architecture("qwen3-8b"), load_cluster(GPUS)
    fed = plan(model, pool, "vllm", weights_formats=("bf16", "fp8"),
               activation_formats=("bf16",), **asked)  # fmt: skip
    alone = plan(model, pool, "vllm", weights_formats=("bf16",), **asked)
    assert fed.deployment == alone.deployment
    with pytest.raises(RequestError, match="is not what vllm's products take: bf16 of bf16"):
        plan(model, pool, "vllm", activation_formats=("int8",), **asked)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--engine roofline --weights fp8 --activations int8", "has no product with weights in"),
        ("--engine roofline --activations fp4", "no such activation format"),
        ("--engine erdil2025 --activations int8", "as the model's file says"),
        ("--engine roofline --weights bf16 --activations fp8 --max-quality-loss 1%",
         "has no known loss of quality"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_its_name(words, said, capsys):
    command = f"--model llama-3.1-70b --topology {GPUS} {words}"
    assert main(command.split()) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "--activations" in told
    assert said in told


def test_a_known_loss_keeps_a_limit_on_it():
    limit = Targets(quality_loss_fraction=0.01)
    best = planned(activations=("int8",), targets=limit).deployment
    assert best.activation_format == "int8"


def test_a_command_that_works_keeps_the_formats():
    with pytest.raises(NoPlanError) as caught:
        planned(activations=("int8",), targets=Targets(tpot_s=1e-4))
    assert "--activations int8" in caught.value.conflict.command
