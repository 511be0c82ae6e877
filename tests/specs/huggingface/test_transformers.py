"""Parameters that configs imply, against transformers' own classes, whose tensors hold nothing.

Needs `pip install -e '.[families]'`; run by `pytest -m families`. Of a checkpoint that no class of
transformers reads, there is nothing to compare.
"""

from __future__ import annotations

import json
import warnings

import pytest

from planner.specs.records.architecture import Architecture, Experts
from tests.specs.huggingface.published import every_config, path_of, read

pytestmark = [pytest.mark.families, pytest.mark.timeout(600)]

WITHOUT_CLASS = {"hunyuan", "llada", "minimax_text_01", "nemotron-nas", "rwkv6"}
"""Families whose code is in their own repositories."""

READ_AS = {"kimi_k2": "deepseek_v3"}
"""Families whose layers are those of another one."""

ROTATIONS = ("rope_scaling", "rope_parameters")
"""They have no parameters, and of some configs not all of them are kept."""

BESIDES = {"Apertus-8B-2509": -2 * 32, "gemma-4-26B-A4B": 30}
"""Two numbers of xIELU a layer, which are not read; a scalar a layer, a buffer in transformers."""


def _counted_by_transformers(config: str) -> int:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    table = json.loads(path_of(config).read_text())
    for part in (table, table.get("text_config", {})):
        for key in ("quantization_config", "auto_map", *ROTATIONS):
            part.pop(key, None)
    if "attention_head_dim" in table:  # as `head_dim` was called before transformers had the class
        table["head_dim"] = table["attention_head_dim"]
    family = table["model_type"]
    table["model_type"] = READ_AS.get(family, family)
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")
        made = transformers.AutoConfig.for_model(**table).get_text_config()
        model = transformers.AutoModelForCausalLM.from_config(made)
    model.tie_weights()
    return sum({id(one): one.numel() for one in model.parameters()}.values())


def _n_routing_biases(model: Architecture) -> int:
    """A number an expert that balances loads: a buffer in transformers, saved all the same."""
    sparse = [layer for layer in model.layers if isinstance(layer.ffn, Experts)]
    return sum(one.n_layers * one.ffn.n_experts for one in sparse if isinstance(one.ffn, Experts))


@pytest.mark.parametrize(
    "config", [one for one in every_config() if read(one).family not in WITHOUT_CLASS]
)
def test_a_config_implies_the_parameters_of_its_class_to_the_last(config: str) -> None:
    model = read(config)
    more = model.n_params - _counted_by_transformers(config) - BESIDES.get(config, 0)
    assert more in (0, _n_routing_biases(model))
