"""Families that are known and not read: why not, and what to do instead."""

from __future__ import annotations

_ROWS = (
    (
        "t5 mt5 umt5 longt5 t5gemma bart mbart pegasus marian m2m_100 whisper speech_to_text "
        "moonshine switch_transformers florence2",
        "is an encoder-decoder: besides its own cache, each token that it writes reads one of what "
        "was read, which no record of layers has",
        "give a decoder alone",
    ),
    (
        "bert roberta xlm-roberta distilbert deberta-v2 electra albert modernbert clip siglip vit",
        "is an encoder: it makes one vector of what it reads, and writes no tokens that could be "
        "timed",
        "give a decoder",
    ),
    (
        "dream Dream diffusion_gemma llada2_moe",
        "is decoded by diffusion, in layers that are not read yet",
        "`llada` is read, with a `variant.toml` beside it",
    ),
    (
        "rwkv rwkv5 rwkv7",
        "is an RWKV of another generation, with other states",
        "`rwkv6` is read",
    ),
    (
        "gemma3n gemma3n_text",
        "adds embeddings of its own in each layer, which some engines keep outside of devices",
        "`gemma3_text` and `gemma4_text` without them are read",
    ),
    (
        "deepseek_v4",
        "keeps caches that are compressed by several tokens, which no record of layers has",
        "`deepseek_v32` is read",
    ),
    (
        "longcat_flash",
        "has two attentions in a layer, and experts that compute nothing",
        "`deepseek_v3` is the nearest that is read",
    ),
    ("zamba", "shares one block without additions of its own", "`zamba2` is read"),
    ("jetmoe", "routes tokens to heads of attention too", "give a model whose heads all run"),
    (
        "recurrent_gemma",
        "has gated recurrences of one number a channel",
        "`falcon_mamba` is the nearest that is read",
    ),
    (
        "mllama mllama_text_model",
        "attends to an image's keys in layers of its own, which are no part of a decoder's cache",
        "`llama4_text` is read",
    ),
)

REASONS = {family: (fact, remedy) for row, fact, remedy in _ROWS for family in row.split()}
"""Fact and remedy by `model_type`."""

ENCODER_DECODER = REASONS["t5"]
