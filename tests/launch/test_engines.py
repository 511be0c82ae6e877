"""What engines themselves say: their parsers of commands, their configuration of what is forbidden.

Deselected by default: `pytest -m engines tests/launch`, with the packages of the engines in the
folder `$PLANNER_ENGINES`; docs/rules.md says how to get them there. No GPU is needed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from planner.report.launch.flags import manifests
from planner.report.launch.writing import seated
from planner.specs.files.engines import CUTS, load_rules
from tests.launch.answers import answered, requests
from tests.launch.shipped import flags_in_a_process
from tests.launch.test_emitted import N_GIVEN, plans

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

PARSERS = Path(__file__).with_name("parsers.py")
FILES = {"vllm": "vllm-0.33.0", "sglang": "sglang-0.5.23"}
EVERY = 15
"""Of the requests of `tests.launch.answers`."""

DRIVEN = {
    "vllm": {
        *("equal-heads", "groups-of-experts", "stages-of-state-models", "experts-over-all-or-none"),
        *("blocks-of-weights", "tensor-degrees-of-pairs", "caches", "drafters"),
        *("room-for-the-batch", "equal-shares-of-nodes"),
    },
    "sglang": {
        *("experts-over-all-that-exchange", "drafts-in-one-stage", "drafters", "caches"),
        *("chunks-of-pages", "equal-shares-of-nodes", "servers-on-nodes"),
    },
}
"""Rules that code of the engine refuses before it needs a device; of the others it is read."""

SAID = {
    "equal-heads": ("must be divisible by tensor parallel", "num_heads = divide("),
    "equal-kv-heads": ("divide(self.total_num_kv_heads, tp_size)", "self.total_num_kv_heads"),
    "equal-ffn": ("divide(output_size, self.tp_size)", "divide(self.output_size, tp_size)"),
    "equal-expert-groups": (
        *("_num_global_routed % storage_ep_size == 0", "global_num_experts % ep_size != 0"),
    ),
    "copies-between-groups": ("if not self.enable_expert_parallel:", "if cfg.enable_eplb"),
    "formats-with-copies": ("def supports_eplb(self) -> bool:", "quant_method.supports_eplb"),
    "groups-of-deepep": ("Buffer.get_dispatch_config(group.size())",),
    "equal-experts": ("intermediate_size % tp_size", "intermediate_size % self.moe_tp_size"),
    "groups-of-experts": ("enable_expert_parallel",),
    "families": ('"LlamaForCausalLM"',),
    "equal-vocabulary": (
        *("DEFAULT_VOCAB_PADDING_SIZE = 64", "num_embeddings_per_partition = divide("),
        "enable_dp_lm_head",
    ),
    "experts-over-all-or-none": ("ep_size = tp_size",),
    "experts-over-all-that-exchange": ('return {"ep_size": view.tp_size}',),
    "formats-that-exchange": ("deprecate_flag = True", "raise NotImplementedError("),
    "formats-of-experts": ("moe_runner_backend = MoeRunnerBackend.TRITON",),
    "blocks-of-weights": ("is not divisible by",),
    "blocks-of-experts": ("refine < 32", "validate_fp8_block_shape_moe(", "is not divisible by"),
    "stages-of-state-models": ("is not supported for this model", "class Mamba2ForCausalLM("),
    "families-in-stages": ("Pipeline Parallel is not compatible with this model",),
    "decode-in-one-stage": ('kv_role == "kv_consumer"',),
    "prefill-in-one-stage": ("use NixlPushConnector",),
    "drafts-in-one-stage": ("is only supported on prefill nodes",),
    "stages-of-pairs": ("self.pp_size == info.pp_size or self.pp_size == 1",),
    "tensor-degrees-of-pairs": ("remote_tp_size % self.tp_size == 0", "info.attn_tp_size //"),
    "caches": ("CacheDType = Literal[", "get_platform().is_sm100"),
    "drafters": ('"eagle"', "Unsupported speculative method", "EAGLE = auto()"),
    "room-for-the-batch": ("max_num_batched_tokens < self.max_num_seqs",),
    "chunks-of-pages": ("chunked_prefill_size % cfg.page_size == 0", "page_size = 64"),
    "equal-shares-of-nodes": (
        *("world_size % self.nnodes != 0", "nnodes % data_parallel_node_size != 0"),
        "tp_size must be divisible by number of nodes",
    ),
    "servers-on-nodes": ("multi-node data-parallel replicas are not supported",),
}
"""Words of the lines that a rule quotes as its source, some of which stand in each of them."""

NEAR = 3
"""Lines around those that are quoted, in which the words may stand."""


def folder() -> Path:
    found = os.environ.get("PLANNER_ENGINES", "")
    if not found:
        pytest.fail("`PLANNER_ENGINES` names no folder of engines: see docs/rules.md")
    return Path(found)


def parsed(engine: str, *options: str, lines: str = "") -> list[dict[str, str]]:
    """What an engine says, in a process of its own."""
    command = [sys.executable, "-W", "ignore", str(PARSERS), engine, str(folder()), *options]
    run = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


@cache
def commands() -> str:
    """Commands that start what some of the 300 requests are answered with."""
    found = []
    for words in requests()[::EVERY]:
        for one in answered(words)[1]:
            found.append({"engine": one["engine"], "command": one["launch"]["command"]})
    return "\n".join(map(json.dumps, found))


@pytest.mark.parametrize("engine", FILES)
def test_an_engine_reads_every_command_that_starts_it(engine):
    said = parsed(engine, lines=commands())
    assert len(said) > 5
    assert [one for one in said if one["said"] != "accepted"] == []


@pytest.mark.parametrize("engine", FILES)
def test_an_engine_reads_every_command_of_launch_files(engine):
    """With what files add to the plan's own: where it listens, and where nodes and roles meet."""
    lines = [
        json.dumps({"engine": pool.engine, "command": re.sub(r"\$(CHECKPOINT|DRAFTER)", "m", line)})
        for plan in plans(N_GIVEN)
        for servers in seated(plan, is_local=False).values()
        for server in servers
        for pool, line in [(server["pool"], server["line"])]
    ]
    said = parsed(engine, lines="\n".join(dict.fromkeys(lines)))
    assert len(said) > 20
    assert [one for one in said if one["said"] != "accepted"] == []


@pytest.mark.parametrize("program", ["vllm", "sglang", "vllm-bench", "sglang-router"])
def test_flags_that_ship_are_those_of_the_program(program):
    assert flags_in_a_process(program, folder()) == manifests()[program]["flags"]


@pytest.mark.parametrize("engine", FILES)
def test_an_engine_refuses_a_flag_that_it_does_not_have(engine):
    """So that what it accepts means something."""
    first = next(one for one in commands().splitlines() if json.loads(one)["engine"] == engine)
    broken = first.replace(" --max-", " --most-")
    assert broken != first
    (said,) = parsed(engine, lines=broken)
    assert "unrecognized arguments" in said["said"]


@pytest.mark.parametrize("engine", FILES)
def test_an_engine_refuses_what_its_rules_forbid_and_nothing_besides(engine):
    said = {one["rule"]: one for one in parsed(engine, "--rules")}
    assert said.keys() == DRIVEN[engine]
    known = {rule.name for name in (CUTS, FILES[engine]) for rule in load_rules(name).rules}
    assert said.keys() <= known
    assert [name for name, one in said.items() if not one["forbidden"]] == []
    assert {name: one["free"] for name, one in said.items() if one["free"]} == {}


QUOTED = [
    pytest.param(rule, quotes, id=f"{name} {rule.name}")
    for name in (CUTS, *FILES.values())
    for rule in load_rules(name).rules
    if (quotes := re.findall(r"((?:vllm|sglang)/[\w/]+\.py):([\d, -]*\d)", rule.source))
]


@pytest.mark.parametrize(("rule", "quotes"), QUOTED)
def test_the_lines_that_a_rule_quotes_say_so(rule, quotes):
    for path, numbers in quotes:
        lines = (folder() / path).read_text(encoding="utf-8").splitlines()
        for part in numbers.split(", "):
            first, _, last = part.partition("-")
            near = lines[max(0, int(first) - 1 - NEAR) : int(last or first) + NEAR]
            text = " ".join(" ".join(near).split())
            assert any(words in text for words in SAID[rule.name]), (path, part)


def test_every_rule_of_an_engine_quotes_its_lines_but_for_few():
    """Those of DeepEP, whose requirements are in its README, and classes that are not there."""
    names = {*(it.id for it in QUOTED)}
    every = {f"{name} {rule.name}" for name in FILES.values() for rule in load_rules(name).rules}
    assert {name.partition(" ")[2] for name in every - names} == {
        *("exchanges-by-deepep", "families-that-exchange", "families", "families-with-copies"),
    }
