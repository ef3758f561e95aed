"""The machine of a session: held, waited for until it is fit, and left as it was."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_perfgate.campaign.ledger import Ledger
from pytest_perfgate.errors import UsageError
from pytest_perfgate.measure.clocks import ClockLock
from pytest_perfgate.measure.device_lock import PATIENCE_S, DeviceLock
from pytest_perfgate.measure.health import Telemetry
from pytest_perfgate.measure.readiness import wait_until_ready
from pytest_perfgate.model import Reason

Say = Callable[[str], None]
Sleep = Callable[[float], None]


@contextlib.contextmanager
def held(
    device: str,
    ledger: Ledger,
    *,
    say: Say,
    lock_clocks: bool = False,
    patience_s: float | None = None,
    needed_bytes: float = 0.0,
) -> Iterator[bool]:
    """Hold a device for a session, once it is fit to be measured on.

    Parameters
    ----------
    device : `cpu` or `cuda:N`
    ledger : told why nothing is to be measured, where it is not
    say : told what is waited for
    patience_s : less than the usual ten minutes for another session
    needed_bytes : of a GPU's memory, as far as that is known

    Yields
    ------
    bool
        Whether to measure.
    """
    uuid = _uuid(device)
    if lock_clocks and uuid is None:
        raise UsageError(
            f"--perfgate-lock-clocks: {device} has no clocks of a GPU to lock; drop it"
        )
    with contextlib.ExitStack() as stack:
        lock = DeviceLock(uuid or "cpu")
        stack.callback(lock.release)
        patience_s = min(PATIENCE_S, patience_s or PATIENCE_S)
        fit = _acquire(lock, ledger, say=say, patience_s=patience_s)
        if fit and uuid is not None:
            fit = _ready(uuid, ledger, say=say, needed_bytes=needed_bytes)
        if fit and lock_clocks and uuid is not None:
            clocks = ClockLock(uuid)
            stack.callback(clocks.release)
            clocks.acquire()
        yield fit


@contextlib.contextmanager
def held_fake(
    script: Path, ledger: Ledger, *, needed_bytes: float = 0.0
) -> Iterator[bool]:
    """Do the same with a scripted machine, whose time is not real: no lock."""
    from pytest_perfgate.measure.fake_gpu import FakeMachine
    from pytest_perfgate.measure.fake_script import read_script

    machine = read_script(script).machine
    if machine is None:
        yield True
        return
    scripted = FakeMachine(machine)
    yield _fit(
        scripted,
        ledger,
        say=ledger.note,
        sleep=scripted.sleep,
        needed_bytes=needed_bytes,
    )


def _uuid(device: str) -> str | None:
    """Name the GPU that all users of this machine know by the same name."""
    if device == "cpu":
        return None
    from pytest_perfgate.measure.nvml import visible_gpus

    return visible_gpus()[int(device.partition(":")[2] or 0)].uuid


def _acquire(lock: DeviceLock, ledger: Ledger, *, say: Say, patience_s: float) -> bool:
    try:
        holder = lock.acquire(patience_s=patience_s, say=say)
    except OSError as error:
        ledger.note(
            f"the device could not be locked ({error}): another session may "
            "measure on it at the same time"
        )
        return True
    if holder is None:
        return True
    told = f"the device was held for {patience_s:.0f} s by {holder}"
    ledger.refuse(Reason.BUSY, (told,))
    return False


def _ready(uuid: str, ledger: Ledger, *, say: Say, needed_bytes: float) -> bool:
    from pytest_perfgate.measure.nvml import packaging_hint
    from pytest_perfgate.measure.nvml_telemetry import manager_telemetry

    hint = packaging_hint()
    if hint is not None:
        ledger.note(hint)
    return _fit(
        manager_telemetry(uuid),
        ledger,
        say=say,
        sleep=time.sleep,
        needed_bytes=needed_bytes,
    )


def _fit(
    telemetry: Telemetry,
    ledger: Ledger,
    *,
    say: Say,
    sleep: Sleep,
    needed_bytes: float,
) -> bool:
    found = wait_until_ready(telemetry, sleep=sleep, say=say, needed_bytes=needed_bytes)
    for note in found.notes:
        ledger.note(note)
    if found.obstacle is None:
        return True
    after = f" after {found.waited_s:.0f} s" if found.waited_s else ""
    ledger.refuse(found.obstacle.reason, (f"{found.obstacle.text}{after}",))
    return False
