"""A cut and a placement that tests of reports share."""

from __future__ import annotations

from pathlib import Path

from planner.specs.files.layer_files import load_layers
from planner.specs.files.reading import load_architecture
from planner_workshop.staging.asking import cut_stages
from planner_workshop.staging.placing import place_layers

_ROOT = Path(__file__).parents[2]
_CONFIGS = _ROOT / "tests" / "specs" / "huggingface" / "configs"

STAGES = cut_stages(
    load_architecture(str(_CONFIGS / "gemma-3-27b-it_config.json")),
    "h100-sxm:tp2,l40s:tp1,l4:tp1",
    batch=8,
)
PLACEMENT = place_layers(load_layers(_ROOT / "examples" / "machines" / "quality-10.toml"))
