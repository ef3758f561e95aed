"""The REST API of one repository: four verbs, patient within a budget."""

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from pytest_perfgate import __version__
from pytest_perfgate.errors import (
    BadAnswer,
    GitHubError,
    RateLimited,
    Unreachable,
    UsageError,
)
from pytest_perfgate.github.answers import Answer
from pytest_perfgate.github.payload import host_of, mappings, scheme_of, text_at

if TYPE_CHECKING:
    import requests

TIMEOUTS_S = (5, 30)
TRIES = 3
BUDGET_S = 180.0
_MOST_PAGES = 100
_PAGE = 100
_TOKEN = re.compile(r"[!-~]+")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_CHUNK = 65_536


class Client:
    """Speaks with one server about one repository.

    Reads and changes that can be repeated are tried again after an error of the
    server; a POST is not, for it may have been done. Waiting for a limit to pass
    has one budget for the client's whole life.

    Parameters
    ----------
    api_url : the API's address, without a final slash; may have a path
    token : never shown, logged, or sent to another host
    repository : OWNER/NAME
    session : a `requests.Session`; None makes one at the first request
    sleep, clock, jitter : the doors to time and chance

    Raises
    ------
    UsageError
        For an empty token, a token with other than printable characters, and a
        repository that is not OWNER/NAME; the token is not shown.
    """

    def __init__(  # noqa: PLR0913 (three of them are doors that only tests hand in)
        self,
        api_url: str,
        token: str,
        *,
        repository: str,
        session: "requests.Session | None" = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        token = token.strip()
        if not token:
            raise UsageError(
                "GITHUB_TOKEN is empty; hand the job's token over as "
                "`env: GITHUB_TOKEN: ${{ github.token }}`"
            )
        if not _TOKEN.fullmatch(token):
            raise UsageError("GITHUB_TOKEN holds characters that no token has")
        if not _REPOSITORY.fullmatch(repository):
            raise UsageError(f"the repository {repository[:80]!r} is not OWNER/NAME")
        self.api_url = api_url.rstrip("/")
        self.repository = repository
        self._token = token
        self._session = session
        self._sleep = sleep
        self._clock = clock
        self._jitter = jitter
        self._left_s = BUDGET_S

    def __repr__(self) -> str:
        return f"Client({self.api_url!r}, repository={self.repository!r})"

    def close(self) -> None:
        """Give up the connections."""
        if self._session is not None:
            self._session.close()

    @property
    def host(self) -> str:
        """The host that the token is sent to, and no other."""
        return urlsplit(self.api_url).netloc

    def get(self, path: str, **query: str | int) -> object:
        """Read what is at a path below the repository."""
        return self._json(self._ask("GET", self._url(path, query)))

    def post(self, path: str, body: Mapping[str, object]) -> object:
        """Create something; not tried again after an error of the server.

        Raises
        ------
        Unreachable
            Where it may or may not have been done: look before doing it again.
        """
        return self._json(self._ask("POST", self._url(path, {}), body=body))

    def patch(self, path: str, body: Mapping[str, object]) -> object:
        """Change something."""
        return self._json(self._ask("PATCH", self._url(path, {}), body=body))

    def paginate(
        self, path: str, *, key: str = "", **query: str | int
    ) -> Iterator[Mapping[str, object]]:
        """Read a list to its end, page after page as the server links them.

        Parameters
        ----------
        path : below the repository
        key : where the list is inside an object; empty where the answer is the list
        query : further parameters
        """
        url = self._url(path, {"per_page": _PAGE, **query})
        for _ in range(_MOST_PAGES):
            response = self._ask("GET", url)
            body = self._json(response)
            page = body.get(key) if key and isinstance(body, Mapping) else body
            if not isinstance(page, list):
                raise BadAnswer(f"GET {self._shown(url)}: the answer holds no list")
            yield from mappings(page)
            url = response.links.get("next", {}).get("url", "")
            if not url:
                return
            if not url.startswith(f"{self.api_url}/"):
                raise BadAnswer(
                    f"GET {path}: the next page is on another server, "
                    f"{host_of(url)!r}; it was not asked"
                )
        raise BadAnswer(f"GET {path}: more than {_MOST_PAGES} pages")

    def download(self, path: str, *, limit: int) -> bytes:
        """Read a file that the API may keep on another host.

        The token goes to the API alone: the address it sends us to is asked
        without.

        Parameters
        ----------
        path : below the repository
        limit : bytes; more is refused, by what is announced and by what comes

        Raises
        ------
        BadAnswer
            Where it is larger, or the way there leads elsewhere than to a server.
        """
        url = self._url(path, {})
        response = self._ask("GET", url, stream=True)
        for _ in range(3):
            place = response.headers.get("Location", "")
            if not (response.is_redirect and place):
                break
            response.close()
            response = self._elsewhere(place, url)
        else:
            raise BadAnswer(f"GET {path}: sent from one place to another, too often")
        with response, self._connected("GET", response.url):
            return _read(response, limit=limit, path=path)

    def _elsewhere(self, place: str, origin: str) -> "requests.Response":
        """Ask another host without the token; never in the clear if the API is not."""
        secure = scheme_of(origin) == "https"
        if scheme_of(place) not in ({"https"} if secure else {"https", "http"}):
            raise BadAnswer(
                f"GET {self._shown(origin)}: sent to an address that is not {'https' if secure else 'http'}"
            )
        return self._ask("GET", place, stream=True, anonymous=True)

    def login(self) -> str:
        """Return whose token this is; empty for a job's own, which may not ask."""
        try:
            answer = self._json(self._ask("GET", f"{self.api_url}/user"))
        except GitHubError:
            return ""
        return text_at(answer, "login")

    def pause(self, tries: int, error: GitHubError) -> None:
        """Rest before another try; raises the error where no time is left for it."""
        self._pause(tries, error)

    # one request ----------------------------------------------------------------

    def _ask(
        self,
        method: str,
        url: str,
        *,
        body: Mapping[str, object] | None = None,
        stream: bool = False,
        anonymous: bool = False,
    ) -> "requests.Response":
        for attempt in range(1, TRIES + 1):
            try:
                response = self._send(
                    method, url, body=body, stream=stream, anonymous=anonymous
                )
                if response.status_code < 400:
                    return response
                answer = self._answer(method, url, response)
                if answer.limited:
                    self._wait_out(answer, attempt)
                    continue
                error = answer.error()
            except Unreachable as unreachable:
                error = unreachable
            again = isinstance(error, Unreachable) and method != "POST"
            if not again or attempt == TRIES:
                raise error
            self._pause(attempt, error)
        raise AssertionError("every try returns, goes on, or raises")

    def _send(
        self,
        method: str,
        url: str,
        *,
        body: Mapping[str, object] | None,
        stream: bool,
        anonymous: bool,
    ) -> "requests.Response":
        import requests

        if self._session is None:
            self._session = requests.Session()
        with self._connected(method, url):
            return self._session.request(
                method,
                url,
                json=body,
                headers=_HEADERS,
                # a callable, or a netrc file of the runner would take its place
                auth=_nothing if anonymous else self._authorize,
                timeout=TIMEOUTS_S,
                allow_redirects=False,
                stream=stream,
            )

    @contextmanager
    def _connected(self, method: str, url: str) -> Iterator[None]:
        """Turn what `requests` raises into an error of ours."""
        import requests

        try:
            yield
        except requests.RequestException as error:
            kind = type(error).__name__
            raise Unreachable(
                f"{method} {self._shown(url)}: {kind}: {host_of(url)} did not answer; "
                "run the job again"
            ) from None  # its text has the whole address, with signatures

    def _authorize(
        self, request: "requests.PreparedRequest"
    ) -> "requests.PreparedRequest":
        if urlsplit(request.url or "").netloc == self.host:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request

    def _wait_out(self, answer: Answer, attempt: int) -> None:
        wait = answer.wait_s(self._clock())
        if attempt == TRIES or wait > self._left_s:
            raise RateLimited(
                f"{answer.error()}: it asks for {wait:,.0f} s of quiet, after "
                f"{attempt} of {TRIES} tries and with {self._left_s:,.0f} s left to "
                "wait in"
            )
        self._rest(wait)

    def _pause(self, tries: int, error: GitHubError) -> None:
        wait = 2.0**tries * (0.5 + self._jitter())
        if wait > self._left_s:
            raise error
        self._rest(wait)

    def _rest(self, wait: float) -> None:
        self._left_s -= wait
        self._sleep(wait)

    # words and addresses --------------------------------------------------------

    def _url(self, path: str, query: Mapping[str, str | int]) -> str:
        url = f"{self.api_url}/repos/{self.repository}/{path}"
        if not query:
            return url
        pairs = (
            f"{name}={quote(str(value), safe='')}" for name, value in query.items()
        )
        return f"{url}?{'&'.join(pairs)}"

    def _shown(self, url: str) -> str:
        """Return the path alone: a query can hold a signature."""
        path = urlsplit(url).path
        return path.removeprefix(urlsplit(self.api_url).path)

    def _answer(self, method: str, url: str, response: "requests.Response") -> Answer:
        with self._connected(method, url):
            content = response.content  # of a stream it is read only now
        try:
            body: object = json.loads(content)
        except (ValueError, RecursionError):
            body = None
        return Answer(
            asked=f"{method} {self._shown(url)}",
            host=urlsplit(url).netloc,
            status=response.status_code,
            headers=response.headers,
            body=body,
        )

    def _json(self, response: "requests.Response") -> object:
        asked = f"{response.request.method} {self._shown(response.url)}"
        if response.is_redirect:
            raise BadAnswer(
                f"{asked}: {response.status_code}, sent elsewhere; has the repository "
                f"{self.repository} moved?"
            )
        try:
            found: object = response.json()
        except (ValueError, RecursionError):
            raise BadAnswer(
                f"{asked}: {response.status_code} with something that is no JSON: a "
                f"proxy's or a login page? {self.api_url} is no API, as it seems"
            ) from None
        return found


_HEADERS = {
    "Accept": "application/vnd.github+json",
    "X-GitHub-Api-Version": "2022-11-28",
    "User-Agent": f"pytest-perfgate/{__version__}",
}


def _nothing(request: "requests.PreparedRequest") -> "requests.PreparedRequest":
    return request


def _read(response: "requests.Response", *, limit: int, path: str) -> bytes:
    announced = response.headers.get("Content-Length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise BadAnswer(f"GET {path}: {int(announced):,} bytes, above {limit:,}")
    found = bytearray()
    for chunk in response.iter_content(_CHUNK):
        found += chunk
        if len(found) > limit:
            raise BadAnswer(f"GET {path}: more than {limit:,} bytes")
    return bytes(found)
