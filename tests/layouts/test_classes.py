"""Layers of every kind by hand: what one device computes, reads and holds of them."""

from __future__ import annotations

import numpy as np
import pytest

from planner.layouts.geometry import Pass, geometry
from planner.layouts.layer import layer_work, resident_weight_bytes
from planner.layouts.options import all_layouts
from planner.layouts.work import layer_kinds
from planner.specs.records.correspondence import model_spec_of
from planner.topology.meshes import mesh_table
from tests.specs.huggingface.published import read
from tests.topology.pools import nodes

ONE = np.ones((1, 1))
MESHES = mesh_table(nodes(1, n_devices_per_node=1), max_stages=1)
SHAPE = geometry(all_layouts(MESHES), MESHES)


def worked(config: str, n_new: float, context: float) -> dict[str, float]:
    """Of all layers, for one sequence, at one byte a number."""
    model = model_spec_of(read(config))
    work = Pass(n_new_tokens=n_new, n_context_tokens=context, n_cached_tokens=context)
    sums = dict.fromkeys(("matmul_flop", "attention_flop", "index_flop", "kv_bytes"), 0.0)
    sums["fixed_bytes"] = 0.0
    for kind in layer_kinds(model, ONE):
        layer = layer_work(
            kind.model,
            SHAPE,
            kind.within(work),
            n_sequences=ONE,
            weight_bytes_per_number=ONE,
            kv_bytes_per_number=ONE,
            has_experts=kind.has_experts,
        )
        for name in sums:
            sums[name] += (kind.n_layers * getattr(layer, name)).item()
    return sums


def test_states_beside_gated_attention_by_hand() -> None:
    """Qwen3-Next, one token at 10,000 cached: 12 layers attend, 36 update states.

    A delta net has 12,352 columns and 4,096 rows beside 32,960 numbers; attention queries with
    gates of 2·16·256, keys and values of 2·2·256, and 16·256 rows; 11 experts of 3 matrices of 512.
    """
    did, e, state = worked("Qwen3-Next-80B-A3B", 1.0, 10_000.0), 2048, 32 * 128 * 128
    net = e * (12_352 + 4_096) + 32_960
    attention = e * (2 * 16 * 256 + 2 * 2 * 256) + 16 * 256 * e + 512
    fed = 11 * 3 * e * 512 + e * 512
    assert did["matmul_flop"] == 2 * (36 * net + 12 * attention + 48 * fed)
    assert did["attention_flop"] == 12 * 4 * 16 * 256 * 10_000 + 36 * 8 * state
    assert did["kv_bytes"] == 12 * 2 * 2 * 256 * 10_000
    # states are read and written in 4 bytes; of 8,192 channels three inputs that wait and one that
    # comes, and what 32 heads of 128 give, in 2
    assert did["fixed_bytes"] == 36 * 2 * (4 * state + 2 * (8192 * 4 + 32 * 128))


def test_states_over_a_prompt_by_hand() -> None:
    """Qwen3-Next reads 1,000 tokens: the convolution reads and writes 8,192 channels of each."""
    did = worked("Qwen3-Next-80B-A3B", 1000.0, 1000.0)
    scores, states = 12 * 4 * 16 * 256 * 1000, 36 * 8 * 32 * 128 * 128
    assert did["attention_flop"] == 1000 * (scores + states)
    assert did["fixed_bytes"] == 36 * 1000 * 2 * 2 * 8192


def test_caches_of_earlier_layers_are_read_again_by_hand() -> None:
    """Hunyuan Large: 32 of 64 layers make keys and values of 8 heads of 80, and all read them."""
    did, e = worked("Hunyuan-A52B-Instruct", 1.0, 10_000.0), 6400
    assert did["kv_bytes"] == 64 * 2 * 8 * 80 * 10_000
    assert did["attention_flop"] == 64 * 4 * 80 * 80 * 10_000
    mixed = 64 * 2 * e * 80 * 80 + 32 * e * 2 * 8 * 80 + 32 * (160 + 80)
    fed = 64 * (2 * 3 * e * 18_304 + e * 16)
    assert did["matmul_flop"] == 2 * (mixed + fed)
    assert did["fixed_bytes"] == did["index_flop"] == 0


@pytest.mark.parametrize(
    ("n_new", "context", "met"),
    [
        (1.0, 20_000.0, 12 * 20_000 + 36 * 4096),  # half of a chunk of 8,192 on average
        (1.0, 8000.0, 48 * 8000),
        (20_000.0, 20_000.0, 20_000 * (12 * 20_000 + 36 * 8192)),  # masked or not
    ],
)
def test_chunks_by_hand(n_new: float, context: float, met: int) -> None:
    """Llama 4 Scout: 36 of 48 layers attend within chunks, 40 heads of 128."""
    assert worked("Llama-4-Scout", n_new, context)["attention_flop"] == 4 * 40 * 128 * met


def test_picked_tokens_by_hand() -> None:
    """DeepSeek-V3.2, one token at 10,000 cached: 2,048 are picked by 64 heads of 128.

    Latents of 512 and rotated keys of 64 are met by 128 heads; keys of the indexer are of a byte.
    """
    did = worked("DeepSeek-V3.2", 1.0, 10_000.0)
    assert did["attention_flop"] == 61 * 2 * 128 * (512 + 64 + 512) * 2048
    assert did["kv_bytes"] == 61 * (512 + 64) * 2048
    assert did["index_flop"] == 61 * 2 * 64 * 128 * 10_000
    assert did["fixed_bytes"] == 61 * 128 * 10_000
    assert worked("DeepSeek-V3.2", 1.0, 1000.0)["kv_bytes"] == 61 * (512 + 64) * 1000


def test_blocks_that_an_earlier_layer_has_rest_once_by_hand() -> None:
    """Zamba 2: all parameters but norms; each stage of a pipeline needs its block itself."""
    model = model_spec_of(read("Zamba2-1.2B"))
    norms = sum(one.n_layers * one.n_norm_params for one in model.layers)
    assert resident_weight_bytes(model, SHAPE, ONE).item() == model.n_params - norms
    borrowed = model.layers[2].n_layers * model.layers[2].n_borrowed_params
    assert borrowed > model.n_params // 4


def test_the_fullest_stage_has_the_most_parameters_by_hand() -> None:
    """Jamba 1.5 Mini: of each eight layers the fifth attends, and each second has experts.

    Mamba has more parameters than attention, so of stages of four those without are fuller.
    """
    model = model_spec_of(read("AI21-Jamba-1.5-Mini"))

    def counted(n_stages: int) -> dict[str, float]:
        kinds = layer_kinds(model, np.array([[float(n_stages)]]))
        return {kind.model.layers[0].name: kind.n_layers.item() for kind in kinds}

    assert counted(4) == {"Mamba, FFN": 3, "Mamba, experts": 4, "full attention, FFN": 1}
    assert counted(8) == {"Mamba, FFN": 2, "Mamba, experts": 2}
