"""What came out of a call, in a few numbers: to tell a gain from other work."""

import itertools
import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any

MOST_ARRAYS = 8
MOST_ELEMENTS = 2**24
"""Of a larger array the type and the shape have to do."""
_DEEPEST = 4
_BROKEN = " not finite"


def output_of(result: object) -> dict[str, float]:
    """Describe the arrays and tensors in a result; untimed, after all else.

    Returns
    -------
    dict
        By place, type and shape the mean magnitude; zero of an array that is
        too large to go through, and of one that holds NaN or infinity, whose
        name then says so. Empty where there is no array.
    """
    described = {}
    for place, array in itertools.islice(_arrays(result, "", 0), MOST_ARRAYS):
        shape = ",".join(map(str, array.shape))
        name = f"{place}{str(array.dtype).removeprefix('torch.')}[{shape}]"
        magnitude = _magnitude(array)
        finite = math.isfinite(magnitude)
        described[name if finite else name + _BROKEN] = magnitude if finite else 0.0
    return described


def output_remarks(output: Mapping[str, float]) -> tuple[str, ...]:
    """Say so where what was measured did not compute numbers."""
    broken = [name for name in output if name.endswith(_BROKEN)]
    return tuple(
        f"the output holds NaN or infinity: {name.removesuffix(_BROKEN)}"
        for name in broken[:1]
    )


def _arrays(found: object, place: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield arrays of numbers with their place, as far as containers are plain."""
    if _is_tensor(found) or _is_array(found):
        yield place, found
    elif depth < _DEEPEST:
        for key, value in _members(found):
            yield from _arrays(value, f"{place}{key} ", depth + 1)


def _members(found: object) -> Iterator[tuple[object, object]]:
    if isinstance(found, Mapping):
        yield from found.items()
    elif isinstance(found, tuple | list):
        yield from enumerate(found[:MOST_ARRAYS])


def _is_array(found: object) -> bool:
    """Tell whether it is an array of numbers; who never imported numpy has none."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(found, numpy.ndarray):
        return False
    return found.dtype.kind in "biufc"


def _is_tensor(found: Any) -> bool:  # noqa: ANN401 (whatever came out)
    """Tell whether it is a plain tensor; who measures without torch has none."""
    torch = sys.modules.get("torch")
    if torch is None or type(found) not in {torch.Tensor, torch.nn.Parameter}:
        return False  # what others derive from it may do anything when asked
    plain = found.layout is torch.strided and not found.is_nested
    return bool(plain and not found.is_quantized and found.device.type != "meta")


def _magnitude(array: Any) -> float:  # noqa: ANN401 (numpy's or torch's)
    count = math.prod(array.shape)
    if not 0 < count <= MOST_ELEMENTS:
        return 0.0
    if _is_array(array):
        return float(abs(array.astype(complex, copy=False)).mean())
    torch = sys.modules["torch"]
    wide = array.detach()
    if not (wide.is_complex() or wide.dtype is torch.float64):
        wide = wide.to(torch.float32)
    return float(wide.abs().mean())
