"""Families with linear attention or state-space layers, alone or beside attention."""

from dataclasses import replace

from planner.specs.huggingface import states
from planner.specs.huggingface.fields import Fields
from planner.specs.huggingface.layers import Body, Layer, stacked
from planner.specs.huggingface.parts import Traits, attending, dense, experts, ffns, grouped
from planner.specs.huggingface.softmax import predicting
from planner.specs.records.architecture import Experts, FeedForward, Ffn
from planner.specs.records.mixers import Mixer

_QWEN_ATTENTION_EVERY = 4
_JAMBA_PERIODS = {"attention_period": 8, "attention_offset": 4,
                  "expert_period": 2, "expert_offset": 1}  # fmt: skip


def qwen_delta(f: Fields, traits: Traits) -> Body:
    """Qwen3-Next and 3.5: gated delta nets, gated full attention in each fourth layer.

    Source: transformers, `modeling_qwen3_next.py`.
    """
    n_layers, d_model = f.count("n_layers"), f.count("d_model")
    every = f.count("attention_every", _QWEN_ATTENTION_EVERY)
    words = f.words("layer_types", n_layers, ("full_attention", "linear_attention"))
    kinds = [(i + 1) % every == 0 for i in range(n_layers)]
    if words is not None:
        kinds = [word == "full_attention" for word in words]
    is_gated = f.flag("is_gated", default=True)
    attention = replace(grouped(f, traits), is_gated=is_gated)
    delta = states.delta(f)
    mixers = [attention if full else delta for full in kinds]
    body = stacked(d_model, mixers, ffns(f, traits))
    return predicting(f, body, lambda: replace(body.layers[-1], mixer=attention))


def minimax(f: Fields, traits: Traits) -> Body:
    """MiniMax-Text-01: lightning attention, full attention where `attn_type_list` has a 1.

    Source: `modeling_minimax_text_01.py` of MiniMaxAI/MiniMax-Text-01.
    """
    n_layers, d_model = f.count("n_layers"), f.count("d_model")
    codes = _mixer_codes(f, n_layers)
    if set(codes) - {0, 1}:
        f.fault("mixer_codes", "holds other numbers than 0, linear, and 1, full attention")
    if len(codes) != n_layers and f.is_sound("n_layers"):
        f.fault("mixer_codes", f"has {len(codes)} entries, but there are {n_layers} layers")
    shared = f.raw("d_shared")
    if any(shared if isinstance(shared, list) else [shared]):
        f.fault("d_shared", "is not understood", "without shared experts it is")
    attention, lightning, ffn = grouped(f, traits), states.lightning(f), experts(f, traits)
    mixers = [attention if code else lightning for code in codes]
    return stacked(d_model, mixers, [ffn] * len(mixers))


def _mixer_codes(f: Fields, n_layers: int) -> list[int]:
    """Of each layer 1 where it attends to everything, by either of the keys that say so."""
    codes = f.numbers("mixer_codes")
    if codes is not None:
        return codes
    if f.has("layer_types"):
        words = f.words("layer_types", n_layers, ("full_attention", "linear_attention"))
        return [int(word == "full_attention") for word in words or ["full_attention"] * n_layers]
    f.fault("mixer_codes", "is missing", "it says which layers attend to everything")
    return [1] * n_layers


def jamba(f: Fields, traits: Traits) -> Body:
    """Jamba: Mamba, attention in each eighth layer, experts in each second.

    Source: transformers, `modeling_jamba.py`.
    """
    n_layers, d_model = f.count("n_layers"), f.count("d_model")
    period, offset, expert_period, expert_offset = (
        f.count(key, default, least=int(key.endswith("period")))
        for key, default in _JAMBA_PERIODS.items()
    )
    words = f.words("block_types", n_layers, ("attention", "mamba"))
    attention, mamba = grouped(f, traits), states.mamba1(f, has_inner_norms=True)
    f.dismiss("n_window_tokens")
    n_experts = f.count("n_experts", 1)
    plain = dense(f, traits)
    sparse: Ffn = experts(f, traits) if n_experts > 1 else plain
    words = words or ["attention" if i % period == offset else "mamba" for i in range(n_layers)]
    mixers = [attention if word == "attention" else mamba for word in words]
    routed = [i % expert_period == expert_offset for i in range(n_layers)]
    return stacked(d_model, mixers, [sparse if one else plain for one in routed])


def mamba(f: Fields, traits: Traits) -> Body:
    """Mamba and Falcon Mamba: nothing but recurrences."""
    d_model = f.count("d_model")
    layer = Layer(mixer=states.mamba1(f, has_inner_norms=False), ffn=None, n_norm_params=d_model)
    f.dismiss("d_ff")
    return Body(layers=(layer,) * f.count("n_layers"), n_other_params=d_model)


def mamba2(f: Fields, traits: Traits) -> Body:
    """Mamba 2, nothing else."""
    d_model = f.count("d_model")
    n_heads, d_head = f.count("n_state_heads"), f.count("d_head")
    expansion = f.count("expansion", 2)
    if f.is_sound("n_state_heads", "d_head", "d_model") and n_heads * d_head != expansion * d_model:
        f.fault("n_state_heads", f"times head_dim is not expand times hidden_size, {d_model}")
    f.dismiss("d_ff", "n_time_rank")
    layer = Layer(mixer=states.mamba2(f, n_heads, d_head), ffn=None, n_norm_params=d_model)
    return Body(layers=(layer,) * f.count("n_layers"), n_other_params=d_model)


def granite_hybrid(f: Fields, traits: Traits) -> Body:
    """Granite 4: Mamba 2, attention in few layers, experts beside a shared FFN, or that alone.

    Bamba: plain FFNs, and a list of the layers that attend.
    Source: transformers, `modeling_granitemoehybrid.py` and `modeling_bamba.py`.
    """
    n_layers, d_model = f.count("n_layers"), f.count("d_model")
    if f.has("attention_layers"):
        full = attending(f)
    else:
        words = f.words("layer_types", n_layers, ("attention", "mamba"))
        if words is None and f.is_sound("layer_types"):
            f.fault("layer_types", "is missing", "it says which layers attend")
        full = [word != "mamba" for word in words or ["attention"] * n_layers]
    attention, mixer = grouped(f, traits), states.mamba2_beside(f)
    f.dismiss("d_ff", "n_experts", "n_active")
    ffn: Ffn
    if f.optional("n_experts"):
        ffn = experts(f, traits)
    elif f.has("d_shared"):
        ffn = FeedForward(d_ff=f.count("d_shared"), n_matrices=3)
    else:
        ffn = dense(f, traits)
    mixers = [attention if attends else mixer for attends in full]
    return stacked(d_model, mixers, [ffn] * len(mixers))


_NEMOTRON_PARTS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def nemotron_h(f: Fields, traits: Traits) -> Body:
    """Nemotron-H and Nemotron 3: each layer is one thing, with one norm.

    Source: `modeling_nemotron_h.py` of nvidia/Nemotron-H-56B-Base-8K.
    """
    d_model = f.count("d_model")
    kinds = _nemotron_kinds(f)
    n_layers = f.count("n_layers", len(kinds) or None)
    if len(kinds) != n_layers and f.is_sound("layer_pattern", "block_types", "n_layers"):
        meaning = "layer_pattern" if f.has("layer_pattern") else "block_types"
        f.fault(meaning, f"has {len(kinds)} entries, but there are {n_layers} layers")
    f.dismiss("d_ff", "has_ffn_bias", "n_experts", "n_active", "n_shared_experts", "d_shared",
              "n_window_tokens", "expansion", "n_time_rank", "n_expert_groups",
              "n_active_groups")  # fmt: skip
    layers = tuple(_nemotron_layer(f, traits, kind, d_model) for kind in kinds)
    body = Body(layers=layers, n_other_params=d_model)
    return predicting(f, body, lambda: _nemotron_predictor(f, traits))


def _nemotron_kinds(f: Fields) -> list[str]:
    pattern = f.text("layer_pattern")
    if pattern:
        unknown = sorted(set(pattern) - set(_NEMOTRON_PARTS))
        if unknown:
            known = ", ".join(f"`{mark}` {kind}" for mark, kind in _NEMOTRON_PARTS.items())
            f.fault("layer_pattern", f"holds `{''.join(unknown)}`, which is not understood", known)
        return [_NEMOTRON_PARTS.get(mark, "mlp") for mark in pattern]
    listed = f.raw("block_types")
    n_listed = len(listed) if isinstance(listed, list) else 0
    words = f.words("block_types", n_listed, tuple(_NEMOTRON_PARTS.values()))
    if words is None:
        f.fault("layer_pattern", "is missing", "it says what each layer is")
    return words or ["mlp"]


def _nemotron_layer(f: Fields, traits: Traits, kind: str, d_model: int) -> Layer:
    mixer: Mixer | None = None
    ffn: FeedForward | Experts | None = None
    if kind == "attention":
        mixer = grouped(f, traits)
    elif kind == "mamba":
        mixer = states.mamba2(f, f.count("n_state_heads"), f.count("d_state_head"))
    else:
        ffn = experts(f, traits) if kind == "moe" else dense(f, traits)
    return Layer(mixer=mixer, ffn=ffn, n_norm_params=d_model)


def _nemotron_predictor(f: Fields, traits: Traits) -> Layer:
    """A predictor of Nemotron 3: attention and experts, as one layer of two norms."""
    for meaning, wanted in (("predictor_pattern", "*E"), ("predictor_types", ["attention", "moe"])):
        if f.raw(meaning) not in (None, wanted):
            f.fault(meaning, "is not understood", "attention and experts are")
    d_model = f.count("d_model")
    return Layer(mixer=grouped(f, traits), ffn=experts(f, traits), n_norm_params=2 * d_model)
