"""What devices of their own for prefill and decode are worth: jobs, each placed four ways.

    python -m tests.placing.apart [JOB …]      the table of docs/apart.md; some rows of it

Each job takes all of a cluster and serves as much as it can within its targets: with replicas that
do both phases, of however many sorts; and with those that the program chooses freely, caches
handed over at the speed of the links, and by the connector as measured. Columns, branches and
seconds are of the last.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from planner import Placement, Serve, Targets, Workload, load_architecture, load_topology, place
from planner.errors import NoPlanError, PlannerError
from planner.specs.files.reading import load_connector


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A model on a cluster, its requests and targets, and whose times.

    Args:
        weights: their format; as published where empty.
    """

    model: str
    cluster: str
    n_input: int
    n_output: int
    ttft_s: float
    tpot_s: float
    engine: str
    weights: str = ""

    @property
    def name(self) -> str:
        return f"{self.model} on {self.cluster} under {self.engine}"


def _jobs() -> tuple[Job, ...]:
    gpus = [
        ("llama-3.1-405b", "h100-nvl8-x8", 2048, 256, 2.0, 0.050, "bf16"),
        ("llama-3.1-70b", "h100-nvl8-x4", 4000, 500, 1.0, 0.030, "bf16"),
        ("qwen3-235b-a22b", "h200-nvl8-x4", 4000, 1000, 1.0, 0.030, "fp8"),
        ("deepseek-v3", "h200-nvl8-x8", 4000, 1000, 2.0, 0.040, ""),
    ]
    found = [
        Job(
            model=model,
            cluster=cluster,
            n_input=n_input,
            n_output=n_output,
            ttft_s=ttft_s,
            tpot_s=tpot_s,
            engine=engine,
            weights=weights,
        )
        for model, cluster, n_input, n_output, ttft_s, tpot_s, weights in gpus
        for engine in ("roofline", "vllm", "sglang", "trtllm")
    ]
    torus = Job(
        model="palm-62b",
        cluster="tpu-v4-4x4x4",
        n_input=128,
        n_output=512,
        ttft_s=1.0,
        tpot_s=0.030,
        engine="roofline",
        weights="int8",
    )
    return (*found, torus)


JOBS = _jobs()


def placed(job: Job, **roles: object) -> Placement | None:
    """The placement that serves most; None where none keeps the targets."""
    model = load_architecture(job.model)
    wish = Serve(model=model, weights_formats=(job.weights,) if job.weights else None)
    try:
        return place(
            load_topology(job.cluster),
            wish,
            engine=job.engine,
            workload=Workload(n_input_tokens=job.n_input, n_output_tokens=job.n_output),
            targets=Targets(ttft_s=job.ttft_s, tpot_s=job.tpot_s),
            objective="throughput",
            aligned=job.cluster.startswith("tpu"),
            **roles,
        )
    except NoPlanError:
        return None


def row(job: Job) -> str:
    """One line of the table."""
    cells = [job.name]
    first = None
    for connector in (None, "wire", "nixl"):
        roles = (
            {} if connector is None else {"roles": "free", "connector": load_connector(connector)}
        )
        began_s = time.process_time()
        try:
            found = placed(job, **roles)
        except PlannerError as error:
            return " | ".join([*cells, str(error).splitlines()[0][:80]])
        took_s = time.process_time() - began_s
        if found is None:
            cells.append("none")
            continue
        rate = found.output_tokens_per_s / job.n_output
        first = first or rate
        proof = found.certificate
        roles_used = sorted({one.role for one in found.recipes})
        cells.append(
            f"{rate:.2f} ({rate / first - 1:+.1%}, {'+'.join(roles_used)}, {proof.status})"
        )
    cells.append(f"{proof.n_solved} columns, {proof.n_branches} branches, {took_s:.1f} s CPU")
    return " | ".join(cells)


def main(words: list[str]) -> None:
    for job in JOBS:
        if not words or any(word in job.name for word in words):
            print("|", row(job), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
