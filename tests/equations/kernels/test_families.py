"""Every family can be called, fitted and bounded by the names that it gives."""

import inspect

import numpy as np
import pytest

from planner.equations.kernels import FAMILIES
from planner.equations.kernels.families import arguments_of
from planner.estimates.kernel_files import load_kernels
from planner.specs.files.places import Kind, files

RATES = {"peak_flop_per_s": 1e15, "hbm_bytes_per_s": 3e12}
SIZES = {
    "m": 64.0, "tokens": 64.0, "n": 4096.0, "k": 2048.0, "n_groups_hit": 4.0, "batch": 16.0,
    "context": 4096.0, "n_heads": 32.0, "n_kv_heads": 8.0, "d_head": 128.0, "cache_bytes": 2.0,
    "weight_bytes": 2.0, "input_bytes": 2.0, "n_bytes": 1e6, "vocab": 1e5, "d_model": 4096.0,
    "n_active": 8.0, "bytes_per_number": 1.0, "n_nodes": 2.0, "n_experts": 64.0,
    "n_experts_local": 16.0, "d_expert": 1024.0, "product_flop_per_s": 2e15, "n_index_heads": 64.0,
    "d_index": 128.0, "n_selected": 2048.0, "d_q_latent": 1536.0, "index_flop_per_s": 2e15,
    "d_key": 128.0, "d_value": 128.0, "d_conv": 8192.0,
}  # fmt: skip

TABLES = {path.stem: load_kernels(path.stem) for path in files(Kind.KERNELS)}


def keywords(family):
    return arguments_of(family.function)


@pytest.fixture(params=FAMILIES, name="family")
def _family(request):
    return FAMILIES[request.param]


def test_names_are_arguments_of_the_function(family):
    fitted = {name for form in family.forms.values() for name in form}
    parameters = {one.name for one in family.parameters}
    assert fitted <= parameters <= keywords(family)
    assert {*family.dimensions, *family.optional, *family.fixed} <= keywords(family)
    assert {*family.completing, *family.rates} <= keywords(family)
    assert {*family.shape} <= {*family.dimensions, *family.optional}
    taken = inspect.signature(family.work).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in taken.values())
    assert takes_any or {*family.dimensions, *family.optional} <= set(taken)


def test_the_search_begins_inside_its_bounds(family):
    for one in family.parameters:
        assert one.low <= one.start <= one.high


@pytest.mark.parametrize("name", TABLES)
def test_shipped_constants_are_arguments_and_give_times_above_the_roofline(name):
    for (family_name, form), kernel in TABLES[name].kernels.items():
        family = FAMILIES[family_name]
        assert set(kernel.constants) <= keywords(family), (family_name, form)
        columns = {name: np.array([SIZES[name], 2 * SIZES[name]]) for name in family.dimensions}
        times = family.seconds(columns, RATES, kernel.constants)
        assert np.all(np.isfinite(times))
        assert np.all(times > 0)
        assert np.all(times > 0.75 * family.roofline_s(columns, RATES)), (family_name, form)


@pytest.mark.parametrize("name", TABLES)
def test_more_bandwidth_is_never_slower(name):
    for (family_name, form), kernel in TABLES[name].kernels.items():
        family = FAMILIES[family_name]
        columns = {name: np.array([SIZES[name]]) for name in family.dimensions}
        usual = family.seconds(columns, RATES, kernel.constants)
        faster = {rate: 2 * value for rate, value in RATES.items()}
        assert np.all(family.seconds(columns, faster, kernel.constants) <= usual), (
            family_name,
            form,
        )
