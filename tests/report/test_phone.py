"""Every page at the width of a phone, as Chromium lays it out: nothing is cut, nothing a word wide.

pytest -m chromium tests/report
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess

import pytest

from planner.placing.floorplans import floorplan_of
from tests.report.fleets import FLEET, STAIRCASE
from tests.report.floorplans import FABRIC, ON_FABRIC, ON_TORUS, TORUS
from tests.report.rendering import report_page
from tests.report.test_documents import NAMES, TOLD

pytestmark = pytest.mark.chromium

PHONE, LETTERS = 375, 24
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
MEASURE = """<script>//<![CDATA[
document.querySelectorAll("details").forEach(function (one) { one.open = true; });
var wide = document.documentElement.clientWidth, found = [];
document.querySelectorAll("body *").forEach(function (one) {
  var box = one.getBoundingClientRect(), text = (one.innerText || "").trim();
  if (!box.width) { return; }
  if (box.right > wide + 2 || box.left < -2) { found.push("cut: " + one.outerHTML.slice(0, 90)); }
  if (box.width < 60 && text.length > %d) { found.push("narrow: " + text.slice(0, 60)); }
});
parent.document.title = wide + ";" + document.documentElement.scrollWidth + ";" + found.join("|");
//]]></script></body>"""


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_and_nothing_is_a_word_wide(name, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium, "there is no chromium on $PATH"
    answer, beside = PAGES[name]
    page = report_page(answer, **beside).replace("</body>", MEASURE % LETTERS)
    frame = f'<iframe width="{PHONE}" height="900" style="border:0" srcdoc="{html.escape(page)}">'
    (tmp_path / "page.html").write_text(f"<html><body>{frame}</iframe></body></html>")
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'user'}"]
    words += ["--hide-scrollbars", "--virtual-time-budget=4000", "--dump-dom"]
    ran = subprocess.run(
        [chromium, *words, (tmp_path / "page.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = re.search(r"<title>(.*?)</title>", ran.stdout, re.DOTALL)
    assert said is not None
    client, scroll, found = html.unescape(said.group(1)).split(";", 2)
    assert (client, found) == (str(PHONE), "")
    assert int(scroll) <= PHONE
