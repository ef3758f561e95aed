"""Sixty processes of identical code on a machine that others wanted as well."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from pytest_perfgate.model import Outcome, Reason
from tests.quality.realdata import draws, load_contended, run_gate, slower, summary_of

NAMES = ("mlp", "tfm")


@cache
def runs_of(name):
    return [summary_of(run) for run in load_contended(name)]


def verdicts(name, *, factor=1.0, base_code, count, chronological=False):
    rng = np.random.default_rng(20)
    runs = runs_of(name)
    now = [slower(run, factor) for run in runs]
    for base, candidate, fresh_base, fresh in draws(
        len(runs), rng, count=count, chronological=chronological
    ):
        judged, _ = run_gate(
            [[runs[index] for index in base]],
            [now[index] for index in candidate],
            fresh=[now[index] for index in fresh],
            fresh_base=[runs[index] for index in fresh_base] if base_code else None,
        )
        yield judged


@pytest.mark.slow
@pytest.mark.parametrize("chronological", [True, False])
@pytest.mark.parametrize("base_code", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_identical_code_is_never_red(name, base_code, chronological):
    found = list(
        verdicts(name, base_code=base_code, count=150, chronological=chronological)
    )
    assert not any(one.verdict.outcome is Outcome.REGRESSED for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_ten_percent_is_seen_by_the_floor_and_confirmed(name):
    found = list(verdicts(name, factor=1.1, base_code=True, count=300))
    red = [one for one in found if one.verdict.outcome is Outcome.REGRESSED]
    assert len(red) >= 0.95 * len(found)
    floors = [
        judgement
        for one in red
        for judgement in one.judgements
        if judgement.statistic == "floor" and judgement.reason is Reason.CONFIRMED
    ]
    assert len(floors) >= 0.95 * len(red)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_without_base_code_ten_percent_is_suspect_and_never_red(name):
    found = Counter(
        (one.verdict.outcome, one.verdict.reason)
        for one in verdicts(name, factor=1.1, base_code=False, count=200)
    )
    assert found[Outcome.INCONCLUSIVE, Reason.SUSPECT] >= 0.95 * found.total()
    assert not any(outcome is Outcome.REGRESSED for outcome, _ in found)
