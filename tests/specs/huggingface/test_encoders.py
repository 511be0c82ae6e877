"""Towers beside a decoder: their parameters by transformers' own classes, and what they hold.

`encoders.jsonl` has shapes of the usual configs of transformers 5.24, a few in other sizes, each
with the parameters of its class outside of the decoder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner import verify
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
    assert 0.9985 < counted.n_params / shape["n_params"] <= 1.0


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


PATCHES = 4096
"""Of an image of 1024 tokens: 2 × 2 of them become one."""

WHOLE = TOWER | {"window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]}
"""As Qwen2.5-VL-7B publishes it: windows of 8 × 8 patches in 28 of 32 layers."""

FLOP = {
    "patches": 2 * 3 * 14**2 * 1280 * 2 * PATCHES,
    "attention's products": 32 * 4 * 1280**2 * 2 * PATCHES,
    "FFN": 32 * 3 * 1280 * 3420 * 2 * PATCHES,
    "attention": 4 * 4 * 1280 * PATCHES**2,
    "windows": 28 * 4 * 1280 * 64 * PATCHES,
    "projector": (5120**2 + 5120 * 3584) * 2 * 1024,
}
"""By hand: two for each weight and patch, or token; four for each number of a pair of patches."""


def _predicted(folder: Path, capsys: Any, *words: str, **more: Any) -> Any:
    line = f"predict --engine vllm --model {_written(folder, **more)} --topology h100-nvl8-x1"
    line += " --batch 1 --input 2048 --output 64 --json"
    assert main([*line.split(), *words]) == 0
    return json.loads(capsys.readouterr().out)


def _tower(answer: Any, of: str = "prefill") -> dict[str, tuple[float, float, int]]:
    """Seconds and FLOP of one run of each operation of the tower, and how often it runs."""
    (lines,) = (it["operations"] for it in answer["answer"]["passes"] if it["name"] == of)
    prefix = "tower: "
    return {
        it["name"].removeprefix(prefix): (it["run_s"], it["flop"], it["n_times"])
        for it in lines
        if it["name"].startswith(prefix)
    }


def test_the_work_of_a_tower_is_that_of_its_patches(tmp_path, capsys):
    seen = _predicted(tmp_path, capsys, "--images", "1x1024", vision_config=WHOLE)
    lines = _tower(seen)
    assert {name: flop * n for name, (_, flop, n) in lines.items()} == pytest.approx(FLOP)
    assert _tower(seen, "decode") == {}
    assert verify(seen).is_true


def test_a_first_token_waits_for_the_tower_and_others_do_not_see_it_alone(tmp_path, capsys):
    blind = _predicted(tmp_path, capsys, vision_config=WHOLE)["answer"]
    seen = _predicted(tmp_path, capsys, "--images", "1x1024", vision_config=WHOLE)
    took = sum(seconds * n for seconds, _, n in _tower(seen).values())
    grown = seen["answer"]["ttft_s"]["value"] - blind["ttft_s"]["value"]
    assert grown == pytest.approx(took)
    assert seen["answer"]["tpot_s"]["value"] == pytest.approx(blind["tpot_s"]["value"])
    floor = sum(FLOP.values()) / 989e12
    assert floor < took < 3 * floor


def test_ranks_divide_a_tower_and_add_up(tmp_path, capsys):
    words = ("--images", "2x512", "--tp", "4")
    lines = _tower(_predicted(tmp_path, capsys, *words, vision_config=WHOLE))
    assert lines["FFN"][1] * lines["FFN"][2] == pytest.approx(FLOP["FFN"] / 4)
    assert lines["all-reduces"][2] == 64
    both = lines["attention"][1] * lines["attention"][2]
    assert both == pytest.approx(FLOP["attention"] / 4 / 2)  # of two images, each by itself


def test_what_is_cached_is_not_seen_again(tmp_path, capsys):
    words = ("--images", "1x1024", "--hit-rate", "50%")
    lines = _tower(_predicted(tmp_path, capsys, *words, vision_config=WHOLE))
    assert lines["FFN"][1] * lines["FFN"][2] == pytest.approx(FLOP["FFN"] / 2)


def test_a_forged_time_of_a_tower_is_told(tmp_path, capsys):
    seen = _predicted(tmp_path, capsys, "--images", "1x1024", vision_config=WHOLE)
    passes = seen["answer"]["passes"]
    i = next(i for i, it in enumerate(passes) if it["name"] == "prefill")
    j = next(j for j, it in enumerate(passes[i]["operations"]) if it["name"] == "tower: FFN")
    passes[i]["operations"][j]["flop"] *= 2
    told = {one.pointer for one in verify(seen).falsehoods}
    assert told == {f"/answer/passes/{i}/operations/{j}/flop"}


def test_a_plan_counts_towers_and_its_commands_name_the_images(tmp_path, capsys):
    path = _written(tmp_path, vision_config=WHOLE)
    line = f"--engine vllm --model {path} --topology h100-nvl8-x1 --batch 1,8 --chunk 4096 --json"
    held = []
    for images in ([], ["--images", "2x512"]):
        assert main([*line.split(), *images]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert verify(answer).is_true
        held.append(answer["answer"]["deployment"])
    assert held[1]["ttft_s"]["value"] > held[0]["ttft_s"]["value"]
    assert held[1]["tpot_s"]["value"] > held[0]["tpot_s"]["value"]  # others' images between
    assert "--images 2x512" in held[1]["command"]
    assert "--images" not in held[0]["command"]


@pytest.mark.parametrize(
    ("model", "words", "said"),
    [
        ("", "--images 3x1024", "is no number of images and tokens of each, of 2048 of `--input`"),
        ("", "--images two", "is no number of images"),
        ("", "--images 0x9", "is no number of images"),
        ("qwen3-8b", "--images 1x64", "qwen3-8b has no tower of a known shape"),
        ("", "--images 1x64 --engine roofline", "means nothing without a serving engine"),
    ],
)
def test_images_that_nobody_can_see_are_refused(tmp_path, capsys, model, words, said):
    model = model or str(_written(tmp_path, vision_config=WHOLE))
    line = f"--engine vllm --model {model} --topology h100-nvl8-x1 {words}"
    assert main(line.split()[2 * ("roofline" in line) :]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "`--images" in told
    assert said in told
