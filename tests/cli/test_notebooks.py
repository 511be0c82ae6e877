"""Notebooks of examples/ run from their first cells to their last; what takes long says so.

pip install -e '.[notebooks]' && pytest -m notebooks tests/cli
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_is_kept_without_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 4
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """Runs a notebook in an empty folder by the planner of this tree."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    for needed in ("ipykernel", "pandas", "matplotlib"):
        pytest.importorskip(needed)
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES.parent))
    monkeypatch.delenv("MPLBACKEND", raising=False)

    def run(notebook):
        if isinstance(notebook, Path):
            notebook = nbformat.read(notebook, as_version=4)
        else:
            cells = [nbformat.v4.new_code_cell(text) for text in notebook]
            notebook = nbformat.v4.new_notebook(cells=cells)
        where = {"metadata": {"path": str(tmp_path)}}
        client = nbclient.NotebookClient(notebook, timeout=300, resources=where)
        shown = []
        process = client.process_message
        client.process_message = lambda message, *rest: (
            shown.append((message["msg_type"], message["content"])) or process(message, *rest)
        )
        client.execute()
        return [cell for cell in notebook.cells if cell.cell_type == "code"], shown

    return run


def kinds(cell):
    return {kind for output in cell.outputs for kind in output.get("data", {})}


@pytest.mark.notebooks
def test_five_minutes_end_with_files_and_a_verdict(executed, tmp_path):
    cells, _ = executed(EXAMPLES / "five-minutes.ipynb")
    assert "text/html" in kinds(cells[0])  # the plan is its page
    assert "vllm serve" in cells[1].outputs[0]["text"]
    assert all("text/html" in kinds(cell) for cell in cells[2:4])
    assert (tmp_path / "plan.csv").read_text(encoding="utf-8").startswith("of,engine,")
    assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["kind"] == "plan"
    assert cells[4].outputs[-1]["text"].startswith("verified")


@pytest.mark.notebooks
def test_a_study_has_frames_a_plot_and_reasons(executed):
    cells, _ = executed(EXAMPLES / "study.ipynb")
    assert "text/html" in kinds(cells[1])
    assert "image/png" in kinds(cells[2])
    gains = cells[3].outputs[-1]["data"]["text/plain"]
    assert all(name in gains for name in ("today", "NVLink 2x", "HBM bandwidth 1.5x"))
    assert "32000" in cells[4].outputs[-1]["data"]["text/plain"]


@pytest.mark.notebooks
def test_a_cell_that_takes_long_says_what_is_done_and_leaves_nothing(executed):
    texts = [
        "import time\nimport planner\nfrom planner.running import begin",
        "begin('searching')\ntime.sleep(1.5)",
        "time.sleep(1.0)",
    ]
    cells, shown = executed(texts)
    lines = [
        content["data"]["text/plain"]
        for kind, content in shown
        if kind in ("display_data", "update_display_data")
    ]
    assert lines[0].startswith("searching, ")
    assert lines[-1] == ""
    assert [len(cell.outputs) for cell in cells] == [0, 1, 0]
