"""One decode pass counted by hand, number by number: the referee of the arrays.

Written from the equations, without the operations of `planner.estimates.serving`: loops over
layers in their order, plain floats, its own counts of columns, rows and bytes. Closed forms of
kernels are the same functions; what they are asked is counted anew.
"""

from __future__ import annotations

from planner.equations.kernels import FAMILIES
from planner.estimates.serving.kernels import KernelClock
from planner.specs.records.architecture import Architecture, Experts
from planner.specs.records.mixers import GroupedAttention

BYTES = {"bf16": 2.0, "fp8": 1.0}


class Count:
    """Seconds of one decode pass of a model with grouped attention, on one device."""

    def __init__(
        self, model: Architecture, clock: KernelClock, *, tensor: int, weights: str, cache: str
    ) -> None:
        self.model, self.clock, self.tensor = model, clock, tensor
        self.weights, self.cache = weights, cache

    def kernel(self, family: str, form: str, peak: str, **arguments: float) -> float:
        kernel = self.clock.table.kernel(family, form)
        constants = dict(kernel.constants)
        rates = {
            "peak_flop_per_s": self.clock.device.peak_flop_per_s[peak],
            "hbm_bytes_per_s": self.clock.device.hbm_bytes_per_s,
        }
        return float(FAMILIES[family].seconds(arguments, rates, constants))

    def product(self, m: float, n: float, k: float, form: str) -> float:
        size = BYTES[form]
        return self.kernel("gemm", form, form, m=m, n=n, k=k, weight_bytes=size, input_bytes=size)

    def small(self, n_bytes: float, n_kernels: float) -> float:
        return self.kernel("elementwise", "any", "bf16", n_bytes=n_bytes, n_kernels=n_kernels)

    def all_reduce(self, n_bytes: float) -> float:
        if self.tensor == 1:
            return 0.0
        fits = self.clock.network.measured["all_reduce"]
        i = fits.n_devices.index(self.tensor)
        return min(
            fits.short_latency_s[i] + n_bytes / fits.short_bytes_per_s[i],
            fits.long_latency_s[i] + n_bytes / fits.long_bytes_per_s[i],
        )

    def all_gather(self, n_bytes: float) -> float:
        if self.tensor == 1:
            return 0.0
        fits = self.clock.network.measured["all_gather"]
        i = fits.n_devices.index(self.tensor)
        return min(
            fits.short_latency_s[i] + n_bytes / fits.short_bytes_per_s[i],
            fits.long_latency_s[i] + n_bytes / fits.long_bytes_per_s[i],
        )

    def decode_s(self, batch: int, context: float) -> float:
        model, d = self.model, self.model.d_model
        total = self.all_reduce(batch * d * 2.0)
        for place in model.order:
            layer = model.layers[place]
            assert isinstance(layer.mixer, GroupedAttention)
            total += self.attention(layer.mixer, batch, context)
            total += self.all_reduce(batch * d * 2.0)
            heads = layer.mixer.n_heads / self.tensor
            kv = max(1, -(-layer.mixer.n_kv_heads // self.tensor))
            moved = 2 * 4 * d * 2 + 2 * 2 * heads * layer.mixer.d_head
            moved += kv * 2 * layer.mixer.d_head * (2 + BYTES[self.cache])
            total += self.small(batch * moved, self.clock.n_small_kernels)
            if isinstance(layer.ffn, Experts):
                total += self.experts(layer.ffn, batch)
            else:
                assert layer.ffn is not None
                wide = layer.ffn.d_ff / self.tensor
                total += self.product(batch, 2 * wide, d, self.weights)
                total += self.small(batch * wide * 6, 1)
                total += self.product(batch, d, wide, self.weights)
            total += self.all_reduce(batch * d * 2.0)
        total += self.product(batch, model.vocab_size / self.tensor, d, "bf16")
        total += self.all_gather(batch * model.vocab_size * 2.0)
        vocab = model.vocab_size
        return total + self.kernel("sampling", "any", "bf16", batch=batch, vocab=vocab)

    def attention(self, mixer: GroupedAttention, batch: int, context: float) -> float:
        heads = mixer.n_heads / self.tensor
        kv = float(max(1, -(-mixer.n_kv_heads // self.tensor)))
        d_head, d = mixer.d_head, self.model.d_model
        seen = context if mixer.n_span_tokens is None else min(context, mixer.n_span_tokens)
        qkv = self.product(batch, (heads + 2 * kv) * d_head, d, self.weights)
        core = self.kernel(
            "decode_attention",
            self.cache,
            "bf16",
            batch=batch,
            context=seen,
            n_heads=heads,
            n_kv_heads=kv,
            d_head=d_head,
            cache_bytes=BYTES[self.cache],
        )
        return qkv + core + self.product(batch, d, heads * d_head, self.weights)

    def experts(self, ffn: Experts, batch: int) -> float:
        router = self.product(batch, ffn.n_experts, self.model.d_model, "bf16")
        size = BYTES[self.weights]
        return router + self.kernel(
            "experts",
            self.weights,
            self.weights,
            tokens=batch,
            n_experts=ffn.n_experts,
            n_experts_local=ffn.n_experts,
            n_active=ffn.n_active,
            d_model=self.model.d_model,
            d_expert=ffn.d_expert / self.tensor,
            weight_bytes=size,
            input_bytes=size,
            n_up=2.0,
            n_hit=_visited(ffn, batch),
        )


def _visited(ffn: Experts, n_tokens: int) -> float:
    """Experts that some token goes to; of more than one visit by each the rest is dealt again."""
    loads = sorted(ffn.expected_loads[0], reverse=True)
    n_sure = 0
    while loads[n_sure] * (ffn.n_active - n_sure) >= sum(loads[n_sure:]):
        n_sure += 1
    others = [one * (ffn.n_active - n_sure) / sum(loads[n_sure:]) for one in loads[n_sure:]]
    return n_sure + sum(1.0 - (1.0 - chance) ** n_tokens for chance in others)
