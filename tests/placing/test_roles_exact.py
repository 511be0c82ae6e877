"""Replicas of all roles on small graphs, against every way to put them on the free devices."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from planner import NoPlanError, Serve, SolverOptions, Targets, Workload, load_architecture, place
from planner.estimates.serving.memory import handed_bytes
from planner.specs.files.reading import load_connector

MODEL = load_architecture("llama-3.1-8b")
WORKLOAD = Workload(n_input_tokens=1500, n_output_tokens=300)
NIC_BYTES_PER_S = 4e9
CACHE_BYTES = handed_bytes(MODEL, "bf16", n_tokens=1500)
SIZES = (1, 2, 4)
HEAD = (
    "name,model,kind,devices,role,engine,rate_req_s,ttft_ms,tpot_ms,batch,weights,kv,input,output"
)


def graph(rng) -> nx.Graph:
    """Two servers of four H100 on a leaf each, some devices busy, links up of some width."""
    found = nx.Graph()
    up = float(rng.choice([2e8, 6e8, 2e9, 1e11]))
    found.add_node("spine", kind="switch")
    for leaf in range(2):
        found.add_node(f"leaf{leaf}", kind="switch")
        found.add_edge(f"leaf{leaf}", "spine", bytes_per_s=up, latency_s=1e-6, tier="spine")
        found.add_node(f"n{leaf}/switch", kind="switch")
        for k in range(4):
            name, busy = f"n{leaf}/g{k}", rng.random() < 0.25
            found.add_node(name, kind="device", device="h100-sxm", state="busy" if busy else "free")
            found.add_edge(
                name, f"n{leaf}/switch", bytes_per_s=4e11, latency_s=1e-6, tier="scale-up"
            )
            found.add_edge(
                name, f"leaf{leaf}", bytes_per_s=NIC_BYTES_PER_S, latency_s=1e-6, tier="scale-out"
            )
    return found


def table(rng, path):
    """Five rows of replicas of one engine, of random sizes, roles and rates."""
    roles = ["together", "prefill", "prefill", "decode", "decode"]
    rows = []
    for i, role in enumerate(roles):
        n_devices = int(rng.choice(SIZES))
        rate = round(float(rng.uniform(0.5, 3.0)) * n_devices * (1 if role == "together" else 2), 3)
        ttft_ms = int(rng.integers(50, 400))
        rows.append((role, n_devices, rate, ttft_ms / 1e3))
        first, tpot = (0 if role == "decode" else ttft_ms), (0 if role == "prefill" else 20)
        cells = f"{first or ''},{tpot or ''},{8},bf16,bf16,1500,300"
        path.write_text(path.read_text() if path.exists() else HEAD + "\n")
        with path.open("a") as file:
            file.write(f"row{i},llama-3.1-8b,h100-sxm,{n_devices},{role},vllm,{rate},{cells}\n")
    return rows


def _packings(rows, free):
    """Counts of rows that fit a server with so many free devices."""
    most = [free // n_devices for _, n_devices, _, _ in rows]
    for counts in itertools.product(*(range(n + 1) for n in most)):
        if sum(n * row[1] for n, row in zip(counts, rows, strict=True)) <= free:
            yield counts


def _rates(rows, packings):
    """Of each packing: requests a second together, read, and written, (P, 3)."""
    found = []
    for counts in packings:
        rates = dict.fromkeys(("together", "prefill", "decode"), 0.0)
        for n, (role, n_devices, rate, _) in zip(counts, rows, strict=True):
            own = (
                rate if role == "together" else min(rate, n_devices * NIC_BYTES_PER_S / CACHE_BYTES)
            )
            rates[role] += n * own
        found.append(list(rates.values()))
    return np.array(found)


def best(pool, rows):
    """The most requests a second; of flows over two leaves the least cut says how many go."""
    (a, b) = (
        sum(pool.nodes[f"n{leaf}/g{k}"]["state"] == "free" for k in range(4)) for leaf in range(2)
    )
    up = pool.edges["leaf0", "spine"]["bytes_per_s"] / CACHE_BYTES
    if not (a and b):
        up = np.inf  # there is one leaf that has anything
    left, right = (_rates(rows, list(_packings(rows, free))) for free in (a, b))
    together = left[:, None, 0] + right[None, :, 0]
    read = left[:, None, 1], right[None, :, 1]
    written = left[:, None, 2], right[None, :, 2]
    sent = sum(np.minimum(p, up + d) for p, d in zip(read, written, strict=True))
    taken = sum(np.minimum(d, up + p) for p, d in zip(read, written, strict=True))
    flow = np.minimum(sent, taken)
    return float((together + flow).max())


@pytest.mark.parametrize("seed", range(24))
def test_no_way_to_place_serves_more(seed, tmp_path):
    rng = np.random.default_rng(seed)
    pool, rows = graph(rng), table(rng, tmp_path / "rows.csv")
    free = sum(at.get("state") == "free" for _, at in pool.nodes(data=True))
    asked = {
        "engine": f"table:{tmp_path / 'rows.csv'}",
        "workload": WORKLOAD,
        "targets": Targets(ttft_s=60.0),
        "objective": "throughput",
        "roles": "free",
        "connector": load_connector("wire"),
    }
    true = best(pool, rows) if free else 0.0
    reached = []
    for solver in ("highs", "cpsat"):
        try:
            options = SolverOptions(solver=solver)
            found = place(pool, Serve(model=MODEL), options=options, **asked)
        except NoPlanError:
            reached.append(0.0)
            continue
        assert found.certificate.status == "optimal"
        reached.append(found.output_tokens_per_s / 300)
    assert reached == pytest.approx([true, true], rel=1e-6, abs=1e-9)
