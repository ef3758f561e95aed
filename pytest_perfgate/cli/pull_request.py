"""A report and a pull request: which comment goes where, and what becomes of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pytest_perfgate.errors import (
    BaselineError,
    GitHubError,
    ReadOnlyToken,
    SchemaTooNew,
)
from pytest_perfgate.gate.judging_again import judge_again
from pytest_perfgate.gate.merging import Part, merge
from pytest_perfgate.github.artifacts import Artifact, fetch_report, list_artifacts
from pytest_perfgate.github.client import Client
from pytest_perfgate.github.context import Context
from pytest_perfgate.github.pulls import FoundPulls, acceptance, find_pulls
from pytest_perfgate.github.sticky import (
    HEAD_ROOM,
    CommentResult,
    Message,
    Meta,
    Policy,
    State,
    check_comment_id,
    publish,
)
from pytest_perfgate.model import Outcome, Report
from pytest_perfgate.reports import comment
from pytest_perfgate.reports.comment import Accepted, Around, Links
from pytest_perfgate.reports.words import overall
from pytest_perfgate.store import read_report

ACCEPT_LABEL = "perf-regression-accepted"
DEFAULT_ID = "default"

_BADNESS = (
    State.FAILED,
    State.PENDING,
    State.STALE,
    State.CREATED,
    State.UPDATED,
    State.UNCHANGED,
    State.SKIPPED,
)
"""Of several comments the first of these is what is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """How a comment is to be posted."""

    comment_id: str = DEFAULT_ID
    policy: Policy = Policy.AUTO
    label: str = ACCEPT_LABEL
    """Accepts regressions; looked up on the pull request as it is now."""
    around: Around = field(default_factory=Around)
    problem: str = ""
    """Why there is no report, where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One report of an upstream run, or why it cannot be used."""

    name: str
    """The part of the artifact's name between `perfgate-` and the attempt."""
    report: Report | None
    problem: str = ""


def post_comment(
    report: Report | None, context: Context, client: Client, posting: Posting
) -> CommentResult:
    """Post, update or leave the comment on the pull request of this job.

    Never raises for what GitHub answers: that becomes a state and a warning.

    Parameters
    ----------
    report : None where the measurement left none; `posting.problem` says why
    context : of this job
    client : writes with the job's token
    posting : how

    Raises
    ------
    UsageError
        For a comment id that cannot be one.
    """
    check_comment_id(posting.comment_id)
    refused = may_not(context, posting)
    if refused is not None:
        return refused
    try:
        found = find_pulls(client, context)
    except ReadOnlyToken as error:
        return CommentResult(state=State.PENDING, warnings=(str(error),))
    except GitHubError as error:
        told = f"the pull request could not be found: {error}"
        return CommentResult(state=State.FAILED, warnings=(told,))
    if not found.numbers:
        return _nowhere(found, context)
    results = [
        _on_pull(report, context, client, posting, number=number)
        for number in found.numbers
    ]
    return together(results)


def may_not(context: Context, posting: Posting) -> CommentResult | None:
    """Say why no comment is made, before GitHub is asked; None where one may be."""
    if posting.policy is Policy.NEVER:
        return CommentResult(state=State.SKIPPED)
    if context.may_comment:
        return None
    if context.why_not == State.PENDING:
        told = (
            "this pull request comes from a fork or from Dependabot, so that the token "
            "of this job reads only; the workflow_run job posts the comment from the "
            "report"
        )
        return CommentResult(state=State.PENDING, warnings=(told,))
    return CommentResult(state=State.SKIPPED)


def _nowhere(found: FoundPulls, context: Context) -> CommentResult:
    if found.stale:
        numbers = ", ".join(f"#{number}" for number in found.stale)
        told = (
            f"{numbers} is at another commit by now; {context.sha[:12]}, which was "
            "measured, is not commented on"
        )
        return CommentResult(state=State.STALE, warnings=(told,))
    told = f"no open pull request is at {context.sha[:12] or 'this commit'}"
    return CommentResult(state=State.SKIPPED, warnings=(told,))


def together(results: list[CommentResult]) -> CommentResult:
    """Give the worst of several states, and all warnings."""
    worst = min(results, key=lambda one: _BADNESS.index(one.state))
    warnings = tuple(told for one in results for told in one.warnings)
    return replace(worst, warnings=warnings)


def _on_pull(
    report: Report | None,
    context: Context,
    client: Client,
    posting: Posting,
    *,
    number: int,
) -> CommentResult:
    around = replace(posting.around, label=posting.label)
    warnings: tuple[str, ...] = ()
    if report is not None and _has_regressed(report):
        around, warnings = with_acceptance(around, client, number, posting.label)
    message = message_of(report, context, posting, around=around)
    result = publish(client, number, message, policy=posting.policy)
    return replace(result, warnings=warnings + result.warnings)


def _has_regressed(report: Report) -> bool:
    return any(one.verdict.outcome is Outcome.REGRESSED for one in report.results)


def with_acceptance(
    around: Around, client: Client, number: int, label: str
) -> tuple[Around, tuple[str, ...]]:
    """Add what a pull request's label says about accepting, and what to warn of."""
    found = acceptance(client, number, label)
    if found.accepted:
        who = Accepted(by=found.by, at=found.at, reason=found.reason, label=found.label)
        return replace(around, accepted=who, label=label), ()
    notes = (found.warning,) if found.warning else ()
    return replace(around, label=label, notes=around.notes + notes), notes


def links_of(context: Context) -> Links:
    """Return the links to the run that measured, and the commit that it measured."""
    page = f"{context.server_url}/{context.repository}" if context.repository else ""
    upstream = context.upstream
    if upstream is None:
        return Links(
            run=context.run_url,
            attempt=context.run_attempt,
            commit=context.sha,
            repository=page,
        )
    run = (
        f"{page}/actions/runs/{upstream.run_id}/attempts/{upstream.run_attempt}"
        if page and upstream.run_id
        else ""
    )
    return Links(
        run=run,
        attempt=upstream.run_attempt,
        commit=upstream.head_sha,
        repository=page,
    )


def message_of(
    report: Report | None, context: Context, posting: Posting, *, around: Around
) -> Message:
    """Make what is to be said, to be rendered again where it is too long."""
    links = links_of(context)
    measured = report is not None and comment.has_numbers(report)

    def draft(rung: int) -> comment.Rendered:
        if report is None:
            return comment.without_report(
                posting.problem or "the measurement left no report",
                links=links,
                leg=around.leg,
            )
        limit = comment.TARGET - HEAD_ROOM
        return comment.render(
            report, links=links, limit=limit, rung=rung, around=around
        )

    return Message(
        comment_id=posting.comment_id,
        meta=_meta(report, context, accepted=around.accepted is not None),
        draft=draft,
        loud=report is None or comment.is_loud(report, around),
        measured=measured,
        kept=comment.kept_table,
    )


def _meta(report: Report | None, context: Context, *, accepted: bool) -> Meta:
    upstream = context.upstream
    return Meta(
        sha=context.sha,
        run_id=upstream.run_id if upstream else context.run_id,
        run_number=upstream.run_number if upstream else context.run_number,
        attempt=upstream.run_attempt if upstream else context.run_attempt,
        verdict="error" if report is None else overall(report, accepted=accepted),
    )


# reports of another run -------------------------------------------------------


def upstream_legs(client: Client, context: Context) -> tuple[Leg, ...]:
    """Fetch the reports that the run of a `workflow_run` event has uploaded.

    Of each leg the newest attempt counts. What cannot be used is told, and is
    no report.

    Raises
    ------
    GitHubError
        Where the artifacts cannot be listed.
    """
    upstream = context.upstream
    if upstream is None or upstream.run_id is None:
        return ()
    found = list_artifacts(client, upstream.run_id, attempt=upstream.run_attempt)
    return tuple(_leg(client, artifact) for artifact in found)


def _leg(client: Client, artifact: Artifact) -> Leg:
    try:
        fetched = fetch_report(client, artifact)
        source = f"the artifact {artifact.name}"
        report = read_report(fetched.data, source=source)
    except SchemaTooNew as error:
        told = (
            f"the report was written by a newer pytest-perfgate than the one that "
            f"comments: {error}"
        )
        return Leg(name=artifact.leg, report=None, problem=told)
    except (BaselineError, GitHubError) as error:
        return Leg(name=artifact.leg, report=None, problem=str(error))
    # its own exit code and its own words are not trusted
    merged = merge([Part(source=source, report=report)])
    if merged.broken:
        return Leg(name=artifact.leg, report=None, problem=merged.broken[0].problem)
    return Leg(name=artifact.leg, report=judge_again(merged).report)


def postings(legs: tuple[Leg, ...], posting: Posting) -> Iterator[tuple[Leg, Posting]]:
    """Give each leg a comment of its own where there are several."""
    for leg in legs:
        around = replace(posting.around, leg=leg.name if len(legs) > 1 else "")
        own = replace(posting, problem=leg.problem, around=around)
        if len(legs) > 1:
            own = replace(own, comment_id=_id_of_leg(posting.comment_id, leg.name))
        yield leg, own


def _id_of_leg(comment_id: str, leg: str) -> str:
    safe = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9._/-]", "-", leg))
    whole = safe if comment_id == DEFAULT_ID else f"{comment_id}/{safe}"
    return whole[:80] or comment_id
