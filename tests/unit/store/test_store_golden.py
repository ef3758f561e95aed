"""Every version of the formats that was ever released can still be read."""

import json

import pytest

from pytest_perfgate.store import document
from pytest_perfgate.store.codec_baseline import BASELINE
from pytest_perfgate.store.codec_report import REPORT


@pytest.fixture(autouse=True)
def _the_release_that_wrote_them(monkeypatch):
    monkeypatch.setattr(document, "__version__", "0.1.0")


CASES = [("baseline", BASELINE, "a_full_file"), ("report", REPORT, "a_report")]


@pytest.mark.parametrize(("name", "kind", "factory"), CASES)
def test_the_golden_file_is_read_and_would_be_written_the_same(
    make, name, kind, factory
):
    golden = (make.GOLDEN / f"{name}-v1.json").read_text(encoding="utf-8")
    value = getattr(make, factory)()
    assert kind.text(value) == golden
    assert kind.text(kind.read(golden, source=name)) == golden


@pytest.mark.parametrize(("name", "kind", "factory"), CASES)
def test_there_is_a_golden_file_for_every_version(make, name, kind, factory):
    files = sorted(make.GOLDEN.glob(f"{name}-v*.json"))
    versions = [json.loads(file.read_text("utf-8"))["schema_version"] for file in files]
    assert versions == list(range(1, kind.version + 1))
    for file in files:
        kind.read(file.read_bytes(), source=file.name)
