"""Where facts come from: the environment and the event of a GitHub Actions job."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_perfgate.errors import UsageError
from pytest_perfgate.github.payload import dig, text_at, whole_at
from pytest_perfgate.github.servers import addresses

PENDING, SKIPPED = "pending", "skipped"
"""Why there is no comment from here: another job will post it, or none will."""

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_SHA = re.compile(r"[0-9a-f]{7,64}")
_PULL_REF = re.compile(r"refs/pull/([0-9]{1,9})/")
_QUEUE_REF = re.compile(r"/pr-([0-9]{1,9})-[0-9a-f]{7,64}$")
_NUMBER = re.compile(r"[0-9]{1,9}")
_TARGET_FROM_FORK = (
    "pull_request_target runs with a write token, and this pull request comes from "
    "a fork: measuring would hand that token to its code; measure on `pull_request` "
    "and comment from `workflow_run`"
)
_WORKFLOW_RUN = (
    "workflow_run runs with the rights of the default branch, so nothing of a pull "
    "request is run here; measure in the workflow that it follows"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """The run that a `workflow_run` event tells of: the one that measured."""

    event: str
    conclusion: str
    repository: str
    run_id: int | None
    run_number: int | None
    run_attempt: int
    head_sha: str
    head_branch: str
    head_owner: str
    head_repository_id: int | None
    pulls: tuple[tuple[int, str, str], ...]
    """Number, head sha and base repository's URL of each that the event names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known of the job, its event and its pull request."""

    in_actions: bool
    event_name: str
    repository: str
    api_url: str
    server_url: str
    pr_number: int | None
    sha: str
    """The commit to show and to link: never the merge commit of a pull request."""
    base_ref: str
    head_repository: str
    """Empty where it is deleted or unknown."""
    head_ref: str
    is_fork: bool
    is_draft: bool
    run_id: int | None
    run_number: int | None
    run_attempt: int
    run_url: str
    may_comment: bool
    why_not: str
    """`pending` or `skipped`; empty where a comment may be made."""
    may_measure: bool
    why_not_measure: str
    queued_pr: int | None = None
    """In a merge group: the pull request to link to, never to write to."""
    pr_hint: int | None = None
    """In a `workflow_run`: a number given by hand, to be checked by its commit."""
    upstream: Upstream | None = None
    warnings: tuple[str, ...] = ()

    @property
    def pr_url(self) -> str:
        number = self.pr_number or self.queued_pr
        if not (number and self.repository):
            return ""
        return f"{self.server_url}/{self.repository}/pull/{number}"


@dataclass(slots=True, kw_only=True)
class _Facts:
    """What an event says; each kind of event fills in what it knows."""

    pr_number: int | None = None
    sha: str = ""
    base_ref: str = ""
    head_repository: str = ""
    head_ref: str = ""
    is_fork: bool = False
    is_draft: bool = False
    may_comment: bool = False
    why_not: str = SKIPPED
    why_not_measure: str = ""
    queued_pr: int | None = None
    pr_hint: int | None = None
    upstream: Upstream | None = None
    warnings: list[str] = field(default_factory=list)


def read_event(env: Mapping[str, str]) -> tuple[Mapping[str, object] | None, str]:
    """Read the payload of the event, or say what is wrong with it.

    Returns
    -------
    tuple
        The payload and an empty string; or None and the problem, which is empty
        outside of Actions, where there is no payload.
    """
    path = env.get("GITHUB_EVENT_PATH", "")
    if not path:
        told = "GITHUB_EVENT_PATH is not set" if _in_actions(env) else ""
        return None, told
    try:
        event = json.loads(Path(path).read_bytes())
    except OSError as error:
        return None, f"the event's file {path} cannot be read: {error.strerror}"
    except (ValueError, RecursionError):
        return None, f"the event's file {path} is not JSON"
    if not isinstance(event, dict):
        return None, f"the event's file {path} holds no JSON object"
    return event, ""


def resolve(
    env: Mapping[str, str],
    event: Mapping[str, object] | None,
    *,
    problem: str = "",
    pr_number: str = "",
) -> Context:
    """Work out the context of a job.

    Parameters
    ----------
    env : the job's environment variables
    event : the payload, None where there is none; see `read_event`
    problem : why there is no payload; becomes a warning
    pr_number : the pull request to comment on where the event has none, digits only

    Raises
    ------
    UsageError
        For a `pr_number` that is no number, and for an API address that belongs
        to another server.
    """
    override = parse_number(pr_number)
    name = env.get("GITHUB_EVENT_NAME", "")
    facts = _Facts()
    repository = _repository(env, event, facts)
    server_url, api_url = addresses(env)
    if problem:
        told = f"{problem}; going on with what the environment says"
        facts.warnings.append(told)
    if event is None:
        _without_payload(env, facts)
    else:
        _READERS.get(name, _other)(env, event, repository, facts)
    _override(override, facts, name)
    _warn_of_fork(env, facts)
    run_id = _digits(env.get("GITHUB_RUN_ID", ""))
    attempt = _digits(env.get("GITHUB_RUN_ATTEMPT", "")) or 1
    return Context(
        in_actions=_in_actions(env),
        event_name=name,
        repository=repository,
        api_url=api_url,
        server_url=server_url,
        pr_number=facts.pr_number,
        sha=facts.sha or _sha(env.get("GITHUB_SHA", "")),
        base_ref=facts.base_ref or env.get("GITHUB_BASE_REF", ""),
        head_repository=facts.head_repository,
        head_ref=facts.head_ref or env.get("GITHUB_HEAD_REF", ""),
        is_fork=facts.is_fork,
        is_draft=facts.is_draft,
        run_id=run_id,
        run_number=_digits(env.get("GITHUB_RUN_NUMBER", "")),
        run_attempt=attempt,
        run_url=_run_url(server_url, repository, run_id, attempt),
        may_comment=facts.may_comment,
        why_not="" if facts.may_comment else facts.why_not,
        may_measure=not facts.why_not_measure,
        why_not_measure=facts.why_not_measure,
        queued_pr=facts.queued_pr,
        pr_hint=facts.pr_hint,
        upstream=facts.upstream,
        warnings=tuple(facts.warnings),
    )


def parse_number(text: str) -> int | None:
    """Read the number of a pull request; None where the text is empty.

    Raises
    ------
    UsageError
        For anything but digits.
    """
    if not text:
        return None
    number = _digits(text)
    if number is None:
        raise UsageError(
            f"{text[:40]!r} is not the number of a pull request; write its digits "
            "alone, as in 123"
        )
    return number


def _in_actions(env: Mapping[str, str]) -> bool:
    return env.get("GITHUB_ACTIONS") == "true"


def _digits(text: str) -> int | None:
    return (int(text) or None) if re.fullmatch(r"[0-9]{1,18}", text) else None


def _sha(text: str) -> str:
    return text if _SHA.fullmatch(text) and text.strip("0") else ""


def _repository(
    env: Mapping[str, str], event: Mapping[str, object] | None, facts: _Facts
) -> str:
    name = env.get("GITHUB_REPOSITORY") or text_at(event, "repository.full_name")
    if not name or _REPOSITORY.fullmatch(name):
        return name
    facts.warnings.append(f"GITHUB_REPOSITORY={name[:80]!r} is not OWNER/NAME")
    return ""


def _run_url(server: str, repository: str, run_id: int | None, attempt: int) -> str:
    if not (run_id and repository):
        return ""
    return f"{server}/{repository}/actions/runs/{run_id}/attempts/{attempt}"


def _without_payload(env: Mapping[str, str], facts: _Facts) -> None:
    found = _PULL_REF.match(env.get("GITHUB_REF", ""))
    facts.pr_number = int(found[1]) or None if found else None
    facts.may_comment = facts.pr_number is not None
    if env.get("GITHUB_EVENT_NAME") == "pull_request_target":
        facts.why_not_measure = _TARGET_FROM_FORK  # it may be one: nobody can tell
    if env.get("GITHUB_EVENT_NAME") == "workflow_run":
        facts.why_not_measure = _WORKFLOW_RUN


def _pull_request(
    env: Mapping[str, str],
    event: Mapping[str, object],
    repository: str,
    facts: _Facts,
) -> None:
    pull = dig(event, "pull_request")
    facts.pr_number = whole_at(event, "number") or whole_at(pull, "number")
    facts.sha = _sha(text_at(pull, "head.sha"))
    facts.base_ref = text_at(pull, "base.ref")
    facts.head_ref = text_at(pull, "head.ref")
    facts.head_repository = text_at(pull, "head.repo.full_name")
    facts.is_draft = dig(pull, "draft") is True
    facts.is_fork = facts.head_repository.lower() != repository.lower()
    from_dependabot = env.get("GITHUB_ACTOR") == "dependabot[bot]"
    facts.may_comment = bool(
        facts.pr_number and not facts.is_fork and not from_dependabot
    )
    facts.why_not = PENDING if facts.pr_number else SKIPPED


def _pull_request_target(
    env: Mapping[str, str],
    event: Mapping[str, object],
    repository: str,
    facts: _Facts,
) -> None:
    _pull_request(env, event, repository, facts)
    facts.may_comment = facts.pr_number is not None
    if facts.is_fork:
        facts.why_not_measure = _TARGET_FROM_FORK


def _merge_group(
    _env: Mapping[str, str],
    event: Mapping[str, object],
    repository: str,
    facts: _Facts,
) -> None:
    head_ref = text_at(event, "merge_group.head_ref")
    found = _QUEUE_REF.search(head_ref)
    facts.queued_pr = int(found[1]) or None if found else None
    facts.sha = _sha(text_at(event, "merge_group.head_sha"))
    facts.head_ref, facts.head_repository = head_ref, repository
    base = text_at(event, "merge_group.base_ref")
    facts.base_ref = base.removeprefix("refs/heads/")


def _push(
    _env: Mapping[str, str],
    event: Mapping[str, object],
    repository: str,
    facts: _Facts,
) -> None:
    facts.sha = _sha(text_at(event, "after"))
    facts.head_repository = repository


def _other(
    _env: Mapping[str, str],
    _event: Mapping[str, object],
    repository: str,
    facts: _Facts,
) -> None:
    facts.head_repository = repository


def _workflow_run(
    _env: Mapping[str, str],
    event: Mapping[str, object],
    repository: str,
    facts: _Facts,
) -> None:
    upstream = _upstream(dig(event, "workflow_run"))
    facts.upstream = upstream
    facts.sha, facts.head_ref = upstream.head_sha, upstream.head_branch
    facts.head_repository = text_at(event, "workflow_run.head_repository.full_name")
    facts.is_fork = facts.head_repository.lower() != repository.lower()
    facts.why_not_measure = _WORKFLOW_RUN
    facts.may_comment = (
        upstream.event == "pull_request"
        and upstream.repository.lower() == repository.lower() != ""
        and bool(upstream.head_sha)
        and upstream.conclusion not in {"cancelled", "skipped"}
    )


def _upstream(run: object) -> Upstream:
    pulls = dig(run, "pull_requests")
    return Upstream(
        event=text_at(run, "event"),
        conclusion=text_at(run, "conclusion"),
        repository=text_at(run, "repository.full_name"),
        run_id=whole_at(run, "id"),
        run_number=whole_at(run, "run_number"),
        run_attempt=whole_at(run, "run_attempt") or 1,
        head_sha=_sha(text_at(run, "head_sha")),
        head_branch=text_at(run, "head_branch"),
        head_owner=text_at(run, "head_repository.owner.login"),
        head_repository_id=whole_at(run, "head_repository.id"),
        pulls=tuple(
            (number, text_at(pull, "head.sha"), text_at(pull, "base.repo.url"))
            for pull in (pulls if isinstance(pulls, list) else ())
            if (number := whole_at(pull, "number"))
        ),
    )


_READERS = {
    "pull_request": _pull_request,
    "pull_request_target": _pull_request_target,
    "workflow_run": _workflow_run,
    "merge_group": _merge_group,
    "push": _push,
}


def _override(number: int | None, facts: _Facts, name: str) -> None:
    if number is None:
        return
    if name == "workflow_run":
        facts.pr_hint = number
    elif name == "merge_group":
        facts.warnings.append(
            f"the pull request given by hand, {number}, is not used in a merge group"
        )
    elif facts.pr_number is None:
        facts.pr_number, facts.may_comment = number, True
    elif facts.pr_number != number:
        facts.warnings.append(
            f"the pull request given by hand, {number}, is not used: the event "
            f"belongs to {facts.pr_number}"
        )


def _warn_of_fork(env: Mapping[str, str], facts: _Facts) -> None:
    self_hosted = env.get("RUNNER_ENVIRONMENT") == "self-hosted"
    if facts.is_fork and self_hosted and facts.upstream is None:
        facts.warnings.append(
            "code from a fork runs on a self-hosted runner; see docs/github.md for "
            "what that takes"
        )
