"""One design, studied: the gate's rule and its peers' on the same kind of world."""

import zlib

import numpy as np

from tests.quality.designs import BASE, Iterations, World
from tests.quality.engine import Runs, judge
from tests.quality.figures import Mean, Share
from tests.quality.peers import RULES

CHUNK = 60_000
PEERS_CHUNK = 250

WITH_BASE = "perfgate, confirmed by fresh pairs"
CALMER = "perfgate, fresh pairs half as noisy"
STORED = "perfgate, stored baseline only"
PAIRED = "perfgate, paired"

Rows = dict[str, dict[str, Share | Mean]]
"""By rule, then by figure: `regressed@0.1`, `passed@0`, `runs@0`, `suites`."""


def generator(name):
    """Give each design random numbers of its own, the same in every run."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def calmer(runs):
    """Let alternation in turns halve the variance of fresh pairs."""
    scale = 0.5**0.5
    return Runs(
        baseline=runs.baseline,
        candidate=runs.candidate,
        fresh_base=runs.fresh_base * scale,
        fresh=runs.fresh * scale,
        paired=runs.paired,
        within=runs.within,
    )


def modes(world):
    if world.paired:
        return {PAIRED: (True, lambda runs: runs)}
    return {
        WITH_BASE: (True, lambda runs: runs),
        CALMER: (True, calmer),
        STORED: (False, lambda runs: runs),
    }


def add(rows, rule, figures):
    known = rows.setdefault(rule, {})
    for name, figure in figures.items():
        known[name] = known[name] + figure if name in known else figure


def figures_of(outcomes, effect, suite=None):
    found = {
        f"regressed@{effect:g}": Share.of(outcomes.regressed),
        f"flagged@{effect:g}": Share.of(outcomes.flagged),
        f"passed@{effect:g}": Share.of(outcomes.passed),
        f"inconclusive@{effect:g}": Share.of(outcomes.inconclusive),
        f"suspect@{effect:g}": Share.of(outcomes.suspect),
        f"runs@{effect:g}": Mean.of(outcomes.runs),
    }
    if effect == 0 and suite:
        whole = len(outcomes.regressed) // suite * suite
        red = outcomes.regressed[:whole].reshape(-1, suite).any(axis=1)
        found["suites"] = Share.of(red)
    return found


def study(name, design):
    """Run a design through the gate's rule and the peers'."""
    rng, rows = generator(name), {}
    world = design.world
    plan = {0.0: design.suites * world.metrics}
    plan |= dict.fromkeys(design.effects, design.comparisons)
    for effect, total in plan.items():
        for size in chunks(total, world.metrics):
            drawn = world.draw(rng, size)
            _judge_all(rows, world, drawn, effect)
    if design.peers:
        study_peers(rows, rng, world, Iterations(), design.peers)
    return rows


def chunks(total, suite):
    """Split into parts of whole suites."""
    suites = -(-total // suite)
    size = max(1, CHUNK // suite)
    return [min(size, suites - start) * suite for start in range(0, suites, size)]


def _judge_all(rows, world, drawn, effect):
    for rule, (base_code, change) in modes(world).items():
        runs = change(drawn).slower(effect)
        # what is slower is meant to be one of its suite, not all of it
        suite = None if effect else world.metrics
        outcomes = judge(
            runs, comparisons=world.metrics, base_code=base_code, suite=suite
        )
        add(rows, rule, figures_of(outcomes, effect, world.metrics))


def study_peers(rows, rng, world, iterations, total, *, effects=(0.0, 0.10)):
    """Let the other tools decide on samples of runs of the same world."""
    for effect in effects:
        for start in range(0, total, PEERS_CHUNK):
            count = min(PEERS_CHUNK, total - start)
            drawn = world.draw(rng, count).slower(effect)
            base = iterations.draw(rng, drawn.baseline[:, 0])
            now = iterations.draw(rng, drawn.candidate[:, :BASE])
            for rule, slower in RULES.items():
                add(rows, rule, _peer_figures(slower(base, now), effect))


def _peer_figures(slower, effect):
    return {
        f"regressed@{effect:g}": Share.of(slower),
        f"passed@{effect:g}": Share.of(~slower),
    }


# iterations -------------------------------------------------------------------

LAW_CHUNK = 500


def median_and_error(samples):
    """Give log medians of runs and their variance within a run, from ten blocks."""
    levels = np.log(np.median(samples, axis=-1))
    parts = samples.reshape(*samples.shape[:-1], 10, -1)
    blocks = np.log(np.median(parts, axis=-1))
    return levels, blocks.var(axis=-1, ddof=1) / 10


def tail_and_error(samples):
    """Give log P99 of runs; its error within a run is left out."""
    levels = np.log(np.quantile(samples, 0.99, axis=-1))
    return levels, np.zeros_like(levels)


def reduce_runs(rng, iterations, drawn, statistic, change):
    """Draw the iterations of all runs, and reduce each to its statistic."""

    def side(levels, *, slower):
        samples = iterations.draw(rng, levels)
        return statistic(change(samples) if slower else samples)

    base, base_error = side(drawn.baseline[:, 0], slower=False)
    now, error = side(drawn.candidate, slower=True)
    fresh_base, _ = side(drawn.fresh_base, slower=False)
    fresh, _ = side(drawn.fresh, slower=True)
    within = np.concatenate([base_error, error], axis=1).mean(axis=1)
    return Runs(
        baseline=base[:, None],
        candidate=now,
        fresh_base=fresh_base,
        fresh=fresh,
        within=within,
    )


def study_law(name, iterations, *, total=8000, peers=1000, sd=0.01):
    """Judge medians of drawn iterations; processes differ by `sd`."""
    rng, rows, world = generator(name), {}, World(sd=sd)
    for effect in (0.0, 0.05, 0.10):
        for start in range(0, total, LAW_CHUNK):
            drawn = world.draw(rng, min(LAW_CHUNK, total - start)).slower(effect)
            runs = reduce_runs(
                rng, iterations, drawn, median_and_error, lambda samples: samples
            )
            _law_rows(rows, runs, effect)
    study_peers(rows, rng, world, iterations, peers)
    return rows


def _law_rows(rows, runs, effect, budget=0.05):
    for rule, base_code in ((WITH_BASE, True), (STORED, False)):
        outcomes = judge(runs, comparisons=300, base_code=base_code, budget=budget)
        add(rows, rule, figures_of(outcomes, effect))


def slow_tail(effect):
    """Let the slowest 3 % of a run's iterations take longer, and nothing else."""

    def change(samples):
        edge = np.quantile(samples, 0.97, axis=-1, keepdims=True)
        return np.where(samples > edge, samples * (1 + effect), samples)

    return change


def study_tail(name, *, total=6000):
    """Judge P99 of 400 iterations, budget 10 %, where only the tail gets slower."""
    rng, rows, world = generator(name), {}, World(sd=0.01)
    iterations = Iterations(count=400, spikes=0.02)
    for effect in (0.0, 0.10, 0.20, 0.30):
        for start in range(0, total, LAW_CHUNK):
            drawn = world.draw(rng, min(LAW_CHUNK, total - start))
            runs = reduce_runs(
                rng, iterations, drawn, tail_and_error, slow_tail(effect)
            )
            _law_rows(rows, runs, effect, budget=0.10)
    return rows
