"""The word that a user types runs what a checkpoint in it holds."""

from dataclasses import replace

import pytest

from planner.errors import Problem
from planner.specs.ask.checking import architecture_problems, model_problems
from planner.specs.files.engines import load_engine
from planner.specs.files.reading import load_architecture, load_model
from planner.specs.records.served_formats import (
    KNOWN_FORMATS,
    RUN,
    ServedFormats,
    as_run,
    unpublished,
)
from planner.verifier.serving.evaluation import loaded

MODELS = ("deepseek-v3", "gpt-oss-120b", "qwen3-235b-a22b", "llama-3.1-70b", "mixtral-8x7b")


def run(name, engine, weights, experts=None):
    asked = ServedFormats(weights=weights, experts=experts or weights, cache="fp8")
    found = as_run(load_architecture(name), asked, load_engine(engine))
    assert found.cache == "fp8"
    return found.weights, found.experts


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_a_checkpoint_that_is_known_is_loaded_whoever_serves_it(engine):
    assert run("deepseek-v3", engine, "fp8") == ("fp8_block", "fp8_block")
    assert run("deepseek-v3", engine, "nvfp4") == run("deepseek-v3", engine, "fp4")
    assert run("deepseek-v3", engine, "fp4") == ("bf16", "nvfp4")
    assert run("gpt-oss-120b", engine, "mxfp4") == ("bf16", "mxfp4")
    assert run("deepseek-v3", engine, "fp8", "nvfp4") == ("fp8_block", "nvfp4")
    assert run("deepseek-v3", engine, "fp8_static", "fp8") == ("fp8_static", "fp8_block")


def test_others_are_made_from_16_bits_but_where_scales_of_inputs_are_needed():
    assert run("llama-3.1-70b", "vllm", "fp8") == ("fp8", "fp8")
    assert run("llama-3.1-70b", "trtllm", "fp8") == ("fp8_static", "fp8")
    assert run("llama-3.1-70b", "trtllm", "fp4") == ("nvfp4_static", "fp4")
    assert run("llama-3.1-70b", "trtllm", "int4") == ("int4", "int4")
    assert run("llama-3.1-70b", "trtllm", "bf16") == ("bf16", "bf16")


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("name", MODELS)
def test_who_verifies_finds_the_same(name, engine):
    model, spec = load_architecture(name), load_engine(engine)
    for weights in KNOWN_FORMATS:
        for experts in ("bf16", "fp8", "nvfp4", weights):
            asked = ServedFormats(weights=weights, experts=experts, cache="bf16")
            assert loaded(model, asked, spec) == as_run(model, asked, spec)


def test_kernels_know_all_formats_of_checkpoints():
    assert set(RUN) <= set(KNOWN_FORMATS)


def warned(name, word):
    found: list[Problem] = [*unpublished(load_architecture(name), "--weights", word)]
    return [(one.value, one.fact) for one in found]


def test_a_format_without_a_checkpoint_is_said_by_name():
    ((value, fact),) = warned("gpt-oss-120b", "fp8")
    assert (value, "no checkpoint of gpt-oss-120b" in fact) == ("fp8", True)
    ((value, fact),) = warned("deepseek-v3", "fp8_static")
    assert (value, "deepseek-v3 is in fp8_block" in fact) == ("fp8_static", True)
    for name, word in (
        ("deepseek-v3", "fp8"),
        ("deepseek-v3", "fp8_block"),
        ("deepseek-v3", "fp4"),
        ("deepseek-v3", "nvfp4"),
        ("llama-3.1-70b", "fp8_static"),
        ("gpt-oss-120b", "fp16"),
    ):
        assert warned(name, word) == []


def test_a_checkpoint_in_no_format_of_kernels_is_refused():
    model = load_architecture("deepseek-v3")
    odd = replace(model.checkpoints[0], weights="fp9")
    (problem,) = architecture_problems(replace(model, checkpoints=(odd,)), "model")
    assert (problem.key, problem.value) == ("checkpoints[0].weights", "fp9")
    shape = load_model("deepseek-v3")
    assert any(
        "fp9" in one.value for one in model_problems(replace(shape, checkpoints=(odd,)), "model")
    )
    absent = replace(model.checkpoints[0], format="int8")
    assert [one.key for one in model_problems(replace(shape, checkpoints=(absent,)), "model")] == [
        "checkpoints.int8"
    ]
