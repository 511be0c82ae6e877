"""One file of each kind, small, with a number at every key that may have one."""

from __future__ import annotations

MODEL = """
[model]
name = "toy"
title = "Toy"
[shape]
source = "assumed"
n_layers = 8
d_model = 1024
d_ff = 4096
n_heads = 16
n_heads_served = 32
n_kv_heads = 8
d_head = 64
vocab_size = 32000
n_ffn_matrices = 3
block = "serial"
tied_embeddings = false
context = 4096
[formats]
source = "assumed"
published = { weights = ["bf16", "int8"], kv = "bf16", source = "assumed" }
weights = ["bf16", "int8"]
kv = ["bf16", "fp8"]
activation = "bf16"
[window]
source = "assumed"
n_tokens = 512
n_layers = 4
[quality]
bf16 = { value = "2%", source = "assumed" }
int8 = { value = "2.5%", source = "assumed" }
[kv_quality]
fp8 = { value = "2%", source = "assumed" }
[check]
n_params = { value = 195e6, source = "assumed" }
tolerance = 0.9
"""

MIXTURE = """
[model]
name = "toymix"
title = "Toy mixture"
[shape]
source = "assumed"
n_layers = 4
d_model = 512
d_ff = 2048
n_heads = 8
n_kv_heads = 8
d_head = 96
vocab_size = 32000
n_ffn_matrices = 3
block = "serial"
tied_embeddings = true
[moe]
source = "assumed"
n_experts = 16
n_active_experts = 2
n_shared_experts = 1
d_expert = 512
n_dense_layers = 1
[mla]
source = "assumed"
d_kv_latent = 256
d_q_latent = 384
d_rope = 32
d_nope = 64
d_value = 64
[mtp]
source = "assumed"
n_modules = 1
[formats]
source = "assumed"
published = { weights = ["bf16"], kv = "bf16", source = "assumed" }
weights = ["bf16"]
kv = ["bf16"]
activation = "bf16"
[check]
n_params = { value = 70e6, source = "assumed" }
tolerance = 0.9
"""

DEVICE = """
[device]
name = "toychip"
title = "Toy chip"
[peak]
source = "assumed"
bf16 = { value = "50 TFLOP/s", source = "assumed" }
int8 = { value = "100 TFLOP/s", source = "assumed" }
[memory]
source = "assumed"
hbm = "1 GiB"
hbm_bandwidth = "200 GB/s"
reserve = { value = "0.1 GiB", source = "assumed" }
[price]
on_demand = { value = "$2/h", date = "2026-05", source = "assumed" }
[attainable]
source = "assumed"
compute_fraction = 0.5
hbm_fraction = "80%"
layer_overhead = "10 us"
roofline_exponent = 3
""".replace('[peak]\nsource = "assumed"\n', "[peak]\n")

_TIERS = """
[nodes.scale_up]
source = "assumed"
bandwidth = "100 GB/s"
latency = "2 us"
attainable_fraction = 0.5
{more}
[nodes.scale_out]
source = "assumed"
bandwidth = "50 Gb/s"
latency = "9 us"
attainable_fraction = 0.5
"""
_NODES = """
[cluster]
name = "{name}"
title = "Toy"
device = "toychip"
[nodes]
source = "assumed"
n_nodes = 2
n_devices_per_node = 4
activation_network = "{network}"
bulk_network = "{network}"
"""
TREE = (_NODES + _TIERS).format(
    name="toytree", network="tree", more='pair_bandwidth = "40 GB/s"'
) + '[price]\non_demand = { value = "$3/h", date = "2026-05", source = "assumed" }\n'

_REGIME = """
[nodes.scale_up.measured.{name}]
source = "assumed"
n_devices = [2, 4]
short_latency = ["4 us", "5 us"]
short_bandwidth = ["20 GB/s", "10 GB/s"]
long_latency = ["6 us", "7 us"]
long_bandwidth = ["80 GB/s", "60 GB/s"]
"""
MEASURED = (_NODES + _TIERS).format(
    name="toymeasured",
    network="two-regime",
    more="".join(
        _REGIME.format(name=one)
        for one in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
    ),
)
_PROTOCOL = """
[[nodes.protocol]]
source = "assumed"
name = "{name}"
algorithm = "{name}"
scale_up_hop = "1 us"
scale_out_hop = "5 us"
base = "6 us"
bandwidth_fraction = {share}
"""
PROTOCOLS = (_NODES + _TIERS).format(name="toyproto", network="nccl", more="") + "".join(
    _PROTOCOL.format(name=name, share=share) for name, share in (("ring", 0.9), ("tree", 0.8))
)
TORUS = """
[cluster]
name = "toytorus-{n}"
title = "Toy torus"
device = "toychip"
[pattern]
n = [4, 8]
[torus]
source = "assumed"
shape = [2, 2, "{n}"]
link_bandwidth = "10 GB/s"
hop = "1 us"
wrap_multiple = 4
slice_dims = [1, 2, 4, 8]
activation_network = "ring"
bulk_network = "axis"
"""
LINKED = """
[cluster]
name = "toylinked"
title = "Toy"
device = "toychip"
[linked]
source = "assumed"
devices = ["a", "b"]
activation_network = "tree"
bulk_network = "tree"
[[link]]
source = "assumed"
a = "a"
b = "b"
bandwidth = "10 GB/s"
latency = "1 us"
"""
FABRIC = """
[cluster]
name = "toyfabric"
title = "Toy"
[[group]]
source = "assumed"
name = "g"
topology = "toytree"
n_nodes = 4
n_nodes_per_leaf = 2
n_rails = 1
oversubscription = 4
spine_latency = "90 us"
"""
ENGINE = """
[engine]
name = "toyengine"
title = "Toy"
version = "1"
[memory]
source = "assumed"
fraction = 0.9
workspace = "0.1 GiB"
block = 512
reserved = 0.5
[steps]
source = "assumed"
chunk = 256
decode_host = "1 ms"
prefill_host = "1 ms"
small_kernels = 3
request = "9 ms"
request_token = "1 us"
polled = 2
mixes_prefill = true
message_share = 0.2
"""
KERNELS = """
[table]
name = "toykernels"
device = "toychip"
engine = "toyengine"
version = "1"
n_sms = { value = 20, source = "assumed" }
[[kernel]]
family = "gemm"
format = "bf16"
[kernel.constants]
floor_s = 4e-6
compute_fraction = 0.7
memory_fraction = 0.8
exponent = 3
prologue_k = 80
narrow_n = 8
[kernel.fit]
source = "measured"
n_rows = 20
median_error = 0.1
p90_error = 0.3
"""
STATE = """
busy = ["node1"]
[[slow]]
devices = ["node0/gpu3"]
speed = "50%"
[[link]]
nic = ["node0/gpu0"]
bandwidth = "50%"
[[link]]
scale_up = ["node0/gpu0"]
bandwidth = "50%"
"""
RAILS = 'busy = ["node0/gpu{2..3}", "node1/gpu{0..1}", "node{2..3}"]\n'
MACHINES = """
[layers]
name = "boxes"
n_layers = 6
source = "assumed"
[[machine]]
type = "A"
count = 2
region = "one"
rates = [600, 100, 100]
source = "assumed"
[[machine]]
type = "B"
count = 2
region = "two"
rates = [700, 100]
source = "assumed"
[links]
source = "assumed"
between = "500 token/s"
across = "900 token/s"
coordinator = "600 token/s"
[published]
best = { value = "100 token/s", source = "assumed" }
"""
LOADS = "loads = [5.0, 4.0, 3.0, 2.0, 1.0, 1.0]\n"

FILES = {
    "models/toy.toml": MODEL,
    "models/toymix.toml": MIXTURE,
    "topologies/devices/toychip.toml": DEVICE,
    "topologies/toytree.toml": TREE,
    "topologies/toymeasured.toml": MEASURED,
    "topologies/toyproto.toml": PROTOCOLS,
    "topologies/toytorus.toml": TORUS,
    "topologies/toylinked.toml": LINKED,
    "topologies/fabrics/toyfabric.toml": FABRIC,
    "engines/toyengine.toml": ENGINE,
    "kernels/toykernels.toml": KERNELS,
    "state.toml": STATE,
    "rails.toml": RAILS,
    "machines.toml": MACHINES,
    "loads.toml": LOADS,
}
