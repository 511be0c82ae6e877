"""A kernel far slower than another engine's on the same device is said, with both figures."""

from dataclasses import replace

import pytest

from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.runtimes.predicting import predict
from planner.specs.files.ledger import recording
from planner.specs.files.reading import load_architecture
from planner.specs.records.served_formats import ServedFormats
from tests.report.predictions import FP8, machines

R1 = replace(load_architecture("deepseek-r1"), checkpoints=())
"""As if its checkpoint had a scale for each tensor: of blocks vLLM has quicker kernels."""


def said(engine, *, batch=32, topology="h200-nvl8-x1", model=R1, change=None, **degrees):
    found = machines(topology, engine)
    found = change(found) if change else found
    with recording() as ledger:
        predict(
            model,
            found,
            deployments(formats=FP8, batch=batch, **{"n_tensor": 8, **degrees}),
            Traffic(n_input_tokens=1024, n_output_tokens=256),
        )
    return [(one.where, one.key, one.value, one.fact) for one in ledger.remarks]


def test_experts_at_a_tenth_of_the_roofline_are_said_with_whose_are_faster():
    ((where, key, value, fact),) = said("vllm")
    assert (where, key, value) == ("h200 under vllm", "experts", "fp8")
    assert fact == (
        "reaches 9% of its roofline in decode, where the kernels of trtllm reach 57%: "
        "its table is of version 0.24.0"
    )


def test_of_the_engine_whose_kernels_are_fast_nothing_is_said():
    assert said("sglang") == []


def test_a_kernel_is_compared_with_those_of_its_format_only():
    """In 16 bits the experts of every engine run well."""
    sixteen = ServedFormats(weights="bf16", experts="bf16", cache="bf16")
    with recording() as ledger:
        predict(
            load_architecture("qwen3-30b-a3b"),
            machines("h200-nvl8-x1", "vllm"),
            deployments(formats=sixteen, batch=32),
            Traffic(n_input_tokens=1024, n_output_tokens=256),
        )
    assert ledger.remarks == ()


def test_without_rivals_nothing_is_said():
    def alone(found):
        return replace(found, kernels=replace(found.kernels, rivals={}))

    assert said("vllm", change=alone) == []


@pytest.mark.parametrize(("share", "is_said"), [(0.03, True), (0.6, False)])
def test_a_share_is_that_of_the_roofline(share, is_said):
    """Experts of sglang with another share of the bandwidth: its rivals are those that ship."""

    def slowed(found):
        kernels = dict(found.kernels.kernels)
        for key, kernel in kernels.items():
            if key[0] == "experts":
                constants = {**kernel.constants, "memory_fraction": share}
                kernels[key] = replace(kernel, constants=constants)
        return replace(found, kernels=replace(found.kernels, kernels=kernels))

    assert any(key == "experts" for _, key, _, _ in said("sglang", change=slowed)) == is_said


def test_each_family_is_said_once_though_it_is_slow_in_both_passes():
    families = [key for _, key, _, _ in said("vllm", n_expert_parallel=8)]
    assert families == ["experts"]
