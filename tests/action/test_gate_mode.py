"""The gate in a job of its own: what other jobs measured, and what they did not."""

import json

import pytest

from pytest_perfgate.model import Outcome
from pytest_perfgate.store.codec_report import REPORT
from tests.action.events import pull_request, push
from tests.action.reports import FAST, GREEN, RED, of, session, write
from tests.action.runner import ROOT
from tests.unit.gate.reports import environment, result


@pytest.fixture
def gate(make_machine, tmp_path, hub):
    """Judge artifacts, by the name of their folder; None is one without a report."""

    def run(artifacts, *, event=None, measured="success", **inputs):
        machine = make_machine((event or push()).changed(api=hub.url))
        machine.in_process = True
        folder = tmp_path / "perfgate"
        folder.mkdir()
        for name, report in artifacts.items():
            place = folder / name
            place.mkdir()
            if isinstance(report, str):
                (place / "report.json").write_text(report)
            elif report is None:
                (place / "report.html").touch()
            else:
                write(report, place)
        given = {"mode": "gate", "report-dir": folder, "measure-result": measured}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        done = machine.action(ROOT, given)
        done.folder = folder
        return done

    return run


def verdict(done):
    return done.outputs["verdict"], done.step("Gate").code


def test_it_neither_measures_nor_comments(gate, hub):
    done = gate({"perfgate-a100-1": RED}, event=pull_request())
    assert done.ran == ["Prepare", "Report", "Gate"]
    assert verdict(done) == ("regressed", 1)
    assert hub.writes() == []
    assert "bench_fast" in (done.folder / "report.md").read_text()


@pytest.mark.parametrize("artifacts", [{}, {"perfgate-a100-1": GREEN}])
def test_case_22_a_skipped_measurement_is_not_green(artifacts, gate):
    done = gate(artifacts, measured="skipped")
    assert done.step("Gate").code == 5
    assert "was skipped: nothing was measured" in done.summary
    assert done.annotations[0].kind == "error"


@pytest.mark.parametrize("measured", ["failure", "cancelled"])
@pytest.mark.parametrize("artifacts", [{}, {"perfgate-a100-1": GREEN}])
def test_case_50_a_measurement_that_failed_is_an_error(measured, artifacts, gate):
    done = gate(artifacts, measured=measured)
    assert verdict(done) == ("error", 3)
    assert f"'{measured}'" in done.summary


def test_no_artifact_at_all_is_an_error(gate):
    done = gate({})
    assert verdict(done) == ("error", 3)
    assert "there is no report.json below" in done.annotations[0].message


def test_a_leg_without_a_report_is_missed(gate):
    done = gate({"perfgate-a100-1": GREEN, "perfgate-h100-1": None})
    assert verdict(done) == ("error", 3)
    assert "perfgate-h100-1 holds no report.json" in done.summary
    assert "2 unchanged" in done.summary


def test_legs_are_judged_together(gate):
    other = of(Outcome.REGRESSED, environment=environment("h2"))
    done = gate({"perfgate-a100-1": GREEN, "perfgate-h100-1": other})
    assert verdict(done) == ("regressed", 1)
    assert done.outputs["regressions"] == "1"


def test_a_failed_attempt_is_made_good_by_a_later_one(gate):
    done = gate({"perfgate-a100-1": "{", "perfgate-a100-2": GREEN})
    assert verdict(done) == ("pass", 0)


def test_a_later_attempt_that_failed_is_not_made_good(gate):
    done = gate({"perfgate-a100-1": GREEN, "perfgate-a100-2": None})
    assert verdict(done) == ("error", 3)


NEWER = json.dumps(json.loads(REPORT.text(GREEN)) | {"schema_version": 999})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "report.json"),
        ("[]", "report.json"),
        (NEWER, "999"),
        ('{"schema_version": 1}', "report.json"),
    ],
    ids=["empty", "list", "newer", "bare"],
)
def test_a_report_that_cannot_be_read_is_red(text, told, gate):
    done = gate({"perfgate-a100-1": text})
    assert done.outcome == "failure"
    assert done.outputs["verdict"] == "error"
    assert told in done.summary
    assert "Traceback" not in done.log


def test_a_report_of_200_megabytes_is_not_read(gate, tmp_path):
    def grow(machine_folder):
        file = machine_folder / "perfgate-a100-1" / "report.json"
        with file.open("r+b") as opened:
            opened.truncate(200 * 1024 * 1024)  # without taking that room

    folder = tmp_path / "big"
    write(GREEN, folder / "perfgate-a100-1")
    grow(folder)
    done = gate({}, report_dir=folder)
    assert verdict(done) == ("error", 3)
    assert "209,715,200 bytes" in done.summary


def test_a_report_that_contradicts_itself_is_red(gate):
    forged = session(result(FAST, Outcome.REGRESSED), exit_code=0, summary="all fine")
    assert verdict(gate({"perfgate-a100-1": forged})) == ("regressed", 1)


def test_a_label_is_looked_up_here(gate, hub):
    hub.things["issues/7/labels"] = []
    gate({"perfgate-a100-1": RED}, event=pull_request())
    assert hub.asked() == ["GET issues/7/labels"]


def test_case_44_the_head_is_shown_and_not_the_merge(gate):
    event = pull_request()
    done = gate({"perfgate-a100-1": RED}, event=event)
    assert event.payload["pull_request"]["head"]["sha"] in done.summary
    assert event.sha not in done.summary


def test_case_34_a_summary_of_thousands_fits(gate):
    results = [
        result(f"benches/bench_a.py::bench[{i:05}]", Outcome.REGRESSED)
        for i in range(3000)
    ]
    done = gate({"perfgate-a100-1": session(*results)})
    assert 0 < len(done.summary.encode()) <= 1_000_000
    assert done.summary.rstrip().endswith("</sub>")
    assert "actions/runs/7001" in done.summary.splitlines()[-1]
    assert len(done.annotations) == 10
    assert "2,991 more" in done.annotations[-1].message
