"""The step that writes the comment; what GitHub refuses never changes the verdict."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pytest_perfgate.cli.action_edits import edits_of
from pytest_perfgate.cli.action_log import context_of, only_warned, say, tell, warn
from pytest_perfgate.cli.action_verdict import collect, rule
from pytest_perfgate.cli.comment import NO_CHECKOUT
from pytest_perfgate.cli.pull_request import (
    Leg,
    Posting,
    may_not,
    post_comment,
    postings,
    together,
    upstream_legs,
)
from pytest_perfgate.errors import PerfGateError
from pytest_perfgate.github.client import Client
from pytest_perfgate.github.commands import Level, write_outputs
from pytest_perfgate.github.context import Context
from pytest_perfgate.github.sticky import CommentResult, Policy, State
from pytest_perfgate.reports.comment import Around

_NO_ARTIFACT = (
    "the run left no report that is still there (an artifact named "
    "perfgate-LEG-ATTEMPT); see its log"
)


def comment(env: Mapping[str, str]) -> int:
    """Post or update what there is to say, and put out what became of it."""
    context = context_of(env)
    if env["PERFGATE_MODE"] == "comment":  # else another step has said it
        for warning in context.warnings:
            warn(warning)
    posting = Posting(
        comment_id=env["PERFGATE_COMMENT_ID"],
        policy=Policy(env["PERFGATE_COMMENT"]),
        label=env.get("PERFGATE_ACCEPT_LABEL", ""),
    )
    result = CommentResult(state=State.FAILED)
    with only_warned("the comment was not written"):
        result = post(env, context, posting)
    level = Level.NOTICE if result.state is State.PENDING else Level.WARNING
    for told in result.warnings:
        tell(level, told)
    say(f"comment: {result.state} {result.url}".rstrip())
    values = {"comment-state": result.state.value, "comment-url": result.url}
    warn(write_outputs(env, values))
    return 0


def post(env: Mapping[str, str], context: Context, posting: Posting) -> CommentResult:
    """Post every leg's comment; returns the worst that became of them."""
    refused = may_not(context, posting)
    if refused is not None:
        return refused
    try:
        token = env.get("GITHUB_TOKEN", "")
        client = Client(context.api_url, token, repository=context.repository)
        results = [
            post_comment(leg.report, context, client, own)
            for leg, own in legs(env, context, client, posting)
        ]
    except PerfGateError as error:
        return CommentResult(state=State.FAILED, warnings=(str(error),))
    return together(results)


def legs(
    env: Mapping[str, str], context: Context, client: Client, posting: Posting
) -> Iterator[tuple[Leg, Posting]]:
    """Yield what there is to tell: of the run before this one, or of this one."""
    if context.upstream is not None:
        found = upstream_legs(client, context)
        none = Leg(name="", report=None, problem=_NO_ARTIFACT)
        posting = replace(posting, around=Around(edits_note=NO_CHECKOUT))
        yield from postings(found or (none,), posting)
        return
    mode = env["PERFGATE_MODE"]
    local = {**env, "PERFGATE_MODE": "gate"} if mode == "comment" else env
    ruling = rule(collect(local), fail_on="policy", accepted=False)
    if not ruling.measured:
        yield Leg(name="", report=None), replace(posting, problem=ruling.sentence)
        return
    edits, note = edits_of(ruling.report, context, env)
    around = Around(edits=edits, edits_note=note)
    yield Leg(name="", report=ruling.report), replace(posting, around=around)
