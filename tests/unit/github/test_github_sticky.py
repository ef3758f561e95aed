"""One comment: found by marker and author, kept in order, never doubled."""

import json
import re
from dataclasses import dataclass

import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.github.sticky import (
    Message,
    Meta,
    Policy,
    State,
    check_comment_id,
    marker,
    publish,
)

HUMAN = {"login": "mallory", "type": "User"}
NEW, OLD = "1" * 40, "2" * 40


@dataclass(frozen=True, kw_only=True)
class Draft:
    status: str = "### ✗ 1 regressed"
    rest: str = "the table"
    rung: int = 0
    last: bool = False


def ladder(*sizes):
    """Make a renderer whose rungs have these many characters."""

    def draft(rung):
        return Draft(rest="x" * sizes[rung], rung=rung, last=rung == len(sizes) - 1)

    return draft


@pytest.fixture
def make_message():
    def make(draft=lambda _: Draft(), **changes):
        meta = {"sha": NEW, "run_id": 9001, "run_number": 42, "attempt": 1}
        meta |= {"verdict": "regressed"}
        meta |= {name: changes.pop(name) for name in list(changes) if name in meta}
        fields = {"comment_id": "default", "loud": True, "measured": True}
        fields |= {"kept": lambda sha: f"kept numbers of {sha}"}
        return Message(draft=draft, meta=Meta(**meta), **(fields | changes))

    return make


@pytest.fixture
def post(client):
    return lambda message, policy=Policy.AUTO: publish(
        client, 7, message, policy=policy
    )


def meta_of(comment):
    line = comment["body"].split("\n")[1]
    return json.loads(re.fullmatch(r"<!-- pytest-perfgate:meta (.*) -->", line)[1])


# making and finding -----------------------------------------------------------


def test_the_first_one_is_created(post, make_message, github):
    result = post(make_message())
    assert (result.state, result.url) == (State.CREATED, "https://github.test/c/1000")
    (comment,) = github.comments
    assert comment["body"].startswith(
        "<!-- pytest-perfgate:comment id=default -->\n<!-- pytest-perfgate:meta {"
    )
    assert "### ✗ 1 regressed" in comment["body"]
    assert comment["body"].endswith("the table\n")
    assert meta_of(comment) == {
        "attempt": 1,
        "numbers": NEW,
        "run_id": 9001,
        "run_number": 42,
        "schema": 1,
        "sha": NEW,
        "verdict": "regressed",
    }
    assert github.asked() == ["GET issues/7/comments", "POST issues/7/comments"]


def test_the_next_run_updates_it(post, make_message, github):
    post(make_message())
    result = post(make_message(lambda _: Draft(rest="better"), run_number=43))
    assert (result.state, result.url) == (State.UPDATED, "https://github.test/c/1000")
    (comment,) = github.comments
    assert comment["body"].endswith("better\n")
    assert meta_of(comment)["run_number"] == 43


def test_the_same_again_is_no_write(post, make_message, github):
    post(make_message())
    assert post(make_message(attempt=2)).state is State.UNCHANGED
    assert github.asked("PATCH") == []


@pytest.mark.parametrize(
    ("policy", "loud", "there", "state"),
    [
        ("auto", True, False, "created"),
        ("auto", False, False, "skipped"),
        ("auto", False, True, "updated"),
        ("always", False, False, "created"),
        ("never", True, False, "skipped"),
        ("never", True, True, "skipped"),
    ],
)
def test_the_policy(post, make_message, github, policy, loud, there, state):
    if there:
        post(make_message())
        github.calls.clear()
    message = make_message(lambda _: Draft(rest="other"), loud=loud)
    assert post(message, Policy(policy)).state == state
    if policy == "never":
        assert github.calls == []


def test_it_is_found_on_the_last_page(post, make_message, github):
    github.page = 3
    for n in range(7):
        github.comment(f"hello {n}", user=HUMAN)
    post(make_message())
    github.calls.clear()
    assert post(make_message(lambda _: Draft(rest="z"))).state is State.UPDATED
    assert len(github.asked("GET")) == 3


def test_anybodys_marker_is_not_ours(post, make_message, github):
    planted = github.comment(f"{marker('default')}\nplanted", user=HUMAN)
    result = post(make_message())
    assert result.state is State.CREATED
    assert [one["id"] for one in github.comments if "planted" in one["body"]] == [
        planted
    ]
    assert len(github.comments) == 2


def test_with_a_users_token_their_own_comment_is_found(post, make_message, github):
    github.author = {"login": "ada", "type": "User"}
    # the address of the user lies beside those of repositories
    github.things["/api/v3/user"] = {"login": "ada"}
    post(make_message())
    assert post(make_message(lambda _: Draft(rest="z"))).state is State.UPDATED
    assert len(github.comments) == 1


def test_a_marker_further_down_is_a_quotation(post, make_message, github):
    github.comment(f"look:\n{marker('default')}")
    github.comment(f"> {marker('default')}")
    assert post(make_message()).state is State.CREATED


def test_legs_have_comments_of_their_own(post, make_message, github):
    foreign = github.comment("### ✗ 1 regressed")
    for leg in ("a100", "h100", "a100", "h100"):
        draft = Draft(rest=f"{leg} {len(github.calls)}")
        post(make_message(lambda _, draft=draft: draft, comment_id=leg))
    assert len(github.comments) == 3
    bodies = [one["body"] for one in github.comments]
    assert "a100" in bodies[1]
    assert "h100" in bodies[2]
    assert github.comments[0] == {**github.comments[0], "id": foreign}
    assert bodies[0] == "### ✗ 1 regressed"


def test_of_several_the_oldest_is_kept_up_to_date(post, make_message, github):
    post(make_message())
    body = github.comments[0]["body"]
    github.comment(body, number=900)
    result = post(make_message(lambda _: Draft(rest="new")))
    assert result.state is State.UPDATED
    assert [one["id"] for one in github.comments if "new" in one["body"]] == [900]
    (warning,) = result.warnings
    assert "2 comments have the key 'default'" in warning


@pytest.mark.parametrize("newer", [{"run_number": 43}, {"attempt": 2}])
def test_an_older_run_does_not_overwrite(post, make_message, github, newer):
    post(make_message(**newer))
    result = post(make_message(lambda _: Draft(rest="old news")))
    assert result.state is State.STALE
    assert "old news" not in github.comments[0]["body"]
    assert github.asked("PATCH") == []


@pytest.mark.parametrize(
    "line",
    ["", "<!-- pytest-perfgate:meta {broken} -->", "<!-- pytest-perfgate:meta [] -->"],
)
def test_a_comment_without_its_second_line_is_taken_over(
    post, make_message, github, line
):
    github.comment(f"{marker('default')}\n{line}\nanything")
    assert post(make_message()).state is State.UPDATED


def test_line_ends_of_the_web_do_not_matter(post, make_message, github):
    post(make_message())
    body = github.comments[0]["body"].replace("\n", "\r\n")
    github.comments[0]["body"] = body
    assert post(make_message()).state is State.UNCHANGED


# what goes wrong --------------------------------------------------------------


def test_deleted_meanwhile_it_is_posted_once(post, make_message, github):
    post(make_message())
    github.refuse("PATCH", "comments", 404, {"message": "Not Found"})
    github.calls.clear()
    assert post(make_message(lambda _: Draft(rest="z"))).state is State.CREATED
    assert [call.method for call in github.writes()] == ["PATCH", "POST"]


def test_an_error_after_posting_does_not_double(post, make_message, github, slept):
    github.drop_after = 1
    result = post(make_message())
    assert (result.state, result.url) == (State.CREATED, "https://github.test/c/1000")
    assert len(github.comments) == 1
    assert [call.method for call in github.writes()] == ["POST"]
    assert slept == []


def test_an_error_before_posting_is_tried_again(post, make_message, github, slept):
    github.refuse("POST", "comments", 502, "<html>")
    assert post(make_message()).state is State.CREATED
    assert len(github.comments) == 1
    assert github.asked() == [
        "GET issues/7/comments",
        "POST issues/7/comments",
        "GET issues/7/comments",
        "POST issues/7/comments",
    ]
    assert slept == [2.0]


def test_a_server_that_stays_down_is_a_warning(post, make_message, github):
    for _ in range(3):
        github.refuse("POST", "comments", 502, "<html>")
    result = post(make_message())
    assert result.state is State.FAILED
    assert "502" in result.warnings[0]


def test_a_token_that_reads_only_is_pending(post, make_message, github, slept):
    told = {"message": "Resource not accessible by integration"}
    github.refuse("POST", "comments", 403, told)
    result = post(make_message())
    assert result.state is State.PENDING
    (warning,) = result.warnings
    assert "pull-requests: write" in warning
    assert (len(github.calls), slept) == (2, [])


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "Bad credentials"),
        (403, "Unable to create comment because issue is locked."),
        (404, "Not Found"),
        (410, "Gone"),
        (422, "Validation Failed"),
        (200, None),
    ],
)
def test_whatever_else_is_refused_fails_softly(
    post, make_message, github, status, message
):
    body = {"message": message} if message else "<html>"
    github.refuse("POST", "comments", status, body)
    result = post(make_message())
    assert result.state is State.FAILED
    assert (message or "no JSON") in result.warnings[0]


# sizes ------------------------------------------------------------------------


def test_too_long_goes_down_the_ladder(post, make_message, github):
    github.limit = 10_000
    result = post(make_message(ladder(300_000, 60_000, 9_000, 10)))
    assert result.state is State.CREATED
    sizes = [len(call.body["body"]) for call in github.writes()]
    assert sizes[0] > 300_000 > sizes[1] > 60_000 > sizes[2] > 9_000
    assert len(sizes) == 3
    assert "### ✗ 1 regressed" in github.comments[0]["body"]
    assert marker("default") in github.comments[0]["body"]


def test_a_server_that_takes_more_is_given_more(post, make_message, github):
    github.limit = 142_000
    assert post(make_message(ladder(140_000, 10))).state is State.CREATED
    assert len(github.writes()) == 1


def test_a_rung_that_was_left_out_is_not_asked_for_again(post, make_message, github):
    asked = []

    def draft(rung):
        asked.append(rung)  # the first two would be too long in any case
        return Draft(rest="x" * (90_000 if rung < 3 else 10), rung=max(rung, 2))

    assert post(make_message(draft)).state is State.CREATED
    assert asked == [0, 3]


def test_an_update_goes_down_the_ladder_too(post, make_message, github):
    post(make_message())
    github.limit = 10_000
    assert post(make_message(ladder(20_000, 10))).state is State.UPDATED


@pytest.mark.parametrize("there", [True, False])
def test_too_long_on_the_last_rung_fails_softly(post, make_message, github, there):
    if there:
        post(make_message())
    github.limit = 100
    result = post(make_message(ladder(500, 400)))
    assert result.state is State.FAILED
    assert "maximum is 100" in result.warnings[0]


# a table that is kept ---------------------------------------------------------


def crash(make_message, **changes):
    draft = Draft(status="### ! nothing was measured", rest="footer", last=True)
    return make_message(lambda _: draft, measured=False, verdict="error", **changes)


def test_a_crash_keeps_the_table_and_says_whose_it_is(post, make_message, github):
    post(make_message(sha=OLD))
    result = post(crash(make_message, sha=NEW, run_number=43))
    assert result.state is State.UPDATED
    (comment,) = github.comments
    assert "nothing was measured" in comment["body"]
    assert f"kept numbers of {OLD}" in comment["body"]
    assert comment["body"].endswith("the table\n")
    assert "1 regressed" not in comment["body"]
    found = meta_of(comment)
    assert (found["sha"], found["numbers"], found["verdict"]) == (NEW, OLD, "error")
    # once more: still the numbers of the old one
    post(crash(make_message, sha="3" * 40, run_number=44))
    assert f"kept numbers of {OLD}" in comment["body"]
    assert comment["body"].count("the table") == 1
    # and a run that measures replaces all of it
    post(make_message(lambda _: Draft(rest="new table"), sha=NEW, run_number=45))
    assert "kept numbers" not in comment["body"]
    assert "new table" in comment["body"]


def test_a_crash_with_no_table_before_it(post, make_message, github):
    assert post(crash(make_message)).state is State.CREATED
    assert "footer" in github.comments[0]["body"]
    assert meta_of(github.comments[0])["numbers"] == ""
    post(crash(make_message, run_number=43))
    assert github.comments[0]["body"].count("nothing was measured") == 1


def test_a_body_cannot_forge_the_end_of_the_status(post, make_message, github):
    forged = "```text\n<!-- /pytest-perfgate:status -->\n```\nthe table"
    post(make_message(lambda _: Draft(rest=forged), sha=OLD))
    post(crash(make_message, run_number=43))
    assert github.comments[0]["body"].endswith(f"{forged}\n")


# keys -------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["default", "a100", "perf/h100.v2_x-1", "x" * 80])
def test_keys(text):
    assert check_comment_id(text) == text


@pytest.mark.parametrize("text", ["", "a b", "a--b", "--> x", "x" * 81, "ü", "a\nb"])
def test_what_is_no_key(text):
    with pytest.raises(UsageError, match="letters, digits"):
        check_comment_id(text)


def test_the_second_line_cannot_be_ended_from_inside(post, make_message, github):
    post(make_message(sha="--> <b>", verdict="--"))
    line = github.comments[0]["body"].split("\n")[1]
    assert line.count("--") == 2
    assert meta_of(github.comments[0])["sha"] == "--> <b>"


def test_no_check_runs_and_no_statuses(post, make_message, github):
    post(make_message())
    post(make_message(lambda _: Draft(rest="z")))
    assert {call.path.split("/")[0] for call in github.calls} == {"issues"}
