"""`--html`: what a page has beside the text of its answer, of whatever it is asked."""

from __future__ import annotations

import re
import shlex

import pytest

from planner.report.launch.flags import manifests
from tests.report.rendering import tree

VLLM = "--engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --input 1000 --output 200"


def heads(root) -> list[str]:
    return [one.text for one in root.iterfind(".//{*}h2")]


def words(root) -> str:
    return " ".join(" ".join(root.itertext()).split())


@pytest.fixture
def page(plan, folder):
    """The page of a command line, and what it said."""

    def ran(line: str):
        answer = plan(f"{line} --html page.html")
        return answer, tree((folder / "page.html").read_text(encoding="utf-8"))

    return ran


class TestPlan:
    LINE = f"{VLLM} --latency-target 20ms --batch 8,16"

    def test_a_page_has_the_passes_that_predict_has_of_the_deployment(self, page, plan):
        answer, root = page(self.LINE)
        assert (answer.code, answer.err) == (0, "wrote page.html\n")
        named = heads(root)
        assert {"decode pass", "prefill pass", "memory of a device"} <= {*named}
        assert "memory of the fullest device" not in named
        command = re.search(r"where its time goes: `plan (.*?)`", answer.out.replace("\n", " "))
        assert command is not None
        alone = plan(command[1]).out
        for title in re.findall(r"(?m)^(?:decode|prefill) pass: (.*)$", alone):
            assert title in words(root)
        drawings = [svg.get("aria-label") for svg in root.iter() if svg.tag.endswith("svg")]
        assert any("under the roofs of the device" in one for one in drawings if one)

    def test_a_load_test_is_a_command_of_vllm_and_has_the_times_of_the_plan(self, page):
        answer, root = page(self.LINE)
        (command,) = [
            one.text
            for one in root.iterfind(".//{*}pre")
            if one.text.startswith("vllm bench serve")
        ]
        flags = {word for word in shlex.split(command) if word.startswith("--")}
        assert flags <= {*manifests()["vllm-bench"]["flags"]}
        at = re.search(r"mean TPOT: ([\d.]+) to ([\d.]+) ms", words(root))
        assert at is not None
        low, high = map(float, at.groups())
        said = re.search(r"TPOT +([\d.]+) ms \(", answer.out)
        assert said is not None
        assert low < float(said[1]) < high

    def test_passes_that_are_explained_are_not_shown_again(self, page):
        _, root = page(f"{self.LINE} --explain tpot")
        assert heads(root).count("decode pass") == 1
        assert "prefill pass" not in heads(root)

    def test_under_layouts_there_is_neither(self, page):
        _, root = page("--engine roofline --model llama-3.1-8b --topology h100-nvl8-x1 --batch 8")
        assert not {"decode pass", "load test"} & {*heads(root)}


class TestPlacement:
    def test_a_page_has_the_passes_of_each_recipe_where_they_are_opened(self, page):
        answer, root = page(f"place {VLLM} --replicas 2 --batch 8 --latency-target 20ms")
        assert answer.code == 0
        folded = root.findall(".//{*}section/{*}details/{*}summary/{*}h2")
        assert [one.text for one in folded] == ["where the time of recipe 0 goes"]
        assert folded[0].text not in [link.text for link in root.iterfind(".//{*}nav//{*}a")]


class TestNoPlan:
    def test_there_is_a_page_of_why(self, page):
        answer, root = page(f"{VLLM} --latency-target 1us --batch 8")
        assert answer.code == 1
        assert "wrote page.html" in answer.err
        title = root.findtext(".//{*}title")
        assert title.startswith("no plan decodes llama-3.1-8b on h100-nvl8-x1 in 1 us")
        assert "is out of reach" in words(root)
        (command,) = root.iterfind(".//{*}main//{*}pre")
        assert re.fullmatch(r"plan .* --latency-target [\d.]+ms.*", command.text)

    def test_of_a_request_that_cannot_be_read_there_is_none(self, plan, folder):
        answer = plan(f"{VLLM} --latency-target soon --html page.html")
        assert answer.code == 2
        assert not (folder / "page.html").exists()
