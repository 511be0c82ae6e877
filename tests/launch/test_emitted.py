"""Launch files of plans: what starts them, by closed schemas and by the programs' own flags.

A dozen plans are written for every target in each run; `pytest -m research tests/launch` writes
sixty, of ten models, six pools and three engines. Whatever a file says wrong is planted, and seen.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
import random
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from planner.commands.cli import main
from planner.commands.emitting import receipt_of
from planner.errors import RequestError
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.rules import is_valid
from planner.estimates.serving.traffic import Traffic
from planner.placing.planning import place
from planner.report.launch.checking import problems_of, schema_of
from planner.report.launch.expected import Bands, room_of
from planner.report.launch.flags import commands_of, manifests, tables
from planner.report.launch.reading import documents_of
from planner.report.launch.servers import Entrance, entrances_of
from planner.report.launch.writing import obstacles, refusals, written
from planner.results.placements import Placement
from planner.results.predictions import Prediction
from planner.runtimes.predicting import predict
from planner.specs.ask.placement import Serve
from planner.specs.ask.targets import Targets
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_architecture
from planner.specs.records.devices import Workload
from planner.specs.records.runtimes import ENGINES, TARGETS
from planner.specs.records.served_formats import ServedFormats
from tests.report.predictions import machines

MODELS = (
    *("llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "qwen3-8b", "qwen3-32b", "qwen3-30b-a3b"),
    *("deepseek-v3", "gpt-oss-120b", "mixtral-8x7b", "mistral-large-2"),
)
POOLS = (
    *("h100-nvl8-x2", "h200-nvl8-x4", "b200-nvl8-x2", "a100-nvl8-x2", "l40s-x4", "h100-nvl8-x1"),
)
N_GIVEN, N_PLACED = 48, 12
SITE = "h100-fat-tree-x8"

model_of, machines_of = cache(load_architecture), cache(machines)
Plans = tuple[Entrance, ...]
STARTING = tuple(it for it in TARGETS if tables()["targets"][it]["engines"])
"""Targets that start servers of engines."""


def given(model: str, engine: str, pool: str, drawn: random.Random) -> Prediction | None:
    """A deployment at random; None where the engine has no such, or it does not fit."""
    architecture = model_of(model)
    weights = drawn.choice((next(iter(architecture.published_weights), "bf16"), "fp8"))
    table = deployments(
        formats=ServedFormats(
            weights=weights, experts=weights, cache=drawn.choice(("bf16", "fp8"))
        ),
        n_tensor=drawn.choice((1, 2, 4, 8)),
        n_data=drawn.choice((1, 1, 2, 8)),
        n_stages=drawn.choice((1, 1, 2)),
        n_expert_parallel=drawn.choice((1, 1, 2, 8)),
        batch=drawn.choice((1, 8, 24)),
        chunk_tokens=2048,
    )
    if not is_valid(architecture, table)[0]:
        return None
    traffic = Traffic(n_input_tokens=1500, n_output_tokens=300)
    try:
        return predict(architecture, machines_of(pool, engine), table, traffic)
    except RequestError:
        return None


@cache
def predictions(n: int) -> tuple[Prediction, ...]:
    """So many deployments, of models, engines and pools at random."""
    drawn = random.Random(7)
    cells = zip(itertools.product(MODELS, ENGINES), itertools.cycle(POOLS), strict=False)
    chosen = random.Random(3).sample(list(cells) * 2, n)
    tries = ((given(*cell, pool, drawn) for _ in range(60)) for cell, pool in chosen)
    return tuple(next(filter(None, each)) for each in tries)


@cache
def placement(
    engine: str, roles: str, model: str = "llama-3.1-70b", rate: float = 4.0
) -> Placement:
    return place(
        load_site(SITE),
        [Serve(model=model_of(model), demand_tokens_per_s=rate * 500.0)],
        engine=(engine,),
        workload=Workload(n_input_tokens=2000, n_output_tokens=500),
        targets=Targets(tpot_s=0.08, ttft_s=4.0),
        roles=roles,
    )


def placed(engine: str, roles: str, model: str = "llama-3.1-70b", rate: float = 4.0) -> Plans:
    return entrances_of(placement(engine, roles, model, rate))


def plans(n: int) -> list[Plans]:
    """Of every third predictions, placements beside them."""
    n_placed = N_PLACED if n > N_GIVEN // 2 else 3
    names = ("llama-3.1-70b", "qwen3-32b")
    rows = list(itertools.product(ENGINES, ("apart", "together"), names))[:: 12 // n_placed]
    return [*map(entrances_of, predictions(n)), *(placed(*row) for row in rows)]


def rooms_of(plan: Plans, n: int) -> dict[str, Any]:
    """Blocks of pools that predictions are of; of placements those that the command finds."""
    return {
        entrances_of(it)[0].pools[0].name: room_of(it)
        for it in predictions(n)
        if entrances_of(it) == plan
    }


def readers(command: str, file: str) -> list[str]:
    return [command.replace("plan predict", "plan audit") + f" --measured {file}"]


def problems(plan: Plans, target: str, texts: dict[str, str], rooms: Any = None) -> list[str]:
    return list(problems_of(texts, plan, target, rooms or {}))


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """A closed schema as `jsonschema` has it."""
    made = {key: it for key, it in schema.items() if key not in ("properties", "values", "items")}
    if "properties" in schema or "values" in schema:
        made["properties"] = {k: strict(it) for k, it in schema.get("properties", {}).items()}
        made["additionalProperties"] = strict(schema["values"]) if "values" in schema else False
    if "items" in schema:
        made["items"] = strict(schema["items"])
    return made


def filled(node: Any) -> Any:
    """Placeholders of numbers filled in."""
    if isinstance(node, dict):
        return {key: 1 if it == "<CPUS>" else filled(it) for key, it in node.items()}
    return [filled(it) for it in node] if isinstance(node, list) else node


def hold(plan: Plans, target: str, rooms: Any) -> int:
    """Write a plan for a target, and have everything read it; files written."""
    if list(obstacles(plan, target)):
        (problem,) = refusals(plan, target, "out")
        assert problem.value == target
        assert "`" in problem.remedy
        return 0
    texts = written(plan, target, readers=readers)
    assert problems(plan, target, texts, rooms) == []
    n_planned = sum(pool.n_devices for it in plan for pool in it.pools)
    known = {pool.name: rooms.get(pool.name) for it in plan for pool in it.pools}
    receipt = receipt_of(texts, plan, target, known)
    assert receipt["gpus"] == {"files": n_planned, "plan": n_planned}
    for name, text in texts.items():
        if name.endswith(".yaml"):
            for kind, document in documents_of(text, target):
                jsonschema.validate(filled(document), strict(dict(schema_of(kind)["schema"])))
        else:
            assert (
                subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
            )
    return len(texts)


def test_targets_are_those_of_the_table():
    assert tuple(tables()["targets"]) == TARGETS
    assert tuple(tables()["engines"]) == ENGINES
    for row in tables()["targets"].values():
        assert {*row["spans"], *row["apart"]} <= {*row["engines"]} <= {*ENGINES}


def test_a_dozen_plans_are_started_by_every_target_that_can():
    counts = dict.fromkeys(STARTING, 0)
    for plan in plans(9):
        assert plan
        for target in STARTING:
            counts[target] += hold(plan, target, rooms_of(plan, 9)) > 0
    assert min(counts.values()) >= 1, counts
    assert counts["shell"] == 12


@pytest.mark.research
def test_sixty_plans_are_started_by_every_target_that_can():
    counts = dict.fromkeys(STARTING, 0)
    made = plans(N_GIVEN)
    assert len(made) == N_GIVEN + N_PLACED
    for plan in made:
        for target in STARTING:
            counts[target] += hold(plan, target, rooms_of(plan, N_GIVEN)) > 0
    assert counts["shell"] == counts["dynamo"] == len(made)
    assert min(counts.values()) >= 8, counts


PLANTED = {
    "a flag that the engine has not": (
        *("--max-num-seqs", "--max-num-sequences", "has no `--max-num-sequences`"),
    ),
    "a flag that the plan has not": (
        *("--host", "--enforce-eager --host", "`--enforce-eager` is not of the plan"),
    ),
    "another value": ("bfloat16", "bfloat17", "is bfloat17, the plan has bfloat16"),
    "another batch": ("--max-num-seqs 24", "--max-num-seqs 48", "is 48, the plan has 24"),
    "a batch beyond the cache": (
        *("--max-num-seqs 24", "--max-num-seqs 9999", "9999 sequences of a rank, and caches of"),
    ),
    "fewer GPUs": ('gpu: "4"', 'gpu: "2"', "2 GPUs on 1 nodes for a server whose flags take 4"),
    "more replicas": ("replicas: 1", "replicas: 2", "8 GPUs in the files, 4 in the plan"),
    "a key that there is not": ("containerPort:", "containerPorts:", "no key `containerPorts`"),
    "a key deep in a container": ("httpGet: {path:", "httpGet: {paths:", "no key `paths`"),
    "a kind that there is not": (
        *("kind: Deployment", "kind: Deploiment", "nobody knows the kind `Deploiment`"),
    ),
    "a version of it": ("apps/v1", "apps/v2", "it is one of apps/v1"),
    "words for a number": ("replicas: 1", "replicas: one", "`one` is no integer"),
    "no YAML": ("metadata:", "metadata", "cannot be read"),
    "a program that nobody knows": ("vllm serve", "vlm serve", "nobody reads `vlm serve"),
}


@cache
def example() -> tuple[Plans, dict[str, Any]]:
    table = deployments(
        formats=ServedFormats(weights="bf16", experts="bf16", cache="bf16"),
        n_tensor=4,
        batch=24,
        chunk_tokens=2048,
    )
    traffic = Traffic(n_input_tokens=1500, n_output_tokens=300)
    answer = predict(model_of("llama-3.1-70b"), machines_of("h100-nvl8-x1", "vllm"), table, traffic)
    plan = entrances_of(answer)
    return plan, {plan[0].pools[0].name: room_of(answer)}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_in_a_manifest_is_seen(name):
    plan, rooms = example()
    texts = written(plan, "k8s", readers=readers)
    (file,) = (it for it in texts if it.endswith(".yaml"))
    assert problems(plan, "k8s", texts, rooms) == []
    before, after, words = PLANTED[name]
    broken = texts | {file: texts[file].replace(before, after)}
    assert broken != texts
    assert any(words in it for it in problems(plan, "k8s", broken, rooms))


SCRIPTED = {
    "start.sh": {
        "a flag": (" --max-model-len ", " --max-model-length ", "has no `--max-model-length`"),
        "devices": ("VISIBLE_DEVICES=0,1,2,3", "VISIBLE_DEVICES=0,1", "2 GPUs on 1 nodes"),
        "no shell": ("  ) &", "  ", "syntax error"),
    },
    "loadtest.sh": {
        "a flag": ("--request-rate", "--requests-rate", "has no `--requests-rate`"),
        "a backend": ("--dataset-name random", "--dataset-name chance", "it is one of"),
    },
}


@pytest.mark.parametrize(("file", "name"), [(f, n) for f, each in SCRIPTED.items() for n in each])
def test_what_is_planted_in_a_script_is_seen(file, name):
    plan, rooms = example()
    bands = Bands(lengths=(9, 9), requests_per_s=2.0, figures=(), basis="")
    if file == "loadtest.sh":
        plan = (replace(plan[0], bands=bands),)
    texts = written(plan, "shell", readers=readers)
    before, after, words = SCRIPTED[file][name]
    broken = texts | {file: texts[file].replace(before, after)}
    assert broken != texts
    assert any(words in it for it in problems(plan, "shell", broken, rooms))


def test_a_value_that_an_engine_does_not_list_is_seen():
    line = "python -m sglang.launch_server --model-path m --kv-cache-dtype "
    assert commands_of(f"{line} bfloat16")[0].problems == ()
    assert "it is one of" in " ".join(commands_of(f"{line} fp9")[0].problems)
    line = 'echo "{moe_config: {backend: %s}}" > trtllm.yaml && trtllm-serve m --config trtllm.yaml'
    assert commands_of(line % "CUTLASS")[0].problems == ()
    assert "it is one of" in " ".join(commands_of(line % "CUTLAS")[0].problems)


def test_values_of_charts_and_of_ray_are_read_back():
    plan, rooms = example()
    for target, before, after, words in (
        ("production-stack", "maxNumSeqs: 24", "maxNumSeqs: 25", "is 25, the plan has 24"),
        ("production-stack", "requestGPU: 4", "requestGPU: 8", "8 GPUs on 1 nodes"),
        ("ray", "max_num_seqs: 24", "max_num_seqs: 25", "is 25, the plan has 24"),
        ("ray", "num_replicas: 1", "num_replicas: 3", "12 GPUs in the files"),
        ("llm-d", "replicas: 1", "replicas: 3", "12 GPUs in the files"),
        ("llm-d", "create: true", "created: true", "no key `created`"),
        ("dynamo", '"24"', '"25"', "is 25, the plan has 24"),
        ("compose", '"0", "1", "2", "3"', '"0", "1"', "2 GPUs in the files"),
    ):
        texts = written(plan, target, readers=readers)
        broken = {name: text.replace(before, after) for name, text in texts.items()}
        assert broken != texts, target
        assert any(words in it for it in problems(plan, target, broken, rooms)), target


def test_servers_of_several_nodes_are_counted_pod_by_pod():
    """Two nodes of eight: a leader and a worker in Kubernetes, two processes in a shell."""
    table = deployments(
        formats=ServedFormats(weights="bf16", experts="bf16", cache="bf16"),
        n_tensor=8, n_stages=2, batch=8, chunk_tokens=2048,
    )  # fmt: skip
    traffic = Traffic(n_input_tokens=1500, n_output_tokens=300)
    machine = machines_of("h100-nvl8-x2", "sglang")
    plan = entrances_of(predict(model_of("llama-3.1-405b"), machine, table, traffic))
    text = written(plan, "k8s", readers=readers)["llama-3-1-405b.yaml"]
    workers = next(iter(yaml.safe_load_all(text)))
    template = workers["spec"]["leaderWorkerTemplate"]
    assert workers["kind"] == "LeaderWorkerSet"
    assert template["size"] == 2
    assert "readinessProbe" in template["leaderTemplate"]["spec"]["containers"][0]
    assert "readinessProbe" not in template["workerTemplate"]["spec"]["containers"][0]
    assert "--node-rank $LWS_WORKER_INDEX --dist-init-addr $LWS_LEADER_ADDRESS:5000" in text
    script = written(plan, "shell", readers=readers)["start.sh"]
    assert script.count("export NODE_RANK=") == 2
    assert 'NODE_RANK=1 HEAD="${ADDRESS[node-0]}"' in script


def test_servers_of_one_node_have_ports_of_their_own():
    (entrance,) = placed("sglang", "apart")
    texts = written((entrance,), "shell", readers=readers)
    lines = [line for line in texts["start.sh"].splitlines() if "launch_server" in line]
    node = None
    seen: set[tuple[str, str]] = set()
    for line in texts["start.sh"].splitlines():
        if line.endswith(")") and line.startswith("node"):
            node = line
        if "launch_server" in line:
            words = shlex.split(line)
            for flag in ("--port", "--disaggregation-bootstrap-port"):
                if flag in words:
                    place_of = (str(node), flag + words[words.index(flag) + 1])
                    assert place_of not in seen
                    seen.add(place_of)
    assert len(lines) == sum(len(pool.seats) for pool in entrance.pools)
    router = texts["router.sh"]
    for pool in entrance.pools:
        assert router.count(f"--{pool.role} ") == len(pool.seats)


STUB = """#!/usr/bin/env bash
printf '%s|%s|%s|%s\\n' "$CUDA_VISIBLE_DEVICES" "${NODE_RANK:-}" "${HEAD:-}" "$*" >> "$STARTED"
"""


def processes(plan: Plans, script: str, node: str, folder: Path) -> list[list[str]]:
    """What a script really starts: devices, rank, address of the head, and words, of each."""
    for name, text in written(plan, "shell", readers=readers).items():
        (folder / name).write_text(text.replace("<ADDRESS_OF_NODE_0>", "10.0.0.1"))
    for name in ("vllm", "python", "trtllm-serve", "vllm-router", "nginx"):
        (folder / name).write_text(STUB)
        (folder / name).chmod(0o755)
    log = folder / f"{script}-{node}.log"
    log.touch()
    names = {"PATH": f"{folder}:/usr/bin:/bin", "STARTED": str(log), "CUDA_VISIBLE_DEVICES": ""}
    text = (folder / "env.sh").read_text()
    (folder / "env.sh").write_text(re.sub(r"<\w+>", "10.0.0.2", text))
    command = ["bash", str(folder / script), node]
    subprocess.run(command, env=names, check=True, capture_output=True, timeout=60)
    return [line.split("|") for line in log.read_text().splitlines()]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_node_really_starts_its_servers_on_devices_of_their_own(engine, tmp_path):
    (entrance,) = placed(engine, "apart")
    seen = 0
    for node in {node for pool in entrance.pools for node in pool.nodes}:
        devices = []
        for taken, rank, _, words in processes((entrance,), "start.sh", node, tmp_path):
            line = {"vllm": "vllm", "sglang": "python"}[engine] + f" {words}"
            assert commands_of(line)[0].problems == ()
            assert rank == ""
            devices += taken.split(",")
        assert len(devices) == len(set(devices))
        seen += len(devices)
    assert seen == sum(pool.n_devices for pool in entrance.pools)
    ((_, _, _, words),) = processes((entrance,), "router.sh", entrance.name, tmp_path)
    assert words.count("http://10.0.0.2") == sum(len(pool.seats) for pool in entrance.pools)


def test_ranks_of_a_server_of_two_nodes_meet_at_the_first(tmp_path):
    table = deployments(
        formats=ServedFormats(weights="bf16", experts="bf16", cache="bf16"),
        n_tensor=8,
        n_stages=2,
        batch=8,
        chunk_tokens=2048,
    )
    traffic = Traffic(n_input_tokens=1500, n_output_tokens=300)
    machine = machines_of("h100-nvl8-x2", "vllm")
    plan = entrances_of(predict(model_of("llama-3.1-405b"), machine, table, traffic))
    for number in (0, 1):
        ((devices, rank, head, words),) = processes(plan, "start.sh", f"node-{number}", tmp_path)
        assert (devices, rank, head) == ("0,1,2,3,4,5,6,7", str(number), "10.0.0.1")
        assert f"--nnodes 2 --node-rank {number} --master-addr 10.0.0.1" in words
        assert ("--headless" in words) == bool(number)


def run(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(shlex.split(words))
    out = capsys.readouterr()
    return code, " ".join(f"{out.out} {out.err}".split())


def answered(words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(shlex.split(words)) == 0
    return dict(json.loads(capsys.readouterr().out))


GIVEN = "predict --engine vllm --model llama-3.1-70b --topology h100-nvl8-x2"
REFUSED = {
    "an unknown target": (f"{GIVEN} --tp 8 --emit k9s {{out}}", "did you mean `k8s`?"),
    "no folder": (f"{GIVEN} --tp 8 --emit k8s", "names no folder: write `--emit k8s out`"),
    "a folder with files": (f"{GIVEN} --tp 8 --emit k8s {{full}}", "has files already"),
    "a file": (f"{GIVEN} --tp 8 --emit k8s {{full}}/a", "is no folder"),
    "no engine": (
        "predict --engine roofline --model llama-3.1-70b --topology h100-nvl8-x1 --emit k8s {out}",
        "no command of one starts this answer: name an engine: `--engine vllm`",
    ),
    "several nodes for compose": (
        f"{GIVEN} --tp 8 --pp 2 --emit compose {{out}}",
        "Compose starts containers of one node: write `--emit shell {out}` or `--emit k8s {out}`",
    ),
    "another engine": (
        f"{GIVEN} --engine sglang --tp 8 --emit llm-d {{out}}".replace("--engine vllm ", ""),
        "llama-3-1-70b runs SGLang",
    ),
    "one phase alone": (
        f"{GIVEN} --tp 8 --role decode --emit k8s {{out}}",
        "has servers of one phase alone: write `plan --roles apart`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_refused_with_what_can(name, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    names = {"out": str(tmp_path / "out"), "full": str(tmp_path / "full")}
    words, fact = REFUSED[name]
    code, said = run(words.format(**names), capsys)
    assert code == 2
    assert fact.format(**names) in said
    assert not (tmp_path / "out").exists()


def test_the_command_writes_files_their_load_test_and_a_receipt(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "out"
    words = f"{GIVEN} --tp 4 --batch 8 --input 1500 --output 300 --emit k8s {folder}"
    code, said = run(words, capsys)
    assert code == 0
    files = {"llama-3-1-70b.yaml", "loadtest.sh", "receipt.md", "receipt.json"}
    assert {it.name for it in folder.iterdir()} == files
    receipt = json.loads((folder / "receipt.json").read_text())
    assert receipt["gpus"] == {"files": 4, "plan": 4}
    assert receipt["placeholders"].keys() == {"<HF_TOKEN_SECRET>"}
    assert receipt["pools"][0]["blocks"]["mean_blocks"] <= receipt["pools"][0]["blocks"]["n_blocks"]
    assert "1 server on 4 GPUs, as planned" in said
    test = (folder / "loadtest.sh").read_text()
    assert "--max-concurrency 8" in test
    result = {"max_concurrency": 8, "num_prompts": 80, "completed": 80, "duration": 500.0}
    result |= {"total_input_tokens": 80 * 1500, "total_output_tokens": 80 * 300}
    result |= {"mean_ttft_ms": 170.0, "mean_tpot_ms": 21.0, "backend": "openai", "model_id": "m"}
    (tmp_path / "loadtest-llama-3-1-70b.json").write_text(json.dumps(result))
    monkeypatch.chdir(tmp_path)
    lines = [json.loads(it[6:-1]) for it in test.splitlines() if it.startswith('print("then')]
    assert [line.split()[2] for line in lines] == ["audit", "calibrate"]
    for line in lines:
        assert main(shlex.split(line)[2:]) == 0, capsys.readouterr().err


def test_a_load_test_of_replicas_finds_what_is_predicted_and_is_read_as_one_of_them(
    tmp_path, capsys, monkeypatch
):
    """The plan has a margin, which servers that are as predicted do not have."""
    sent = "--input 1500 --output 300"
    wanted = f"{GIVEN} {sent} --latency-target 40ms --ttft-target 1s --rate 8req/s"
    assert run(f"{wanted} --emit shell {tmp_path / 'out'}".replace("predict ", ""), capsys)[0] == 0
    test = (tmp_path / "out" / "loadtest.sh").read_text()
    (said,) = re.findall(r"^bands = (.*?^})", test, flags=re.DOTALL | re.MULTILINE)
    (batch,) = re.findall(r"--max-num-seqs (\d+)", (tmp_path / "out" / "start.sh").read_text())[:1]
    line = f"{GIVEN} {sent} --tp 4 --batch {batch} --chunk 512 --rate {8 / 3}req/s --json"
    predicted = answered(line, capsys)["answer"]["load"]["percentiles"]
    for one in (it for it in predicted if it["quantity"] == "tpot"):  # queues differ of one
        low, high = ast.literal_eval(said)[f"p{100 * one['share']:g}_{one['quantity']}_ms"]
        assert math.sqrt(low * high) == pytest.approx(1000 * one["simulated_s"], rel=0.1)
    result = {"num_prompts": 2400, "completed": 2400, "request_rate": 8.0}
    result |= {"request_throughput": 8.0, "mean_ttft_ms": 214.0, "mean_tpot_ms": 22.0}
    result |= {"total_input_tokens": 2400 * 1500, "total_output_tokens": 2400 * 300}
    (tmp_path / "loadtest-llama-3-1-70b.json").write_text(json.dumps(result))
    monkeypatch.chdir(tmp_path)
    audit = next(it for it in test.splitlines() if "then: plan audit" in it)[13:-2]
    found = answered(f"{audit[5:]} --json", capsys)["answer"]
    each = 8.0 / 3 * (0.214 + 299 * 0.022)
    assert found["predicted"]["batch"] == round(each)
    assert found["predicted"]["tpot_s"]["value"] == pytest.approx(0.022, rel=0.05)


ANSWERED = {
    "a plan": (
        "--model qwen3-30b-a3b --topology h100-nvl8-x2 --engine sglang --input 1500 --output 300 "
        "--rate 4req/s --ttft-target 3s --latency-target 60ms --emit dynamo",
        "--request-rate 4 ",
    ),
    "a plan of replicas apart": (
        "--model llama-3.1-70b --topology h100-nvl8-x2 --engine vllm --input 1500 --output 300 "
        "--rate 4req/s --ttft-target 3s --latency-target 60ms --roles apart --emit llm-d",
        "--request-rate 4 ",
    ),
    "a fleet": (
        "fleet --model llama-3.1-8b --topology h100-nvl8-x2 --engine vllm --input 1500 "
        "--output 300 --rate 4req/s --ttft-p95 3s --tpot-p95 60ms --emit shell",
        "--metric-percentiles 95,50,99 ",
    ),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_what_is_planned_is_written_with_its_load_test(name, tmp_path, capsys):
    words, says = ANSWERED[name]
    code, said = run(f"{words} {tmp_path / 'out'} --json", capsys)
    assert code == 0
    assert "as planned" not in said, "what programs read has no more than the answer"
    receipt = json.loads((tmp_path / "out" / "receipt.json").read_text())
    assert receipt["gpus"]["files"] == receipt["gpus"]["plan"] > 0
    assert all(pool["blocks"] for pool in receipt["pools"])
    assert says in (tmp_path / "out" / "loadtest.sh").read_text()


def test_a_name_with_spaces_is_one_word(tmp_path, capsys, monkeypatch):
    (tmp_path / "a b").mkdir()
    config = Path(__file__).parents[2] / "examples" / "config.json"
    (tmp_path / "a b" / "config.json").write_text(config.read_text())
    monkeypatch.chdir(tmp_path)
    words = "predict --engine vllm --topology h100-nvl8-x1 --batch 8 --model 'a b/config.json'"
    assert run(f"{words} --emit shell out", capsys)[0] == 0
    assert "--served-model-name 'a b'" in Path("out/start.sh").read_text()
    assert "--model 'a b' --tokenizer 'a b'" in Path("out/loadtest.sh").read_text()


def test_devices_are_those_of_the_answer_not_of_the_servers_that_are_made_of_it(
    tmp_path, capsys, monkeypatch
):
    def halved(answer):
        (entrance,) = entrances_of(answer)
        (pool,) = entrance.pools
        return (replace(entrance, pools=(replace(pool, seats=pool.seats[:1]),)),)

    monkeypatch.setattr("planner.commands.emitting.tested_entrances", halved)
    sent = "--input 1500 --output 300 --latency-target 40ms --demand 2400tok/s"
    words = f"{GIVEN} {sent} --emit shell {tmp_path}/out"
    code, said = run(words.replace("predict ", "", 1), capsys)
    assert code == 4
    assert re.search(r"\d+ GPUs of servers, \d+ of the answer", said)


UNEVEN = {
    "vllm": " --decode-policy power_of_two",
    "sglang": " --decode-policy power_of_two",
    "trtllm": "router: {type: load_balancing}",
}


def told(plan: Plans, target: str) -> tuple[str, str]:
    """What files say, and what their receipt says of shares of requests."""
    texts = written(plan, target, readers=readers)
    assert problems(plan, target, texts) == []
    rooms = dict.fromkeys(pool.name for it in plan for pool in it.pools)
    unchecked = receipt_of(texts, plan, target, rooms)["unchecked"]
    return "".join(texts.values()), "".join(it for it in unchecked if "no router" in it)


@pytest.mark.parametrize("engine", UNEVEN)
def test_servers_that_are_to_get_other_rates_have_a_router_that_looks_at_loads(engine):
    (plan,), answer = placed(engine, "apart"), placement(engine, "apart")
    rate = sum(it.rate for it in plan.of_role("decode"))
    assert rate == pytest.approx(sum(it.requests_per_s for it in answer.handovers))
    reads, writes = plan.of_role("prefill")[0], plan.of_role("decode")[0]
    for more, words in ((1.0, ""), (3.0, f"{75.0 / len(writes.seats):.3g} % to each of fast")):
        rates = {"slow": 1.0, "fast": more}.items()
        two = [replace(writes, name=name, rate=rate) for name, rate in rates]
        text, says = told((replace(plan, pools=(reads, *two)),), "shell")
        assert (UNEVEN[engine] in text, bool(says)) == (bool(words), bool(words))
        assert words in says


def test_sorts_of_one_model_say_which_requests_are_theirs():
    answer = placement("vllm", "together", rate=12.0)
    (recipe,), (first, *others) = answer.recipes, answer.replicas
    each = recipe.deployment.output_tokens_per_s
    twice = replace(recipe, deployment=replace(recipe.deployment, output_tokens_per_s=2.0 * each))
    second = [replace(it, recipe=1) for it in others]
    assert second
    plan = entrances_of(replace(answer, recipes=(recipe, twice), replicas=(first, *second)))
    assert [it.requests.partition(",")[0] for it in plan] == [
        f"up to {it:.3g} token/s" for it in (each, 2 * len(second) * each)
    ]
    assert not told(plan, "shell")[1]  # an address each
    assert "sends all as many" in told(plan, "production-stack")[1]  # one router for both


def test_models_that_need_a_checkpoint_have_marks_of_their_own(tmp_path, capsys):
    words = "place --model llama-3.1-8b --model qwen3-32b --topology h100-nvl8-x2 --engine vllm "
    words += "--weights int4 --input 1500 --output 300 --demand llama-3.1-8b=500tok/s "
    words += f"--demand qwen3-32b=500tok/s --emit shell {tmp_path / 'out'} --json"
    assert run(words, capsys)[0] == 0
    receipt = json.loads((tmp_path / "out" / "receipt.json").read_text())
    marks = {it: says for it, says in receipt["placeholders"].items() if "MODEL_PATH" in it}
    assert len(marks) == len(receipt["pools"]) == 2
    assert {"Llama-3.1-8B" in it for it in marks.values()} == {True, False}
    script = (tmp_path / "out" / "start.sh").read_text()
    assert all(f"export CHECKPOINT='{mark}'" in script for mark in marks)
    started = ["bash", str(tmp_path / "out" / "start.sh"), "node0"]
    ended = subprocess.run(started, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "fill these in first" in ended.stderr


def test_prompts_that_share_what_random_ones_do_not_have_no_load_test(tmp_path, capsys):
    words = f"{GIVEN} --tp 4 --batch 8 --input 1500 --output 300 --json --emit k8s {tmp_path}/"
    assert run(f"{words}a", capsys)[0] == run(f"{words}b --hit-rate 50%", capsys)[0] == 0
    assert (tmp_path / "a" / "loadtest.sh").exists()
    assert not (tmp_path / "b" / "loadtest.sh").exists()


def test_a_load_test_says_where_a_figure_is(tmp_path):
    plan, _ = example()
    script = written(plan, "shell", readers=readers)["loadtest.sh"]
    code = script.partition("<<'PYTHON'\n")[2].partition("\nPYTHON")[0]
    bands = plan[0].bands
    assert bands is not None
    middle = {it.name: 1000 * (it.low_s + it.high_s) / 2 for it in bands.figures}
    for factor, word in ((1.0, "within"), (0.01, "below"), (100.0, "ABOVE")):
        result = tmp_path / "result.json"
        result.write_text(json.dumps({name: it * factor for name, it in middle.items()}))
        run = subprocess.run(
            [sys.executable, "-", str(result)],
            input=code,
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.count(word) == len(middle)


def test_every_flag_that_ships_has_a_source():
    for manifest in manifests().values():
        assert {"title", "version", "source", "begins", "degrees", "flags"} <= manifest.keys()


def test_templates_and_schemas_are_data_of_the_package():
    """The wheel takes whatever lies in the package: nothing ignores them."""
    folder = Path(__file__).parents[2] / "planner" / "report" / "launch"
    names = [it.relative_to(folder) for it in folder.rglob("*") if it.suffix not in (".py", ".pyc")]
    listed = ["git", "check-ignore", *map(str, names)]
    ignored = subprocess.run(listed, cwd=folder, capture_output=True, text=True, check=False).stdout
    assert [it for it in ignored.splitlines() if "__pycache__" not in it] == []
