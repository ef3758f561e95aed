"""Counts the operators that a call dispatches, and leaves compiled code compiled."""

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_perfgate.measure.flops import Flops

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
        "aten::bincount",
        "aten::_coalesce",
        "aten::_linalg_check_errors",
    }
)
"""On a GPU each of these waits for the device: the host needs the values."""
_INDEXING = frozenset({"aten::index", "aten::index_put_", "aten::index_put"})


@dataclass(slots=True, kw_only=True)
class Dispatched:
    """The operators of one call; it fills while they are dispatched."""

    by_name: Counter[str] = field(default_factory=Counter)
    reads: int = 0
    """How many need values on the host: on a GPU each would wait for it."""
    flops: Flops = field(default_factory=Flops)

    @property
    def total(self) -> int:
        return sum(self.by_name.values())


def can_count() -> bool:
    """Whether counting leaves compiled code compiled.

    Under a mode without this method torch runs compiled functions eagerly from
    then on, and says nothing (seen with torch 2.13, also for its own modes).
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    compiles = "torch._dynamo" in sys.modules
    return not compiles or hasattr(TorchDispatchMode, "ignore_compile_internals")


def dispatched(call: Callable[[], object]) -> Dispatched:
    """Call once and count the innermost operators it dispatches."""
    with dispatching() as found:
        call()
    return found


@contextlib.contextmanager
def dispatching() -> Iterator[Dispatched]:
    """Count the innermost operators that are dispatched meanwhile."""
    from torch._ops import OpOverload
    from torch.utils._python_dispatch import TorchDispatchMode

    found = Dispatched()

    class Counting(TorchDispatchMode):  # type: ignore[misc]  # torch has no types here
        supports_higher_order_operators = True

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
            named = kwargs or {}
            if isinstance(func, OpOverload):
                with self:  # without gradients torch hands composed operators whole
                    parts = func.decompose(*args, **named)
                if parts is not NotImplemented:
                    return parts
            out = func(*args, **named)
            name = name_of(func)
            if name.partition("::")[0] not in _NOT_THE_USERS:
                found.by_name[name] += 1
                found.reads += _reads(name, args, named)
                found.flops.add(name, (*args, *named.values()), out)
            return out

    with Counting():
        yield found


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """Run everything operator by operator: no compiled code, no fused fast path."""
    torch = sys.modules["torch"]
    mha = torch.backends.mha
    fast = mha.get_fastpath_enabled()
    stance = (
        torch.compiler.set_stance("force_eager")
        if "torch._dynamo" in sys.modules
        else contextlib.nullcontext()
    )
    mha.set_fastpath_enabled(False)
    try:
        with stance:
            yield
    finally:
        mha.set_fastpath_enabled(fast)


def name_of(func: Any) -> str:  # noqa: ANN401 (an operator of torch)
    """Name an operator without its overload: `aten::addmm`."""
    schema = getattr(func, "_schema", None)
    return f"higher_order::{func}" if schema is None else str(schema.name)


def _reads(name: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    if name == "aten::repeat_interleave":  # how long the result is, it has to ask
        return named.get("output_size") is None
    return name in _READS or (name in _INDEXING and _has_mask(args))


def _has_mask(args: tuple[Any, ...]) -> bool:
    """Whether it indexes by truth values, of which the true ones must be counted."""
    indices = args[1] if len(args) > 1 else ()
    return any(
        str(getattr(index, "dtype", "")) in {"torch.bool", "torch.uint8"}
        for index in indices
        if index is not None
    )
