"""Tables of made-up kernels, whose constants are known."""

import csv

import numpy as np
import pytest

from planner.equations.kernels.gemm import gemm_s

RATES = {"peak_flop_per_s": 296e12, "hbm_bytes_per_s": 4e12}
TRUE = {"floor_s": 6e-6, "compute_fraction": 0.8, "memory_fraction": 0.7, "exponent": 3.0}
HEADER = ("family", "format", "m", "n", "k", "weight_bytes", "input_bytes", "latency_us")


def gemm_rows(shapes=((1024, 4096), (4096, 4096), (1024, 2048), (2048, 6144), (5120, 5120))):
    """(m, n, k, seconds) of products that `TRUE` describes exactly, in fp8."""
    for k, n in shapes:
        for m in (1, 16, 64, 256, 1024, 4096):
            time = gemm_s(m, n, k, weight_bytes=1, input_bytes=1, **RATES, **TRUE)
            yield m, n, k, float(time)


@pytest.fixture(name="plain")
def _plain(tmp_path):
    """Writes rows as a user's own table; each may have its time changed."""

    def write(name="kernels.csv", *, scale=lambda place: 1.0):
        path = tmp_path / name
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(HEADER)
            for place, (m, n, k, seconds) in enumerate(gemm_rows()):
                time_us = seconds * 1e6 * scale(place)
                writer.writerow(("gemm", "fp8", m, n, k, 1, 1, f"{time_us:.6g}"))
        return path

    return write


@pytest.fixture(name="bench")
def _bench(tmp_path):
    """A folder as InferSim's, of one device, with every quirk that its own has."""

    def write(place, text):
        path = tmp_path / "bench_data" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    peak = 148e12
    lines = ["dtype,kv_dtype,batch_size,kv_len,latency_us,mfu"]
    for batch in (16, 32, 64, 128):
        for context in (1024, 4096, 16384):
            seconds = 20e-6 + batch * context * 2 * 4 * 128 * 2 / 3e12
            mfu = 4 * batch * context * 32 * 128 / peak / seconds
            written_us = seconds * 1e6 * (2 if (batch, context) == (64, 4096) else 1)
            lines.append(f"bf16,bf16,{batch},{context},{written_us:.4f},{mfu:.4f}")
    write("mha/decode/h20/32-4-128.csv", "\n".join(lines) + "\n")
    write("mha/decode/h20/64-2-128.csv", "bf16,bf16,1,1024,25.5,0.009\n")
    write("gdn/decode/h20/4-16-128-32-128.csv", "batchsize,conv\n1,8\n")
    write("gdn/decode/h20/4-16-128-64-128.csv", "batchsize,conv\n1,8\n")
    write("gemm/h800/data.csv", "m,k,n,latency_us,mfu\n16,2048,6144,10.6,0.1\n")
    write("grouped_gemm/decode/h20/data.csv", grouped_text())
    return tmp_path / "bench_data"


def grouped_text():
    """One row with one token an expert, one whose experts do not add up, and four sound ones.

    The sound ones ran three quarters of the tokens that they name, which only their shares of
    the peak tell; the intermediate size of 1560 ran as 1664.
    """
    names = "num_experts,num_gpus,num_local_experts,topk,hidden_size,intermediate_size"
    lines = [
        f"{names},batch_size_per_gpu,tokens_per_expert,up_proj_us,up_mfu,down_proj_us,down_mfu"
    ]
    lines += ["96,1,96,8,2048,1560,16,1,166.63,0.011,98.1,0.010"]
    lines += ["96,2,96,8,2048,1560,168,5,345.2,0.07,172.1,0.07"]
    for each in (64, 128, 256, 512):
        run = 0.75 * each * 4
        up_s, down_s = (2 * run * 2048 * 1664 * sides / (0.6 * 296e12) + 1e-5 for sides in (2, 1))
        up, down = (
            2 * run * 2048 * 1664 * sides / 296e12 / time
            for sides, time in ((2, up_s), (1, down_s))
        )
        times = f"{up_s * 1e6:.4f},{up:.6f},{down_s * 1e6:.4f},{down:.6f}"
        lines.append(f"96,24,4,8,2048,1560,{each // 2},{each},{times}")
    return "\n".join(lines) + "\n"


def close(values, wanted, rel=0.02):
    return np.asarray(values) == pytest.approx(np.asarray(wanted), rel=rel)
