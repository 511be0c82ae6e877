"""Rules of engines: each refuses what it says, and nothing else does; read, changed, and judged."""

from __future__ import annotations

import io
import json
from collections import defaultdict
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from planner import verify
from planner.commands.cli import main
from planner.errors import RequestError
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.rules import Context, Run, faults, is_valid, pairs_start, starts
from planner.specs.files.engines import CUTS, changed_rules, load_engine, load_rules
from planner.specs.files.places import Kind, files
from planner.specs.files.reading import load_architecture, load_cluster
from planner.specs.records.devices import NodesFabric
from planner.specs.records.engine_rules import NAMES, EngineRule, parsed
from planner.specs.records.served_formats import ServedFormats
from planner.verifier.serving.starting import unpaired, unstartable
from research.sets.predicted import architecture, cluster, formats, table_of
from research.sets.rows import served

POOLS = {"h200": "h200-nvl8-x4", "a100-80gb": "a100-nvl8-x4", "l40s": "l40s-x8"}
ENGINE_OF = {"vllm-0.33.0": "vllm", "sglang-0.5.23": "sglang", "trtllm-9e7f85f": "trtllm"}

DENSE, MIXTURE, LATENT = "llama-3.1-70b", "qwen3-30b-a3b", "deepseek-v3"
WIDE = {"model": LATENT, "dp": 8, "ep": 8, "weights": "fp8_block"}
"""All that exchange: what each engine starts of DeepSeek-V3 on a node."""

HITS = {
    CUTS: {
        "equal-heads": {"model": "mixtral-8x7b", "tp": 16, "heads": 40},
        "equal-kv-heads": {"tp": 8, "kv_heads": 12},
        "equal-ffn": {"tp": 8, "width": 28_676},
        "equal-expert-groups": {"model": MIXTURE, "tp": 8, "ep": 8, "experts": 100},
        "equal-experts": {"model": MIXTURE, "tp": 8, "expert_width": 772},
        "groups-of-experts": {"tp": 8, "ep": 8},
        "parts-that-are-timed": {"tp": 8, "family": "rwkv6"},
        "stages-of-side-by-side-layers": {"pp": 2, "family": "falcon_h1"},
    },
    "vllm-0.33.0": {
        "families": {"tp": 8, "family": "minimax_text_01"},
        "equal-vocabulary": {"model": "mistral-large-2", "tp": 3, "heads": 96, "kv_heads": 12,
                             "width": 28_671, "vocabulary": 32_768},
        "experts-over-all-or-none": {"model": MIXTURE, "tp": 4, "ep": 2},
        "blocks-of-weights": {"tp": 8, "width": 28_680, "weights": "fp8_block"},
        "blocks-of-experts": {"model": MIXTURE, "tp": 4, "expert_width": 720,
                              "experts_format": "fp8_block"},
        "exchanges-by-deepep": {**WIDE, "device": "l40s"},
        "stages-of-state-models": {"pp": 2, "family": "mamba2"},
        "decode-in-one-stage": {"tp": 4, "pp": 2, "role": "decode"},
        "prefill-in-one-stage": {"tp": 4, "pp": 2, "role": "prefill"},
        "tensor-degrees-of-pairs": {"tp": 2, "pair": {"tp": 3}},
        "caches": {"tp": 4, "cache": "int8"},
        "drafters": {"tp": 4, "drafter": "medusa"},
        "room-for-the-batch": {"tp": 4, "batch": 2049, "chunk": 2048},
        "equal-shares-of-nodes": {"tp": 4, "pp": 3},
        "copies-between-groups": {"model": MIXTURE, "tp": 4, "redundant": 8},
        "families-with-copies": {"model": MIXTURE, "tp": 4, "ep": 4, "redundant": 8,
                                 "family": "gpt_oss"},
        "formats-with-copies": {"model": MIXTURE, "tp": 4, "ep": 4, "redundant": 8,
                                "experts_format": "int4"},
    },
    "sglang-0.5.23": {
        "families": {"tp": 8, "family": "jamba"},
        "equal-vocabulary": {"model": "mistral-large-2", "tp": 3, "heads": 96, "kv_heads": 12,
                             "width": 28_671, "vocabulary": 32_768},
        "experts-over-all-that-exchange": {**WIDE, "ep": 4},
        "formats-that-exchange": {**WIDE, "weights": "bf16"},
        "exchanges-by-deepep": {**WIDE, "device": "l40s"},
        "families-that-exchange": {**WIDE, "family": "mixtral"},
        "blocks-of-weights": {"tp": 8, "width": 28_680, "weights": "fp8_block"},
        "blocks-of-experts": {"model": MIXTURE, "tp": 4, "experts_format": "fp8_block",
                              "expert_width": 736},
        "formats-of-experts": {"model": MIXTURE, "tp": 4, "experts_format": "fp8",
                               "device": "a100-80gb"},
        "families-in-stages": {"pp": 2, "family": "gemma2"},
        "drafts-in-one-stage": {"tp": 4, "pp": 2, "drafter": "eagle"},
        "drafters": {"tp": 4, "drafter": "medusa"},
        "stages-of-pairs": {"tp": 2, "pp": 4, "pair": {"tp": 2, "pp": 2}},
        "tensor-degrees-of-pairs": {"tp": 2, "pair": {"tp": 3}},
        "caches": {"tp": 4, "cache": "nvfp4"},
        "chunks-of-pages": {"model": LATENT, "tp": 8, "chunk": 2000},
        "equal-shares-of-nodes": {"tp": 4, "pp": 3},
        "servers-on-nodes": {"tp": 2, "pp": 3, "dp": 4},
        "groups-of-deepep": {**WIDE, "dp": 40, "ep": 40, "experts": 320},
        "copies-between-groups": {"model": MIXTURE, "tp": 4, "redundant": 8},
        "families-with-copies": {"model": MIXTURE, "tp": 4, "ep": 4, "redundant": 8,
                                 "family": "mixtral"},
    },
    "trtllm-9e7f85f": {
        "families": {"tp": 8, "family": "jamba"},
        "attention-data-parallel": {"model": LATENT, "tp": 4, "dp": 2, "ep": 8},
        "one-batch-at-a-time": {**WIDE, "overlaps": True},
        "formats-of-weights": {"tp": 4, "weights": "fp8", "device": "a100-80gb"},
        "formats-of-experts": {"model": MIXTURE, "tp": 4, "experts_format": "mxfp4",
                               "device": "a100-80gb"},
        "drafts-in-one-stage": {"tp": 4, "pp": 2, "drafter": "mtp"},
        "families-of-eagle": {"model": LATENT, "tp": 8, "drafter": "eagle"},
        "families-of-roles": {"tp": 4, "family": "gemma4_text", "role": "decode"},
        "caches": {"tp": 4, "cache": "nvfp4"},
        "equal-shares-of-nodes": {"tp": 4, "pp": 3},
        "servers-on-nodes": {"tp": 2, "pp": 3, "dp": 4},
        "no-copies": {"model": MIXTURE, "tp": 4, "ep": 4, "redundant": 8},
    },
}  # fmt: skip
"""A deployment for each rule that breaks it, and no other of its engine."""

SHIPPED = [(path.stem, rule) for path in files(Kind.RULES) for rule in load_rules(path.stem).rules]
IDS = [f"{file} {rule.name}" for file, rule in SHIPPED]
assert len(SHIPPED) > 40


def _model(name, asked):
    """A model, with some quantities of its layers as they are wanted."""
    model = load_architecture(name)
    mixer = {"n_heads": asked.get("heads"), "n_kv_heads": asked.get("kv_heads")}
    ffn = {"d_ff": asked.get("width")}
    experts = {"n_experts": asked.get("experts"), "d_expert": asked.get("expert_width")}
    layers = []
    for layer in model.layers:
        of_ffn = experts if hasattr(layer.ffn, "n_experts") else ffn
        layers.append(replace(layer, mixer=_with(layer.mixer, mixer), ffn=_with(layer.ffn, of_ffn)))
    family, vocabulary = asked.get("family", model.family), asked.get("vocabulary")
    model = replace(model, layers=tuple(layers), family=family)
    return _with(model, {"vocab_size": vocabulary})


def _with(part, numbers):
    return replace(part, **{key: value for key, value in numbers.items() if value is not None})


def _deployed(engine, rules, **asked):
    """What the finder and the judge look at of a deployment."""
    model = _model(asked.get("model", DENSE), asked)
    cluster = load_cluster(POOLS[asked.get("device", "h200")])
    weights = asked.get("weights", "bf16")
    formats = ServedFormats(
        weights=weights,
        experts=asked.get("experts_format", weights),
        cache=asked.get("cache", "bf16"),
    )
    drafter, role = asked.get("drafter", ""), asked.get("role", "together")
    n_drafted = 2 * bool(drafter)
    table = deployments(
        formats=formats,
        n_tensor=asked.get("tp", 1),
        n_data=asked.get("dp", 1),
        n_stages=asked.get("pp", 1),
        n_expert_parallel=asked.get("ep", 1),
        n_redundant=asked.get("redundant", 0),
        batch=asked.get("batch", 8),
        chunk_tokens=asked.get("chunk", 8192),
        overlaps=asked.get("overlaps", False),
    )
    run = Run(role=role, formats=formats, drafter=drafter, n_drafted=n_drafted)
    assert isinstance(cluster.fabric, NodesFabric)
    per_node = cluster.fabric.n_devices_per_node
    ground = Context(rules=rules, device=cluster.device, n_per_node=per_node, run=run)
    degrees = ("n_tensor", "n_data", "n_stages", "n_expert_parallel", "n_expert_tensor")
    says = SimpleNamespace(
        **{name: int(getattr(table, name)[0]) for name in degrees},
        n_redundant_experts=int(table.n_redundant[0]),
        n_expert_devices=0,
        batch=int(table.batch[0]),
        chunk_tokens=int(table.chunk_tokens[0]),
        drafter=drafter,
        n_drafted=n_drafted,
        role=role,
    )
    judged = unstartable(
        replace(engine, rules=rules),
        model,
        cluster,
        says,
        loaded=formats,
        overlaps=asked.get("overlaps", False),
    )
    return model, table, ground, says, list(judged)


def _may_pair(engine, rules, asked):
    """Whether both let a replica hand over to another."""
    model, _, _, prefill, _ = _deployed(engine, rules, **asked)
    _, _, _, decode, _ = _deployed(engine, rules, **asked["pair"])
    ends = [
        {"tp": [it.n_tensor], "dp": [it.n_data], "pp": [it.n_stages]} for it in (prefill, decode)
    ]
    found = bool(pairs_start(rules, model, *ends)[0, 0])
    assert found == (not list(unpaired(replace(engine, rules=rules), model, prefill, decode)))
    return found


@pytest.mark.parametrize(("file", "rule"), SHIPPED, ids=IDS)
def test_a_rule_refuses_what_it_says_and_without_it_the_deployment_starts(file, rule):
    asked = HITS[file][rule.name]
    names = [ENGINE_OF[file]] if file in ENGINE_OF else list(ENGINE_OF.values())
    for name in names:
        engine = load_engine(name)
        assert rule in engine.rules
        rest = tuple(one for one in engine.rules if one != rule)
        if (
            file == CUTS
        ):  # of two of these at once, since parts that are uneven are so in several ways
            rest = tuple(one for one in load_rules(CUTS).rules if one != rule)
        if "pair" in asked:
            assert not _may_pair(engine, engine.rules, asked)
            assert _may_pair(engine, rest, asked)
            continue
        model, table, ground, _, judged = _deployed(engine, (*rest, rule), **asked)
        assert faults(model, table, ground)[rule.says][0]
        assert [it.fact for it in judged] == [rule.words]
        model, table, ground, _, judged = _deployed(engine, rest, **asked)
        assert is_valid(model, table, ground)[0]
        assert judged == []


def test_no_hit_is_of_a_rule_that_there_is_not():
    assert {(file, name) for file in HITS for name in HITS[file]} == {
        (file, rule.name) for file, rule in SHIPPED
    }


@pytest.mark.parametrize("name", ENGINE_OF.values())
def test_each_rule_has_a_source_and_the_file_its_version(name):
    engine = load_engine(name)
    assert engine.started_version
    assert engine.started_version != engine.version
    assert all(rule.source and rule.source != "assumed" for rule in engine.rules)
    assert len({rule.name for rule in engine.rules}) == len(engine.rules)
    assert len({rule.says for rule in engine.rules}) == len(engine.rules)


def test_the_document_has_every_name_of_a_condition():
    document = (Path(__file__).parents[2] / "docs/rules.md").read_text()
    assert [it for it in NAMES.items() if "| `{}` | {} |\n".format(*it) not in document] == []


def test_what_is_not_known_yet_is_not_asked_of():
    """Of a cut alone: nothing of roles, batches and formats."""
    engine, model = load_engine("vllm"), load_architecture(DENSE)
    formats = ServedFormats(weights="bf16", experts="bf16", cache="int8")
    table = deployments(formats=formats, n_tensor=4, n_stages=[1, 2], batch=5000, chunk_tokens=64)
    cuts = Context(rules=engine.rules, n_per_node=8)
    assert starts(cuts, model, table).tolist() == [True, True]
    whole = replace(cuts, run=Run(role="decode", formats=formats))
    assert starts(whole, model, table, beyond=cuts).tolist() == [False, False]
    known = {rule.name for rule in engine.rules if starts_not(rule, whole, model, table)}
    assert known == {"decode-in-one-stage", "caches", "room-for-the-batch"}


def starts_not(rule, ground, model, table):
    return not starts(replace(ground, rules=(rule,)), model, table).all()


@pytest.mark.parametrize(
    ("condition", "fact"),
    [
        ("__import__('os')", "has a Call"),
        ("tp.real == 1", "has a Attribute"),
        ("tp ** 9 == 1", "has a Pow"),
        ("[tp for tp in (1, 2)]", "has a ListComp"),
        ("tensor == 1", "names `tensor`"),
        ("tp == 1.5", "has 1.5"),
        ("tp == 99999999999", "a number above"),
        ("tp ==", "invalid syntax"),
        ("tp == 1" + " or tp == 1" * 300, "more than 2000 characters"),
    ],
)
def test_what_is_no_condition_is_refused(condition, fact, tmp_path):
    with pytest.raises(SyntaxError, match=fact.replace("(", r"\(")):
        parsed(condition)
    file = tmp_path / "own.toml"
    file.write_text(
        f'[rules]\nengine = "vllm"\n[[rule]]\nname = "a"\nsays = "b"\nsource = "c"\n'
        f'require = """{condition}"""\n'
    )
    with pytest.raises(RequestError) as refused:
        load_rules(str(file))
    assert "is no condition" in refused.value.problems[0].fact


def test_all_faults_of_a_file_are_told_at_once(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('[rules]\nengin = "vllm"\n[[rule]]\nname = "a"\nrequire = "x"\n')
    with pytest.raises(RequestError) as refused:
        load_rules(str(file))
    keys = {problem.key for problem in refused.value.problems}
    assert {"rules.engin", "rule[0].says", "rule[0]", "rule[0].require"} <= keys


OWN = """
[rules]
engine = "vllm"
lift = ["decode-in-one-stage"]

[[rule]]
name = "no-more-than-four"
says = "our racks have power for four of them"
require = "tp <= 4"
source = "the room"
"""


def test_a_users_file_lifts_rules_and_adds_some(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    with changed_rules(str(file)):
        changed = load_engine("vllm")
        other = load_engine("sglang")
    plain = load_engine("vllm")
    names, usual = ({rule.name for rule in it.rules} for it in (changed, plain))
    assert usual - names == {"decode-in-one-stage"}
    assert names - usual == {"no-more-than-four"}
    assert (changed.lifted, changed.rules_file) == (("decode-in-one-stage",), str(file))
    assert (other, plain.lifted, plain.rules_file) == (load_engine("sglang"), (), "")
    model, table, ground, _, judged = _deployed(changed, changed.rules, tp=8)
    assert not is_valid(model, table, ground)[0]
    assert "our racks have power for four" in judged[0].fact
    asked = {"tp": 4, "pp": 2, "role": "decode"}
    model, table, ground, _, judged = _deployed(changed, changed.rules, **asked)
    assert is_valid(model, table, ground)[0]
    assert judged == []


def test_a_file_that_lifts_what_there_is_not_is_refused(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('[rules]\nengine = "vllm"\nlift = ["decode-in-one-stag"]\n')
    with changed_rules(str(file)), pytest.raises(RequestError) as refused:
        load_engine("vllm")
    assert refused.value.problems[0].remedy == "did you mean `decode-in-one-stage`?"


def test_files_that_hide_rules_that_ship_are_refused(tmp_path, monkeypatch):
    """They would lift rules and no answer would say so."""
    shipped, root = load_engine("vllm"), next(files(Kind.ENGINE)).resolve().parents[1]
    monkeypatch.chdir(tmp_path)
    for name, other in {
        "engines/vllm.toml": ('rules = ["cuts", "vllm-0.33.0"]', 'rules = ["cuts"]'),
        "engines/rules/vllm-0.33.0.toml": ("pp == 1", "pp <= 2"),
    }.items():
        text, file = (root / name).read_text(), tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        assert load_engine("vllm") == shipped  # a copy changes nothing
        file.write_text(text.replace(*other))
        with pytest.raises(RequestError, match="--rules"):
            load_engine("vllm")
        file.unlink()


def test_both_read_every_operator_alike():
    """The finder by arrays, the judge by scalars; also where something is divided by nothing."""
    engine = load_engine("vllm")
    for text, holds in {
        "tp + pp - 1 == 4": True,
        "tp // (pp - 1) == 4": True,
        "tp % (pp - 1) == 0": True,
        "1 < tp <= 4 < 5 and not tp == 3": True,
        "tp in (1, 2)": False,
        "tp not in [1, 2]": True,
        "role in ('decode', 'prefill') or device != 'h200'": False,
        "role not in ('decode',) and 'fp8' in multiplies": True,
        "'fp4' not in multiplies and window": False,
        "mixture or latent or state or overlaps": False,
        "heads * tp >= 256 and layers == 80": True,
    }.items():
        rule = EngineRule(name="a", says=text, require=text, source="")
        model, table, ground, _, judged = _deployed(engine, (rule,), tp=4)
        assert starts(ground, model, table)[0] == holds, text
        assert (not judged) == holds, text
    assert {"tp", "sequences", "family", "prefill_tp"} < set(NAMES)


def test_no_rule_refuses_what_somebody_ran():
    """Of 4,697 measured servers all but 53, which ranks are written as one rank of uneven parts."""
    groups = defaultdict(list)
    for row in served():
        if row.series.engine in ENGINE_OF.values():
            groups[row.series.engine, row.series.model, row.series.gpu, formats(row)].append(row)
    n_rows = n_refused = 0
    for (name, model, gpu, chosen), rows in groups.items():
        engine, device = load_engine(name), cluster(gpu)
        run = Run(role="together", formats=chosen)
        per_node = device.fabric.n_devices_per_node
        ground = Context(rules=engine.rules, device=device.device, n_per_node=per_node, run=run)
        table = table_of(rows, chosen, engine)
        cuts = starts(replace(ground, rules=load_rules(CUTS).rules), architecture(model), table)
        assert starts(ground, architecture(model), table)[cuts].all(), (name, model, gpu)
        n_rows, n_refused = n_rows + len(rows), n_refused + int((~cuts).sum())
    assert (n_rows, n_refused) == (4_697, 53)


@pytest.fixture(scope="module")
def answered():
    """An answer by the rules that ship, as JSON."""
    words = "--engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --batch 8 --json"
    with redirect_stdout(io.StringIO()) as out:
        assert main(words.split()) == 0
    return out.getvalue()


FORGED = {
    "lacks one": (lambda engine: engine["rules"].pop(), "rules"),
    "lacks all, of another version": (
        lambda engine: engine.update(rules=[], started_version="0.34.0"),
        "started_version",
    ),
    "alters one": (lambda engine: engine["rules"][8].update(require="ep >= 1"), "rules/8/require"),
    "says another source": (
        lambda engine: engine["rules"][8].update(source="me"),
        "rules/8/source",
    ),
    "adds one": (lambda engine: engine["rules"].append(ADDED), "rules/25/name"),
    "lifts one without a file": (
        lambda engine: engine.update(lifted=[engine["rules"].pop()["name"]]),
        "lifted",
    ),
}
"""Records of an engine that nobody has, and where that is seen."""

ADDED = {"name": "a", "says": "b", "require": "tp >= 1", "source": "c", "when": "", "origin": ""}


@pytest.mark.parametrize("name", FORGED)
def test_an_answer_by_other_rules_than_those_that_ship_is_refused(answered, name):
    answer = json.loads(answered)
    forge, place = FORGED[name]
    assert verify(answer).is_true
    forge(answer["request"]["records"]["engine"])
    pointers = {one.pointer for one in verify(answer).falsehoods}
    assert f"/request/records/engine/{place}" in pointers


def _pointers(answer, before, after):
    """Where an answer is refused of which a word of the engine's record is another."""
    record = json.loads(answer)
    record["request"]["records"]["engine"] = json.loads(
        json.dumps(record["request"]["records"]["engine"]).replace(before, after)
    )
    start = "/request/records/engine/"
    return {one.pointer.removeprefix(start) for one in verify(record).falsehoods}


def test_the_command_line_changes_rules_and_the_answer_says_so(tmp_path, capsys):
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    words = (
        f"plan --engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --rules {file}".split()
    )
    assert main([*words[1:], "--batch", "8", "--json"]) == 0
    answer = capsys.readouterr().out
    engine = json.loads(answer)["request"]["records"]["engine"]
    assert engine["lifted"] == ["decode-in-one-stage"]
    assert "no-more-than-four" in {rule["name"] for rule in engine["rules"]}
    assert f"--rules {file}" in json.loads(answer)["answer"]["deployment"]["command"]
    assert verify(json.loads(answer)).is_true
    assert _pointers(answer, "decode-in-one-stage", "caches") == {"lifted/0"}
    assert _pointers(answer, "tp <= 4", "tp <= 8") == {"rules/24/require"}
    file.write_text(OWN.replace("tp <= 4", "tp <= 2"))
    assert not _pointers(answer, "tp <= 4", "tp <= 8")  # who changed it is not known any more
    assert f"what `{file}` changes" in " ".join(verify(json.loads(answer)).notes)
    file.write_text(OWN)
    assert main(["predict", *words[1:], "--tp", "8"]) == 2
    assert "our racks have power for four" in " ".join(capsys.readouterr().err.split())
    assert main(["--engine", "sglang", *words[3:]]) == 2
