"""Which engines plan where none is named: those with measured kernels of their own there."""

from functools import lru_cache
from pathlib import Path

from planner.errors import SpecError
from planner.specs.files.ledger import recording
from planner.specs.files.patterns import patterns
from planner.specs.files.places import Kind
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import ClusterSpec, NodesFabric, TorusFabric
from planner.specs.records.models import ModelSpec
from planner.specs.records.runtimes import ENGINES


def engines_of(model: ModelSpec | Architecture, cluster: ClusterSpec) -> tuple[str, ...]:
    """The engines that can start a model, and whose kernels were measured on a pool's device.

    Where none is named all of them are chosen among in one program; where there is none the
    layouts are, on a roofline.
    """
    return () if _unstarted(model) else engines_on(cluster)


def engines_on(cluster: ClusterSpec) -> tuple[str, ...]:
    """The engines whose kernels were measured on the device of a pool that is made of nodes."""
    if not isinstance(cluster.fabric, NodesFabric):
        return ()
    from planner.estimates.kernel_files import files_of_device

    device = cluster.device.name
    with recording():  # only a look: no figure of an answer rests on it
        try:
            paths = list(files_of_device(device))
        except SpecError:  # every engine that is asked says what ails the file
            return ENGINES
        changed = tuple(path.stat().st_mtime_ns for path in paths)
        return _measured_on(device, tuple(paths), changed)


def why_no_engine(model: ModelSpec | Architecture, cluster: ClusterSpec) -> str:
    """Why no engine plans where none is named; empty if one does, or on a torus."""
    if isinstance(cluster.fabric, TorusFabric) or engines_of(model, cluster):
        return ""
    if not isinstance(cluster.fabric, NodesFabric):
        return "engines are planned on nodes, and these devices are joined link by link"
    return _unstarted(model) or f"no engine's own kernels were measured on {cluster.device.name}"


def usual_servers(device: str) -> str | None:
    """The topology of a device's usual servers, with as many of them as it allows."""
    from planner.specs.files.reading import load_cluster

    for _, pattern in patterns(Kind.CLUSTER):
        if pattern.name.startswith(device.partition("-")[0]):
            name = pattern.fill({key: values[-1] for key, values in pattern.allowed.items()})
            with recording():  # only a look
                cluster = load_cluster(name)
            if cluster.device.name == device and isinstance(cluster.fabric, NodesFabric):
                return name
    return None


def _unstarted(model: ModelSpec | Architecture) -> str:
    """Why no engine can start a model; empty if its weights are where engines find them."""
    return "" if model.repository else f"no engine starts {model.name}: it names no repository"


@lru_cache(maxsize=64)
def _measured_on(
    device: str, paths: tuple[Path, ...], changed_ns: tuple[int, ...]
) -> tuple[str, ...]:
    """Of the tables as they stand, with the times of their last change."""
    return tuple(name for name in ENGINES if _has_own(device, name))


def _has_own(device: str, engine: str) -> bool:
    """Whether a table of the engine's own has measured kernels of the device."""
    from planner.estimates.kernel_files import ASSUMED, kernel_table

    try:
        table = kernel_table(device, engine)
    except SpecError:  # it is to be asked, so that it says what ails the file
        return True
    return table.version != ASSUMED and bool(table.measured_by)
