"""Have engines read the commands that start them, without a GPU and without torch.

python -m tests.launch.parsers vllm FOLDER < commands.jsonl

FOLDER has the packages of the engines, see docs/rules.md. Each line of stdin is an object
with a `command`, as `tests.launch.answers` prints them; one line each says what the engine's own
argument parser makes of it: `accepted`, or why not. With `--rules` instead, functions of the
engine's configuration are called with what a rule forbids, and with what it does not.

What the engine imports and is not there becomes a stand-in; so do parts of it that reach for the
device. The functions that are called are the engine's own.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import io
import json
import re
import shlex
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

PARTS = {
    "vllm": (
        *("vllm.platforms", "vllm.distributed", "vllm.v1.attention.backends", "vllm.v1.worker"),
        *("vllm.triton_utils", "vllm.compilation", "vllm.lora", "vllm.model_executor.kernels"),
        *("vllm.model_executor.layers.fused_moe", "vllm.model_executor.layers.attention"),
        *("vllm.model_executor.layers.linear", "vllm.model_executor.offloader"),
        *("vllm.model_executor.model_loader", "vllm.model_executor.models"),
    ),
    "sglang": (
        *("sglang.srt.platforms", "sglang.srt.hardware_backend", "sglang.srt.distributed"),
        *("sglang.kernels", "sglang.srt.layers", "sglang.srt.model_loader", "sglang.srt.models"),
    ),
}
"""Modules of the engine that reach for the device."""

OTHER_DEVICES = ("npu", "xpu", "musa", "hpu", "mps")
"""What torch has on other machines; it is asked for, and has to be missing."""


class StandIn:
    """Whatever is asked of it."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __call__(self, *given: Any, **named: Any) -> Any:
        decorates = len(given) == 1 and callable(given[0]) and not named
        return given[0] if decorates and not isinstance(given[0], StandIn) else StandIn()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return ()

    def __or__(self, other: object) -> StandIn:
        return self

    __ror__ = __or__

    def __getitem__(self, key: object) -> StandIn:
        return self

    def __iter__(self) -> Iterator[object]:
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __lt__(self, other: object) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> object:
        from pydantic_core import core_schema

        return core_schema.any_schema()


class ClassStandIn(type):
    """A class of a module that is not there: types of fields are made of it."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()

    def __or__(cls, other: object) -> Any:
        return cls

    __ror__ = __or__

    def __getitem__(cls, key: object) -> Any:
        return cls


class ModuleStandIn(types.ModuleType):
    has_classes = True

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "99.0"
        if name.startswith("__") or name in OTHER_DEVICES:
            raise AttributeError(name)
        is_class = name[:1].isupper() or name in ("dtype", "device")
        found: Any = StandIn()
        if self.has_classes and is_class:
            found = ClassStandIn(name, (StandIn,), {})
        setattr(self, name, found)
        return found


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stand-ins of some modules, or of all that are neither the engine's nor installed."""

    def __init__(self, engine: str, parts: Sequence[str] = ()) -> None:
        self.engine, self.parts = engine, parts

    def find_spec(
        self, name: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        top = name.partition(".")[0]
        if self.parts:
            stands_in = any(f"{name}.".startswith(f"{part}.") for part in self.parts)
        else:
            known = top == self.engine or top in sys.stdlib_module_names or top.startswith("_")
            stands_in = not (known or importlib.machinery.PathFinder.find_spec(top))
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if stands_in else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = ModuleStandIn(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: types.ModuleType) -> None: ...


def parser_of(engine: str, folder: str) -> argparse.ArgumentParser:
    """The argument parser of an engine whose packages are in a folder."""
    sys.path.insert(0, folder)
    sys.meta_path.insert(0, Finder(engine, PARTS[engine]))
    sys.meta_path.append(Finder(engine))
    if engine == "sglang":
        ModuleStandIn.has_classes = False
        package = types.ModuleType("sglang")  # without what it imports first
        package.__path__ = [f"{folder}/sglang"]
        sys.modules["sglang"] = package
        parser = argparse.ArgumentParser(prog="sglang.launch_server")
        importlib.import_module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
        return parser
    platforms: Any = importlib.import_module("vllm.platforms")
    platforms.current_platform = StandIn()
    platforms.current_platform.device_type = "cuda"
    own = importlib.import_module("vllm.utils.argparse_utils").FlexibleArgumentParser
    make = importlib.import_module("vllm.entrypoints.common.cli_args").make_arg_parser
    found: argparse.ArgumentParser = make(own(prog="vllm serve"))
    return found


def words_of(command: str) -> list[str]:
    """What the engine's parser reads of a command, as the first node runs it."""
    line = command.replace('$([ "$NODE_RANK" = 0 ] || echo --headless)', "")
    line = re.sub(r"\$\(\((\d+) \* NODE_RANK\)\)", "0", line)
    line = line.replace("$NODE_RANK", "0").replace("$HEAD", "10.0.0.1")
    words = shlex.split(line)
    start = words.index("serve" if "serve" in words else "sglang.launch_server")
    return words[start + 1 :]


class Values(types.SimpleNamespace):
    """Named values, and nothing of what is not named."""

    def __getattr__(self, name: str) -> bool:
        if name.startswith("__"):
            raise AttributeError(name)
        return False


def function_in(path: str, name: str, **known: object) -> Callable[..., Any]:
    """A function of a file that cannot be imported, with what it knows of its module."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    found = next(it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef) and it.name == name)
    found.decorator_list, found.returns = [], None
    for one in found.args.args + found.args.kwonlyargs:
        one.annotation = None
    exec(compile(ast.Module([found], []), path, "exec"), known)
    return known[name]  # type: ignore[return-value]


Calls = dict[str, tuple[Callable[[Any], object], object, object]]
"""By rule: a function of the engine, what the rule forbids, and what it does not."""


def refusals_of(engine: str, folder: str, parser: argparse.ArgumentParser) -> Calls:
    """What an engine refuses before it needs a device."""
    return _of_vllm(folder, parser) if engine == "vllm" else _of_sglang(parser)


def _of_vllm(folder: str, parser: argparse.ArgumentParser) -> Calls:
    from pydantic import TypeAdapter

    config = {
        name: importlib.import_module(f"vllm.config.{name}")
        for name in ("cache", "model", "parallel", "scheduler", "speculative")
    }
    model, layers = config["model"].ModelConfig, f"{folder}/vllm/model_executor/layers"
    ratio = function_in(f"{folder}/vllm/distributed/kv_transfer/kv_connector/utils.py", "tp_ratio")
    blocks = function_in(
        f"{layers}/quantization/utils/fp8_utils.py", "validate_fp8_block_shape", logger=StandIn()
    )

    def verify(asked: dict[str, int]) -> object:
        own = Values(
            model_arch_config=Values(total_num_attention_heads=64),
            registry=Values(is_pp_supported_model=lambda *_: False),
            multimodal_config=None,
        )
        own._verify_with_expert_parallelism = lambda: model._verify_with_expert_parallelism(own)
        degrees = dict.fromkeys(("tensor", "pipeline", "decode_context", "prefill_context"), 1)
        sizes = {f"{name}_parallel_size": n for name, n in (degrees | asked).items()}
        return model.verify_with_parallel_config(own, Values(**sizes, **asked))

    def shape(n: int) -> object:
        return blocks(Values(tp_size=8), 8192, 16 * n, 8192, [n, n], [128, 128])

    def nodes(n: int) -> object:
        own = Values(nnodes=n, data_parallel_size=2, data_parallel_size_local=1)
        return config["parallel"].ParallelConfig.nnodes_within_dp.fget(own)

    def scheduled(n: int) -> object:
        return config["scheduler"].SchedulerConfig(
            max_num_seqs=n, max_num_batched_tokens=256, max_model_len=100, is_encoder_decoder=False
        )

    def method(name: str) -> object:
        return TypeAdapter(config["speculative"].SpeculativeMethod).validate_python(name)

    return {
        "equal-heads": (verify, {"tensor": 3}, {"tensor": 4}),
        "groups-of-experts": (verify, {"enable_expert_parallel": 1}, {}),
        "stages-of-state-models": (verify, {"pipeline": 2}, {"pipeline": 1}),
        "experts-over-all-or-none": (
            parser.parse_args,
            ["m", "--expert-parallel-size", "2"],
            ["m", "--enable-expert-parallel"],
        ),
        "blocks-of-weights": (shape, 3585, 3584),
        "tensor-degrees-of-pairs": (
            lambda n: ratio(Values(tp_size=2), n), 3, 4
        ),
        "caches": (lambda name: config["cache"].CacheConfig(cache_dtype=name), "int8", "fp8"),
        "drafters": (method, "medusa", "eagle"),
        "room-for-the-batch": (scheduled, 257, 256),
        "equal-shares-of-nodes": (nodes, 3, 4),
    }  # fmt: skip


def _of_sglang(parser: argparse.ArgumentParser) -> Calls:
    hooks = importlib.import_module("sglang.srt.arg_groups.validation_hook")
    adapters: Any = importlib.import_module("sglang.srt.arg_groups.lora_hook")
    adapters.check_lora_server_args = StandIn()  # there are none
    overrides = importlib.import_module("sglang.srt.arg_groups.overrides")
    drafts = importlib.import_module("sglang.srt.speculative.spec_info").SpeculativeAlgorithm

    def checked(asked: dict[str, object]) -> object:
        usual = vars(parser.parse_args(["--model-path", "m", "--tp-size", "4"]))
        resolved = {"served_model_name": "m", "page_size": 64, "chunked_prefill_size": 2048}
        resolved["disable_overlap_schedule"] = True
        return hooks.check_server_args(Values(**{**usual, **resolved, **asked}))

    def dealt(n: int) -> object:
        said = overrides._a2a_ep_size(Values(moe_a2a_backend="deepep", ep_size=n, tp_size=8))
        if said["ep_size"] != n:
            raise ValueError(f"is adjusted to {said['ep_size']}")
        return said

    return {
        "experts-over-all-that-exchange": (dealt, 4, 8),
        "drafts-in-one-stage": (
            checked,
            {"pp_size": 2, "speculative_algorithm": "EAGLE"},
            {"pp_size": 2},
        ),
        "drafters": (drafts.from_string, "MEDUSA", "EAGLE"),
        "caches": (
            lambda name: parser.parse_args(["--model-path", "m", "--kv-cache-dtype", name]),
            "int8",
            "bfloat16",
        ),
        "chunks-of-pages": (checked, {"chunked_prefill_size": 2000}, {}),
        "equal-shares-of-nodes": (
            checked,
            {"pp_size": 3, "nnodes": 5},
            {"pp_size": 2, "nnodes": 2},
        ),
        "servers-on-nodes": (checked, {"dp_size": 4, "nnodes": 2}, {"dp_size": 4}),
    }


def said_of(call: Callable[[], object]) -> str:
    """Why the engine refuses; empty where it does not."""
    with contextlib.redirect_stderr(io.StringIO()) as told:
        try:
            call()
        except SystemExit:
            return told.getvalue().strip().rpartition("error: ")[2] or "ends"
        except (AssertionError, NotImplementedError, ValueError) as error:
            return " ".join(f"{type(error).__name__}: {error}".split())
    return ""


def main(argv: Sequence[str]) -> int:
    engine, folder, *more = argv
    parser = parser_of(engine, folder)
    if more == ["--rules"]:
        for rule, (call, forbidden, free) in refusals_of(engine, folder, parser).items():
            said = [said_of(lambda: call(one)) for one in (forbidden, free)]  # noqa: B023
            print(json.dumps({"rule": rule, "forbidden": said[0], "free": said[1]}))
        return 0
    refused = 0
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("engine", engine) == engine and asked["command"]:
            words = words_of(asked["command"])
            said = said_of(lambda: parser.parse_args(words))  # noqa: B023 called at once
            refused += bool(said)
            print(json.dumps({"command": asked["command"], "said": said or "accepted"}))
    return int(refused > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
