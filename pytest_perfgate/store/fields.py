"""Typed access to parsed JSON that can say where a wrong value stands."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import NoReturn, TypeVar

from pytest_perfgate.errors import BaselineCorrupt

Json = dict[str, object]
Scalar = str | int | float | bool | None
E = TypeVar("E", bound=StrEnum)

_LONGEST_VALUE = 60
_LONGEST_CHOICE = 12


def parse(data: bytes | str) -> object:
    """Parse JSON text strictly.

    Raises
    ------
    BaselineCorrupt
        For text that is truncated or not JSON, a key that appears twice in one
        object, and the literals NaN and Infinity, which JSON does not have.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise BaselineCorrupt(_not_json(error)) from error
    except UnicodeDecodeError as error:
        raise BaselineCorrupt(f"not UTF-8 text at byte {error.start}") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise BaselineCorrupt(f"not readable as JSON ({error})") from error
    except RecursionError as error:
        raise BaselineCorrupt("nested too deep to be a file of this kind") from error


def _not_json(error: json.JSONDecodeError) -> str:
    if error.doc.startswith("<<<<<<< ") or "\n<<<<<<< " in error.doc:
        return "holds the marks of an unresolved merge (<<<<<<<)"
    text = error.doc.rstrip()
    if not text:
        return "the file is empty"
    # inside a string the error is where the string began, not where it ends
    cut = error.pos >= len(text) or not text.endswith("}")
    place = f"line {error.lineno} column {error.colno}"
    return f"{'truncated' if cut else 'not JSON'} at {place} ({error.msg})"


def _unique(pairs: list[tuple[str, object]]) -> Json:
    result = dict(pairs)
    if len(result) < len(pairs):
        counted = Counter([key for key, _ in pairs])
        twice = next(key for key, count in counted.items() if count > 1)
        raise BaselineCorrupt(f"the key {twice!r} appears twice in one object")
    return result


def _refuse_constant(literal: str) -> NoReturn:
    raise BaselineCorrupt(f"{literal} is not a number that JSON knows")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


class Node:
    """A parsed value and the path that leads to it.

    Every reader returns the value in its type or raises `BaselineCorrupt` with
    path, expectation and value. A long report has millions of them: hence no
    frozen dataclass, which is several times as slow to make, and a path that is
    written out only where something is refused.

    Parameters
    ----------
    parent : the object or array that this is a member of
    key : its key or index there; of a node without a parent its whole path
    """

    __slots__ = ("_key", "_parent", "value")

    def __init__(
        self, value: object, *, key: str | int = "", parent: "Node | None" = None
    ) -> None:
        self.value = value
        self._key = key
        self._parent = parent

    @property
    def path(self) -> str:
        if self._parent is None:
            return str(self._key)
        above, key = self._parent.path, self._key
        if isinstance(key, int):
            return f"{above}[{key}]"
        if not key.isidentifier():
            return f"{above}[{json.dumps(key)}]"
        return f"{above}.{key}" if above else key

    def corrupt(self, problem: str) -> BaselineCorrupt:
        return BaselineCorrupt(f"{self.path or 'top level'}: {problem}")

    def refuse(self, expected: str) -> BaselineCorrupt:
        return self.corrupt(f"expected {expected}, got {_shown(self.value)}")

    def at(self, key: str | int, value: object) -> "Node":
        """Return the node of a member or an element."""
        return Node(value, key=key, parent=self)

    def members(self) -> dict[str, "Node"]:
        """Return the members of an object whose keys are free."""
        if not isinstance(self.value, dict):
            raise self.refuse("an object")
        return {key: self.at(key, value) for key, value in self.value.items()}

    def fields(
        self, *required: str, optional: tuple[str, ...] = ()
    ) -> Mapping[str, "Node"]:
        """Return the members of an object whose keys are fixed."""
        members = self.members()
        for key in required:
            if key not in members:
                raise self.corrupt(f"the key {key!r} is missing")
        for key in members:
            if key not in required and key not in optional:
                known = ", ".join(sorted({*required, *optional}))
                raise self.corrupt(f"unknown key {key!r} (known here: {known})")
        return members

    def items(self) -> list["Node"]:
        if not isinstance(self.value, list):
            raise self.refuse("an array")
        return [self.at(index, value) for index, value in enumerate(self.value)]

    def string(self) -> str:
        if not isinstance(self.value, str):
            raise self.refuse("a string")
        return self.value

    def strings(self) -> tuple[str, ...]:
        return tuple(item.string() for item in self.items())

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.refuse("true or false")
        return self.value

    def integer(self, *, minimum: int | None = None) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.refuse("an integer")
        if minimum is not None and self.value < minimum:
            raise self.refuse(f"an integer of at least {minimum}")
        return self.value

    def number(
        self, *, above: float | None = None, minimum: float | None = None
    ) -> float:
        """Return a finite number as float, greater than `above`, at least `minimum`."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.refuse("a number")
        number = self._finite(self.value)
        if above is not None and number <= above:
            raise self.refuse(f"a number greater than {above:g}")
        if minimum is not None and number < minimum:
            raise self.refuse(f"a number of at least {minimum:g}")
        return number

    def _finite(self, value: float) -> float:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.refuse("a finite number")
        return number

    def numbers(self) -> tuple[float, ...]:
        return tuple(item.number() for item in self.items())

    def scalar(self) -> Scalar:
        """Return a string, number, truth value or null."""
        if isinstance(self.value, float):
            return self.number()
        if self.value is None or isinstance(self.value, str | int):
            return self.value
        raise self.refuse("a string, a number, true, false or null")

    def choice(self, kind: type[E]) -> E:
        """Return a member of a closed set."""
        text = self.string()
        try:
            return kind(text)
        except ValueError:
            known = " or ".join(repr(member.value) for member in kind)
            few = len(kind) <= _LONGEST_CHOICE
            expected = known if few else f"a {kind.__name__.lower()} that is known"
            raise self.refuse(expected) from None
