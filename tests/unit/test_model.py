import math

import pytest

from pytest_perfgate.measured import (
    METRICS,
    Health,
    Metric,
    Plan,
    Samples,
    SlowIteration,
    SlowIterations,
)
from pytest_perfgate.model import (
    Baseline,
    Clue,
    ClueKind,
    Explanation,
    Judgement,
    Outcome,
    Reason,
    RunStatistic,
    RunSummary,
    Session,
    Twin,
    Verdict,
)

RUN = RunSummary(
    iterations=3, statistics={"latency": {"median": RunStatistic(value=1.0, se=0.1)}}
)
SESSION = Session(time="", commit=None, environment_digest="", runs=(RUN,))
LATENCY = METRICS["latency"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Metric(name="", unit="s"), "Metric.name=''"),
        (
            lambda: Clue(kind=ClueKind.NOTE, text="", share=math.inf),
            "Clue.share=inf",
        ),
        (lambda: Explanation(lines=()), r"Explanation.lines=\(\)"),
        (
            lambda: SlowIteration(index=-1, at_s=0.0, value_s=0.0),
            "SlowIteration.index=-1",
        ),
        (
            lambda: SlowIteration(index=0, at_s=math.nan, value_s=0.0),
            "SlowIteration.at_s=nan",
        ),
        (
            lambda: SlowIteration(index=0, at_s=0.0, value_s=-1.0),
            "SlowIteration.value_s=-1.0",
        ),
        (
            lambda: SlowIterations(run=0, beyond_s=0.0, rule="", count=1, worst=()),
            r"SlowIterations.worst=\(\)",
        ),
        (
            lambda: SlowIterations(
                run=0,
                beyond_s=0.0,
                rule="",
                count=0,
                worst=(SlowIteration(index=0, at_s=0.0, value_s=0.0),),
            ),
            "SlowIterations.count=0",
        ),
        (lambda: Health(unfit=Reason.TOO_NOISY), "Health.unfit=<Reason.TOO_NOISY"),
        (lambda: Samples(metric=LATENCY, values=()), r"Samples.values=\(\)"),
        (
            lambda: Samples(metric=LATENCY, values=(1.0, math.nan)),
            r"Samples.values\[1\]=nan",
        ),
        (lambda: Plan(iterations=0, warmup=0), "Plan.iterations=0"),
        (lambda: Plan(iterations=1, warmup=-1), "Plan.warmup=-1"),
        (lambda: Plan(iterations=1, warmup=0, inner_loop=0), "Plan.inner_loop=0"),
        (lambda: RunStatistic(value=math.inf), "RunStatistic.value=inf"),
        (lambda: RunStatistic(value=1.0, se=-1.0), "RunStatistic.se=-1.0"),
        (lambda: Twin(log_ratio=math.nan), "Twin.log_ratio=nan"),
        (lambda: Twin(log_ratio=0.0, se=-1.0), "Twin.se=-1.0"),
        (lambda: RunSummary(iterations=0, statistics={}), "RunSummary.iterations=0"),
        (
            lambda: Session(time="", commit=None, environment_digest="", runs=()),
            r"Session.runs=\(\)",
        ),
        (
            lambda: Baseline(
                plan=Plan(iterations=1, warmup=0),
                metrics={},
                sessions=(),
                anchor=SESSION,
            ),
            r"Baseline.sessions=\(\)",
        ),
    ],
)
def test_a_value_that_cannot_be_names_its_field(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_run_gives_its_statistics_by_name():
    assert RUN.get("latency", "median").value == 1.0
    assert RUN.get("latency", "p99") is None
    assert RUN.get("ttft", "median") is None


def test_a_baseline_gives_the_runs_of_all_its_sessions():
    baseline = Baseline(
        plan=Plan(iterations=3, warmup=0),
        metrics={"latency": LATENCY},
        sessions=(SESSION, SESSION),
        anchor=SESSION,
    )
    assert baseline.runs == (RUN, RUN)


def test_a_judgement_says_outcome_and_reason_for_short():
    verdict = Verdict(outcome=Outcome.UNCHANGED, reason=Reason.WITHIN_BUDGET)
    judgement = Judgement(metric=LATENCY, statistic="median", verdict=verdict)
    assert judgement.outcome is Outcome.UNCHANGED
    assert judgement.reason is Reason.WITHIN_BUDGET


def test_the_strongest_lines_are_of_as_many_kinds_as_there_are():
    kinds = [ClueKind.COUNT] * 3 + [ClueKind.OPERATOR, ClueKind.COMMIT]
    lines = tuple(Clue(kind=kind, text=f"{n}") for n, kind in enumerate(kinds))
    told = Explanation(lines=lines)
    assert [line.text for line in told.strongest(1)] == ["0"]
    assert [line.text for line in told.strongest(3)] == ["0", "3", "4"]
    assert [line.text for line in told.strongest(4)] == ["0", "1", "3", "4"]
    assert told.strongest(9) == lines
