"""What of a deployment was never compared with measurements, counted row by row.

Nothing of `planner.estimates` is used: the rows of the region are gone through once a property.
How far off times are beyond what errors of kernels explain is read from its table once more.
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from planner.specs.records.devices import DeviceSpec
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.roles import Client
from planner.specs.region import Outside
from planner.verifier.serving.kernels import STATIC
from planner.verifier.serving.ranks import Rank, kind_of

OUTSIDE_CONFIDENCE = 0.9
"""Share of cases in which what is planned outside holds, where nobody asks for another."""

_SINGLE = ("tp", "dp", "ep", "pp", "nodes", "role", "weights", "cache", "drafts", "micro_batches")
_TOGETHER = (("tp", "ep"), ("pp", "role"))

Row = Mapping[str, str]


@cache
def _rows(name: str) -> Sequence[Row]:
    text = (files("planner.specs") / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def outside_of(
    rank: Rank,
    *,
    engine: str,
    role: str,
    n_drafted: int,
    overlaps: bool,
    batch: int,
    lengths: tuple[float, float],
    client: Client | None = None,
) -> tuple[Outside, ...]:
    """Of a deployment whose ranks serve so many requests at once, of these lengths in and out."""
    kind = kind_of(rank.model)
    held = rank.formats.weights if kind == "dense" else rank.formats.experts
    values = {
        "tp": rank.n_tensor,
        "dp": rank.n_data,
        "ep": rank.n_expert_parallel,
        "pp": rank.n_stages,
        "nodes": (rank.n_devices + rank.links.n_per_node - 1) // rank.links.n_per_node,
        "role": "decode with experts apart" if rank.n_expert_devices else role,
        "weights": held.removesuffix(STATIC),
        "cache": rank.formats.cache,
        "drafts": n_drafted,
        "micro_batches": 2 if overlaps else 1,
    }
    said = tuple((name, str(value)) for name, value in values.items())
    device = rank.kernels.device.name
    sent = () if client is None or client.is_described else (_of("client", client.title),)
    return _outside(engine, device, kind, said, batch * rank.n_data, lengths) + sent


@cache
def _pool(engine: str, device: str, kind: str) -> tuple[str, Sequence[Row]]:
    """What there is too little of, and the rows that stand for it."""
    of_kind = [it for it in _rows("region/measured_region.csv") if it["kind"] == kind]
    of_engine = [it for it in of_kind if it["engine"] == engine]
    of_device = [it for it in of_engine if it["device"] == device]
    if _enough(of_device):
        return "", of_device
    return ("device", of_engine) if _enough(of_engine) else ("engine", of_kind)


@cache
def _outside(
    engine: str,
    device: str,
    kind: str,
    said: tuple[tuple[str, str], ...],
    in_flight: int,
    lengths: tuple[float, float],
) -> tuple[Outside, ...]:
    values, (lacking, rows) = dict(said), _pool(engine, device, kind)
    values |= {"device": device, "engine": engine, "batch": str(in_flight)}
    values["lengths"] = "/".join(f"{length:.12g}" for length in lengths)
    values |= {" × ".join(pair): " × ".join(values[it] for it in pair) for pair in _TOGETHER}
    known, unknown = _parted(rows, values, [(name,) for name in _SINGLE])
    pairs = [pair for pair in _TOGETHER if not {(name,) for name in pair} & {*unknown}]
    met, apart = _parted(rows, values, pairs)
    load = _load(rows, [_common(values, names) for names in (*known, *met)], in_flight, lengths)
    names = filter(None, (lacking, *map(" × ".join, (*unknown, *apart)), load))
    return tuple(_of(it, values[it]) for it in names)


def _of(name: str, value: str) -> Outside:
    errors = {
        it["property"]: float(it["deviation_fraction"]) for it in _rows("region/region_errors.csv")
    }
    return Outside(property=name, value=value, deviation_fraction=errors[name])


def _parted(
    rows: Sequence[Row], values: Row, named: Iterable[tuple[str, ...]]
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Properties that enough rows have as a deployment has them, and those that they do not."""
    parts: tuple[list[tuple[str, ...]], list[tuple[str, ...]]] = [], []
    for names in named:
        parts[not _enough(_having(rows, values, names))].append(names)
    return parts


def _load(
    rows: Sequence[Row], known: Sequence[Row], in_flight: int, lengths: tuple[float, float]
) -> str:
    """What of the load is too far from measurements that are alike; empty where nothing is."""
    for name, asked in (("n_input", lengths[0]), ("n_output", lengths[1])):
        rows = [it for it in rows if _close(float(it[name]), asked)]
    near = [it for it in rows if _close(float(it["in_flight"]), in_flight)]
    if not all(_enough(_having(rows, one, one)) for one in known):
        return "lengths"
    return "" if all(_enough(_having(near, one, one)) for one in known) else "batch"


def _common(values: Row, names: Iterable[str]) -> Row:
    return {name: values[name] for name in names}


def _having(rows: Iterable[Row], values: Row, names: Iterable[str]) -> Iterable[Row]:
    return (it for it in rows if all(it[name] == values[name] for name in names))


def _close(measured: float, value: float) -> bool:
    """Within a factor of two."""
    return measured <= 2 * value and value <= 2 * measured


def _enough(rows: Iterable[Row]) -> bool:
    """Whether these are ten measurements or more, of two runs or more."""
    n_rows, runs = 0, set()
    for one in rows:
        n_rows += int(one["n_rows"])
        runs.update(one["runs"].split())
    return n_rows >= 10 and len(runs) >= 2


@cache
def _deviations() -> Mapping[tuple[str, ...], Row]:
    """Rows by runtime, device, kind of model and quantity."""
    names = ("runtime", "device", "kind", "quantity")
    return {tuple(row[it] for it in names): row for row in _rows("model_errors.csv")}


def correlation(kind: str, quantity: str) -> float:
    """Of the errors of two engines that run a model on a device alike [1]."""
    return float(_deviations()["any", "any", kind, quantity]["common_fraction"])


def deviation(runtime: str, kind: str, quantity: str) -> float:
    """Of a runtime's times; of any runtime's where nothing was measured on its own [1]."""
    rows, names = _deviations(), (runtime, "any", kind, quantity)
    return float(rows[names if names in rows else ("any", *names[1:])]["deviation_fraction"])


def engine_deviation(engine: EngineSpec, kind: str, quantity: str) -> float:
    """Of an engine's times, by its calibration where it has one [1]."""
    if engine.calibration is not None:
        return {"TPOT": engine.calibration.tpot_error, "TTFT": engine.calibration.ttft_error}[
            quantity
        ]
    return deviation(engine.name, kind, quantity)


def roofline_deviation(device: DeviceSpec, kind: str, quantity: str) -> float | None:
    """Of a roofline; None of devices on which what they attain is assumed, all of it [1]."""
    assumed = {one.key for one in device.provenance if one.is_assumed}
    if {"attainable.compute_fraction", "attainable.hbm_fraction"} <= assumed:
        return None
    own = _deviations().get(("roofline", device.name, kind, quantity))
    return float(own["deviation_fraction"]) if own else deviation("roofline", kind, quantity)


def deviations(share: float) -> float:
    """How many of them an interval is wide that holds a share of all cases.

    By Student's law of two degrees of freedom; one holds erf(1/√2) of them, as a normal one does.
    """
    confidence = math.erf(math.sqrt(0.5))
    return share / confidence * math.sqrt((1 - confidence * confidence) / (1 - share * share))
