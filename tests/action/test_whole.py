"""The whole action on each event: verdict, outputs, summary, annotations, exit."""

import pytest

from tests.action.events import push
from tests.action.runner import ROOT


@pytest.fixture
def measured(make_machine, make_project):
    """Run the action in mode all; the device says how long things take."""

    def run(event, *, device=None, token=False, **inputs):
        project = make_project(device or {})
        machine = make_machine(event, workspace=project.path, environment=project.given)
        given = {"pytest-args": "benches", "accept-label": "", "comment": "never"}
        return machine.action(
            ROOT, given | {k.replace("_", "-"): v for k, v in inputs.items()}
        )

    return run


def test_a_push_that_changes_nothing_is_green(measured):
    result = measured(push())
    assert result.outcome == "success", result.log
    assert result.outputs["verdict"] == "pass"
    assert result.outputs["exit-code"] == "0"


def test_a_regression_is_red(measured):
    result = measured(push(), device={"*bench_fast*": {"factor": 1.3}})
    assert result.outcome == "failure", result.log
    assert result.outputs["verdict"] == "regressed"
    print(result.log, result.summary, result.annotations)
    assert 0
