"""Seconds of one layer on one device of a group, kernel by kernel and message by message.

The group is one attention rank: its devices share the heads of attention, the columns of FFNs,
and the experts, which are dealt to some groups of them and cut over the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from planner.specs.architecture import Experts, FeedForward, LayerClass
from planner.specs.mixers import GroupedAttention, LatentAttention, Recurrence
from planner.specs.stages_request import StageGroup, StagesRequest
from planner.verifier.serving.kernels import (
    READ,
    Kernels,
    Run,
    grouped_product,
    moved,
    product,
    read_bytes,
    stored_bytes,
)
from planner.verifier.serving.links import Links
from planner.verifier.serving.mixers import kv_heads, mixing_runs
from planner.verifier.serving.tokens import Tokens, tokens_of


def layer_s(layer: LayerClass, group: StageGroup, asked: StagesRequest) -> float:
    """One layer of a class."""
    kernels, tokens, model = Kernels(group), tokens_of(asked), asked.model
    runs: list[Run] = []
    sums: list[int] = []  # widths of what all devices add up
    if layer.mixer is not None:
        runs += mixing_runs(layer.mixer, model.d_model, group.n_tensor, tokens, asked.formats)
        sums.append(model.d_model)
    if layer.ffn is not None:
        runs += _feeding_runs(layer.ffn, kernels, group, tokens, asked)
        if model.is_parallel_block:
            sums.clear()  # both at once
        sums.append(getattr(layer.ffn, "d_latent", None) or model.d_model)
    if kernels.quantises(asked.formats.weights):
        runs += _quantising(runs)
    small = _small_bytes(layer, group.n_tensor, tokens, asked)
    runs.append(moved(small, asked.engine.n_small_kernels))
    links = Links(group.cluster.fabric)
    return sum(
        kernels.roofline_s(run) if run.family == "scores" else kernels.seconds(run) for run in runs
    ) + sum(
        links.collective_s("all_reduce", tokens.n * width * 2, group.n_tensor) for width in sums
    )


def _quantising(runs: list[Run]) -> list[Run]:
    """What makes inputs narrow before products: one kernel each, counted by parts of a layer."""
    parts = dict.fromkeys(run.part for run in runs if _has_narrow_input(run))
    found = []
    for part in parts:
        mine = [run.arguments for run in runs if run.part == part and _has_narrow_input(run)]
        n_bytes = sum(one["m"] * one["k"] * (2 + one["input_bytes"]) for one in mine)
        found.append(moved(n_bytes, len(mine)))
    return found


def _has_narrow_input(run: Run) -> bool:
    return run.family == "gemm" and run.format in READ


def _small_bytes(layer: LayerClass, n_tensor: int, tokens: Tokens, asked: StagesRequest) -> float:
    """Norms with their residuals, rotations, and what goes into the cache."""
    mixer, d_model = layer.mixer, asked.model.d_model
    numbers = 4.0 * d_model * ((mixer is not None) + (layer.ffn is not None))
    cached = 0.0
    if isinstance(mixer, (GroupedAttention, LatentAttention)):
        numbers += 2.0 * mixer.n_heads * mixer.d_head / n_tensor
        cached = cached_numbers(layer, n_tensor)
    n_bytes = tokens.n * (2 * numbers + cached * (2 + stored_bytes(asked.formats.cache)))
    if isinstance(mixer, LatentAttention):  # keys are joined of what latents give and rotated
        joined = mixer.d_nope + mixer.d_head
        n_bytes += tokens.read * 2.0 * mixer.n_heads * joined / n_tensor
    return n_bytes


def cached_numbers(layer: LayerClass, n_tensor: int) -> float:
    """That a token leaves on one device."""
    mixer = layer.mixer
    if isinstance(mixer, GroupedAttention):
        return kv_heads(mixer, n_tensor) * mixer.d_cached / mixer.n_kv_heads
    if isinstance(mixer, LatentAttention):
        index = mixer.indexer
        return mixer.d_cached + (0 if index is None or index.is_shared else index.d_head)
    assert mixer is None or isinstance(mixer, Recurrence)
    return 0.0


def _feeding_runs(
    ffn: FeedForward | Experts,
    kernels: Kernels,
    group: StageGroup,
    tokens: Tokens,
    asked: StagesRequest,
) -> Iterator[Run]:
    d_model, weights = asked.model.d_model, asked.formats.weights
    if isinstance(ffn, FeedForward):
        width = ffn.d_ff / group.n_tensor
        yield from _dense_runs("feed", width, ffn.n_matrices, d_model, tokens.n, weights)
        return
    yield product("feed", tokens.n, ffn.n_experts, d_model, "bf16")
    inside = d_model
    if ffn.d_latent is not None:
        inside = ffn.d_latent
        yield product("feed", tokens.n, inside, d_model, weights)
        yield product("feed", tokens.n, d_model, inside, weights)
    experts = _Dealt(ffn=ffn, d_inside=inside, group=group, n_tokens=tokens.n)
    number_format = asked.formats.experts
    if kernels.has_fused_experts:
        yield experts.fused(number_format)
    else:
        yield from experts.in_two_products(number_format, reads=tokens.read > 0)
    if ffn.d_shared:
        width = ffn.d_shared / group.n_tensor
        yield from _dense_runs("share", width, ffn.n_matrices, d_model, tokens.n, weights)


def _dense_runs(
    part: str, width: float, n_matrices: int, d_model: int, n_tokens: float, weights: str
) -> Iterator[Run]:
    """Up, with the gate where there is one; activation; down."""
    yield product(part, n_tokens, (n_matrices - 1) * width, d_model, weights)
    yield moved(n_tokens * width * 2 * n_matrices)
    yield product(part, n_tokens, d_model, width, weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dealt:
    """Routed experts, dealt to groups of devices and cut over the devices of each.

    Args:
        d_inside: width that they read.
        n_tokens: of the pass.
    """

    ffn: Experts
    d_inside: int
    group: StageGroup
    n_tokens: float

    @property
    def n_own(self) -> float:
        return self.ffn.n_experts / self.group.n_expert_parallel

    @property
    def width(self) -> float:
        n_cuts = max(1, self.group.n_tensor // self.group.n_expert_parallel)
        return self.ffn.d_expert / n_cuts

    @property
    def visits(self) -> float:
        """Tokens times the experts here that they go to."""
        return self.n_tokens * self.ffn.n_active / self.group.n_expert_parallel

    @property
    def hit(self) -> float:
        """Experts here that some token goes to, if tokens choose alike and by themselves."""
        missed = math.pow(1 - self.ffn.n_active / self.ffn.n_experts, self.n_tokens)
        return max(self.n_own * (1 - missed), min(1.0, self.n_own))

    def fused(self, number_format: str) -> Run:
        """All of it as one kernel."""
        ffn = self.ffn
        return Run(
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
                "rows": self.visits,
                "weight_bytes": stored_bytes(number_format),
                "input_bytes": read_bytes(number_format),
            },
        )

    def in_two_products(self, number_format: str, *, reads: bool) -> Iterator[Run]:
        """Tokens are copied to their experts, go through two products, and are added up."""
        n_up, read = self.ffn.n_matrices - 1, read_bytes(number_format)
        meets_some = 1 - (1 - 1 / self.group.n_expert_parallel) ** self.ffn.n_active
        copied = (self.n_tokens * meets_some + self.visits) * self.d_inside
        yield moved(copied * read)
        yield grouped_product(
            self.visits, self.hit, n_up * self.width, self.d_inside, number_format, reads=reads
        )
        is_narrowed = reads and number_format in READ
        after = 2.0 + read if is_narrowed else 0.0
        each = 2.0 * self.ffn.n_matrices + after
        yield moved(self.visits * self.width * each, 2 if is_narrowed else 1)
        yield grouped_product(
            self.visits, self.hit, self.d_inside, self.width, number_format, reads=reads
        )
        yield moved(copied * 2)


def embedding_s(group: StageGroup, asked: StagesRequest) -> float:
    """The sum after the embedding."""
    n_bytes = tokens_of(asked).n * asked.model.d_model * 2
    return Links(group.cluster.fabric).collective_s("all_reduce", n_bytes, group.n_tensor)


def head_s(group: StageGroup, asked: StagesRequest) -> float:
    """The head, its scores gathered, the next tokens drawn, and the host's part of a pass."""
    kernels, model, engine = Kernels(group), asked.model, asked.engine
    rows, words = tokens_of(asked).n_logits, model.vocab_size
    seconds = kernels.seconds(
        product("", rows, words / group.n_tensor, model.d_model, "bf16")
    ) + kernels.seconds(Run(family="sampling", arguments={"batch": rows, "vocab": words}))
    links = Links(group.cluster.fabric)
    seconds += links.collective_s("all_gather", rows * words * 2, group.n_tensor)
    return seconds + (
        engine.decode_host_s if asked.work.phase == "decode" else engine.prefill_host_s
    )
