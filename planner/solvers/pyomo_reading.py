"""Pyomo's model as arrays: what Pyomo states is what every solver of rows reads.

Pyomo's own hand-over captures the process's output and hangs where two threads do it at once,
and its models are made with global state: so a lock stands around making and reading one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from pyomo.core import ConcreteModel, Constraint, Objective, Var, value
from pyomo.core.expr.numeric_expr import LinearExpression
from pyomo.repn import generate_standard_repn

from planner.programs.mixed import MixedProgram

_PYOMO = threading.Lock()


def linear(coefficients: list[float], variables: list[Any]) -> LinearExpression:
    return LinearExpression(linear_coefs=coefficients, linear_vars=variables)


def stated(build: Callable[[], ConcreteModel]) -> MixedProgram:
    """The arrays of a model that is to be minimised; columns and rows in the order of its parts."""
    with _PYOMO:
        return _read(build())


def _read(model: ConcreteModel) -> MixedProgram:
    variables = list(model.component_data_objects(Var))
    place = {id(variable): j for j, variable in enumerate(variables)}
    cost, offset = np.zeros(len(variables)), 0.0
    for objective in model.component_data_objects(Objective, active=True):
        form = generate_standard_repn(objective.expr, quadratic=False)
        offset = float(value(form.constant))
        for weight, variable in zip(form.linear_coefs, form.linear_vars, strict=True):
            cost[place[id(variable)]] += float(weight)
    rows, columns, values = [], [], []
    low, high, names = [], [], []
    for r, row in enumerate(model.component_data_objects(Constraint, active=True)):
        form = generate_standard_repn(row.body, quadratic=False)
        constant = float(value(form.constant))
        low.append(-np.inf if row.lower is None else float(value(row.lower)) - constant)
        high.append(np.inf if row.upper is None else float(value(row.upper)) - constant)
        names.append(row.name)
        for weight, variable in zip(form.linear_coefs, form.linear_vars, strict=True):
            rows.append(r)
            columns.append(place[id(variable)])
            values.append(float(weight))
    return MixedProgram(
        name=model.name,
        cost=cost,
        row=np.array(rows, dtype=np.int64),
        column=np.array(columns, dtype=np.int64),
        value=np.array(values, dtype=float),
        low=np.array(low, dtype=float),
        high=np.array(high, dtype=float),
        lower=np.array([float(value(v.lb)) for v in variables]),
        upper=np.array([float(value(v.ub)) for v in variables]),
        is_whole=np.array([v.is_integer() or v.is_binary() for v in variables], dtype=np.bool_),
        columns=tuple(v.name for v in variables),
        rows=tuple(names),
        offset=offset,
    )
