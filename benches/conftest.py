"""Where the benchmarks run, and how large they are there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The device that is measured, and the precision that inference uses on it."""

    device: Any
    """A `torch.device`."""
    dtype: Any
    """A `torch.dtype`."""

    def pick(self, *, small: Any, large: Any) -> Any:
        """`small` on a CPU, `large` on a GPU."""
        return small if self.device.type == "cpu" else large

    def build(self, make: Callable[[Any], Any], config: Any) -> Any:
        """Make a model for training: float32, random weights made where they stay."""
        with self.device:
            return make(config)

    def build_frozen(self, make: Callable[[Any], Any], config: Any) -> Any:
        """Make a model for inference, in this target's precision."""
        model = self.build(make, config).to(self.dtype).eval()
        return model.requires_grad_(requires_grad=False)


@contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    """Let torch compute with one thread, and undo it.

    The models of the CPU are so small that handing work to a second thread costs more
    than it saves. On a machine of few cores a second thread also waits for whatever
    else runs there, and an operator takes as long as its slowest thread: every
    neighbour is felt. This is a setting of these benchmarks, not of the gate, which
    measures programs as they are.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def wanted_device(config: pytest.Config, torch: Any) -> str:
    """Follow `--perfgate-device` or its ini; by itself, a GPU where there is one."""
    wanted = config.getoption("perfgate_device") or config.getini("perfgate_device")
    if wanted and wanted != "auto":
        return str(wanted)
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module")
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """Give the CPU with one thread in float32, or a CUDA device in bfloat16."""
    torch = pytest.importorskip("torch")
    device = torch.device(wanted_device(request.config, torch))
    if device.type != "cpu":
        yield Target(device=device, dtype=torch.bfloat16)
        return
    with one_thread(torch):  # for this file's benchmarks, not for tests that follow
        yield Target(device=device, dtype=torch.float32)
