"""The rule on data that were recorded, and on intervals of known coverage."""

from functools import partial

import numpy as np

from pytest_perfgate.model import Outcome, Reason
from tests.quality import engine, page_names, realdata
from tests.quality.designs import Iterations, World
from tests.quality.figures import Mean, Points, Share
from tests.quality.study import (
    STORED,
    WITH_BASE,
    add,
    figures_of,
    generator,
)

GO_CHUNK = 18_000
LEVELS = (0.01, 0.015, 0.02, 0.03, 0.05, 0.06)


def tasks(data, divide):
    found = {"coverage": partial(coverage, total=120_000 // divide)}
    for name in WARMTH:
        found[name] = partial(warmth, name, total=max(4, 200 // divide))
    for kind, chronological in page_names.CONTENDED.items():
        for name in ("mlp", "tfm"):
            found[f"{name}-{kind}"] = partial(
                contended, name, chronological=chronological, total=1000 // divide
            )
    for name, chronological in page_names.GO.items():
        found[name] = partial(
            go_rounds, data, chronological=chronological, total=180_000 // divide
        )
    found[page_names.SERIES] = partial(series, data)
    return found


def coverage(*, total):
    """Measure how far one-sided intervals are from what they say.

    Baseline and candidate are of one session: what sessions add is left out.
    """
    rng, rows = generator("coverage"), {}
    for runs in (3, 6, 12):
        now = rng.standard_normal((total, runs)) * 0.02
        base = rng.standard_normal((total, 1, 10)) * 0.02
        found = engine.two_samples(base, now)
        se = np.sqrt(found.se**2 - found.session_variance)
        for level in LEVELS:
            above = found.delta - engine.t_at(1 - level, found.df) * se > 0
            add(rows, f"{runs} runs", {f"missed@{level:g}": Share.of(above)})
        off = [
            abs(rows[f"{runs} runs"][f"missed@{level:g}"].value - level)
            for level in LEVELS
        ]
        rows[f"{runs} runs"]["off"] = Points(value=max(off))
    return rows


def warm(samples):
    return samples


def warming(samples):
    """Let the first forty iterations take 60 % longer, as if none were dropped."""
    return samples * np.where(np.arange(samples.shape[-1]) < 40, 1.6, 1.0)


def never_steady(samples):
    """Let a run become 10 % slower from its beginning to its end."""
    return samples * np.linspace(1.0, 1.1, samples.shape[-1])


WARMTH = {"warm": warm, "warming": warming, "never-steady": never_steady}


def warmth(name, *, total):
    """Judge drawn iterations by the gate itself, trends within runs included."""
    rng, rows = generator(name), {}
    world, iterations = World(sd=0.01), Iterations(correlation=0.0)
    for effect in (0.0, 0.1):
        for _ in range(total):
            drawn = world.draw(rng, 1).slower(effect)
            base, now, fresh_base, fresh = (
                [
                    realdata.summary_of(run)
                    for run in WARMTH[name](iterations.draw(rng, levels))
                ]
                for levels in (
                    drawn.baseline[0, 0],
                    drawn.candidate[0],
                    drawn.fresh_base[0],
                    drawn.fresh[0],
                )
            )
            judged, used = realdata.run_gate(
                [base], now, fresh=fresh, fresh_base=fresh_base
            )
            add(rows, WITH_BASE, _figures(judged, used, effect))
    return rows


def contended(name, *, chronological, total):
    """Judge real runs by the gate itself, look by look."""
    rng = generator(f"{name}{chronological}")
    runs = [realdata.summary_of(run) for run in realdata.load_contended(name)]
    rows = {}
    for effect in (0.0, 0.1):
        now = [realdata.slower(run, 1 + effect) for run in runs]
        parts = realdata.draws(len(runs), rng, count=total, chronological=chronological)
        for base, candidate, fresh_base, fresh in parts:
            for rule in (WITH_BASE, STORED):
                judged, used = realdata.run_gate(
                    [[runs[index] for index in base]],
                    [now[index] for index in candidate],
                    fresh=[now[index] for index in fresh],
                    fresh_base=[runs[index] for index in fresh_base]
                    if rule is WITH_BASE
                    else None,
                )
                add(rows, rule, _figures(judged, used, effect))
    return rows


def _figures(judged, used, effect):
    outcome, reason = judged.verdict.outcome, judged.verdict.reason
    passed = outcome in {Outcome.UNCHANGED, Outcome.IMPROVED}
    red = outcome is Outcome.REGRESSED
    return {
        f"regressed@{effect:g}": Share.of(np.array([red])),
        f"passed@{effect:g}": Share.of(np.array([passed])),
        f"inconclusive@{effect:g}": Share.of(np.array([not red and not passed])),
        f"suspect@{effect:g}": Share.of(np.array([reason is Reason.SUSPECT])),
        f"runs@{effect:g}": Mean.of([used]),
    }


def go_rounds(data, *, chronological, total):
    series = realdata.load_go(data)
    if series is None:
        return {}
    rng, rows = generator(f"go{chronological}"), {}
    for effect in (0.0, 0.05, 0.075, 0.10):
        wanted = total if effect == 0 else total // 4
        for start in range(0, wanted, GO_CHUNK):
            count = min(GO_CHUNK, wanted - start)
            drawn = realdata.draw_go(series, rng, count, chronological=chronological)
            runs = drawn.slower(effect)
            for rule in (WITH_BASE, STORED):
                outcomes = engine.judge(
                    runs, comparisons=300, base_code=rule is WITH_BASE
                )
                figures = figures_of(outcomes, effect, 300)
                add(rows, rule, figures)
    return rows


def series(data):
    rows = {}
    for name, values, labels in realdata.load_series(data):
        if min(values) <= 0:
            continue
        still, changed = realdata.series_windows(values, labels)
        figures = {
            "still": _flagged(np.log(values), still),
            "changed": _flagged(np.log(values), changed) if changed.size else None,
        }
        rows[name] = {key: one for key, one in figures.items() if one is not None}
    return rows


def _flagged(logs, starts):
    windows = np.stack([logs[start : start + 22] for start in starts])
    found = np.zeros(len(windows), dtype=bool)
    for sign in (1, -1):
        runs = engine.Runs(
            baseline=sign * windows[:, None, :10],
            candidate=sign * windows[:, 10:],
            fresh_base=windows[:, :0],
            fresh=windows[:, :0],
        )
        screened = engine.screen(runs, comparisons=300, base_code=True)
        found |= screened.state == engine.FLAGGED
    return Share.of(found)
