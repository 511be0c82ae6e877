"""The page of `plan explore`: who is let in, what answers are, what becomes of processes."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from tempfile import gettempdir
from urllib.request import urlopen

import pytest
from starlette.testclient import TestClient

from planner.commands.cli import answer_to, main
from planner_workshop.exploring import jobs as work
from planner_workshop.exploring.app import FORM_TOKEN, MOST_BYTES, Pages
from planner_workshop.exploring.form import said_of, state_of
from planner_workshop.exploring.jobs import Jobs
from tests.benchmarks.interrupts import hear_ctrl_c

PORT = 8123
HOST = f"http://127.0.0.1:{PORT}"
QUICK = {
    "--model": ["llama-3.1-8b"],
    "--topology": ["h100-nvl8-x1"],
    "--engine": ["vllm"],
    "--batch": ["1,8"],
}
PLAN = {"command": "plan", "options": QUICK}


@pytest.fixture(scope="module")
def guard():
    pages = Pages(Jobs(), port=PORT, begun=state_of("plan --batch 8"))
    yield pages
    pages.jobs.close()


@pytest.fixture
def client(guard):
    """A browser that came by the address."""
    browser = TestClient(guard, base_url=HOST)
    assert browser.get("/", params={"token": guard.token}).status_code == 200
    browser.headers[FORM_TOKEN] = guard.form_token
    return browser


def ended(client, number):
    until_s = time.monotonic() + 120
    while (job := client.get(f"/jobs/{number}").json())["state"] == "running":
        assert time.monotonic() < until_s
        time.sleep(0.05)
    return job


def begun(client, state, **more):
    response = client.post("/jobs", json={**state, "columns": 100, **more})
    assert response.status_code == 202
    return response.json()


@pytest.fixture(scope="module")
def answered(guard):
    """A plan that was answered."""
    browser = TestClient(guard, base_url=HOST, headers={FORM_TOKEN: guard.form_token})
    browser.get("/", params={"token": guard.token})
    return ended(browser, begun(browser, PLAN)["number"])


PATHS = ("/", "/form", "/jobs", "/jobs/1", "/jobs/1/answer.html", "/explore.js", "/page.css", "/x")


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_there_is_nothing(guard, path):
    stranger = TestClient(guard, base_url=HOST)
    for token in ("", "?token=", "?token=x", f"?token={guard.form_token}"):
        response = stranger.get(f"{path}{token}")
        assert response.status_code == 403
        assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", ""]
)
def test_a_host_of_another_name_is_refused_with_the_token_too(client, guard, host):
    response = client.get("/form", params={"token": guard.token}, headers={"host": host})
    assert response.status_code == 403
    assert client.get("/form", headers={"host": f"localhost:{PORT}"}).status_code == 200


@pytest.mark.parametrize("path", ["/jobs", "/line", "/jobs/1/cancel"])
def test_what_changes_something_needs_the_token_of_the_form(guard, path):
    """Another page of this machine has the cookie of this one, and cannot read it."""
    browser = TestClient(guard, base_url=HOST)
    browser.get("/", params={"token": guard.token})
    for headers in ({}, {FORM_TOKEN: ""}, {FORM_TOKEN: guard.token}):
        assert browser.post(path, json=PLAN, headers=headers).status_code == 403
    assert browser.post("/line", json=PLAN, headers={FORM_TOKEN: guard.form_token}).is_success


def test_the_cookie_is_of_this_page_and_of_no_script(guard):
    response = TestClient(guard, base_url=HOST).get("/", params={"token": guard.token})
    said = response.headers["set-cookie"]
    assert said.startswith(f"plan-{PORT}=")
    assert {"HttpOnly", "SameSite=Strict"} <= {*said.split("; ")}
    assert guard.form_token in response.text
    assert guard.token not in response.text


def test_pages_run_no_foreign_script_and_stand_in_no_foreign_frame(client, answered):
    whole = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in whole
    assert "script-src 'self'" in whole
    assert "unsafe" not in whole
    assert "frame-ancestors 'none'" in whole
    framed = client.get(f"/jobs/{answered['number']}/shown.html").headers["content-security-policy"]
    assert framed.endswith("sandbox allow-scripts")
    assert "connect-src" not in framed
    for path in ("/", "/form", f"/jobs/{answered['number']}/answer.json", "/no-such"):
        headers = client.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_the_page_names_no_address_of_the_network(client):
    for path in ("/", "/explore.js", "/explore.css", "/page.css"):
        text = client.get(path).text
        assert text
        assert not re.search(r"(?i)https?://|//[a-z]|@import|url\(", text)


def test_colours_are_those_of_answers_light_and_dark(client, answered):
    page = client.get(f"/jobs/{answered['number']}/answer.html").text
    light, dark = client.get("/page.css").text.split("@media")
    assert "--page:" in light
    assert "--page:" in dark
    assert light in page
    assert "body" not in dark


@pytest.mark.parametrize("method", ["put", "delete", "patch", "options"])
def test_other_methods_do_nothing(client, method):
    assert getattr(client, method)("/jobs").status_code == 405


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b"[" * 60_000, 400),
        (b'{"command": "plan", "options": {"--model": ["\\ud800"]}, "columns": 80}', 400),
        (json.dumps({**PLAN, "columns": "wide"}).encode(), 400),
        (json.dumps({**PLAN, "columns": 80, "target": "../x"}).encode(), 400),
        (
            json.dumps({"command": "plan", "options": {"--html": ["x"]}, "columns": 80}).encode(),
            400,
        ),
        (b" " * (MOST_BYTES + 1), 413),
    ],
)
def test_what_is_no_request_is_refused(client, body, code):
    assert client.post("/jobs", content=body).status_code == code


def test_what_is_not_there_is_not_found(client, answered):
    number = answered["number"]
    for path in (
        "/jobs/999",
        f"/jobs/{'9' * 5000}",
        f"/jobs/{number}/map.svg",
        f"/jobs/{number}/..%2fjobs.py",
        "/jobs.py",
    ):
        assert client.get(path).status_code == 404


def test_an_answer_is_that_of_the_command(client, answered, tmp_path):
    words = ["--model=llama-3.1-8b", "--topology=h100-nvl8-x1", "--engine=vllm", "--batch=1,8"]
    page = tmp_path / "page.html"
    whole = answer_to([*words, f"--html={page}", "--quiet"], began_s=time.perf_counter())
    assert answered["code"] == 0
    assert answered["answer"] == whole.text
    assert answered["line"] == f"plan {' '.join(words).replace('=', ' ')}"
    number = answered["number"]
    files = {name: client.get(f"/jobs/{number}/{name}") for name in ("answer.html", "answer.json")}
    for response in files.values():
        assert response.headers["content-disposition"].startswith("attachment")
    (_, expected), *_ = whole.files
    told = f" --html={page} --quiet"
    assert _timeless(files["answer.html"].text) == _timeless(expected.replace(told, ""))
    assert "/plan-" not in files["answer.html"].text
    assert files["answer.json"].json()["kind"] == "plan"
    path = tmp_path / "answer.json"
    path.write_text(files["answer.json"].text)
    assert main(["verify", str(path), "--quiet"]) == 0
    shown = client.get(f"/jobs/{number}/shown.html").text
    assert shown.startswith(files["answer.html"].text.partition("</body>")[0])


def _timeless(page):
    return re.sub(r"[\d.,]+ [mnu]?s\b", "TIME", page)


def test_a_request_file_is_run_to_the_same(client, answered, tmp_path, capsys):
    path = tmp_path / "request.toml"
    path.write_text(client.get(f"/jobs/{answered['number']}/request.toml").text)
    assert main(["run", str(path), "--quiet"]) == 0
    assert capsys.readouterr().out.strip() == answered["answer"]


def test_a_conflict_is_told_as_the_command_tells_it_and_its_hint_fills_the_form(client):
    state = {"command": "plan", "options": {**QUICK, "--latency-target": ["1ms"]}}
    job = ended(client, begun(client, state)["number"])
    assert job["code"] == 1
    text = "".join(it["text"] for it in job["message"])
    whole = answer_to(said_of(state).words, began_s=time.perf_counter())
    # lines are broken for the page here, for a terminal there
    assert _timeless(text).split() == _timeless(whole.message).split()
    (filled,) = (it["fills"] for it in job["message"] if it.get("fills"))
    assert filled["options"]["--latency-target"] != ["1ms"]
    reached = ended(client, begun(client, filled)["number"])
    assert (reached["code"], reached["files"]) == (0, ["answer.html", "answer.json"])
    listed = client.get("/jobs").json()
    assert [it["number"] for it in listed[:2]] == [reached["number"], job["number"]]
    assert listed[1]["answer"].startswith("error: no plan")


def test_each_command_of_a_conflict_fills_the_form():
    line = "plan --model llama-3.1-8b --latency-target 21ms"
    message = f"error: no plan\n\n  TPOT ≤ 21 ms\n  {line}\n\nhint: this has a plan: `{line}`"
    parts = [*work._parts(message, said_of(PLAN))]
    assert "".join(it["text"] for it in parts) == message
    assert [it["fills"]["options"]["--latency-target"] for it in parts if it.get("fills")] == [
        ["21ms"]
    ] * 2


def test_what_cannot_be_read_names_its_fields_and_what_to_write_fills_them(client):
    state = {"command": "plan", "options": {**QUICK, "--rate": ["8req/s"], "--input": ["many"]}}
    job = ended(client, begun(client, state)["number"])
    assert job["code"] == 2
    assert {*job["faulty"]} == {"--input", "--output"}
    fills = [it["fills"] for it in job["message"] if it.get("fills")]
    assert all(it["options"]["--output"] == ["300"] for it in fills)
    assert fills
    assert fills[0]["options"]["--rate"] == ["8req/s"]


def test_launch_files_come_as_an_archive_and_leave_none(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job = ended(client, begun(client, PLAN, target="compose")["number"])
    assert job["code"] == 0
    archive = client.get(f"/jobs/{job['number']}/launch.zip").content
    names = zipfile.ZipFile(io.BytesIO(archive)).namelist()
    assert "launch/receipt.json" in names
    assert any(it.endswith(".yaml") for it in names)
    texts = [zipfile.ZipFile(io.BytesIO(archive)).read(it).decode() for it in names]
    assert not [it for it in texts if "/plan-" in it]
    assert not [*Path(gettempdir()).glob("plan-*-launch")]
    assert not [*tmp_path.iterdir()]
    assert job["number"] not in [it["number"] for it in client.get("/jobs").json()]


LONG = {
    "command": "plan",
    "options": {"--model": ["deepseek-v3"], "--topology": ["h100-nvl8-x16"]},
}


def test_a_new_request_ends_that_before_it_and_what_is_cancelled_is_killed(client, guard):
    first, second = begun(client, LONG), begun(client, LONG)
    assert client.get(f"/jobs/{first['number']}").json()["state"] == "ended"
    progress = ""
    until_s = time.monotonic() + 30
    while not progress and time.monotonic() < until_s:
        progress = client.get(f"/jobs/{second['number']}").json()["progress"]
        time.sleep(0.05)
    assert re.search(r"\d m?s$", progress)
    assert not guard.jobs.all()[0].process.daemon  # a staircase has processes of its own
    job = client.post(f"/jobs/{second['number']}/cancel").json()
    assert (job["state"], job["code"]) == ("ended", 3)
    assert not [it for it in client.get("/jobs").json() if it["number"] == second["number"]]


def test_a_request_that_takes_too_long_is_ended(client, monkeypatch):
    monkeypatch.setattr(work, "MOST_S", 0.2)
    job = ended(client, begun(client, LONG)["number"])
    assert job["state"] == "ended"
    assert "--time-limit" in "".join(it["text"] for it in job["message"])


def test_a_request_that_takes_too_long_ends_though_its_page_was_closed(client, guard, monkeypatch):
    monkeypatch.setattr(work, "MOST_S", 0.1)
    begun(client, LONG)
    process = guard.jobs.all()[0].process
    process.join(30)
    assert process.exitcode is not None


def test_a_process_that_is_gone_is_told(client, guard):
    job = begun(client, LONG)
    guard.jobs.all()[0].process.kill()
    job = ended(client, job["number"])
    assert (job["state"], job["answer"]) == ("ended", "error: the process that answered is gone")


def test_a_pasted_command_line_fills_the_form(client):
    line = "plan place --model llama-3.1-8b --replicas 2 --align"
    read = client.post("/line", json={"line": line}).json()
    assert read["command"] == "place"
    assert read["options"] == {"--model": ["llama-3.1-8b"], "--replicas": ["2"], "--align": []}
    assert read["line"] == line
    for faulty in ("plan --latency-target 30", "plan sweep x", "plan 'x"):
        response = client.post("/line", json={"line": faulty})
        assert response.status_code == 400
        assert response.json()["message"].startswith("error: the request cannot be read")


def test_the_form_begins_with_the_request_of_the_command_line(client):
    assert client.get("/form").json()["begun"] == {"command": "plan", "options": {"--batch": ["8"]}}


@pytest.fixture
def started():
    """A command that serves, killed where a test leaves it at work."""
    processes = []

    def start(*words, **more):
        command = [sys.executable, "-m", "planner", "explore", "--no-browser", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(command, **pipes, **more))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_ctrl_c_ends_it_well_and_its_port_is_not_shared(started):
    process = started("--batch=8", preexec_fn=hear_ctrl_c)
    url = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=[\w-]{32}", process.stderr.readline())
    with urlopen(url[0]) as response:
        assert "plan explore" in response.read().decode()
    taken = started("--port", url[1])
    _, err = taken.communicate(timeout=60)
    assert taken.returncode == 2
    assert f"`--port {url[1]}`" in err
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--latency-target", "30"], "--latency-target 30"),
        (["no-such.toml"], "no-such.toml"),
        (["examples/sweep.toml"], "examples/sweep.toml"),
        (["--port", "0"], "--port 0"),
    ],
)
def test_a_request_to_begin_with_has_to_be_one(words, told, capsys):
    assert main(["explore", *words]) == 2
    assert told in capsys.readouterr().err


def test_what_is_not_installed_is_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["explore"]) == 2
    assert "`pip install 'llm-serving-planner[explore]'`" in " ".join(
        capsys.readouterr().err.split()
    )
