"""Worlds in which the right answer is known.

A world draws log statistics of runs around zero: how a process differs from the
next, how a session differs, which benchmarks are noisy. Slower code is added
afterwards. Iterations are drawn around a run's own level.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tests.quality.engine import Runs

BASE, LAST, FRESH = 10, 12, 5


def normal(rng, shape):
    return rng.standard_normal(shape)


def skewed(rng, shape):
    """A gamma law of shape 2: mean 0, sd 1, skewness 1.4."""
    return (rng.gamma(2.0, size=shape) - 2) / 2**0.5


@dataclass(frozen=True, kw_only=True)
class World:
    """How the runs of identical code differ.

    Attributes
    ----------
    sd : of the log between runs
    log_sd : of that sd between benchmarks, which is log-normal
    sds : where given, the sd is uniform between these
    slow : share of runs that are slower, and by how much
    session : sd between sessions, as a multiple of the runs'
    common : share of sessions in which the whole machine is 3 % off
    step : share of sessions in which it is 6 % slower from the fourth run on
    drift : how much slower each run of the candidate is than the one before
    """

    sd: float = 0.0
    log_sd: float = 0.0
    sds: tuple[float, float] | None = None
    law: Callable = normal
    slow: tuple[float, float] = (0.0, 0.0)
    session: float = 0.0
    common: float = 0.0
    step: float = 0.0
    drift: float = 0.0
    base_runs: int = BASE
    sessions: int = 1
    paired: bool = False
    metrics: int = 300

    def draw(self, rng, n):
        """Draw n comparisons, whole suites of `metrics` in a row."""
        sd = self._spread(rng, n)
        # pairs: what is stated is the sd of a pair's difference
        scale = sd / 2**0.5 if self.paired else sd

        def runs(count):
            share, step = self.slow
            late = np.log1p(step) * (rng.random((n, count)) < share) if share else 0.0
            return self.law(rng, (n, count)) * scale + late

        def session():
            own = rng.standard_normal((n, 1)) * sd * self.session
            return own + np.repeat(self._machine(rng, n), self.metrics)[:n, None]

        if self.paired:
            # both halves share the session, which cancels
            return self._runs(runs(LAST)[:, None], runs)
        stored = [runs(self.base_runs) + session() for _ in range(self.sessions)]
        late = session() + self._course(rng, n)
        return self._runs(np.stack(stored, axis=1), runs, late)

    def _course(self, rng, n):
        """Draw how the machine's speed changes from run to run of a session."""
        place = np.arange(LAST + FRESH)
        suites = -(-n // self.metrics)
        struck = np.repeat(rng.random(suites) < self.step, self.metrics)[:n, None]
        return place * np.log1p(self.drift) + struck * (place >= 3) * np.log(1.06)

    def _spread(self, rng, n):
        if self.sds:
            return rng.uniform(*self.sds, (n, 1))
        return self.sd * np.exp(self.log_sd * rng.standard_normal((n, 1)))

    def _runs(self, baseline, runs, late=0.0):
        late = np.broadcast_to(late, (len(baseline), LAST + FRESH))
        return Runs(
            baseline=baseline,
            candidate=runs(LAST) + late[:, :LAST],
            fresh_base=runs(FRESH) + late[:, LAST:],
            fresh=runs(FRESH) + late[:, LAST:],
            paired=self.paired,
        )

    def _machine(self, rng, n):
        suites = -(-n // self.metrics)
        off = rng.choice([-0.03, 0.03], suites)
        return off * (rng.random(suites) < self.common)


@dataclass(frozen=True, kw_only=True)
class Design:
    """One world, and how much of it is looked at."""

    title: str
    world: World
    suites: int = 1500
    effects: tuple[float, ...] = (0.05, 0.075, 0.10)
    comparisons: int = 102_000
    """For each effect."""
    peers: int = 2000
    scope: bool = False
    """Beyond what is promised; shown so that it is known."""

    def smaller(self, factor):
        return replace(
            self,
            suites=max(4, self.suites // factor),
            comparisons=max(1200, self.comparisons // factor),
            peers=self.peers // factor,
        )


def steady(sd, **others):
    title = f"normal runs, sd {100 * sd:g} %"
    return Design(title=title, world=World(sd=sd), **others)


def paired(sd):
    return Design(
        title=f"paired, normal, pair sd {100 * sd:g} %",
        world=World(sd=sd, paired=True),
        effects=(0.05, 0.06, 0.10),
        peers=0,
    )


DESIGNS = {
    "normal-0.3": steady(0.003),
    "normal-1": steady(0.01),
    "normal-2": steady(0.02),
    "normal-3": steady(0.03),
    "normal-5": steady(0.05),
    "unlike-0.8": Design(
        title="unlike benchmarks: sd log-normal, median 1.6 %, log-sd 0.8",
        world=World(sd=0.016, log_sd=0.8),
    ),
    "unlike-1.0": Design(
        title="unlike benchmarks: sd log-normal, median 1.6 %, log-sd 1.0",
        world=World(sd=0.016, log_sd=1.0),
    ),
    "skewed-2": Design(
        title="skewed runs (gamma of shape 2), sd 2 %",
        world=World(sd=0.02, law=skewed),
    ),
    "slow-runs": Design(
        title="12 % of runs 6 % slower, the others' sd 1 %",
        world=World(sd=0.01, slow=(0.12, 0.06)),
    ),
    "bimodal": Design(
        title="bimodal: 30 % of runs 8 % slower, the others' sd 1 %",
        world=World(sd=0.01, slow=(0.3, 0.08)),
    ),
    "session-quarter": Design(
        title="unlike benchmarks, session sd a quarter of the run sd",
        world=World(sd=0.016, log_sd=0.8, session=0.25),
    ),
    "session-quarter-4": Design(
        title="the same with four stored sessions of ten runs",
        world=World(sd=0.016, log_sd=0.8, session=0.25, sessions=4),
        suites=700,
    ),
    "session-full": Design(
        title="session sd equal to the run sd of 2 %",
        world=World(sd=0.02, session=1.0),
        scope=True,
    ),
    "session-full-4": Design(
        title="the same with four stored sessions of ten runs",
        world=World(sd=0.02, session=1.0, sessions=4),
        suites=700,
        scope=True,
    ),
    "common-shift": Design(
        title="the whole machine 3 % faster or slower in 5 % of sessions, sd 1 %",
        world=World(sd=0.01, common=0.05),
    ),
    "step": Design(
        title="the whole machine 6 % slower from the fourth run on in 5 % of sessions,"
        " sd 2 %",
        world=World(sd=0.02, step=0.05),
    ),
    "drift": Design(
        title="each run 1 % slower than the one before, sd 1 %",
        world=World(sd=0.01, drift=0.01),
        scope=True,
    ),
    "noisy": Design(
        title="noisy benchmarks: run sd 10 to 25 %",
        world=World(sds=(0.10, 0.25)),
    ),
    "noisy-3000": Design(
        title="3,000 noisy metrics a suite: run sd 10 to 25 %",
        world=World(sds=(0.10, 0.25), metrics=3000),
        suites=800,
        effects=(),
        peers=0,
    ),
    "few-baseline-runs": Design(
        title="three baseline runs only, sd 1 %",
        world=World(sd=0.01, base_runs=3),
    ),
    "five-baseline-runs": Design(
        title="five baseline runs, sd 1 %",
        world=World(sd=0.01, base_runs=5),
    ),
    "paired-1": paired(0.01),
    "paired-3": paired(0.03),
    "paired-noisy": Design(
        title="paired, pair sd 5 to 15 %",
        world=World(sds=(0.05, 0.15), paired=True),
        effects=(0.05, 0.10),
        peers=0,
    ),
}


# iterations -------------------------------------------------------------------


def autoregressive(rng, shape, correlation):
    """Normal noise of sd 1 along the last axis, neighbours alike."""
    noise = rng.standard_normal(shape)
    if correlation:
        keep = (1 - correlation**2) ** 0.5
        for step in range(1, shape[-1]):
            noise[..., step] = correlation * noise[..., step - 1] + (
                keep * noise[..., step]
            )
    return noise


@dataclass(frozen=True, kw_only=True)
class Iterations:
    """How the iterations of a run differ, around the run's own level."""

    sd: float = 0.05
    correlation: float = 0.5
    spikes: float = 0.0
    """Share of iterations that take half as long again."""
    pareto: float = 0.0
    """Share of iterations with a tail of Pareto's law of index 2."""
    tick: float = 0.0
    """Of the clock, as a fraction of the time."""
    count: int = 200

    def draw(self, rng, levels):
        """Draw samples, shape (*levels, count)."""
        shape = (*levels.shape, self.count)
        noise = self.sd * autoregressive(rng, shape, self.correlation)
        values = np.exp(levels[..., None] + noise)
        if self.spikes:
            values *= np.where(rng.random(shape) < self.spikes, 1.5, 1.0)
        if self.pareto:
            tail = rng.random(shape) ** -0.5
            values *= np.where(rng.random(shape) < self.pareto, tail, 1.0)
        return np.round(values / self.tick) * self.tick if self.tick else values


LAWS = {
    "independent": ("independent iterations", Iterations(correlation=0.0)),
    "alike": ("neighbours alike (AR 0.5)", Iterations()),
    "very-alike": ("neighbours very alike (AR 0.9)", Iterations(correlation=0.9)),
    "pauses": ("2 % of iterations half as long again", Iterations(spikes=0.02)),
    "heavy-tail": ("3 % of iterations with a Pareto(2) tail", Iterations(pareto=0.03)),
    "coarse-clock": ("a clock that ticks every 2 %", Iterations(tick=0.02)),
}
