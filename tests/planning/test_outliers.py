"""LLM.int8(): weights of which one column of a thousand is kept and multiplied in 16 bits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from planner import verify
from planner.errors import RequestError
from planner.planning.plans import plan
from planner.report.answers import layouts
from planner.report.as_json import answer_json
from planner.specs.ask.targets import Degrees, Targets
from planner.specs.files.reading import load_cluster
from planner.specs.records.correspondence import model_spec_of
from planner.specs.records.devices import Workload
from planner.specs.records.served_formats import NUMBER_FORMATS
from tests.specs.huggingface.published import read

WORKLOAD = Workload(n_input_tokens=1024, n_output_tokens=256)
ALONE = Targets(degrees=Degrees(tensor=1, pipeline=1), quality_loss_fraction=0.0)


def planned(topology="h100-nvl8-x1", without=(), **choices):
    """Llama 3.1 8B alone on a device, which multiplies no formats of `without`."""
    cluster = load_cluster(topology)
    peaks = {k: v for k, v in cluster.device.peak_flop_per_s.items() if k not in without}
    cluster = replace(cluster, device=replace(cluster.device, peak_flop_per_s=peaks))
    asked = {"workload": WORKLOAD, "batches": (64,), "prefill_batches": (1,), "targets": ALONE}
    model = model_spec_of(read("Llama-3.1-8B"))
    return plan(model, cluster, "roofline", weights_formats=("llm_int8",), **asked, **choices)


def test_bytes_and_products_by_hand():
    """Of 1,000 columns 999 are of one byte, multiplied at 1,979 TFLOP/s, one of two at 989."""
    answer, model = planned(), model_spec_of(read("Llama-3.1-8B"))
    done, device = answer.deployment, load_cluster("h100-nvl8-x1").device
    n_bytes = model.n_params * 0.999 + model.n_params * 0.001 * 2
    assert done.memory.weights_bytes == pytest.approx(n_bytes)
    assert NUMBER_FORMATS["llm_int8"].n_bytes == pytest.approx(1.001)
    peaks, step = device.peak_flop_per_s, done.prefill.step
    words = model.vocab_size * model.d_model
    flop = 2.0 * ((model.n_params - 2 * words) * 1024 + words)
    compute_s = flop * (0.999 / peaks["int8"] + 0.001 / peaks["bf16"]) / device.compute_fraction
    rate = device.hbm_fraction * device.hbm_bytes_per_s
    read_s = (model.n_params - words) * 1.001 / rate
    p = device.roofline_exponent
    assert step.compute_s + step.weights_s == pytest.approx((compute_s**p + read_s**p) ** (1 / p))
    assert verify(json.loads(json.dumps(answer_json(answer)))).is_true


@pytest.mark.parametrize(
    ("without", "said"),
    [
        ((), "int8; 0.1 % of columns are in 16 bits, and what finds these in each input"),
        (("int8",), "does not multiply llm_int8, it saves bytes only"),
    ],
)
def test_answers_say_what_is_not_counted(without, said):
    answer = planned(without=without)
    (text,) = (text for name, text in layouts._deployment_rows(answer) if name == "arithmetic")
    assert said in text
    assert verify(json.loads(json.dumps(answer_json(answer)))).is_true


def test_a_device_that_multiplies_no_int8_multiplies_all_in_16_bits():
    """The same bytes, and products as long as those of bf16."""
    widened = planned(without=("int8",)).deployment.prefill.step
    assert widened.compute_s > 1.9 * planned().deployment.prefill.step.compute_s


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_engines_whose_kernels_nobody_measured_refuse_it(engine):
    with pytest.raises(RequestError, match="finds outliers and adds two products") as refused:
        plan(
            read("Llama-3.1-8B"),
            load_cluster("h100-nvl8-x1"),
            engine,
            weights_formats=("llm_int8",),
        )
    assert "`--engine roofline`" in str(refused.value)
