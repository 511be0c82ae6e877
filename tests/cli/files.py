"""Files of a user: a small model and a small pool, as they should be."""

from __future__ import annotations

MODEL = """\
[model]
name = "mini"
title = "Mini 1B"

[shape]
source = "assumed"
n_layers = 16
d_model = 2048
d_ff = 8192
n_heads = 16
n_kv_heads = 1
d_head = 128
vocab_size = 32_000
n_ffn_matrices = 3
block = "parallel"
tied_embeddings = true

[formats]
source = "assumed"
published = { weights = ["bf16", "int8"], kv = "bf16", source = "assumed" }
weights = ["bf16", "int8"]
kv = ["bf16"]
activation = "bf16"

[check]
n_params = { value = 1.014e9, source = "assumed" }
"""

LINKED = """\
[cluster]
name = "desk"
title = "Three chips on a desk"
device = "tpu-v4"

[linked]
source = "assumed"
devices = ["a", "b", "c"]
activation_network = "tree"
bulk_network = "tree"

[[link]]
a = "a"
b = "b"
bandwidth = { value = "50 GB/s", source = "assumed" }
latency = { value = "1 us", source = "assumed" }

[[link]]
a = "b"
b = "c"
bandwidth = { value = "25 GB/s", source = "assumed" }
latency = { value = "1 us", source = "assumed" }
"""
