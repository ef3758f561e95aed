"""Every event says where it comes from, what it shows and whether it may comment."""

import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.github.context import read_event, resolve
from pytest_perfgate.github.servers import addresses

HEAD, MERGE, BRANCH_TIP, QUEUED = "1" * 40, "5" * 40, "4" * 40, "3" * 40

TABLE = [
    # event, payload, number, sha shown, comment, why not, measure
    ("pull_request", "pull_request", 7, HEAD, True, "", True),
    ("pull_request", "pull_request_draft", 7, HEAD, True, "", True),
    ("pull_request", "pull_request_labelled", 7, HEAD, True, "", True),
    ("pull_request", "pull_request_closed", 7, HEAD, True, "", True),
    ("pull_request", "pull_request_fork", 7, HEAD, False, "pending", True),
    ("pull_request", "pull_request_head_deleted", 7, HEAD, False, "pending", True),
    ("pull_request_target", "pull_request_target", 7, HEAD, True, "", True),
    ("pull_request_target", "pull_request_target_fork", 7, HEAD, True, "", False),
    ("workflow_run", "workflow_run", None, HEAD, True, "", False),
    ("workflow_run", "workflow_run_fork", None, HEAD, True, "", False),
    ("workflow_run", "workflow_run_push", None, HEAD, False, "skipped", False),
    ("workflow_run", "workflow_run_cancelled", None, HEAD, False, "skipped", False),
    ("merge_group", "merge_group", None, QUEUED, False, "skipped", True),
    ("push", "push", None, BRANCH_TIP, False, "skipped", True),
    ("push", "push_new_branch", None, BRANCH_TIP, False, "skipped", True),
    ("push", "push_deleted", None, MERGE, False, "skipped", True),
    ("workflow_dispatch", "workflow_dispatch", None, MERGE, False, "skipped", True),
    ("schedule", "schedule", None, MERGE, False, "skipped", True),
    ("release", "push", None, MERGE, False, "skipped", True),
]


@pytest.mark.parametrize(
    ("event", "payload", "number", "sha", "comment", "why_not", "measure"), TABLE
)
def test_the_table_of_events(
    make_context, event, payload, number, sha, comment, why_not, measure
):
    found = make_context(event, payload)
    assert (found.pr_number, found.sha) == (number, sha)
    assert (found.may_comment, found.why_not) == (comment, why_not)
    assert found.may_measure is measure
    assert bool(found.why_not_measure) is not measure
    assert found.repository == "acme/kernels"
    assert found.warnings == ()
    assert (
        found.run_url == "https://github.com/acme/kernels/actions/runs/9002/attempts/2"
    )


def test_a_pull_request_in_full(make_context):
    found = make_context(payload="pull_request_fork")
    assert (found.base_ref, found.head_ref) == ("main", "faster")
    assert found.head_repository == "mallory/kernels"
    assert (found.is_fork, found.is_draft) == (True, False)
    assert (found.run_id, found.run_number, found.run_attempt) == (9002, 43, 2)
    assert found.pr_url == "https://github.com/acme/kernels/pull/7"
    assert make_context(payload="pull_request_draft").is_draft


def test_dependabot_is_as_a_fork(make_context):
    found = make_context(GITHUB_ACTOR="dependabot[bot]")
    assert (found.may_comment, found.why_not) == (False, "pending")


def test_a_merge_group_links_to_its_pull_request_and_never_writes(make_context):
    found = make_context("merge_group")
    assert (found.queued_pr, found.pr_number, found.base_ref) == (7, None, "main")
    assert found.pr_url.endswith("/pull/7")


def test_the_measured_run_of_a_workflow_run(make_context):
    upstream = make_context("workflow_run", "workflow_run_fork").upstream
    assert (upstream.run_id, upstream.run_number, upstream.run_attempt) == (9001, 42, 1)
    assert (upstream.head_owner, upstream.head_branch) == ("mallory", "faster")
    assert (upstream.head_repository_id, upstream.pulls) == (200, ())
    own = make_context("workflow_run").upstream
    assert [number for number, _, _ in own.pulls] == [7]


@pytest.mark.parametrize("repository", ["mallory/kernels", None])
def test_a_run_of_another_repository_is_not_ours(make_env, repository):
    env = make_env("workflow_run")
    event, _ = read_event(env)
    event["workflow_run"]["repository"] = {"full_name": repository}
    assert not resolve(env, event).may_comment


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ("empty", "is not JSON"),
        ("invalid", "is not JSON"),
        ("list", "holds no JSON object"),
        ("nothing-there", "cannot be read: No such file"),
        (".", "cannot be read"),
    ],
)
def test_a_payload_that_cannot_be_read_is_one_warning(make_context, payload, words):
    found = make_context(payload=payload, GITHUB_REF="refs/pull/7/merge")
    assert (found.pr_number, found.sha, found.may_comment) == (7, MERGE, True)
    (warning,) = found.warnings
    assert words in warning


def test_a_payload_that_is_a_folder(make_context, tmp_path):
    found = make_context(GITHUB_EVENT_PATH=str(tmp_path))
    assert "Is a directory" in found.warnings[0]


@pytest.mark.parametrize(
    "ref", ["", "refs/heads/main", "refs/pull//merge", "refs/pull/x"]
)
def test_without_a_number_nothing_is_commented_on(make_context, ref):
    found = make_context(GITHUB_EVENT_PATH=None, GITHUB_REF=ref)
    assert (found.pr_number, found.may_comment) == (None, False)
    assert "GITHUB_EVENT_PATH is not set" in found.warnings[0]


@pytest.mark.parametrize("event", ["pull_request_target", "workflow_run"])
def test_without_a_payload_nothing_with_a_write_token_measures(make_context, event):
    assert not make_context(event, "empty").may_measure


def test_outside_of_actions():
    found = resolve({}, None)
    assert (found.in_actions, found.may_comment, found.sha) == (False, False, "")
    assert (found.may_measure, found.warnings) == (True, ())


@pytest.mark.parametrize(
    ("event", "given", "number"),
    [("push", "12", 12), ("workflow_dispatch", "12", 12), ("pull_request", "7", 7)],
)
def test_a_number_by_hand(make_context, event, given, number):
    found = make_context(event, pr_number=given)
    assert (found.pr_number, found.may_comment, found.warnings) == (number, True, ())


def test_a_number_by_hand_does_not_lead_a_comment_astray(make_context):
    found = make_context(payload="pull_request_fork", pr_number="12")
    assert (found.pr_number, found.may_comment) == (7, False)
    assert "12, is not used" in found.warnings[0]
    queued = make_context("merge_group", pr_number="12")
    assert (queued.pr_number, queued.may_comment) == (None, False)
    run = make_context("workflow_run", pr_number="12")
    assert (run.pr_number, run.pr_hint) == (None, 12)


@pytest.mark.parametrize(
    "text", ["7; curl evil", "7\nX=1", "-7", "0", "٧", "1e3", " 7"]
)
def test_a_number_is_digits_and_nothing_else(make_context, text):
    with pytest.raises(UsageError, match="not the number of a pull request"):
        make_context("push", pr_number=text)


@pytest.mark.parametrize(
    ("server", "api", "found"),
    [
        (None, None, "https://api.github.com"),
        ("https://github.com/", "https://api.github.com/", "https://api.github.com"),
        ("https://ghes.acme.io", None, "https://ghes.acme.io/api/v3"),
        (
            "https://ghes.acme.io",
            "https://ghes.acme.io/api/v3/",
            "https://ghes.acme.io/api/v3",
        ),
        ("https://acme.ghe.com", None, "https://api.acme.ghe.com"),
        (
            "http://127.0.0.1:8",
            "http://127.0.0.1:8/api/v3",
            "http://127.0.0.1:8/api/v3",
        ),
    ],
)
def test_the_api_of_a_server(server, api, found):
    given = {"GITHUB_SERVER_URL": server, "GITHUB_API_URL": api}
    env = {key: value for key, value in given.items() if value}
    assert addresses(env)[1] == found


def test_a_token_of_another_server_never_goes_to_the_public_api():
    env = {
        "GITHUB_SERVER_URL": "https://ghes.acme.io",
        "GITHUB_API_URL": "https://api.github.com",
    }
    with pytest.raises(UsageError, match=r"https://ghes\.acme\.io/api/v3"):
        addresses(env)


def test_code_of_a_fork_on_a_runner_of_ones_own_is_warned_of(make_context):
    own = make_context(payload="pull_request_fork", RUNNER_ENVIRONMENT="self-hosted")
    assert "self-hosted" in own.warnings[0]
    hosted = make_context(
        payload="pull_request_fork", RUNNER_ENVIRONMENT="github-hosted"
    )
    assert hosted.warnings == ()


@pytest.mark.parametrize("name", ["acme", "../x/y", "a b/c", "acme/kernels/x"])
def test_a_repository_that_is_none(make_context, name):
    found = make_context("schedule", GITHUB_REPOSITORY=name)
    assert (found.repository, found.run_url) == ("", "")
    assert repr(name) in found.warnings[0]


@pytest.mark.parametrize(
    "event",
    [
        {"pull_request": None, "number": "7"},
        {"pull_request": {"number": True, "head": []}},
        {"pull_request": [], "number": -1},
        {"pull_request": {"head": {"sha": "not a sha\n::error::"}}},
    ],
)
def test_foreign_shapes_are_not_believed(make_env, event):
    found = resolve(make_env(), event)
    assert (found.pr_number, found.may_comment, found.why_not) == (
        None,
        False,
        "skipped",
    )
    assert found.sha == MERGE


def test_a_malformed_workflow_run_comments_nowhere(make_env):
    env = make_env("workflow_run")
    for run in (None, [], {"event": "pull_request"}, {"pull_requests": {"number": 1}}):
        found = resolve(env, {"workflow_run": run})
        assert not found.may_comment
