"""The rule on arrays and the gate's judge say the same, benchmark by benchmark."""

import numpy as np
import pytest

from pytest_perfgate.model import Outcome, Reason, RunStatistic, RunSummary
from pytest_perfgate.stats import interval
from tests.quality import engine
from tests.quality.designs import World
from tests.quality.realdata import run_gate

WORLDS = {
    "quiet": World(sd=0.002),
    "usual": World(sd=0.015),
    "unlike": World(sd=0.016, log_sd=1.0),
    "slow runs": World(sd=0.005, slow=(0.3, 0.08)),
    "four sessions": World(sd=0.015, sessions=4, session=1.0, base_runs=5),
    "few runs": World(sd=0.02, base_runs=3, sessions=2),
    "paired": World(sd=0.02, paired=True),
}
APART = [name for name in WORLDS if not WORLDS[name].paired]
EFFECTS = (-0.06, 0.0, 0.05, 0.07, 0.12)
WITHIN = 0.012


def drawn(name, effect, *, count=12):
    rng = np.random.default_rng([sum(map(ord, name)), round(1000 * (1 + effect))])
    runs = WORLDS[name].draw(rng, count).slower(effect)
    return engine.Runs(**{**vars(runs), "within": np.full(count, WITHIN**2)})


def run_of(log):
    value = float(np.exp(log))
    one = RunStatistic(value=value, se=value * WITHIN)
    return RunSummary(iterations=10, statistics={"latency": {"median": one}})


def runs_of(logs):
    return [run_of(log) for log in logs]


def judged(runs, row, *, base_code, confirmed):
    fresh = runs_of(runs.fresh[row]) if confirmed else None
    fresh_base = runs_of(runs.fresh_base[row]) if base_code else None
    return run_gate(
        [runs_of(session) for session in runs.baseline[row]],
        runs_of(runs.candidate[row]),
        fresh=fresh,
        fresh_base=fresh_base,
        paired=runs.paired,
    )


# pairs are always of base code
@pytest.mark.parametrize(
    ("name", "base_code"),
    [(name, True) for name in WORLDS] + [(name, False) for name in APART],
)
@pytest.mark.parametrize("effect", EFFECTS)
def test_arrays_are_judged_like_benchmarks(name, effect, base_code):
    runs = drawn(name, effect)
    found = engine.judge(runs, comparisons=300, base_code=base_code)
    for row in range(len(runs)):
        one, used = judged(runs, row, base_code=base_code, confirmed=True)
        outcome = one.verdict.outcome
        assert found.runs[row] == used
        assert found.regressed[row] == (outcome is Outcome.REGRESSED)
        assert found.passed[row] == (outcome in {Outcome.UNCHANGED, Outcome.IMPROVED})
        assert found.suspect[row] == (one.verdict.reason is Reason.SUSPECT)


@pytest.mark.parametrize("name", WORLDS)
def test_arrays_are_flagged_like_benchmarks(name):
    for effect in EFFECTS:
        runs = drawn(name, effect)
        found = engine.judge(runs, comparisons=300, base_code=True)
        for row in range(len(runs)):
            one, _ = judged(runs, row, base_code=True, confirmed=False)
            assert found.flagged[row] == one.flagged


@pytest.mark.parametrize("name", APART)
def test_estimates_of_arrays_are_those_of_the_package(name):
    runs = drawn(name, 0.05, count=30)
    found = runs.estimate(6)
    for row in range(len(runs)):
        one = interval.two_samples(
            [session.tolist() for session in runs.baseline[row]],
            runs.candidate[row, :6].tolist(),
            within_variance=WITHIN**2,
        )
        same(found, one, row)


def test_paired_estimates_of_arrays_are_those_of_the_package():
    runs = drawn("paired", 0.05, count=30)
    found = runs.estimate(8)
    for row in range(len(runs)):
        differences = runs.candidate[row, :8] - runs.baseline[row, 0, :8]
        one = interval.pairs(differences.tolist(), within_variance=2 * WITHIN**2)
        same(found, one, row)


def same(found, one, row):
    for field in ("delta", "se", "df", "spread", "p_worse", "p_better"):
        value = np.broadcast_to(getattr(found, field), len(found.delta))[row]
        assert value == pytest.approx(getattr(one, field), rel=1e-9, abs=1e-12), field
    assert found.lower(0.03)[row] == pytest.approx(one.lower(0.03), rel=1e-9)
    assert found.upper(0.015)[row] == pytest.approx(one.upper(0.015), rel=1e-9)
