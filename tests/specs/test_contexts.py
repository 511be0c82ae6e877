"""A request longer than a model attends to is refused by name, wherever a workload is asked for."""

from dataclasses import replace

import pytest

from planner import Targets, place, plan
from planner.errors import RequestError
from planner.planning.pareto import frontier
from planner.runtimes.predicting import impossible
from planner.specs.ask.quality import context_problems
from planner.specs.ask.targets import Speculation
from planner.specs.files.ledger import recording
from planner.specs.files.reading import load_architecture, load_cluster, load_model
from planner.specs.records.devices import Workload
from planner.specs.records.variants import Variant
from planner_workshop.staging.asking import cut_stages
from tests.requests import MODEL, torus

SHORT = replace(MODEL, name="short", n_context_tokens=1000)
LONG = Workload(n_input_tokens=900, n_output_tokens=101)
FITS = Workload(n_input_tokens=900, n_output_tokens=100)


def problems_of(call, *arguments, **keywords):
    with pytest.raises(RequestError) as caught:
        call(*arguments, **keywords)
    return [(one.where, one.value, one.fact) for one in caught.value.problems]


def test_the_last_token_that_fits_is_the_last_of_the_context():
    assert list(context_problems(SHORT, 900, 100)) == []
    (problem,) = context_problems(SHORT, 900, 101)
    fact = "attends to 1000 tokens at most, and a request has 900 in and 101 out"
    assert (problem.value, problem.fact) == ("short", fact)
    assert problem.remedy == "write `--input 899` or less"
    assert list(context_problems(SHORT, 899, 101)) == []


def test_an_answer_longer_than_the_context_is_shortened():
    (problem,) = context_problems(SHORT, 1, 1000)
    assert problem.remedy == "write fewer `--output`"


def test_a_model_of_which_nothing_is_known_has_no_limit():
    assert list(context_problems(MODEL, 1e9, 1e9)) == []


@pytest.mark.parametrize("call", [plan, frontier, place])
def test_a_request_of_layouts_is_refused(call):
    asked = {"workload": LONG, "targets": Targets(), "batches": (1,)}
    ((where, value, _),) = problems_of(call, *_in_order(call), **asked)
    assert (where, value) == ("--model", "short")


def _in_order(call):
    """`place` takes the cluster first."""
    both = (SHORT, torus(1, 1, 2))
    return both[::-1] if call is place else both


def test_a_request_that_fits_is_planned():
    found = plan(SHORT, torus(1, 1, 2), workload=FITS, batches=(1,), prefill_batches=(1,))
    assert found.request.workload == FITS


def test_a_draft_attends_to_the_same_sequence():
    asked = {"workload": LONG, "batches": (1,), "speculation": Speculation(draft=SHORT)}
    ((where, value, _),) = problems_of(plan, MODEL, torus(1, 1, 2), **asked)
    assert (where, value) == ("--draft", "short")


def test_a_variant_has_to_attend_to_the_request_too():
    said = Variant(of=MODEL.name, how="pruned", quality="none")
    asked = {"workload": LONG, "batches": (1,), "variants": [replace(SHORT, variant=said)]}
    ((where, value, _),) = problems_of(plan, MODEL, torus(1, 1, 2), **asked)
    assert (where, value) == ("--variants", "short")


ENGINES = Workload(n_input_tokens=40_960, n_output_tokens=2)


def test_the_reference_model_refuses_it():
    pool = load_cluster("h100-nvl8-x1")
    ((_, value, _),) = problems_of(
        plan, load_model("qwen3-8b"), pool, "erdil2025", workload=ENGINES, batches=(1,)
    )
    assert value == "qwen3-8b"


def test_an_engine_refuses_it_and_names_its_variants():
    pool, model = load_cluster("h100-nvl8-x1"), load_architecture("qwen3-8b")
    said = Variant(of="qwen3-8b", how="pruned", quality="none")
    found = problems_of(
        plan,
        model,
        pool,
        "vllm",
        workload=ENGINES,
        variants=[replace(model, name="small", variant=said)],
    )
    assert [(where, value) for where, value, _ in found] == [
        ("--model", "qwen3-8b"),
        ("--variants", "small"),
    ]


def test_a_cut_into_stages_is_refused():
    model = load_architecture("qwen3-8b")
    ((_, value, _),) = problems_of(cut_stages, model, "h100-sxm:tp8", workload=ENGINES)
    assert value == "qwen3-8b"


def test_a_prediction_is_refused():
    from planner.estimates.serving.deployments import deployments
    from planner.estimates.serving.traffic import Traffic
    from tests.report.predictions import FP8, machines

    found = impossible(
        load_architecture("qwen3-8b"),
        machines("h20-nvl8-x1", "sglang"),
        deployments(formats=FP8),
        Traffic(n_input_tokens=40_960, n_output_tokens=2),
    )
    assert [one.value for one in found] == ["qwen3-8b"]


def test_a_file_says_how_much_a_model_attends_to(folder):
    assert load_model("tiny").n_context_tokens is None
    folder.spoil("models/tiny.toml", ("n_layers = 1", "context = 32\nn_layers = 1"))
    assert load_model("tiny").n_context_tokens == 32
    assert load_architecture("tiny").n_context_tokens == 32


def test_a_draft_of_another_vocabulary_is_refused_with_both_sizes():
    apart = replace(MODEL, name="apart", vocab_size=MODEL.vocab_size + 129)
    asked = {"batches": (1,), "speculation": Speculation(draft=apart)}
    ((where, value, fact),) = problems_of(plan, MODEL, torus(1, 1, 2), **asked)
    assert (where, value) == ("--draft", "apart")
    said = "has a vocabulary of 32129 tokens, `toy-8b` of 32000: it proposes other tokens"
    assert fact == said


@pytest.mark.parametrize("n_more", [128, -128])
def test_a_vocabulary_that_is_padded_otherwise_is_the_same_and_it_is_said(n_more):
    padded = replace(MODEL, name="padded", n_layers=2, vocab_size=MODEL.vocab_size + n_more)
    with recording() as ledger:
        plan(MODEL, torus(1, 1, 2), batches=(1,), speculation=Speculation(draft=padded))
    (remark,) = ledger.remarks
    assert (remark.where, remark.value) == ("--draft", "padded")
    assert remark.fact.endswith("taken for one, padded differently; vLLM refuses it")


def test_of_equal_vocabularies_nothing_is_said():
    with recording() as ledger:
        plan(MODEL, torus(1, 1, 2), batches=(1,), speculation=Speculation(draft=MODEL))
    assert ledger.remarks == ()
