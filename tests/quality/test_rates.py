"""A slice of the validation: the figures that must hold, on fewer draws."""

import pytest

from tests.quality.designs import DESIGNS
from tests.quality.engine import judge
from tests.quality.recorded import LEVELS, coverage
from tests.quality.study import CALMER, PAIRED, STORED, WITH_BASE, calmer, generator

SUITES = 60
MODES = {
    WITH_BASE: (True, lambda runs: runs),
    CALMER: (True, calmer),
    STORED: (False, lambda runs: runs),
    PAIRED: (True, lambda runs: runs),
}


def outcomes(name, rule, effect, *, comparisons=18_000):
    world = DESIGNS[name].world
    base_code, change = MODES[rule]
    drawn = change(world.draw(generator(f"{name} {effect}"), comparisons))
    suite = None if effect else world.metrics
    return judge(
        drawn.slower(effect),
        comparisons=world.metrics,
        base_code=base_code,
        suite=suite,
    )


@pytest.mark.slow
@pytest.mark.parametrize("rule", [WITH_BASE, STORED])
@pytest.mark.parametrize(
    "name", ["normal-1", "unlike-0.8", "skewed-2", "session-quarter", "common-shift"]
)
def test_hardly_a_suite_of_identical_code_is_red(name, rule):
    red = outcomes(name, rule, 0.0).regressed.reshape(SUITES, -1).any(axis=1)
    assert red.sum() == 0


@pytest.mark.slow
@pytest.mark.parametrize("rule", [WITH_BASE, STORED])
@pytest.mark.parametrize("name", ["bimodal", "noisy"])
def test_not_even_where_runs_are_wild(name, rule):
    red = outcomes(name, rule, 0.0).regressed.reshape(SUITES, -1).any(axis=1)
    assert red.sum() <= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("normal-1", WITH_BASE),
        ("normal-3", WITH_BASE),
        ("skewed-2", WITH_BASE),
        ("session-quarter", WITH_BASE),
        ("paired-1", PAIRED),
        ("paired-3", PAIRED),
    ],
)
def test_at_the_budget_neither_verdict_is_common(name, rule):
    found = outcomes(name, rule, 0.05)
    assert found.regressed.mean() <= 0.05
    assert found.passed.mean() <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["normal-1", "normal-3", "unlike-1.0", "skewed-2", "bimodal", "noisy"]
)
def test_nobody_passes_at_twice_the_budget(name):
    assert outcomes(name, WITH_BASE, 0.10).passed.mean() <= 0.001


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule", "effect", "least"),
    [
        ("normal-1", CALMER, 0.10, 0.99),
        ("normal-2", CALMER, 0.10, 0.99),
        ("normal-3", CALMER, 0.10, 0.90),
        ("normal-1", CALMER, 0.075, 0.99),
        ("normal-2", CALMER, 0.075, 0.80),
        ("paired-1", PAIRED, 0.06, 0.90),
        ("paired-1", PAIRED, 0.10, 0.99),
        ("paired-3", PAIRED, 0.10, 0.95),
    ],
)
def test_what_must_be_seen_is_seen(name, rule, effect, least):
    assert outcomes(name, rule, effect).regressed.mean() >= least


@pytest.mark.slow
def test_quiet_benchmarks_cost_three_runs():
    assert outcomes("normal-1", WITH_BASE, 0.0).runs.mean() <= 3.5


@pytest.mark.slow
def test_a_suite_of_unlike_benchmarks_mostly_passes():
    assert outcomes("unlike-0.8", WITH_BASE, 0.0).passed.mean() >= 0.82


@pytest.mark.slow
def test_a_fifth_is_lost_where_benchmarks_are_more_unlike():
    assert outcomes("unlike-1.0", WITH_BASE, 0.0).passed.mean() >= 0.80


@pytest.mark.slow
def test_intervals_cover_what_they_promise():
    rows = coverage(total=30_000)
    for runs in ("3 runs", "6 runs", "12 runs"):
        for level in LEVELS:
            missed = rows[runs][f"missed@{level:g}"].value
            assert missed == pytest.approx(level, abs=0.02)
