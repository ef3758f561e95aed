"""The memory of attempts: small, bounded, and never in anybody's way."""

import json
from dataclasses import replace

import pytest

from pytest_perfgate.errors import BaselineCorrupt, SchemaTooNew, StoreUnreachable
from pytest_perfgate.store.attempts import (
    KEPT_COMMITS,
    KEPT_RUNS,
    Attempts,
    Evidence,
    conditions_of,
    keep_attempts,
    load_attempts,
)
from pytest_perfgate.store.codec_baseline import BASELINE

HERE = {"commit": "0123abc", "hardware": "cpu"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".perfgate" / "attempts.json"


@pytest.fixture
def evidence(make):
    return Evidence(
        conditions="c1", attempts=1, runs=(make.a_run(),) * 3, fresh=(make.a_run(1.1),)
    )


def test_there_are_none_at_first(path):
    assert load_attempts(path) == Attempts()
    assert load_attempts(path).of("0123abc", "cpu") == {}


def test_what_is_kept_comes_back_equal(path, evidence):
    keep_attempts(path, **HERE, found={"b": evidence})
    assert load_attempts(path).of("0123abc", "cpu") == {"b": evidence}
    assert load_attempts(path).of("0123abc", "gpu") == {}


def test_a_later_session_replaces_its_own_benchmarks_only(path, evidence):
    keep_attempts(path, **HERE, found={"a": evidence, "b": evidence})
    second = replace(evidence, attempts=2)
    keep_attempts(path, **HERE, found={"b": second})
    assert load_attempts(path).of("0123abc", "cpu") == {"a": evidence, "b": second}


def test_only_the_latest_commits_are_kept(path, evidence):
    for number in range(KEPT_COMMITS + 2):
        keep_attempts(path, commit=f"c{number}", hardware="cpu", found={"b": evidence})
    keep_attempts(path, commit="c2", hardware="cpu", found={"b": evidence})
    keep_attempts(path, commit="new", hardware="cpu", found={"b": evidence})
    kept = [commit for commit, _ in load_attempts(path).commits]
    assert kept == ["c4", "c5", "c6", "c2", "new"]


def test_and_only_so_many_runs_the_latest(path, evidence, make):
    last = make.a_run(2.0)
    many = replace(evidence, runs=(*evidence.runs * KEPT_RUNS, last))
    keep_attempts(path, **HERE, found={"b": many})
    (kept,) = load_attempts(path).of("0123abc", "cpu").values()
    assert len(kept.runs) == KEPT_RUNS
    assert kept.runs[-1] == last


def test_git_ignores_it_unless_the_folder_says_otherwise(path, evidence):
    keep_attempts(path, **HERE, found={"b": evidence})
    ignore = path.with_name(".gitignore")
    assert ignore.read_text() == "*\n"
    ignore.write_text("last/\n")
    keep_attempts(path, **HERE, found={"b": evidence})
    assert ignore.read_text() == "last/\n"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 1}'])
def test_a_corrupt_one_is_told_and_begun_anew(path, evidence, text):
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(
        BaselineCorrupt, match=r"attempts\.json is no memory of attempts"
    ):
        load_attempts(path)
    keep_attempts(path, **HERE, found={"b": evidence})
    assert load_attempts(path).of("0123abc", "cpu") == {"b": evidence}


def test_one_by_a_newer_version_is_left_alone(path, evidence):
    keep_attempts(path, **HERE, found={"b": evidence})
    tree = json.loads(path.read_text()) | {"schema_version": 2}
    path.write_text(json.dumps(tree))
    before = path.read_text()
    with pytest.raises(SchemaTooNew):
        keep_attempts(path, **HERE, found={"b": evidence})
    assert path.read_text() == before


def test_one_that_cannot_be_read_is_told(path):
    path.mkdir(parents=True)
    with pytest.raises(StoreUnreachable, match="cannot be read"):
        load_attempts(path)


def test_conditions_are_the_same_after_storage_and_differ_with_each_part(make):
    whole = (make.a_baseline(), make.a_plan(), make.an_environment())
    first = conditions_of(*whole)
    written = BASELINE.text(make.a_file())
    (again,) = BASELINE.read(written, source="b.json").benchmarks.values()
    assert conditions_of(again, *whole[1:]) == first
    others = [
        conditions_of(make.a_baseline(counts={}), *whole[1:]),
        conditions_of(whole[0], make.a_plan(seed=8), whole[2]),
        conditions_of(*whole[:2], make.an_environment(software={})),
    ]
    assert len({first, *others}) == 4
