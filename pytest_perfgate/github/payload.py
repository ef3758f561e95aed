"""Reading foreign JSON: whatever is not as expected is simply not there."""

from collections.abc import Mapping
from urllib.parse import urlsplit


def dig(value: object, path: str) -> object:
    """Follow a dotted path through mappings; None where it leads nowhere."""
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def text_at(value: object, path: str) -> str:
    """Return the string at a path, else an empty one."""
    found = dig(value, path)
    return found if isinstance(found, str) else ""


def whole_at(value: object, path: str) -> int | None:
    """Return the positive whole number at a path, else None."""
    found = dig(value, path)
    if isinstance(found, bool) or not isinstance(found, int) or found <= 0:
        return None
    return found


def mappings(value: object) -> tuple[Mapping[str, object], ...]:
    """Return those members of a list that are objects."""
    if not isinstance(value, list):
        return ()
    return tuple(item for item in value if isinstance(item, Mapping))


def host_of(url: str) -> str:
    """Return the host and port of an address; empty where it is none."""
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def scheme_of(url: str) -> str:
    """Return the scheme of an address; empty where it is none."""
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""
