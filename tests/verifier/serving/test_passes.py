"""The second account of an engine's pass agrees with the first, whatever the model is made of."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from planner.commands.cli import main
from planner.specs.ask.stages import StagesRequest, StageWork
from planner.specs.files.engines import load_engine
from planner.specs.files.reading import load_architecture
from planner.verifier.serving.layers import embedding_s, head_s, layer_s
from planner.verifier.serving.ranks import Links, handing_s
from planner_workshop.staging.asking import read_groups, served_formats, unfit
from planner_workshop.staging.groups import handing_s as found_handing_s, unit_table
from planner_workshop.staging.stages_verifier import (
    embedding_bytes,
    fixed_bytes,
    layer_cache_bytes,
    layer_weights_bytes,
)
from tests.specs.huggingface.published import UNTIMED

FOLDER = Path(__file__).parents[2] / "specs" / "huggingface" / "configs"
CONFIGS = [
    path
    for path in sorted(FOLDER.glob("*_config.json"))
    if "quant" not in path.name and path.stem.removesuffix("_config") not in UNTIMED
]
GROUPS = (
    "h100-sxm:tp8",
    "h100-sxm:tp2",
    "h100-sxm:tp4ep4",
    "h100-sxm:tp16",
    "a100-80gb:tp4",
    "h200:tp8ep8",
    "l40s:tp1",
    "tpu-v4-4x4x4:tp8",
)
WEIGHTS = (None, "bf16", "fp8", "fp8_block", "fp8_static", "nvfp4", "int4", "mxfp4")


def _drawn(model, draw):
    """A request for a model on one kind of group, of whatever engine, work and formats."""
    engine = load_engine(draw.choice(["vllm", "sglang", "trtllm"]))
    work = StageWork(
        phase=draw.choice(["decode", "prefill"]),
        batch=draw.choice([1, 7, 64, 2000]),
        n_microbatches=draw.choice([1, 3]),
        n_input_tokens=draw.choice([100, 5_000, 40_000]),
        n_output_tokens=draw.choice([1, 700]),
    )
    weights, experts = draw.choice(WEIGHTS), draw.choice([None, "fp8", "mxfp4"])
    return StagesRequest(
        model=model,
        engine=engine,
        groups=tuple(read_groups(draw.choice(GROUPS), engine)),
        work=work,
        formats=served_formats(model, weights, experts, draw.choice(["bf16", "fp8"])),
    )


@pytest.mark.parametrize("name", UNTIMED)
def test_what_nothing_times_is_refused_with_the_reason(name, capsys):
    path = str(FOLDER / f"{name}_config.json")
    words = ("--engine", "vllm", "--topology", "h100-nvl8-x1", "--tp", "1", "--batch", "1")
    assert main(["predict", "--model", path, *words]) == 2
    assert "nothing here times what layers of this family do" in capsys.readouterr().err
    request = _drawn(load_architecture(path), Random(name))
    assert all(unfit(group, request) for group in request.groups)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_seconds_and_bytes_are_those_of_who_cuts(path):
    model, draw, n_met = load_architecture(str(path)), Random(path.stem), 0
    while n_met < 2:
        asked = _drawn(model, draw)
        (group,) = asked.groups
        if unfit(group, asked):
            continue
        n_met += 1
        units, layers = unit_table(asked), [model.layers[k] for k in model.order]
        run = [layer_s(layer, group, asked) for layer in layers]
        run = [embedding_s(group, asked), *run, head_s(group, asked)]
        end = embedding_bytes(group, asked)
        first = end + 2 * model.n_encoder_params / group.n_tensor
        weights = [first, *(layer_weights_bytes(one, group, asked) for one in layers), end]
        caches = [0.0, *(layer_cache_bytes(one, group, asked) for one in layers), 0.0]
        assert np.array(run) == pytest.approx(units.run_s[0], rel=1e-12)
        assert np.array(weights) == pytest.approx(units.weights_bytes[0], rel=1e-12)
        assert np.array(caches) == pytest.approx(units.cache_bytes[0], rel=1e-12)
        assert fixed_bytes(group, asked) == pytest.approx(units.fixed_bytes[0], rel=1e-12)


def test_handing_over_is_inside_a_node_where_all_groups_of_a_kind_fit_in_one():
    groups = read_groups("h100-sxm:tp4x2,a100-80gb:tp4x3,tpu-v4-4x4x4:tp8x2", load_engine("vllm"))
    found = found_handing_s(groups, 1e6)
    again = [[handing_s(one, other, 1e6) for other in groups] for one in groups]
    assert np.array(again) == pytest.approx(found, rel=1e-12)
    assert again[0][0] < again[1][1]


def test_a_collective_on_paper():
    """Eight chips: three steps of a tree, and seven eighths of the buffer over two links."""
    (group,) = read_groups("tpu-v4-4x4x4:tp8", load_engine("vllm"))
    fabric = group.cluster.fabric
    n_bytes, rate = 8e6, 2 * fabric.link_bytes_per_s
    once = 3 * fabric.hop_s + n_bytes * 7 / 8 / rate

    assert Links(fabric).collective_s("all_gather", n_bytes, 8) == pytest.approx(once)
    assert Links(fabric).collective_s("all_reduce", n_bytes, 8) == pytest.approx(2 * once)
