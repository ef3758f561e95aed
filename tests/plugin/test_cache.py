"""`cache="flush"` in whole sessions: measured, shown, and never held against hot."""

import pytest

BENCH = "benches/bench_a.py::bench_one"
THREE = "--perfgate-runs=3:3"
COLD = {"*": {"device": 0.9, "flush": 1.5}}


def source(**marker):
    keywords = ", ".join(f"{name}={value!r}" for name, value in marker.items())
    return (
        "import pytest\n"
        f"@pytest.mark.perfgate({keywords})\n"
        "def bench_one(perfgate):\n    perfgate(int)\n"
    )


def plan(project):
    return project.report["results"][0]["plan"]


@pytest.fixture
def cold(one):
    """A project whose device has a cache to flush."""
    one.device(COLD)
    return one


@pytest.mark.parametrize(("before", "now"), [("hot", "flush"), ("flush", "hot")])
def test_hot_is_never_held_against_flushed(cold, before, now):
    cold.bench(source(cache=before))
    cold.adopt("benches")
    cold.bench(source(cache=now))
    result = cold.run(THREE, "benches")
    assert result.ret == 11
    assert cold.outcomes == {BENCH: ("incomparable", "plan-differs")}
    told = result.stdout.str()
    assert f"cache was {before}, is {now}" in told
    assert f"plan-differs: cache: {before} → {now}: undo the change" in told
    assert "`pytest --perfgate --perfgate-update`" in told  # the way out


def test_flushed_is_measured_shown_and_comparable_with_itself(cold):
    cold.bench(source(cache="flush"))
    cold.adopt("benches")
    assert '"cache": "flush"' in cold.baseline().read_text()
    cold.device(COLD, salt=1)
    result = cold.run(THREE, "benches")
    assert result.ret == 0
    assert cold.outcomes == {BENCH: ("unchanged", "within-budget")}
    assert plan(cold)["cache"] == "flush"
    values = cold.report["results"][0]["runs"]["statistics"]["latency"]["median"]
    assert [value for value, _ in values] == [pytest.approx(1.5e-3, rel=0.02)] * 3
    html = (cold.path / ".perfgate" / "last" / "report.html").read_text()
    assert "the cache flushed before each" in html


def test_a_recording_goes_by_the_marker(cold):
    cold.bench(source(cache="hot"))
    cold.adopt("benches")
    assert '"cache"' not in cold.baseline().read_text()
    cold.bench(source(cache="flush"))
    result = cold.record("benches")
    result.stdout.fnmatch_lines(["*one * replaced", "*was incomparable: *"])
    assert "cache was hot, is flush" in " ".join(result.stdout.str().split())
    assert '"cache": "flush"' in cold.baseline().read_text()


def test_where_there_is_no_cache_to_flush_the_same_suite_is_measured_hot(stored):
    stored.bench(source(cache="flush"))
    result = stored.run(THREE, "benches")
    assert result.ret == 0
    assert stored.outcomes == {BENCH: ("unchanged", "within-budget")}
    assert "cache" not in plan(stored)
    result.stdout.fnmatch_lines(["*cache='flush' means nothing on fake: measured hot*"])
