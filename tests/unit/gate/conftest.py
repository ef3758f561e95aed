"""Runs, baselines and judgements in as few words as a test needs."""

from dataclasses import dataclass

import numpy as np
import pytest

from pytest_perfgate.gate.judge import judge_benchmark
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import resolve_policy
from pytest_perfgate.measured import METRICS, Metric, Plan
from pytest_perfgate.model import Baseline, RunStatistic, RunSummary, Session

KNOWN = {
    **METRICS,
    "kernel_launches": Metric(name="kernel_launches", unit="1", exact=True),
    "hits": Metric(name="hits", unit="1", exact=True, better="higher"),
    "stage:forward": Metric(name="stage:forward", unit="s"),
    "phase:backward": Metric(name="phase:backward", unit="s"),
    "queue_wait": Metric(name="queue_wait", unit="s"),
    "backlog": Metric(name="backlog", unit="jobs"),
    "score": Metric(name="score", unit="points", better="higher"),
}


@dataclass(frozen=True)
class Factory:
    """Everything is a method, so that one fixture is enough."""

    def metric(self, name):
        return KNOWN[name]

    def run(self, iterations=100, *, se=0.0, **columns):
        """One run; `latency__median=1.0` is the median of the metric latency."""
        own = {
            name: columns.pop(name)
            for name in (
                "drift",
                "disturbed",
                "steady",
                "clock_tick_s",
                "samples",
                "device",
                "output",
                "enqueue_share",
            )
            if name in columns
        }
        statistics = {}
        for key, value in columns.items():
            metric, _, statistic = key.partition("__")
            name = metric.replace("stage_", "stage:").replace("phase_", "phase:")
            statistics.setdefault(name, {})[statistic] = RunStatistic(
                value=value, se=se
            )
        return RunSummary(iterations=iterations, statistics=statistics, **own)

    def runs(self, key, values, **others):
        return tuple(self.run(**{key: value}, **others) for value in values)

    def noisy(self, key, count, *, center=1.0, sd=0.01, seed=0, **others):
        """Log-normal runs whose geometric mean is exactly the center."""
        draws = np.random.default_rng(seed).normal(0, 1, count)
        draws = (draws - draws.mean()) / draws.std(ddof=1)
        return self.runs(key, [float(x) for x in center * np.exp(sd * draws)], **others)

    def baseline(self, *sessions, metrics=None, inner_loop=1):
        names = metrics or list(sessions[0][0].statistics)
        made = tuple(
            Session(
                time="2024-05-01T00:00:00Z",
                commit=None,
                environment_digest="",
                runs=runs,
            )
            for runs in sessions
        )
        return Baseline(
            plan=Plan(
                iterations=sessions[0][0].iterations, warmup=0, inner_loop=inner_loop
            ),
            metrics={name: KNOWN[name] for name in names},
            sessions=made,
            anchor=made[0],
        )

    def judge(self, baseline, candidate, *, look=None, policy=None, **kwargs):
        named = {
            name: kwargs.pop(name)
            for name in ("specs", "limits", "marker_budget", "marker_limit", "gate")
            if name in kwargs
        }
        if "only" in kwargs:
            named["metrics"] = kwargs.pop("only")
        return judge_benchmark(
            policy=policy or resolve_policy("b.py::bench", **named),
            baseline=baseline,
            candidate=candidate,
            look=look or Look(index=2, last=True),
            **kwargs,
        )


@pytest.fixture
def make():
    return Factory()
