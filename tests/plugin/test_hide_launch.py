"""`hide_launch=True` in whole sessions: what cannot be done is said."""

BENCH = "benches/bench_a.py::bench_one"
ONE = """
import pytest

@pytest.mark.perfgate(hide_launch=True)
def bench_one(perfgate):
    perfgate(lambda: None)
"""
THREE = ("--perfgate-runs=3:3", "benches")


def metrics(project):
    return {s.metric.name for m in project.measurements() for s in m.samples}


def test_a_device_without_a_queue_is_named(project):
    project.bench(ONE)
    session = project.run("--perfgate-on-missing=warn", *THREE)
    session.stdout.fnmatch_lines(["*hide_launch=True means nothing on fake*"])
    assert project.outcomes[BENCH][0] == "no-baseline"


def test_a_period_that_is_gone_from_one_day_to_the_next_is_missed(project):
    """What launches cannot be counted on this device, so there is none to hide."""
    project.device({BENCH: {"device": 0.9, "period": 0.5}})
    project.bench(ONE.replace("hide_launch=True", ""))
    project.adopt("benches")
    assert "device_period" in metrics(project)
    project.bench(ONE)
    session = project.run(*THREE)
    assert "device_period" not in metrics(project)
    assert project.outcomes == {BENCH: ("unchanged", "within-budget")}
    session.stdout.fnmatch_lines(
        [
            "*device_period is in the baseline and was not measured in every run*",
            "*since no launch can be hidden: what a call launches was not*",
        ]
    )


def test_a_training_step_refuses_it(project):
    project.bench(
        ONE.replace(
            "perfgate(lambda: None)",
            "\n    for _ in perfgate.iterations():\n        pass",
        )
    )
    session = project.run(*THREE)
    assert project.outcomes[BENCH] == ("error", "body-raised")
    session.stdout.fnmatch_lines(["*hide_launch=True means nothing for the loop form*"])
