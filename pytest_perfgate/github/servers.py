"""Which API belongs to which server: a token is for one of them alone."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from pytest_perfgate.errors import UsageError

PUBLIC_SERVER, PUBLIC_API = "https://github.com", "https://api.github.com"


def addresses(env: Mapping[str, str]) -> tuple[str, str]:
    """Return the addresses of the web server and of its API, without a final slash.

    The public API is never assumed for another server: that would send an
    enterprise's token out of the house.

    Raises
    ------
    UsageError
        Where the API is the public one and the server is not.
    """
    server = (env.get("GITHUB_SERVER_URL") or PUBLIC_SERVER).rstrip("/")
    api = env.get("GITHUB_API_URL", "").rstrip("/") or _api_of(server)
    public = urlsplit(api).hostname == "api.github.com"
    if public and urlsplit(server).hostname != "github.com":
        raise UsageError(
            f"GITHUB_API_URL={api} does not belong to GITHUB_SERVER_URL={server}: its "
            f"token would leave the house; set GITHUB_API_URL, to {_api_of(server)} say"
        )
    return server, api


def _api_of(server: str) -> str:
    parts = urlsplit(server)
    if parts.hostname == "github.com":
        return PUBLIC_API
    if (parts.hostname or "").endswith(".ghe.com"):
        return f"{parts.scheme}://api.{parts.netloc}"
    return f"{server}/api/v3"
