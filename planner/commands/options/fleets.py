"""Options of `plan fleet` to a request: one class of traffic, or a file of several."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from planner.commands.options.parsing import Said
from planner.commands.options.reading import kernel_formats, read_roles
from planner.commands.options.traffic import OF_ONE_CLASS, read_traffic
from planner.commands.placements import DEFAULT_SITE, read_limits
from planner.placing.fleets.asking import engine_problems, fleet_request
from planner.specs.fleet_request import FleetRequest
from planner.specs.pools import load_site
from planner.specs.request import SolverOptions
from planner.specs.state import load_state
from planner.specs.traffic.reading import load_traffic
from planner.specs.traffic.records import FleetTraffic


def read_fleet(said: Said) -> FleetRequest:
    """Everything that was asked for.

    Raises:
        RequestError: with the problems of words, options, files and the request together.
    """
    said.problems += engine_problems(said.engine)
    keywords = _read_search(said)
    traffic = _read_traffic(said)
    keywords |= _read_site(said, traffic)
    keywords |= read_roles(said)
    request = None
    if traffic is not None and (keywords["site"] is not None or _has_devices(traffic)):
        request = said.collect(partial(fleet_request, traffic, **keywords))
    said.check()
    assert request is not None  # or something is wrong with what it is made of
    return request


def _read_traffic(said: Said) -> FleetTraffic | None:
    """The classes of options, or of a file, beside which options of one class say nothing."""
    file = said.traffic
    if file is None:
        return read_traffic(said)
    for name in filter(said.is_given, OF_ONE_CLASS):
        fact = f"is of one class, and `{file}` says what the classes are"
        said.refuse(name, fact, "leave it out, or write it there", value=said.texts[name][0])
    return said.collect(partial(load_traffic, file))


def _has_devices(traffic: FleetTraffic | None) -> bool:
    """Whether a file of traffic says what serves it."""
    return traffic is not None and traffic.supply is not None and bool(traffic.supply.kinds)


def _read_site(said: Said, traffic: FleetTraffic | None) -> Mapping[str, Any]:
    """What serves, where the traffic says nothing of it."""
    name = said.topology or (None if _has_devices(traffic) else DEFAULT_SITE)
    if "" in said.count:
        said.refuse("--count", "is of which kind?", "write `--count h100-sxm=16`", value="")
    file = said.state
    return {
        "site": None if name is None else said.collect(partial(load_site, name)),
        "state": None if file is None else said.collect(partial(load_state, file)),
        "counts": {key: n for key, n in said.count.items() if key} or None,
        "prices": said.price,
    }


def _read_search(said: Said) -> dict[str, Any]:
    """Arguments of the request that are neither traffic nor site."""
    return {
        **said.sets(),
        "engines": said.engine or None,
        "sharing": not said.no_sharing,
        "weights_formats": kernel_formats(said, "--weights"),
        "kv_formats": kernel_formats(said, "--kv"),
        "limits": read_limits(said),
        "quality_loss_fraction": said.max_quality_loss,
        "options": SolverOptions(**said.sets("SolverOptions")),
    }
