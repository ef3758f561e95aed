"""Where the time of a call goes, by operator and by kernel, in a compact form."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from pytest_perfgate.measure.traces import COMPILED, Event, Trace
from pytest_perfgate.measured import OperatorUse, Profile

KEPT = 30
_LONGEST_NAME = 120
_CHANGING = re.compile(r"(?<=CompiledFxGraph )\w+|\b0x[0-9a-f]+\b")


def profile_of(traces: Sequence[Trace]) -> Profile | None:
    """Reduce traces of a few calls to what one call takes; None if there is nothing.

    Times are the mean of the calls, to three significant digits, and those that
    take longest are kept.
    """
    operators = _mean([_self_times(trace) for trace in traces])
    kernels = _mean([_kernel_times(trace) for trace in traces])
    if not operators and not kernels:
        return None
    return Profile(
        operators=_longest(operators),
        kernels=_longest(kernels),
        operators_s=_three_digits(sum(one.self_s for one in operators.values())),
        kernels_s=_three_digits(sum(one.self_s for one in kernels.values())),
    )


_Used = Mapping[str, tuple[int, float]]


def _mean(calls: Sequence[_Used]) -> dict[str, OperatorUse]:
    counts: Counter[str] = Counter()
    seconds: dict[str, float] = defaultdict(float)
    for call in calls:
        for name, (count, self_s) in call.items():
            counts[name] += count
            seconds[name] += self_s
    return {
        name: OperatorUse(
            count=round(counts[name] / len(calls)),
            self_s=_three_digits(seconds[name] / len(calls)),
        )
        for name in counts
    }


def _longest(uses: Mapping[str, OperatorUse]) -> dict[str, OperatorUse]:
    ordered = sorted(uses, key=lambda name: (-uses[name].self_s, name))
    return {name: uses[name] for name in sorted(ordered[:KEPT])}


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def _kernel_times(trace: Trace) -> _Used:
    found: dict[str, tuple[int, float]] = {}
    for event in trace.events:
        if event.category in {"kernel", "gpu_memcpy", "gpu_memset"}:
            _add(found, event.name, event.lasts_us / 1e6)
    return found


def _self_times(trace: Trace) -> _Used:
    """Time in each operator itself: without the operators that it calls."""
    found: dict[str, tuple[int, float]] = {}
    threads: dict[object, list[Event]] = defaultdict(list)
    for event in trace.events:
        if event.category == "cpu_op":
            threads[event.thread].append(event)
    for events in threads.values():
        # the outer of two that begin together is the longer one
        events.sort(key=lambda event: (event.at_us, -event.lasts_us))
        within: list[tuple[Event, list[float]]] = []
        for event in events:
            while within and within[-1][0].ends_us <= event.at_us:
                _close(found, *within.pop())
            if within:
                within[-1][1].append(event.lasts_us)
            within.append((event, []))
        for event, inner in within:
            _close(found, event, inner)
    return found


def _close(
    found: dict[str, tuple[int, float]], event: Event, inner: Sequence[float]
) -> None:
    own_us = max(0.0, event.lasts_us - sum(inner))
    _add(found, event.name, own_us / 1e6)


def _add(found: dict[str, tuple[int, float]], name: str, self_s: float) -> None:
    key = _stable(name)
    count, seconds = found.get(key, (0, 0.0))
    found[key] = count + 1, seconds + self_s


def _stable(name: str) -> str:
    """Leave out of a name what differs from process to process."""
    if name.startswith(COMPILED):
        return COMPILED.rstrip(": ")
    return _CHANGING.sub("…", name)[:_LONGEST_NAME]
