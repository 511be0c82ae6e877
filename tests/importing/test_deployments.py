"""What starts servers, as options: command lines, scripts, units and YAML of others."""

from __future__ import annotations

import json
import random
import re
from contextlib import suppress

import pytest

from planner.commands.cli import main
from planner.errors import RequestError
from planner.report.launch.reading import pods_in
from planner_workshop.importing.deployments import StartedServer, read_servers

H100 = ["--topology", "h100-nvl8-x1"]
LLAMA = "meta-llama/Llama-3.1-70B-Instruct"


def servers(text: str) -> list[StartedServer]:
    return read_servers(text, asked_by="--flags", model="")


def options(text: str) -> dict[str, str]:
    """Of the one server that a command line or a file starts."""
    (server,) = servers(text)
    assert not server.wrong
    return {"engine": server.engine, **server.options}


@pytest.fixture
def predicts(tmp_path, monkeypatch, capsys):
    """Run `plan predict --flags`: exit code, and all that is said in one line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")

    def run(flags: str, *words: str, command: str = "predict") -> tuple[int, str]:
        code = main([command, "--flags", flags, *words])
        return code, " ".join("".join(capsys.readouterr()).split())

    return run


COMMANDS = {
    f"vllm serve {LLAMA} --tensor-parallel-size 4 --max-num-seqs=64 --gpu_memory_utilization .95": {
        "engine": "vllm",
        "model": LLAMA,
        "tp": "4",
        "batch": "64",
        "memory-fraction": ".95",
    },
    f"CUDA_VISIBLE_DEVICES=0,1 nohup /opt/bin/vllm serve -tp 2 {LLAMA} -q fp8 > log 2>&1 &": {
        "engine": "vllm",
        "model": LLAMA,
        "tp": "2",
        "weights": "fp8",
    },
    "vllm serve deepseek-ai/DeepSeek-V3 -dp 8 -ep --quantization fp8 --max-model-len 16k "
    """--speculative-config '{"method": "deepseek_mtp", "num_speculative_tokens": 2}' """
    """--kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}'""": {
        "engine": "vllm",
        "model": "deepseek-ai/DeepSeek-V3",
        "dp": "8",
        "ep": "8",
        "tokens": "16000",
        "draft": "mtp",
        "lookahead": "2",
        "role": "prefill",
    },
    "vllm serve deepseek-ai/DeepSeek-V3 --data-parallel-size 8": {
        "engine": "vllm",
        "model": "deepseek-ai/DeepSeek-V3",
        "dp": "8",
        "ep": "1",
    },
    f"docker run --gpus all vllm/vllm-openai:v0.33.0 --model {LLAMA} -tp 4": {
        "engine": "vllm",
        "model": LLAMA,
        "tp": "4",
    },
    "python3 -m sglang.launch_server --model deepseek-ai/DeepSeek-V3 --tp 8 --dp 4 "
    "--enable-dp-attention --max-running-requests 256 --chunked-prefill-size 32768 "
    "--speculative-algorithm EAGLE --speculative-num-steps 3 --moe-a2a-backend deepep": {
        "engine": "sglang",
        "model": "deepseek-ai/DeepSeek-V3",
        "tp": "2",
        "dp": "4",
        "ep": "8",
        "batch": "64",
        "chunk": "8192",
        "draft": "mtp",
        "lookahead": "3",
    },
    "trtllm-serve serve Qwen/Qwen3-32B --tp_size 8 --kv_cache_dtype fp8 --max_num_tokens 4096": {
        "engine": "trtllm",
        "model": "Qwen/Qwen3-32B",
        "tp": "8",
        "kv": "fp8",
        "chunk": "4096",
    },
    "trtllm-serve deepseek-ai/DeepSeek-V3 --tp_size 8 --ep_size 8 --enable_attention_dp": {
        "engine": "trtllm",
        "model": "deepseek-ai/DeepSeek-V3",
        "tp": "1",
        "dp": "8",
        "ep": "8",
    },
}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_line_says_these_options(line):
    assert options(line) == COMMANDS[line]


FILES = {
    "start.sh": f"""\
MODEL={LLAMA}
# vllm serve something else
export TP="4"
sleep 1; exec vllm serve "$MODEL" \\
  --tensor-parallel-size ${{TP}} \\
  --max-num-seqs ${{BATCH:-32}}
""",
    "vllm.service": f"""\
[Service]
Environment=HF_HOME=/models
ExecStart=/usr/bin/vllm serve {LLAMA} --tensor-parallel-size 4 --max-num-seqs 32
""",
    "compose.yaml": f"""\
x-common: &common
  ipc: host
services:
  llm:
    <<: *common
    image: vllm/vllm-openai:latest
    command: --model {LLAMA} --tensor-parallel-size 4 --max-num-seqs 32
    deploy:
      resources: {{reservations: {{devices: [{{driver: nvidia, count: 4, capabilities: [gpu]}}]}}}}
""",
    "deployment.yaml": f"""\
kind: Deployment
spec:
  replicas: 3
  template:
    spec:
      nodeSelector: {{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
      containers:
      - image: registry/mine
        command: [/bin/sh, -c]
        args: ["sleep 5 && exec vllm serve $MODEL -tp 4 --max-num-seqs 32"]
        env: [{{name: MODEL, value: {LLAMA}}}]
        resources: {{limits: {{nvidia.com/gpu: "4", cpu: "16"}}}}
""",
    "llm-d.yaml": f"""\
modelArtifacts: {{uri: "hf://{LLAMA}", name: llama}}
prefill: {{create: false, replicas: 1, containers: [{{image: x, modelCommand: vllmServe}}]}}
decode:
  replicas: 2
  parallelism: {{tensor: 4}}
  containers:
  - image: ghcr.io/llm-d/llm-d-cuda:v0.4
    modelCommand: vllmServe
    env: [{{name: SEQS, value: "32"}}]
    args: [--max-num-seqs, $(SEQS)]
""",
    "stack.yaml": f"""\
servingEngineSpec:
  modelSpec:
  - modelURL: {LLAMA}
    replicaCount: 2
    requestGPU: 4
    vllmConfig: {{tensorParallelSize: 4, maxNumSeqs: 32, extraArgs: ["--disable-log-requests"]}}
""",
    "dynamo.yaml": f"""\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
spec:
  services:
    Frontend:
      extraPodSpec: {{mainContainer: {{image: x, args: [python3, -m, dynamo.frontend]}}}}
    VllmDecodeWorker:
      componentType: worker
      replicas: 2
      resources: {{limits: {{gpu: "4"}}}}
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1
          command: [/bin/sh, -c]
          args: ["python3 -m dynamo.vllm --model {LLAMA} -tp 4 --max-num-seqs 32"]
""",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_the_same_in_each_of_its_formats(name, tmp_path):
    path = tmp_path / name
    path.write_text(FILES[name])
    said = {"engine": "vllm", "model": LLAMA, "tp": "4", "batch": "32"}
    assert options(str(path)) == said
    (server,) = servers(str(path))
    copies = [it for it in FILES[name].splitlines() if "replica" in it and "create" not in it]
    n = {"start.sh": 1, "vllm.service": 1, "compose.yaml": 1, "deployment.yaml": 3}.get(name, 2)
    assert server.n_servers == n, copies
    assert server.n_devices == 4
    place, _, line = server.place.rpartition(":")
    assert place == str(path)
    assert re.search(f"{LLAMA}|exec vllm", FILES[name].splitlines()[int(line) - 1])


def test_phases_of_values_are_told_apart_by_where_they_stand(tmp_path):
    path = tmp_path / "values.yaml"
    config = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'
    served = {"image": "x", "modelCommand": "vllmServe", "args": ["--kv-transfer-config", config]}
    phases = {
        role: {"replicas": n, "parallelism": {"tensor": n}, "containers": [served]}
        for role, n in (("prefill", 1), ("decode", 2))
    }
    path.write_text(json.dumps({"modelArtifacts": {"uri": f"hf://{LLAMA}"}, **phases}))
    read = {it.options["role"]: it for it in servers(str(path))}
    assert {role: it.options.get("tp") for role, it in read.items()} == {
        "prefill": "1",
        "decode": "2",
    }
    assert [it.n_servers for it in read.values()] == [1, 2]


def test_what_is_read_is_said_and_what_is_not_looked_at(predicts):
    words = f"vllm serve {LLAMA} -tp 4 --max-num-seqs 8 --enforce-eager --port 80 --no-such-flag 3"
    code, text = predicts(words, *H100)
    assert code == 0
    assert f"--flags: `plan predict --engine vllm --model {LLAMA} --tp 4 --batch 8`" in text
    assert "without a flag vllm has --pp 1, --dp 1, --chunk 8192, --memory-fraction 0.9" in text
    assert "is not taken into account: `--enforce-eager`, `--no-such-flag 3`" in text
    assert "--port" not in text
    ran = main(
        ["predict", "--model", LLAMA, "--engine", "vllm", "--tp", "4", "--batch", "8", *H100]
    )
    assert ran == 0


def test_what_only_a_shell_knows_is_left_out_and_said(tmp_path, predicts):
    (tmp_path / "agg.sh").write_text(
        "MODEL=Qwen/Qwen3-32B\n"
        "python3 -m dynamo.frontend --router-mode kv &\n"
        'DYN_SYSTEM_PORT=${P:-8081} python3 -m dynamo.sglang --model-path "$MODEL" --tp 2 \\\n'
        '  --enable-metrics ${MEM:+--mem-fraction-static "$MEM"} "${ARGS[@]}" &\n'
    )
    assert options("agg.sh") == {"engine": "sglang", "model": "Qwen/Qwen3-32B", "tp": "2"}
    code, text = predicts("agg.sh", *H100, "--quiet")
    assert code == 0
    assert "`${ARGS[@]}` belongs to no flag" in text


def test_options_beside_flags_agree_or_are_refused(predicts):
    words = f"vllm serve {LLAMA} -tp 4 --max-num-seqs 64 --max-num-batched-tokens 4096"
    assert predicts(words, *H100, "--tp", "4", "--batch", "16", "--quiet")[0] == 0  # below its cap
    code, text = predicts(words, *H100, "--tp", "8", "--batch", "65", "--model", "qwen3-32b")
    assert code == 2
    assert "for 3 reasons" in text
    assert "`--tp 8` is 4 in --flags: `--tensor-parallel-size 4`" in text
    assert "`--batch 65` is 64 in --flags: `--max-num-seqs 64`" in text
    assert f"`--model qwen3-32b` is {LLAMA} in --flags" in text


def test_a_checkpoint_in_a_format_says_more_than_the_model(predicts):
    for name, weights in (("Qwen/Qwen3-30B-A3B-FP8", "fp8"), ("Qwen/Qwen3-30B-A3B", "bf16")):
        words = f"vllm serve {name} --max-num-seqs 8"
        code, text = predicts(words, *H100, "--model", "qwen3-30b-a3b", "--json")
        assert code == 0
        assert json.loads(text[: text.rindex("}") + 1])["answer"]["formats"]["weights"] == weights


def test_a_path_says_no_model(predicts):
    code, text = predicts("vllm serve /models/mine -tp 4", *H100)
    assert code == 2
    assert "loads `/models/mine`, and nobody here knows which model that is" in text
    assert "write `--model`" in text
    for name in ("/models/mine", "our/tuned"):
        code, text = predicts(f"vllm serve {name} -tp 4", *H100, "--model", "llama-3.1-70b")
        assert code == 0
        assert f"it loads {name}, taken for `--model llama-3.1-70b`" in text
    code, text = predicts("vllm serve qwen3-32b -tp 4", *H100, "--model", "llama-3.1-70b")
    assert code == 2
    assert "`--model llama-3.1-70b` is qwen3-32b in --flags" in text


WRONG = {
    "vllm serve X -tp four": "has `--tensor-parallel-size four`, and four is no number",
    "vllm serve X -dp 0": "has `--data-parallel-size 0`, and it has to be at least 1",
    "vllm serve X --max-model-len long": "has `--max-model-len long`, and long is no number",
    "vllm serve X --max-num-seqs": "is refused by vllm: `--max-num-seqs` has no value",
    "vllm serve X Y": "is refused by vllm: `Y` belongs to no flag",
    "python -m sglang.launch_server --model-path X --tp 8 --dp 3 --enable-dp-attention": (
        "has 8 devices, which 3 attention ranks cannot share alike"
    ),
    "vllm serve X -tp": "`--flags` is refused by vllm: `--tensor-parallel-size` has no value",
    "vllm serve X --max-num-seqs 8 --in-flight 9": "runs 8 requests at most, and `--in-flight`",
    "vllm serve X --no-enable-prefix-caching --hit-rate 0.5": "is 0 in --flags: `--no-enable-pref",
    " ": "starts no server of vllm, sglang, trtllm",
    "vllm serve X --max-model-len 2k": "takes requests of 2000 tokens, and these have 2112",
    "vllm serve X --gpu-memory-utilization 1.9": "--gpu-memory-utilization 1.9` is not below 1",
    'vllm serve X "--port 80': "no closing quotation",
    "echo hello world": "starts no server of vllm, sglang, trtllm",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_is_refused_with_where_it_stands(words, predicts):
    flags, *beside = re.split(r" (--(?:in-flight|hit-rate)) ", words.replace("X", LLAMA))
    code, text = predicts(flags, *beside, *H100)
    assert code == 2
    assert WRONG[words] in text
    assert "--tp 2" not in text or "-tp" not in words  # nothing that only follows from it
    assert "Traceback" not in text


def test_fewer_devices_than_flags_take_are_refused_and_more_are_said(tmp_path, predicts):
    text = FILES["deployment.yaml"]
    for n, code, words in (
        ("2", 2, "has 2 devices for a server whose flags take 4"),
        ("8", 0, "not taken into account: 4 of the 8 devices of a server"),
    ):
        (tmp_path / "d.yaml").write_text(text.replace('gpu: "4"', f'gpu: "{n}"'))
        got, said = predicts("d.yaml", "--quiet")
        assert (got, words in said) == (code, True), said
        assert "d.yaml:" in said


@pytest.mark.parametrize("shown", ["CUDA_VISIBLE_DEVICES=0,1 vllm serve", "A=1 vllm serve",
    "docker run --gpus '\"device=0,1\"' vllm/vllm-openai:latest --model",
    "docker run --gpus device=0,1 vllm/vllm-openai:latest --model",
    "docker run --gpus 8 -e NVIDIA_VISIBLE_DEVICES=2,3 vllm/vllm-openai --model",
    "docker run --gpus=2 vllm/vllm-openai --model"])  # fmt: skip
def test_devices_that_a_shell_shows_are_held_against_flags_too(shown, tmp_path, predicts):
    own = "export HIP_VISIBLE_DEVICES=4,5\n" * shown.startswith("A=1")
    line = f"{shown} {LLAMA} -tp 4 --max-num-seqs 8"
    (tmp_path / "a.sh").write_text(f"{own}{line}\n")
    code, text = predicts("a.sh", *H100)
    assert code == 2
    assert "has 2 devices for a server whose flags take 4" in text
    for more in ("--nnodes 2", "--distributed-executor-backend ray"):  # it has others elsewhere
        (tmp_path / "a.sh").write_text(f"{line} {more}\n")
        assert predicts("a.sh", *H100, "--quiet")[0] == 0


def test_devices_that_a_file_names_are_their_usual_servers(tmp_path, predicts):
    (tmp_path / "d.yaml").write_text(FILES["deployment.yaml"])
    code, text = predicts("d.yaml")
    assert code == 0
    assert "on 4 × h100-sxm" in text
    assert "3 such servers are started, and figures are of one" in text


def test_a_command_of_any_length_is_a_command(predicts):
    words = f"vllm serve {LLAMA} -tp 4 {'--max-num-seqs 8 ' * 300}"
    assert predicts(words, *H100, "--quiet")[0] == 0


def test_words_of_the_shell_and_flags_of_other_versions_are_no_faults(predicts):
    words = f"vllm serve {LLAMA} -tp 4 -O3 --cuda-graph-sizes 1 2 4 --dtype float32"
    code, text = predicts(f"{words} --max-num-seqs 8; sleep 1", *H100)
    assert code == 0
    assert "account: `-O3`, `--cuda-graph-sizes 1 2 4`, `--dtype float32`" in text
    assert "batch 8 a rank" in text
    assert "no flag says how many sequences run" not in text
    code, text = predicts(words, *H100)
    assert "no flag says how many sequences run: figures are of 1" in text


def test_yaml_is_yaml_whatever_it_is_called(tmp_path):
    for name in ("d", "d.txt", "d.YAML"):
        (tmp_path / name).write_text(FILES["deployment.yaml"])
        assert options(str(tmp_path / name))["tp"] == "4"


def test_what_starts_nothing_is_passed_over(tmp_path):
    path = tmp_path / "d.yaml"
    other = "---\nkind: Deployment\nspec: {replicas: 0, template: {spec: {containers: [&a "
    other += "{name: x, image: vllm/vllm-openai, command: [hf, download, x]}]}}}\n"
    path.write_text(FILES["deployment.yaml"] + other + other.replace("replicas: 0", "replicas: 1"))
    assert options(str(path))["batch"] == "32"
    path.write_text("size: 0\nleaderTemplate: {image: vllm/vllm-openai, args: [x]}\n")
    with pytest.raises(RequestError, match="starts no server"):
        servers(str(path))


def test_keys_of_ray_that_are_false_or_null_are_no_words(tmp_path):
    path = tmp_path / "ray.yaml"
    kwargs = "{tensor_parallel_size: 4, enable_expert_parallel: false, quantization: null, "
    kwargs += "enable_prefix_caching: false}"
    path.write_text(f"model_loading_config: {{model_source: {LLAMA}}}\nengine_kwargs: {kwargs}\n")
    said = {"engine": "vllm", "model": LLAMA, "tp": "4", "hit-rate": "0"}
    assert options(str(path)) == said


def test_servers_that_differ_are_named_with_their_lines(tmp_path, predicts):
    line = f"vllm serve {LLAMA} -tp 4 --max-num-seqs 8\n"
    (tmp_path / "a.sh").write_text(line + line + line.replace("8", "9") + line)
    code, text = predicts("a.sh", *H100)
    assert code == 2
    assert "starts 3 × vllm on 4 devices (a.sh:1); 1 × vllm on 4 devices (a.sh:3)" in text
    assert "--role" not in text
    code, text = predicts(f"{line.strip()};vllm serve Qwen/Qwen3-8B & # {line}", *H100)
    assert code == 2
    assert "starts 1 × vllm on 4 devices (--flags); 1 × vllm on 1 devices (--flags)" in text


def test_servers_that_were_written_here_are_named_with_their_lines_and_engine(tmp_path, predicts):
    block = '\n  (\n    mkdir -p "run/{0}" && cd "run/{0}"\n    export CUDA_VISIBLE_DEVICES={1}\n'
    line = "    trtllm-serve deepseek-ai/DeepSeek-R1 --tp_size {} --max_batch_size {}\n  ) &"
    wait = "    : # srun starts it from the first node\n  ) &"
    started = [("a", "0,1", line.format(4, 8)), ("a", "0,1", wait), ("b", "0,1", line.format(2, 8)),
               ("c", "2,3", line.format(2, 9))]  # fmt: skip
    text = "case" + "".join(block.format(name, seats) + it for name, seats, it in started)
    (tmp_path / "start.sh").write_text(text)
    code, said = predicts("start.sh", *H100)
    assert code == 2
    lines = [i for i, it in enumerate(text.splitlines(), 1) if "trtllm-serve" in it]
    assert re.findall(r"start\.sh:(\d+)", said) == list(map(str, lines))
    assert "1 × trtllm on 4 devices" in said
    assert "`--flags 'trtllm-serve …'`" in said


def test_a_tree_of_drafts_is_said_to_be_timed_as_a_chain(predicts):
    words = "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp-size 8"
    words += " --speculative-algorithm EAGLE --speculative-num-steps 5 --speculative-eagle-topk"
    h200 = ["--topology", "h200-nvl8-x1"]
    text = predicts(f"{words} 8 --speculative-num-draft-tokens 32", *h200, "--quiet")[1]
    assert "`--speculative-eagle-topk 8` and `--speculative-num-draft-tokens 32`" in text
    assert "a tree of drafts, timed as a chain of 5" in text
    assert "eagle-topk" not in predicts(f"{words} 1", *h200, "--quiet")[1]


def test_devices_of_the_command_line_are_not_those_of_the_file(tmp_path, predicts):
    (tmp_path / "d.yaml").write_text(FILES["deployment.yaml"])
    code, text = predicts("d.yaml", "--topology", "a100-nvl8-x1")
    assert code == 0
    assert "--topology" not in text.partition("read from")[2].partition("without")[0]
    assert "names NVIDIA-H100-80GB-HBM3, and figures are of the devices of the command" in text
    (tmp_path / "d.yaml").write_text(FILES["deployment.yaml"].replace("H100", "X9"))
    code, text = predicts("d.yaml")
    assert code == 2
    assert "runs on `NVIDIA-X9-80GB-HBM3`, of which no servers are known here" in text


def test_what_drafts_of_flags_need_may_stand_beside_them(predicts):
    words = f"vllm serve {LLAMA} -tp 4 --spec-method eagle --spec-tokens 3 --spec-model x"
    fast, slow = (predicts(words, *H100, "--acceptance", it, "--quiet") for it in ("0.9", "0.2"))
    assert fast[0] == slow[0] == 0
    assert fast[1] != slow[1]
    code, text = predicts(words.partition(" --spec")[0], *H100, "--acceptance", "0.9")
    assert code == 2
    assert "means nothing without `--draft`" in text


def test_an_audit_takes_flags_too_and_drafts_as_a_prediction_does(predicts, capsys):
    words = f"vllm serve {LLAMA} -tp 4 --max-num-seqs 16"
    words += " --spec-method eagle --spec-model x --spec-tokens 3"
    code, text = predicts(words, *H100, "--speed", "20tok/s", command="audit")
    assert code == 0
    assert "4 devices TP 4, bf16 weights, bf16 KV cache, batch 16" in text
    assert "not taken into account" not in text
    assert "batch 16, chunks of 8192, 3 drafted by eagle" in text
    assert main(["predict", "--flags", words, *H100, "--quiet"]) == 0
    (tpot,) = re.findall(r"TPOT (\S+ ms \(.*? ms\)), TTFT", capsys.readouterr().out)
    assert f"predicted TPOT {tpot}" in text
    code, text = predicts(f"{words} --kv-transfer-config '{{\"kv_role\": \"kv_consumer\"}}'", *H100,
                          "--speed", "20tok/s", command="audit")  # fmt: skip
    assert code == 2
    assert "starts servers of one phase, decode" in text
    code, text = predicts(words.replace(" --spec-tokens 3", ""), *H100, "--speed", "20tok/s",
                          command="audit")  # fmt: skip
    assert code == 2
    assert "drafts one number of tokens: write `--lookahead 3`" in text


BOMBS = {
    "aliases.yaml": "a: &a [1]\n" + "".join(f"b{i}: &b{i} [{'*a, ' * 9}]\n" for i in range(9)),
    "nested.yaml": "[" * 100_000,
    "deep.yaml": "\n".join(f"{' ' * i}a:" for i in range(3000)),
    "cycle.yaml": "a: &a [*a]\n",
    "wide.yaml": "a: [" + "1, " * 200_000 + "]",
    "broken.yaml": "a: [1\nb: {",
    "binary.sh": b"\x7fELF\x00\xff",
    "empty.sh": " \n",
    "large.yaml": "a" * (2**20 + 1),
    "odd.yaml": "replicas: yes\nimage: 3\ncommand: {a: 1}\nargs: 7\nenv: 5\nresources: [1]\n",
    "odder.yaml": "vllmConfig: {extraArgs: 3}\nengine_kwargs: []\nparallelism: 4\ndeploy: x\n",
    "quotes.yaml": 'image: vllm/vllm-openai\ncommand: "vllm serve \'x"\n',
    "spaces.sh": "a=b" + " " * 2**19 + "x\n",
    "variables.sh": f"A={'a' * 2**18}\nvllm serve {'$A' * 2**18} -tp x\n",
    "blocks.sh": '\n  (\n    mkdir -p "run/' * 2**14 + "VISIBLE_DEVICES=",
    "bomb.sh": 'echo "{a0: &a0 {x: 1}'
    + "".join(f", a{i}: &a{i} {{p: *a{i - 1}, q: *a{i - 1}}}" for i in range(1, 30))
    + '}" > x.yaml && trtllm-serve x',
    "json.sh": "vllm serve x --speculative-config '" + '{"a":' * 6000 + "'",
    "yaml.sh": 'echo "{a: [}" > x.yaml && trtllm-serve x\n',
}


@pytest.mark.parametrize("name", BOMBS)
def test_hostile_files_are_refused_at_once(name, tmp_path, predicts):
    text = BOMBS[name]
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    code, said = predicts(name, *H100)
    assert code == 2, said
    assert name in said or "`--model x` no such model" in said, said
    assert "defect" not in said


def test_whatever_stands_in_a_file_is_read_or_refused(tmp_path):
    drawn = random.Random(5)
    pieces = [*COMMANDS, *FILES.values()]
    marks = "\"'{}[]:&*|<>$#\\\n\t -=,"
    n_read = 0
    for i in range(400):
        text = list(drawn.choice(pieces))
        for _ in range(drawn.randint(1, 6)):
            at = drawn.randrange(len(text))
            text[at : at + drawn.randint(0, 3)] = drawn.choice(marks)
        path = tmp_path / f"f{i}{drawn.choice(['.sh', '.yaml'])}"
        path.write_text("".join(text))
        with suppress(RequestError):
            n_read += len(servers(str(path)))
    assert n_read > 50


def test_lines_of_other_programs_are_none_of_ours():
    (pods,) = pods_in("a.sh", "# vllm serve x\nvllm bench serve --model x\n")
    assert pods.command.program == "vllm-bench"
    with pytest.raises(RequestError, match="starts no server"):
        servers("vllm bench serve --model x")
