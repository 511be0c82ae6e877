"""Engines and kernels with the constants that a user's own serving runs gave."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.specs.ask.calibrations import calibrated_for
from planner.specs.records.kernels import (
    ENGINE_CONSTANTS,
    EngineSpec,
    EngineTables,
    KernelTable,
    ServingCalibration,
)

LAUNCHES = frozenset({"floor_s", "kernel_s", "routing_s"})
"""Constants of launches, which take as many times as long as bytes."""


def slowed(constants: Mapping[str, float], factor: float, flop: float = 1.0) -> dict[str, float]:
    """Constants of a kernel whose launches and bytes take as many times as long.

    Args:
        factor: of launches and bytes [1].
        flop: of arithmetic [1].
    """
    slower = dict(constants)
    for name, value in constants.items():
        if name == "memory_fraction" or name.endswith("_per_s"):
            slower[name] = value / factor
        elif name in LAUNCHES:
            slower[name] = value * factor
        elif name == "compute_fraction":
            slower[name] = value / flop
    return slower


def slowed_table(table: KernelTable, factor: float, flop: float = 1.0) -> KernelTable:
    """All kernels of a table, slowed."""
    kernels = {
        key: replace(kernel, constants=slowed(kernel.constants, factor, flop))
        for key, kernel in table.kernels.items()
    }
    return replace(table, kernels=kernels)


def with_constants(tables: EngineTables, constants: ServingCalibration) -> EngineTables:
    """An engine and its kernels with the constants of a calibration."""
    own = {name: getattr(constants, name) for name in ENGINE_CONSTANTS}
    return EngineTables(
        engine=replace(tables.engine, calibration=constants, **own),
        kernels=slowed_table(tables.kernels, constants.bytes_slowness, constants.flop_slowness),
    )


def engine_tables(engine: EngineSpec, kernels: KernelTable, models: Sequence[str]) -> EngineTables:
    """An engine and its kernels for models, calibrated where `--calibration` is said.

    Raises:
        RequestError: calibrations are said, and none is of these.
    """
    tables = EngineTables(engine=engine, kernels=kernels)
    constants = calibrated_for(engine.name, kernels.device, models)
    return tables if constants is None else with_constants(tables, constants)
