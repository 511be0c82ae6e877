"""Roles of replicas, and what hands caches over: options of `plan`, `plan place` and others."""

from __future__ import annotations

from typing import Any

from planner.commands.options.parsing import Said


def read_roles(said: Said) -> dict[str, Any]:
    """Arguments of `place` for what is said; nothing where nothing is."""
    asked = said.sets("AskedRoles")
    name = said.values.get("connector")
    if name is not None:
        from planner.specs.connectors import load_connector

        connector = said.collect(lambda: load_connector(name))
        asked |= {} if connector is None else {"connector": connector}
    return asked
