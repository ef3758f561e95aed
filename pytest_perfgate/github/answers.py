"""What an answer of the server means, and the error it becomes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_perfgate.errors import (
    Forbidden,
    GitHubError,
    NotFound,
    RateLimited,
    ReadOnlyToken,
    Rejected,
    TooLong,
    Unauthorized,
    Unreachable,
)
from pytest_perfgate.github.payload import host_of, mappings, text_at

_LONGEST = 300
_LIMITED = re.compile(r"secondary rate limit|abuse|rate limit exceeded", re.IGNORECASE)
_READ_ONLY = re.compile(r"resource not accessible by", re.IGNORECASE)
_SSO = re.compile(r"saml", re.IGNORECASE)
_ALLOW_LIST = re.compile(r"ip (address|allow)", re.IGNORECASE)
_LOCKED = re.compile(r"\blocked\b", re.IGNORECASE)
_TOO_LONG = re.compile(r"too long|maximum is", re.IGNORECASE)
_ADDRESS = re.compile(r"url=(\S+)")
_USUAL_WAIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status that is no success, with what came along."""

    asked: str
    """Method and path, without host and query."""
    host: str
    status: int
    headers: Mapping[str, str]
    """As `requests` gives them: names in any case."""
    body: object

    @property
    def message(self) -> str:
        """The server's own words, on one line, errors of fields included."""
        errors = self.body.get("errors") if isinstance(self.body, Mapping) else None
        found = [text_at(self.body, "message")]
        found += [text_at(error, "message") for error in mappings(errors)]
        if isinstance(errors, list):
            found += [error for error in errors if isinstance(error, str)]
        told = "; ".join(dict.fromkeys(filter(None, found)))
        return " ".join(told.split())[:_LONGEST]

    @property
    def limited(self) -> bool:
        """Whether it was refused for asking too often."""
        if self.status == 429:
            return True
        if self.status != 403 or _READ_ONLY.search(self.message):
            return False
        return (
            "Retry-After" in self.headers
            or self.headers.get("x-ratelimit-remaining") == "0"
            or _LIMITED.search(self.message) is not None
        )

    def wait_s(self, now: float) -> float:
        """Give how long the server wants to be left alone, in seconds."""
        after = _number(self.headers.get("Retry-After"))
        if after is not None:
            return after
        reset = _number(self.headers.get("x-ratelimit-reset"))
        if reset is not None and self.headers.get("x-ratelimit-remaining") == "0":
            return max(0.0, reset - now)
        return _USUAL_WAIT_S

    def error(self) -> GitHubError:
        """Make the error that this answer is."""
        kind, advice = self._meaning()
        told = f"{self.asked}: {self.status} {self.message}".rstrip()
        facts = [f"request {request}" for request in (self._header("request-id"),)]
        facts = [fact for fact in facts if fact != "request "]
        needed = self.headers.get("X-Accepted-GitHub-Permissions", "")
        if needed and self.status in {403, 404}:
            facts.append(f"it takes the permissions {needed[:_LONGEST]}")
        if facts:
            told += f" ({'; '.join(facts)})"
        return kind(f"{told}; {advice}" if advice else told)

    def _header(self, name: str) -> str:
        return self.headers.get(f"x-github-{name}", "")[:64]

    def _meaning(self) -> tuple[type[GitHubError], str]:
        if self.limited:
            return RateLimited, "wait, and run the job again"
        if self.status == 401:
            return Unauthorized, (
                f"the token is no good on {self.host}: is `github-token` the one of "
                "this server, and not expired?"
            )
        if self.status == 403:
            return self._forbidden()
        if self.status >= 500:
            return Unreachable, "the server failed; run the job again"
        return self._refused()

    def _refused(self) -> tuple[type[GitHubError], str]:
        if self.status in {404, 410}:
            return NotFound, "it is gone, or the token cannot see it"
        if self.status in {413, 422} and _TOO_LONG.search(self.message):
            return TooLong, ""
        return Rejected, ""

    def _forbidden(self) -> tuple[type[GitHubError], str]:
        sso = self.headers.get("X-GitHub-SSO", "")
        if sso or _SSO.search(self.message):
            found = _ADDRESS.search(sso)
            host = host_of(found[1]) if found else ""
            where = f" at {host}" if host else ""
            return Forbidden, (
                f"the organisation wants the token authorised for SAML{where}: open "
                "the token's page, Configure SSO, or use the job's own token"
            )
        if _READ_ONLY.search(self.message):
            return ReadOnlyToken, (
                "the job's token reads only, as for forks and Dependabot; elsewhere "
                "give the job `permissions: pull-requests: write`"
            )
        if _ALLOW_LIST.search(self.message):
            return Forbidden, "the runner's address is not on the allow list"
        if _LOCKED.search(self.message):
            return Forbidden, "the conversation is locked: nobody can comment there"
        return Forbidden, ""


def _number(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"[0-9]{1,12}", text) else None
