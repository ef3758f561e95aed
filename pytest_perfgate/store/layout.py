"""JSON text whose lines stay where they are, so that a diff can be reviewed."""

import json
from collections.abc import Mapping

_DIGITS = 6
_WHOLE = 2.0**53
"""Below it every whole number has a float of its own."""
_encode = json.JSONEncoder(allow_nan=False).encode


def tidy(value: object) -> object:
    """Round every fraction in a tree to six significant digits.

    Whole numbers stay as they are, for counts and bytes are compared exactly.
    Doing it again changes nothing.
    """
    if isinstance(value, Mapping):
        return {key: tidy(member) for key, member in value.items()}
    if isinstance(value, list):
        return [tidy(item) for item in value]
    return _rounded(value) if isinstance(value, float) else value


def _rounded(value: float) -> float:
    rounded = value if _is_whole(value) else float(f"{value:.{_DIGITS}g}")
    return int(rounded) if _is_whole(rounded) else rounded


def _is_whole(value: float) -> bool:
    return value.is_integer() and abs(value) < _WHOLE


def lines_of(tree: object) -> str:
    """Write JSON: keys sorted, indent 2, an array of numbers on one line.

    Raises
    ------
    ValueError
        For NaN and infinite numbers, which JSON does not have.
    """
    return _block(tree, "") + "\n"


def _block(value: object, indent: str) -> str:
    if isinstance(value, dict) and value:
        members = [
            f"{_encode(key)}: {_inner(value[key], indent)}" for key in sorted(value)
        ]
        return _wrapped("{", members, "}", indent)
    if isinstance(value, list) and value and not _is_row(value):
        return _wrapped("[", [_inner(item, indent) for item in value], "]", indent)
    return _encode(value)


def _inner(value: object, indent: str) -> str:
    return _block(value, indent + "  ")


def _wrapped(opening: str, parts: list[str], closing: str, indent: str) -> str:
    body = ",\n".join(f"{indent}  {part}" for part in parts)
    return f"{opening}\n{body}\n{indent}{closing}"


def _is_row(value: object) -> bool:
    """Tell whether a value is a number, or an array with nothing but numbers in it."""
    if isinstance(value, list):
        return all(_is_row(item) for item in value)
    return isinstance(value, int | float)
