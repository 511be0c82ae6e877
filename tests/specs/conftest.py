"""A working folder with one sound model, device and cluster of each kind, to be spoilt."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from planner.errors import Problem, SpecError

SOUND = {
    # 1 × (2·2·4 + 2·2·2·(2 + 1)) + 5·2 = 50 parameters
    "models/tiny.toml": """
[model]
name = "tiny"
title = "Tiny"
description = "fifty parameters"
[shape]
source = "assumed"
n_layers = 1
d_model = 2
d_ff = 4
n_heads = 2
n_kv_heads = 1
d_head = 2
vocab_size = 5
n_ffn_matrices = 2
block = "serial"
tied_embeddings = true
[formats]
source = "assumed"
published = { weights = ["bf16"], kv = "bf16", source = "assumed" }
weights = ["bf16"]
kv = ["bf16"]
activation = "bf16"
[check]
n_params = { value = 50, source = "counted by hand" }
""",
    "topologies/devices/chip.toml": """
[device]
name = "chip"
title = "Chip"
[peak]
bf16 = { value = "100 TFLOP/s", source = "datasheet" }
[memory]
source = "datasheet"
hbm = "16 GiB"
hbm_bandwidth = "800 GB/s"
reserve = { value = "1 GiB", source = "assumed" }
[price]
on_demand = { value = "$2/h", date = "2026-05", source = "assumed" }
[attainable]
source = "assumed"
compute_fraction = 0.5
hbm_fraction = "80%"
layer_overhead = "100 us"
roofline_exponent = 3
""",
    "topologies/box.toml": """
[cluster]
name = "box-{n}"
title = "Box {n} of {n_devices}"
description = "a line of chips"
examples = ["box-2"]
device = "chip"
[pattern]
n = [1, 2, 4]
[torus]
source = "assumed"
shape = [1, 1, "{n}"]
link_bandwidth = "10 GB/s"
hop = "1 us"
wrap_multiple = 4
slice_dims = [1, 2, 4]
activation_network = "ring"
bulk_network = "axis"
""",
    "topologies/pair.toml": """
[cluster]
name = "pair"
title = "A pair of servers"
device = "chip"
[nodes]
source = "assumed"
n_nodes = 2
n_devices_per_node = 4
activation_network = "tree"
bulk_network = "tree"
[nodes.scale_up]
source = "assumed"
bandwidth = "300 GB/s"
latency = "2 us"
attainable_fraction = 0.5
[nodes.scale_out]
source = "assumed"
bandwidth = "200 Gb/s"
latency = "5 us"
attainable_fraction = 0.5
""",
    "topologies/odd.toml": """
[cluster]
name = "odd"
title = "Three chips and a switch"
device = "chip"
[linked]
source = "assumed"
devices = ["a0", "a1", "b0"]
switches = ["s"]
activation_network = "tree"
bulk_network = "tree"
[[link]]
source = "assumed"
a = "a0"
b = "a1"
bandwidth = "100 GB/s"
latency = "1 us"
[[link]]
source = "assumed"
a = "a1"
b = "s"
bandwidth = "25 GB/s"
latency = "5 us"
[[link]]
source = "assumed"
a = "s"
b = "b0"
bandwidth = "25 GB/s"
latency = "5 us"
""",
}

MIXED = """
[model]
name = "mixed"
title = "Mixed"
[shape]
source = "assumed"
n_layers = 3
d_model = 8
d_ff = 16
n_heads = 2
n_kv_heads = 2
d_head = 6
vocab_size = 10
n_ffn_matrices = 3
block = "serial"
tied_embeddings = false
[moe]
source = "card"
n_experts = 4
n_active_experts = 2
n_shared_experts = 1
d_expert = 4
n_dense_layers = 1
[mla]
source = "card"
d_kv_latent = 3
d_q_latent = 5
d_rope = 2
d_nope = 4
d_value = 3
[window]
source = "card"
n_tokens = 7
n_layers = 2
[mtp]
source = "card"
n_modules = 1
n_params = 1030
[formats]
source = "assumed"
published = { weights = ["fp8"], kv = "bf16", source = "card" }
weights = ["fp8", "int4"]
kv = ["fp8", "bf16"]
activation = "bf16"
[check]
n_params = { value = 2258, source = "counted by hand" }
n_params_active = { value = 1874, source = "counted by hand" }
"""
"""A sound model of everything that `tiny` has not.

    attention  3 layers × (5 (8 + 2·6) + 8 (3 + 2) + 3·2 (4 + 3) + 2·3·8) = 3 × 230 = 690
    FFN        1 dense layer × 3·8·16 = 384
    experts    2 layers × (router 8·4 + (4 + 1) · 3·8·4) = 2 × (32 + 5 · 96) = 1024
    embedding  2 · 10·8 = 160; together 2258; without 2 layers × 2 idle experts 1874
    predictor  apart: 230 + 512 of a layer, 2·8·8 that join it, 160 of both embeddings: 1030
"""


@dataclass(frozen=True)
class Folder:
    """A working folder of files that load, until they are spoilt."""

    path: Path

    def write(self, name: str, text: str) -> None:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def spoil(self, name: str, *changes: tuple[str, str]) -> None:
        """Replace one text by another, in a file that must hold it once."""
        text = (self.path / name).read_text(encoding="utf-8")
        for old, new in changes:
            assert text.count(old) == 1, f"`{old}` is {text.count(old)} times in {name}"
            text = text.replace(old, new)
        self.write(name, text)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLANNER_PATH", raising=False)
    made = Folder(tmp_path)
    for name, text in SOUND.items():
        made.write(name, text)
    return made


@pytest.fixture
def mixed(folder):
    """The working folder with a model of experts, latent attention and a window besides."""
    folder.write("models/mixed.toml", MIXED)
    return folder


@pytest.fixture
def refused():
    """Call with a loader and a name: the error, which must be a `SpecError` of problems."""

    def call(load, name) -> SpecError:
        with pytest.raises(SpecError) as caught:
            load(name)
        assert caught.value.problems
        return caught.value

    return call


@pytest.fixture
def only_problem(refused):
    """The same, where one problem is all that there may be."""

    def call(load, name) -> Problem:
        problems = refused(load, name).problems
        assert len(problems) == 1, list(map(str, problems))
        return problems[0]

    return call
