"""Observations that no devices can have made, each with its margin and the nearest that some can.

A deployment holds its weights and its users' cache, reads both once a token and multiplies each
parameter that a token meets once: memory, bandwidth and arithmetic of all its devices bound it,
however it is laid out. Datasheet values are meant, of which no deployment attains all.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from planner.errors import Problem
from planner.estimates.steps import peak_of
from planner.quantities.units import show
from planner.specs.records.devices import FORMAT_BYTES, ClusterSpec, ModelSpec
from planner.topology.meshes import mesh_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What is said to run.

    Args:
        model: in the KV format that runs.
        weights_format: of the weights.
        batch: sequences decoded together.
        speed_tokens_per_s: that each of them sees.
        n_context_tokens: that a decode pass reads of a sequence, on average.
        is_share: the batch was said as a utilization.
    """

    model: ModelSpec
    cluster: ClusterSpec
    n_devices: int
    weights_format: str
    batch: int
    speed_tokens_per_s: float
    n_context_tokens: float
    is_share: bool

    @property
    def token_flop(self) -> float:
        """Twice the parameters that a token meets [FLOP]."""
        return 2.0 * (self.model.n_active_params_published or self.model.n_params_published)

    @property
    def peak_flop_per_s(self) -> float:
        return peak_of(self.cluster.device, self.weights_format) * self.n_devices

    @property
    def hbm_bytes(self) -> float:
        return self.cluster.device.hbm_bytes * self.n_devices

    @property
    def hbm_bytes_per_s(self) -> float:
        return self.cluster.device.hbm_bytes_per_s * self.n_devices

    @property
    def weights_bytes(self) -> float:
        return self.model.n_params * FORMAT_BYTES[self.weights_format]

    @property
    def read_bytes(self) -> float:
        """Weights that a pass reads at the least: of experts one token's, of embeddings rows."""
        model = self.model
        embedded = 0 if model.tied_embeddings else model.vocab_size * model.d_model
        return (model.n_params_active - embedded) * FORMAT_BYTES[self.weights_format]

    @property
    def sequence_bytes(self) -> float:
        return self.model.kv_bytes(self.n_context_tokens)

    def largest_batch(self) -> int:
        """Users that these devices could serve at this speed; 0 if not one."""
        room = self.hbm_bytes - self.weights_bytes
        passes = self.hbm_bytes_per_s / self.speed_tokens_per_s - self.read_bytes
        multiplied = self.peak_flop_per_s / self.token_flop / self.speed_tokens_per_s
        return max(0, math.floor(min(min(room, passes) / self.sequence_bytes, multiplied)))

    def largest_speed(self, batch: int) -> float:
        """Tokens a second that these devices could give each of so many users."""
        read = self.hbm_bytes_per_s / (self.read_bytes + batch * self.sequence_bytes)
        return min(read, self.peak_flop_per_s / self.token_flop / batch)


def impossible(seen: Observed) -> list[Problem]:
    """Why nothing can have been observed so; empty if something can."""
    if seen.weights_format not in FORMAT_BYTES:
        return []  # the request says so
    return [*_no_mesh(seen), *_too_little_memory(seen), *_too_fast(seen)]


def _no_mesh(seen: Observed) -> Iterator[Problem]:
    known = _mesh_sizes(seen)
    if seen.n_devices in known:
        return
    below, above = known[known < seen.n_devices], known[known > seen.n_devices]
    nearest = [*below[-1:], *above[:1]]
    yield Problem(
        where="--devices",
        value=str(seen.n_devices),
        fact=f"no mesh of `{seen.cluster.name}` has as many",
        remedy="nearest: " + " or ".join(f"`--devices {n}`" for n in nearest),
    )


def _mesh_sizes(seen: Observed) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    meshes = mesh_table(seen.cluster, max_stages=seen.model.n_layers)
    return np.asarray(np.unique(meshes.n_devices))


def _too_little_memory(seen: Observed) -> Iterator[Problem]:
    weights, cache = seen.weights_bytes, seen.batch * seen.sequence_bytes
    held = show(seen.hbm_bytes, "B")
    if weights > seen.hbm_bytes:
        what = f"{seen.weights_format} weights of {show(weights, 'B')}"
        fact = f"{held} of memory in all, and {what} take {weights / seen.hbm_bytes:.3g} times that"
        remedy = " or ".join(_roomier(seen))
        value = str(seen.n_devices)
        yield Problem(where="--devices", value=value, fact=fact, remedy=remedy)
    elif weights + cache > seen.hbm_bytes:
        context = f"{seen.n_context_tokens:.0f} tokens each"
        fact = (
            f"{seen.batch} users of {context} keep {show(cache, 'B')} beside {show(weights, 'B')} "
            f"of weights, {(weights + cache) / seen.hbm_bytes:.3g} times the {held} there is"
        )
        most = _loads(seen, math.floor((seen.hbm_bytes - weights) / seen.sequence_bytes))
        remedy = f"at most {most}" if most else "shorten `--input`"
        where, value = _loads(seen, seen.batch).strip("`").split()
        yield Problem(where=where, value=value, fact=fact, remedy=remedy)


def _roomier(seen: Observed) -> Iterator[str]:
    """More devices, or formats, that hold the weights."""
    enough = seen.weights_bytes / seen.cluster.device.hbm_bytes
    sizes = _mesh_sizes(seen)
    if (sizes >= enough).any():
        yield f"`--devices {sizes[sizes >= enough][0]}`"
    for name in seen.model.weights_formats:
        if replace(seen, weights_format=name).weights_bytes <= seen.hbm_bytes:
            yield f"`--weights {name}`"


def _too_fast(seen: Observed) -> Iterator[Problem]:
    tokens_per_s = seen.batch * seen.speed_tokens_per_s
    flop = tokens_per_s * seen.token_flop / seen.peak_flop_per_s
    moved = seen.speed_tokens_per_s * (seen.read_bytes + seen.batch * seen.sequence_bytes)
    users = f"for {seen.batch} user{'s' * (seen.batch > 1)}"
    value = f"{seen.speed_tokens_per_s:g}tok/s"
    remedy = _nearest(seen)
    if flop > 1.0:
        peak = show(seen.peak_flop_per_s, "FLOP/s")
        fact = f"{users} is {flop:.3g} times what {peak} can multiply, {100 * flop:.0f} % MFU"
        yield Problem(where="--speed", value=value, fact=fact, remedy=remedy)
    if moved > seen.hbm_bytes_per_s:
        fact = (
            f"{users} reads {show(moved, 'B/s')} of weights and cache, "
            f"{moved / seen.hbm_bytes_per_s:.3g} times what the memory of {seen.n_devices} "
            f"device{'s' * (seen.n_devices > 1)} gives, "
            "unless drafts yield several tokens a pass"
        )
        yield Problem(where="--speed", value=value, fact=fact, remedy=remedy)


def _loads(seen: Observed, batch: int) -> str:
    """The option that says such a batch, as the user said his; empty for none."""
    if batch < 1:
        return ""
    if not seen.is_share:
        return f"`--batch {batch}`"
    flop = batch * seen.speed_tokens_per_s * seen.token_flop
    return f"`--utilization {_floored(flop / seen.peak_flop_per_s)}`"


def _nearest(seen: Observed) -> str:
    """The largest load at this speed, and the largest speed for this load."""
    load = _loads(seen, seen.largest_batch())
    n_users = 1 if seen.is_share else seen.batch
    speed = f"`--speed {_floored(seen.largest_speed(n_users))}tok/s`"
    return (
        f"at most {load}"
        if load and seen.is_share
        else " or ".join(filter(None, (f"at most {speed}", load)))
    )


def _floored(value: float) -> str:
    """Three digits, rounded down so that the number itself is allowed."""
    digit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.floor(value / digit) * digit:.3g}"
