"""The committed rows, from the files that they were published in.

    python -m research.sets.gathering SILICON INFERENCEX TENSORRT

writes `series.csv`, `served.csv` and `saturated.csv` of `tests/data/serving`. SILICON is
`silicon_sample.csv` of aiconfigurator-core 0.12.0; INFERENCEX a folder with `benchmarks.json`
and `benchmarks-history.json` of each published version of the fixtures of InferenceX-app, in
subfolders; TENSORRT is `perf-overview.md` of TensorRT-LLM v1.0. No prediction is looked at.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from research.sets.rows import SATURATED, SERIES, SERVED

Fields = dict[str, Any]

GPUS = {
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200",
    "b200_sxm": "b200",
    "b300_sxm": "b300",
    "H100": "h100-sxm",
    "H200": "h200",
    "B200": "b200",
    "GB200": "gb200",
}
"""This project's names of devices, where they differ from a source's."""

MODELS = {
    "meta-llama/Llama-3.1-8B-Instruct": "Llama-3.1-8B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B": "Llama-3.1-70B",
    "Qwen/Qwen3-32B": "Qwen3-32B",
    "nvidia/Qwen3-32B-NVFP4": "Qwen3-32B",
    "deepseek-ai/DeepSeek-R1": "DeepSeek-V3",
    "deepseek-ai/DeepSeek-V3": "DeepSeek-V3",
    "nvidia/DeepSeek-R1-NVFP4": "DeepSeek-V3",
    "nvidia/DeepSeek-V3.1-NVFP4": "DeepSeek-V3",
    "moonshotai/Kimi-K2.5": "Kimi-K2.5",
    "zhipuai/GLM-5": "GLM-5",
    "MiniMaxAI/MiniMax-M2.5": "MiniMax-M2.5",
    "Qwen/Qwen3-235B-A22B-FP8": "Qwen3-235B-A22B",
    "Qwen/Qwen3.5-397B-A17B": "Qwen3.5-397B-A17B",
    "openai/gpt-oss-120b": "gpt-oss-120b",
    "Llama 4 Scout": "Llama-4-Scout",
    "Llama 4 Maverick": "Llama-4-Maverick",
    "Llama 3.3 70B": "Llama-3.1-70B",
    "Llama 3.1 405B": "Llama-3.1-405B",
    "Llama 3.1 8B": "Llama-3.1-8B",
    "Qwen3-235B-A22B": "Qwen3-235B-A22B",
    "Qwen3-30B-A3B": "Qwen3-30B-A3B",
}
"""Architectures, as `tests/specs/huggingface/configs` names them, of checkpoints."""

REQUESTS = {
    (128, 128): 30_000,
    (128, 2048): 3000,
    (128, 4096): 1500,
    (500, 2000): 3000,
    (1000, 1000): 3000,
    (1000, 2000): 1500,
    (2048, 128): 3000,
    (2048, 2048): 1500,
    (5000, 500): 1500,
    (20_000, 2000): 1000,
}
"""Requests of a run of TensorRT-LLM's page, by input and output lengths: its own table."""


def of_silicon(path: Path) -> Iterator[Fields]:
    """Aggregated serving of the sample: a row and its series in one.

    Its exports of a day and its dumps of a database are InferenceX's, and so are the tables of
    two models' gaps: they repeat them.
    """
    with path.open(encoding="utf-8", newline="") as file:
        entries = list(csv.DictReader(file))
    for number, entry in enumerate(entries, 1):
        if entry["mode"] == "agg" and entry["model_path"] in MODELS:
            yield _of_silicon(number, entry)


def _of_silicon(number: int, entry: dict[str, str]) -> Fields:
    stated = dict(re.findall(r"(\w+)=([^;]*)", entry["silicon_data_source"]))
    stated_source = stated.get("source_file", entry["silicon_data_source"].split(";")[0])
    source = stated_source.rpartition("/data/")[2]
    is_swept = source.startswith(("db-dump", "20")) or "aic_database_mode" in stated
    # analyses of gaps have sweeps' own times again, rounded
    is_swept = is_swept or source.endswith("-gap-analysis.csv")
    trailing = re.findall(r"; (\w[^=;]*:[^=;]*)$", entry["silicon_data_source"])
    degrees = _degrees(entry)
    n_together = float(entry["batch_size"]) * degrees["data"]
    n_in_flight = float(stated.get("silicon_concurrency") or n_together)
    return {
        "set": "S",
        "row": f"S{number}",
        "checkpoint": entry["model_path"],
        "gpu": GPUS.get(entry["system"], entry["system"]),
        "engine": entry["backend"],
        "version": entry["backend_version"],
        "date": stated.get("measured", "")[:10],
        "weights": entry["gemm_quant_mode"],
        "experts": entry["moe_quant_mode"],
        "statistic": "mean",
        "harness": "InferenceX" if is_swept else "Dynamo" if "gtl_task_id" in stated else "",
        "image": stated.get("image") or "".join(trailing),
        "source": source,
        "n_input": entry["isl"],
        "n_output": entry["osl"],
        "in_flight": f"{n_in_flight:.0f}",
        "servers": f"{1 if is_swept else n_in_flight / n_together:.0f}",
        **degrees,
        "ttft_ms": f"{float(entry['silicon_ttft_ms']):.6g}",
        "tpot_ms": f"{float(entry['silicon_tpot_ms']):.6g}",
        "configuration": stated.get("config_id", ""),
    }


def _degrees(entry: dict[str, str]) -> dict[str, int]:
    """As they ran: sweeps' TP, or attention DP, was filled in as TP of the server × EP."""
    tensor, data, expert_tensor, expert = (
        int(entry[key] or 1) or 1
        for key in ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    )
    if expert > 1 and expert_tensor == expert and max(tensor, data) == expert * expert:
        tensor, data = min(tensor, expert), min(data, expert)
        expert_tensor = 1
    return {"tensor": tensor, "data": data, "expert_tensor": expert_tensor, "expert": expert}


def of_inferencex(folder: Path) -> Iterator[Fields]:
    """Sweeps of DeepSeek-R1 on one server, those that draft too; each measurement once."""
    found: dict[tuple[object, ...], Fields] = {}
    for path in sorted(folder.glob("*/benchmarks*.json")):
        for entry in json.loads(path.read_text(encoding="utf-8")):
            if entry["model"] == "dsr1" and not entry["disagg"] and not entry["is_multinode"]:
                one = _of_inferencex(entry)
                key = tuple(value for name, value in one.items() if name not in _LATER)
                kept = found.setdefault(key, one)
                kept.update({name: one[name] for name in _LATER if one[name]})
    ordered = sorted(found.values(), key=lambda one: [str(one[name]) for name in sorted(one)])
    for number, one in enumerate(ordered, 1):
        yield {**one, "row": f"X{number}"}


_LATER = ("image", "version", "mean_ttft_ms", "mean_tpot_ms")
"""What the older exports of a measurement lack."""


def _of_inferencex(entry: Fields) -> Fields:
    n_tensor, n_expert = entry["decode_tp"], entry["decode_ep"]
    is_by_request = entry["decode_dp_attention"]
    metrics, image = entry["metrics"], entry.get("image") or ""

    def ms(name: str) -> str:
        return f"{1e3 * metrics[name]:.6g}" if name in metrics else ""

    is_amd = entry["hardware"].startswith("mi")
    weights = {"fp8": "fp8_block", "fp4": "mxfp4" if is_amd else "nvfp4"}[entry["precision"]]
    version = re.findall(r":v?([0-9][\w.]*)", image)
    return {
        "set": "X",
        "checkpoint": "deepseek-ai/DeepSeek-R1",
        "gpu": entry["hardware"],
        "engine": {"trt": "trtllm"}.get(entry["framework"], entry["framework"]),
        "version": version[0] if version else "",
        "date": entry["date"],
        "weights": weights,
        "experts": weights,
        "statistic": "median",
        "harness": "InferenceX",
        "image": image,
        "source": "benchmarks.json",
        "n_input": entry["isl"],
        "n_output": entry["osl"],
        "in_flight": entry["conc"],
        "servers": 1,
        "tensor": 1 if is_by_request else n_tensor,
        "data": n_tensor if is_by_request else 1,
        "expert_tensor": n_tensor // n_expert,
        "expert": n_expert,
        "ttft_ms": ms("median_ttft"),
        "tpot_ms": ms("median_tpot"),
        "mean_ttft_ms": ms("mean_ttft"),
        "mean_tpot_ms": ms("mean_tpot"),
        "drafts": entry["spec_method"],
    }


def label_drafts(silicon: list[Fields], inferencex: list[Fields]) -> None:
    """Whether rows of the sample draft, where InferenceX's own exports say.

    A measurement that both have is told by its mean times, and tells those that repeat it or have
    its configuration's number. A sweep of one day is told by the rows that the exports have of it,
    where all say the same: otherwise it is `either`.
    """
    sweeps: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for one in inferencex:
        sweeps[_sweep(one)].add(one["drafts"])
    labels = {
        (*_load(one), one["mean_ttft_ms"], one["mean_tpot_ms"]): one["drafts"]
        for one in inferencex
        if one["mean_tpot_ms"]
    }
    numbered = {
        one["configuration"]: labels[_measured(one)]
        for one in silicon
        if one["configuration"] and _measured(one) in labels
    }
    for one in silicon:
        one["drafts"] = ""
        if MODELS[one["checkpoint"]] == "DeepSeek-V3" and one["harness"] == "InferenceX":
            said = sweeps.get(_sweep(one), set())
            of_day = "either" if len(said) > 1 else "".join(said)
            of_number = numbered.get(one["configuration"], of_day)
            one["drafts"] = labels.get(_measured(one), of_number)


def _sweep(one: Fields) -> tuple[str, ...]:
    bits = "4" if one["weights"] in ("nvfp4", "mxfp4") else "8"
    return (one["gpu"], one["engine"], bits, one["date"])


def _load(one: Fields) -> tuple[str, ...]:
    names = ("gpu", "engine", "n_input", "n_output", "in_flight")
    return tuple(str(one[name]) for name in names)


def _measured(one: Fields) -> tuple[str, ...]:
    return (*_load(one), one["ttft_ms"], one["tpot_ms"])


def of_tensorrt(path: Path) -> Iterator[Fields]:
    """Saturated throughput, as the page's tables have it; devices that are not described left."""
    model, columns, number = "", [], 0
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#### "):
            model, columns = line[5:].strip(), []
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| Sequence Length"):
            columns = [re.fullmatch(r"(\w+)<br/>TP(\d+) \((\w+)\)", cell) for cell in cells[1:]]
        elif re.match(r"\| \d+/\d+ ", line):
            n_input, n_output = map(int, cells[0].split("/"))
            for column, cell in zip(columns, line.strip()[1:-1].split("|")[1:], strict=True):
                if column and cell.strip():
                    number += 1
                    yield _of_tensorrt(number, model, column, n_input, n_output, cell)


def _of_tensorrt(
    number: int, model: str, column: re.Match[str], n_input: int, n_output: int, cell: str
) -> Fields:
    gpu, tensor, precision = column.groups()
    weights = {"FP8": "fp8", "FP4": "nvfp4"}[precision]
    return {
        "set": "T",
        "row": f"T{number}",
        "checkpoint": model,
        "gpu": GPUS[gpu],
        "engine": "trtllm",
        "version": "1.0",
        "date": "",
        "weights": weights,
        "experts": weights,
        "statistic": "total",
        "harness": "trtllm-bench",
        "image": "",
        "source": "perf-overview.md",
        "n_input": n_input,
        "n_output": n_output,
        "n_requests": REQUESTS[n_input, n_output],
        "tensor": tensor,
        "output_tokens_per_s": cell.strip().replace(",", ""),
    }


def write(found: list[Fields]) -> None:
    """Series are numbered in order of their fields."""
    names = [name for name in SERIES.columns if name not in ("series", "model")]
    keys = {tuple(str(one[name]) for name in names) for one in found}
    numbers = {key: number for number, key in enumerate(sorted(keys), 1)}
    for one in found:
        one["series"] = numbers[tuple(str(one[name]) for name in names)]
    of_series = {one["series"]: {**one, "model": MODELS[one["checkpoint"]]} for one in found}
    SERIES.write([of_series[number] for number in sorted(of_series)])
    SERVED.write([one for one in found if one["set"] != "T"])
    SATURATED.write([one for one in found if one["set"] == "T"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m research.sets.gathering")
    for name in ("silicon", "inferencex", "tensorrt"):
        parser.add_argument(name, type=Path)
    asked = parser.parse_args()
    silicon, swept = list(of_silicon(asked.silicon)), list(of_inferencex(asked.inferencex))
    label_drafts(silicon, swept)
    alone = [one for one in swept if one["drafts"] == "none"]
    write([*silicon, *alone, *of_tensorrt(asked.tensorrt)])


if __name__ == "__main__":
    main()
