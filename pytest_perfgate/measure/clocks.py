"""Locking a GPU's clocks while a session measures, and giving them back.

A process of its own locks them, waits for the end of its standard input, and
resets them: so they are given back as well where the session is killed. What
nothing can survive is that process being killed, too, or the machine going down;
`nvidia-smi --reset-gpu-clocks` then does it.

    python -m pytest_perfgate.measure.clocks GPU-…
"""

import signal
import subprocess
import sys
from types import FrameType

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measure.nvml import import_binding

BASE_CLOCK = 0xFFFFFF01
"""The driver's name for the clock that the GPU holds at its full power."""
LOCKED = "locked"
_PATIENCE_S = 30.0


class ClockLock:
    """The clocks of one GPU, locked from `acquire` to `release`."""

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self._keeper: subprocess.Popen[str] | None = None

    def acquire(self) -> None:
        """Lock the clocks.

        Raises
        ------
        UsageError
            Where the driver refuses, as it does to anybody but root.
        """
        keeper = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            [sys.executable, "-P", "-m", __name__, self._uuid],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the session, not for it
        )
        answer = keeper.stdout.readline().strip() if keeper.stdout else ""
        if answer != LOCKED:
            keeper.communicate()
            raise UsageError(
                "--perfgate-lock-clocks: the driver does not lock the clocks of "
                f"{self._uuid} ({answer or 'no answer'}); it takes root and a GPU from "
                "Volta on: drop the option, or lock them before with nvidia-smi "
                "--lock-gpu-clocks"
            )
        self._keeper = keeper

    def release(self) -> None:
        """Give the clocks back."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        try:
            keeper.communicate(timeout=_PATIENCE_S)  # which ends its input
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()


def keep_locked(uuid: str) -> int:
    """Lock, tell so, wait for the end of the input, and reset."""
    nvml = import_binding()
    try:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        nvml.nvmlDeviceSetGpuLockedClocks(handle, BASE_CLOCK, BASE_CLOCK)
    except nvml.NVMLError as error:
        _tell(str(error))
        return 1
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _end)
        _tell(LOCKED)
        sys.stdin.read()
    finally:
        nvml.nvmlDeviceResetGpuLockedClocks(handle)
    return 0


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    sys.exit(128 + number)


def _tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(keep_locked(sys.argv[1]))
