"""Floating point operations of one call: formulas, and what has none.

One multiplication and one addition are two. What torch computes within an
operator without a formula is not guessed: the operator is named, and no
utilisation is given. Causal masks are not discounted.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MATMUL, CONVOLUTION = "matmul", "convolution"
"""Kinds of work: torch lets TF32 into them by two switches."""
Formula = Callable[[Sequence[Any], Any], int]

_COMPUTES = re.compile(
    r"mm(?:$|_)|matmul|(?<!r)dot|conv(?!ert)|lstm|gru|rnn|attention|transformer"
    r"|(?<!upsample_bi)(?<!upsample_tri)(?<!upsample_)linear|einsum|cdist|fft"
    r"|^_?linalg_|cholesky|triangular_solve|^lu_|ormqr|geqrf|^addr$|^ger$"
    r"|^addmv|^mv$"
)
_TORCHS_OWN = frozenset({"aten", "prim", "prims", "profiler"})
_MOVES_DATA = frozenset({"c10d", "_c10d_functional", "c10d_functional"})


@dataclass(slots=True, kw_only=True)
class Flops:
    """Floating point operations, and the operators that hide some."""

    by_kind: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind of work and type of number: `("matmul", "bfloat16")`."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Operators that compute something, without a formula."""

    @property
    def total(self) -> int:
        return sum(self.by_kind.values())

    def add(self, name: str, args: Sequence[Any], out: object) -> None:
        """Add what one operator does."""
        formula = FORMULAS.get(name)
        if formula is not None:
            kind = CONVOLUTION if "conv" in name else MATMUL
            numbers = str(_first_tensor(args).dtype).removeprefix("torch.")
            self.by_kind[kind, numbers] += formula(args, out)
        elif computes(name):
            self.unknown[name] += 1


def computes(name: str) -> bool:
    """Tell whether an operator without a formula may do more than move numbers."""
    namespace, _, short = name.rpartition("::")
    if namespace in _MOVES_DATA:
        return False
    return namespace not in _TORCHS_OWN or _COMPUTES.search(short) is not None


def _first_tensor(args: Sequence[Any]) -> Any:  # noqa: ANN401 (torch's)
    # the bias of addmm may have a type of its own: what is multiplied comes later
    tensors = [one for one in args if hasattr(one, "dtype")]
    return tensors[min(1, len(tensors) - 1)]


def _product(shape: Sequence[int]) -> int:
    return math.prod(int(size) for size in shape)


def _matrices(first: int) -> Formula:
    """Multiply (…, m, k) by (k, n) or (…, k, n), from argument `first` on."""

    def formula(args: Sequence[Any], out: object) -> int:
        del out
        left, right = args[first], args[first + 1]
        return 2 * _product(left.shape) * int(right.shape[-1])

    return formula


def _vectors(first: int) -> Formula:
    """Multiply a matrix or a vector, the argument number `first`, by a vector."""

    def formula(args: Sequence[Any], out: object) -> int:
        del out
        return 2 * _product(args[first].shape)

    return formula


def _convolution(args: Sequence[Any], out: Any) -> int:  # noqa: ANN401 (torch's)
    transposed = len(args) > 6 and bool(args[6])
    moved = args[0] if transposed else out
    return 2 * _product(moved.shape) * _product(args[1].shape[1:])


def _convolution_backward(args: Sequence[Any], out: object) -> int:
    del out
    gradient, inputs, weight = args[:3]
    moved = inputs if args[7] else gradient
    wanted = sum(map(bool, args[10][:2]))
    return 2 * _product(moved.shape) * _product(weight.shape[1:]) * wanted


def _attention(query: int, *, by_key: int, by_value: int) -> Formula:
    """Products along the keys' and along the values' width, so many of each."""

    def formula(args: Sequence[Any], out: object) -> int:
        del out
        queries, keys, values = args[query : query + 3]
        pairs = _product(queries.shape[:-1]) * int(keys.shape[-2])
        widths = by_key * int(queries.shape[-1]) + by_value * int(values.shape[-1])
        return 2 * pairs * widths

    return formula


_ATTENTIONS = ("efficient", "flash", "cudnn", "fused")
_FORWARD = _attention(0, by_key=1, by_value=1)
_BACKWARD = _attention(1, by_key=3, by_value=2)
FORMULAS: Mapping[str, Formula] = {
    "aten::mm": _matrices(0),
    "aten::bmm": _matrices(0),
    "aten::addmm": _matrices(1),
    "aten::addmm_": _matrices(1),
    "aten::_addmm_activation": _matrices(1),
    "aten::baddbmm": _matrices(1),
    "aten::baddbmm_": _matrices(1),
    "aten::_scaled_mm": _matrices(0),
    "aten::mv": _vectors(0),
    "aten::addmv": _vectors(1),
    "aten::dot": _vectors(0),
    "aten::vdot": _vectors(0),
    "aten::convolution": _convolution,
    "aten::_convolution": _convolution,
    "aten::convolution_overrideable": _convolution,
    "aten::convolution_backward": _convolution_backward,
    "aten::convolution_backward_overrideable": _convolution_backward,
    "aten::_scaled_dot_product_flash_attention_for_cpu": _FORWARD,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _BACKWARD,
    "aten::_scaled_dot_product_fused_attention_overrideable": _FORWARD,
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": _BACKWARD,
    **{f"aten::_scaled_dot_product_{kind}_attention": _FORWARD for kind in _ATTENTIONS},
    **{
        f"aten::_scaled_dot_product_{kind}_attention_backward": _BACKWARD
        for kind in _ATTENTIONS
    },
}
