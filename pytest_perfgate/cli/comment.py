"""`perfgate comment`: put a report on its pull request."""

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_perfgate.cli.edits import edited_baselines, git_in
from pytest_perfgate.cli.pull_request import (
    ACCEPT_LABEL,
    DEFAULT_ID,
    Leg,
    Posting,
    links_of,
    may_not,
    post_comment,
    postings,
    upstream_legs,
)
from pytest_perfgate.errors import BaselineError, GitHubError, UsageError
from pytest_perfgate.github.client import Client
from pytest_perfgate.github.commands import Annotation, Level, command, harmless
from pytest_perfgate.github.context import Context, read_event, resolve
from pytest_perfgate.github.sticky import (
    CommentResult,
    Policy,
    State,
    check_comment_id,
)
from pytest_perfgate.reports import comment
from pytest_perfgate.reports.comment import Around
from pytest_perfgate.reports.escape import one_line
from pytest_perfgate.store import load_report

NO_CHECKOUT = (
    "Which baselines this pull request edits is not known here, for this job has no "
    "checkout: see its diff."
)
_NO_BASE = (
    "Which baselines this pull request edits is not known here, for this event does not "
    "name the branch that it goes into: see its diff."
)


def add(commands: Any) -> None:  # noqa: ANN401 (argparse keeps the type private)
    """Add the command to those of the parser."""
    parser = commands.add_parser(
        "comment",
        help="put a report on its pull request",
        description="Post or update the one comment on a pull request of GitHub. "
        "Reads the environment of Actions, and the token from GITHUB_TOKEN. What "
        "GitHub refuses is told and does not fail.",
    )
    parser.add_argument(
        "report",
        type=Path,
        nargs="?",
        help="report.json or a session's folder; without one, in a workflow_run "
        "job, the artifacts of the run that measured",
    )
    parser.add_argument(
        "--pr", default="", metavar="N", help="pull request, where the event has none"
    )
    parser.add_argument(
        "--comment-id",
        default=DEFAULT_ID,
        metavar="ID",
        help="key of the comment, one for each report on a pull request "
        "(default: default)",
    )
    parser.add_argument(
        "--policy",
        choices=[policy.value for policy in Policy],
        default=Policy.AUTO.value,
        help="auto: make one only if there is something to tell; an existing one is "
        "kept up to date by auto and always (default: auto)",
    )
    parser.add_argument(
        "--accept-label",
        default=ACCEPT_LABEL,
        metavar="LABEL",
        help=f"accepts regressions; empty disables (default: {ACCEPT_LABEL})",
    )
    parser.add_argument(
        "--baselines",
        metavar="DIR",
        help="folder of the baselines, whose edits are listed (default: the one that "
        "the report was judged by, below this folder)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the comment and post nothing"
    )
    parser.set_defaults(run=_comment)


def _comment(given: argparse.Namespace) -> int:
    check_comment_id(given.comment_id)
    env = os.environ
    event, problem = read_event(env)
    context = resolve(env, event, problem=problem, pr_number=given.pr)
    for warning in context.warnings:
        _say(context, warning, Level.WARNING)
    posting = Posting(
        comment_id=given.comment_id,
        policy=Policy(given.policy),
        label=given.accept_label,
    )
    if given.report is None:
        return _from_run(given, env, context, posting)
    try:
        report = load_report(given.report)
    except BaselineError as error:
        raise UsageError(str(error)) from error
    kept = given.baselines or report.policy.get("--perfgate-baselines", "baselines")
    posting = replace(posting, around=_around(context, kept))
    # the verdict first, then what became of telling it
    print(harmless(one_line(report.summary)))
    _each(given, env, context, [(Leg(name="", report=report), posting)])
    return 0


def _around(context: Context, folder: str) -> Around:
    """List the edited baselines, where there is a pull request and a checkout."""
    if context.upstream is not None:  # its checkout is that of the default branch
        return Around(edits_note=NO_CHECKOUT)
    if not context.base_ref:
        return Around(edits_note=_NO_BASE if context.pr_number else "")
    git = git_in(Path.cwd())
    base = f"origin/{context.base_ref}"
    edits, note = edited_baselines(git, base=base, folder=folder)
    return Around(edits=edits, edits_note=note)


def _from_run(
    given: argparse.Namespace,
    env: Mapping[str, str],
    context: Context,
    posting: Posting,
) -> int:
    if context.upstream is None:
        raise UsageError(
            "name the report to comment on; only a workflow_run job finds it in the "
            "artifacts of the run before"
        )
    posting = replace(posting, around=_around(context, given.baselines or ""))
    refused = may_not(context, posting)
    if refused is not None:
        _tell(context, refused)
        return 0
    try:
        legs = upstream_legs(_client(env, context), context)
    except GitHubError as error:
        told = f"the reports of the run could not be fetched: {error}"
        _tell(context, CommentResult(state=State.FAILED, warnings=(told,)))
        return 0
    none = (Leg(name="", report=None, problem=_no_artifact(context)),)
    _each(given, env, context, postings(legs or none, posting))
    return 0


def _no_artifact(context: Context) -> str:
    conclusion = context.upstream.conclusion if context.upstream else ""
    return (
        "the run left no report that is still there (an artifact named "
        f"perfgate-LEG-ATTEMPT); it ended as {conclusion or 'unknown'}"
    )


def _each(
    given: argparse.Namespace,
    env: Mapping[str, str],
    context: Context,
    pairs: "Iterator[tuple[Leg, Posting]] | list[tuple[Leg, Posting]]",
) -> None:
    for leg, posting in pairs:
        if given.dry_run:
            print(harmless(_dry(leg, context, posting)), end="")
            continue
        refused = may_not(context, posting)
        if refused is None:
            client = _client(env, context)
            refused = post_comment(leg.report, context, client, posting)
        _tell(context, refused, leg=leg.name)


def _dry(leg: Leg, context: Context, posting: Posting) -> str:
    links = links_of(context)
    if leg.report is None:
        return comment.without_report(leg.problem, links=links).text
    around = replace(posting.around, label=posting.label)
    return comment.render(leg.report, links=links, around=around).text


def _client(env: Mapping[str, str], context: Context) -> Client:
    return Client(
        context.api_url,
        env.get("GITHUB_TOKEN", ""),
        repository=context.repository,
    )


def _tell(context: Context, result: CommentResult, *, leg: str = "") -> None:
    what = f"comment {leg}" if leg else "comment"
    print(harmless(f"{what}: {result.state} {result.url}".rstrip()))
    level = Level.NOTICE if result.state is State.PENDING else Level.WARNING
    for warning in result.warnings:
        _say(context, warning, level)


def _say(context: Context, text: str, level: Level) -> None:
    if context.in_actions:
        print(command(Annotation(level=level, message=text, title="perfgate")))
    else:
        print(harmless(f"{level}: {text}"))
