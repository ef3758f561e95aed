"""Tells whether the processor was taken away while we measured.

Read at the boundaries of blocks, never inside. The best witness is the
kernel's own account of how long a thread was ready to run and did not
(`/proc/self/task/*/schedstat`): it tells a neighbour from a function that
sleeps or waits. Where the kernel keeps no such account, CPU time ÷ wall time
accuses, and voluntary context switches excuse.
"""

import math
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_perfgate.measure.cgroup import Cgroup, own_cgroup
from pytest_perfgate.measure.on_gpu import OnGpu
from pytest_perfgate.measured import Health

LOST_SHARE = 0.02
"""A block that lost more than this share of its wall time is disturbed."""
LOST_SHARE_THREADED = 0.05
"""The same with several threads, which wait a little for one another."""
SWITCHES_PER_S = 100.0
"""Involuntary switches a second beyond which threads are being pushed aside."""
WAKING_NS = 20_000
"""Waiting that each turn on a CPU is allowed. Waking up takes 2 to 20 µs on an
idle machine, and a function that hands work to another thread wakes up often; a
neighbour that computes makes a thread wait for milliseconds."""
THROTTLED_SHARE = 0.005
DISTURBED_RUN_SHARE = 0.3
"""A run is disturbed when more than this share of its blocks is."""
SATURATED_SHARE = 0.95
"""Above this use of all cores, threads wait for their own siblings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The counters at one boundary of a block; all but the last only grow."""

    wall_ns: int
    cpu_ns: int
    voluntary: int = 0
    involuntary: int = 0
    delays_ns: Mapping[str, int] = field(default_factory=dict)
    """By thread: time it was ready and not running, less what waking up costs;
    empty where not accounted."""
    steal_ticks: int = 0
    machine_ticks: int = 0
    throttled_ns: int = 0
    allocation_retries: int = 0
    """How often a GPU's allocator had to empty its cache to go on."""
    major_faults: int = 0
    """Pages of memory that had to be read from a disk."""
    calls: OnGpu | None = None
    """Of the block that ends here, where a GPU does the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockUse:
    """What one block used: the difference of two readings."""

    wall_ns: int
    cpu_ns: int
    voluntary: int = 0
    involuntary: int = 0
    delay_ns: int | None = None
    """None where the kernel keeps no account."""
    steal_ticks: int = 0
    machine_ticks: int = 0
    throttled_ns: int = 0
    allocation_retries: int = 0
    apart_ns: int = 0
    """Of its wall time: what we did ourselves between the iterations."""
    apart_cpu_ns: int = 0
    major_faults: int = 0
    calls: OnGpu | None = None

    @property
    def covered(self) -> bool:
        """Whether a GPU was waited for all the same, so that the host lost nothing."""
        lost = self.lost_share if self.delay_ns is not None else 1.0 - self.cpu_share
        stopped = self.throttled_ns / max(self.wall_ns, 1)
        stolen = self.steal_ticks / max(self.machine_ticks, 1)
        return self.calls is not None and self.calls.covers(max(lost, stopped, stolen))

    @property
    def own_wall_ns(self) -> int:
        return self.wall_ns - self.apart_ns

    @property
    def own_cpu_ns(self) -> int:
        return max(self.cpu_ns - self.apart_cpu_ns, 0)

    @property
    def cpu_share(self) -> float:
        return self.cpu_ns / max(self.wall_ns, 1)

    @property
    def lost_share(self) -> float:
        """Share of the wall time in which the kernel let us wait for a CPU."""
        return (self.delay_ns or 0) / max(self.wall_ns, 1)

    @property
    def threaded(self) -> bool:
        return self.cpu_share > 1.0 + LOST_SHARE


def difference(before: Reading, after: Reading) -> BlockUse:
    """Subtract two readings; of the threads, the one that lost most counts."""
    delays = [
        delay - before.delays_ns.get(thread, 0)
        for thread, delay in after.delays_ns.items()
    ]
    return BlockUse(
        wall_ns=after.wall_ns - before.wall_ns,
        cpu_ns=after.cpu_ns - before.cpu_ns,
        voluntary=after.voluntary - before.voluntary,
        involuntary=after.involuntary - before.involuntary,
        delay_ns=max(0, *delays) if delays else None,
        steal_ticks=after.steal_ticks - before.steal_ticks,
        machine_ticks=after.machine_ticks - before.machine_ticks,
        throttled_ns=after.throttled_ns - before.throttled_ns,
        allocation_retries=after.allocation_retries - before.allocation_retries,
        major_faults=after.major_faults - before.major_faults,
        calls=after.calls,
    )


def reads_from_disk(uses: Sequence[BlockUse]) -> bool:
    """Tell whether code reads files by mapping them, as half of its blocks show.

    What is rare is not the code's: memory that somebody else made be swapped out.
    """
    return 2 * sum(use.major_faults > 0 for use in uses) >= len(uses)


def why_disturbed(
    use: BlockUse, *, cores: int, earlier: Sequence[BlockUse] = ()
) -> str | None:
    """Say what disturbed a block, or None where nothing did that tells in its times.

    Parameters
    ----------
    earlier : the run's other blocks, which say what is usual
    """
    why = why_pushed_aside(use, cores=cores)
    if why is not None:
        return None if use.covered else why
    if use.major_faults and not reads_from_disk(earlier):
        return "waited for memory to be read from a disk"
    return None


def why_pushed_aside(use: BlockUse, *, cores: int) -> str | None:
    """Say what took the processor away in a block, or None where nothing did.

    Parameters
    ----------
    use : what the block used
    cores : number of cores this process may use, >= 1

    Notes
    -----
    Waiting is not a disturbance: a sleeping function has little CPU time, but
    it gave the processor away by itself. Neither are threads that outnumber
    the cores and so wait for one another.
    """
    if use.throttled_ns > THROTTLED_SHARE * use.wall_ns:
        return "throttled by the CPU quota of its cgroup"
    if use.steal_ticks > 1 and use.steal_ticks > LOST_SHARE * use.machine_ticks:
        return "CPU time stolen by the hypervisor"
    if use.cpu_share >= SATURATED_SHARE * cores and use.threaded:
        return None
    return _pushed_aside(use)


def _pushed_aside(use: BlockUse) -> str | None:
    if use.delay_ns is not None:
        bound = LOST_SHARE_THREADED if use.threaded else LOST_SHARE
        return "kept waiting for a CPU" if use.lost_share > bound else None
    if use.threaded:
        per_second = use.involuntary / max(use.wall_ns * 1e-9, 1e-9)
        return "pushed off the CPU" if per_second > SWITCHES_PER_S else None
    short = use.cpu_share < 1.0 - LOST_SHARE
    return "pushed off the CPU" if short and use.involuntary > use.voluntary else None


def judge_blocks(
    uses: Sequence[BlockUse],
    *,
    cores: int,
    steady: bool = True,
    repeated: Sequence[str] = (),
) -> Health:
    """Health of a run from what its measured blocks used.

    Parameters
    ----------
    repeated : why each block was disturbed that was discarded and measured
        again; they count as disturbed ones, so that repeating hides nothing
    """
    found = [
        reason
        for use in uses
        if (reason := why_disturbed(use, cores=cores, earlier=uses))
    ]
    harmless = [
        reason
        for use in uses
        if use.covered and (reason := why_pushed_aside(use, cores=cores))
    ]
    wall = sum(use.wall_ns for use in uses)
    made = len(uses) + len(repeated)
    return Health(
        blocks=len(uses),
        disturbed_blocks=len(found),
        repeated_blocks=len(repeated),
        cpu_share=sum(use.cpu_ns for use in uses) / wall if wall else None,
        involuntary_switches=sum(use.involuntary for use in uses),
        disturbed=len(found) + len(repeated) > DISTURBED_RUN_SHARE * made,
        steady=steady,
        evidence=(
            *_told(repeated, f"of {made} blocks discarded and measured again:"),
            *_told(found, f"of {len(uses)} blocks"),
            *_told(harmless, f"of {len(uses)} blocks, while the GPU worked on,"),
        ),
    )


def _told(reasons: Sequence[str], of: str) -> Iterator[str]:
    for reason in sorted(set(reasons)):
        yield f"{reasons.count(reason)} {of} {reason}"


class CpuGuard:
    """Reads the counters of this process from the kernel."""

    def __init__(
        self, *, proc: Path = Path("/proc"), cgroup: Cgroup | None = None
    ) -> None:
        self._proc = proc
        self._cgroup = own_cgroup() if cgroup is None else cgroup

    def read(self, now_ns: Callable[[], int], *, closing: bool = False) -> Reading:
        """Read all counters; the clocks nearest to the block.

        Parameters
        ----------
        now_ns : the clock whose wall time is wanted
        closing : the block lies before this reading, not behind it
        """
        clocks = (now_ns(), time.process_time_ns()) if closing else (0, 0)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        delays = self._delays_ns()
        steal, total = self._machine_ticks()
        throttled = self._cgroup.throttled_ns()
        if not closing:
            cpu_ns = time.process_time_ns()
            clocks = (now_ns(), cpu_ns)
        return Reading(
            wall_ns=clocks[0],
            cpu_ns=clocks[1],
            voluntary=usage.ru_nvcsw,
            involuntary=usage.ru_nivcsw,
            delays_ns=delays,
            steal_ticks=steal,
            machine_ticks=total,
            throttled_ns=throttled,
            major_faults=usage.ru_majflt,
        )

    def _delays_ns(self) -> dict[str, int]:
        try:
            tasks = list((self._proc / "self" / "task").iterdir())
        except OSError:
            return {}
        found = {task.name: _delay_ns(task / "schedstat") for task in tasks}
        return {name: delay for name, delay in found.items() if delay is not None}

    def _machine_ticks(self) -> tuple[int, int]:
        try:
            with (self._proc / "stat").open() as stat:
                fields = [int(word) for word in stat.readline().split()[1:9]]
        except (OSError, ValueError):
            return 0, 0
        return (fields[7], sum(fields)) if len(fields) == 8 else (0, 0)


def _delay_ns(file: Path) -> int | None:
    """Read how long a thread waited beyond what its wake-ups cost.

    None for a thread that has just ended, and for a kernel that counts nothing.
    """
    try:
        running, waiting, slices = (int(word) for word in file.read_text().split())
    except (OSError, ValueError):
        return None
    return waiting - WAKING_NS * slices if running else None


def usable_cores(cgroup: Cgroup | None = None) -> int:
    """Count the cores this process may use: affinity and quota, at least one."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = (own_cgroup() if cgroup is None else cgroup).quota_cores()
    return max(min(cores, math.ceil(quota)) if quota else cores, 1)
