"""The published schemas say what is written, and refuse what the reader refuses."""

import json
from pathlib import Path

import jsonschema
import pytest

from pytest_perfgate.model import Outcome, Reason
from pytest_perfgate.store.codec_baseline import BASELINE
from pytest_perfgate.store.codec_report import REPORT

SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"
B = "benches/bench_llm.py::bench_prefill"
RUNS = ["benchmarks", B, "sessions", 0, "runs"]
MEDIAN = [*RUNS, "statistics", "latency", "median"]


def schema(name):
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))


def errors(name, text):
    validator = jsonschema.Draft202012Validator(schema(name))
    return [error.message for error in validator.iter_errors(json.loads(text))]


@pytest.mark.parametrize("name", ["baseline", "report"])
def test_the_schema_is_one(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))
    kind = {"baseline": BASELINE, "report": REPORT}[name]
    assert schema(name)["properties"]["schema_version"]["const"] == kind.version


def objects_in(node):
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for member in node.values():
            yield from objects_in(member)


@pytest.mark.parametrize("name", ["bisect", "canary", "doctor"])
def test_what_commands_write_has_a_schema_too(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert schema(name)["properties"]["schema_version"]["const"] == 1


@pytest.mark.parametrize("name", ["baseline", "report", "bisect", "canary", "doctor"])
def test_every_object_is_closed_and_every_field_described(name):
    found = list(objects_in(schema(name)))
    assert len(found) > 2
    for node in found:
        assert "additionalProperties" in node
        for key, field in node.get("properties", {}).items():
            assert {"description", "const"} & field.keys() or "$ref" in field, key


def test_outcomes_and_reasons_are_those_of_the_model():
    verdict = schema("report")["$defs"]["verdict"]["properties"]
    assert verdict["outcome"]["enum"] == [outcome.value for outcome in Outcome]
    assert verdict["reason"]["enum"] == [reason.value for reason in Reason]


def test_what_is_written_is_valid(make):
    assert errors("baseline", BASELINE.text(make.a_full_file())) == []
    assert errors("report", REPORT.text(make.a_report())) == []
    bare = make.a_report(commit=None, environment=None, results=())
    assert errors("report", REPORT.text(bare)) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["schema_version"], 2),
        (["schema_version"], "1"),
        (["producer", "version"], ...),
        (["mood"], 1),
        (["benchmarks", B, "metrics", "latency", "unit"], None),
        (["benchmarks", B, "metrics", "latency", "better"], "up"),
        (["benchmarks", B, "plan", "iterations"], 0),
        (["benchmarks", B, "plan", "threads"], None),
        (["benchmarks", B, "sessions"], []),
        (["benchmarks", B, "counts", "kernel_launches"], 1.5),
        (["environment", "hardware", "gpu"], []),
        ([*RUNS, "iterations"], []),
        ([*RUNS, "mood"], []),
        ([*RUNS, "drift", "latency", 2], [1, 2]),
        ([*MEDIAN, 0], [1]),
        ([*MEDIAN, 0], [1, 2, 3]),
        ([*MEDIAN, 0], [1, -1]),
        ([*MEDIAN, 0], ["1", 0]),
        ([*MEDIAN, 0], None),
    ],
)
def test_what_the_reader_refuses_the_schema_refuses(make, spoil, path, value):
    assert errors("baseline", spoil(BASELINE.text(make.a_file()), path, value))


def keys_in(name):
    for node in objects_in(schema(name)):
        yield from node.get("properties", {})


@pytest.mark.parametrize("name", ["baseline", "report"])
def test_every_key_is_explained_to_users(name):
    page = (SCHEMAS.parent / "file-formats.md").read_text(encoding="utf-8")
    for key in keys_in(name):
        assert f"`{key}`" in page, key
