import errno
import math
import os
from pathlib import Path

import pytest

from pytest_perfgate.errors import (
    BaselineCorrupt,
    SchemaTooNew,
    StoreUnreachable,
    UsageError,
)
from pytest_perfgate.model import RunStatistic
from pytest_perfgate.store import BaselineStore
from pytest_perfgate.store.atomic import try_lock

KEY = "nvidia-h200"
FILE = "benches/bench_llm.py"
BENCHMARK = f"{FILE}::bench_prefill"


@pytest.fixture
def store(tmp_path):
    return BaselineStore(tmp_path / "baselines")


@pytest.fixture
def stored(make, store):
    store.save(KEY, FILE, make.a_file())
    return store.load(KEY, FILE)


def everything_in(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def test_the_files_mirror_the_tree(store):
    path = store.path_for(KEY, FILE)
    assert path == store.root / "nvidia-h200" / "benches" / "bench_llm.py.json"


@pytest.mark.parametrize(
    "name", ["../x.py", "a/../../x.py", "/etc/x.py", "", ".", "a/\0.py"]
)
def test_a_benchmark_file_outside_the_project_has_no_place(store, name):
    with pytest.raises(UsageError, match="is not inside the project"):
        store.path_for(KEY, name)


@pytest.mark.parametrize("key", ["", ".", "..", "a/b", "/", "a\0"])
def test_a_key_is_the_name_of_one_folder(store, key):
    with pytest.raises(UsageError, match="cannot be the name of a kind of hardware"):
        store.path_for(key, FILE)


def test_a_link_does_not_lead_out_of_the_store(store, tmp_path):
    (store.root / KEY).mkdir(parents=True)
    (store.root / KEY / "benches").symlink_to(tmp_path)
    with pytest.raises(UsageError, match=r"leads out of .* through a symbolic link"):
        store.path_for(KEY, FILE)


def test_nothing_stored_is_none_and_makes_no_folder(store):
    assert store.load(KEY, FILE) is None
    assert store.keys() == ()
    assert store.files(KEY) == ()
    assert not store.root.exists()


def test_what_is_saved_is_loaded(make, store):
    path = store.save(KEY, FILE, make.a_file())
    first = path.read_bytes()
    assert first.endswith(b"}\n")
    store.save(KEY, FILE, store.load(KEY, FILE))
    assert path.read_bytes() == first
    assert everything_in(store.root) == [KEY, f"{KEY}/benches", f"{KEY}/{FILE}.json"]


def test_a_file_that_cannot_be_used_is_named(make, store, stored, spoil):
    path = store.path_for(KEY, FILE)
    good = path.read_text()
    path.write_text(good[:-20])
    with pytest.raises(BaselineCorrupt, match=f"^{path} is no baseline.*truncated"):
        store.load(KEY, FILE)
    path.write_text(spoil(good, ["schema_version"], 9))
    with pytest.raises(SchemaTooNew, match=f"^{path} has schema_version 9"):
        store.load(KEY, FILE)


def test_a_file_that_cannot_be_read_is_not_a_missing_one(store, monkeypatch, tmp_path):
    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(StoreUnreachable, match=r"cannot be read \(Permission denied\)"):
        store.load(KEY, FILE)


def test_a_file_in_the_place_of_the_store_is_not_an_empty_store(store):
    store.root.write_bytes(b"")
    with pytest.raises(
        StoreUnreachable, match="a file stands where a folder should be"
    ):
        store.load(KEY, FILE)
    with pytest.raises(
        StoreUnreachable, match="a file stands where a folder should be"
    ):
        store.keys()


def bad_file(make, value):
    statistics = {"latency": {"median": RunStatistic(value=value)}}
    session = make.a_session(runs=(make.a_run(statistics=statistics),))
    return make.a_file(x=make.a_baseline(sessions=(session,), anchor=session))


def test_what_could_not_be_read_again_is_not_written(make, store, stored):
    path = store.path_for(KEY, FILE)
    before = path.read_bytes()
    with pytest.raises(BaselineCorrupt, match=r"was not written: .*median\[0\]\[0\]"):
        store.save(KEY, FILE, bad_file(make, 0.0))
    infinite = make.a_file(x=make.a_baseline(sketch={"latency": (math.inf,)}))
    with pytest.raises(BaselineCorrupt, match=r"was not written: .*JSON"):
        store.save(KEY, FILE, infinite)
    assert path.read_bytes() == before


def test_an_update_happens_under_the_lock(make, store, stored):
    lock = store.path_for(KEY, FILE).with_name(".bench_llm.py.json.lock")
    seen = []

    def change(file):
        assert try_lock(lock) is None
        seen.append(file)
        return make.a_file(x=make.a_baseline())

    assert store.update(KEY, FILE, change) == make.a_file(x=make.a_baseline())
    assert seen == [stored]
    assert list(store.load(KEY, FILE).benchmarks) == ["x"]
    assert not lock.exists()


def test_an_update_that_fails_leaves_file_and_lock_as_they_were(store, stored):
    before = everything_in(store.root)
    with pytest.raises(ZeroDivisionError):
        store.update(KEY, FILE, lambda _: 1 / 0)
    assert everything_in(store.root) == before
    assert store.load(KEY, FILE) == stored


def test_merge_adds_to_what_is_there(make, store, stored):
    new = {"benches/bench_llm.py::new": make.a_baseline()}
    store.merge(KEY, FILE, new, environment=make.an_environment())
    store.merge("cpu", FILE, new, environment=make.an_environment(key="cpu"))
    assert sorted(store.load(KEY, FILE).benchmarks) == [BENCHMARK, *new]
    assert sorted(store.load("cpu", FILE).benchmarks) == [*new]


def test_keys_and_files_are_what_has_baselines(make, store, stored):
    store.save(KEY, "a.py", make.a_file())
    store.save("cpu", "z/y.json", make.a_file())
    (store.root / "empty").mkdir()
    (store.root / "README.md").write_text("ours")
    (store.root / KEY / ".a.py.json.12.tmp").write_text("left by a power cut")
    assert store.keys() == ("cpu", KEY)
    assert store.files(KEY) == ("a.py", FILE)
    assert store.files("cpu") == ("z/y.json",)


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(store, stored, monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(StoreUnreachable, match=f"{KEY} cannot be read"):
        store.files(KEY)


def test_prune_forgets_and_removes_the_empty_file(make, store):
    store.save(KEY, FILE, make.a_file(a=make.a_baseline(), b=make.a_baseline()))
    store.prune(KEY, FILE, ["a"])
    assert list(store.load(KEY, FILE).benchmarks) == ["b"]
    with pytest.raises(UsageError, match=r"^c has no baseline"):
        store.prune(KEY, FILE, ["b", "c"])
    assert list(store.load(KEY, FILE).benchmarks) == ["b"]
    store.prune(KEY, FILE, ["b"])
    assert store.load(KEY, FILE) is None
    assert store.keys() == ()


def test_what_has_no_file_can_be_neither_pruned_nor_renamed(store):
    message = f"^{FILE} has no baselines on 'nvidia-h200' in "
    with pytest.raises(UsageError, match=message):
        store.prune(KEY, FILE, [BENCHMARK])
    with pytest.raises(UsageError, match=message):
        store.rename(KEY, BENCHMARK, "c.py::x")
    assert not store.root.exists()


def test_rename_inside_a_file(store, stored):
    store.rename(KEY, BENCHMARK, f"{FILE}::other")
    assert store.load(KEY, FILE).benchmarks == {
        f"{FILE}::other": stored.benchmarks[BENCHMARK]
    }


@pytest.mark.parametrize("target", ["a.py", "z.py"])
def test_rename_into_another_file(store, stored, target):
    store.rename(KEY, BENCHMARK, f"{target}::moved")
    moved = store.load(KEY, target)
    assert moved.benchmarks == {f"{target}::moved": stored.benchmarks[BENCHMARK]}
    assert moved.environment == stored.environment
    assert store.files(KEY) == (target,)


def test_a_rename_that_fails_half_way_loses_nothing(store, stored, make, monkeypatch):
    def refuse(path, **kwargs):
        raise OSError(errno.EIO, "Input/output error")

    real = Path.unlink
    target = store.path_for(KEY, FILE)
    monkeypatch.setattr(
        Path, "unlink", lambda p, **k: refuse(p) if p == target else real(p, **k)
    )
    with pytest.raises(StoreUnreachable, match="cannot be removed"):
        store.rename(KEY, BENCHMARK, "z.py::moved")
    assert store.load(KEY, FILE) == stored
    assert list(store.load(KEY, "z.py").benchmarks) == ["z.py::moved"]
