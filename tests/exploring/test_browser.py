"""Three jobs done in `plan explore` by a Chromium, as somebody does them with a pointer.

pytest -m chromium tests/exploring      with SHOTS=folder pictures of each step are left there
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from planner.commands.cli import main
from planner.commands.options.parsing import parse
from planner_workshop import exploring as explore
from tests.benchmarks.interrupts import hear_ctrl_c
from tests.exploring.browser import Browser

pytestmark = pytest.mark.chromium

PHONE = 390
SHOTS = os.environ.get("SHOTS", "")


@pytest.fixture
def opened(tmp_path):
    """A page of `plan explore`, opened by the address that it prints."""
    ended = []

    def open_page(line, **size):
        words = [sys.executable, "-m", "planner", "explore", "--no-browser", *shlex.split(line)]
        pipes = {"stderr": subprocess.PIPE, "text": True, "preexec_fn": hear_ctrl_c}
        process = subprocess.Popen(words, **pipes)
        url = re.search(r"http\S+", process.stderr.readline())[0]
        browser = Browser(tmp_path / "chromium", **size)
        ended.append((process, browser, url))
        browser.open(url)
        browser.until("document.querySelectorAll('#fields .field').length > 5")
        return browser

    yield open_page
    for process, browser, url in ended:
        origin = url.partition("?")[0]
        schemes = ("data:", "about:", "blob:")
        strange = [it for it in browser.requested if not it.startswith((origin, *schemes))]
        failures, where = browser.failures, browser.value("location.href")
        browser.close()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert (failures, strange) == ([], [])
        assert "token" not in where


def shot(browser, name):
    if SHOTS:
        time.sleep(0.6)
        browser.picture(Path(SHOTS) / f"{name}.png")


def text(browser, selector):
    return browser.value(f"document.querySelector({selector!r}).textContent")


def answered(browser):
    """Wait for what answers the form as it is; its status."""
    browser.until("shown && !timer && $('waiting').hidden && !$('result').matches('.stale')")
    return text(browser, "#status")


def framed(browser, expression="document.body.innerText"):
    """What an expression is in the page of the frame, which only the protocol may look into."""
    browser.until("$('page').style.height", 20)
    (frame,) = browser.send("Page.getFrameTree")["frameTree"]["childFrames"]
    world = browser.send("Page.createIsolatedWorld", frameId=frame["frame"]["id"])
    result = browser.send(
        "Runtime.evaluate",
        expression=expression,
        contextId=world["executionContextId"],
        returnByValue=True,
    )
    return result["result"].get("value")


def field(option, kind="text"):
    return f'[data-option="{option}"] input[type={kind}]'


FRAME = Path(explore.__file__).with_name("frame.js")
PREDICTED = "plan predict --model llama-3.1-8b --topology h100-nvl8-x1 --engine vllm --batch 8"
CODE = json.dumps({"id": "added", "textContent": PREDICTED})


def test_a_target_is_dragged_out_of_reach_and_a_hint_leads_back(opened, tmp_path, capsys):
    browser = opened(
        "--model llama-3.1-70b --topology h100-nvl8-x2 --input 1500 --output 300"
        " --rate 8req/s --latency-target 40ms"
    )
    status = answered(browser)
    assert "TPOT" in status
    assert "llama-3.1-70b on h100-nvl8-x2" in framed(browser)
    shot(browser, "plan")
    script = FRAME.read_text()
    framed(browser, f"document.body.append(Object.assign(document.createElement('code'), {CODE}))")
    framed(browser, f"{script};document.querySelector('#added').click()")
    browser.until("command === 'predict'")
    assert "TPOT" in answered(browser)
    assert text(browser, "#line") == PREDICTED
    browser.value("history.back()")
    browser.until("command === 'plan'")
    assert answered(browser) == status
    browser.dark()
    shot(browser, "plan-dark")
    browser.dark(False)
    browser.drag(field("--latency-target", "range"), 0.1)
    wanted = browser.value(f"document.querySelector('{field('--latency-target')}').value")
    assert float(wanted.removesuffix("ms")) < 10
    assert answered(browser).startswith("no plan")
    assert "is out of reach" in text(browser, "#message")
    assert browser.value("$('page').hidden")
    shot(browser, "out-of-reach")
    status = "no plan"
    for _ in range(3):  # what is reachable may be within the error, and the next hint is nearer
        if status.startswith("no plan"):
            browser.click("#message button:last-of-type")
            status = answered(browser)
    assert "TPOT" in status
    line = text(browser, "#line")
    reached = parse(shlex.split(line)[1:])
    assert 0.01 < reached.latency_target < 0.04
    assert browser.value(f"document.querySelector('{field('--latency-target')}').value") in line
    shot(browser, "reached")

    browser.send("Browser.grantPermissions", permissions=["clipboardReadWrite"])
    browser.click("#copy")
    browser.until("$('copy').textContent === 'Copied'")
    browser.value("window.pasted = ''")
    pasted = browser.value("navigator.clipboard.readText()")
    assert pasted == line
    assert main([*shlex.split(pasted)[1:], "--quiet"]) == 0
    assert capsys.readouterr().out.strip() == text(browser, "#status b")
    for name in ("request.toml", "answer.html", "answer.json"):
        kind = {"request.toml": "request", "answer.html": "html", "answer.json": "json"}[name]
        browser.click(f"#keep-{kind}")
        assert browser.downloaded(name).read_text()
    browser.click("#launch")
    browser.until("/files/.test($('launched').textContent)")
    with zipfile.ZipFile(browser.downloaded("launch.zip")) as archive:
        assert "launch/receipt.json" in archive.namelist()


FLEET = (
    "plan fleet --engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --input 1500"
    " --output 300 --rate 4req/s --ttft-p95 1s --tpot-p95 40ms --simulated 2000"
)


def test_a_fleet_within_percentiles_is_gone_back_to_and_compared(opened):
    browser = opened("", width=1600)
    assert browser.until("document.querySelectorAll('#examples li').length")
    shot(browser, "begin")
    browser.click("#paste summary")
    browser.type("#pasted", FLEET)
    browser.click("#fill")
    first = answered(browser)
    assert "keeps every target" in framed(browser) or "p95" in framed(browser)
    assert browser.value("command") == "fleet"
    shot(browser, "fleet")
    browser.type(field("--rate"), "40req/s")
    second = answered(browser)
    assert second != first
    shot(browser, "fleet-more")
    browser.value("history.back()")
    browser.until("state().options['--rate'][0] === '4req/s'")
    assert answered(browser) == first
    assert browser.value(f"document.querySelector('{field('--rate')}').value") == "4req/s"
    browser.until("$('history').children.length === 2")
    browser.click("#history li:nth-child(1) .pin")
    browser.until("!!document.querySelector('[aria-pressed=true]')")
    browser.click("#history li:nth-child(2) .pin")
    browser.until("!$('compared').hidden")
    rows = browser.value("$('compared').innerText")
    assert "rate" in rows
    assert "4req/s" in rows
    assert "40req/s" in rows
    assert "topology" not in rows
    shot(browser, "compared")
    browser.click("#history li:nth-child(1) .go")
    assert answered(browser) == second
    browser.value("fill({command, options: {...state().options, '--simulated': ['20000']}})")
    browser.click("#answer")
    browser.until("!$('waiting').hidden && /round|working/.test($('progress').textContent)")
    shot(browser, "at-work")
    browser.click("#cancel")
    assert answered(browser).startswith("ended")
    assert browser.value("document.querySelectorAll('#history li').length") == 2


PLACE = "place --engine roofline --model llama-3.1-8b --topology tpu-v5e-4x4 --replicas 2"


def test_a_placement_is_drawn_on_a_phone(opened, tmp_path):
    request = tmp_path / "request.toml"
    page = tmp_path / "page.html"
    assert main([*PLACE.split(), "--save-request", str(request), "--html", str(page)]) == 0
    browser = opened(str(request), width=PHONE, height=844)
    assert "2 replicas" in answered(browser)
    assert "2 replicas" in framed(browser)
    shot(browser, "phone-form")
    browser.value("$('result').scrollIntoView()")
    shot(browser, "phone-answer")
    browser.value("scrollBy(0, 1200)")
    shot(browser, "phone-map")
    assert browser.value("document.documentElement.scrollWidth") == PHONE
    cut = "[...document.querySelectorAll('body *')].filter((it) => {"
    cut += " const box = it.getBoundingClientRect();"
    cut += f" return box.width && (box.right > {PHONE + 1} || box.left < -1);"
    cut += " }).map((it) => it.outerHTML.slice(0, 80))"
    assert browser.value(cut) == []
    browser.click("#keep-svg")
    assert browser.downloaded("map.svg").read_text().startswith("<svg")
    browser.value("$('request').scrollIntoView()")
    browser.type(field("--replicas"), "99")
    assert not answered(browser).startswith("2 replicas")
    shot(browser, "phone-no-placement")
    browser.until("$('history').children.length === 2")
    browser.click("#past")
    shot(browser, "phone-history")
    browser.click("#history li:nth-child(2) .go")
    assert "2 replicas" in answered(browser)
    assert browser.value("getComputedStyle($('aside')).display") == "none"


def test_all_is_done_by_keys_too(opened):
    browser = opened("--model llama-3.1-8b --topology h100-nvl8-x1 --engine vllm --batch 1,8")
    answered(browser)
    browser.value(f"document.querySelector('{field('--latency-target', 'range')}').focus()")
    browser.press("ArrowLeft", "ArrowLeft")
    answered(browser)
    assert "--latency-target" in text(browser, "#line")
    browser.value(f"document.querySelector('{field('--latency-target')}').focus()")
    browser.type(field("--latency-target"), "1ms")
    browser.press("Enter")
    assert answered(browser).startswith("no plan")
    browser.value("document.querySelector('#message button').focus()")
    browser.press("Enter")
    assert "TPOT" in answered(browser)
    names = browser.value(
        "[...document.querySelectorAll('button, input, select, textarea, a[href], iframe')]"
        ".filter((it) => !(it.labels && it.labels.length) && !it.textContent.trim()"
        " && !it.getAttribute('aria-label') && !it.title).map((it) => it.outerHTML)"
    )
    assert names == []
