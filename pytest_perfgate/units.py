"""The only place that knows how quantities are written: 5%, 150ms, 2GiB.

Inside the package times are seconds, sizes are bytes and changes are
fractions; text is turned into numbers and back here and nowhere else.
"""

import difflib
import math
import re

from pytest_perfgate.errors import UsageError

_NUMBER = re.compile(
    r"\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>\S*)\s*"
)

_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,  # MICRO SIGN
    "μs": 1e-6,  # GREEK SMALL LETTER MU looks the same and is typed as often
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
}
_BYTES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}


def _split(text: str) -> tuple[float, str] | None:
    """Split a quantity into its finite number and its unit, if it is one."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    number = float(found["number"])
    return (number, found["unit"]) if math.isfinite(number) else None


def parse_fraction(value: str | float, *, name: str = "value") -> float:
    """Turn `5%`, `0.05` or 0.05 into the fraction 0.05.

    A bare number above 1 is refused: `5` is far more often meant as 5 % than
    as 500 %, and a gate must not be opened a hundredfold by a missing sign.

    Raises
    ------
    UsageError
        The value is no finite fraction or percentage, or negative.
    """
    parts = _split(str(value))
    if parts is None or parts[1] not in {"", "%"}:
        raise UsageError(
            f"{name}={value!r} is neither a fraction nor a percentage; write 5% or 0.05"
        )
    number, unit = parts
    if number < 0:
        raise UsageError(f"{name}={value!r} is negative; write 5% or 0.05")
    if not unit and number > 1:
        raise UsageError(
            f"{name}={value!r} would mean {number * 100:g} %;"
            f" write {number:g}% or {number * 100:g}%"
        )
    return number / 100 if unit else number


def parse_duration(value: str | float, *, name: str = "value") -> float:
    """Turn `150ms`, `3s` or a bare number of seconds into seconds.

    Raises
    ------
    UsageError
        The value is no finite duration, or negative.
    """
    parts = _split(str(value))
    if parts is None or (parts[1] and parts[1] not in _SECONDS):
        raise UsageError(f"{name}={value!r} is not a duration; write 150ms, 3s or 2min")
    if parts[0] < 0:
        raise UsageError(f"{name}={value!r} is negative; write 150ms, 3s or 2min")
    return parts[0] * _SECONDS.get(parts[1], 1.0)


def parse_bytes(value: str | float, *, name: str = "value") -> int:
    """Turn `2GiB`, `512MB` or a bare number of bytes into bytes.

    Raises
    ------
    UsageError
        The value is no finite size, or negative.
    """
    parts = _split(str(value))
    if parts is None or (parts[1] and parts[1] not in _BYTES):
        raise UsageError(
            f"{name}={value!r} is not a size; write 2GiB, 512MB or a number of bytes"
        )
    if parts[0] < 0:
        raise UsageError(f"{name}={value!r} is negative; write 2GiB or 512MB")
    return round(parts[0] * _BYTES.get(parts[1], 1))


def parse_quantity(value: str, *, name: str = "value") -> tuple[float, str]:
    """Turn a number with its unit into (number, unit) in our own units.

    Returns
    -------
    tuple of float and str
        Seconds with `s`, bytes with `B`, the bare fraction of a percentage
        with `1`; another unit is handed back as it was written (`500/s` is
        (500, `1/s`), `90 tokens/s` is (90, `tokens/s`)), and a bare number
        has the unit ``""``.

    Raises
    ------
    UsageError
        The value does not start with a finite number.
    """
    parts = _split(value)
    if parts is None:
        raise UsageError(
            f"{name}={value!r} is not a quantity; write 150ms, 2GiB or 500/s"
        )
    number, unit = parts
    if unit in _SECONDS:
        return number * _SECONDS[unit], "s"
    if unit in _BYTES:
        return number * _BYTES[unit], "B"
    if unit == "%":
        return number / 100, "1"
    return number, "1" + unit if unit.startswith("/") else unit


def nearest_unit(written: str) -> str | None:
    """Find the unit that something written is a slip of; None where it is none.

    `xs` and `msec` are slips of `s` and `ms`, `mib` is one of `MiB`; `points` is
    a unit of somebody's own.
    """
    known = (*_SECONDS, *_BYTES)
    if written in known:
        return None
    folded = {unit.casefold(): unit for unit in known}
    near = difflib.get_close_matches(written.casefold(), folded, n=1, cutoff=0.6)
    return folded[near[0]] if near else None


def parse_runs(value: str, *, name: str = "--perfgate-runs") -> tuple[int, int]:
    """Turn `MIN[:MAX]` into both; without MAX it is four times MIN.

    Raises
    ------
    UsageError
        The value is not of this form, MIN is below 3 (no verdict can rest on
        fewer runs), or MAX is below MIN.
    """
    found = re.fullmatch(r"\s*(\d+)\s*(?::\s*(\d+)\s*)?", value)
    if found is None:
        raise UsageError(f"{name}={value!r} is not MIN or MIN:MAX; write 3:12")
    minimum = int(found[1])
    maximum = int(found[2]) if found[2] else 4 * minimum
    if minimum < 3:
        raise UsageError(
            f"{name}={value!r} starts below 3 runs, and fewer carry no verdict;"
            f" write 3:{max(3, maximum)}"
        )
    if maximum < minimum:
        raise UsageError(
            f"{name}={value!r} ends before it starts; write {minimum}:{4 * minimum}"
        )
    return minimum, maximum


def _three_digits(value: float) -> str:
    """Write 1 to 999 with three significant digits: 1.15, 81.2, 812."""
    size = abs(value)
    return f"{value:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"


def _scaled(value: float, scales: tuple[tuple[float, str], ...]) -> str:
    for factor, unit in scales:
        # 999.6 would be rounded up to 1000: it belongs to the next unit
        if abs(value) >= 0.9995 * factor:
            return f"{_three_digits(value / factor)} {unit}"
    factor, unit = scales[-1]
    return f"{value / factor:.3g} {unit}"


def format_duration(seconds: float) -> str:
    """Write a time with three digits in the unit that suits it: `812 µs`."""
    return _scaled(seconds, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")))


def format_bytes(size: float) -> str:
    """Write a size with three digits in binary units: `1.50 GiB`."""
    if abs(size) < 1024:
        return f"{size:.4g} B"
    return _scaled(
        size, ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
    )


def format_value(value: float, unit: str) -> str:
    """Write a value of any unit for people to read."""
    if unit == "s":
        return format_duration(value)
    if unit == "B":
        return format_bytes(value)
    whole = value == round(value) or abs(value) >= 1000
    number = f"{value:,.0f}" if whole else f"{value:.4g}"
    if unit in {"", "1"}:
        return number
    return (
        number + unit.removeprefix("1") if unit.startswith("1/") else f"{number} {unit}"
    )


def format_fraction(fraction: float) -> str:
    """Write a fraction as a percentage without superfluous digits: `5 %`."""
    return f"{fraction * 100:.3g} %" if fraction < 10 else f"{fraction * 100:.0f} %"


def format_change(ratio: float) -> str:
    """Write a ratio as a change: `+12.3 %`, from twofold on `+130 % (2.30×)`."""
    change = (ratio - 1) * 100
    text = f"{change:+.1f} %" if abs(change) < 99.95 else f"{change:+.0f} %"
    if text == "-0.0 %":
        text = "+0.0 %"
    return f"{text} ({ratio:.2f}×)" if ratio >= 2 or ratio <= 0.5 else text
