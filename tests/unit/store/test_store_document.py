import pytest

from pytest_perfgate.errors import BaselineCorrupt, SchemaTooNew
from pytest_perfgate.store.codec_baseline import BASELINE
from pytest_perfgate.store.document import Kind
from pytest_perfgate.store.migrations import migrate


def test_a_newer_format_asks_for_an_upgrade_by_version(make, spoil):
    text = spoil(BASELINE.text(make.a_file()), ["schema_version"], 2)
    text = spoil(text, ["producer", "version"], "3.1.0")
    # whatever else the newer format has is not looked at
    text = spoil(text, ["galaxies"], [])
    with pytest.raises(SchemaTooNew) as caught:
        BASELINE.read(text, source="b.json")
    assert "b.json has schema_version 2" in str(caught.value)
    assert str(caught.value).endswith("upgrade pytest-perfgate to at least 3.1.0")


@pytest.mark.parametrize("producer", [..., None, {}, {"version": 3}])
def test_a_newer_format_by_an_unknown_hand_asks_for_a_newer_version(
    make, spoil, producer
):
    text = spoil(BASELINE.text(make.a_file()), ["schema_version"], 2)
    with pytest.raises(
        SchemaTooNew, match="upgrade pytest-perfgate to a newer version"
    ):
        BASELINE.read(spoil(text, ["producer"], producer), source="b.json")


def test_a_file_that_is_no_object_is_refused():
    with pytest.raises(
        BaselineCorrupt, match=r"top level: expected an object, got \[\]"
    ):
        BASELINE.read("[]", source="b.json")


def to_seconds(tree):
    tree["time_s"] = tree.pop("time_ms") / 1000
    return tree


def with_a_name(tree):
    return {**tree, "name": "unnamed"}


MADE_UP = Kind(
    name="made-up file",
    version=3,
    steps={1: to_seconds, 2: with_a_name},
    encode=lambda value: {"name": value[0], "time_s": value[1]},
    decode=lambda fields: (fields["name"].string(), fields["time_s"].number()),
    body=("name", "time_s"),
    way_out="make it up again",
)


def test_old_formats_come_forward_step_by_step():
    producer = '"producer": {"name": "x", "version": "0"}'
    first = f'{{"schema_version": 1, {producer}, "time_ms": 250}}'
    second = f'{{"schema_version": 2, {producer}, "time_s": 0.5}}'
    assert MADE_UP.read(first, source="x") == ("unnamed", 0.25)
    assert MADE_UP.read(second, source="x") == ("unnamed", 0.5)
    current = MADE_UP.text(("mine", 2.0))
    assert MADE_UP.read(current, source="x") == ("mine", 2.0)


def test_a_step_leaves_what_it_was_given_as_it_was():
    tree = {"schema_version": 1, "time_ms": 250}
    moved = migrate(tree, version=1, current=3, steps=MADE_UP.steps)
    assert moved == {"schema_version": 3, "time_s": 0.25, "name": "unnamed"}
    assert tree == {"schema_version": 1, "time_ms": 250}


def test_a_version_without_a_step_never_was():
    with pytest.raises(BaselineCorrupt, match="there never was a version 2"):
        migrate({}, version=1, current=3, steps={1: with_a_name})
