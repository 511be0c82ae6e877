"""Options of `plan fleet`, from text to a request: one class of traffic, or a file of several."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from planner.commands.options.arguments import Arguments
from planner.commands.options.by_name import by_name, read_prices
from planner.commands.options.counts import batches, count
from planner.commands.options.engines import known_formats
from planner.commands.options.reading import (
    MOST_THREADS,
    Faults,
    loss_of,
    one_of,
    read_confidence,
    read_limit,
    solver_options,
)
from planner.commands.options.remade import option
from planner.commands.options.roles import read_roles
from planner.commands.options.traffic import OF_ONE_CLASS, read_traffic
from planner.commands.options.written_fleets import WrittenFleet
from planner.commands.placements import DEFAULT_SITE, read_engines
from planner.errors import Problem
from planner.placing.fleets.asking import engine_problems, fleet_request
from planner.quantities import placed
from planner.report.files import STDOUT
from planner.specs.fleet_request import FleetRequest
from planner.specs.pools import load_site
from planner.specs.routers import ROUTERS
from planner.specs.state import load_state
from planner.specs.traffic.reading import load_traffic
from planner.specs.traffic.records import FleetTraffic
from planner.units import UnitError, parse


def read_fleet(written: WrittenFleet, found: Arguments) -> FleetRequest:
    """Everything that was asked for.

    Raises:
        RequestError: with the problems of words, options, files and the request together.
    """
    keywords = _read_search(written, found)
    found.problems += engine_problems(keywords["engines"] or ())
    found.problems += _contradictions(written)
    traffic = _read_traffic(written, found)
    keywords |= _read_site(written, found, traffic)
    keywords |= read_roles(written, found)
    request = None
    if traffic is not None and (keywords["site"] is not None or _is_supplied(traffic)):
        request = found.collect(partial(fleet_request, traffic, **keywords))
    found.check()
    assert request is not None  # or something is wrong with what it is made of
    return request


def _read_traffic(written: WrittenFleet, found: Arguments) -> FleetTraffic | None:
    file = written.traffic
    if file is None:
        return read_traffic(written, found)
    return found.collect(partial(load_traffic, file))


def _contradictions(written: WrittenFleet) -> Iterator[Problem]:
    """Options of one class beside a file of classes, and outputs that exclude each other."""
    if written.traffic is not None:
        for name in OF_ONE_CLASS:
            value = getattr(written, name)
            if value:
                shown = value if isinstance(value, str) else value[0]
                fact = f"is of one class, and `{written.traffic}` says what the classes are"
                remedy = "leave it out, or write it there"
                yield Problem(where=option(name), value=shown, fact=fact, remedy=remedy)
    if written.json and written.quiet:
        yield Problem(where="--quiet", fact="cannot go with `--json`")
    for name in ("json", "quiet"):
        if written.csv == STDOUT and getattr(written, name):
            yield Problem(where=option(name), fact="cannot go with `--csv -`")


def _is_supplied(traffic: FleetTraffic | None) -> bool:
    return traffic is not None and traffic.supply is not None and bool(traffic.supply.kinds)


def _read_site(
    written: WrittenFleet, found: Arguments, traffic: FleetTraffic | None
) -> dict[str, Any]:
    """What serves, where the traffic says nothing of it."""
    name = written.topology or (None if _is_supplied(traffic) else DEFAULT_SITE)
    faults = Faults()
    prices = read_prices(written.price, faults)
    counts = by_name("--count", written.count, count, faults, what="KIND")
    if "" in counts:
        fact, remedy = "is of which kind?", "write `--count h100-sxm=16`"
        faults.problems.append(Problem(where="--count", fact=fact, remedy=remedy))
    found.problems += faults.problems
    file = written.state
    return {
        "site": None if name is None else found.collect(partial(load_site, name)),
        "state": None if file is None else found.collect(partial(load_state, file)),
        "counts": {key: n for key, n in counts.items() if key} or None,
        "prices": prices,
    }


def _read_search(written: WrittenFleet, found: Arguments) -> dict[str, Any]:
    """Arguments of the request that are neither traffic nor site."""
    faults = Faults()
    limits = {one.name: read_limit(one, written, faults) for one in placed("all")}
    router = faults.read("--router", written.router, one_of("way to route", ROUTERS))
    loss = faults.read("--max-quality-loss", written.max_quality_loss, loss_of)
    keywords = {
        "engines": read_engines(written.engine),
        "sharing": not written.no_sharing,
        "weights_formats": known_formats("--weights", written.weights, faults),
        "kv_formats": known_formats("--kv", written.kv, faults),
        "batches": faults.read("--batch", written.batch, batches),
        "chunks": faults.read("--chunk", written.chunk, batches),
        "most_devices": faults.read("--replica-devices", written.replica_devices, count),
        "limits": {name: value for name, value in limits.items() if value is not None},
        "quality_loss_fraction": loss,
        "n_simulated": faults.read("--simulated", written.simulated, count),
        "router": router,
        "options": solver_options(written, faults),
        "confidence": read_confidence(written.confidence, faults),
    }
    found.problems += faults.problems
    usual = ("router", "n_simulated")  # where they cannot be read
    return {key: value for key, value in keywords.items() if value is not None or key not in usual}


def read_staircase(written: WrittenFleet, found: Arguments) -> dict[str, Any] | None:
    """Arguments of the staircase; None where none is asked for."""

    def processes(text: str) -> int:
        return count(text, most=MOST_THREADS)

    faults = Faults()
    ends = faults.read("--staircase", written.staircase, rates_of)
    n_workers = faults.read("--workers", written.workers, processes)
    if written.workers is not None and written.staircase is None:
        fact, remedy = "climb a staircase, and none is asked for", "add `--staircase 1:200req/s`"
        faults.problems.append(
            Problem(where="--workers", value=written.workers, fact=fact, remedy=remedy)
        )
    found.problems += faults.problems
    if ends is None:
        return None
    return {"lowest_per_s": ends[0], "highest_per_s": ends[1], "workers": n_workers or 1}


def rates_of(text: str) -> tuple[float, float]:
    """A range of rates of requests; the unit may be said once [1/s].

    >>> rates_of("1:200req/s")
    (1.0, 200.0)
    """
    example = "write `1:200req/s`"
    low, colon, high = text.partition(":")
    if not colon:
        raise UnitError(text, "is no range of rates", example)
    most = parse(high, "request/s")
    unit = high.strip().lstrip("+0123456789._eE").lstrip("-0123456789")
    is_bare = low.strip().replace(".", "", 1).replace("_", "").isdecimal()
    least = parse(f"{low.strip()}{unit}" if is_bare else low, "request/s")
    if not least < most:
        raise UnitError(text, "does not ascend", example)
    return least, most
