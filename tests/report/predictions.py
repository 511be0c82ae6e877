"""A prediction that tests of reports share."""

from __future__ import annotations

from planner.estimates.kernel_files import kernel_table
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.results.predictions import Prediction
from planner.runtimes.predicting import Machines, predict
from planner.specs.files.engines import load_engine
from planner.specs.files.reading import load_architecture, load_cluster
from planner.specs.records.served_formats import ServedFormats

FP8 = ServedFormats(weights="fp8", experts="fp8", cache="bf16")


def machines(topology: str, engine: str) -> Machines:
    cluster = load_cluster(topology)
    return Machines(
        kernels=kernel_table(cluster.device.name, engine),
        engine=load_engine(engine),
        cluster=cluster,
    )


def predicted(model: str, topology: str, engine: str, **degrees: object) -> Prediction:
    """A deployment in 8 bits for 4096 tokens in and 1024 out."""
    return predict(
        load_architecture(model),
        machines(topology, engine),
        deployments(formats=FP8, **degrees),
        Traffic(n_input_tokens=4096, n_output_tokens=1024),
    )


PREDICTION = predicted("qwen3-8b", "h20-nvl8-x1", "sglang", batch=32)
