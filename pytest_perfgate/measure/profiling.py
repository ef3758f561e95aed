"""One piece of work under torch's profiler, and the trace that it leaves."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pytest_perfgate.errors import MeasurementError
from pytest_perfgate.measure.traces import CALL, Trace, read_trace

_SILENT = "99"
"""Of the levels of torch's profiler: above all of them."""


class ProfilerTaken(MeasurementError):
    """Torch's profiler is in use already, or what was traced has used it itself."""


@dataclass(slots=True, kw_only=True)
class Traced:
    """What was traced; empty until the work is over."""

    trace: Trace = field(default_factory=lambda: Trace(events=()))


@contextlib.contextmanager
def tracing(
    *, on_gpu: bool, wait: Callable[[], object] = lambda: None
) -> Iterator[Traced]:
    """Trace what is done meanwhile.

    Parameters
    ----------
    wait : waits for the device, once the work is over: a wait that is not its own

    Raises
    ------
    ProfilerTaken
        At the beginning: somebody's profile is under way, and ours would end it. At
        the end: the work has begun or ended a profile of its own.

    Notes
    -----
    The profiler's inner part is used: the outer one imports torch's compiler,
    which takes seconds, and which the code under test may well do without.
    """
    import torch
    from torch.autograd import profiler
    from torch.profiler import ProfilerActivity, supported_activities

    if torch.autograd._profiler_enabled():  # noqa: SLF001 (nothing else tells)
        raise ProfilerTaken(
            "a profile of torch's is under way around it, and there is one at a time"
        )
    # it announces itself to standard error, which a failing benchmark shows
    os.environ.setdefault("KINETO_LOG_LEVEL", _SILENT)
    sees_gpu = on_gpu and ProfilerActivity.CUDA in supported_activities()
    found = Traced()
    with profiler.profile(
        use_cpu=True,
        use_device="cuda" if sees_gpu else None,
        use_kineto=True,
        profile_memory=True,
    ) as profile:
        with profiler.record_function(CALL):
            yield found
        wait()
        ours = torch.autograd._profiler_enabled()  # noqa: SLF001 (nothing else tells)
    if not ours:  # reading what is not there would end the process
        raise ProfilerTaken(
            "the call uses torch's profiler itself, of which there is one at a time"
        )
    with tempfile.TemporaryDirectory(prefix="perfgate-") as folder:
        file = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(file))
        text = file.read_text(encoding="utf-8", errors="replace")
    found.trace = read_trace(text)


def trace_of(
    call: Callable[[], object],
    *,
    on_gpu: bool,
    wait: Callable[[], object] = lambda: None,
) -> Trace:
    """Call once under torch's profiler."""
    with tracing(on_gpu=on_gpu, wait=wait) as found:
        call()
    return found.trace
