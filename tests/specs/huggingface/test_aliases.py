"""Checkpoints by their names: which file knows them, and in which formats they are published."""

import pytest

from planner.specs.files.listing import list_files
from planner.specs.files.places import Kind
from planner.specs.files.reading import load_architecture, load_model
from planner.specs.huggingface.aliases import known_checkpoint


def test_every_checkpoint_that_a_file_names_is_that_model():
    for name in (one.name for one in list_files(Kind.MODEL)):
        model = load_model(name)
        named = {model.repository, *(one.repository for one in model.checkpoints)} - {""}
        for repository in named:
            again = load_architecture(repository)
            assert (again.name, again.repository) == (name, repository)


@pytest.mark.parametrize(
    "name",
    ["meta-llama/Llama-3.1-70B", "meta-llama/llama-3.1-70b-instruct", "Llama-3.1-70B-Instruct"],
)
def test_another_checkpoint_of_the_shape_is_loaded_as_published(name):
    model = load_model(name)
    assert model.name == "llama-3.1-70b"
    assert model.repository.casefold().endswith(name.casefold())
    assert model.weights_formats == load_model("llama-3.1-70b").weights_formats


def test_a_checkpoint_in_a_format_of_its_own_is_served_in_no_other():
    model = load_model("nvidia/Llama-3.1-70B-Instruct-FP8")
    assert (model.published_weights, model.weights_formats) == (("fp8",), ("fp8",))
    assert model.kv_format == "fp8"
    assert [one.weights for one in model.checkpoints] == ["fp8_static"]


def test_of_a_name_and_a_file_the_file_is_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert known_checkpoint("Qwen/Qwen3-32B") is not None
    (tmp_path / "Qwen/Qwen3-32B").mkdir(parents=True)
    assert known_checkpoint("Qwen/Qwen3-32B") is None
    assert known_checkpoint("qwen3-32b") is None  # a model file has this name
    assert known_checkpoint("Qwen/Qwen9") is None
