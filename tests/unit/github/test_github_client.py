"""Each answer of the server means one thing, and the token stays where it belongs."""

import logging

import pytest
import requests
from pytest_httpserver import HTTPServer

from pytest_perfgate.errors import (
    BadAnswer,
    Forbidden,
    GitHubError,
    NotFound,
    RateLimited,
    ReadOnlyToken,
    Rejected,
    TooLong,
    Unauthorized,
    Unreachable,
    UsageError,
)
from pytest_perfgate.github.client import Client

TOKEN = "ghs_0123456789abcdefghijklmnopqrstuvwxyz"  # noqa: S105 (the fixture's, nobody's)


def test_addresses_are_joined_below_the_prefix(make_client, github):
    github.things["pulls/7"] = {"number": 7}
    client = make_client(url=f"{github.url}/")
    assert client.get("pulls/7") == {"number": 7}
    (call,) = github.calls
    assert call.headers["Authorization"] == f"Bearer {TOKEN}"
    assert call.headers["Accept"] == "application/vnd.github+json"
    assert call.headers["X-Github-Api-Version"] == "2022-11-28"
    assert call.headers["User-Agent"].startswith("pytest-perfgate/")


def test_a_query_is_encoded(client, github):
    github.things["pulls"] = []
    assert list(client.paginate("pulls", head="ada:a/b&c=d ü")) == []
    assert github.calls[0].query == {"per_page": "100", "head": "ada:a/b&c=d ü"}


def test_pages_are_followed_to_the_end(client, github):
    github.page = 2
    github.things["things"] = [{"n": n} for n in range(5)]
    assert [one["n"] for one in client.paginate("things")] == [0, 1, 2, 3, 4]
    assert len(github.calls) == 3


def test_a_page_elsewhere_is_not_asked(client, github):
    link = '<https://evil.example/x>; rel="next"'
    github.refuse("GET", "things", 200, [{"n": 1}], Link=link)
    with pytest.raises(BadAnswer, match=r"another server, 'evil\.example'"):
        list(client.paginate("things"))
    assert len(github.calls) == 1


def test_a_list_that_is_none(client, github):
    github.things["things"] = {"message": "hello"}
    with pytest.raises(BadAnswer, match="holds no list"):
        list(client.paginate("things"))


def test_pages_without_end(client, github, monkeypatch):
    monkeypatch.setattr("pytest_perfgate.github.client._MOST_PAGES", 3)
    github.page = 1
    github.things["things"] = [{}] * 9
    with pytest.raises(BadAnswer, match="more than 3 pages"):
        list(client.paginate("things"))


ANSWERS = [
    # status, body, headers, error, words in its message
    (401, {"message": "Bad credentials"}, {}, Unauthorized, ["github-token", "no good on localhost"]),
    (
        403,
        {"message": "Resource not accessible by integration"},
        {"X_Accepted_GitHub_Permissions": "issues=write; pull_requests=write"},
        ReadOnlyToken,
        ["pull-requests: write", "issues=write; pull_requests=write"],
    ),
    (
        403,
        {"message": "Resource protected by organization SAML enforcement."},
        {"X_GitHub_SSO": "required; url=https://sso.acme.io/authorize?secret=1"},
        Forbidden,
        ["sso.acme.io", "SAML", "authorised"],
    ),
    (403, {"message": "Although you appear to have the correct authorization credentials, the IP address is not permitted"}, {}, Forbidden, ["allow list"]),
    (403, {"message": "Unable to create comment because issue is locked."}, {}, Forbidden, ["is locked"]),
    (403, {"message": "Nope"}, {}, Forbidden, ["Nope"]),
    (404, {"message": "Not Found"}, {}, NotFound, ["cannot see it"]),
    (410, {"message": "Issues are disabled"}, {}, NotFound, ["Issues are disabled"]),
    (422, {"message": "Validation Failed", "errors": [{"message": "Body is too long (maximum is 65536 characters)"}]}, {}, TooLong, ["maximum is 65536"]),
    (422, {"message": "Validation Failed", "errors": [{"message": "No commit found"}, "and more"]}, {}, Rejected, ["No commit found", "and more"]),
    (400, {"message": "Problems parsing JSON"}, {}, Rejected, ["Problems parsing JSON"]),
    (409, None, {}, Rejected, ["409"]),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "headers", "error", "words"), ANSWERS)
def test_what_an_answer_means(
    client, github, slept, status, body, headers, error, words
):
    headers = {**headers, "X_GitHub_Request_Id": "AB12:34"}
    github.refuse("POST", "comments", status, body, **headers)
    with pytest.raises(GitHubError) as caught:
        client.post("issues/7/comments", {"body": "x"})
    assert type(caught.value) is error
    told = str(caught.value)
    assert f"POST /repos/acme/kernels/issues/7/comments: {status}" in told
    assert "AB12:34" in told
    for word in words:
        assert word in told
    assert "secret=1" not in told
    assert slept == []
    assert len(github.calls) == 1


LIMITS = [
    # status, message, headers, seconds waited; the clock stands at 1,000,000
    (429, "slow down", {"Retry_After": "7"}, 7),
    (429, "slow down", {}, 60),
    (403, "You have exceeded a secondary rate limit.", {}, 60),
    (403, "abuse detection", {"Retry_After": "3"}, 3),
    (
        403,
        "You have exceeded a secondary rate limit.",
        {"x_ratelimit_remaining": "900", "x_ratelimit_reset": "1000100"},
        60,
    ),
    (
        403,
        "API rate limit exceeded",
        {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "1000100"},
        100,
    ),
    (
        403,
        "API rate limit exceeded",
        {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "999990"},
        0,
    ),
]


@pytest.mark.parametrize(("status", "message", "headers", "waited"), LIMITS)
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_limit_is_waited_out(
    client, github, slept, status, message, headers, waited, method
):
    github.refuse(method.upper(), "comments", status, {"message": message}, **headers)
    given = ({"body": "x"},) if method == "post" else ()
    getattr(client, method)("issues/7/comments", *given)
    assert slept == [waited]
    assert len(github.calls) == 2


def test_a_wait_beyond_the_budget_is_given_up(client, github, slept):
    github.refuse("GET", "pulls", 429, {"message": "slow"}, Retry_After="3600")
    with pytest.raises(RateLimited, match=r"3,600 s of quiet.*180 s left"):
        client.get("pulls/7")
    assert slept == []
    assert len(github.calls) == 1


def test_the_budget_is_one_for_all_calls(client, github, slept):
    github.things["pulls/7"] = {}
    for wait in ("90", "80"):
        github.refuse("GET", "pulls", 429, None, Retry_After=wait)
        client.get("pulls/7")
    github.refuse("GET", "pulls", 429, None, Retry_After="11")
    with pytest.raises(RateLimited, match="10 s left"):
        client.get("pulls/7")
    assert slept == [90, 80]


def test_three_tries_and_no_more(client, github, slept):
    for _ in range(5):
        github.refuse("GET", "pulls", 429, None, Retry_After="1")
    with pytest.raises(RateLimited, match="3 of 3 tries"):
        client.get("pulls/7")
    assert slept == [1, 1]


@pytest.mark.parametrize("method", ["get", "patch"])
def test_an_error_of_the_server_is_tried_again(client, github, slept, method):
    number = github.comment("old")
    github.things[f"issues/comments/{number}"] = {}
    for _ in range(2):
        github.refuse(method.upper(), "comments", 502, "<html>")
    given = ({"body": "x"},) if method == "patch" else ()
    getattr(client, method)(f"issues/comments/{number}", *given)
    assert slept == [2.0, 4.0]


def test_a_post_is_not_tried_again(client, github, slept):
    github.refuse("POST", "comments", 503, {"message": "down"})
    with pytest.raises(Unreachable, match="503 down"):
        client.post("issues/7/comments", {"body": "x"})
    assert (slept, len(github.calls)) == ([], 1)


def test_a_server_that_stays_down(client, github):
    for _ in range(3):
        github.refuse("GET", "pulls", 500, None)
    with pytest.raises(Unreachable):
        client.get("pulls/7")
    assert len(github.calls) == 3


class Broken:
    """A session whose connections break, with the whole address in the text."""

    def __init__(self, error=requests.ConnectionError):
        self.tries = 0
        self.error = error

    def request(self, method, url, **given):
        self.tries += 1
        raise self.error(f"{method} {url} {given['auth']}")

    def close(self):
        pass


@pytest.mark.parametrize("error", [requests.ConnectionError, requests.ReadTimeout])
def test_a_broken_connection_is_told_without_its_address(make_client, error):
    broken = Broken(error)
    client = make_client(url="https://ghes.test/api/v3", session=broken)
    with pytest.raises(Unreachable) as caught:
        client.get("pulls/7", secret="hidden")  # noqa: S106 (nobody's)
    assert broken.tries == 3
    assert "ghes.test did not answer" in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("status", [200, 201])
def test_a_login_page_is_no_answer(client, github, status):
    github.refuse("GET", "pulls", status, "<html>please log in</html>")
    with pytest.raises(BadAnswer, match=r"no JSON.*is no API"):
        client.get("pulls/7")


def test_a_repository_that_moved_is_told(client, github):
    github.refuse("GET", "pulls", 301, {"message": "Moved"}, Location="/elsewhere")
    with pytest.raises(BadAnswer, match="has the repository acme/kernels moved"):
        client.get("pulls/7")


# the token --------------------------------------------------------------------


def test_the_token_is_shown_nowhere(client, github, caplog):
    caplog.set_level(logging.DEBUG)
    github.refuse("GET", "pulls", 401, {"message": "Bad credentials"})
    with pytest.raises(Unauthorized) as caught:
        client.get("pulls/7")
    assert TOKEN not in repr(client) + str(client) + str(caught.value) + caplog.text


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("ab\ncd", "no token has"),
        ("ü", "no token"),
    ],
)
def test_a_token_that_is_none_is_refused_and_not_shown(token, words):
    with pytest.raises(UsageError, match=words) as caught:
        Client("https://api.test", token, repository="a/b")
    assert "cd" not in str(caught.value).replace("hand", "")


def test_a_newline_at_its_end_is_forgiven(make_client, github):
    github.things["pulls/7"] = {}
    make_client(token=f"{TOKEN}\n").get("pulls/7")
    assert github.calls[0].headers["Authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("repository", ["", "acme", "acme/../x", "a/b?c", "a/b/c"])
def test_a_repository_is_owner_and_name(repository):
    with pytest.raises(UsageError, match="is not OWNER/NAME"):
        Client("https://api.test", "x", repository=repository)


def test_a_netrc_file_does_not_replace_the_token(
    make_client, github, tmp_path, monkeypatch
):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1\nlogin eve\npassword secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    github.things["pulls/7"] = {}
    make_client().get("pulls/7")
    assert github.calls[0].headers["Authorization"] == f"Bearer {TOKEN}"


# downloads --------------------------------------------------------------------


@pytest.fixture
def blobs():
    """Another host, which must not see the token."""
    with HTTPServer() as server:
        yield server


def test_a_download_follows_without_the_token(client, github, blobs):
    place = blobs.url_for("/blob?sig=secret")
    blobs.expect_request("/blob").respond_with_data(b"zip")
    github.refuse("GET", "zip", 302, "", Location=place)
    assert client.download("actions/artifacts/1/zip", limit=10) == b"zip"
    ((request, _),) = blobs.log
    assert "Authorization" not in request.headers
    assert "Authorization" in github.calls[0].headers


def test_a_download_that_fails_elsewhere_keeps_the_signature_to_itself(
    client, github, blobs
):
    place = blobs.url_for("/blob?sig=secret")
    blobs.expect_request("/blob").respond_with_data("expired", status=403)
    github.refuse("GET", "zip", 302, "", Location=place)
    with pytest.raises(Forbidden) as caught:
        client.download("actions/artifacts/1/zip", limit=10)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("announced", [True, False])
def test_a_download_is_bounded_by_what_is_said_and_by_what_comes(
    client, github, announced
):
    from werkzeug import Response

    body = b"x" * 200_000
    data = body if announced else iter([body])
    github.things["actions/artifacts/1/zip"] = Response(data, status=200)
    with pytest.raises(BadAnswer, match=r"200,000 bytes|more than 1,000 bytes"):
        client.download("actions/artifacts/1/zip", limit=1_000)


def test_a_download_without_end(client, github):
    for _ in range(9):
        github.refuse("GET", "zip", 302, "", Location=f"{github.url}/zip")
    with pytest.raises(BadAnswer, match="too often"):
        client.download("actions/artifacts/1/zip", limit=10)


@pytest.mark.parametrize("place", ["ftp://evil.example/x", "file:///etc/passwd", "/x"])
def test_a_download_goes_to_servers_only(client, github, place):
    github.refuse("GET", "zip", 302, "", Location=place)
    with pytest.raises(BadAnswer, match="that is not http"):
        client.download("actions/artifacts/1/zip", limit=10)


class Torn:
    """A body whose connection breaks in the middle."""

    def read(self, *_, **__):
        raise requests.ConnectionError("https://blobs.test/x?sig=secret")

    stream = read


class Tearing:
    """A session whose answers break while they are read."""

    def __init__(self, status):
        self.status = status

    def request(self, method, url, **given):
        response = requests.Response()
        response.status_code, response.url = self.status, url
        response.raw = Torn()
        response.raw.close = response.raw.release_conn = lambda: None
        return response

    def close(self):
        pass


@pytest.mark.parametrize("status", [200, 403])
def test_a_connection_that_breaks_while_reading_is_told(make_client, status):
    client = make_client(url="https://ghes.test", session=Tearing(status))
    with pytest.raises(Unreachable, match="did not answer") as caught:
        client.download("x/zip", limit=10)
    assert "secret" not in str(caught.value)


def test_an_address_that_is_none(client, github):
    told = "required; url=http://[bad"
    github.refuse("GET", "pulls", 403, {"message": "SAML"}, X_GitHub_SSO=told)
    with pytest.raises(Forbidden, match="SAML"):
        client.get("pulls/7")


class Redirecting:
    """A session that sends everybody on to another address."""

    def __init__(self, place):
        self.place = place

    def request(self, method, url, **given):
        response = requests.Response()
        response.status_code, response.url = 302, url
        response.headers["Location"] = self.place
        response._content, response._content_consumed = b"", True
        response.request = requests.Request(method, url).prepare()
        return response

    def close(self):
        pass


@pytest.mark.parametrize(
    "place", ["http://blobs.test/x", "http://[bad", "https://[", "x"]
)
def test_a_download_does_not_leave_tls(make_client, place):
    client = make_client(url="https://ghes.test", session=Redirecting(place))
    with pytest.raises(BadAnswer, match="that is not https"):
        client.download("x/zip", limit=10)


def test_requests_is_not_imported_before_it_is_needed():
    import subprocess
    import sys

    program = (
        "import sys; from pytest_perfgate.cli import main; "
        "from pytest_perfgate.github.client import Client; "
        "Client('https://x', 't', repository='a/b'); "
        "sys.exit('requests' in sys.modules or 'jinja2' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
