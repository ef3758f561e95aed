"""What is told of a GPU's memory, against a make-believe caching allocator."""

import pytest

from pytest_perfgate.gate.budgets import gated_by_default, main_statistic
from pytest_perfgate.measure.cuda_memory import memory_of
from pytest_perfgate.workloads.assembly import MEMORY, memory_samples

MIB = 2**20
SEGMENT = 20 * MIB
TOTAL = 100 * MIB
CONTEXT = 7 * MIB


class Allocator:
    """Takes segments of 20 MiB from the driver, and gives out parts of them."""

    def __init__(self):
        self.given = 0
        self.segments = 0
        self.beside = CONTEXT
        self.peaks = {"allocated": 0, "reserved": 0, "split": 0}
        self.counters = {"num_alloc_retries": 5, "num_ooms": 3, "num_device_alloc": 9}
        self.backend = "native"
        self.tells_of_pieces = True
        self.order = []

    # what the code under test does

    def take(self, size):
        while self.given + size > self.segments * SEGMENT:
            if self.beside + (self.segments + 1) * SEGMENT > TOTAL:
                self.counters["num_ooms"] += 1
                raise MemoryError
            self.segments += 1
            self.counters["num_device_alloc"] += 1
        self.given += size
        self._note()

    def release(self, size):
        self.given -= size
        self._note()

    def _note(self):
        now = {
            "allocated": self.given,
            "reserved": self.segments * SEGMENT,
            "split": self.segments * SEGMENT - self.given,
        }
        self.peaks = {name: max(self.peaks[name], now[name]) for name in now}

    # what torch.cuda tells

    def synchronize(self, index):
        self.order.append("sync")

    def empty_cache(self):
        self.order.append("empty")
        self.segments = -(-self.given // SEGMENT)

    def reset_peak_memory_stats(self, index):
        self.order.append("reset")
        self.peaks = dict.fromkeys(self.peaks, 0)
        self._note()

    def memory_stats(self, index):
        pieces = {"inactive_split_bytes.all.peak": self.peaks["split"]}
        return self.counters | (pieces if self.tells_of_pieces else {})

    def memory_allocated(self, index):
        return self.given

    def memory_reserved(self, index):
        return self.segments * SEGMENT

    def max_memory_allocated(self, index):
        return self.peaks["allocated"]

    def max_memory_reserved(self, index):
        return self.peaks["reserved"]

    def mem_get_info(self, index):
        return TOTAL - self.beside - self.segments * SEGMENT, TOTAL

    def get_allocator_backend(self):
        return self.backend


class Older:
    """The same, from before there was more than one allocator to ask for."""

    def __init__(self, allocator):
        self._allocator = allocator

    def __getattr__(self, name):
        if name == "get_allocator_backend":
            raise AttributeError(name)
        return getattr(self._allocator, name)


@pytest.fixture
def cuda():
    allocator = Allocator()
    allocator.take(30 * MIB)  # a model; two segments
    allocator.take(15 * MIB)
    allocator.release(15 * MIB)  # what the timed calls left in the cache
    return allocator


def step(cuda, size=25 * MIB):
    def step():
        cuda.order.append("call")
        cuda.take(size)
        cuda.release(size)

    return step


def test_peaks_are_told_with_and_without_what_was_there_before(cuda):
    found = memory_of(cuda, 0, step(cuda)).values
    assert found["peak_memory"] == 55 * MIB
    assert found["base_memory"] == 30 * MIB
    assert found["working_memory"] == 25 * MIB
    assert cuda.order == ["sync", "empty", "reset", "call", "call", "sync"]


def test_what_the_allocator_went_through_is_told_of_these_calls_alone(cuda):
    memory = memory_of(cuda, 0, step(cuda))
    assert memory.remarks == ()
    found = memory.values
    assert found["reserved_memory"] == 3 * SEGMENT
    assert found["memory_fragmentation"] == pytest.approx(1 - 55 / 60)
    assert found["inactive_split_memory"] == 30 * MIB  # once the call was over
    assert found["device_allocations"] == 1  # in the first call
    assert found["allocator_retries"] == found["allocator_ooms"] == 0


def test_running_out_and_trying_again_is_counted(cuda):
    def greedy():
        try:
            cuda.take(90 * MIB)
        except MemoryError:
            cuda.counters["num_alloc_retries"] += 1
            cuda.take(MIB)

    found = memory_of(cuda, 0, greedy).values
    assert (found["allocator_ooms"], found["allocator_retries"]) == (2, 2)


@pytest.mark.parametrize(("grown", "told"), [(3 * MIB, 3 * MIB), (-MIB, 0)])
def test_what_others_than_the_allocator_take_is_told(cuda, grown, told):
    def call():
        cuda.take(25 * MIB)
        cuda.release(25 * MIB)
        cuda.beside = CONTEXT + grown  # a library's workspace, say

    assert memory_of(cuda, 0, call).values["outside_memory"] == told


def test_an_allocator_without_accounts_claims_nothing(cuda):
    cuda.backend = "cudaMallocAsync"
    cuda.counters = dict.fromkeys(cuda.counters, 0)
    memory = memory_of(cuda, 0, step(cuda))
    assert set(memory.values) == {
        *("peak_memory", "base_memory", "working_memory", "reserved_memory"),
        "outside_memory",
    }
    assert memory.remarks == (
        (
            "no fragmentation, retries and allocations of the driver: the allocator "
            "cudaMallocAsync keeps no account of them"
        ),
    )


def test_what_an_older_torch_does_not_tell_is_left_out(cuda):
    del cuda.counters["num_ooms"]
    cuda.tells_of_pieces = False
    found = memory_of(Older(cuda), 0, step(cuda)).values
    assert not {"allocator_ooms", "inactive_split_memory"} & set(found)
    assert "device_allocations" in found


def test_nothing_reserved_is_not_fragmented():
    found = memory_of(Allocator(), 0, lambda: None).values
    assert "memory_fragmentation" not in found
    assert found["peak_memory"] == 0


def test_all_of_it_has_a_metric_and_only_the_peak_is_gated(cuda):
    series = memory_samples(memory_of(cuda, 0, step(cuda)))
    names = [one.metric.name for one in series]
    assert set(names) == set(MEMORY) - {"host_peak_memory"}
    gated = [one.metric.name for one in series if gated_by_default(one.metric)]
    assert gated == ["peak_memory"]
    assert {main_statistic(metric) for metric in MEMORY.values()} == {"max"}
