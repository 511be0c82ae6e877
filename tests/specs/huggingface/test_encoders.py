"""Towers beside a decoder: their parameters by transformers' own classes, and what they hold.

`encoders.jsonl` has shapes of the usual configs of transformers 5.24, a few in other sizes, each
with the parameters of its class outside of the decoder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.commands.cli import main
from planner.specs.files.ledger import recording
from planner.specs.huggingface.encoders import encoders_of
from planner.specs.huggingface.reading import read_config

SHAPES = [
    json.loads(line) for line in Path(__file__).with_name("encoders.jsonl").read_text().splitlines()
]
DECODER = {
    "model_type": "qwen2_5_vl",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "max_position_embeddings": 128000,
    "hidden_act": "silu",
}
TOWER = {
    "depth": 32,
    "hidden_size": 1280,
    "intermediate_size": 3420,
    "num_heads": 16,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 3584,
    "in_chans": 3,
}
N_TOWER = 676_034_560
"""32 × (4 × 1280² + 3 × 1280 × 3420) + 2 × 3 × 14² × 1280 + 5120² + 5120 × 3584"""


def _written(folder: Path, **more: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(DECODER | more))
    return path


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["model_type"])
def test_a_tower_has_the_parameters_of_its_class(shape: dict[str, Any]):
    """But for biases and norms: a tenth of a per cent."""
    (counted,) = encoders_of(shape, shape["d_model"]).values()
    assert counted is not None
    assert 0.9985 < counted / shape["n_params"] <= 1.0


def test_a_tower_is_counted_beside_the_decoder_and_it_is_said_what_is_not(tmp_path: Path):
    with recording() as said:
        model = read_config(_written(tmp_path, vision_config=TOWER))
    assert model.n_encoder_params == N_TOWER
    assert model.n_params == read_config(_written(tmp_path)).n_params
    (remark,) = said.remarks
    assert remark.key == "vision_config"
    assert "676 million parameters are counted in memory, its time is not" in remark.fact


@pytest.mark.parametrize(
    "tower",
    [
        {"depth": 32},
        *(TOWER | {"hidden_size": width} for width in (None, -1280, 0, 1e400, 10**400, [1280])),
        *(TOWER | {"depth": depth} for depth in (0, -32, 10**9)),
        *(TOWER | {"patch_size": patch} for patch in ("14", 0, [], {})),
    ],
)
def test_a_tower_of_a_shape_that_is_not_known_is_left_out_and_it_is_said(
    tmp_path: Path, tower: dict[str, Any]
):
    with recording() as said:
        model = read_config(_written(tmp_path, vision_config=tower))
    assert model.n_encoder_params == 0
    (remark,) = said.remarks
    assert "neither its memory nor its time is counted" in remark.fact


@pytest.mark.parametrize("runtime", ["vllm", "roofline"])
@pytest.mark.parametrize("weights", ["bf16", "fp8"])
def test_each_rank_of_a_stage_holds_its_part_in_16_bits(tmp_path, capsys, runtime, weights):
    """However narrow the rest is; the judge of each answer counts it by its own code."""
    held = []
    for more in ({}, {"vision_config": TOWER}):
        line = f"predict --engine {runtime} --model {_written(tmp_path, **more)} --tp 2 --pp 1"
        line += f" --topology h100-nvl8-x1 --batch 8 --weights {weights} --json"
        assert main(line.split()) == 0
        answer = json.loads(capsys.readouterr().out)["answer"]
        part = answer["memory"] if runtime == "vllm" else answer["plan"]["deployment"]["memory"]
        held.append(part["weights_bytes"])
    assert held[1] - held[0] == pytest.approx(2 * N_TOWER / 2, rel=1e-12)
