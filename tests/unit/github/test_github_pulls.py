"""Which pull request a run belongs to: nothing is believed, the commit decides."""

import pytest

from pytest_perfgate.github.pulls import accept_reason, acceptance, find_pulls

HEAD, MOVED = "1" * 40, "9" * 40
LABEL = "perf-regression-accepted"


def pull(number, sha=HEAD, repository=200, **changes):
    head = {"sha": sha, "repo": {"id": repository} if repository else None}
    return {"number": number, "state": "open", "head": head, "body": "", **changes}


@pytest.fixture
def find(client, make_context):
    def call(payload="workflow_run_fork", hint="", **changes):
        return find_pulls(
            client, make_context("workflow_run", payload, **changes), hint=hint
        )

    return call


def test_that_of_the_event_needs_no_question(client, make_context, github):
    assert find_pulls(client, make_context()).numbers == (7,)
    assert find_pulls(client, make_context("push")).numbers == ()
    assert github.calls == []


def test_the_event_names_it_for_our_own_branches(find, github):
    github.things["pulls/7"] = pull(7, repository=100)
    assert find("workflow_run").numbers == (7,)
    assert github.asked() == ["GET pulls/7"]


def test_a_fork_is_found_by_owner_branch_and_commit(find, github):
    github.things["pulls"] = [pull(6, MOVED, repository=300), pull(7)]
    assert find().numbers == (7,)
    (call,) = github.calls
    assert call.query["head"] == "mallory:faster"
    assert call.query["state"] == "open"


def test_a_branch_of_the_same_name_in_another_repository_is_not_it(find, github):
    github.things["pulls"] = [pull(7, repository=300), pull(8, repository=None)]
    assert find() == find()
    assert find().numbers == ()


@pytest.mark.parametrize("answer", ["404", "422", "empty"])
def test_no_answer_by_commit_is_no_error(find, github, answer):
    github.things["pulls"] = []
    path = f"commits/{HEAD}/pulls"
    if answer == "422":
        github.refuse("GET", path, 422, {"message": f"No commit found for SHA: {HEAD}"})
    elif answer == "empty":
        github.things[path] = []
    found = find()
    assert (found.numbers, found.stale) == ((), ())
    assert github.asked() == ["GET pulls", f"GET {path}"]


def test_the_commit_is_the_third_way(find, github):
    github.things["pulls"] = []
    github.things[f"commits/{HEAD}/pulls"] = [pull(7), pull(3, state="closed")]
    assert find().numbers == (7,)


@pytest.mark.parametrize("hint", ["7; curl evil", "7\nX=1", "", "0", "٧", "-7"])
def test_a_hint_that_is_no_number_is_not_asked_for(find, github, hint):
    github.things["pulls"] = []
    assert find(hint=hint).numbers == ()
    assert not any("pulls/" in path.split("GET ")[1][:7] for path in github.asked())


def test_a_hint_is_checked_by_its_commit(find, github):
    github.things["pulls"] = []
    github.things["pulls/1"] = pull(1, MOVED, repository=100)
    github.things["pulls/7"] = pull(7)
    assert find(hint="1").numbers == ()
    assert find(hint="7").numbers == (7,)
    assert find(pr_number="7").numbers == (7,)
    assert find(hint="99").numbers == ()


def test_a_head_that_has_moved_is_stale(find, github):
    github.things["pulls"] = [pull(7, MOVED)]
    found = find()
    assert (found.numbers, found.stale) == ((), (7,))


def test_one_branch_into_two_bases_is_two_pull_requests(find, github):
    github.things["pulls"] = [pull(8), pull(7)]
    assert find().numbers == (7, 8)


# accepting --------------------------------------------------------------------


@pytest.fixture
def labelled(github):
    """Let somebody with a permission have set the label."""

    def call(permission="write", role="write", **changes):
        event = {
            "event": "labeled",
            "label": {"name": LABEL},
            "actor": {"login": "ada"},
        }
        event |= {"created_at": "2026-11-30T10:00:00Z"}
        older = {**event, "actor": {"login": "eve"}}
        github.things["issues/7/labels"] = [{"name": "docs"}, {"name": LABEL.upper()}]
        github.things["issues/7/events"] = [older, {"event": "closed"}, event]
        found = {"permission": permission, "role_name": role}
        github.things["collaborators/ada/permission"] = found
        body = "Faster.\r\nPerf-Accept: the new kernel is correct \r\n"
        github.things["pulls/7"] = {"number": 7, "body": body, **changes}

    return call


@pytest.mark.parametrize(
    ("permission", "role"),
    [("write", "write"), ("write", "maintain"), ("admin", "admin")],
)
def test_a_label_of_somebody_who_may_write_accepts(client, labelled, permission, role):
    labelled(permission, role)
    found = acceptance(client, 7, LABEL)
    assert (found.accepted, found.by, found.warning) == (True, "ada", "")
    assert found.at == "2026-11-30T10:00:00Z"
    assert found.reason == "the new kernel is correct"


@pytest.mark.parametrize(("permission", "role"), [("read", "triage"), ("none", "none")])
def test_a_label_of_somebody_else_does_not(client, labelled, permission, role):
    labelled(permission, role)
    found = acceptance(client, 7, LABEL)
    assert not found.accepted
    assert f"ada, who set it, has the permission {role!r}" in found.warning


def test_the_label_as_it_is_now_counts_not_that_of_the_event(
    client, make_context, github, labelled
):
    # the payload says labelled, the server does not
    assert make_context(payload="pull_request_labelled").pr_number == 7
    github.things["issues/7/labels"] = []
    assert not acceptance(client, 7, LABEL).accepted
    # and the other way round
    labelled()
    assert acceptance(client, 7, LABEL).accepted


def test_what_cannot_be_looked_up_is_absent_and_told(client, github):
    told = {"message": "Resource not accessible by integration"}
    github.refuse("GET", "labels", 403, told)
    found = acceptance(client, 7, LABEL)
    assert not found.accepted
    assert "counts as absent" in found.warning


def test_a_label_that_nobody_set(client, github, labelled):
    labelled()
    github.things["issues/7/events"] = []
    found = acceptance(client, 7, LABEL)
    assert not found.accepted
    assert "nobody is known" in found.warning


def test_without_a_label_nothing_is_asked(client, github):
    assert not acceptance(client, 7, "").accepted
    assert github.calls == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("Perf-Accept: because", "because"),
        ("x\n  Perf-Accept:   two words  \ny", "two words"),
        ("not Perf-Accept: here", ""),
        ("Perf-Accept:\nno", ""),
        ("", ""),
        ("Perf-Accept: " + "x" * 900, "x" * 500),
    ],
)
def test_the_reason(body, reason):
    assert accept_reason(body) == reason
