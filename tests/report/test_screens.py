"""The first screen of every kind of answer, and the order of what follows, in text and page."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from planner.commands.options.parsing import parse
from planner.commands.reporting import screen_text
from planner.quantities.tables import packaged_table
from planner.quantities.units import show
from planner.report.answer_kinds import document_of, kind_of
from planner.report.documents.as_html import page_of
from planner.report.documents.as_text import text_of
from planner.report.documents.blocks import Command, Document, Note, Pairs, section
from planner.report.documents.screens import parts_of
from planner.report.paint import SCREEN, width
from planner.report.times import times_of
from planner.results.arrivals import Load
from planner.results.plans import Plan, ResourceGain
from tests.report.engines import ENGINE_AUDIT, ENGINE_PLAN
from tests.report.examples import CONFLICT, PLAN
from tests.report.fleets import APART, FLEET
from tests.report.placements import PLACEMENT
from tests.report.predictions import PREDICTION
from tests.report.rendering import report_text, tree
from tests.report.test_documents import TOLD

REPORTS = [one for one in TOLD if document_of(one).begins]
NAMES = [f"{kind_of(one).name}-{i}" for i, one in enumerate(REPORTS)]
HEADINGS = packaged_table("report/words.toml")["order"]["sections"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def first_lines(answer: object, width: int) -> str:
    """What stands on a terminal of 24 lines, a long command in several, as one text."""
    lines, room = [], SCREEN
    for line in report_text(answer, width).splitlines():
        lines.append(line[: room * width])
        room -= max(1, -(-len(line) // width))
        if room <= 0:
            break
    return " ".join(" ".join(lines).split())


def place_of(title: str) -> int | None:
    return next((i for i, words in enumerate(HEADINGS) if re.match(rf"{words}\b", title)), None)


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("answer", REPORTS, ids=NAMES)
class TestFirstScreen:
    def test_it_fits(self, answer, width):
        text = text_of(document_of(answer), width, is_brief=True)
        assert sum(max(1, -(-len(line) // width)) for line in text.splitlines()) <= SCREEN

    def test_it_says_what_is_decided_how_sure_what_proves_it_and_what_starts_it(
        self, answer, width
    ):
        first, document = first_lines(answer, width), document_of(answer)
        said = document.begins[0]
        if isinstance(said, Note):
            assert first.startswith(" ".join(said.text.split()))
        assert ("how sure " in first) is bool(times_of(answer))
        proof = getattr(answer, "certificate", None)
        if proof is not None:
            assert "proof " in first
            assert kind_of(answer).name == "staircase" or "bound " in first
        commands = [
            block.text
            for one in document.sections
            if one.title == "start"
            for block in one.blocks
            if isinstance(block, Command)
        ]
        if len(commands) == 1:
            assert commands[0][:40] in first
        elif commands:
            assert f"start {len(commands)} commands" in first


@pytest.mark.parametrize("answer", [PLAN, ENGINE_PLAN], ids=["layouts", "engine"])
def test_a_plan_says_first_what_users_see_what_it_costs_and_its_gap(answer: Plan):
    first, best = first_lines(answer, 80), answer.deployment
    for figure in (
        f"TPOT {show(best.planned_tpot_s, 's')}",
        show(best.usd_per_token, "USD/token"),
        show(best.usd_per_hour, "USD/h"),
        f"{answer.certificate.objective_name} "
        f"{show(answer.certificate.objective, answer.certificate.dimension)}",
        "gap 0 %",
        "HiGHS 1.13.1",
    ):
        assert figure in first
    if answer is ENGINE_PLAN:
        assert (
            f"TPOT {show(best.tpot_s.value, 's')} (at most {show(best.planned_tpot_s, 's')}"
            in first
        )


def test_a_plan_says_first_what_more_of_the_machine_would_gain():
    gains = [
        ResourceGain(name=it, factor=1.1, objective=1.0, gain_fraction=0.1)
        for it in ("flops", "hbm_bandwidth")
    ]
    first = first_lines(replace(PLAN, gains=tuple(gains)), 80)
    assert "gains 10 % by 1.1x of FLOP/s, 10 % by 1.1x of HBM bandwidth" in first
    assert "gains " not in first_lines(PLAN, 80)
    nothing = replace(gains[0], gain_fraction=0.0)
    first = first_lines(replace(PLAN, gains=(gains[0], nothing)), 80)
    assert "gains 10 % by 1.1x of FLOP/s" in first
    assert " 0 % by" not in first
    load = Load(requests_per_s=9.0, most_requests_per_s=8.0, station=None)
    first = first_lines(replace(PLAN, load=load, gains=(nothing,)), 80)
    assert "gains nothing by more of any one resource; of replicas alike: several sorts" in first


def test_a_plan_of_several_replicas_says_that_its_command_starts_each():
    several = replace(ENGINE_PLAN, deployment=replace(ENGINE_PLAN.deployment, n_replicas=3))
    assert "start each of 3 replicas is started with flags of" in first_lines(several, 80)
    assert "start with flags of" in first_lines(ENGINE_PLAN, 80)


def test_a_prediction_says_first_what_it_costs():
    cluster = PREDICTION.request.records.cluster
    rent = PREDICTION.n_devices * cluster.usd_per_hour
    token = rent / 3600 / PREDICTION.total_tokens_per_s
    first = first_lines(PREDICTION, 80)
    assert f"costs {show(token, 'USD/token')}, {show(rent, 'USD/h')} for 1 device" in first
    assert f"TPOT {show(PREDICTION.tpot_s.value, 's')} (" in first
    records = replace(PREDICTION.request.records, cluster=replace(cluster, usd_per_hour=0.0))
    unpriced = replace(PREDICTION, request=replace(PREDICTION.request, records=records))
    assert "costs " not in first_lines(unpriced, 80)


def test_a_placement_says_first_what_its_slowest_replica_does():
    (recipe,) = PLACEMENT.recipes
    first = first_lines(PLACEMENT, 80)
    assert f"TPOT {show(recipe.tpot_s, 's')} at the slowest replica" in first
    assert f"TTFT {show(recipe.ttft_s, 's')} at the slowest replica" in first
    assert show(PLACEMENT.used("rent"), "USD/h") in first


@pytest.mark.parametrize("fleet", [FLEET, APART], ids=["together", "apart"])
def test_a_fleet_says_first_every_percentile_that_has_a_target(fleet):
    first = first_lines(fleet, 80)
    assert show(fleet.usd_per_hour, "USD/h") in first
    for outcome in fleet.classes:
        for it in outcome.percentiles:
            said = f"{it.quantity.upper()} p{100 * it.share:g} {show(it.simulated_s, 's')} (target "
            assert (said in first) is (it.at_most_s is not None)


def test_an_audit_says_first_what_was_observed_beside_what_was_predicted():
    first = first_lines(ENGINE_AUDIT, 80)
    assert f"{show(ENGINE_AUDIT.observed_tpot_s, 's')} a token" in first
    assert f"predicted TPOT {show(ENGINE_AUDIT.predicted.tpot_s.value, 's')}" in first


def test_no_plan_says_first_why_what_is_reachable_and_the_command_that_has_one():
    first = first_lines(CONFLICT, 80)
    for one in CONFLICT.obstacles:
        assert f" {show(one.reachable, one.dimension)} " in first
    assert "is out of reach" in first
    assert CONFLICT.command[:60] in first


@pytest.mark.parametrize("answer", REPORTS, ids=NAMES)
class TestOrder:
    def test_headings_come_in_the_listed_order_in_text_and_page(self, answer):
        document = document_of(answer)
        _, rest = parts_of(document)
        titles = [one.title for one in rest if one.title]
        places = [place for place in map(place_of, titles) if place is not None]
        assert places == sorted(places)
        heads = [one.text for one in tree(page_of(document)).iterfind(".//{*}h2")]
        names = [title.partition(": ")[0] for title in titles]  # figures stand below them
        assert heads == [name for name in names if name in heads]
        lines = text_of(document, 100).splitlines()
        shown = [line for line in lines if line in titles]
        assert len(shown) >= len(titles) // 2
        assert shown == [title for title in titles if title in shown]

    def test_a_heading_is_listed_or_follows_what_it_is_part_of(self, answer):
        if kind_of(answer).name in ("devices", "engines", "catalogue"):
            return
        _, rest = parts_of(document_of(answer))
        unlisted = [one.title for one in rest if one.title and place_of(one.title) is None]
        curves = getattr(answer, "curves", ())
        assert len(unlisted) == len(curves)  # each curve has its name as its heading


def test_rows_of_sections_are_read_first_and_a_status_of_each_is():
    document = Document(
        title="t",
        line="l",
        head=(Note("decided"),),
        sections=(
            section("", Note("why")),
            section("certificate of a", Pairs([("status", "optimal"), ("proved by", "x")])),
            section("first screen", Pairs([("how sure", "inside")])),
            section("accuracy", Pairs([("times", "of an engine")])),
            section("certificate of b", Pairs([("status", "feasible"), ("proved by", "y")])),
            section("of b too", Note("n")),
        ),
    )
    first, rest = parts_of(document)
    assert [block for one in first[:2] for block in one.blocks] == [Note("decided"), Note("why")]
    (said,) = (dict(row for row in block.rows if row[1]) for block in first[2].blocks if block)
    assert said == {"how sure": "inside", "proof": "optimal; feasible; bound proved by x"}
    titles = [one.title for one in rest]
    assert titles == ["accuracy", "certificate of a", "certificate of b", "of b too"]


class TestTerminal:
    def text(self, words: str, stream: io.StringIO, document: Document | None = None) -> str:
        return screen_text(parse(words.split()), document or document_of(PLAN), stream)

    def test_it_gets_the_first_screen_and_how_to_see_more(self):
        whole, brief = (text_of(document_of(PLAN), width(), is_brief=it) for it in (False, True))
        shown = self.text("plan", Terminal())
        n_more = whole.count("\n") - brief.count("\n")
        assert shown == f"{brief}\n\n… {n_more} more lines: `--full`"

    def test_a_pipe_gets_all_and_so_does_who_asks_for_it(self):
        whole = text_of(document_of(PLAN), width())
        assert self.text("", io.StringIO()) == whole
        assert self.text("--full", Terminal()) == self.text("--full", io.StringIO()) == whole
        assert self.text("pareto --all", Terminal()) == whole
        assert self.text("models", Terminal()) == whole  # a listing has no first screen

    def test_the_first_screen_alone_is_the_same_on_both(self):
        brief = text_of(document_of(PLAN), width(), is_brief=True)
        assert self.text("--brief", io.StringIO()) == self.text("--brief", Terminal()) == brief

    def test_what_fits_on_a_screen_is_not_cut(self):
        short = Document(
            title="t", line="l", head=(Note("a"),), sections=(section("request", Note("b")),)
        )
        assert self.text("", Terminal(), short) == "a\n\nrequest\n  b"
        long = replace(short, sections=(section("request", *[Note("b")] * SCREEN),))
        assert self.text("", Terminal(), long) == "a\n\n… 26 more lines: `--full`"


def test_a_throughput_of_one_replica_is_called_one_of_several_that_may_be_asked_for():
    for objective, n_replicas, is_of_one in (
        ("throughput", None, True),
        ("throughput", 2, False),
        ("cost", None, False),
    ):
        targets = replace(PLAN.request.targets, n_replicas=n_replicas)
        request = replace(PLAN.request, targets=targets, objective=objective)
        text = " ".join(report_text(replace(PLAN, request=request), 100).split())
        assert ("optimal: no plan of one replica with" in text) is is_of_one
        assert ("hint: one replica was considered: `--replicas N`" in text) is is_of_one
