"""`plan measure`: which kernels, how they are timed, and that calibration finds them again."""

from __future__ import annotations

import csv
import sys
import tomllib
from pathlib import Path

import pytest

from planner.commands.cli import main
from planner.equations.collectives import KINDS
from planner.errors import RequestError
from planner.specs.files.places import shipped_file
from planner.specs.files.reading import load_architecture, load_cluster, load_device
from planner_workshop.measuring import collectives, pytorch
from planner_workshop.measuring.kernel_cases import KernelCase, wanted_collectives, wanted_kernels
from planner_workshop.measuring.pytorch import formats_of, unlike
from planner_workshop.measuring.timing import STEADY, measure, timed
from tests.calibration.synthetic_bench import COLD_S, RATES, TRUE, SyntheticBench

DENSE, MIXTURE, LATENT = "llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3"


def products(*sizes):
    return [
        KernelCase(
            family="gemm",
            format="bf16",
            dimensions={"m": m, "n": 4096.0, "k": 4096.0, "weight_bytes": 2.0, "input_bytes": 2.0},
        )
        for m in sizes
    ]


def run(capsys, *words):
    code = main([*map(str, words)])
    return code, *capsys.readouterr()


@pytest.fixture(name="bench")
def _bench(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    bench = SyntheticBench()
    monkeypatch.setattr(pytorch, "open_bench", lambda backend: bench)
    return bench


def test_any_beginning_of_the_list_has_every_family_and_large_and_small_ones():
    models = [load_architecture(DENSE), load_architecture(MIXTURE)]
    kernels = wanted_kernels(models, (1, 4), ("bf16",)).kernels
    assert len({one.name for one in kernels}) == len(kernels)
    first = kernels[:48]
    assert {one.family for one in first} == {one.family for one in kernels}
    tokens = [one.dimensions["m"] for one in first if one.family == "gemm"]
    assert min(tokens) <= 16
    assert max(tokens) >= 512


def test_kernels_are_those_of_the_models_passes():
    model = load_architecture(DENSE)
    kernels = wanted_kernels([model], (4,), ("bf16",)).kernels
    shapes = {(one.dimensions["n"], one.dimensions["k"]) for one in kernels if one.family == "gemm"}
    # queries, keys and values; their output; gate and up; down; head: a fourth of each
    assert shapes == {
        (1536, 4096),
        (4096, 1024),
        (7168, 4096),
        (4096, 3584),
        (32064, 4096),
    }
    heads = {one.dimensions["n_heads"] for one in kernels if one.family == "decode_attention"}
    assert heads == {8}


def test_families_that_nothing_times_are_named():
    assert "latent_decode" in wanted_kernels([load_architecture(LATENT)], (8,), ("bf16",)).others


def test_nothing_is_timed_while_clocks_are_cold():
    bench = SyntheticBench()
    kernels = products(1, 64, 1024, 8192)
    found = measure(bench, kernels, budget_s=60)
    assert COLD_S <= found.warm_up_s < 5
    for one in found.timed:
        true = kernel_s(one.kernel)
        assert one.seconds == pytest.approx(true, rel=0.01)


def kernel_s(kernel):
    from planner.equations.kernels import FAMILIES

    return float(FAMILIES[kernel.family].seconds(kernel.dimensions, RATES, TRUE[kernel.family]))


def test_a_kernel_that_larger_ones_contradict_is_timed_again_and_stands_if_it_was_disturbed():
    kernels = products(1, 64, 1024, 8192)
    once = SyntheticBench(slow_once=frozenset({kernels[0].name}))
    found = measure(once, kernels, budget_s=60)
    assert found.n_again == 1
    assert once.prepared[kernels[0].name] == 2
    assert found.timed[0].seconds == pytest.approx(kernel_s(kernels[0]), rel=0.01)
    always = measure(SyntheticBench(slow=frozenset({kernels[0].name})), kernels, budget_s=60)
    assert [one.kernel for one in always.untimed] == kernels[:1]
    assert "half as long again as a larger one" in always.untimed[0].reason


def test_a_kernel_that_spreads_is_timed_again_and_named():
    kernels = products(64, 1024, 8192)
    found = measure(SyntheticBench(shaky=frozenset({kernels[1].name})), kernels, budget_s=60)
    assert [one.kernel for one in found.unsteady] == kernels[1:2]
    assert found.unsteady[0].spread > STEADY
    assert found.n_again == 1
    assert all(one.spread < 0.03 for one in found.timed if one.kernel != kernels[1])


def test_what_has_no_time_left_is_said_and_the_budget_kept():
    kernels = products(*range(1, 4000))
    bench = SyntheticBench()
    found = measure(bench, kernels, budget_s=10)
    assert found.elapsed_s <= 10
    assert 0 < len(found.timed) < len(kernels)
    assert len(found.timed) + len(found.untimed) == len(kernels)
    assert {one.reason for one in found.untimed} == {"no time was left"}


def test_one_kernel_does_not_take_the_budget():
    kernels = products(1, 64, 1e9)
    found = measure(SyntheticBench(), kernels, budget_s=60)
    assert [one.reason for one in found.untimed] == ["would take more than 5% of the time"]


def test_calibration_finds_the_machine_again_and_predictions_use_it(bench, capsys, tmp_path):
    """From the kernels of a model to its times: the whole way, on a machine that is known."""
    words = ("--device", "h200", "--model", DENSE, "--tp", "1", "--output", "k.csv")
    code, out, _ = run(capsys, "measure", *words)
    assert code == 0
    assert "h200, NVIDIA H200, closed forms 1.0" in out
    (tmp_path / "kernels").mkdir()
    file = tmp_path / "kernels/h200-own.toml"
    shipped = run(capsys, "predict", "--model", DENSE, "--device", "h200", "--quiet")
    code, out, err = run(
        capsys, "calibrate", "k.csv", "--device=h200", "--engine=vllm", "--output", file
    )
    assert code == 0, err
    entries = {one["family"]: one for one in tomllib.loads(file.read_text())["kernel"]}
    assert entries.keys() == TRUE.keys() - {*KINDS}
    for family, one in entries.items():
        assert one["fit"]["median_error"] < 0.02, family
        assert "NVIDIA H200, closed forms 1.0" in one["fit"]["source"]
        for name in TRUE[family].keys() & {"memory_fraction", "floor_s", "kernel_s", "n_passes"}:
            assert one["constants"][name] == pytest.approx(TRUE[family][name], rel=0.1), name
    assert entries["gemm"]["constants"]["compute_fraction"] == pytest.approx(0.61, rel=0.03)
    own = run(capsys, "predict", "--model", DENSE, "--device", "h200", "--quiet")
    assert (own[0], shipped[0]) == (0, 0)
    assert own[1] != shipped[1]
    _, out, _ = run(capsys, "predict", "--model", DENSE, "--device", "h200", "--explain", "all")
    assert "k.csv, NVIDIA H200, closed forms 1.0" in " ".join(out.split())


def test_collectives_become_the_network_of_a_topology(bench, capsys, tmp_path, monkeypatch):
    def between(backend, n_gpus, *, budget_s):
        return measure(SyntheticBench(), wanted_collectives(n_gpus), budget_s=budget_s)

    monkeypatch.setattr(collectives, "measure_collectives", between)
    words = ("--device=h200", f"--model={DENSE}", "--tp=1", "--gpus=4", "--output=k.csv")
    code, out, _ = run(capsys, "measure", *words)
    assert code == 0
    assert "all_reduce" in out
    fit = ("k.csv", "--device=h200", "--engine=vllm", "--output=own.toml", "--network=net.toml")
    code, out, err = run(capsys, "calibrate", *fit)
    assert code == 0, err
    assert "and 8 collectives fitted" in out
    assert not {*KINDS} & {
        one["family"] for one in tomllib.loads(Path("own.toml").read_text())["kernel"]
    }
    shipped = shipped_file("topologies/h200-nvl8.toml").read_text()
    head, rest = shipped.split("[nodes.scale_up.measured.all_reduce]")
    head = head.replace('"h200-nvl8-x{n}"', '"mine-x{n}"').replace('"h200-nvl8-x', '"mine-x')
    tail = rest[rest.index("[nodes.scale_out]") :]
    Path("topologies").mkdir()
    Path("topologies/mine.toml").write_text(head + Path("net.toml").read_text() + "\n" + tail)
    measured = load_cluster("mine-x1").fabric.scale_up_measured
    true = TRUE["all_reduce"]
    for kind in KINDS:
        found = getattr(measured, kind)
        assert found.n_devices == (2, 4)
        assert found.short_latency_s == pytest.approx([true["short_latency_s"]] * 2, rel=0.05)
        assert found.long_bytes_per_s == pytest.approx([true["long_bytes_per_s"]] * 2, rel=0.05)
    asked = ("predict", "--model", DENSE, "--tp=4", "--quiet", "--topology")
    assert run(capsys, *asked, "mine-x1")[1] != run(capsys, *asked, "h200-nvl8-x1")[1]


def test_a_file_that_nothing_is_fitted_for_is_refused(bench, capsys):
    words = ("--device=h200", f"--model={DENSE}", "--tp=1", "--output=k.csv", "--budget=5s")
    assert run(capsys, "measure", *words)[0] == 0
    fit = ("k.csv", "--device=h200", "--engine=own", "--network=net.toml")
    code, _, err = run(capsys, "calibrate", *fit)
    assert code == 2
    assert "no collective is in the tables" in err
    assert not Path("net.toml").exists()


def test_the_table_says_what_was_timed_on_what(bench, capsys, tmp_path):
    words = ("--device=h200", f"--model={MIXTURE}", "--tp=4", "--output=k.csv", "--budget=20s")
    code, out, _ = run(capsys, "measure", *words)
    assert code == 0
    rows = list(csv.DictReader((tmp_path / "k.csv").read_text().splitlines()))
    assert {row["machine"] for row in rows} == {"NVIDIA H200"}
    assert {row["device"] for row in rows} == {"h200"}
    assert {row["program"] for row in rows} == {"closed form"}
    assert "experts bf16, " in out
    assert "no closed form of it is here" in out


def test_rows_of_another_device_are_refused(bench, capsys, tmp_path):
    words = ("--device=h200", f"--model={DENSE}", "--tp=1", "--output=k.csv", "--budget=5s")
    assert run(capsys, "measure", *words)[0] == 0
    code, _, err = run(capsys, "calibrate", "k.csv", "--device=h100-sxm", "--engine=own")
    assert code == 2
    assert "k.csv:2: device = h200" in err
    assert "was timed on it, not on h100-sxm" in " ".join(err.split())


@pytest.mark.parametrize(
    ("bench", "device", "fits"),
    [
        (SyntheticBench(), "h200", True),
        (SyntheticBench(machine="NVIDIA H100 80GB HBM3", memory_bytes=85e9), "h100-sxm", True),
        (SyntheticBench(machine="NVIDIA H100 80GB HBM3", memory_bytes=85e9), "h200", False),
        (SyntheticBench(machine="NVIDIA A100-SXM4-80GB", memory_bytes=85e9), "h100-sxm", False),
        (SyntheticBench(machine="NVIDIA L40S", memory_bytes=47.8e9), "l4", False),
        (SyntheticBench(machine="AMD Instinct MI300X", memory_bytes=206e9), "mi300x", True),
    ],
)
def test_another_machine_than_the_one_named_is_known(bench, device, fits):
    found = unlike(load_device(device), bench, by_name=True)
    assert (not found) is fits
    assert all(bench.machine in one.fact for one in found)


def test_formats_are_those_that_device_and_library_multiply():
    bench = SyntheticBench(formats=("bf16", "fp8"))
    assert formats_of((), load_device("h200"), bench) == (("bf16", "fp8"), [])
    assert formats_of((), load_device("a100-80gb"), bench) == (("bf16",), [])
    _, problems = formats_of(("fp8",), load_device("a100-80gb"), bench)
    assert "a100-80gb does not multiply it" in problems[0].fact
    _, problems = formats_of(("fp8",), load_device("h200"), SyntheticBench())
    assert "has no product in it on NVIDIA H200" in problems[0].fact


def test_what_is_wrong_is_said_at_once_before_anything_runs(capsys):
    words = ("--backend=tpu", "--tp=11", "--budget=soon", "--weights=fp7", f"--model={DENSE}")
    code, _, err = run(capsys, "measure", *words)
    assert code == 2
    for option in ("--backend tpu", "--device", "--tp 11", "--budget soon", "--weights fp7"):
        assert f"`{option}`" in err


def test_a_shipped_gpu_is_no_processor(capsys):
    code, _, err = run(capsys, "measure", "--backend=cpu", "--device=h200")
    assert code == 2
    assert "`--device h200`  is no processor" in err


def test_without_pytorch_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, err = run(capsys, "measure", "--backend", "cpu")
    assert code == 2
    assert "needs PyTorch, which is not installed: `pip install torch`" in err


def test_this_processor_is_timed_where_pytorch_is(capsys, tmp_path):
    """The bench itself, as far as it can be tried without a GPU."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        with pytest.raises(RequestError, match="sees no GPU"):
            pytorch.open_bench("cuda")
    bench = pytorch.open_bench("cpu")
    small = KernelCase(
        family="decode_attention",
        format="bf16",
        dimensions={
            "batch": 2.0,
            "context": 64.0,
            "n_heads": 8.0,
            "n_kv_heads": 2.0,
            "d_head": 64.0,
            "cache_bytes": 2.0,
        },
    )
    mixture = KernelCase(
        family="experts",
        format="bf16",
        dimensions={
            "tokens": 4.0,
            "n_experts": 8.0,
            "n_experts_local": 8.0,
            "n_active": 2.0,
            "d_model": 64.0,
            "d_expert": 32.0,
            "weight_bytes": 2.0,
            "input_bytes": 2.0,
        },
    )
    for kernel in (*products(1, 16), small, mixture):
        found = timed(bench.prepare(kernel), kernel)
        assert 0 < found.seconds < 1
        assert found.spread >= 0
        assert found.program
    assert not bench.multiplies("fp8")


def test_processes_of_this_processor_send_to_each_other():
    """Collectives themselves, as far as they can be tried without GPUs."""
    pytest.importorskip("torch")
    found = collectives.measure_collectives("cpu", 2, budget_s=6)
    assert {one.kernel.family for one in found.timed} <= {*KINDS}
    assert len(found.timed) + len(found.untimed) == len(wanted_collectives(2))
    assert not [one for one in found.untimed if "PyTorch" in one.reason]
