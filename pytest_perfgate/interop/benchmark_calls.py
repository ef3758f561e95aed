"""Reaches the calls that pytest-benchmark makes, and makes one like them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, TypeAlias

Foreign: TypeAlias = Any
"""An object of pytest-benchmark, or what is handed through to a call."""
Prepare: TypeAlias = Callable[[], AbstractContextManager[Callable[[], object]]]
"""Gives the function to be called once more, its set-up made anew."""


def wrap_calls(
    fixture: Foreign, name: str, stretch: Callable[[], Callable[[], None]]
) -> None:
    """Have something done before each call within a round, and after it."""
    make_runner = getattr(fixture, name)

    def make(
        function: Callable[..., object], *rest: Foreign, **others: Foreign
    ) -> object:
        def call(*args: Foreign, **kwargs: Foreign) -> object:
            done = stretch()
            result = function(*args, **kwargs)
            done()
            return result

        return make_runner(call, *rest, **others)

    setattr(fixture, name, make)


def do_after(
    fixture: Foreign,
    name: str,
    door: Callable[[Prepare], None] | None,
    again: Callable[..., Prepare],
) -> None:
    """Have something done at the end of one of its ways to measure."""
    if door is None:
        return
    raw = getattr(fixture, name)

    def measure(
        function: Callable[..., object], /, *args: Foreign, **kwargs: Foreign
    ) -> object:
        result = raw(function, *args, **kwargs)
        door(again(function, *args, **kwargs))
        return result

    setattr(fixture, name, measure)


def call_of(
    function: Callable[..., object], /, *args: Foreign, **kwargs: Foreign
) -> Prepare:
    """Call as `benchmark(fn)` does."""
    return lambda: nullcontext(partial(function, *args, **kwargs))


def pedantic_call_of(
    function: Callable[..., object],
    /,
    args: Sequence[Foreign] = (),
    kwargs: Mapping[str, Foreign] | None = None,
    setup: Callable[[], Foreign] | None = None,
    teardown: Callable[..., object] | None = None,
    **how_many: object,
) -> Prepare:
    """Call as a round does: the set-up before it, the tear-down after it."""
    del how_many

    @contextmanager
    def prepare() -> Iterator[Callable[[], object]]:
        given = setup() if setup is not None else None
        own_args, own_kwargs = given or (args, kwargs or {})
        yield partial(function, *own_args, **own_kwargs)
        if teardown is not None:
            teardown(*own_args, **own_kwargs)

    return prepare
