"""Random stations and what comes to them, as engines are found in the field."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from planner.estimates.fluid_rates import Load
from planner.specs.records.roles import (
    DECODE,
    PREFILL,
    TOGETHER,
    DecodeTimes,
    ReadingTimes,
    Station,
)
from tests.fleets.stationed import fluid_rate

N_CELLS = 60
"""Pairs of lengths, of the same weight, that a class is drawn as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A station, its load, and the share of its fluid rate that the load was chosen as."""

    station: Station
    load: Load
    utilisation: float


def situation(seed: int) -> Situation:
    """The one of this number: steps of 5 to 40 ms, 10 to 60 thousand tokens of prompts a second."""
    draw = np.random.default_rng(seed)
    return _drawn(draw, _lengths(draw), seed)


def _drawn(draw: np.random.Generator, load: Load, seed: int) -> Situation:
    """A station for a load, which it is sent at some utilisation."""
    role = str(draw.choice([TOGETHER, PREFILL, DECODE], p=[0.8, 0.1, 0.1]))
    mixes = role != TOGETHER or bool(draw.random() < 0.6)
    most = int(2 ** draw.uniform(3.0, 9.0))
    chunk = int(max(2 ** draw.uniform(9.0, 14.0), 1.5 * most))
    longest = float(np.max(load.n_input + load.n_output))
    reserved = float(draw.choice([0.0, 0.3, 1.0]))
    room = _room(draw, load, most, longest)
    station = Station(
        name=f"station {seed}",
        role=role,
        most_running=most,
        chunk_tokens=chunk,
        mixes_prefill=mixes,
        n_polled_rounds=1 if mixes else int(draw.choice([1, 4])),
        room_bytes=room,
        token_bytes=1.0,
        reserved_fraction=reserved,
        decode=None if role == PREFILL else _decode(draw, most, longest),
        reading=None if role == DECODE else _reading(draw, chunk, most, longest),
    )
    utilisation = float(draw.uniform(0.2, 0.9))
    rate = utilisation * fluid_rate(station, load)
    load = replace(load, rate_per_s=rate)
    return Situation(station=station, load=load, utilisation=utilisation)


def _lengths(draw: np.random.Generator) -> Load:
    def of(mean: float, kind: str) -> np.ndarray:
        if kind == "fixed":
            return np.full(N_CELLS, mean)
        if kind == "exponential":
            return draw.exponential(mean, N_CELLS)
        if kind == "lognormal":
            return mean * np.exp(draw.normal(-0.32, 0.8, N_CELLS))
        return np.where(draw.random(N_CELLS) < 0.8, 0.5 * mean, 3.0 * mean)

    kinds = ["fixed", "lognormal", "exponential", "bimodal"]
    n_input = of(float(np.exp(draw.uniform(math.log(100), math.log(6000)))), draw.choice(kinds))
    n_output = of(float(np.exp(draw.uniform(math.log(30), math.log(600)))), draw.choice(kinds))
    return Load(
        rate_per_s=1.0,
        n_input=np.maximum(8, np.round(n_input)),
        n_output=np.maximum(2, np.round(n_output)),
        weight=np.ones(N_CELLS),
    )


def _room(draw: np.random.Generator, load: Load, most: int, longest: float) -> float:
    if draw.random() < 0.5:
        return math.inf
    usual = load.mean_input + load.mean(load.n_output)
    return float(max(2.0 * longest, usual * most * draw.uniform(0.4, 1.2)))


def _decode(draw: np.random.Generator, most: int, longest: float) -> DecodeTimes:
    """A floor, and a share of it that full batches and full caches add."""
    floor = float(np.exp(draw.uniform(math.log(0.005), math.log(0.025))))
    each = floor * draw.uniform(0.1, 1.0) / most
    token = floor * draw.uniform(0.1, 1.0) / most / longest
    n = sorted({1, *(2**i for i in range(1, 10) if 2**i < most), most})
    contexts = tuple(np.linspace(0.0, longest, 5))
    return DecodeTimes(
        n_sequences=tuple(n),
        context_tokens=contexts,
        seconds=tuple(tuple(floor + k * (each + token * c) for c in contexts) for k in n),
    )


def _reading(draw: np.random.Generator, chunk: int, most: int, longest: float) -> ReadingTimes:
    """A floor of each pass, kernels that are busy from some tokens on, and attention."""
    floor = draw.uniform(0.001, 0.01)
    token = 1.0 / draw.uniform(10e3, 60e3)
    pair = token * draw.uniform(0.05, 0.5) / longest
    beside = draw.uniform(0.0, 0.3) * token
    few = draw.choice([0.0, 100.0])
    prompts = (0.0, *(float(2**i) for i in range(14) if 2**i < chunk), float(chunk))
    spans = tuple(float(x) for x in (0.0, *np.geomspace(64.0, longest, 4)))
    numbers = (0, max(1, most // 4), most)

    def seconds(n: int, p: float, s: float) -> float:
        grown = floor + token * max(p, few) + pair * p * s + beside * min(n, p)
        return float(grown) if p > 0 else 0.0

    return ReadingTimes(
        n_sequences=numbers,
        prompt_tokens=prompts,
        span_tokens=spans,
        seconds=tuple(
            tuple(tuple(seconds(n, p, s) for s in spans) for p in prompts) for n in numbers
        ),
    )
