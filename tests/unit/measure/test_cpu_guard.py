import pytest

from pytest_perfgate.measure.cgroup import Cgroup
from pytest_perfgate.measure.cpu_guard import (
    BlockUse,
    CpuGuard,
    Reading,
    difference,
    judge_blocks,
    usable_cores,
    why_disturbed,
)
from pytest_perfgate.measure.on_gpu import OnGpu, on_gpu

BLOCK = 250_000_000
NO_CGROUP = Cgroup(v2=(), cpu_v1=(), memory_v1=())


def make_use(*, share=1.0, lost=0.0, **changes):
    fields = {
        "wall_ns": BLOCK,
        "cpu_ns": round(share * BLOCK),
        "delay_ns": None if lost is None else round(lost * BLOCK),
    }
    return BlockUse(**(fields | changes))


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        # the kernel tells how long we were kept waiting
        (make_use(), None),
        (make_use(share=0.33, lost=0.67), "kept waiting for a CPU"),
        (make_use(share=0.975, lost=0.021), "kept waiting for a CPU"),
        (make_use(share=0.99, lost=0.01), None),
        (make_use(share=0.01), None),  # sleeps
        (make_use(share=0.01, involuntary=9), None),
        # several threads wait a little for one another
        (make_use(share=1.8, lost=0.03), None),
        (make_use(share=1.5, lost=0.2), "kept waiting for a CPU"),
        (make_use(share=1.99, lost=0.4), None),  # more threads than cores
        # the kernel keeps no account
        (make_use(lost=None), None),
        (make_use(share=0.9, lost=None, involuntary=20), "pushed off the CPU"),
        (make_use(share=0.1, lost=None, involuntary=2, voluntary=25), None),
        (make_use(share=0.99, lost=None, involuntary=20), None),
        (make_use(share=1.5, lost=None, involuntary=60), "pushed off the CPU"),
        (make_use(share=1.5, lost=None, involuntary=20), None),
        # outside of this machine or container
        (
            make_use(steal_ticks=3, machine_ticks=50),
            "CPU time stolen by the hypervisor",
        ),
        (make_use(steal_ticks=1, machine_ticks=2), None),  # one tick proves nothing
        (
            make_use(throttled_ns=2_000_000),
            "throttled by the CPU quota of its cgroup",
        ),
        (make_use(throttled_ns=1_000_000), None),
    ],
)
def test_what_disturbs_a_block(use, reason):
    assert why_disturbed(use, cores=2) == reason


def of_gpu(enqueue, worst):
    return OnGpu(enqueue_share=enqueue, worst_share=worst)


@pytest.mark.parametrize(
    ("use", "calls", "counts"),
    [
        # half of the time the host had no CPU, and nothing of it is to be seen
        ({"lost": 0.5}, of_gpu(0.03, 0.01), False),
        ({"lost": 0.5}, of_gpu(0.03, 0.03), True),  # one call waited longer
        ({"lost": 0.5}, of_gpu(0.3, 0.01), True),  # each may have been handed over late
        ({"lost": 0.05}, of_gpu(0.3, 0.01), False),
        ({"lost": 0.021}, of_gpu(0.8, 0.0), True),  # bound by the host
        ({"lost": 0.021}, of_gpu(0.79, 0.0), False),
        ({"lost": 0.5}, None, True),  # nobody tells
        ({"lost": None, "share": 0.5, "involuntary": 9}, of_gpu(0.03, 0.0), False),
        ({"lost": None, "share": 0.5, "involuntary": 9}, of_gpu(0.3, 0.0), True),
        ({"throttled_ns": BLOCK // 2}, of_gpu(0.03, 0.0), False),
        ({"throttled_ns": BLOCK // 2}, of_gpu(0.3, 0.0), True),
        ({"steal_ticks": 30, "machine_ticks": 50}, of_gpu(0.03, 0.0), False),
        ({"steal_ticks": 30, "machine_ticks": 50}, of_gpu(0.3, 0.0), True),
    ],
)
def test_while_the_gpu_is_waited_for_a_host_pushed_aside_loses_nothing(
    use, calls, counts
):
    block = make_use(**use, calls=calls)
    assert (why_disturbed(block, cores=2) is not None) is counts
    health = judge_blocks([block] * 4, cores=2)
    assert health.disturbed is counts
    assert health.disturbed_blocks == 4 * counts
    (told,) = health.evidence  # in either case
    assert ("while the GPU worked on" in told) is not counts


@pytest.mark.parametrize(
    ("faults", "found"),
    [
        ((0, 0, 3), 1),
        ((0, 2, 3), 0),  # it reads mapped files
        ((1,), 0),
        ((0, 1), 0),
        ((0, 0, 0), 0),
    ],
)
def test_memory_read_from_a_disk_disturbs_where_it_is_rare(faults, found):
    health = judge_blocks([make_use(major_faults=n) for n in faults], cores=2)
    assert health.disturbed_blocks == found
    said = f"1 of {len(faults)} blocks waited for memory to be read from a disk"
    assert health.evidence == ((said,) if found else ())


def test_a_block_is_measured_again_only_where_earlier_ones_read_no_disk():
    clean, reads = make_use(), make_use(major_faults=1)
    assert why_disturbed(reads, cores=2) is None  # the first of a run
    assert why_disturbed(reads, cores=2, earlier=[clean]) is not None
    assert why_disturbed(reads, cores=2, earlier=[clean, reads]) is None
    assert why_disturbed(clean, cores=2, earlier=[clean]) is None


def test_faults_are_counted_and_calls_are_those_of_the_block():
    calls = of_gpu(0.1, 0.2)
    before = Reading(wall_ns=0, cpu_ns=0, major_faults=3)
    after = Reading(wall_ns=1, cpu_ns=1, major_faults=5, calls=calls)
    use = difference(before, after)
    assert (use.major_faults, use.calls) == (2, calls)


def test_what_the_host_has_to_do_with_calls():
    found = on_gpu([100, 100, 200], [10, 10, 60], [99.0, 98.0, 180.0])
    assert found.enqueue_share == pytest.approx(80 / 400)
    assert found.worst_share == pytest.approx((20 + 50) / 200)
    assert on_gpu([0], [0], [0.0]) == of_gpu(0.0, 0.0)


def test_the_thread_that_lost_most_counts():
    before = Reading(wall_ns=0, cpu_ns=0, delays_ns={"1": 900, "2": 5, "9": 7})
    after = Reading(wall_ns=100, cpu_ns=50, delays_ns={"1": 901, "2": 35, "3": 4})
    use = difference(before, after)
    assert (use.wall_ns, use.cpu_ns, use.delay_ns) == (100, 50, 30)
    assert use.cpu_share == 0.5
    assert use.lost_share == pytest.approx(0.3)


def test_waking_up_is_no_loss():
    before = Reading(wall_ns=0, cpu_ns=0, delays_ns={"1": 0})
    after = Reading(wall_ns=100, cpu_ns=50, delays_ns={"1": -7000})
    assert difference(before, after).delay_ns == 0


def test_without_an_account_the_loss_is_unknown():
    reading = Reading(wall_ns=0, cpu_ns=0)
    assert difference(reading, reading).delay_ns is None


def test_a_run_is_disturbed_when_more_than_three_blocks_in_ten_are():
    good, bad = make_use(), make_use(share=0.5, lost=0.5)
    assert not judge_blocks([bad] * 3 + [good] * 7, cores=2).disturbed
    health = judge_blocks([bad] * 4 + [good] * 6, cores=2)
    assert health.disturbed
    assert (health.blocks, health.disturbed_blocks) == (10, 4)
    assert health.cpu_share == pytest.approx(0.8)
    assert health.evidence == ("4 of 10 blocks kept waiting for a CPU",)


def test_of_no_blocks_nothing_is_said():
    health = judge_blocks([], cores=1, steady=False)
    assert health.cpu_share is None
    assert not health.disturbed
    assert not health.steady


def test_reading_the_kernel_s_files(tmp_path):
    for thread, text in {
        "7": "100 90000 2",
        "8": "5 1 1",
        "9": "0 0 0",
        "10": "?",
    }.items():
        folder = tmp_path / "self" / "task" / thread
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(text)
    (tmp_path / "stat").write_text("cpu  10 0 20 60 1 0 2 7 0 0\ncpu0 1\n")
    guard = CpuGuard(proc=tmp_path, cgroup=NO_CGROUP)
    reading = guard.read(lambda: 42)
    # less 20 µs for each turn; of a thread that never ran nothing is known
    assert reading.delays_ns == {"7": 50_000, "8": -19_999}
    assert (reading.steal_ticks, reading.machine_ticks) == (7, 100)
    assert reading.wall_ns == 42
    assert reading.cpu_ns > 0


@pytest.mark.parametrize("stat", [None, "cpu 1 2\n", "cpu a b\n"])
def test_a_kernel_without_these_files(tmp_path, stat):
    if stat is not None:
        (tmp_path / "stat").write_text(stat)
    reading = CpuGuard(proc=tmp_path, cgroup=NO_CGROUP).read(lambda: 1)
    assert reading.delays_ns == {}
    assert (reading.steal_ticks, reading.machine_ticks) == (0, 0)


def test_the_clocks_lie_nearest_to_the_block():
    order = []
    guard = CpuGuard(cgroup=NO_CGROUP)
    guard._delays_ns = lambda: order.append("files") or {}

    def clock():
        order.append("clock")
        return 1

    guard.read(clock)
    guard.read(clock, closing=True)
    assert order == ["files", "clock", "clock", "files"]


def test_cores_are_counted_with_the_quota(monkeypatch):
    class Quota:
        def __init__(self, cores):
            self.cores = cores

        def quota_cores(self):
            return self.cores

    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert usable_cores(Quota(None)) == 4
    assert usable_cores(Quota(1.5)) == 2
    assert usable_cores(Quota(0.2)) == 1
    assert usable_cores(Quota(64.0)) == 4


def test_cores_where_there_is_no_affinity(monkeypatch):
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert usable_cores(NO_CGROUP) == 6
