"""One comment on a pull request that is kept up to date, and never doubled."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from pytest_perfgate.errors import (
    GitHubError,
    NotFound,
    ReadOnlyToken,
    TooLong,
    Unreachable,
    UsageError,
)
from pytest_perfgate.github.client import TRIES, Client
from pytest_perfgate.github.payload import text_at, whole_at

SCHEMA = 1
HEAD_ROOM = 1_500
"""Characters that the lines around a rendered body take at the most."""

_ID = re.compile(r"[A-Za-z0-9._/-]{1,80}")
_META = re.compile(r"<!-- pytest-perfgate:meta (\{.*\}) -->")
_STATUS, _STATUS_END = (
    "<!-- pytest-perfgate:status -->",
    "<!-- /pytest-perfgate:status -->",
)


class State(StrEnum):
    """What became of a comment."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    PENDING = "pending"
    SKIPPED = "skipped"
    STALE = "stale"
    FAILED = "failed"


class Policy(StrEnum):
    """When a comment is made; one that is there is kept up to date by all but `never`."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Draft(Protocol):
    """A rendered body at one rung of the ladder of sizes."""

    @property
    def status(self) -> str: ...
    @property
    def rest(self) -> str: ...
    @property
    def rung(self) -> int: ...
    @property
    def last(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What a comment remembers about the run that wrote it."""

    sha: str
    run_id: int | None
    run_number: int | None
    attempt: int
    verdict: str
    numbers: str = ""
    """The commit that the table is of, where the status is of another."""
    schema: int = SCHEMA

    @property
    def order(self) -> tuple[int, int]:
        return self.run_number or 0, self.attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is to be said on a pull request."""

    comment_id: str
    meta: Meta
    draft: Callable[[int], Draft]
    """Renders at a rung or, where that is too long, at one further down."""
    loud: bool
    """Whether there is anything to tell that is not simply well."""
    measured: bool
    """False where the status has no table: an earlier one is then kept."""
    kept: Callable[[str], str] = field(default=lambda _: "")
    """The sentence that says of which commit a kept table is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentResult:
    """What became of the comment, where it is, and what should be known."""

    state: State
    url: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Existing:
    number: int
    body: str
    url: str
    meta: Meta | None


def check_comment_id(text: str) -> str:
    """Return the key of a comment, if it can be one.

    Raises
    ------
    UsageError
        For what could end the HTML comment that holds it.
    """
    if _ID.fullmatch(text) and "--" not in text:
        return text
    raise UsageError(
        f"the comment's key {text[:100]!r} is not 1 to 80 letters, digits, '.', '_', "
        "'/' and '-', without '--'; write one for each leg, as in a100"
    )


def publish(
    client: Client, number: int, message: Message, *, policy: Policy
) -> CommentResult:
    """Create, update or leave the comment of one pull request.

    Whatever goes wrong becomes a state and a warning: reporting never changes a
    verdict.

    Parameters
    ----------
    client : writes with the job's token
    number : of the pull request
    message : what to say
    policy : whether a comment is made where there is none
    """
    if policy is Policy.NEVER:
        return CommentResult(state=State.SKIPPED)
    try:
        return _publish(client, number, message, policy)
    except ReadOnlyToken as error:
        return CommentResult(state=State.PENDING, warnings=(str(error),))
    except GitHubError as error:
        told = f"the comment was not written: {error}"
        return CommentResult(state=State.FAILED, warnings=(told,))


def _publish(
    client: Client, number: int, message: Message, policy: Policy
) -> CommentResult:
    existing, warnings = _find(client, number, message.comment_id)
    if existing is None:
        if policy is Policy.AUTO and not message.loud:
            return CommentResult(state=State.SKIPPED)
        return _create(client, number, message)
    result = _update(client, number, message, existing)
    return replace(result, warnings=warnings + result.warnings)


# finding ----------------------------------------------------------------------


def marker(comment_id: str) -> str:
    """Return the first line of a comment, by which it is found again."""
    return f"<!-- pytest-perfgate:comment id={comment_id} -->"


def _find(
    client: Client, number: int, comment_id: str
) -> tuple[_Existing | None, tuple[str, ...]]:
    """Find our comment, the oldest of several.

    Anybody can write our marker into a comment of their own; only one of a bot,
    or of the very user whose token this is, is ours.
    """
    first = marker(comment_id)
    marked = [
        comment
        for comment in client.paginate(f"issues/{number}/comments")
        if text_at(comment, "body").partition("\n")[0].rstrip("\r") == first
    ]
    ours = [one for one in marked if text_at(one, "user.type") == "Bot"]
    if marked and not ours:
        login = client.login()
        ours = [one for one in marked if login and text_at(one, "user.login") == login]
    found = sorted(filter(None, map(_existing, ours)), key=lambda one: one.number)
    if not found:
        return None, ()
    if len(found) == 1:
        return found[0], ()
    several = (
        f"{len(found)} comments have the key {comment_id!r}; the oldest is kept up to "
        "date, the others are left as they are"
    )
    return found[0], (several,)


def _existing(comment: Mapping[str, object]) -> _Existing | None:
    number = whole_at(comment, "id")
    if number is None:
        return None
    body = text_at(comment, "body").replace("\r\n", "\n")
    return _Existing(
        number=number, body=body, url=text_at(comment, "html_url"), meta=_meta_in(body)
    )


def _meta_in(body: str) -> Meta | None:
    """Read the second line; None where it is not as we write it."""
    lines = body.split("\n", 2)
    found = _META.fullmatch(lines[1]) if len(lines) > 1 else None
    if found is None:
        return None
    try:
        values = json.loads(found[1])
    except (ValueError, RecursionError):
        return None
    return Meta(
        sha=text_at(values, "sha"),
        run_id=whole_at(values, "run_id"),
        run_number=whole_at(values, "run_number"),
        attempt=whole_at(values, "attempt") or 1,
        verdict=text_at(values, "verdict"),
        numbers=text_at(values, "numbers"),
        schema=whole_at(values, "schema") or 0,
    )


# writing ----------------------------------------------------------------------


def _head(message: Message, *, numbers: str) -> str:
    meta = json.dumps(asdict(replace(message.meta, numbers=numbers)), sort_keys=True)
    safe = meta.replace("--", "\\u002d\\u002d").replace(">", "\\u003e")
    return f"{marker(message.comment_id)}\n<!-- pytest-perfgate:meta {safe} -->"


def _compose(message: Message, draft: Draft, existing: _Existing | None) -> str:
    kept = None if message.measured or existing is None else _table_of(existing)
    if kept is None or existing is None:
        numbers = message.meta.sha if message.measured else ""
        parts = (_STATUS, draft.status.strip("\n"), _STATUS_END, "", draft.rest)
        return "\n".join((_head(message, numbers=numbers), *parts)).rstrip("\n") + "\n"
    numbers = existing.meta.numbers if existing.meta else ""
    parts = (_STATUS, draft.status.strip("\n"), "", message.kept(numbers), _STATUS_END)
    return "\n".join((_head(message, numbers=numbers), *parts)) + kept


def _table_of(existing: _Existing) -> str | None:
    """Return what follows the status of an earlier comment that has numbers."""
    if existing.meta is None or not existing.meta.numbers:
        return None
    before, mark, rest = existing.body.partition(_STATUS_END)
    return rest if mark and _STATUS in before else None


def _create(client: Client, number: int, message: Message) -> CommentResult:
    """Post, further down the ladder if need be, and never twice.

    An error of the server leaves open whether the comment was made, so it is
    looked for before another try.
    """
    rung = tries = 0
    while True:
        draft = message.draft(rung)
        body = _compose(message, draft, None)
        try:
            made = client.post(f"issues/{number}/comments", {"body": body})
        except TooLong:
            if draft.last:
                raise
            rung = draft.rung + 1
        except Unreachable as error:
            tries += 1
            found, _ = _find(client, number, message.comment_id)
            if found is not None:
                return CommentResult(state=State.CREATED, url=found.url)
            if tries == TRIES:
                raise
            client.pause(tries, error)
        else:
            return CommentResult(state=State.CREATED, url=text_at(made, "html_url"))


def _update(
    client: Client, number: int, message: Message, existing: _Existing
) -> CommentResult:
    if existing.meta is not None and existing.meta.order > message.meta.order:
        told = "a newer run has written the comment already"
        return CommentResult(state=State.STALE, url=existing.url, warnings=(told,))
    rung = 0
    while True:
        draft = message.draft(rung)
        body = _compose(message, draft, existing)
        if _without_meta(body) == _without_meta(existing.body):
            return CommentResult(state=State.UNCHANGED, url=existing.url)
        try:
            made = client.patch(f"issues/comments/{existing.number}", {"body": body})
        except NotFound:
            return _create(client, number, message)  # deleted meanwhile
        except TooLong:
            if draft.last:
                raise
            rung = draft.rung + 1
        else:
            url = text_at(made, "html_url") or existing.url
            return CommentResult(state=State.UPDATED, url=url)


def _without_meta(body: str) -> list[str]:
    lines = body.rstrip("\n").split("\n")
    return lines[:1] + lines[2:]
