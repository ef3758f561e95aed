"""GitHub in this process: it keeps comments, counts pages and refuses on demand."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from werkzeug import Response

from pytest_perfgate.github.client import Client
from pytest_perfgate.github.context import read_event, resolve

EVENTS = Path(__file__).parents[2] / "data" / "events"
REPOSITORY = "acme/kernels"
TOKEN = "ghs_0123456789abcdefghijklmnopqrstuvwxyz"  # noqa: S105 (nobody's)
MERGE = "5" * 40
LIMIT = 65_536


@dataclass(kw_only=True)
class Call:
    method: str
    path: str
    query: dict
    headers: dict
    body: object


@dataclass
class FakeGitHub:
    """What the server has, what it was asked, and what it will refuse."""

    url: str
    page: int = 100
    limit: int = LIMIT
    comments: list = field(default_factory=list)
    things: dict = field(default_factory=lambda: {"issues/7/labels": []})
    """Answers by path below the repository; a list is given in pages."""
    scripted: list = field(default_factory=list)
    """One-off answers: (method, part of the path, status, body, headers)."""
    calls: list = field(default_factory=list)
    author: dict = field(
        default_factory=lambda: {"login": "github-actions[bot]", "type": "Bot"}
    )
    drop_after: int = 0
    """How many writes are done and then answered with an error."""

    def refuse(self, method, part, status, body=None, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.scripted.append((method, part, status, body, named))

    def comment(self, body, *, user=None, number=None, issue=7):
        number = number or 1000 + len(self.comments)
        self.comments.append(
            {
                "issue": issue,
                "id": number,
                "body": body,
                "user": user or self.author,
                "html_url": f"https://github.test/c/{number}",
            }
        )
        return number

    def asked(self, method=None):
        return [
            f"{call.method} {call.path}"
            for call in self.calls
            if method is None or call.method == method
        ]

    def writes(self):
        return [call for call in self.calls if call.method in {"POST", "PATCH"}]

    def __call__(self, request):
        prefix = f"/api/v3/repos/{REPOSITORY}/"
        path = request.path
        assert "//" not in path
        inside = path.removeprefix(prefix) if path.startswith(prefix) else path
        body = json.loads(request.data) if request.data else None
        self.calls.append(
            Call(
                method=request.method,
                path=inside,
                query=dict(parse_qsl(request.query_string.decode())),
                headers=dict(request.headers),
                body=body,
            )
        )
        for index, (method, part, status, answer, headers) in enumerate(self.scripted):
            if method == request.method and part in inside:
                del self.scripted[index]
                return self.answer(answer, status, headers)
        return self.route(request, inside, body)

    def answer(self, body, status=200, headers=None):
        if isinstance(body, bytes | str):
            return Response(body, status=status, headers=headers or {})
        text = json.dumps(body if body is not None else {"message": "no"})
        return Response(
            text,
            status=status,
            headers=headers or {},
            content_type="application/json",
        )

    def route(self, request, path, body):
        issue = re.fullmatch(r"issues/(\d+)/comments", path)
        if issue:
            number = int(issue[1])
            if request.method == "POST":
                return self.write(None, body, issue=number)
            there = [one for one in self.comments if one["issue"] == number]
            return self.paged(request, there)
        found = re.fullmatch(r"issues/comments/(\d+)", path)
        if found and request.method == "PATCH":
            return self.write(int(found[1]), body)
        thing = self.things.get(path) if request.method == "GET" else None
        if thing is None:
            return self.answer({"message": "Not Found"}, 404)
        return self.thing(request, thing)

    def thing(self, request, thing):
        if isinstance(thing, list):
            return self.paged(request, thing)
        if isinstance(thing, dict) and "artifacts" in thing:
            return self.paged(request, thing["artifacts"], key="artifacts")
        return thing if isinstance(thing, Response) else self.answer(thing)

    def paged(self, request, items, key=""):
        number = int(request.args.get("page", 1))
        start = (number - 1) * self.page
        headers = {}
        if start + self.page < len(items):
            split = urlsplit(request.url)
            address = f"{self.url}{split.path.removeprefix('/api/v3')}"
            headers["Link"] = f'<{address}?page={number + 1}>; rel="next"'
        page = items[start : start + self.page]
        return self.answer({key: page} if key else page, headers=headers)

    def write(self, number, body, *, issue=7):
        text = body["body"]
        if len(text.encode("utf-16-le")) // 2 > self.limit:
            told = {
                "message": "Validation Failed",
                "errors": [
                    {
                        "message": f"Body is too long (maximum is {self.limit} characters)"
                    }
                ],
            }
            return self.answer(told, 422)
        if number is None:
            number, status = self.comment(text, issue=issue), 201
        else:
            known = [one for one in self.comments if one["id"] == number]
            if not known:
                return self.answer({"message": "Not Found"}, 404)
            known[0]["body"], status = text, 200
        if self.drop_after:
            self.drop_after -= 1
            return self.answer("<html>bad gateway</html>", 502)
        done = next(one for one in self.comments if one["id"] == number)
        return self.answer(done, status)


@pytest.fixture
def github(httpserver):
    fake = FakeGitHub(url=httpserver.url_for("/api/v3"))
    httpserver.expect_request(re.compile(r".*")).respond_with_handler(fake)
    yield fake
    httpserver.check_assertions()


@pytest.fixture
def slept():
    """How long the client rested, each time."""
    return []


@pytest.fixture
def make_client(github, slept):
    made = []

    def make(url=None, token=TOKEN, **changes):
        client = Client(
            url or github.url,
            token,
            repository=REPOSITORY,
            sleep=slept.append,
            clock=lambda: 1_000_000.0,
            jitter=lambda: 0.5,
            **changes,
        )
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(make_client):
    return make_client()


@pytest.fixture
def make_env():
    """Make the environment of a job whose event's payload is a file of ours."""

    def make(name="pull_request", payload=None, **changes):
        env = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(EVENTS / f"{payload or name}.json"),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_API_URL": "https://api.github.com",
            "GITHUB_SHA": MERGE,
            "GITHUB_RUN_ID": "9002",
            "GITHUB_RUN_NUMBER": "43",
            "GITHUB_RUN_ATTEMPT": "2",
            "GITHUB_ACTOR": "ada",
        }
        merged = env | changes
        return {key: value for key, value in merged.items() if value is not None}

    return make


@pytest.fixture
def make_context(make_env):
    def make(name="pull_request", payload=None, pr_number="", **changes):
        env = make_env(name, payload, **changes)
        event, problem = read_event(env)
        return resolve(env, event, problem=problem, pr_number=pr_number)

    return make
