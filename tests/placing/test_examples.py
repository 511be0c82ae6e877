"""The situations of `examples/joint_placement.py`: layout first loses, and by how much at least."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEAST_LOSS = 0.05


@pytest.mark.timeout(240)
def test_in_every_situation_the_layout_first_loses_five_percent_of_the_output() -> None:
    example = runpy.run_path(str(ROOT / "examples" / "joint_placement.py"))
    found = list(example["compared"]())
    assert len(found) == len(example["SITUATIONS"]) == 5
    for name, joint, staged in found:
        assert joint.certificate.gap == 0.0, name
        assert staged.output_tokens_per_s <= (1 - LEAST_LOSS) * joint.output_tokens_per_s, name
