"""Commands that start engines: flags that the engines have, and the deployment they stand for."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import cache

import pytest

from planner.errors import RequestError
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.rules import is_valid
from planner.estimates.serving.traffic import Traffic
from planner.report.answers.plan_parts import start_section
from planner.report.launch import launch_of
from planner.report.launch.words import Started
from planner.results.predictions import Launch, Prediction
from planner.runtimes.predicting import Speculating, predict
from planner.specs.files.reading import load_architecture
from planner.specs.records.roles import DECODE, PREFILL
from planner.specs.records.served_formats import ServedFormats
from tests.report.launches import flags_of, n_devices_of
from tests.report.predictions import machines
from tests.report.rendering import section_text

ENGINES = ("vllm", "sglang", "trtllm")
MODELS = ("llama-3.1-70b", "qwen3-8b", "qwen3-30b-a3b", "deepseek-v3")
FORMATS = ("bf16", "fp8", "fp8_block", "int4", "fp8_static")
N_DRAWS = 30

model_of, machines_of = cache(load_architecture), cache(machines)


def start_text(launch: Launch | None, width: int, *, of: str = "") -> str:
    return section_text(start_section((launch, of)), width)


def predicted(engine: str, model: str, *, drawn: random.Random) -> Prediction | None:
    """A deployment at random on four servers of eight H200; None where the engine has no such."""
    weights, cache_format = drawn.choice(FORMATS), drawn.choice(("bf16", "fp8"))
    table = deployments(
        formats=ServedFormats(weights=weights, experts=weights, cache=cache_format),
        n_tensor=drawn.choice((1, 2, 4, 8, 16)),
        n_data=drawn.choice((1, 2, 3, 8)),
        n_stages=drawn.choice((1, 1, 2, 3)),
        n_expert_parallel=drawn.choice((1, 1, 2, 4, 8, 16)),
        batch=drawn.choice((1, 8, 24)),
        chunk_tokens=drawn.choice((2048, 8192, 16384)),
        overlaps=drawn.random() < 0.2,
    )
    architecture = model_of(model)
    if not is_valid(architecture, table)[0] or table.n_devices[0] > 32:
        return None
    kind = drawn.choice((None, None, "eagle", "mtp"))
    if kind == "mtp" and architecture.predictors is None:
        kind = None
    drafts = Speculating(kind=kind, n_drafted=drawn.choice((1, 3)), acceptance=(0.8, 0.5))
    try:
        return predict(
            architecture,
            machines_of("h200-nvl8-x4", engine),
            table,
            Traffic(n_input_tokens=1500, n_output_tokens=300, hit_fraction=drawn.choice((0, 0.5))),
            speculating=drafts if kind else None,
        )
    except RequestError:
        return None


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_command_is_one_that_the_engine_reads(engine, model):
    drawn = random.Random(f"{engine} {model}")
    found = (predicted(engine, model, drawn=drawn) for _ in range(8 * N_DRAWS))
    checked = 0
    for one in filter(None, found):
        launch = one.launch
        assert launch is not None
        assert n_devices_of(engine, launch) == one.n_devices
        assert "\n" not in launch.command
        checked += 1
        if checked == N_DRAWS:
            break
    assert checked > 10


PLAIN = Started(
    version="1.0",
    model="org/model",
    published="bf16",
    has_experts=False,
    n_context_tokens=131_072,
    n_per_node=8,
    formats=ServedFormats(weights="bf16", experts="bf16", cache="bf16"),
    n_tensor=4,
    n_data=1,
    n_stages=1,
    n_expert_parallel=1,
    batch=32,
    chunk_tokens=4096,
    n_tokens=1800,
    reuses_prefixes=False,
    memory_fraction=0.9,
    exchanges=False,
    overlaps=False,
    drafter="",
    n_drafted=0,
)
MIXTURE = replace(PLAIN, has_experts=True, n_tensor=2, n_data=4, n_expert_parallel=8)
SINGLES = replace(MIXTURE, n_tensor=1, n_data=8)


def launched(engine: str, started: Started) -> Launch:
    found = launch_of(engine, started)
    assert found is not None
    return found


def flags(engine: str, started: Started) -> dict[str, str | bool]:
    return flags_of(engine, launched(engine, started))


def test_vllm_takes_batch_and_chunk_a_rank():
    found = flags("vllm", MIXTURE)
    assert found["--max-num-seqs"] == "32"
    assert found["--max-num-batched-tokens"] == "4096"
    assert found["--tensor-parallel-size"] == "2"
    assert found["--data-parallel-size"] == "4"
    assert found["--enable-expert-parallel"] is True
    assert found["--max-model-len"] == "1800"


def test_copies_of_experts_are_asked_for_and_balanced_over_all_nodes():
    wide = replace(SINGLES, n_data=32, n_expert_parallel=32, n_redundant_experts=32)
    found = flags("sglang", wide)
    assert found["--enable-eplb"] is True
    assert (found["--ep-num-redundant-experts"], found["--eplb-algorithm"]) == ("32", "deepseek")
    found = flags("vllm", wide)
    assert found["--enable-eplb"] is True
    assert json.loads(str(found["--eplb-config"])) == {"num_redundant_experts": 32}
    for engine in ENGINES:
        assert "eplb" not in launched(engine, SINGLES).command


def test_sglang_takes_batch_and_chunk_of_all_ranks_and_two_tokens_more():
    found = flags("sglang", MIXTURE)
    assert found["--max-running-requests"] == "128"
    assert found["--chunked-prefill-size"] == "16384"
    assert "--max-prefill-tokens" not in found
    assert found["--tp-size"] == "8"
    assert found["--attn-dp-size"] == "4"
    assert found["--ep-size"] == "8"
    assert found["--context-length"] == "1802"
    wide = flags("sglang", replace(MIXTURE, chunk_tokens=8192, n_context_tokens=1801))
    assert wide["--max-prefill-tokens"] == wide["--chunked-prefill-size"] == "32768"
    assert wide["--context-length"] == "1801"


def test_trtllm_takes_batch_and_chunk_a_rank():
    found = flags("trtllm", replace(MIXTURE, n_tensor=1, n_data=8))
    assert found["--max_batch_size"] == "32"
    assert found["--max_num_tokens"] == "4096"
    assert found["--tp_size"] == found["--ep_size"] == "8"
    assert found["--enable_attention_dp"] is True
    assert found["--max_seq_len"] == "1800"


def test_ranks_of_a_dense_model_are_servers_where_the_engine_has_no_flag_for_them():
    dense = replace(PLAIN, n_tensor=2, n_data=4)
    assert launched("vllm", dense).n_servers == 1
    for engine in ("sglang", "trtllm"):
        found = launched(engine, dense)
        assert found.n_servers == 4
        assert "4 such servers" in start_text(found, 80)
        assert n_devices_of(engine, found) == 8


@pytest.mark.parametrize("engine", ENGINES)
def test_another_format_than_the_published_one_is_made_or_has_to_be_given(engine):
    fp8 = replace(PLAIN, formats=ServedFormats(weights="fp8", experts="fp8", cache="fp8"))
    int4 = replace(PLAIN, formats=ServedFormats(weights="int4", experts="int4", cache="bf16"))
    assert launched(engine, PLAIN).variables == {}
    assert "CHECKPOINT" in launched(engine, int4).variables
    assert "int4" in launched(engine, int4).variables["CHECKPOINT"]
    made = engine != "trtllm"
    assert ("CHECKPOINT" in launched(engine, fp8).variables) is not made
    assert ("--quantization fp8" in launched(engine, fp8).command) is made
    published = replace(fp8, published="fp8_block")
    assert launched(engine, published).variables == {}
    assert "--quantization" not in launched(engine, published).command


@pytest.mark.parametrize("engine", ENGINES)
def test_several_nodes_are_joined(engine):
    wide = launched(engine, replace(PLAIN, n_tensor=8, n_stages=2))
    assert wide.n_nodes == 2
    assert "each of 2 nodes" in start_text(wide, 80)
    assert launched(engine, replace(PLAIN, n_tensor=4, n_stages=2)).n_nodes == 1
    ranks = launched(engine, replace(MIXTURE, n_tensor=1, n_data=16, n_expert_parallel=16))
    assert ranks.n_nodes == 2
    if engine == "vllm":
        found = flags(engine, replace(MIXTURE, n_data=8, n_expert_parallel=16))
        assert found["--data-parallel-size-local"] == "4"
        assert found["--data-parallel-start-rank"] == "4"  # times the number of the node


def test_equal_shares_of_nodes():
    spread = replace(PLAIN, n_tensor=2, n_stages=6)  # 12 devices on nodes of eight
    assert launched("sglang", spread).n_nodes == launched("vllm", spread).n_nodes == 2
    assert flags("trtllm", spread)["--gpus_per_node"] == "6"


def test_a_prefix_cache_is_asked_for_where_it_is_planned_with():
    assert "--enable-prefix-caching" in flags("vllm", replace(PLAIN, reuses_prefixes=True))
    assert "--enable-prefix-caching" not in flags("vllm", PLAIN)


def test_the_command_is_the_last_line_and_is_never_wrapped():
    text = start_text(launched("trtllm", replace(SINGLES, drafter="mtp", n_drafted=2)), 60)
    *above, last = text.splitlines()
    assert last.startswith('echo "{speculative_config: {decoding_type: MTP, max_draft_len: 2}}"')
    assert all(len(line) <= 60 for line in above)
    assert len(last) > 100


@pytest.mark.parametrize("role", [PREFILL, DECODE])
def test_what_is_handed_over_is_said_to_both_ends(role):
    here = replace(PLAIN, role=role)
    said = json.loads(flags("vllm", here)["--kv-transfer-config"])
    end = {PREFILL: "kv_producer", DECODE: "kv_consumer"}[role]
    assert said == {"kv_connector": "NixlConnector", "kv_role": end}
    found = flags("sglang", here)
    assert found["--disaggregation-mode"] == role
    assert found["--disaggregation-transfer-backend"] == "nixl"
    command = launched("trtllm", here).command
    flags("trtllm", here)  # keys of its file are held against what the engine reads
    assert "cache_transceiver_config: {backend: NIXL}" in command
    assert ("disable_overlap_scheduler: true" in command) == (role == PREFILL)
    for engine in ENGINES:
        assert "a router sends each request to both" in " ".join(launched(engine, here).remarks)
        plain = launched(engine, PLAIN)
        words = ("kv-transfer", "disaggregation", "transceiver", "router")
        assert not any(word in f"{plain.command} {plain.remarks}" for word in words)


def test_an_engine_of_a_users_file_has_no_command():
    assert launch_of("own", PLAIN) is None
    assert start_text(None, 80, of="the best is").startswith("the best is started as your engine")


def test_a_cache_that_a_lifted_rule_lets_in_is_asked_for_by_its_name():
    int8 = replace(PLAIN, formats=ServedFormats(weights="bf16", experts="bf16", cache="int8"))
    assert flags("vllm", int8)["--kv-cache-dtype"] == "int8"
