"""Every source that is named exists, and every reference is named somewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIBLIOGRAPHY = ROOT / "docs" / "references.bib"

ENTRY = re.compile(r"^@\w+\{([^,\s]+),", re.MULTILINE)
YEARED_KEY = re.compile(r"\[([A-Z][A-Za-z]+[12]\d{3}[a-z]?)\]")
SOURCE_TEXT = re.compile(r'(?:Source:|source = ")(.*?)(?:"""|"\s|"$|\n\s*\n)', re.DOTALL)
ANY_KEY = re.compile(r"\[([A-Z]\w+)\]")
DOCUMENT = re.compile(r"docs/[\w./-]+\w")


def files() -> list[Path]:
    found = [
        it for of in ("planner", "planner_workshop", "research") for it in (ROOT / of).rglob("*.py")
    ]
    for folder in ("topologies", "models"):
        found += (ROOT / folder).rglob("*.toml")
    return sorted(found)


def keys_in(text: str) -> set[str]:
    """Keys with a year anywhere; in the text of a source, whatever stands in brackets."""
    in_sources = {key for source in SOURCE_TEXT.findall(text) for key in ANY_KEY.findall(source)}
    return set(YEARED_KEY.findall(text)) | in_sources


def bibliography() -> list[str]:
    return ENTRY.findall(BIBLIOGRAPHY.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Source: [Pope2022] §2, [Williams2009].\n\n", {"Pope2022", "Williams2009"}),
        ('x = { value = 1, source = "[FasterTransformer] guide" }', {"FasterTransformer"}),
        ('Source: the model,\n    [Hockney1994]."""\n', {"Hockney1994"}),
        ("n: devices of the group [1]; time [s]; arrays NDArray[Float64]", set()),
    ],
)
def test_keys_are_found_in_docstrings_and_data_files(text, keys):
    assert keys_in(text) - {"Float64"} == keys


def test_every_key_that_is_named_is_in_the_bibliography():
    known = set(bibliography())
    unknown = {
        f"{path.relative_to(ROOT)}: [{key}]"
        for path in files()
        for key in keys_in(path.read_text(encoding="utf-8")) - known
    }
    assert not unknown


def test_every_entry_of_the_bibliography_is_named():
    documents = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in [*files(), *documents])
    assert [key for key in bibliography() if f"[{key}]" not in text] == []


def test_no_key_is_listed_twice():
    assert len(set(bibliography())) == len(bibliography())


def test_every_document_that_the_code_refers_to_exists():
    missing = {
        f"{path.relative_to(ROOT)}: {document}"
        for path in [*files(), ROOT / "pyproject.toml"]
        for document in DOCUMENT.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / document).exists()
    }
    assert not missing


EQUATIONS = sorted({*ROOT.glob("planner/equations/*.py")} - {ROOT / "planner/equations/arrays.py"})
"""All but types of arrays, and records of them, which state no equation."""


@pytest.mark.parametrize("path", EQUATIONS, ids=lambda p: p.stem)
def test_every_public_equation_names_its_source_or_derives_itself(path):
    """A module's own source counts for all its functions; a derivation names its theorem."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    if "Source:" in (ast.get_docstring(module) or ""):
        return
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            docstring = ast.get_docstring(node) or ""
            assert "Source:" in docstring or "theorem" in docstring, node.name


def test_every_name_of_the_vocabulary_is_in_the_code():
    code = "\n".join(path.read_text(encoding="utf-8") for path in files())
    paths = {path.stem for path in files()} | {path.parent.name for path in files()}
    rows = (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8").split("\n|")[1:]
    names = {name for row in rows for name in re.findall(r"`([A-Za-z_]\w*)`", row)}
    assert len(names) > 80
    assert names - paths - set(re.findall(r"\w+", code)) == set()
