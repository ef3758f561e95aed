"""The whole action on each event: verdict, outputs, summary, annotations, exit."""

import shutil

import pytest

from pytest_perfgate.model import Outcome
from tests.action.checkout import git
from tests.action.events import (
    HEAD_SHA,
    dispatch,
    fork,
    merge_group,
    pull_request,
    push,
    schedule,
    target,
)
from tests.action.reports import FAST, GREEN, RED, Replay, of, session
from tests.action.runner import ROOT
from tests.unit.gate.reports import RUN, result

ISSUE = "issues/7/comments"
BOT = {"login": "github-actions[bot]", "type": "Bot"}


@pytest.fixture
def act(make_machine, tmp_path, hub):
    """Run the action in mode all; pytest leaves the report that the test gives."""

    def run(event, report=GREEN, *, code=None, says="", before=None, **inputs):
        replay = Replay(tmp_path / f"replay-{len(runs)}", report, code=code, says=says)
        runs.append(replay)
        machine = make_machine(event.changed(api=hub.url), environment=replay.given)
        machine.in_process = True
        if before:
            before(machine)
        given = {"python": replay.command, "pytest-args": "benches"}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        done = machine.action(ROOT, given)
        done.seen = replay.seen if (replay.folder / "seen.json").exists() else None
        done.machine = machine
        return done

    runs = []
    return run


def told(done, kind):
    """List the annotations of a kind, without what the bare workspace is due to."""
    return [
        one
        for one in done.annotations
        if one.kind == kind and "does not reach back" not in one.message
    ]


# -- what really measures


@pytest.fixture
def measured(make_machine, make_project, hub):
    """Run the action on a project; the device says how long things take."""

    def run(event, device=None, *, change=None, **inputs):
        project = make_project(device or {})
        if change:
            change(project)
        machine = make_machine(
            event.changed(api=hub.url),
            workspace=project.path,
            environment=project.given,
        )
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        return machine.action(ROOT, {"pytest-args": "benches"} | given)

    return run


def test_a_push_that_changes_nothing_is_green(measured, hub):
    done = measured(push())
    assert done.outcome == "success", done.log
    assert done.outputs["verdict"] == "pass"
    assert done.outputs["exit-code"] == "0"
    assert done.outputs["comment-state"] == "skipped"
    assert "2 benchmarks: 2 unchanged" in done.summary
    assert done.annotations == []
    assert hub.calls == []


def test_a_pull_request_that_slows_down_is_red_and_told_of(measured, hub):
    def slow_down(project):
        (project.path / "library.py").write_text("FACTOR = 1.3\n")
        git(project.path, "commit", "-q", "-a", "-m", "slow")

    pace = {"*bench_fast*": {"factor_from": "library:FACTOR"}}
    done = measured(pull_request(), pace, change=slow_down, pytest_args=FAST)
    assert done.outcome == "failure", done.log
    assert done.step("Gate").code == 1
    assert done.outputs["verdict"] == "regressed"
    assert done.outputs["regressions"] == "1"
    assert done.outputs["comment-state"] == "created"
    (comment,) = hub.comments
    assert "bench_fast" in comment["body"]
    assert "regressed: confirmed</" in comment["body"].replace("**", "</")
    (error,) = told(done, "error")
    assert error.file == "benches/bench_a.py"


def test_without_a_baseline_it_is_not_green(measured):
    def forget(project):
        for file in (project.path / "baselines").rglob("*.json"):
            file.unlink()

    done = measured(dispatch(), change=forget, pytest_args=FAST)
    assert done.outcome == "failure", done.log
    assert done.step("Gate").code == 10
    assert done.outputs["verdict"] == "no-baseline"
    assert done.outputs["missing"] == "1"


# -- each event


def test_a_pull_request_of_our_own(act, hub):
    done = act(pull_request(), RED)
    assert done.outcome == "failure"
    assert done.ran == ["Prepare", "Measure", "Report", "Comment", "Gate"]
    assert done.outputs["comment-state"] == "created"
    assert done.outputs["comment-url"].startswith("https://")
    assert "POST issues/7/comments" in hub.asked()


def test_a_green_pull_request_says_nothing_of_itself(act, hub):
    done = act(pull_request())
    assert done.outcome == "success", done.log
    assert done.outputs["comment-state"] == "skipped"
    assert hub.writes() == []


def test_a_comment_that_is_there_is_kept_up_to_date(act, hub):
    assert act(pull_request(), RED).outputs["comment-state"] == "created"
    again = act(pull_request().changed(attempt=2), GREEN)
    assert again.outputs["comment-state"] == "updated"
    (comment,) = hub.comments
    assert "unchanged" in comment["body"]
    assert "regressed" not in comment["body"].splitlines()[3]


def test_case_04_a_fork_gets_its_comment_from_elsewhere(act, hub):
    hub.refuse(
        "POST", ISSUE, 403, {"message": "Resource not accessible by integration"}
    )
    done = act(fork(), RED)
    assert done.outputs["comment-state"] == "pending"
    assert done.step("Gate").code == 1
    assert len(told(done, "notice")) == 1
    assert (done.machine.temporary / "perfgate" / "report.json").exists()


def test_case_50_dependabot_is_as_a_fork(act, hub):
    def become_dependabot(machine):
        machine.given["GITHUB_ACTOR"] = "dependabot[bot]"

    done = act(pull_request(), RED, before=become_dependabot)
    assert done.outputs["comment-state"] == "pending"
    assert done.step("Gate").code == 1
    assert hub.writes() == []


def test_case_05_a_token_that_reads_only_changes_no_verdict(act, hub):
    denied = {"message": "Resource not accessible by integration"}
    hub.refuse("POST", ISSUE, 403, denied)
    done = act(pull_request(), RED, fail_on="never")
    assert done.outcome == "success", done.log
    assert done.outputs["verdict"] == "regressed"
    assert done.outputs["comment-state"] == "pending"
    hub.refuse("POST", ISSUE, 403, denied)
    done = act(pull_request(), RED, fail_on="regressed")
    assert done.step("Gate").code == 1
    assert "regressed" in told(done, "error")[0].title


def test_a_fork_on_a_machine_of_ours_is_warned_of(act):
    done = act(fork().changed(self_hosted=True))
    (warning,) = told(done, "warning")
    assert "fork" in warning.message
    assert "self-hosted" in warning.message


def test_case_13_a_merge_queue_is_judged_and_not_commented_on(act, hub):
    done = act(merge_group(), RED)
    assert done.step("Gate").code == 1
    assert done.outputs["comment-state"] == "skipped"
    assert hub.calls == []  # nobody is asked for labels either
    assert act(merge_group(), GREEN).outcome == "success"


@pytest.mark.parametrize(
    "event", [push(), dispatch(), schedule()], ids=lambda e: e.name
)
def test_case_14_events_without_a_pull_request(event, act, hub):
    done = act(event, RED)
    assert done.outputs["verdict"] == "regressed"
    assert done.outputs["comment-state"] == "skipped"
    assert HEAD_SHA[:12] in done.summary
    assert hub.calls == []


@pytest.mark.parametrize("payload", ["", "[]", "{", '{"number": "7"}'])
def test_case_15_a_payload_that_says_nothing(payload, act, hub):
    event = pull_request().changed(payload=payload, ref="refs/heads/odd")
    done = act(event, GREEN)
    assert done.outcome == "success", done.log
    assert "Traceback" not in done.log
    assert not [call for call in hub.calls if "//" in call.path]
    assert len(told(done, "warning")) == (payload != '{"number": "7"}')


def test_case_15_a_payload_that_is_no_file(act):
    def point_elsewhere(machine):
        machine.given["GITHUB_EVENT_PATH"] = str(machine.workspace)

    done = act(push(), GREEN, before=point_elsewhere)
    assert done.outcome == "success", done.log
    assert "Traceback" not in done.log


def test_a_pull_request_by_number_on_push(act, hub):
    assert act(push(), RED, pr_number="7").outputs["comment-state"] == "created"


def test_a_target_event_of_a_fork_measures_nothing(act, hub):
    done = act(target(head="stranger/kernels"))
    assert done.outcome == "failure"
    assert done.ran == ["Prepare"]
    assert done.outputs["verdict"] == "error"
    assert done.seen is None
    assert hub.calls == []


# -- each outcome

FAILS = {
    Outcome.REGRESSED: ("regressed", 1),
    Outcome.ERROR: ("error", 1),
    Outcome.INVALID: ("invalid", 12),
    Outcome.INCOMPARABLE: ("incomparable", 11),
    Outcome.MISSING: ("missing", 14),
    Outcome.NO_BASELINE: ("no-baseline", 10),
    Outcome.INCONCLUSIVE: ("pass", 0),
    Outcome.IMPROVED: ("improved", 0),
}


@pytest.mark.parametrize("outcome", FAILS)
def test_each_outcome_has_its_verdict_and_code(outcome, act):
    verdict, code = FAILS[outcome]
    done = act(push(), of(outcome))
    assert done.outputs["verdict"] == verdict
    assert done.outputs["exit-code"] == str(code)
    assert done.step("Gate").code == code


def test_what_the_policy_makes_of_it_is_carried_by_the_report(act):
    policy = {"--perfgate-on-inconclusive": "fail"}
    done = act(push(), of(Outcome.INCONCLUSIVE, policy=policy))
    assert (done.outputs["verdict"], done.step("Gate").code) == ("inconclusive", 13)


def test_where_nothing_was_compared_nothing_has_passed(act):
    policy = {"--perfgate-on-missing": "warn"}
    new = session(result(FAST, Outcome.NO_BASELINE, runs=(RUN,)), policy=policy)
    done = act(push(), new)
    assert (done.outputs["verdict"], done.step("Gate").code) == ("no-baseline", 0)
    assert [one.kind for one in done.annotations] == ["warning"]


@pytest.mark.parametrize(
    ("fail_on", "code"), [("policy", 12), ("regressed", 0), ("never", 0)]
)
def test_what_fails_can_be_chosen(fail_on, code, act):
    done = act(push(), of(Outcome.INVALID), fail_on=fail_on)
    assert done.step("Gate").code == code
    assert done.outputs["verdict"] == "invalid"


# -- when pytest ends otherwise


@pytest.mark.parametrize(
    ("code", "gate", "why"),
    [
        (4, 3, "exit code 4 before there was a report"),
        (1, 1, "exit code 1 before there was a report"),
        (137, 3, "exit code 137 before there was a report"),
        (0, 3, "is the plugin off?"),
        (5, 5, "found no benchmarks"),
    ],
)
def test_no_report_is_never_green(code, gate, why, act, hub):
    done = act(pull_request(), None, code=code)
    assert done.outcome == "failure"
    assert done.step("Gate").code == gate
    assert done.outputs["exit-code"] == str(code)
    assert done.outputs["verdict"] == ("invalid" if code == 5 else "error")
    (error,) = told(done, "error")
    assert why in error.message
    assert why in done.summary
    (comment,) = hub.comments
    assert why in comment["body"]


def test_what_failed_besides_the_benchmarks_is_red(act):
    done = act(push(), GREEN, code=2)
    assert done.step("Gate").code == 1
    assert done.outputs["verdict"] == "error"
    assert "something else did" in done.summary


def test_a_command_that_cannot_be_started_is_an_error(act, tmp_path):
    done = act(push(), python="no-such-python")
    assert done.outcome == "failure"
    assert done.outputs["verdict"] == "error"


def test_case_12_a_crash_keeps_the_table_of_the_good_run(act, hub):
    act(pull_request(), RED)
    done = act(pull_request().changed(attempt=2), None, code=3)
    assert done.outputs["comment-state"] == "updated"
    (comment,) = hub.comments
    assert "bench_fast" in comment["body"]
    assert "exit code 3" in comment["body"]


# -- what pytest gets


def test_case_37_arguments_are_no_shells(act, tmp_path):
    done = act(push(), pytest_args="\"$(touch pwned)\" '`id`' ; x --k='a b'")
    assert done.seen["arguments"][2:6] == ["$(touch pwned)", "`id`", ";", "x"]
    assert "--k=a b" in done.seen["arguments"]
    assert list(tmp_path.rglob("pwned")) == []


def test_pytest_gets_no_token_and_none_of_the_runners_files(act):
    secrets = {
        "GH_TOKEN": "gh-token",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "id-token",
        "ACTIONS_RUNTIME_TOKEN": "runtime-token",
        "HF_TOKEN": "what the benchmarks need",
    }
    done = act(push(), before=lambda machine: machine.given.update(secrets))
    seen = done.seen["environment"]
    assert seen["HF_TOKEN"] == "what the benchmarks need"  # noqa: S105 (of nobody)
    assert seen["GITHUB_SHA"] == HEAD_SHA
    hidden = {"GITHUB_TOKEN", "GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH"}
    hidden |= {"GITHUB_STATE", "GITHUB_STEP_SUMMARY", *secrets} - {"HF_TOKEN"}
    assert not hidden & set(seen)
    assert not [name for name in seen if name.startswith("PERFGATE_")]


def test_what_pytest_prints_commands_nothing(act):
    says = (
        "::error::forged\n##[error]old\n::set-output name=verdict::pass\n"
        "::stop-commands::x\n::x::\n::add-mask::a\nno newline at the end ::"
    )
    done = act(push(), says=says)
    assert done.outcome == "success", done.log
    assert done.annotations == []
    word = next(iter(done.step("Measure").commands))
    assert done.step("Measure").commands == ["stop-commands"], word


def history(machine, *, shallow):
    """Make the workspace a checkout of a branch, with or without its base."""
    for line in (
        "init -q -b topic",
        "commit -q --allow-empty -m first",
        *([] if shallow else ["update-ref refs/remotes/origin/main HEAD"]),
        "commit -q --allow-empty -m second",
    ):
        git(machine.workspace, *line.split())


def test_a_pull_request_is_confirmed_beside_its_base(act):
    done = act(pull_request(), before=lambda m: history(m, shallow=False))
    arguments = done.seen["arguments"]
    assert arguments[-2:] == ["--perfgate-confirm", "origin/main"]
    assert done.annotations == []


def test_a_checkout_without_its_base_is_told_how_to_get_it(act):
    done = act(pull_request(), before=lambda m: history(m, shallow=True))
    assert "--perfgate-confirm" not in done.seen["arguments"]
    warned = [one.message for one in done.annotations if one.kind == "warning"]
    assert "fetch-depth: 0" in warned[0]
    assert done.outcome == "success"


@pytest.mark.parametrize("own", ["--perfgate-against v1", "--perfgate-confirm=v1"])
def test_who_names_a_base_gets_that_one(own, act):
    done = act(
        pull_request(),
        before=lambda m: history(m, shallow=False),
        pytest_args=f"benches {own}",
    )
    assert "origin/main" not in done.seen["arguments"]


@pytest.mark.parametrize("event", [push(), merge_group()], ids=lambda e: e.name)
def test_only_a_pull_request_has_a_base(event, act):
    done = act(event, before=lambda m: history(m, shallow=False))
    assert "--perfgate-confirm" not in done.seen["arguments"]


# -- labels


def label(hub, *, permission="write", labels=("perf-regression-accepted",)):
    hub.things["issues/7/labels"] = [{"name": name} for name in labels]
    hub.things["issues/7/events"] = [
        {
            "event": "labeled",
            "label": {"name": "perf-regression-accepted"},
            "actor": {"login": "ada"},
            "created_at": "2026-11-02T09:30:00Z",
        }
    ]
    hub.things["collaborators/ada/permission"] = {"permission": permission}
    hub.things["pulls/7"] = {"number": 7, "body": "Perf-Accept: worth it"}


def test_case_18_the_label_counts_as_it_is_now(act, hub):
    label(hub)
    done = act(pull_request(labels=()), RED)
    assert done.outcome == "success", done.log
    assert done.outputs["verdict"] == "accepted"
    assert done.outputs["regressions"] == "1"
    warned = [one.message for one in done.annotations if one.kind == "warning"]
    assert any("accepted by ada" in one and "worth it" in one for one in warned)
    hub.things["issues/7/labels"] = []
    done = act(pull_request(labels=("perf-regression-accepted",)), RED)
    assert (done.outputs["verdict"], done.step("Gate").code) == ("regressed", 1)


def test_case_20_a_label_of_somebody_who_may_not_write_is_none(act, hub):
    label(hub, permission="triage")
    done = act(pull_request(), RED)
    assert done.step("Gate").code == 1
    assert any("'triage'" in one.message for one in done.annotations)


def test_a_label_accepts_regressions_and_nothing_else(act, hub):
    label(hub)
    both = session(result(FAST, Outcome.REGRESSED), result("b", Outcome.ERROR))
    done = act(pull_request(), both)
    assert (done.outputs["verdict"], done.step("Gate").code) == ("error", 1)
    done = act(pull_request(), RED, code=1, accept_label="other")
    assert done.step("Gate").code == 1


def test_a_github_that_does_not_answer_accepts_nothing(act, hub):
    done = act(pull_request().changed(), RED, accept_label="perf-regression-accepted")
    assert done.step("Gate").code == 1


# -- what is written


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("action_report.tell_everywhere", "told everywhere"),
        ("action_comment.post", "comment"),
    ],
)
def test_an_error_of_ours_changes_no_verdict(name, lost, act, monkeypatch):
    def fail(*_):
        raise KeyError("x\n::error::y")

    monkeypatch.setattr(f"pytest_perfgate.cli.{name}", fail)
    done = act(pull_request(), GREEN)
    assert done.outcome == "success", done.log
    assert done.outputs["verdict"] == "pass"
    (warning,) = told(done, "warning")
    assert lost in warning.message
    assert "KeyError" in warning.message


def test_case_33_outputs_come_back_as_they_were(act, hub):
    done = act(push(), of(Outcome.REGRESSED, name="b.py::b[<<EOF\nx=1\nEOF]"))
    assert done.outputs["verdict"] == "regressed"
    assert set(done.step("Report").outputs) == {
        *("verdict", "code", "gate-code", "sentence"),
        *("regressions", "improvements", "missing"),
    }


def test_baselines_that_a_pull_request_edits_are_told(act, hub, make_project):
    project = make_project({})
    for file in (project.path / "baselines").rglob("*.json"):
        file.unlink()
    git(project.path, "commit", "-q", "-a", "-m", "be judged by nothing")

    def check_out(machine):
        shutil.copytree(project.path, machine.workspace, dirs_exist_ok=True)

    done = act(pull_request(), GREEN, before=check_out)
    assert done.outputs["comment-state"] == "created"  # green, and not silent
    for text in (done.summary, hub.comments[0]["body"]):
        assert "removed" in text
        assert "fake" in text


def test_summary_and_annotations_can_be_left_out(act):
    done = act(push(), RED, summary="false", annotations="false")
    assert done.summary == ""
    assert done.annotations == []


def test_files_in_annotations_stand_below_the_working_directory(act):
    def make(machine):
        (machine.workspace / "packages" / "model").mkdir(parents=True)

    done = act(push(), RED, before=make, working_directory="packages/model")
    assert done.annotations[0].file == "packages/model/benches/bench_a.py"
