"""What a request is where the user leaves something out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.specs.spans import span_text
from planner.specs.workload import Workload

if TYPE_CHECKING:
    from planner.specs.targets import Targets

DEFAULT_MODEL = "palm-540b"
DEFAULT_TOPOLOGY = "tpu-v4-4x8x8"
USUAL_UTILISATION = 0.85
"""Share of their capacity that replicas serve of requests that come at a rate; `assumed`."""

DEFAULT_WORKLOAD = Workload(n_input_tokens=2048, n_output_tokens=64)
DEFAULT_BATCHES = (*range(1, 129), *range(136, 1025, 8))
"""Batches that every search chooses from: each up to 128, then each multiple of 8 up to 1024.

The sizes that vLLM captures CUDA graphs for are among them, and its `max_num_seqs` on devices of
70 GiB or more is the last.
"""

NEAR_SHARE = 0.005
"""Of its objective that a placement gives up at most for replicas over fewer nodes and leaves, and
for compact slices."""

RULE_SHARE = 0.05
"""Of its objective that a plan has to gain without a rule of the engine for an answer to say so."""

N_SIMULATED = 20_000
"""Requests that a fleet is tried on: of 20 batches of 880, each p99 has 8 above it."""

N_LARGER_BATCHES = 64
"""Batches that are offered beyond these where only larger ones are asked for."""


def default_prefill(targets: Targets) -> str:
    """With a latency target requests are prefilled at once, without one for least cost.

    Where the first token has a target of its own, that says how long prompts may take together.
    """
    is_bounded = targets.ttft_s is not None
    return "latency" if targets.tpot_s is not None and not is_bounded else "cost"


def default_prefill_batches(prefill: str) -> Sequence[int]:
    """For least latency each request alone, for least cost any batch."""
    return (1,) if prefill == "latency" else DEFAULT_BATCHES


def batches_up_to(most: int) -> tuple[int, ...]:
    """The usual batches that are no larger than a cap, and the cap itself.

    >>> batches_up_to(4), batches_up_to(130)[-3:], batches_up_to(1100)[-4:]
    ((1, 2, 3, 4), (127, 128, 130), (1058, 1075, 1092, 1100))
    """
    usual = (n for n in DEFAULT_BATCHES if n < most)
    larger = range(DEFAULT_BATCHES[-1], most, max(1, most // N_LARGER_BATCHES))
    return tuple(sorted({*usual, *larger, most}))


def batches_text(chosen: Sequence[int]) -> str:
    """Batches as `--batch` reads them back: a number alone is a cap.

    >>> batches_text((1, 2, 3)), batches_text((3,)), batches_text((2, 4))
    ('3', '3:3', '2,4')
    """
    if len(chosen) == 1 and chosen[0] > 1:
        return f"{chosen[0]}:{chosen[0]}"
    is_capped = tuple(chosen) == batches_up_to(chosen[-1])
    return str(chosen[-1]) if is_capped else span_text(chosen)


def default_batches(targets: Targets) -> tuple[int, ...]:
    """The usual decode batches, and those from `min_batch` to twice as many beyond them.

    >>> from planner.specs.targets import Targets
    >>> default_batches(Targets(min_batch=2000))[-3:]
    (3952, 3984, 4000)
    """
    least, most = targets.min_batch, DEFAULT_BATCHES[-1]
    if least is None or least <= most:
        return DEFAULT_BATCHES
    step = max(1, -(-least // N_LARGER_BATCHES))
    larger = range(least, 2 * least + 1, step)
    return tuple(sorted({*DEFAULT_BATCHES, *larger, 2 * least}))
