"""Every page as Chromium lays it out: on a phone, a desk and paper, light and dark.

Nothing is cut or a word wide, letters have ten pixels and stand out from what is behind them, and
what moves or sorts does so by the keyboard too.

pytest -m chromium tests/report
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from planner.placing.floorplans import floorplan_of
from planner.report.documents.as_html import page_of
from planner.report.documents.blocks import Document, Drawing, Table, section
from tests.report.fleets import FLEET, STAIRCASE
from tests.report.floorplans import FABRIC, ON_FABRIC, ON_TORUS, TORUS
from tests.report.rendering import report_page
from tests.report.test_documents import NAMES, TOLD

pytestmark = pytest.mark.chromium

FRAMES = {
    "phone light": 390,
    "phone dark": 390,
    "desk light": 1280,
    "desk dark": 1280,
    "paper light": 700,
}
PAGES = {name: (answer, {}) for name, answer in zip(NAMES, TOLD, strict=True)}
PAGES["placement on a fabric"] = (ON_FABRIC, {"floorplan": FABRIC})
PAGES["placement on a torus"] = (ON_TORUS, {"floorplan": TORUS})
PAGES["fleet and its staircase"] = (
    FLEET,
    {
        "floorplan": floorplan_of(FLEET.request.site, FLEET.request.state),
        "staircase": STAIRCASE,
    },
)
MEASURE = Path(__file__).with_name("measure.js").read_text("utf-8")


def seen(page: str, folder: Path) -> list[str]:
    """What is wrong with a page in each frame."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium, "there is no chromium on $PATH"
    measured = page.replace("</body>", f"<script>//<![CDATA[\n{MEASURE}//]]></script></body>")
    frames = "".join(
        f'<iframe name="{name}" width="{width}" height="9000" srcdoc="{html.escape(measured)}" '
        f'style="border:0;color-scheme:{name.split()[1]}"></iframe>'
        for name, width in FRAMES.items()
    )
    (folder / "page.html").write_text(f"<!DOCTYPE html><html><body>{frames}</body></html>")
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'user'}"]
    words += ["--hide-scrollbars", "--virtual-time-budget=9000", "--dump-dom"]
    ran = subprocess.run(
        [chromium, *words, (folder / "page.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = re.search(r"<title>(.*?)</title>", ran.stdout, re.DOTALL)
    assert said is not None
    told = json.loads(html.unescape(said.group(1)))
    ends = [f"{name} measured" for name in FRAMES]
    assert sorted(set(ends) & set(told)) == sorted(ends)
    return [one for one in told if one not in ends]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_read_on_every_screen(name, tmp_path):
    answer, beside = PAGES[name]
    assert seen(report_page(answer, **beside), tmp_path) == []


WRONG = {
    "faint": ("</main>", '<p style="color:#999">hardly to be read</p></main>'),
    "cut": ("</main>", '<p style="width:1500px">too wide</p></main>'),
    "small": ("</main>", '<p style="font-size:9px">too small</p></main>'),
    "not sorted": ("kind || down *", "kind || -down *"),
    "out of reach of the keyboard": ("box.tabIndex = 0", "box.tabIndex = -1"),
    "shut in print": ('"beforeprint"', '"before"'),
    "fetches something": ("</main>", '<img src="nowhere.png" alt=""/></main>'),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_with_a_page_is_seen(fault, tmp_path):
    wide = Drawing(svg=lambda: '<svg width="1500" height="20"/>')
    rows = [(f"{n} ms", "a") for n in (3, 1, 2)]
    folded = Table(heads=("time", "of"), rows=rows, sorts=True, caption="times")
    blocks = (wide, folded, Table(heads=("n",), rows=[("1",), ("2",)], sorts=True))
    document = Document(title="t", line="l", head=(), sections=(section("s", *blocks),))
    page = page_of(document)
    right, wrong = WRONG[fault]
    assert right in page
    for text, faults in ((page, False), (page.replace(right, wrong, 1), True)):
        told = seen(text, tmp_path)
        assert any(fault in one for one in told) == faults, told
