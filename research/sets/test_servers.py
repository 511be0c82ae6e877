"""What scripts of servers say, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.specs.files.engines import load_engine
from research.sets.rows import Served, served
from research.sets.servers import n_chunk_tokens, n_polled_rounds


def like(engine: str, model: str, gpu: str, **changed) -> Served:
    """A row of InferenceX, one day in spring; fields of its series are changed too."""
    row = next(one for one in served() if one.series.harness == "InferenceX")
    usual = {"tensor": 4, "data": 1, "n_input": 1024, "n_output": 1024, "in_flight": 64}
    of_series = {"engine": engine, "model": model, "gpu": gpu, "weights": "fp8"}
    of_series |= {"date": "2026-04-20", **changed}
    own = {key: of_series.pop(key) for key in usual.keys() & of_series.keys()}
    return replace(row, **{**usual, **own}, series=replace(row.series, **of_series))


@pytest.mark.parametrize(
    ("row", "n_tokens"),
    [
        (like("trtllm", "gpt-oss-120b", "b200"), 20_000),
        (like("trtllm", "Llama-3.1-70B", "b200"), 16_384),
        (like("trtllm", "DeepSeek-V3", "b200"), 8_192),
        (like("trtllm", "DeepSeek-V3", "b200", n_input=8192), 8_320),
        (like("trtllm", "DeepSeek-V3", "b200", date="2025-12-10"), 1_152),
        (like("vllm", "MiniMax-M2.5", "b200"), 2_048),
        (like("vllm", "MiniMax-M2.5", "b200", date="2026-03-28"), 8_192),
        (like("vllm", "MiniMax-M2.5", "h200"), 8_192),
        (like("sglang", "DeepSeek-V3", "b200", weights="nvfp4"), 16_384),
        (like("sglang", "DeepSeek-V3", "b200", weights="nvfp4", harness=""), 8_192),
    ],
)
def test_a_pass_has_room_for_what_its_script_says_on_that_day(row, n_tokens):
    assert n_chunk_tokens(row, load_engine(row.series.engine)) == n_tokens


@pytest.mark.parametrize(
    ("row", "n_rounds"),
    [
        # the first waits 20 rounds, 63 · 20 / 921.6 = 1.37 others half of them: 14.2, twice
        (like("trtllm", "Llama-3.1-70B", "b200"), 28),
        (like("trtllm", "Llama-3.1-70B", "b200", tensor=8), 1),
        (like("trtllm", "Llama-3.1-70B", "b200", n_output=8192), 1),
        (like("trtllm", "DeepSeek-V3", "b200"), 51),
        (like("trtllm", "DeepSeek-V3", "b200", in_flight=32), 1),
        (like("trtllm", "DeepSeek-V3", "b200", date="2025-12-10"), 1),
        # a prompt on each of 4 ranks: 4 (1 + 1/2 + 1/3 + 1/4) of them, 256 in 921.6 rounds
        (like("trtllm", "DeepSeek-V3", "b200", tensor=1, data=4, in_flight=256), 30),
        (like("trtllm", "DeepSeek-V3", "b200", tensor=1, data=8, in_flight=64), 60),
        (like("trtllm", "gpt-oss-120b", "b200", tensor=1, data=4, in_flight=16), 50),
        (like("sglang", "DeepSeek-V3", "b200"), 30),
        (like("sglang", "GLM-5", "b200"), 10),
        (like("sglang", "DeepSeek-V3", "h200"), 1),
        (like("trtllm", "Llama-3.1-70B", "b200", harness=""), 1),
    ],
)
def test_prompts_wait_as_long_as_their_script_lets_them(row, n_rounds):
    assert n_polled_rounds(row) == n_rounds
