"""Devices under engines, and deployments, that tests of serving share."""

from __future__ import annotations

from functools import cache

from planner.estimates.kernel_files import kernel_table
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.memory import holding
from planner.estimates.serving.networks import serving_network
from planner.estimates.serving.serving import Serving, serving_times
from planner.estimates.serving.times import ServingTimes
from planner.estimates.serving.traffic import Traffic
from planner.specs.files.engines import load_engine
from planner.specs.files.reading import load_architecture, load_cluster
from planner.specs.records.architecture import Architecture
from planner.specs.records.served_formats import ServedFormats

BF16 = ServedFormats(weights="bf16", experts="bf16", cache="bf16")
FP8 = ServedFormats(weights="fp8", experts="fp8", cache="bf16")


@cache
def model(name: str) -> Architecture:
    return load_architecture(name)


@cache
def clock(topology: str, engine: str) -> KernelClock:
    cluster, spec = load_cluster(topology), load_engine(engine)
    return KernelClock(
        device=cluster.device,
        table=kernel_table(cluster.device.name, engine),
        engine=spec,
        network=serving_network(cluster.fabric),
    )


def served(
    name: str,
    table: DeploymentTable,
    traffic: Traffic,
    *,
    topology: str = "h100-nvl8-x1",
    engine: str = "vllm",
    formats: ServedFormats = BF16,
    is_limited: bool = True,
) -> ServingTimes:
    """Times of a table of deployments, its batches limited by memory unless told otherwise."""
    timer = clock(topology, engine)
    serving = Serving(model=model(name), formats=formats, engine=timer.engine, clock=timer)
    held = holding(
        serving.model,
        table,
        formats,
        timer.engine,
        hbm_bytes=timer.device.hbm_bytes,
        n_tokens=traffic.n_tokens,
        n_held_tokens=traffic.held_tokens(timer.engine.reserved_fraction),
    )
    largest = held.largest_batch if is_limited else float("inf")
    return serving_times(serving, table, traffic, largest_batch=largest)
