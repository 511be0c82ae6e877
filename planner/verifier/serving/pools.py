"""Attention and experts of a decode pass on devices of their own, counted station by station.

Each micro-batch of a layer is at one station after the other: attention, links out, experts, links
back. A station that has another one waiting goes on at once, so that a layer takes either what its
busiest station has to do for all micro-batches, or one micro-batch's way around all four.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.specs.records.architecture import Experts, LayerClass
from planner.verifier.serving import kernels
from planner.verifier.serving.ranks import Rank

STATIONS = ("attention", "out", "experts", "back")

_AT = {"dispatch": "out", "combine": "back", "feed": "experts", "share": "experts"}
"""Where each part of a layer with experts is done; all else by attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The layers of one class, of which each micro-batch goes around once.

    Args:
        stations_s: of one micro-batch in one layer, by `STATIONS`; of attention alone where a
            layer has no experts.
        n_microbatches: that go around.
    """

    layer: str
    n_layers: int
    stations_s: Mapping[str, float]
    n_microbatches: float

    @property
    def has_experts(self) -> bool:
        return len(self.stations_s) > 1

    @property
    def busiest(self) -> str:
        return max(self.stations_s, key=lambda name: self.stations_s[name])

    @property
    def period_s(self) -> float:
        """From layer to layer."""
        around = sum(self.stations_s.values())
        return max(around, self.n_microbatches * self.stations_s[self.busiest])

    @property
    def is_filled(self) -> bool:
        """Whether there are micro-batches enough that the busiest station never waits."""
        return self.n_microbatches * self.stations_s[self.busiest] >= sum(self.stations_s.values())

    @property
    def drain_s(self) -> float:
        """From the end of the last period until the last micro-batch is back."""
        around, longest = sum(self.stations_s.values()), self.stations_s[self.busiest]
        return min(around - longest, self.n_microbatches * longest - longest)


def rounds_of(layer: LayerClass, sums: Mapping[str, float], n_microbatches: float) -> Rounds:
    """Of a class of layers whose parts take so long for a micro-batch."""
    if not sums["dispatch"] and not sums["combine"]:
        stations = {"attention": sum(sums.values())}
    else:
        stations = dict.fromkeys(STATIONS, 0.0)
        for part, seconds in sums.items():
            stations[_AT.get(part, "attention")] += seconds
    return Rounds(
        layer=layer.name,
        n_layers=layer.n_layers,
        stations_s=stations,
        n_microbatches=n_microbatches,
    )


def is_of_experts(rounds: Sequence[Rounds], layer: str, part: str) -> bool:
    """Whether a kernel or a message is of devices of experts."""
    with_experts = {one.layer for one in rounds if one.has_experts}
    return layer in with_experts and _AT.get(part) in ("experts", "back")


def pass_s(rounds: Sequence[Rounds]) -> float:
    """All layers, until the last micro-batch has left the last; nothing of none."""
    periods = sum(one.n_layers * one.period_s for one in rounds)
    return periods + max((it.drain_s for it in rounds), default=0.0)


def copies_numbers(ffn: Experts, d_model: int) -> int:
    """Numbers of a token's copies: one for each routed expert, and one for all shared ones."""
    routed = ffn.n_active * (d_model if ffn.d_latent is None else ffn.d_latent)
    return routed + d_model if ffn.d_shared else routed


def sent_runs(ffn: Experts, rank: Rank, n_tokens: float, visits: float) -> Iterator[kernels.Run]:
    """Messages out and back, of the device that has most to do; then sums, whole on each device.

    Args:
        n_tokens: of a micro-batch of one rank.
        visits: tokens times experts of the fullest device.
    """
    d_model, own = rank.model.d_model, n_tokens / rank.n_tensor
    sent = own * copies_numbers(ffn, d_model)
    taken = visits * (d_model if ffn.d_latent is None else ffn.d_latent)
    if ffn.d_shared:
        taken += n_tokens * rank.n_data / rank.n_expert_devices * d_model
    for part, number in (("dispatch", kernels.read_bytes(rank.formats.experts)), ("combine", 2.0)):
        n_bytes = max(sent, taken) * number
        arguments = {"n_bytes": n_bytes, "n_devices": rank.n_devices}
        yield kernels.Run(
            name=part, part=part, family="between", arguments=arguments, sent_bytes=n_bytes
        )
    yield kernels.moved("sums of experts", "project", 2.0 * (sent + own * d_model))
    whole = n_tokens * d_model * 2
    yield kernels.message("gather of sums", "reduce", "all_gather", whole, rank.n_tensor)


def held_bytes(rank: Rank, chunk: float) -> tuple[float, float]:
    """Weights and activations of a device of experts; nothing where there is none."""
    if not rank.n_expert_devices:
        return 0.0, 0.0
    d_model, weights, widths = rank.model.d_model, 0.0, []
    routed, dense = (
        kernels.stored_bytes(it) for it in (rank.formats.experts, rank.formats.weights)
    )
    for layer in rank.model.layers:
        if isinstance(ffn := layer.ffn, Experts):
            n_own = (ffn.n_experts + rank.n_redundant) / rank.n_expert_devices
            shared = ffn.n_matrices * d_model * ffn.d_shared * dense
            weights += layer.n_layers * (n_own * ffn.expert_params(d_model) * routed + shared)
            made = ffn.n_active * ffn.d_expert + ffn.d_shared
            widths.append(copies_numbers(ffn, d_model) + made)
    return weights, 2.0 * chunk * rank.n_data / rank.n_expert_devices * max(widths)
