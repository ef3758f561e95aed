"""Which pull request a run belongs to, and what its labels and its text say."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from pytest_perfgate.errors import GitHubError, NotFound, Rejected
from pytest_perfgate.github.client import Client
from pytest_perfgate.github.context import Context, Upstream
from pytest_perfgate.github.payload import text_at, whole_at

_WRITERS = frozenset({"admin", "maintain", "write"})
_REASON = re.compile(r"^[ \t]*Perf-Accept:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_LONGEST_REASON = 500

Pull = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPulls:
    """The open pull requests of a measured commit."""

    numbers: tuple[int, ...] = ()
    stale: tuple[int, ...] = ()
    """Those that have moved on to another commit meanwhile."""


def find_pulls(client: Client, context: Context, *, hint: str = "") -> FoundPulls:
    """Find the pull requests to comment on.

    Outside of `workflow_run` it is the event's. There each way is tried in turn
    and believed only where the commit is the one that was measured.

    Parameters
    ----------
    client, context : as of this job
    hint : a number found in the artifact, which is not trusted
    """
    upstream = context.upstream
    if upstream is None:
        return FoundPulls(numbers=(context.pr_number,) if context.pr_number else ())
    seen: dict[int, Pull] = {}
    for way in (_of_event, _of_branch, _of_commit):
        for pull in way(client, upstream):
            number = whole_at(pull, "number")
            if number is not None and _is_from(pull, upstream):
                seen.setdefault(number, pull)
        if any(_is_at(pull, upstream) for pull in seen.values()):
            return _sorted(seen, upstream)
    for pull in _of_hints(client, context.pr_hint, hint):
        number = whole_at(pull, "number")
        if number is not None and _is_from(pull, upstream) and _is_at(pull, upstream):
            seen.setdefault(number, pull)
    return _sorted(seen, upstream)


def _sorted(pulls: Mapping[int, Pull], upstream: Upstream) -> FoundPulls:
    return FoundPulls(
        numbers=tuple(n for n in sorted(pulls) if _is_at(pulls[n], upstream)),
        stale=tuple(n for n in sorted(pulls) if not _is_at(pulls[n], upstream)),
    )


def _is_at(pull: Pull, upstream: Upstream) -> bool:
    return text_at(pull, "head.sha") == upstream.head_sha != ""


def _is_from(pull: Pull, upstream: Upstream) -> bool:
    """Tell whether a pull request is open and comes from the measured repository."""
    head = whole_at(pull, "head.repo.id")
    same = head is not None and head == upstream.head_repository_id
    return same and text_at(pull, "state") in {"open", ""}


def _of_event(client: Client, upstream: Upstream) -> Iterator[Pull]:
    """Look up those that the event names; always none for a fork."""
    ours = f"/repos/{client.repository}".lower()
    for number, sha, base in upstream.pulls:
        if base.lower().endswith(ours) and sha == upstream.head_sha:
            yield from _lookup(client, number)


def _of_branch(client: Client, upstream: Upstream) -> Iterator[Pull]:
    if not (upstream.head_owner and upstream.head_branch):
        return
    head = f"{upstream.head_owner}:{upstream.head_branch}"
    yield from client.paginate("pulls", state="open", head=head)


def _of_commit(client: Client, upstream: Upstream) -> Iterator[Pull]:
    """Ask by the commit; servers differ in what they answer for a fork's."""
    try:
        yield from client.paginate(f"commits/{upstream.head_sha}/pulls")
    except (NotFound, Rejected):
        return


def _of_hints(client: Client, given: int | None, hint: str) -> Iterator[Pull]:
    if given is not None:
        yield from _lookup(client, given)
    if re.fullmatch(r"[0-9]{1,9}", hint) and int(hint):
        yield from _lookup(client, int(hint))


def _lookup(client: Client, number: int) -> Iterator[Pull]:
    try:
        pull = client.get(f"pulls/{number}")
    except NotFound:
        return
    if isinstance(pull, Mapping):
        yield pull


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What a label says about accepting a regression, as it is now."""

    label: str
    accepted: bool
    """The label is there, and who set it may write to the repository."""
    by: str = ""
    at: str = ""
    """ISO 8601, as the server tells it."""
    reason: str = ""
    """What follows `Perf-Accept:` in the pull request's text."""
    warning: str = ""
    """Why a label that is there does not count, or could not be looked up."""


def acceptance(client: Client, number: int, label: str) -> Acceptance:
    """Look up whether a pull request's regressions are accepted by a label.

    The labels of an event's payload are those of the first attempt; these are
    those of now. A label counts if whoever set it last has write or more. What
    cannot be looked up counts as absent, with a warning.

    Parameters
    ----------
    client : may be one that reads only
    number : of the pull request
    label : its name; empty disables the lookup
    """
    if not label:
        return Acceptance(label="", accepted=False)
    try:
        return _acceptance(client, number, label)
    except GitHubError as error:
        return Acceptance(
            label=label,
            accepted=False,
            warning=f"the label {label!r} could not be looked up and counts as "
            f"absent: {error}",
        )


def _acceptance(client: Client, number: int, label: str) -> Acceptance:
    labels = client.paginate(f"issues/{number}/labels")
    if not any(_same(text_at(one, "name"), label) for one in labels):
        return Acceptance(label=label, accepted=False)
    by, at = _set_by(client, number, label)
    if not by:
        warning = f"the label {label!r} does not count: nobody is known to have set it"
        return Acceptance(label=label, accepted=False, warning=warning)
    permission = _permission(client, by)
    if permission not in _WRITERS:
        return Acceptance(
            label=label,
            accepted=False,
            by=by,
            at=at,
            warning=f"the label {label!r} does not count: {by}, who set it, has the "
            f"permission {permission!r}, and it takes write",
        )
    pull = client.get(f"pulls/{number}")
    reason = accept_reason(text_at(pull, "body"))
    return Acceptance(label=label, accepted=True, by=by, at=at, reason=reason)


def _same(one: str, other: str) -> bool:
    return one.lower() == other.lower()  # GitHub's labels ignore case


def _set_by(client: Client, number: int, label: str) -> tuple[str, str]:
    """Return who set the label last, and when."""
    found = ("", "")
    for event in client.paginate(f"issues/{number}/events"):
        labelled = text_at(event, "event") == "labeled"
        if labelled and _same(text_at(event, "label.name"), label):
            found = text_at(event, "actor.login"), text_at(event, "created_at")
    return found


def _permission(client: Client, login: str) -> str:
    """Return what somebody may do: `role_name` knows maintain and triage apart."""
    answer = client.get(f"collaborators/{quote(login, safe='')}/permission")
    coarse = text_at(answer, "permission")
    return coarse if coarse in _WRITERS else text_at(answer, "role_name") or coarse


def accept_reason(body: str) -> str:
    """Return what follows `Perf-Accept:` in the text of a pull request, if anything."""
    found = _REASON.search(body.replace("\r\n", "\n"))
    return found[1][:_LONGEST_REASON] if found else ""
