"""Programs for tests: written by hand, drawn by hypothesis, or large."""

from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import strategies as st

from planner.programs.blocks import BlockProgram, InMemory, joined
from planner.programs.layout import LayoutProgram, Limit
from planner.programs.targets import Facts, Quantities

INFINITE = float("inf")


def program(contexts, columns, *, slots=("prefill", "decode"), limits=()):
    """A program in rows instead of arrays.

    contexts: (objective, resident GiB, capacity GiB)
    columns: (context, slot, objective, GiB)
    limits: (name, coefficient of each context, of each column, at most)
    """
    of_context = np.array(contexts, dtype=np.float64).reshape(-1, 3).T
    of_column = np.array(columns, dtype=np.float64).reshape(-1, 4).T
    return LayoutProgram(
        slots=tuple(slots),
        context_objective=of_context[0],
        context_bytes=of_context[1],
        capacity_bytes=of_context[2],
        column_context=of_column[0].astype(np.int64),
        column_slot=of_column[1].astype(np.int64),
        column_objective=of_column[2],
        column_bytes=of_column[3],
        limits=tuple(
            Limit(
                name=name,
                context=np.array(context, dtype=np.float64),
                column=np.array(column, dtype=np.float64),
                at_most=at_most,
            )
            for name, context, column, at_most in limits
        ),
    )


def posed(layout, *, tie=None, **columns):
    """A program whose columns are nothing but numbers; `tie` names what breaks ties.

    columns: coefficients of the columns of each quantity, or (of contexts, of columns)
    """
    none = np.zeros(layout.n_contexts), np.zeros(layout.n_columns)
    quantities = {
        name: values if isinstance(values, tuple) else (none[0], np.array(values))
        for name, values in columns.items()
    }
    nothing = np.zeros(layout.n_columns, dtype=np.int64)
    return BlockProgram(
        program=layout,
        quantities=known(
            {"nothing": none} | quantities, context=layout.column_context, batch=nothing
        ),
        tie_breakers=() if tie is None else (tie,),
        n_unfit=0,
    )


class InBlocks(InMemory):
    """A posed program whose contexts come in several blocks, each context in the block it names."""

    def __init__(self, whole, block):
        super().__init__(whole)
        self._block = np.asarray(block)

    def blocks(self, n_best=None, reliefs=None):
        for b in range(max(self._block, default=0) + 1):
            yield self.of(0, np.flatnonzero(self._block == b))


def in_order(whole):
    """The same program in the order that joined parts have: slot by slot."""
    return joined([whole])


TENTHS = st.integers(0, 40).map(lambda n: n / 10)  # ties and exact limits are common, and round


@st.composite
def programs(draw, max_contexts=4, max_columns=4):
    """Small programs: some with empty slots, rows met exactly, negative costs, no answer."""
    n_contexts = draw(st.integers(1, max_contexts))
    n_slots = draw(st.sampled_from([1, 2, 2, 2, 3]))
    columns = [
        (k, s, draw(TENTHS) - 1.0, draw(TENTHS))
        for k in range(n_contexts)
        for s in range(n_slots)
        for _ in range(draw(st.integers(0 if draw(st.booleans()) else 1, max_columns)))
    ]
    columns = draw(st.permutations(columns))
    capacity = st.one_of(TENTHS.map(lambda c: 2 * c), st.just(INFINITE))
    contexts = [(draw(TENTHS), draw(TENTHS), draw(capacity)) for _ in range(n_contexts)]
    limits = [
        _limit(draw, name, contexts, columns)
        for name in draw(st.sampled_from([(), ("tpot",), ("tpot", "cost"), ("cost", "devices")]))
    ]
    names = ("prefill", "decode", "draft")[:n_slots]
    return program(contexts, columns, slots=names, limits=limits)


def _limit(draw, name, contexts, columns):
    """`tpot` looks at one slot, `devices` at contexts, `cost` at everything."""
    context = [0.0 if name == "tpot" else draw(TENTHS) for _ in contexts]
    column = [
        draw(TENTHS) if name == "cost" or (name == "tpot" and slot == 0) else 0.0
        for _, slot, *_ in columns
    ]
    return name, context, column, draw(TENTHS) * (3 if name == "cost" else 1)


def random_program(n_contexts, n_columns_each, *, seed=0):
    """Two slots; cheap columns are big; ttft, tpot and devices limit, memory binds."""
    r = np.random.default_rng(seed)
    n = n_contexts * 2 * n_columns_each
    slot = np.tile(np.repeat([0, 1], n_columns_each), n_contexts)
    cost = r.uniform(1, 10, n)
    nothing = np.zeros(n_contexts)
    time_ms = r.uniform(1, 50, n)
    return LayoutProgram(
        slots=("prefill", "decode"),
        context_objective=r.uniform(0, 3, n_contexts),
        context_bytes=r.uniform(1, 8, n_contexts),
        capacity_bytes=np.full(n_contexts, 20.0),
        column_context=np.repeat(np.arange(n_contexts), 2 * n_columns_each),
        column_slot=slot,
        column_objective=cost,
        column_bytes=12 - cost + r.uniform(0, 4, n),
        limits=(
            Limit(name="ttft", context=nothing, column=time_ms * (slot == 0), at_most=25.0),
            Limit(name="tpot", context=nothing, column=time_ms * (slot == 1), at_most=30.0),
            Limit(
                name="devices",
                context=r.integers(1, 64, n_contexts).astype(np.float64),
                column=np.zeros(n),
                at_most=48.0,
            ),
        ),
    )


def knapsack(n_slots, n_columns_each, *, seed=0):
    """One context, many slots, cost against memory and two more rows: slow to prove."""
    r = np.random.default_rng(seed)
    n = n_slots * n_columns_each
    weight = r.integers(10, 100, (3, n)).astype(np.float64)
    at_most = n_slots * 50.0
    return LayoutProgram(
        slots=tuple(f"layer{s}" for s in range(n_slots)),
        context_objective=np.zeros(1),
        context_bytes=np.zeros(1),
        capacity_bytes=np.full(1, at_most),
        column_context=np.zeros(n, dtype=np.int64),
        column_slot=np.repeat(np.arange(n_slots), n_columns_each),
        column_objective=300.0 - weight.sum(axis=0) + r.integers(0, 10, n),
        column_bytes=weight[0],
        limits=(
            Limit(name="tpot", context=np.zeros(1), column=weight[1], at_most=at_most),
            Limit(name="cost", context=np.zeros(1), column=weight[2], at_most=at_most),
        ),
    )


_KNOWN = "known "


def known(coefficients, *, context, batch):
    """Quantities that are known already, where column j is choice j."""
    of_context = {}
    of_column = {"batch": batch, "arm": np.arange(len(context))}
    of_column["variant"] = np.zeros(len(context), dtype=np.int64)
    for name, (k, j) in coefficients.items():
        of_context[_KNOWN + name], of_column[_KNOWN + name] = k, j
        of_context["model"], of_context["number"] = (
            np.zeros(len(k), dtype=np.int64),
            np.arange(len(k)),
        )
    facts = Facts(context=context, of_context=of_context, of_column=of_column)
    return Quantities({name: partial(_read, name) for name in coefficients}, facts)


def _read(name, facts):
    return facts.of_context[_KNOWN + name], facts.of_column[_KNOWN + name]
