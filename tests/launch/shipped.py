"""Make what ships of programs' flags and of schemas, from the programs' own packages and files.

python -m tests.launch.shipped FOLDER

FOLDER has what pip unpacks, as docs/rules.md has it: `vllm`, `sglang`, `sglang_router`, `dynamo`,
`kubernetes_validate` and `ray`; and beside it the files of repositories that SOURCES names.
Manifests of `trtllm-serve` are not made here: no package of it can be had, see their `source`.

Schemas ship closed, with the keys of KEYS alone: a key that a file has and a schema has not is
refused, although the schemas themselves let any key pass.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TO = Path(__file__).parents[2] / "planner" / "report" / "launch"
SOURCES = {
    "Deployment": ("Kubernetes", "1.37", "deployment-apps-v1"),
    "Service": ("Kubernetes", "1.37", "service-v1"),
    "ServiceAccount": ("Kubernetes", "1.37", "serviceaccount-v1"),
    "Role": ("Kubernetes", "1.37", "role-rbac-v1"),
    "RoleBinding": ("Kubernetes", "1.37", "rolebinding-rbac-v1"),
    "LeaderWorkerSet": ("kubernetes-sigs/lws", "060ab4d", "lws.leaderworkersets.crd.yaml"),
    "DisaggregatedSet": ("kubernetes-sigs/lws", "060ab4d", "lws.disaggregatedsets.crd.yaml"),
    "llm-d": ("llm-d-modelservice", "values", "llm-d-modelservice.values.schema.json"),
    "production-stack": (
        "vllm-project/production-stack",
        "0.1.12",
        "production-stack.values.schema.json",
    ),
    "compose": ("compose-spec/compose-spec", "170098b", "compose-spec.json"),
}
"""Whose schemas these are, of which version, in which file; all under the Apache License 2.0."""

KEYS = frozenset(
    """apiVersion kind metadata name labels spec replicas selector matchLabels template containers
    image command args env value valueFrom secretKeyRef key optional fieldRef fieldPath ports
    containerPort readinessProbe httpGet path port resources limits volumeMounts mountPath volumes
    emptyDir medium affinity nodeAffinity requiredDuringSchedulingIgnoredDuringExecution
    nodeSelectorTerms matchExpressions operator values nodeSelector serviceAccountName subjects
    roleRef apiGroup rules apiGroups resources verbs targetPort leaderWorkerTemplate size
    leaderTemplate workerTemplate restartPolicy roles modelArtifacts uri authSecretName routing
    servicePort proxy enabled connector targetPort multinode decode prefill create parallelism
    tensor workers modelCommand accelerator type servingEngineSpec modelSpec repository tag modelURL
    replicaCount requestGPU requestCPU requestMemory vllmConfig tensorParallelSize maxModelLen
    maxNumSeqs gpuMemoryUtilization enablePrefixCaching extraArgs hf_token secretName secretKey
    nodeSelectorTerms services environment deploy reservations devices driver device_ids
    capabilities ipc configs content source target depends_on entrypoint
    periodSeconds failureThreshold shmSize network_mode""".split()  # noqa: SIM905 a list would take a page
)

OPEN = {"labels", "matchLabels", "limits", "nodeSelector"}
"""Maps whose keys are a user's own."""

LLMD_CONTAINER = {
    **{name: {"type": "string"} for name in ("name", "image", "modelCommand")},
    **{name: {"type": "array", "items": {"type": "string"}} for name in ("command", "args")},
}
"""Of a container, where the chart's schema lists none (charts/llm-d-modelservice/templates)."""


def closed(schema: Any, root: Any, name: str = "") -> Any:
    """A schema without words, with the keys of KEYS alone, and no others allowed."""
    if "$ref" in schema:
        at = root
        for part in schema["$ref"].partition("#/")[2].split("/"):
            at = at[part]
        return closed(at, root, name)
    for choice in ("oneOf", "anyOf"):
        options = [it for it in schema.get(choice, ()) if it.get("type") != "null"]
        structured = [it for it in options if {"properties", "items"} & it.keys()]
        if structured and "properties" not in schema:
            picked = next((it for it in structured if "properties" in it), structured[0])
            if name in ("command", "entrypoint", "environment"):
                picked = structured[-1]
            return closed(picked, root, name)
    made: dict[str, Any] = {}
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds] if kinds else []
    if schema.get("x-kubernetes-int-or-string"):
        kinds = ["integer", "string"]
    elif not kinds and "properties" not in schema:
        kinds = [
            it["type"]
            for it in schema.get("oneOf", schema.get("anyOf", ()))
            if isinstance(it.get("type"), str)
        ]
    kinds = [it for it in kinds if it != "null"]
    if kinds:
        made["type"] = kinds if len(kinds) > 1 else kinds[0]
    for word in ("enum", "minimum"):
        if word in schema:
            made[word] = (
                [it for it in schema[word] if it is not None] if word == "enum" else schema[word]
            )
    if name in OPEN:
        return {"type": "object", "values": {"type": ["string", "integer"]}}
    if "properties" in schema:
        kept = {
            key: closed(value, root, key)
            for key, value in schema["properties"].items()
            if key in KEYS
        }
        made |= {"type": "object", "properties": kept}
        needs = [key for key in schema.get("required", ()) if key in kept]
        if needs:
            made["required"] = needs
    elif isinstance(schema.get("patternProperties"), dict) and schema["patternProperties"]:
        pattern = {k: v for k, v in schema["patternProperties"].items() if k != "^x-"}
        if pattern:
            made |= {"type": "object", "values": closed(next(iter(pattern.values())), root)}
    elif isinstance(schema.get("additionalProperties"), dict):
        made |= {"type": "object", "values": closed(schema["additionalProperties"], root)}
    if isinstance(schema.get("items"), dict):
        made["items"] = closed(schema["items"], root, name)
    return made


def kubernetes_schemas(folder: Path, file: str) -> tuple[Any, Any]:
    """A kind of Kubernetes, and the file of what it refers to."""
    at = folder / "kubernetes_validate" / "kubernetes-json-schema" / "v1.37.0-local-strict"
    kind, rest = (
        json.loads((at / name).read_text()) for name in (f"{file}.json", "_definitions.json")
    )
    return kind, rest


def crd_schema(path: Path) -> Any:
    import yaml

    text = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    versions = text["spec"]["versions"]
    newest: Any = next(it for it in versions if it["name"] == "v1")
    schema = newest["schema"]["openAPIV3Schema"]
    schema["properties"]["apiVersion"]["enum"] = [f"{text['spec']['group']}/v1"]
    schema["properties"]["kind"]["enum"] = [text["spec"]["names"]["kind"]]
    return schema


def metadata(schema: dict[str, Any]) -> dict[str, Any]:
    """Of an object of Kubernetes: `apiVersion` and `kind` are said, `metadata` has a name."""
    labels = {"type": "object", "values": {"type": "string"}}
    inside = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "labels": labels},
        "required": ["name"],
    }
    return {
        **schema,
        "properties": {**schema["properties"], "metadata": inside},
        "required": ["apiVersion", "kind", "metadata"],
    }


def dynamo_schema(pod: Any) -> Any:
    """As the fields of `DynamoComponentDeploymentSharedSpec` say; the pod is Kubernetes' own."""
    component = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "type": {
                "type": "string",
                "enum": ["frontend", "worker", "prefill", "decode", "planner", "epp"],
            },
            "replicas": {"type": "integer", "minimum": 0},
            "multinode": {
                "type": "object",
                "properties": {"nodeCount": {"type": "integer", "minimum": 2}},
            },
            "podTemplate": pod,
        },
    }
    spec = {"type": "object", "properties": {"components": {"type": "array", "items": component}}}
    return {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string", "enum": ["nvidia.com/v1beta1"]},
            "kind": {"type": "string", "enum": ["DynamoGraphDeployment"]},
            "spec": spec,
        },
    }


def ray_schema(folder: Path) -> Any:
    """Fields of LLMConfig and of what it holds, by their names; options of deployments by the words
    of its own field."""
    path = folder / "ray/llm/_internal/serve/core/configs/llm_config.py"
    classes = {
        it.name: it for it in ast.parse(path.read_text()).body if isinstance(it, ast.ClassDef)
    }

    def fields(name: str) -> set[str]:
        return {
            it.target.id
            for it in classes[name].body
            if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name)
        }

    assert {
        "model_loading_config",
        "llm_engine",
        "engine_kwargs",
        "placement_group_config",
        "deployment_config",
    } <= fields("LLMConfig")
    assert {"model_id", "model_source"} <= fields("ModelLoadingConfig")
    about = next(
        ast.unparse(it)
        for it in classes["LLMConfig"].body
        if isinstance(it, ast.AnnAssign) and ast.unparse(it.target) == "placement_group_config"
    )
    assert all(word in about for word in ("bundle_per_worker", "strategy", "STRICT_PACK"))
    string, integer = {"type": "string"}, {"type": "integer"}
    config = {
        "type": "object",
        "required": ["model_loading_config"],
        "properties": {
            "model_loading_config": {
                "type": "object",
                "required": ["model_id"],
                "properties": {"model_id": string, "model_source": string},
            },
            "llm_engine": {"type": "string", "enum": ["vLLM"]},
            "engine_kwargs": {"type": "object", "values": {}},
            "placement_group_config": {
                "type": "object",
                "properties": {
                    "bundle_per_worker": {
                        "type": "object",
                        "properties": {"CPU": integer, "GPU": integer},
                    },
                    "strategy": {
                        "type": "string",
                        "enum": ["PACK", "STRICT_PACK", "SPREAD", "STRICT_SPREAD"],
                    },
                },
            },
            "deployment_config": {
                "type": "object",
                "properties": {"num_replicas": integer, "max_ongoing_requests": integer},
            },
            "runtime_env": {
                "type": "object",
                "properties": {"env_vars": {"type": "object", "values": string}},
            },
        },
    }
    arguments = {
        "type": "object",
        "properties": {
            "llm_configs": {"type": "array", "items": config},
            "prefill_config": config,
            "decode_config": config,
        },
    }
    application = {
        "type": "object",
        "required": ["name", "import_path"],
        "properties": {
            "name": string,
            "route_prefix": string,
            "import_path": string,
            "args": arguments,
        },
    }
    return {
        "type": "object",
        "required": ["applications"],
        "properties": {"applications": {"type": "array", "items": application}},
    }


def schemas(folder: Path) -> dict[str, Any]:
    made = {}
    for kind, (whose, version, file) in SOURCES.items():
        if whose == "Kubernetes":
            source, root = kubernetes_schemas(folder, file)
        else:
            path = folder / file
            source = crd_schema(path) if path.suffix == ".yaml" else json.loads(path.read_text())
            root = source
        schema = closed(source, root)
        if kind[0].isupper():
            schema = metadata(schema)
        made[kind] = {"source": whose, "version": version, "schema": schema}
    pod = made["LeaderWorkerSet"]["schema"]["properties"]["spec"]["properties"][
        "leaderWorkerTemplate"
    ]["properties"]["workerTemplate"]
    pod["properties"]["metadata"] = {
        "type": "object",
        "properties": {"labels": {"type": "object", "values": {"type": "string"}}},
    }
    leader = made["LeaderWorkerSet"]["schema"]["properties"]["spec"]["properties"][
        "leaderWorkerTemplate"
    ]["properties"]
    leader["leaderTemplate"] = pod
    roles = made["DisaggregatedSet"]["schema"]["properties"]["spec"]["properties"]["roles"][
        "items"
    ]["properties"]
    roles["spec"] = made["LeaderWorkerSet"]["schema"]["properties"]["spec"]
    made["Deployment"]["schema"]["properties"]["spec"]["properties"]["template"] = pod
    container = pod["properties"]["spec"]["properties"]["containers"]["items"]["properties"]
    for role in ("decode", "prefill"):
        part = made["llm-d"]["schema"]["properties"][role]["properties"]
        part["containers"] = {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "image"],
                "properties": container | LLMD_CONTAINER,
            },
        }
        part["volumes"] = pod["properties"]["spec"]["properties"]["volumes"]
    made["DynamoGraphDeployment"] = {
        "source": "ai-dynamo/dynamo",
        "version": "v1beta1 @006b6e1",
        "schema": metadata(dynamo_schema(pod)),
    }
    made["ray"] = {"source": "ray.serve.llm", "version": "2.60.0", "schema": ray_schema(folder)}
    return made


def takes(action: argparse.Action) -> object:
    if action.nargs == 0 or type(action).__name__ in (
        "EnableDisableAction",
        "BooleanOptionalAction",
    ):
        return False
    if action.nargs in ("+", "*") or type(action).__name__ == "_AppendAction":
        return "+"
    return sorted(map(str, action.choices)) if action.choices else True


def listed(parser: argparse.ArgumentParser) -> dict[str, object]:
    names = ((name, action) for action in parser._actions for name in action.option_strings)
    return {name: takes(action) for name, action in names if name.startswith("--")}


def parser_flags(program: str, folder: str) -> dict[str, object]:
    """Flags of a program, of its own parser, in this process."""
    from tests.launch.parsers import Finder, parser_of

    if program == "sglang-router":
        sys.path.insert(0, folder)
        parser = argparse.ArgumentParser()
        importlib.import_module("sglang_router.router_args").RouterArgs.add_cli_args(parser)
        return listed(parser)
    sys.meta_path.insert(0, Finder(program, ("pandas",)))  # which will not have stand-ins
    parser = parser_of(program.removesuffix("-bench"), folder)
    if program == "vllm-bench":
        parser = argparse.ArgumentParser()
        importlib.import_module("vllm.benchmarks.serve").add_cli_args(parser)
    return listed(parser)


OF_ROUTER = {
    **dict.fromkeys(("--host", "--port", "--service-discovery-port"), True),
    **dict.fromkeys(("--service-discovery-namespace",), True),
    **dict.fromkeys(("--vllm-pd-disaggregation", "--service-discovery"), False),
    **dict.fromkeys(("--worker-urls", "--prefill", "--decode"), "+"),
    **dict.fromkeys(("--selector", "--prefill-selector", "--decode-selector"), "+"),
    "--policy": ["random", "round_robin", "cache_aware", "power_of_two", "consistent_hash"],
    "--kv-connector": ["nixl", "mooncake", "moriio"],
}
"""Of vllm-router, as the tables of its reference have its Python launcher; a part of them."""


def flags_in_a_process(program: str, folder: Path) -> dict[str, object]:
    """Flags of a program, in a process of its own: parsers stand in for each other's modules."""
    code = (
        "import json, sys; from tests.launch.shipped import parser_flags; "
        "print(json.dumps(parser_flags(*sys.argv[1:])))"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, program, str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(run.stdout.splitlines()[-1])
    return found


MANIFESTS = {
    "vllm": (
        "vLLM",
        "0.33.0",
        "vllm serve",
        ["--tensor-parallel-size", "--data-parallel-size", "--pipeline-parallel-size"],
    ),
    "sglang": ("SGLang", "0.5.23", "python -m sglang.launch_server", ["--tp-size", "--pp-size"]),
    "vllm-bench": ("vLLM", "0.33.0", "vllm bench serve", []),
    "sglang-router": ("sglang-router", "0.3.2", "python -m sglang_router.launch_router", []),
}


def main(folder: Path) -> None:
    for name, (title, version, begins, degrees) in MANIFESTS.items():
        about = {"title": title, "version": version, "begins": begins, "degrees": degrees}
        about["source"] = "its own parser, of the package of PyPI"
        flags = flags_in_a_process(name, folder)
        write(TO / "manifests" / f"{name}.json", about | {"flags": flags})
    trtllm = ast.parse((folder / "dynamo/trtllm/backend_args.py").read_text())
    calls = [
        {it.arg: it.value for it in node.keywords}
        for node in ast.walk(trtllm)
        if isinstance(node, ast.Call) and any(it.arg == "flag_name" for it in node.keywords)
    ]
    named = {ast.literal_eval(it["flag_name"]): it for it in calls}
    switches = {
        name
        for name, it in named.items()
        if "arg_type" not in it
        and isinstance(it.get("default"), ast.Constant)
        and isinstance(it["default"].value, bool)
    }
    modes = ["agg", "pd", "prefill", "decode", "encode"]
    flags = {name: name not in switches for name in named} | {"--disaggregation-mode": modes}
    both = {
        "version": "1.6.1",
        "title": "Dynamo",
        "source": "dynamo/{}/backend_args.py of the package of PyPI",
    }
    for engine, own, degrees in (
        ("vllm", {"--disaggregation-mode": modes}, MANIFESTS["vllm"][3]),
        ("sglang", {}, MANIFESTS["sglang"][3]),
    ):
        about = both | {
            "source": both["source"].format(engine) + f", and what `{engine}` takes",
            "extends": engine,
        }
        write(
            TO / "manifests" / f"dynamo-{engine}.json",
            about | {"begins": f"python3 -m dynamo.{engine}", "degrees": degrees, "flags": own},
        )
    write(
        TO / "manifests" / "dynamo-trtllm.json",
        both
        | {
            "source": both["source"].format("trtllm"),
            "begins": "python3 -m dynamo.trtllm",
            "degrees": ["--tensor-parallel-size", "--pipeline-parallel-size"],
            "flags": flags,
        },
    )
    write(
        TO / "manifests" / "vllm-router.json",
        {
            "title": "vllm-router",
            "version": "df71929",
            "source": "vllm-project/router docs/cli_reference.md, the Python launcher",
            "begins": "vllm-router",
            "degrees": [],
            "flags": OF_ROUTER,
        },
    )
    for name, schema in schemas(folder).items():
        write(TO / "schemas" / f"{name}.json", schema)


def write(path: Path, made: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
