"""Values of marker keywords that no option has: objects, not text."""

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measured import CACHES, FLUSH, HOT


def cache_of(given: Mapping[str, Any]) -> str:
    cache = given.get("cache", HOT)
    if cache not in CACHES:
        raise UsageError(f"cache={cache!r} is not one of {', '.join(CACHES)}")
    if cache == FLUSH and str(given.get("inner_loop", 1)) != "1":
        raise UsageError(
            f"cache={cache!r} and inner_loop={given['inner_loop']!r} exclude each "
            "other: only the first call of each sample would find the cache flushed; "
            "drop one"
        )
    if cache == FLUSH and given.get("hide_launch"):
        raise UsageError(
            f"cache={cache!r} and hide_launch=True exclude each other: a full queue, "
            "which is what launches are hidden in, has no room for a flush; drop one"
        )
    return str(cache)


def table_of(name: str, value: object) -> Mapping[str, str] | str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {str(key): str(text) for key, text in value.items()}
    raise UsageError(
        f"{name}={value!r} is neither a string nor a dict; "
        f'write {name}={{"median": "5%"}} or {name}="5%"'
    )


def names_of(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(str(name) for name in value)
    raise UsageError(f'metrics={value!r} is not a tuple of names, as in ("latency",)')


def flag_of(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{name}={value!r} is neither True nor False")
    return value
