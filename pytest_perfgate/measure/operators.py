"""Counts the operators that a call dispatches, and leaves compiled code compiled."""

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_NOT_THE_USERS = frozenset({"profiler"})
_READS = frozenset(
    {
        "aten::_local_scalar_dense",  # item(), float(), bool(), an if on a tensor
        "aten::nonzero",
        "aten::masked_select",
        "aten::_unique2",
        "aten::unique_dim",
        "aten::unique_consecutive",
        "aten::equal",
        "aten::allclose",
        "aten::multinomial",
    }
)
"""On a GPU each of these waits for the device; what the host cannot know without
the values."""
_INDEXING = frozenset({"aten::index", "aten::index_put_", "aten::index_put"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched:
    """The operators of one call."""

    by_name: Mapping[str, int]
    reads: int
    """How many need values on the host: on a GPU each would wait for it."""

    @property
    def total(self) -> int:
        return sum(self.by_name.values())


def can_count() -> bool:
    """Whether counting leaves compiled code compiled.

    Under a mode without this method torch runs compiled functions eagerly from
    then on, and says nothing (seen with torch 2.13, also for its own modes).
    """
    mode = sys.modules["torch"].utils._python_dispatch.TorchDispatchMode  # noqa: SLF001 (its documented home)
    return "torch._dynamo" not in sys.modules or hasattr(
        mode, "ignore_compile_internals"
    )


def dispatched(call: Callable[[], object]) -> Dispatched:
    """Call once and count the leaf operators it dispatches."""
    from torch.utils._python_dispatch import TorchDispatchMode

    names: Counter[str] = Counter()
    reads = 0

    class Counting(TorchDispatchMode):  # type: ignore[misc]  # torch has no types here
        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # torch would import its compiler, for seconds, to keep it out of here
            return "torch._dynamo" in sys.modules

        def __torch_dispatch__(
            self,
            func: Any,  # noqa: ANN401 (an operator of torch)
            types: object,
            args: tuple[Any, ...] = (),
            kwargs: dict[str, Any] | None = None,
        ) -> object:
            del types
            nonlocal reads
            name = name_of(func)
            if name.partition("::")[0] not in _NOT_THE_USERS:
                names[name] += 1
                reads += name in _READS or (name in _INDEXING and _has_mask(args))
            return func(*args, **(kwargs or {}))

    with Counting():
        call()
    return Dispatched(by_name=dict(names), reads=reads)


def name_of(func: Any) -> str:  # noqa: ANN401 (an operator of torch)
    """Name an operator without its overload: `aten::addmm`."""
    schema = getattr(func, "_schema", None)
    return str(func) if schema is None else str(schema.name)


def _has_mask(args: tuple[Any, ...]) -> bool:
    """Whether it indexes by truth values, of which the true ones must be counted."""
    indices = args[1] if len(args) > 1 else ()
    return any(
        str(getattr(index, "dtype", "")) in {"torch.bool", "torch.uint8"}
        for index in indices
        if index is not None
    )
