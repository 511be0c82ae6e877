"""Lists name what can be planned with, and never fail on a file that cannot."""

from planner.specs.files.listing import list_files
from planner.specs.files.places import Kind
from planner.specs.files.reading import load_cluster, load_model


def test_models_of_the_working_folder_come_before_those_shipped(folder):
    listings = list_files(Kind.MODEL)
    shipped = [listing.name for listing in listings[1:]]
    assert listings[0].name == "tiny"
    assert shipped == sorted(shipped)
    assert {"deepseek-v3", "llama-3.1-70b", "palm-540b"} <= set(shipped)
    assert listings[0].title == "Tiny"
    assert listings[0].description == "fifty parameters"
    assert listings[0].file == "models/tiny.toml"


def test_a_pattern_is_listed_once_with_examples(folder):
    listed = {listing.name: listing for listing in list_files(Kind.CLUSTER)}
    assert listed["box-{n}"].examples == ("box-2",)
    assert listed["pair"].title == "A pair of servers"
    assert listed["pair"].examples == ()


def test_whatever_is_listed_loads(folder):
    for listing in list_files(Kind.MODEL):
        assert load_model(listing.name).title == listing.title
    for listing in list_files(Kind.CLUSTER):
        for name in listing.examples or (listing.name,):
            assert load_cluster(name).name == name


def test_a_file_that_cannot_be_read_is_listed_with_the_reason(folder):
    folder.write("models/bad.toml", "[model")
    folder.write("models/odd.toml", "model = 3")
    folder.spoil("topologies/box.toml", ("n = [1, 2, 4]", "n = []"))
    models = {listing.name: listing for listing in list_files(Kind.MODEL)}
    assert models["bad"].description.startswith("cannot be read: is not TOML")
    assert models["odd"].title == ""
    clusters = {listing.name: listing for listing in list_files(Kind.CLUSTER)}
    assert clusters["box"].description.startswith("cannot be read: has no list of")


def test_signs_that_do_not_print_are_escaped_in_a_list(folder):
    folder.spoil("models/tiny.toml", ('title = "Tiny"', 'title = "Ti\\u202eny"'))
    listed = {listing.name: listing for listing in list_files(Kind.MODEL)}
    assert listed["tiny"].title == r"Ti\u202eny"
