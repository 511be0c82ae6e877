"""Models and passes that the claims of [Lecture] are about, by the planner's own operations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.deployments import DeploymentTable, deployments
from planner.estimates.serving.feeding import ffn_operations
from planner.estimates.serving.memory import Holding, holding
from planner.estimates.serving.mixing import mixer_operations
from planner.estimates.serving.operations import Operation, PassShape
from planner.estimates.serving.passes import pass_operations
from planner.specs.architecture import Architecture, FeedForward, LayerClass
from planner.specs.engines.files import load_engine
from planner.specs.mixers import GroupedAttention, Mixer
from planner.specs.reading import load_device
from planner.specs.served_formats import ServedFormats

BF16 = ServedFormats(weights="bf16", experts="bf16", cache="bf16")
H100 = load_device("h100-sxm")
VLLM = load_engine("vllm")

ATTENTION = GroupedAttention(n_heads=40, n_kv_heads=40, d_head=128, d_value_head=128)
MLP = FeedForward(d_ff=13824, n_matrices=3)
LAYERS = 40


def llama_13b(*mixers: Mixer) -> Architecture:
    """Llama 2 13B, or one like it whose mixers repeat over the layers; all have one weight."""
    kinds = mixers or (ATTENTION,)
    order = tuple(i % len(kinds) for i in range(LAYERS))
    layers = tuple(
        LayerClass(
            name=f"kind {i}",
            n_layers=order.count(i),
            mixer=mixer,
            ffn=MLP,
            n_norm_params=2 * 5120,
        )
        for i, mixer in enumerate(kinds)
    )
    return Architecture(
        name="llama-2-13b",
        title="Llama 2 13B",
        d_model=5120,
        vocab_size=32000,
        tied_embeddings=False,
        layers=layers,
        order=order,
        published_weights=("bf16",),
        activation_format="bf16",
        n_other_params=5120,
        n_params_published=13_015_864_320,
    )


def with_kv_heads(n_kv_heads: int) -> Architecture:
    return llama_13b(replace(ATTENTION, n_kv_heads=n_kv_heads))


def table(batch=1.0, formats=BF16) -> DeploymentTable:
    """One device each."""
    return deployments(formats=formats, batch=batch)


def one(value) -> FloatArray:
    return np.atleast_1d(np.asarray(value, dtype=float))


def decoding(batch, context, n_positions=1.0) -> PassShape:
    return PassShape(n_decoding=one(batch), context=one(context), n_positions=n_positions)


def reading(prompts, n_tokens) -> PassShape:
    return PassShape(n_prompts=one(prompts), prompt_tokens=one(n_tokens))


def mlp(work: PassShape, ffn=MLP, formats=BF16) -> list[Operation]:
    """Products and activation of one FFN on one device."""
    found = ffn_operations(ffn, 5120, table(formats=formats), work, formats, fused=False)
    return [o for o in found if not o.family.startswith("all_")]


def attention(work: PassShape, mixer=ATTENTION) -> list[Operation]:
    """Attention itself, without its projections."""
    found = mixer_operations(mixer, 5120, table(), work, BF16)
    return [o for o in found if o.family.endswith("_attention")]


def flop(operations) -> float:
    return float(np.sum([np.sum(o.flop) * o.n_times for o in operations]))


def moved_bytes(operations) -> float:
    return float(np.sum([np.sum(o.hbm_bytes) * o.n_times for o in operations]))


def intensity(operations) -> float:
    """FLOP for each byte of memory."""
    return flop(operations) / moved_bytes(operations)


def whole_pass(model: Architecture, work: PassShape) -> list[Operation]:
    return pass_operations(model, table(), work, BF16, families=(), n_small_kernels=3)


def held(model: Architecture, n_tokens, *, batch=1.0, n_shared_tokens=0.0) -> Holding:
    """Memory of one H100 under vLLM."""
    return holding(
        model,
        table(batch),
        BF16,
        VLLM,
        hbm_bytes=H100.hbm_bytes,
        n_tokens=n_tokens,
        n_shared_tokens=n_shared_tokens,
    )
