"""Models of experts, latent attention and windows: read, counted, and refused with a remedy.

`MIXED` in conftest.py counts the parameters by hand.
"""
# ruff: noqa: E501  one case a row

import pytest

from planner.specs.files.reading import load_model
from planner.specs.records.shapes import MlaShape, MoeShape, WindowShape

POSITIVE = "write a positive whole number"
FILE = "models/mixed.toml"


def test_experts_latents_and_windows_are_read(mixed):
    model = load_model("mixed")
    assert model.moe == MoeShape(
        n_experts=4, n_active_experts=2, n_shared_experts=1, d_expert=4, n_dense_layers=1
    )
    assert model.mla == MlaShape(d_kv_latent=3, d_q_latent=5, d_rope=2, d_nope=4, d_value=3)
    assert model.window == WindowShape(n_tokens=7, n_layers=2)
    assert {"moe.n_experts", "mla.d_rope", "window.n_tokens"} <= {p.key for p in model.provenance}


def test_a_model_without_them_says_so(folder):
    model = load_model("tiny")
    assert (model.moe, model.mla, model.window) == (None, None, None)
    assert (model.n_moe_layers, model.expert_params, model.router_params) == (0, 0, 0)
    assert model.moe_layer_params == 0
    assert model.n_params_active == model.n_params == 50
    assert model.n_active_params_published is None


def test_parameters_are_counted_part_by_part(mixed):
    model = load_model("mixed")
    assert (model.n_params, model.n_params_active) == (2258, 1874)
    assert (model.attention_params, model.dense_ffn_params) == (230, 384)
    assert (model.expert_params, model.router_params) == (96, 32)
    assert (model.n_moe_layers, model.layer_params_served) == (2, 230 + 384)
    assert model.moe_layer_params == 230 + 32 + 5 * 96
    assert model.n_active_params_published == 1874


def test_parts_add_up_as_deployed(mixed):
    """Two heads padded to three: 5·6 + 3·7 + 3·8 = 75 parameters more in each of 3 layers."""
    mixed.spoil(FILE, ("n_heads = 2\n", "n_heads = 2\nn_heads_served = 3\n"))
    model = load_model("mixed")
    layers = model.layer_params_served + model.n_moe_layers * model.moe_layer_params
    assert model.n_params_served == layers + model.embedding_params == 2258 + 3 * 75


def test_dense_parts_of_a_dense_model(folder):
    """2·2·2·(2 + 1) = 24 of attention, 2·2·4 = 16 of FFN."""
    model = load_model("tiny")
    assert (model.attention_params, model.dense_ffn_params) == (24, 16)
    assert model.layer_params_served == 40


def test_queries_need_no_latent_of_their_own(mixed):
    """8·2·6 = 96 parameters instead of 5 (8 + 2·6) = 100, in each of 3 layers."""
    mixed.spoil(FILE, ("d_q_latent = 5\n", ""))
    model = load_model("mixed")
    assert model.mla.d_q_latent is None
    assert model.n_params == 2258 - 3 * 4


def test_shared_experts_and_dense_layers_may_be_none(mixed):
    """384 for the dense FFN give way to 512 − 96 for the router and four experts, twice more."""
    mixed.spoil(
        FILE,
        ("n_shared_experts = 1\n", ""),
        ("n_dense_layers = 1", "n_dense_layers = 0"),
        ("value = 2258", "value = 2098"),
        ("value = 1874", "value = 1522"),
        ("n_params = 1030", "n_params = 934"),  # the predictor's layer has no shared expert either
    )
    model = load_model("mixed")
    assert (model.moe.n_shared_experts, model.moe.n_dense_layers) == (0, 0)
    assert model.n_params == 690 + 3 * (32 + 4 * 96) + 160 == 2098
    assert model.n_params_active == 2098 - 3 * 2 * 96 == 1522


def test_a_latent_is_cached_once_for_keys_and_values(mixed):
    """3 + 2 numbers in 3 layers, two bytes each; a token leaves 2·2·2·2 B in `tiny`."""
    model = load_model("mixed")
    assert (model.d_cached, model.kv_bytes_per_token) == (5, 30)
    assert (load_model("tiny").d_cached, load_model("tiny").kv_bytes_per_token) == (4, 8)


def test_a_window_forgets(mixed):
    """Ten tokens: one layer keeps all, two keep seven: 24 × 5 numbers × 2 B."""
    model = load_model("mixed")
    assert [model.kv_bytes(n) for n in (1, 7, 10)] == [30, 7 * 30, 24 * 10]
    assert load_model("tiny").kv_bytes(10) == 80


def test_the_cache_may_take_other_formats(mixed):
    assert load_model("mixed").kv_formats == ("fp8", "bf16")
    assert load_model("tiny").kv_formats == ("bf16",)


@pytest.mark.parametrize(
    ("old", "new", "key", "value", "fact", "remedy"),
    [
        ("n_experts = 4", "n_experts = 0", "moe.n_experts", "0", "is zero", POSITIVE),
        ("n_experts = 4", "", "moe.n_experts", "", "is missing", ""),
        ("n_experts = 4", "n_expert = 4", "moe.n_expert", "", "unknown key", "did you mean `n_experts`?"),
        ("n_shared_experts = 1", "n_shared_experts = -1", "moe.n_shared_experts", "-1", "is negative", POSITIVE),
        ("n_dense_layers = 1", "n_dense_layers = true", "moe.n_dense_layers", "true", "is not a whole number", ""),
        ("d_expert = 4", "d_expert = 4.0", "moe.d_expert", "4.0", "is not a whole number", "write `4`"),
        ("d_value = 3", "d_value = nan", "mla.d_value", "nan", "is not a whole number", ""),
        ("d_q_latent = 5", "d_q_latent = 0", "mla.d_q_latent", "0", "is zero", POSITIVE),
        ("n_tokens = 7", "n_token = 7", "window.n_token", "", "unknown key", "did you mean `n_tokens`?"),
        ("n_tokens = 7", "n_tokens = { value = 7 }", "window.n_tokens", "", "has no source", 'name where the value comes from, or write source = "assumed"'),
        ('["fp8", "int4"]', '["fp8", "mxpf4"]', "formats.weights[1]", "mxpf4", "unknown number format", "did you mean `mxfp4`?"),
        ('["fp8", "bf16"]', '["fp8"]', "formats.kv", "[fp8]", "lacks one that is published, `bf16`", "list it too"),
        ('["fp8", "bf16"]', '["fp8", "bf16", "fp8"]', "formats.kv", "fp8", "is given twice", ""),
        ("d_expert = 4", "d_expert = 4\nn_groups = 3", "moe.n_groups", "3", "does not divide n_experts, 4", ""),
        ("d_expert = 4", "d_expert = 4\nn_groups = 2\nn_active_groups = 3", "moe.n_active_groups", "3", "is more than n_groups, 2", "routing is limited to some of them"),
        ("[moe]", '[variant]\nsource = "card"\nof = "x"\nhow = "pruned"\nquality = "good"\nn_block_tokens = 8\n[moe]', "variant.n_block_tokens", "8", "is of diffusion decoders only", ""),
        ("[moe]", '[variant]\nsource = "card"\nof = "x"\nhow = "diffusion"\nquality = "good"\nn_block_tokens = 8\n[moe]', "variant.n_denoising_steps", "", "is missing", "a diffusion decoder has it"),
        ("value = 1874", "value = nan", "check.n_params_active", "nan", "is not a number", ""),
    ],
)  # fmt: skip
def test_a_fault_of_one_value(mixed, only_problem, old, new, key, value, fact, remedy):
    mixed.spoil(FILE, (old, new))
    problem = only_problem(load_model, "mixed")
    assert (problem.where, problem.key, problem.value) == (FILE, key, value)
    assert (problem.fact, problem.remedy) == (fact, remedy)


@pytest.mark.parametrize(
    ("old", "new", "key", "value", "fact", "remedy"),
    [
        ("n_active_experts = 2", "n_active_experts = 5", "moe.n_active_experts", "5", "is more than n_experts, 4", "a token visits each expert once at most"),
        ("n_dense_layers = 1", "n_dense_layers = 3", "moe.n_dense_layers", "3", "leaves none of 3 layers to experts", "write fewer, or leave [moe] out"),
        ("n_dense_layers = 1", "n_dense_layers = 9", "moe.n_dense_layers", "9", "leaves none of 3 layers to experts", "write fewer, or leave [moe] out"),
        ("d_head = 6", "d_head = 4", "shape.d_head", "4", "is not d_rope + d_nope, 6", "with [mla], write `6`"),
        ("n_kv_heads = 2", "n_kv_heads = 1", "shape.n_kv_heads", "1", "is not n_heads, 2", "with [mla] a head has its own: write `2`"),
        ("n_layers = 2", "n_layers = 4", "window.n_layers", "4", "is more than the model has, 3", "count the layers that have a window"),
        ("value = 2258", "value = 3000", "check.n_params", "3000", "the shape has 2258 parameters, 3000 are published", "mend the shape: they may differ by 2.0%"),
        ("n_params = 1030", "n_params = 2060", "mtp.n_params", "2060", "such modules have 1030 parameters, 2060 are published", "mend the shape or their number: they may differ by 5%"),
        ("value = 1874", "value = 2258", "check.n_params_active", "2258", "the shape has 1874 active parameters, 2258 are published", "mend the shape: they may differ by 2.0%"),
    ],
)  # fmt: skip
def test_a_fault_of_values_together(mixed, only_problem, old, new, key, value, fact, remedy):
    mixed.spoil(FILE, (old, new))
    problem = only_problem(load_model, "mixed")
    assert (problem.where, problem.key, problem.value) == (FILE, key, value)
    assert (problem.fact, problem.remedy) == (fact, remedy)


def test_one_expert_is_a_dense_model(mixed, refused):
    mixed.spoil(
        FILE, ("n_experts = 4", "n_experts = 1"), ("n_active_experts = 2", "n_active_experts = 1")
    )
    told = {(p.key, p.fact, p.remedy) for p in refused(load_model, "mixed").problems}
    assert told == {
        ("moe.n_experts", "is a dense model", "leave [moe] out: `shape.d_ff` describes the FFN")
    }


def test_all_faults_are_told_at_once(mixed, refused):
    mixed.spoil(
        FILE,
        ("n_active_experts = 2", "n_active_experts = 5"),
        ("d_head = 6", "d_head = 4"),
        ("n_layers = 2", "n_layers = 4"),
        ("d_value = 3", "d_value = 0"),
    )
    assert {p.key for p in refused(load_model, "mixed").problems} == {
        "moe.n_active_experts",
        "shape.d_head",
        "window.n_layers",
        "mla.d_value",
    }


@pytest.mark.parametrize(
    ("line", "key", "section"),
    [
        ("n_experts = 8", "shape.n_experts", "moe"),
        ("n_active_experts = 2", "shape.n_active_experts", "moe"),
        ("d_kv_latent = 2", "shape.d_kv_latent", "mla"),
        ("n_tokens = 2", "shape.n_tokens", "window"),
    ],
)
def test_a_key_in_another_section_is_told_where_it_belongs(
    folder, only_problem, line, key, section
):
    folder.spoil("models/tiny.toml", ("d_ff = 4", f"d_ff = 4\n{line}"))
    problem = only_problem(load_model, "tiny")
    assert (problem.key, problem.fact, problem.remedy) == (
        key,
        "unknown key",
        f"write it in [{section}]",
    )


def test_a_dense_model_has_no_active_parameters_of_its_own(folder, only_problem):
    line = 'n_params_active = { value = 20, source = "x" }'
    folder.spoil("models/tiny.toml", ("[check]", f"[check]\n{line}"))
    problem = only_problem(load_model, "tiny")
    assert (problem.key, problem.value) == ("check.n_params_active", "20")
    assert problem.remedy == "describe them in [moe], or leave it out"


def test_a_tighter_tolerance_is_of_all_parameters_not_of_the_active_ones(mixed, refused):
    """2258 against 2250 is 0.36 %, 1874 against 1850 is 1.3 %."""
    mixed.spoil(
        FILE,
        ("value = 2258", "value = 2250"),
        ("value = 1874", "value = 1850"),
        ("[check]", "[check]\ntolerance = 0.005"),
    )
    assert load_model("mixed").n_params == 2258
    mixed.spoil(FILE, ("0.005", "0.003"))
    assert [p.key for p in refused(load_model, "mixed").problems] == ["check.n_params"]


@pytest.mark.parametrize(
    "text", ["moe = 3", "[moe]", "[[moe]]", '[mla]\nd_rope = "x"', "[window]", "[mtp]", "mtp = 1"]
)
def test_a_section_of_something_else_is_refused_without_a_traceback(mixed, refused, text):
    body = (mixed.path / "models/tiny.toml").read_text()
    mixed.write("models/tiny.toml", f"{text}\n{body}")
    assert refused(load_model, "tiny").problems
