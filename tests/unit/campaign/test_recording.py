"""What a session of baselines keeps besides its statistics."""

from pytest_perfgate.campaign.recording import Occasion, _recording
from pytest_perfgate.measured import (
    METRICS,
    Measurement,
    OperatorUse,
    Plan,
    Profile,
    Samples,
)
from pytest_perfgate.model import BenchmarkResult, Outcome, Reason, RunSummary, Verdict

PROFILE = Profile(operators={"aten::mm": OperatorUse(count=1, self_s=0.5)})


def measurement(run, profile=None):
    return Measurement(
        benchmark="b",
        nodeid="b",
        run=run,
        plan=Plan(iterations=1, warmup=0),
        samples=(Samples(metric=METRICS["latency"], values=(0.5,)),),
        profile=profile,
    )


def test_the_profile_is_that_of_the_first_run_that_has_one():
    verdict = Verdict(outcome=Outcome.UNCHANGED, reason=Reason.WITHIN_BUDGET)
    judged = BenchmarkResult(
        benchmark="b",
        nodeid="b",
        verdict=verdict,
        runs=(RunSummary(iterations=1, statistics={}),),
    )
    occasion = Occasion(
        time="now", commit=None, environment_digest="e", force=False, out_of_time=False
    )
    measured = [measurement(1), measurement(2, PROFILE), measurement(3)]
    assert _recording(judged, measured, occasion).profile == PROFILE
    assert _recording(judged, measured[:1], occasion).profile is None
