"""Every `model_type` that is understood, and how its layers are read.

A new family is one line here: traits of a shape that exists, or a reader of its own.
Traits are those of the family's code in transformers, or in its repository.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from planner.specs.huggingface import hybrids, recurrent, softmax, states
from planner.specs.huggingface.fields import Fields
from planner.specs.huggingface.layers import Body, Layer
from planner.specs.huggingface.parts import Traits, attending, ffns
from planner.specs.huggingface.softmax import joined
from planner.specs.records.mixers import Indexer, LatentAttention, Mixer


def latent(f: Fields, traits: Traits) -> Body:
    """Latent attention, dense and sparse, over FFNs of experts but in the first layers.

    Kimi Linear: Kimi delta attention in all layers but those that are listed.
    """
    d_model = f.count("d_model")
    f.dismiss("d_head", "n_kv_heads")  # keys are made of the latent, as many as there are heads
    indexers, feeds = _indexers(f), ffns(f, traits)
    mixers: list[Mixer] = [_attention(f, indexer) for indexer in indexers]
    if f.has("attention_layers"):
        f.dismiss("linear_layers")
        delta = states.kda(f)
        mixers = [mixers[0] if full else delta for full in attending(f, first=1)]
    layers = tuple(
        Layer(mixer=mixer, ffn=ffn, n_norm_params=2 * d_model)
        for mixer, ffn in zip(mixers, feeds, strict=True)
    )
    n_predictors = f.count("n_predictors", 0, least=0)
    return Body(
        layers=layers,
        predictor=joined(layers[-1], d_model) if n_predictors else None,
        n_predictors=n_predictors,
        n_other_params=d_model,
    )


def _attention(f: Fields, indexer: Indexer | None) -> LatentAttention:
    d_kv_latent, d_q_latent = f.count("d_kv_latent"), f.optional("d_q_latent")
    d_rope, d_nope = f.count("d_rope"), f.count("d_nope")
    d_query = f.count("d_query_head", d_rope + d_nope)
    if f.is_sound("d_query_head", "d_rope", "d_nope") and d_query != d_rope + d_nope:
        f.fault("d_query_head", f"is not its two parts together, {d_nope} + {d_rope}")
    if f.flag("has_attention_bias", default=False):
        f.fault("has_attention_bias", "is not understood with latent attention")
    return LatentAttention(
        n_heads=f.count("n_heads"),
        d_kv_latent=d_kv_latent,
        d_q_latent=d_q_latent,
        d_rope=d_rope,
        d_nope=d_nope,
        d_value_head=f.count("d_value_head"),
        indexer=indexer,
        n_other_params=d_kv_latent + (d_q_latent or 0),
    )


def _indexers(f: Fields) -> list[Indexer | None]:
    """What picks tokens in each layer; a layer may share the picks of one before it."""
    n_layers = f.count("n_layers")
    types = f.words("indexer_types", n_layers, ("full", "shared"))
    f.words("layer_types", n_layers, ("deepseek_sparse_attention",))
    if not any(f.has(key) for key in ("n_index_heads", "d_index_head", "n_index_tokens")):
        return [None] * n_layers
    d_head = f.count("d_index_head")

    def indexer(*, is_shared: bool) -> Indexer:
        return Indexer(
            n_heads=f.count("n_index_heads"),
            d_head=d_head,
            n_selected_tokens=f.count("n_index_tokens"),
            n_other_params=2 * d_head,
            is_shared=is_shared,
        )

    return [indexer(is_shared=kind == "shared") for kind in types or ["full"] * n_layers]


def _side_by_side(f: Fields, traits: Traits) -> Body:
    """Attention and FFN in turn, or on one input, as the config says: StableLM.

    Source: transformers, `modeling_stablelm.py`: in parallel there is one norm a layer.
    """
    is_parallel = f.flag("is_parallel", default=False)
    has_bias = f.flag("has_qkv_bias", default=False)
    said = replace(traits, is_parallel=is_parallel, qkv_bias=has_bias)
    return softmax.decoder(f, replace(said, n_norms=1) if is_parallel else said)


def _mpt(f: Fields, traits: Traits) -> Body:
    """MPT: plain FFNs of some widths of the model; source: transformers, `modeling_mpt.py`."""
    if not f.flag("is_unbiased", default=True):
        f.fault("is_unbiased", "is not understood", "MPT without biases is")
    if f.text("attention_type", "multihead_attention") != "multihead_attention":
        f.fault("attention_type", "is not understood", "`multihead_attention` is")
    return softmax.decoder(f, replace(traits, expansion=f.count("ffn_ratio", 4)))


def _ernie_moe(f: Fields, traits: Traits) -> Body:
    """ERNIE 4.5: experts from one layer to the last; transformers, `modeling_ernie4_5_moe.py`."""
    if f.count("expert_interval", 1) != 1:
        f.fault("expert_interval", "is not understood", "experts in each layer are")
    if f.raw("last_sparse") not in (None, -1, f.count("n_layers") - 1):
        f.fault("last_sparse", "is not the last layer", "experts up to the last are understood")
    return softmax.decoder(f, traits)


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
_COHERE = Traits(n_norms=1, tied=True, is_parallel=True, qk_norm="whole", qk_norm_default=False)
_ERNIE = Traits(tied=True, biased=False)
_NORMS_WITH_BIAS = Traits(norm_width=2, n_matrices=2)
_NORMED_HEADS = Traits(qk_norm="head")
_NORMED_WHOLE = Traits(qk_norm="whole")
_PHI = replace(_NORMS_WITH_BIAS, n_norms=1, biased=True, head_bias=True, is_parallel=True,
               qk_norm="whole", qk_norm_default=False)  # fmt: skip
_STABLELM = Traits(norm_width=2, o_bias=False, qk_norm="whole", qk_norm_default=False)

_ROWS: tuple[tuple[str, Callable[[Fields, Traits], Body], Traits], ...] = (
    ("llama mistral ministral mixtral phi3 dbrx", softmax.decoder, _PLAIN),
    ("granite granitemoe granitemoeshared gemma", softmax.decoder, _TIED),
    ("gemma2", softmax.decoder, _GEMMA2),
    ("gemma3_text", softmax.decoder, _GEMMA3),
    ("gemma4_text", softmax.gemma4, _TIED),
    ("qwen2 qwen2_5_vl_text", softmax.decoder, _QWEN2),
    ("qwen2_moe", softmax.decoder, _QWEN2_MOE),
    ("qwen3 qwen3_moe qwen3_vl_text qwen3_vl_moe_text", softmax.decoder, _QWEN3),
    ("qwen3_next qwen3_5_text qwen3_5_moe_text", recurrent.qwen_delta, _DELTA),
    ("llama4_text", softmax.llama4, _PLAIN),
    ("glm4_moe", softmax.decoder, _GLM4_MOE),
    ("glm_moe_dsa deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2", latent, _PLAIN),
    ("gpt_oss", softmax.decoder, _GPT_OSS),
    ("minimax_m2", softmax.minimax_m2, _MINIMAX_M2),
    ("minimax_text_01 minimax", recurrent.minimax, _PLAIN),
    ("falcon", softmax.falcon, Traits(n_context_tokens=2048)),
    ("hunyuan", softmax.hunyuan, Traits(qk_norm="head", tied=True)),
    ("nemotron-nas", softmax.nemotron_nas, _PLAIN),
    ("nemotron_h", recurrent.nemotron_h, _NEMOTRON),
    ("jamba", recurrent.jamba, _PLAIN),
    ("mamba", recurrent.mamba, _TIED),
    ("falcon_mamba", recurrent.mamba, _PLAIN),
    ("mamba2", recurrent.mamba2, _PLAIN),
    ("granitemoehybrid", recurrent.granite_hybrid, _TIED),
    ("bamba", recurrent.granite_hybrid, _PLAIN),
    ("falcon_h1", hybrids.falcon_h1, _PLAIN),
    ("zamba2", hybrids.zamba2, _TIED),
    ("kimi_linear glm4_moe_lite", latent, Traits(router_bias=True)),
    ("lfm2", hybrids.lfm2, Traits(qk_norm="head", tied=True)),
    ("rwkv6", hybrids.rwkv6, _PLAIN),
    ("apertus", softmax.decoder, Traits(qk_norm="head", n_matrices=2)),
    ("arcee", softmax.decoder, Traits(n_matrices=2)),
    ("cohere", softmax.decoder, _COHERE),
    ("cohere2", softmax.decoder, replace(_COHERE, full_every=4)),
    ("dots1", softmax.decoder, replace(_QWEN3, router_bias=True)),
    ("ernie4_5", softmax.decoder, _ERNIE),
    ("ernie4_5_moe", _ernie_moe, replace(_ERNIE, router_bias=True)),
    ("exaone4", softmax.decoder, replace(_NORMED_HEADS, full_every=4)),
    ("glm seed_oss", softmax.decoder, Traits(o_bias=False)),
    ("glm4", softmax.decoder, Traits(n_norms=4, o_bias=False)),
    ("hunyuan_v1_dense hunyuan_v1_moe", softmax.hunyuan, _NORMED_HEADS),
    ("llada", softmax.decoder, Traits(is_diffusion=True)),
    ("mpt", _mpt, Traits(n_matrices=2, tied=True)),
    ("nemotron", softmax.decoder, _NORMS_WITH_BIAS),
    ("olmo", softmax.decoder, Traits(norm_width=0)),
    ("olmo2 olmoe", softmax.decoder, _NORMED_WHOLE),
    ("olmo3", softmax.decoder, replace(_NORMED_WHOLE, full_every=4)),
    ("phi", softmax.decoder, _PHI),
    ("phimoe", softmax.decoder, Traits(norm_width=2)),
    ("smollm3", softmax.decoder, replace(_TIED, window_default=False)),
    ("stablelm", _side_by_side, _STABLELM),
    ("starcoder2", softmax.decoder, replace(_NORMS_WITH_BIAS, tied=True, biased=True)),
)

FAMILIES: Mapping[str, Family] = {
    name: Family(read, traits) for names, read, traits in _ROWS for name in names.split()
}
