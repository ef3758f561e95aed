"""`perfgate comment`: from a report and an event to one comment, or to a reason."""

import io
import subprocess
import zipfile
from dataclasses import replace

import pytest
from werkzeug import Response

from pytest_perfgate.cli import main
from pytest_perfgate.cli.pull_request import Posting, post_comment
from pytest_perfgate.github.sticky import State
from pytest_perfgate.measured import METRICS, Plan
from pytest_perfgate.model import (
    Baseline,
    BenchmarkResult,
    Comparison,
    Environment,
    Judgement,
    Outcome,
    Reason,
    Report,
    RunStatistic,
    RunSummary,
    Session,
    Verdict,
)
from pytest_perfgate.store import BaselineStore, RunFolder

HEAD = "1" * 40
SLOW = "benches/bench_gemm.py::bench_bf16[4096]"
LABEL = "perf-regression-accepted"
TOKEN = "ghs_0123456789abcdefghijklmnopqrstuvwxyz"  # noqa: S105 (nobody's)


def judged(outcome, reason, ratio):
    comparison = Comparison(
        baseline=1e-3,
        candidate=ratio * 1e-3,
        ratio=ratio,
        low=ratio - 0.03,
        high=ratio + 0.03,
        p_identity=0.001,
        baseline_runs=10,
        candidate_runs=12,
        spread=0.01,
        detectable=0.06,
    )
    return Judgement(
        metric=METRICS["latency"],
        statistic="median",
        verdict=Verdict(outcome=outcome, reason=reason),
        budget=0.05,
        comparison=comparison,
    )


def made(outcome=Outcome.REGRESSED, reason=Reason.CONFIRMED, ratio=1.42, code=1):
    judgement = judged(outcome, reason, ratio)
    run = RunSummary(
        iterations=9,
        statistics={"latency": {"median": RunStatistic(value=ratio * 1e-3)}},
    )
    result = BenchmarkResult(
        benchmark=SLOW,
        nodeid=SLOW,
        verdict=judgement.verdict,
        judgements=(judgement,),
        runs=(run,) * 3,
    )
    return Report(
        created="2026-11-30T10:00:00Z",
        commit="abc",
        environment=None,
        results=(result,),
        exit_code=code,
        summary=f"1 benchmark: 1 {outcome}",
    )


GOOD = made(Outcome.UNCHANGED, Reason.WITHIN_BUDGET, 1.0, 0)


def written(path, report):
    folder = RunFolder(path)
    folder.prepare()
    folder.write_report(report)
    folder.release()
    return folder.report


@pytest.fixture
def report_file(tmp_path):
    return written(tmp_path / "run", made())


@pytest.fixture
def comment(github, make_env, monkeypatch, capsys, tmp_path):
    """Run `perfgate comment` in a job of an event; returns code and output."""
    place = tmp_path / "checkout"
    place.mkdir()
    monkeypatch.chdir(place)

    def call(*arguments, event="pull_request", payload=None, **changes):
        given = {"GITHUB_API_URL": f"{github.url}/", "GITHUB_TOKEN": TOKEN}
        given["GITHUB_SERVER_URL"] = github.url.removesuffix("/api/v3")
        for key, value in make_env(event, payload, **(given | changes)).items():
            monkeypatch.setenv(key, value)
        code = main(["comment", *map(str, arguments)])
        out, err = capsys.readouterr()
        assert TOKEN not in out + err
        return code, out, err

    return call


def test_a_regression_is_told_on_its_pull_request(comment, github, report_file):
    code, out, err = comment(report_file)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "1 benchmark: 1 regressed"
    assert "comment: created https://github.test/c/1000" in lines
    body = github.comments[0]["body"]
    assert "benches/bench_gemm.py::bench_bf16&#91;4096&#93;" in body
    assert HEAD in body
    assert "5555555" not in body  # the merge commit
    assert "actions/runs/9002/attempts/2" in body
    assert all(call.path.startswith("issues/") for call in github.calls)


def test_all_calls_stay_on_the_server_of_the_job(comment, github, report_file):
    comment(report_file)
    assert github.calls
    host = github.url.split("/")[2]
    assert {call.headers["Host"] for call in github.calls} == {host}


def test_a_green_report_makes_no_comment(comment, github, tmp_path):
    code, out, _ = comment(written(tmp_path / "green", GOOD))
    assert (code, "comment: skipped" in out) == (0, True)
    assert github.comments == []
    comment(written(tmp_path / "green2", GOOD), "--policy=always")
    assert len(github.comments) == 1


def test_a_second_push_stays_red(comment, github, report_file):
    comment(report_file)
    _, out, _ = comment(report_file, GITHUB_RUN_ID="9003", GITHUB_RUN_NUMBER="44")
    assert "comment: updated" in out
    assert "✗ 1 benchmark: 1 regressed" in github.comments[0]["body"]
    assert len(github.comments) == 1


@pytest.mark.parametrize(
    ("event", "payload", "changes", "state"),
    [
        ("pull_request", "pull_request_fork", {}, "pending"),
        ("pull_request", None, {"GITHUB_ACTOR": "dependabot[bot]"}, "pending"),
        ("merge_group", None, {}, "skipped"),
        ("push", None, {}, "skipped"),
        ("schedule", None, {}, "skipped"),
        ("workflow_dispatch", None, {}, "skipped"),
        ("pull_request", "invalid", {}, "skipped"),
        ("workflow_run", "workflow_run_cancelled", {}, "skipped"),
    ],
)
def test_where_no_comment_may_be_made_nothing_is_asked(
    comment, github, report_file, event, payload, changes, state
):
    code, out, _ = comment(report_file, event=event, payload=payload, **changes)
    assert (code, f"comment: {state}" in out.splitlines()) == (0, True)
    assert github.calls == []
    notices = [line for line in out.splitlines() if line.startswith("::notice")]
    assert len(notices) == (state == "pending")


def test_a_forks_report_is_kept_for_the_job_that_may_write(comment, report_file):
    before = report_file.read_bytes()
    comment(report_file, payload="pull_request_fork")
    assert report_file.read_bytes() == before


def test_a_token_that_reads_only_is_one_notice(comment, github, report_file):
    told = {"message": "Resource not accessible by integration"}
    github.refuse("POST", "comments", 403, told)
    code, out, _ = comment(report_file)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "1 benchmark: 1 regressed"
    assert "comment: pending" in lines
    assert sum(line.startswith("::notice") for line in lines) == 1


def test_a_server_that_refuses_does_not_fail_the_job(comment, github, report_file):
    github.refuse("GET", "comments", 401, {"message": "Bad credentials"})
    code, out, _ = comment(report_file)
    assert code == 0
    assert "comment: failed" in out
    assert "::warning title=perfgate::" in out


def test_a_number_for_a_push(comment, github, report_file):
    code, out, _ = comment(report_file, "--pr=12", event="push")
    assert (code, "comment: created" in out) == (0, True)
    assert github.asked()[0].startswith("GET issues/12/")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--pr=7; curl evil"], "not the number of a pull request"),
        (["--comment-id=a--b"], "the comment's key"),
        (["--policy=sometimes"], "invalid choice"),
    ],
)
def test_wrong_input_is_4(comment, github, report_file, arguments, words):
    code, _, err = comment(report_file, *arguments, event="push")
    assert (code, words in err) == (4, True)
    assert github.calls == []


def test_a_report_that_is_none_is_4(comment, report_file, tmp_path):
    assert comment(tmp_path / "nowhere")[0] == 4
    report_file.write_text("{}")
    code, _, err = comment(report_file)
    assert (code, "schema_version" in err) == (4, True)


def test_without_a_report_it_says_who_can_do_without(comment):
    code, _, err = comment()
    assert (code, "workflow_run" in err) == (4, True)


def test_without_a_token_it_says_where_to_put_it(comment, report_file):
    code, _, err = comment(report_file, GITHUB_TOKEN="")
    assert (code, "GITHUB_TOKEN is empty" in err) == (4, True)


def test_a_dry_run_prints_and_asks_nobody(comment, github, report_file):
    code, out, _ = comment(report_file, "--dry-run", GITHUB_TOKEN="")
    assert (code, github.calls) == (0, [])
    assert "### ✗ 1 benchmark: 1 regressed" in out


def test_outside_of_actions(monkeypatch, capsys, github, report_file):
    for name in ("GITHUB_ACTIONS", "GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv("GITHUB_SERVER_URL", "http://localhost")
    monkeypatch.setenv("GITHUB_REPOSITORY", "acme/kernels")
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    github.refuse("POST", "comments", 403, {"message": "Nope\n::error::x"})
    assert main(["comment", str(report_file), "--pr", "7"]) == 0
    out = capsys.readouterr().out
    assert "comment: failed" in out
    assert "warning: the comment was not written" in out
    assert not any(line.lstrip().startswith("::") for line in out.splitlines())


def test_hostile_words_in_a_report_are_no_commands(comment, tmp_path):
    report = replace(made(), summary="bad\n::add-mask::e\n##[error]x")
    _, out, _ = comment(written(tmp_path / "bad", report), "--dry-run")
    for line in out.splitlines():
        assert not line.lstrip().startswith("::add-mask")
        assert "##[" not in line


# accepting --------------------------------------------------------------------


def labelled(github, permission):
    event = {"event": "labeled", "label": {"name": LABEL}, "actor": {"login": "ada"}}
    github.things["issues/7/labels"] = [{"name": LABEL}]
    github.things["issues/7/events"] = [event | {"created_at": "2026-11-30T09:00:00Z"}]
    github.things["collaborators/ada/permission"] = {"permission": permission}
    github.things["pulls/7"] = {"number": 7, "body": "Perf-Accept: ask @octocat #12"}


def test_an_accepted_regression_says_by_whom_and_why(comment, github, report_file):
    labelled(github, "write")
    code, _, _ = comment(report_file)
    assert code == 0
    body = github.comments[0]["body"]
    assert "### ✓ 1 benchmark: 1 regressed; accepted by ada" in body
    assert "#### Accepted regressions (1)" in body
    assert "&#64;&#8203;octocat" in body
    assert "@octocat" not in body


def test_a_label_that_does_not_count_is_told(comment, github, report_file):
    labelled(github, "read")
    _, out, _ = comment(report_file)
    body = github.comments[0]["body"]
    assert "#### Regressions (1)" in body
    assert "does not count" in body
    assert "does not count" in out


def test_without_a_label_none_is_looked_up_or_offered(comment, github, report_file):
    comment(report_file, "--accept-label=")
    assert not any("labels" in path for path in github.asked())
    assert "Perf-Accept" not in github.comments[0]["body"]
    assert "set the label" not in github.comments[0]["body"]


def test_what_is_offered_is_what_is_looked_up(comment, github, report_file):
    comment(report_file, "--accept-label=slow-is-fine")
    assert "<code>slow-is-fine</code>" in github.comments[0]["body"]


# from the run before ----------------------------------------------------------


def pull(number=7, sha=HEAD):
    head = {"sha": sha, "repo": {"id": 200}}
    return {"number": number, "state": "open", "head": head, "body": ""}


@pytest.fixture
def artifact(github, tmp_path):
    """Let the measured run have uploaded a report."""

    def call(report=None, leg="a100", attempt=1, data=None):
        listed = github.things.setdefault(
            "actions/runs/9001/artifacts", {"artifacts": []}
        )["artifacts"]
        number = len(listed) + 1
        listed.append({"id": number, "name": f"perfgate-{leg}-{attempt}"})
        if data is None:
            data = written(tmp_path / f"up{number}", report or made()).read_bytes()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as opened:
            opened.writestr("report.json", data)
        path = f"actions/artifacts/{number}/zip"
        github.things[path] = Response(buffer.getvalue())

    github.things["pulls"] = [pull()]
    return call


@pytest.fixture
def from_run(comment):
    def call(*arguments, payload="workflow_run_fork", **changes):
        return comment(*arguments, event="workflow_run", payload=payload, **changes)

    return call


def test_a_forks_report_is_rendered_anew_and_posted(from_run, artifact, github):
    artifact()
    code, out, _ = from_run()
    assert (code, "comment a100: created" in out) == (0, True)
    body = github.comments[0]["body"]
    assert "1 benchmark: 1 regressed" in body
    assert "actions/runs/9001/attempts/1" in body
    assert "no checkout" in body


def test_a_report_that_calls_itself_green_is_judged_by_its_results(
    from_run, artifact, github
):
    artifact(replace(made(code=0), summary="all is well"))
    from_run()
    body = github.comments[0]["body"]
    assert "### ✗ 1 benchmark: 1 regressed" in body
    assert "all is well" not in body
    assert "its results do not bear that out" in body


def test_a_report_that_contradicts_itself_is_none(from_run, artifact, github):
    report = made()
    artifact(replace(report, results=(replace(report.results[0], runs=()),)))
    from_run()
    body = github.comments[0]["body"]
    assert "nothing was measured" in body
    assert "contradicts itself" in body


def test_a_failed_run_is_commented_on_too(from_run, artifact, github):
    artifact()  # the event's conclusion is `failure`
    from_run()
    assert len(github.comments) == 1


def test_legs_get_a_comment_each(from_run, artifact, github):
    artifact(leg="a100")
    artifact(leg="h100", report=made(Outcome.ERROR, Reason.BODY_RAISED))
    from_run()
    first = [one["body"].split("\n")[0] for one in github.comments]
    assert first == [
        "<!-- pytest-perfgate:comment id=a100 -->",
        "<!-- pytest-perfgate:comment id=h100 -->",
    ]
    assert "h100: 1 benchmark: 1 failed with an error" in github.comments[1]["body"]
    from_run("--comment-id=nightly")
    assert "id=nightly/a100 -->" in github.comments[2]["body"]


def test_a_leg_whose_name_is_no_key(from_run, artifact, github):
    artifact(leg="big gpu -- x>")
    artifact(leg="b")
    code, _, err = from_run()
    assert (code, err) == (0, "")
    assert "id=big-gpu-x- -->" in github.comments[1]["body"]


def test_a_run_without_a_report_says_so(from_run, artifact, github):
    code, _, _ = from_run()
    github.things["actions/runs/9001/artifacts"] = {"artifacts": []}
    code, out, _ = from_run()
    assert (code, "comment: created" in out) == (0, True)
    body = github.comments[0]["body"]
    assert "nothing was measured" in body
    assert "ended as failure" in body


def test_artifacts_that_cannot_be_listed_fail_softly(from_run, artifact, github):
    code, out, _ = from_run()
    assert (code, "comment: failed" in out) == (0, True)
    assert github.comments == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[]", "no report that can be used"),
        (
            b'{"schema_version": 999, "producer": {"name": "x", "version": "9.0"}}',
            "written by a newer pytest-perfgate",
        ),
        (b"\xff\xfe", "no report that can be used"),
    ],
)
def test_a_report_that_cannot_be_used_is_told(from_run, artifact, github, data, words):
    artifact(data=data)
    code, _, _ = from_run()
    assert code == 0
    assert words in github.comments[0]["body"]


def test_a_crash_keeps_the_numbers_of_the_run_before(
    from_run, artifact, github, make_env
):
    artifact()
    from_run()
    github.things["actions/runs/9001/artifacts"] = {"artifacts": []}
    from_run()
    (comment,) = github.comments
    assert "nothing was measured" in comment["body"]
    assert f"<code>{HEAD}</code>" in comment["body"]
    assert "#### Regressions (1)" in comment["body"]


def test_the_number_in_a_foreign_artifact_touches_nobody(from_run, artifact, github):
    artifact()
    github.things["pulls"] = []
    github.things["pulls/1"] = pull(1, "9" * 40)
    code, out, _ = from_run("--pr=1")
    assert (code, "comment a100: skipped" in out) == (0, True)
    assert "no open pull request is at 111111111111" in out
    assert github.comments == []


def test_a_pull_request_that_moved_on_is_left_alone(from_run, artifact, github):
    artifact()
    github.things["pulls"] = [pull(sha="9" * 40)]
    _, out, _ = from_run()
    assert "comment a100: stale" in out
    assert "#7 is at another commit by now" in out
    assert github.comments == []


def test_one_branch_into_two_bases_gets_two_comments(from_run, artifact, github):
    artifact()
    github.things["pulls"] = [pull(7), pull(8)]
    github.things["issues/8/labels"] = []
    from_run()
    posted = [call.path for call in github.writes()]
    assert posted == ["issues/7/comments", "issues/8/comments"]


def test_a_search_that_fails_is_soft(client, make_context, github):
    context = make_context("workflow_run", "workflow_run_fork")
    for status, state in ((401, State.FAILED), (403, State.PENDING)):
        told = {"message": "Resource not accessible by integration"}
        github.refuse("GET", "pulls", status, told)
        assert post_comment(made(), context, client, Posting()).state is state


def test_a_report_of_200_megabytes_is_refused_and_told(from_run, artifact, github):
    artifact()
    listed = github.things["actions/runs/9001/artifacts"]["artifacts"]
    listed[0]["size_in_bytes"] = 200_000_000
    code, _, _ = from_run()
    assert code == 0
    assert "200,000,000 bytes" in github.comments[0]["body"]
    assert not any(path.endswith("/zip") for path in github.asked())


# edited baselines -------------------------------------------------------------


def store_in(path, value, *names):
    run = RunSummary(
        iterations=9,
        statistics={
            "latency": {
                "median": RunStatistic(value=value),
                "p99": RunStatistic(value=2 * value),
                "floor": RunStatistic(value=value / 2),
            }
        },
    )
    session = Session(time="t", commit=None, environment_digest="x", runs=(run, run))
    baseline = Baseline(
        plan=Plan(iterations=9, warmup=1),
        metrics={"latency": METRICS["latency"]},
        sessions=(session,),
        anchor=session,
    )
    BaselineStore(path / "baselines").merge(
        "h200",
        "benches/bench_a.py",
        dict.fromkeys(names, baseline),
        environment=Environment(key="h200", hardware={}),
    )


@pytest.fixture
def checkout(tmp_path, comment):
    path = tmp_path / "checkout"

    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(
            ["git", *identity, *arguments], cwd=path, check=True, capture_output=True
        )

    def commit():
        git("add", "-A")
        git("commit", "-q", "-m", "x", "--allow-empty")

    git("init", "-q", "-b", "work")
    a = "benches/bench_a.py::"
    store_in(path, 1e-3, f"{a}kept", f"{a}slower|@x", f"{a}gone")
    commit()
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    BaselineStore(path / "baselines").prune("h200", "benches/bench_a.py", [f"{a}gone"])
    store_in(path, 1.5e-3, f"{a}slower|@x", f"{a}added")
    return path, commit, git


def test_edited_baselines_are_listed_old_and_new(comment, checkout, github, tmp_path):
    _, commit, _ = checkout
    commit()
    comment(written(tmp_path / "green", GOOD))
    body = github.comments[0]["body"]  # an edit is something to tell
    assert "#### Baselines edited in this pull request" in body
    rows = [line for line in body.splitlines() if "<code>h200</code>" in line]
    assert len(rows) == 6
    told = "\n".join(rows)
    assert "slower&#124;&#64;" in told
    assert "| latency·median | 1.00 ms | 1.50 ms | +50.0 % |" in told
    assert "| latency·p99 | 2.00 ms | 3.00 ms | +50.0 % |" in told
    assert "| latency·median | – | 1.50 ms | added |" in told
    assert "| latency·p99 | 2.00 ms | – | removed |" in told
    assert "kept" not in told


def test_a_baseline_that_cannot_be_read_is_listed(comment, checkout, github, tmp_path):
    path, commit, _ = checkout
    next((path / "baselines").rglob("*.json")).write_text("{")
    commit()
    comment(written(tmp_path / "green", GOOD))
    assert "cannot be read" in github.comments[0]["body"]


def test_nothing_edited_is_no_list(comment, checkout, github, report_file):
    _, _, git = checkout
    git("checkout", "-q", ".")
    comment(report_file)
    assert "edited" not in github.comments[0]["body"]


def test_without_the_history_it_says_so(comment, github, report_file):
    comment(report_file)  # no git in this folder
    assert (
        "git does not know the merge base with origin/main"
        in github.comments[0]["body"]
    )


def test_a_project_below_the_top_of_its_repository(
    comment, checkout, github, tmp_path, monkeypatch
):
    path, commit, _ = checkout
    commit()
    inside = path / "packages" / "core"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    comment(written(tmp_path / "green", GOOD), "--baselines=../../baselines")
    assert "#### Baselines edited" in github.comments[0]["body"]
    comment(written(tmp_path / "red", made()), "--baselines=../../../elsewhere")
    assert "kept outside of it" in github.comments[0]["body"]


def test_the_folder_of_the_report_is_where_one_looks(
    comment, checkout, github, tmp_path
):
    path, commit, _ = checkout
    (path / "baselines").rename(path / "kept [x]")
    commit()
    report = replace(GOOD, policy={"--perfgate-baselines": "kept [x]"})
    comment(written(tmp_path / "green", report))
    body = github.comments[0]["body"]
    assert body.count("| added |") == 6


def test_without_a_base_branch_it_says_so(comment, github, report_file):
    comment(report_file, "--pr=7", event="push")
    assert "does not name the branch" in github.comments[0]["body"]


def test_without_git_it_says_so(comment, github, report_file):
    comment(report_file, PATH="/nowhere")
    assert "git does not know" in github.comments[0]["body"]


def test_a_never_is_never(comment, github, report_file, from_run):
    for call in (
        lambda: comment(report_file, "--policy=never"),
        lambda: from_run("--policy=never"),
    ):
        code, out, _ = call()
        assert (code, "comment: skipped" in out) == (0, True)
    assert github.calls == []


def test_a_dry_run_of_a_run_without_a_report(from_run, github, artifact):
    github.things["actions/runs/9001/artifacts"] = {"artifacts": []}
    code, out, _ = from_run("--dry-run")
    assert (code, "nothing was measured" in out) == (0, True)
    assert github.writes() == []
