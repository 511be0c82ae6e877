"""Families that are known and not read: why not, and what to do instead."""

from __future__ import annotations

from collections.abc import Mapping

ENCODER_DECODER = (
    "is an encoder-decoder: besides its own cache, each token that it writes reads one of what was "
    "read, which no record of layers has",
    "give a decoder alone",
)
_ENCODER = (
    "is an encoder: it makes one vector of what it reads, and writes no tokens that could be timed",
    "give a decoder",
)
_DIFFUSION = (
    "is decoded by diffusion, in layers that are not read yet",
    "`llada` is read, with a `variant.toml` beside it",
)
_RWKV = ("is an RWKV of another generation, with other states", "`rwkv6` is read")
_EMBEDDINGS = (
    "adds embeddings of its own in each layer, kept outside of the devices' memory by some engines",
    "`gemma3_text` and `gemma4_text` without them are read",
)
_COMPRESSED = (
    "keeps caches that are compressed by several tokens, which no record of layers has",
    "`deepseek_v32` is read",
)
_TWO_IN_ONE = (
    "has two attentions in a layer, and experts that compute nothing",
    "`deepseek_v3` is the nearest that is read",
)
_SHARED = ("shares one block without additions of its own", "`zamba2` is read")
_ROUTED = ("routes tokens to heads of attention too", "give a model whose heads all run")
_GATED = ("has gated recurrences of one number a channel", "`falcon_mamba` is the nearest read")
_CROSS = (
    "attends to an image's keys in layers of its own, which are no part of a decoder's cache",
    "`llama4_text` is read",
)

REASONS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("t5", "mt5", "umt5", "longt5", "t5gemma", "bart", "mbart", "pegasus", "marian", "m2m_100",
         "whisper", "speech_to_text", "moonshine", "switch_transformers", "florence2"),
        ENCODER_DECODER,
    ),
    **dict.fromkeys(
        ("bert", "roberta", "xlm-roberta", "distilbert", "deberta-v2", "electra", "albert",
         "modernbert", "clip", "siglip", "vit"),
        _ENCODER,
    ),
    **dict.fromkeys(("dream", "Dream", "diffusion_gemma", "llada2_moe"), _DIFFUSION),
    **dict.fromkeys(("rwkv", "rwkv5", "rwkv7"), _RWKV),
    **dict.fromkeys(("gemma3n", "gemma3n_text"), _EMBEDDINGS),
    "deepseek_v4": _COMPRESSED,
    "longcat_flash": _TWO_IN_ONE,
    "zamba": _SHARED,
    "jetmoe": _ROUTED,
    "recurrent_gemma": _GATED,
    **dict.fromkeys(("mllama", "mllama_text_model"), _CROSS),
}  # fmt: skip
"""Fact and remedy by `model_type`."""
