"""Where configs are found, what models are then called, and what reading one costs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.specs.files.reading import load_architecture, load_model
from planner.specs.huggingface.locating import is_config
from planner.specs.huggingface.reading import read_config
from tests.specs.huggingface.published import path_of

_HASH = "0e9e39f249a16976918f6564b8830bc894c89659"


def _snapshot(hub: Path, config: str, *, revision: str = _HASH) -> Path:
    folder = hub / "models--org--name" / "snapshots" / revision
    folder.mkdir(parents=True)
    shutil.copy(path_of(config), folder / "config.json")
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of its own, with a cache of Hugging Face in it that is empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path


def test_a_folder_stands_for_the_config_in_it_and_names_the_model(elsewhere: Path) -> None:
    folder = elsewhere / "my-llama"
    folder.mkdir()
    shutil.copy(path_of("Llama-3.1-8B"), folder / "config.json")
    for written in (str(folder), "./my-llama", "my-llama/config.json"):
        assert load_model(written).name == "my-llama"


def test_the_cache_of_hugging_face_is_searched_by_organisation_and_name(elsewhere: Path) -> None:
    _snapshot(elsewhere / "hf" / "hub", "Qwen3-8B")
    assert load_model("org/name").name == "name"
    assert load_model("org/name").n_layers == 36


def test_of_several_snapshots_the_one_of_main_is_read(elsewhere: Path) -> None:
    hub = elsewhere / "hf" / "hub"
    _snapshot(hub, "Qwen3-8B", revision="a" * 40)
    _snapshot(hub, "Qwen3-32B", revision="b" * 40)
    refs = hub / "models--org--name" / "refs"
    refs.mkdir()
    (refs / "main").write_text("b" * 40)
    assert load_model("org/name").n_layers == 64


def test_a_snapshot_that_is_named_by_its_path_has_the_model_s_name(elsewhere: Path) -> None:
    folder = _snapshot(elsewhere / "hf" / "hub", "Qwen3-8B")
    assert load_model(str(folder)).name == "name"


def test_hf_hub_cache_comes_before_hf_home(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _snapshot(elsewhere / "hf" / "hub", "Qwen3-8B")
    _snapshot(elsewhere / "other", "Qwen3-32B")
    monkeypatch.setenv("HF_HUB_CACHE", str(elsewhere / "other"))
    assert load_model("org/name").n_layers == 64


@pytest.mark.parametrize(
    ("written", "fact", "hint"),
    [
        ("org/unknown", "is neither a file nor a model in the cache", "hf download org/unknown"),
        ("./empty", "is a folder without a `config.json`", ""),
        ("no/such/config.json", "no such file", ""),
    ],
)
def test_what_is_not_there_is_an_error_that_says_where_it_was_sought(
    elsewhere: Path, written: str, fact: str, hint: str
) -> None:
    (elsewhere / "empty").mkdir()
    with pytest.raises(SpecError, match=fact) as raised:
        load_model(written)
    assert hint in raised.value.hint


@pytest.mark.parametrize("name", ["llama-3-70b", "models/llama.toml", "", "~/x", "./x/y", "a/b/c"])
def test_names_and_files_of_the_planner_are_no_configs(elsewhere: Path, name: str) -> None:
    assert not is_config(name)


def test_a_path_into_a_folder_that_is_there_is_no_repository(elsewhere: Path) -> None:
    (elsewhere / "models").mkdir()
    assert not is_config("models/lama")
    assert is_config("meta-llama/Llama-3.1-8B")


def test_modelopt_says_the_format_in_a_file_beside_the_config(tmp_path: Path) -> None:
    shutil.copy(path_of("Qwen3-8B"), tmp_path / "config.json")
    beside = tmp_path / "hf_quant_config.json"
    beside.write_text('{"quantization": {"quant_algo": "NVFP4"}}')
    assert read_config(tmp_path).published_weights == ("fp4",)
    beside.write_text('{"quantization": {"quant_algo": "FP3"}}')
    with pytest.raises(SpecError, match=r"quantization\.quant_algo `FP3`"):
        read_config(tmp_path)


_PRUNED = """
[variant]
of = "llama-3.3-70b"
how = "pruned"
quality = "0.5 points of MMLU-Pro less"
source = "model card"
"""


def test_a_variant_says_beside_its_config_what_it_was_made_from(tmp_path: Path) -> None:
    shutil.copy(path_of("Llama-3_3-Nemotron-Super-49B-v1"), tmp_path / "config.json")
    assert read_config(tmp_path).variant is None
    (tmp_path / "variant.toml").write_text(_PRUNED)
    variant = read_config(tmp_path).variant
    assert variant is not None
    assert (variant.of, variant.how) == ("llama-3.3-70b", "pruned")
    assert variant.quality == "0.5 points of MMLU-Pro less (model card)"
    assert variant.quality_loss_fraction is None
    (tmp_path / "variant.toml").write_text(_PRUNED + 'quality_loss = "0.8%"\n')
    known = read_config(tmp_path).variant
    assert known is not None
    assert known.quality_loss_fraction == 0.008
    (tmp_path / "variant.toml").write_text(_PRUNED + 'quality_loss = "0%"\n')
    lossless = read_config(tmp_path).variant
    assert lossless is not None
    assert lossless.quality_loss_fraction == 0.0


def test_a_diffusion_decoder_says_its_passes_and_its_block(tmp_path: Path) -> None:
    shutil.copy(path_of("Qwen3-8B"), tmp_path / "config.json")
    text = _PRUNED.replace("pruned", "diffusion")
    (tmp_path / "variant.toml").write_text(text + "n_denoising_steps = 8\nn_block_tokens = 32\n")
    variant = read_config(tmp_path).variant
    assert variant is not None
    assert (variant.n_denoising_steps, variant.n_block_tokens) == (8, 32)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[other]\na = 1\n", "variant  is missing"),
        (_PRUNED.replace("pruned", "shrunk"),
         "variant.how `shrunk`  unknown way to make a variant: there are `pruned`"),
        (_PRUNED.replace('source = "model card"', ""), "variant.quality  has no source: name"),
        (_PRUNED.replace("pruned", "diffusion"), "variant.n_denoising_steps  is missing"),
        (_PRUNED + "n_block_tokens = 4\n", "is of diffusion decoders only"),
        (_PRUNED + 'quality_loss = "120%"\n',
         "variant.quality_loss `120%`  is not below 1: write `0.8`"),
        (_PRUNED + 'quality_loss = "100%"\n',
         "variant.quality_loss `100%`  is not below 1: write `0.8`"),
        (_PRUNED + 'speed = "high"\n', "variant.speed  unknown key"),
    ],
)  # fmt: skip
def test_a_malformed_variant_is_an_error_that_names_the_key(
    tmp_path: Path, text: str, fault: str
) -> None:
    shutil.copy(path_of("Qwen3-8B"), tmp_path / "config.json")
    (tmp_path / "variant.toml").write_text(text)
    with pytest.raises(SpecError) as raised:
        read_config(tmp_path)
    assert fault in str(raised.value)


def test_reading_a_config_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from planner.specs.huggingface.reading import read_config\n"
        f"read_config({str(path_of('DeepSeek-V3'))!r})\n"
        "heavy = {'numpy', 'pydantic', 'networkx', 'highspy', 'ortools', 'torch',\n"
        "         'transformers', 'huggingface_hub', 'requests', 'urllib.request', 'socket'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_models_of_both_kinds_are_loaded_as_classes_of_layers() -> None:
    shipped = load_architecture("llama-3.1-8b")
    config = load_architecture(str(path_of("Llama-3.1-8B")))
    assert shipped.order == config.order
    assert shipped.n_params == pytest.approx(config.n_params, rel=1e-4)  # norms
