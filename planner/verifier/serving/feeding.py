"""FFNs and routed experts of one layer, and the messages between ranks around them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean

from planner.specs.records.architecture import Experts, FeedForward
from planner.verifier.serving import kernels
from planner.verifier.serving.mixers import Tokens
from planner.verifier.serving.pools import sent_runs
from planner.verifier.serving.ranks import Rank


def feeding_runs(ffn: FeedForward | Experts, rank: Rank, tokens: Tokens) -> Iterator[kernels.Run]:
    """What one device runs, and what it sends."""
    d_model, weights, cut = rank.model.d_model, rank.formats.weights, rank.n_tensor
    if isinstance(ffn, FeedForward):
        yield from _dense_runs("FFN", "feed", ffn.d_ff, ffn.n_matrices, rank, tokens.n)
        n_bytes = tokens.n * d_model * 2
        yield kernels.message("all-reduce after the FFN", "reduce", "all_reduce", n_bytes, cut)
        return
    apart = rank.n_expert_devices > 0  # routers and latents stay with attention
    ahead = "project" if apart else "feed"
    yield kernels.product("router", ahead, tokens.n, ffn.n_experts, d_model, "bf16")
    inside = d_model
    if ffn.d_latent is not None:
        inside = ffn.d_latent
        yield kernels.product("to latents", ahead, tokens.n, inside, d_model, weights)
        yield kernels.product("from latents", ahead, tokens.n, d_model, inside, weights)
    reads = tokens.prompts > 0
    experts = _Dealt(ffn=ffn, d_inside=inside, rank=rank, n_tokens=tokens.n * rank.n_data)
    if apart:
        yield from sent_runs(ffn, rank, tokens.n, experts.visits)
    elif rank.exchanges:
        yield from _sent_runs(ffn, inside, rank, tokens.n, is_short=not reads)
    else:
        yield from _gathered_runs(inside, rank, tokens.n)
    if rank.kernels.has_fused_experts:
        yield experts.fused(rank.formats.experts)
    else:
        yield from experts.in_two_products(rank.formats.experts, reads=reads)
    if ffn.d_shared:
        name, n_own = "shared expert", tokens.n
        if apart:  # each device has all of them whole, for its part of all tokens
            n_own, rank = n_own * rank.n_data / rank.n_expert_devices, replace(rank, n_tensor=1)
        yield from _dense_runs(name, "share", ffn.d_shared, ffn.n_matrices, rank, n_own)


def _gathered_runs(d_inside: int, rank: Rank, n_tokens: float) -> Iterator[kernels.Run]:
    """All ranks gather all tokens, in 16 bits, and scatter sums."""
    own, n = n_tokens * d_inside * 2, rank.n_data
    yield kernels.message("gather of tokens", "dispatch", "all_gather", own * n, n)
    yield kernels.message("scatter of sums", "combine", "reduce_scatter", own * n, n)
    yield kernels.message("all-reduce after experts", "reduce", "all_reduce", own, rank.n_tensor)


def _dense_runs(
    name: str, part: str, d_ff: int, n_matrices: int, rank: Rank, n_tokens: float
) -> Iterator[kernels.Run]:
    """Up, with the gate where there is one; activation; down."""
    width, d_model, weights = d_ff / rank.n_tensor, rank.model.d_model, rank.formats.weights
    yield kernels.product(f"{name} up", part, n_tokens, (n_matrices - 1) * width, d_model, weights)
    yield kernels.moved(f"{name} activation", part, n_tokens * width * 2 * n_matrices)
    yield kernels.product(f"{name} down", part, n_tokens, d_model, width, weights)


def _sent_runs(
    ffn: Experts, d_inside: int, rank: Rank, n_tokens: float, *, is_short: bool
) -> Iterator[kernels.Run]:
    """Tokens to their experts and back, over all devices of a stage; a rank's send by turns."""
    n_devices = rank.n_group
    nodes = float(math.ceil(n_devices / rank.links.n_per_node))
    mode = "low_latency" if is_short else "normal"
    own, implied = n_tokens / rank.n_tensor, {"n_nodes": nodes}
    if not is_short and ffn.n_groups > 1:
        implied["n_nodes_hit"] = _nodes_hit(ffn, nodes)
    for part, number in (("dispatch", kernels.read_bytes(rank.formats.experts)), ("combine", 2.0)):
        yield kernels.Run(
            name=part,
            part=part,
            family=f"{part}_{mode}",
            format="any",
            arguments={
                "tokens": own,
                "bytes_per_number": number,
                "n_groups": ffn.n_groups,
                "n_active_groups": ffn.n_active_groups,
                "d_model": d_inside,
                "n_active": ffn.n_active,
                "n_devices": n_devices,
                "is_short": is_short,
            },
            implied=implied,
            sent_bytes=own * ffn.n_active * d_inside * number,
        )


def _nodes_hit(ffn: Experts, nodes: float) -> float:
    """Nodes that a token goes to, whose experts are of some groups only.

    A node is missed if all chosen groups are others'; where groups span nodes, each chosen one
    has its experts drawn evenly from its own.
    """
    groups, chosen = ffn.n_groups, ffn.n_active_groups
    if nodes > groups:
        spans = nodes / groups
        return chosen * spans * (1 - math.pow(1 - 1 / spans, ffn.n_active / chosen))
    per_node, missed = groups / nodes, 1.0
    for taken in range(chosen):
        missed *= max(groups - per_node - taken, 0.0) / (groups - taken)
    return nodes * (1 - missed)


@lru_cache(maxsize=256)
def busiest(
    dealt: tuple[tuple[float, ...], ...], n_active: int, n_ranks: int
) -> tuple[tuple[float, ...], ...]:
    """Of each way to deal experts, the chances of those on the rank with most visits.

    Args:
        dealt: loads of all experts, neighbours on one rank.
    """
    fullest = []
    for loads in dealt:
        all_of_them = _chances(loads, n_active)
        n_held = math.ceil(len(loads) / n_ranks)
        ranks = [all_of_them[i : i + n_held] for i in range(0, len(loads), n_held)]
        fullest.append(tuple(max(ranks, key=math.fsum)))
    return tuple(fullest)


def _chances(loads: tuple[float, ...], n_active: int) -> list[float]:
    """Of each expert to be one of a token's: shares of the loads, those above one cut to it.

    What is cut off goes to the others, until none is above one.
    """
    sure: set[int] = set()
    while True:
        rest = math.fsum(load for i, load in enumerate(loads) if i not in sure)
        scale = (n_active - len(sure)) / rest if rest else 0.0
        more = {i for i, load in enumerate(loads) if i not in sure and load * scale >= 1}
        if not more:
            return [1.0 if i in sure else load * scale for i, load in enumerate(loads)]
        sure |= more


@lru_cache(maxsize=256)
def levelled(ffn: Experts, n_ranks: int, n_redundant: int) -> tuple[float, ...]:
    """Chances of the copies on the rank with most visits, if a balancer deals them greedily."""
    from planner.verifier.expert_copies import fullest_of_greedy

    n_slots = (ffn.n_experts + n_redundant) // n_ranks
    return fullest_of_greedy(_chances(ffn.expected_loads[0], ffn.n_active), n_ranks, n_slots)


@lru_cache(maxsize=64)
def mean_highest(n: int) -> float:
    """Of n numbers drawn from a normal law, the highest one on average, in its deviations.

    The integral of 1 − F(x)ⁿ above zero less that of F(x)ⁿ below it, by Simpson's rule.
    """
    steps, width = 4000, 0.0025

    def rest(x: float) -> float:
        above, below = (math.erfc(sign * x / math.sqrt(2)) / 2 for sign in (-1, 1))
        return 1 - math.pow(above, n) - math.pow(below, n)

    inner = (2 * (1 + i % 2) * rest(i * width) for i in range(1, steps))
    return width / 3 * math.fsum((rest(0), *inner, rest(steps * width)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dealt:
    """Routed experts, dealt to groups of devices and cut over the devices of each.

    Args:
        d_inside: width that they read.
        n_tokens: of all ranks in the pass.
    """

    ffn: Experts
    d_inside: int
    rank: Rank
    n_tokens: float

    @property
    def n_own(self) -> float:
        return (self.ffn.n_experts + self.rank.n_redundant) / self.rank.n_expert_parallel

    @property
    def width(self) -> float:
        return self.ffn.d_expert / self.rank.n_expert_tensor

    @property
    def _busiest(self) -> tuple[tuple[float, ...], ...]:
        """Chances of the experts that the device with most visits has, if these are dealt so."""
        n_ranks = self.rank.n_expert_parallel
        if self.rank.n_redundant:
            return (levelled(self.ffn, n_ranks, self.rank.n_redundant),)
        return busiest(self.ffn.expected_loads, self.ffn.n_active, n_ranks)

    @property
    def visits(self) -> float:
        """Tokens times the experts of the busiest device that they go to.

        Where devices are level in the long run, chance makes one of them the busiest of a pass.
        """
        mean = self.n_tokens * fmean(map(math.fsum, self._busiest))
        if not self.rank.n_redundant:
            return mean
        variance = math.fsum(chance * (1 - chance) for chance in self._busiest[0])
        highest = mean_highest(self.rank.n_expert_parallel)
        return mean + highest * math.sqrt(self.n_tokens * variance)

    @property
    def hit(self) -> float:
        """Experts of the busiest device that some token goes to; tokens choose by themselves."""
        mean = fmean(
            math.fsum(1 - (1 - chance) ** self.n_tokens for chance in held)
            for held in self._busiest
        )
        return max(mean, min(1.0, self.n_own))

    def fused(self, number_format: str) -> kernels.Run:
        """All of it as one kernel, which walks through what nobody sent elsewhere."""
        ffn, weight = self.ffn, kernels.stored_bytes(number_format)
        visits, hit = self.visits, self.hit
        walked = visits if self.rank.exchanges else self.n_tokens * ffn.n_active
        each = ffn.n_matrices * self.d_inside * self.width
        return kernels.Run(
            name="experts",
            part="feed",
            family="experts",
            format=number_format,
            arguments={
                "tokens": self.n_tokens,
                "n_experts": ffn.n_experts,
                "n_experts_local": self.n_own,
                "n_active": ffn.n_active,
                "d_model": self.d_inside,
                "d_expert": self.width,
                "n_up": ffn.n_matrices - 1.0,
                "rows": visits,
                "n_hit": hit,
                "walked_rows": walked,
                "weight_bytes": weight,
                "input_bytes": kernels.read_bytes(number_format),
            },
            flop=2.0 * visits * each,
            hbm_bytes=hit * each * weight + visits * 4.0 * self.d_inside,
        )

    def in_two_products(self, number_format: str, *, reads: bool) -> Iterator[kernels.Run]:
        """Tokens are copied to their experts, go through two products, and are added up.

        Short exchanges do both themselves.
        """
        copies = not self.rank.exchanges or reads
        n_up, read = self.ffn.n_matrices - 1, kernels.read_bytes(number_format)
        meets_some = 1 - (1 - 1 / self.rank.n_expert_parallel) ** self.ffn.n_active
        visits = self.visits
        copied = (self.n_tokens * meets_some + visits) * self.d_inside
        up, down = (n_up * self.width, self.d_inside), (self.d_inside, self.width)
        sent = (visits, self.hit)
        if copies:
            yield kernels.moved("tokens to their experts", "feed", copied * read)
        yield kernels.grouped_product("experts up", "feed", *sent, up, number_format, reads=reads)
        is_narrowed = reads and number_format in kernels.READ
        after = 2.0 + read if is_narrowed else 0.0
        n_bytes = visits * self.width * (2.0 * self.ffn.n_matrices + after)
        yield kernels.moved("experts' activation", "feed", n_bytes, 2 if is_narrowed else 1)
        yield kernels.grouped_product(
            "experts down", "feed", *sent, down, number_format, reads=reads
        )
        if copies:
            yield kernels.moved("sums of experts", "feed", copied * 2)
