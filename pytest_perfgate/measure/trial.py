"""A workload of our own, measured turn by turn in a fresh process.

    python -m pytest_perfgate.measure.trial cpu

Says `ready` when it is warm. For each line of its input, a number of seconds, it
measures about that long and answers with one line of JSON; it ends with its input.
"""

import json
import statistics
import sys
from collections.abc import Callable
from typing import TextIO

import numpy as np

from pytest_perfgate.measure.cpu_guard import difference, usable_cores, why_disturbed
from pytest_perfgate.measure.device import Device, open_device

READY = "ready"
_WARM_NS = 300_000_000
_BATCH = 5
_CPU_SIDE, _GPU_SIDE = 128, 2048
_STEPS = 4000


def cpu_work() -> Callable[[], object]:
    """Interpreted code and a matrix product, about a millisecond in all."""
    matrix = np.random.default_rng(0).normal(size=(_CPU_SIDE, _CPU_SIDE))

    def work() -> object:
        total = 0
        for step in range(_STEPS):
            total += step & 3
        return total, matrix @ matrix

    return work


def gpu_work(device: Device) -> Callable[[], object]:
    """Multiply two matrices of sixteen-bit floats on that GPU."""
    import torch

    generator = torch.Generator(device=device.name).manual_seed(0)
    shape = (_GPU_SIDE, _GPU_SIDE)
    matrix = torch.randn(shape, device=device.name, generator=generator).bfloat16()
    return lambda: matrix @ matrix


class Trial:
    """Measures the workload in turns."""

    def __init__(self, device: Device, work: Callable[[], object]) -> None:
        self._device = device
        self._work = work
        self._typical_ns = 1

    def warm_up(self) -> None:
        until = self._device.now_ns() + _WARM_NS
        self._measure(_BATCH)  # at least this: a turn wants to know what a call takes
        while self._device.now_ns() < until:
            self._measure(_BATCH)

    def _measure(self, count: int) -> list[int]:
        timed = self._device.time_calls(self._work, count=count, inner=1)
        self._typical_ns = max(1, round(statistics.median(timed.host_ns)))
        return timed.host_ns

    def turn(self, seconds: float) -> dict[str, object]:
        """Measure for about so long; returns what is told of it."""
        count = max(1, round(seconds * 1e9 / self._typical_ns))
        before = self._device.reading(closing=False)
        times = self._measure(count)
        use = difference(before, self._device.reading(closing=True))
        return {
            "median_s": statistics.median(times) / 1e9,
            "disturbed": why_disturbed(use, cores=usable_cores()),
            "steal": use.steal_ticks / max(use.machine_ticks, 1),
            "throttled_s": use.throttled_ns / 1e9,
        }


def serve(trial: Trial, asked: TextIO, answers: TextIO) -> None:
    """Warm up, and then answer one line for each line."""
    trial.warm_up()
    _say(answers, READY)
    for line in asked:
        _say(answers, json.dumps(trial.turn(float(line))))


def _say(answers: TextIO, text: str) -> None:
    answers.write(text + "\n")
    answers.flush()


def main(device_name: str) -> None:
    device = open_device(device_name, fake_script=None)
    device.begin("trial", run=0, slowdown=0.0)
    work = cpu_work() if device_name == "cpu" else gpu_work(device)
    serve(Trial(device, work), sys.stdin, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
