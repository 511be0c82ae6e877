"""Every `model_type` that is understood, and how its layers are read.

A new family is one line here: traits of a shape that exists, or a reader of its own.
Traits are those of the family's code in transformers, or in its repository.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.specs.huggingface import latent, recurrent, softmax
from planner.specs.huggingface.fields import Fields
from planner.specs.huggingface.layers import Body
from planner.specs.huggingface.parts import Traits


@dataclass(frozen=True, slots=True)
class Family:
    """A reader, and what it has to know of the family."""

    read: Callable[[Fields, Traits], Body]
    traits: Traits


_PLAIN = Traits()
_QWEN2 = Traits(qkv_bias=True, o_bias=False, window_default=False)
_QWEN2_MOE = Traits(qkv_bias=True, o_bias=False, window_default=False, shared_gate=True)
_QWEN3 = Traits(qk_norm="head", window_default=False)
_DELTA = Traits(qk_norm="head", shared_gate=True)
_GEMMA2 = Traits(n_norms=4, tied=True, full_every=2)
_GEMMA3 = Traits(
    n_norms=4,
    tied=True,
    full_every=6,
    qk_norm="head",
    vocab_size=262_208,
    n_context_tokens=131_072,
    stretches_context=False,
)
_GLM4_MOE = Traits(o_bias=False, router_bias=True)
_GPT_OSS = Traits(router_bias=True, expert_bias=True, sinks=True)
_MINIMAX_M2 = Traits(qk_norm="whole", router_bias=True)
_NEMOTRON = Traits(n_matrices=2, router_bias=True)
_TIED = Traits(tied=True)

FAMILIES: Mapping[str, Family] = {
    "llama": Family(softmax.decoder, _PLAIN),
    "mistral": Family(softmax.decoder, _PLAIN),
    "ministral": Family(softmax.decoder, _PLAIN),
    "mixtral": Family(softmax.decoder, _PLAIN),
    "phi3": Family(softmax.decoder, _PLAIN),
    "granite": Family(softmax.decoder, _TIED),
    "granitemoe": Family(softmax.decoder, _TIED),
    "granitemoeshared": Family(softmax.decoder, _TIED),
    "gemma": Family(softmax.decoder, _TIED),
    "gemma2": Family(softmax.decoder, _GEMMA2),
    "gemma3_text": Family(softmax.decoder, _GEMMA3),
    "gemma4_text": Family(softmax.gemma4, _TIED),
    "qwen2": Family(softmax.decoder, _QWEN2),
    "qwen2_5_vl_text": Family(softmax.decoder, _QWEN2),
    "qwen2_moe": Family(softmax.decoder, _QWEN2_MOE),
    "qwen3": Family(softmax.decoder, _QWEN3),
    "qwen3_moe": Family(softmax.decoder, _QWEN3),
    "qwen3_vl_text": Family(softmax.decoder, _QWEN3),
    "qwen3_vl_moe_text": Family(softmax.decoder, _QWEN3),
    "qwen3_next": Family(recurrent.qwen_delta, _DELTA),
    "qwen3_5_text": Family(recurrent.qwen_delta, _DELTA),
    "qwen3_5_moe_text": Family(recurrent.qwen_delta, _DELTA),
    "llama4_text": Family(softmax.llama4, _PLAIN),
    "glm4_moe": Family(softmax.decoder, _GLM4_MOE),
    "glm_moe_dsa": Family(latent.latent, _PLAIN),
    "deepseek_v2": Family(latent.latent, _PLAIN),
    "deepseek_v3": Family(latent.latent, _PLAIN),
    "deepseek_v32": Family(latent.latent, _PLAIN),
    "kimi_k2": Family(latent.latent, _PLAIN),
    "gpt_oss": Family(softmax.decoder, _GPT_OSS),
    "minimax_m2": Family(softmax.minimax_m2, _MINIMAX_M2),
    "minimax_text_01": Family(recurrent.minimax, _PLAIN),
    "minimax": Family(recurrent.minimax, _PLAIN),
    "falcon": Family(softmax.falcon, Traits(n_context_tokens=2048)),
    "hunyuan": Family(softmax.hunyuan, Traits(qk_norm="head", tied=True)),
    "nemotron-nas": Family(softmax.nemotron_nas, _PLAIN),
    "nemotron_h": Family(recurrent.nemotron_h, _NEMOTRON),
    "jamba": Family(recurrent.jamba, _PLAIN),
    "mamba": Family(recurrent.mamba, _TIED),
    "falcon_mamba": Family(recurrent.mamba, _PLAIN),
    "mamba2": Family(recurrent.mamba2, _PLAIN),
    "granitemoehybrid": Family(recurrent.granite_hybrid, _TIED),
}
