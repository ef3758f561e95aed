"""The GPU's device against a make-believe torch.cuda: order, units, refusals."""

import contextlib
import sys
import types
import weakref

import pytest

from pytest_perfgate.errors import DeviceUnavailable, MeasurementError
from pytest_perfgate.measure.cpu_guard import Reading, difference
from pytest_perfgate.measure.cuda import open_cuda
from pytest_perfgate.measure.device import open_device
from pytest_perfgate.workloads.inference import Work, measure_inference
from pytest_perfgate.workloads.target import Target

US = 1_000
MHZ_CYCLES_PER_NS = 2.0
L2 = 50 << 20


class Buffer:
    def __init__(self, gpu, size):
        self.gpu, self.size = gpu, size

    def zero_(self):
        self.gpu.work(40 * US)
        self.gpu.order[-1] = f"fill {self.size}"


class Cuda:
    """A GPU with one queue: launching costs the host 5 µs, work runs behind."""

    def __init__(self):
        self.host_ns = 0
        self.queue_ns = 0
        self.retries = 0
        self.order = []
        self.stats = {}
        self.properties = {"L2_cache_size": L2}
        self.buffers = []
        self.free = 10 * L2

    class Event:
        gpu: "Cuda"

        def __init__(self, *, enable_timing):
            assert enable_timing

        def record(self):
            self.gpu.order.append("event")
            self.at_ns = max(self.gpu.queue_ns, self.gpu.host_ns)

        def elapsed_time(self, other):
            assert self.gpu.host_ns >= other.at_ns, "read before it has happened"
            return (other.at_ns - self.at_ns) / 1e6

    def work(self, duration_ns):
        self.host_ns += 5 * US
        self.queue_ns = max(self.queue_ns, self.host_ns) + duration_ns
        self.order.append("work")

    def _sleep(self, cycles):
        self.queue_ns = max(self.queue_ns, self.host_ns) + round(
            cycles / MHZ_CYCLES_PER_NS
        )
        self.order.append("sleep")

    def synchronize(self, index):
        assert index == 0
        self.host_ns = max(self.host_ns, self.queue_ns)
        self.order.append("sync")

    def is_available(self):
        return True

    def device_count(self):
        return 1

    def get_device_properties(self, index):
        assert index == 0
        # an older torch, which tells no UUID
        return types.SimpleNamespace(**self.properties)

    def empty(self, size, *, dtype, device):
        assert (dtype, device) == ("uint8", "cuda:0")
        if size > self.free:
            raise RuntimeError("CUDA out of memory.")
        buffer = Buffer(self, size)
        self.buffers.append(weakref.ref(buffer))
        return buffer

    @property
    def held(self):
        """Bytes of the buffers that somebody still holds."""
        return sum(buffer().size for buffer in self.buffers if buffer())

    def set_device(self, index):
        self.order.append(f"set {index}")

    def empty_cache(self):
        self.order.append("empty")

    def reset_peak_memory_stats(self, index):
        self.order.append("reset")

    def memory_stats(self, index):
        assert index == 0
        self.host_ns += 100 * US  # asking takes its time
        retries = {"num_alloc_retries": self.retries} if self.retries else {}
        return retries | self.stats

    def max_memory_allocated(self, index):
        return 4096 + self.held

    def max_memory_reserved(self, index):
        return 8192

    def memory_allocated(self, index):
        return 1024 + self.held

    def memory_reserved(self, index):
        return 8192

    def mem_get_info(self, index):
        return 60_000, 100_000


@pytest.fixture
def cuda(monkeypatch):
    gpu = Cuda()
    gpu.Event = type("Event", (Cuda.Event,), {"gpu": gpu})
    torch = types.SimpleNamespace(
        cuda=gpu,
        uint8="uint8",
        empty=gpu.empty,
        inference_mode=contextlib.nullcontext,
        get_num_threads=lambda: 1,
        Tensor=Buffer,
        nn=types.SimpleNamespace(Parameter=Buffer),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    return gpu


@pytest.fixture
def device(cuda):
    opened = open_device("cuda:0", fake_script=None)
    opened.now_ns = lambda: cuda.host_ns
    cuda.order.clear()
    return opened


def test_host_latency_waits_for_the_work_and_events_span_it(cuda, device):
    timed = device.time_calls(lambda: cuda.work(300 * US), count=2, inner=1)
    assert timed.host_ns == [305 * US] * 2
    assert timed.device_ns == [pytest.approx(305 * US)] * 2
    assert cuda.order == ["sync", "event", "work", "event", "sync"] * 2


def test_the_host_is_done_when_all_is_handed_over(cuda, device):
    timed = device.time_calls(lambda: cuda.work(300 * US), count=2, inner=1)
    assert timed.enqueue_ns == [5 * US] * 2
    device.begin("b", run=0, slowdown=0.5)
    timed = device.time_calls(lambda: cuda.work(300 * US), count=1, inner=1)
    assert timed.enqueue_ns is None  # the slowdown waits in between


def test_work_of_the_host_alone_is_latency_too(cuda, device):
    def call():
        cuda.host_ns += 1_000_000 * US  # sleeps a second, and launches nothing
        cuda.work(20 * US)

    timed = device.time_calls(call, count=1, inner=1)
    assert timed.host_ns == [1_000_025 * US]
    assert timed.enqueue_ns == [1_000_005 * US]


def test_a_full_queue_waits_once_and_hides_what_launching_costs(cuda, device):
    piped = device.pipelined(lambda: cuda.work(20 * US), count=4, own_ns=0)
    # launched one every 5 µs, each runs behind the one before
    assert piped.period_ns == [pytest.approx(25 * US)] + [pytest.approx(20 * US)] * 3
    assert piped.wall_ns == 85 * US
    assert cuda.order == ["sync", "event", *["work", "event"] * 4, "sync"]
    # waiting for each call costs every one its launch
    timed = device.time_calls(lambda: cuda.work(20 * US), count=4, inner=1)
    assert timed.host_ns == [25 * US] * 4


def test_a_queue_bound_by_the_host_takes_what_launching_takes(cuda, device):
    piped = device.pipelined(lambda: cuda.work(1 * US), count=4, own_ns=0)
    assert piped.period_ns[1:] == [pytest.approx(5 * US)] * 3


def test_a_slowdown_reaches_a_full_queue(cuda, device):
    device.begin("b", run=0, slowdown=0.5)
    cuda.order.clear()
    piped = device.pipelined(lambda: cuda.work(20 * US), count=4, own_ns=20 * US)
    assert piped.period_ns[1:] == [pytest.approx(30 * US)] * 3
    assert cuda.order.count("sync") == 2


def test_memory_taken_from_the_driver_changes_the_allocator_s_state(cuda, device):
    names = ("num_device_alloc", "reserved_bytes.all.current")
    cuda.stats = dict.fromkeys(names, 1) | {"active.all.current": 1}
    before = device.allocator_state()
    cuda.stats["active.all.current"] = 2  # given out from what it has
    assert device.allocator_state() == before
    for name in names:
        cuda.stats[name] += 1
        assert device.allocator_state() != before
        before = device.allocator_state()
    cuda.stats = {}  # an allocator that keeps no such accounts
    assert device.allocator_state() == device.allocator_state()


def test_work_left_over_from_before_is_not_counted(cuda, device):
    cuda.work(9_000 * US)
    timed = device.time_calls(lambda: cuda.work(300 * US), count=1, inner=1)
    assert timed.host_ns == [305 * US]


def test_a_flush_fills_twice_the_cache_before_each_sample_and_is_in_none(cuda, device):
    with device.flushing() as flush:
        timed = device.time_calls(
            lambda: cuda.work(300 * US), count=2, inner=1, flush=flush
        )
    assert timed.host_ns == [305 * US] * 2
    assert timed.device_ns == [pytest.approx(305 * US)] * 2
    assert timed.enqueue_ns == [5 * US] * 2
    # done before the clock starts and the first event is recorded
    sample = [f"fill {2 * L2}", "sync", "sync", "event", "work", "event", "sync"]
    assert cuda.order == [*sample * 2, "empty"]
    assert (flush.count, flush.spent_ns) == (2, 2 * 45 * US)
    assert flush.spent_cpu_ns >= 0


def test_the_buffer_is_there_once_and_gone_before_memory_is_measured(cuda, device):
    cuda.stats = {"reserved_bytes.all.current": 0}
    with device.flushing() as flush:
        before = device.allocator_state()
        for _ in range(3):
            device.time_calls(lambda: cuda.work(1), count=2, inner=1, flush=flush)
        assert device.allocator_state() == before
        assert (len(cuda.buffers), cuda.held) == (1, 2 * L2)
    assert cuda.held == 0
    assert device.peak_memory(lambda: cuda.work(1)).values["peak_memory"] == 4096


def test_the_buffer_is_gone_also_where_the_benchmark_fails(cuda, device):
    def failing():
        raise KeyError("of the user's")

    with pytest.raises(KeyError), device.flushing() as flush:
        device.time_calls(failing, count=1, inner=1, flush=flush)
    assert cuda.held == 0


def test_a_flushed_inference_from_its_first_call_to_its_memory(
    cuda, device, make_context
):
    held = []  # whenever the warm-up looks at the allocator

    def allocator_state():
        held.append(cuda.held)
        return held[-1]

    def reading(*, closing):
        del closing
        return Reading(wall_ns=cuda.host_ns, cpu_ns=cuda.host_ns)

    device.allocator_state, device.reading = allocator_state, reading
    context = make_context(device=device, iterations=3, cache="flush")
    measured, _ = measure_inference(
        context,
        Target(nodeid="b", benchmark="b"),
        lambda: cuda.work(295 * US),
        (),
        Work(batch_size=6),
    )
    found = {series.metric.name: series.values for series in measured.samples}
    assert found["latency"] == pytest.approx((300e-6,) * 3)
    assert found["device_time"] == pytest.approx((300e-6,) * 3)
    assert found["throughput"] == pytest.approx((6 / 300e-6,))
    assert (found["peak_memory"], "device_period" in found) == ((4096,), False)
    assert held == [2 * L2] * 4  # there already, and two calls brought nothing new
    assert measured.health.steady
    assert (len(cuda.buffers), cuda.held, measured.plan.cache) == (1, 0, "flush")


@pytest.mark.parametrize("told", [{}, {"L2_cache_size": 0}])
def test_a_cache_of_unknown_size_is_not_flushed_for_show(cuda, device, told):
    cuda.properties = told
    with (
        pytest.raises(MeasurementError, match=r"torch does not tell.*of cuda:0 is"),
        device.flushing(),
    ):
        pass


def test_a_buffer_that_cannot_be_had_is_said_with_its_size(cuda, device):
    cuda.free = L2
    with (
        pytest.raises(
            MeasurementError, match=r"needs 100 MiB on cuda:0.*out of memory"
        ),
        device.flushing(),
    ):
        pass


def test_a_slowdown_is_a_share_of_the_call_without_the_flush(cuda, device):
    device.begin("b", run=0, slowdown=0.5)
    with device.flushing() as flush:
        timed = device.time_calls(
            lambda: cuda.work(295 * US), count=1, inner=1, flush=flush
        )
    assert timed.host_ns == [450 * US]


def test_an_inner_loop_is_one_sample(cuda, device):
    timed = device.time_calls(lambda: cuda.work(100 * US), count=1, inner=4)
    assert timed.host_ns == [405 * US]


def test_a_slowdown_keeps_the_gpu_itself_busy(cuda, device):
    device.begin("b", run=0, slowdown=0.5)
    timed = device.time_calls(lambda: cuda.work(295 * US), count=1, inner=1)
    assert timed.host_ns == [450 * US]
    assert timed.device_ns == [pytest.approx(450 * US)]


def test_no_slowdown_no_spinning(cuda, device):
    device.begin("b", run=0, slowdown=0.0)
    device.time_calls(lambda: cuda.work(1), count=3, inner=1)
    assert "sleep" not in cuda.order
    assert not device.stretches


def test_work_on_another_stream_is_in_the_latency_and_not_in_the_span(cuda, device):
    def aside():
        cuda.host_ns += 5 * US
        cuda.aside_ns = cuda.host_ns + 250 * US

    wait = cuda.synchronize
    cuda.aside_ns = 0

    def synchronize(index):
        wait(index)
        cuda.host_ns = max(cuda.host_ns, cuda.aside_ns)

    cuda.synchronize = synchronize
    timed = device.time_calls(aside, count=1, inner=1)
    assert timed.host_ns == [255 * US]
    assert timed.device_ns == [pytest.approx(5 * US)]


def test_spans_between_marks_are_seconds(cuda, device):
    first = device.mark()
    cuda.work(2_000 * US)
    second = device.mark()
    device.synchronize()
    assert device.span_s(first, second) == pytest.approx(2.005e-3)


def test_peak_memory_is_taken_from_an_empty_cache(cuda, device):
    memory = device.peak_memory(lambda: cuda.work(1))
    assert memory.values == {
        "peak_memory": 4096,
        "base_memory": 1024,
        "working_memory": 3072,
        "reserved_memory": 8192,
        "outside_memory": 0,
        "memory_fragmentation": 0.5,  # all that an allocator without accounts tells
    }
    assert cuda.order == ["sync", "empty", "reset", "work", "work", "sync"]


def test_retries_of_the_allocator_are_read_outside_of_the_block(cuda, device):
    cuda.retries = 3
    before = device.reading(closing=False)
    cuda.work(50 * US)
    cuda.retries += 2
    use = difference(before, device.reading(closing=True))
    assert (use.allocation_retries, use.wall_ns) == (2, 5 * US)


def test_a_block_tells_what_its_calls_have_to_do_with_the_host(cuda, device):
    def block(work_ns):
        before = device.reading(closing=False)
        device.time_calls(lambda: cuda.work(work_ns), count=3, inner=1)
        return difference(before, device.reading(closing=True)).calls

    waits = block(2000 * US)
    assert waits.enqueue_share == pytest.approx(5 / 2000, rel=0.1)
    assert waits.covers(0.5)
    assert not block(4 * US).covers(0.5)
    before = device.reading(closing=False)
    assert difference(before, device.reading(closing=True)).calls is None


def test_a_planted_slowdown_leaves_nothing_to_say_of_the_host(cuda, device):
    device.begin("b", run=0, slowdown=0.5)
    before = device.reading(closing=False)
    device.time_calls(lambda: cuda.work(300 * US), count=1, inner=1)
    assert difference(before, device.reading(closing=True)).calls is None


def test_the_rest(cuda, device):
    device.measuring()
    assert device.settled()
    assert isinstance(device.reading(closing=False), Reading)
    assert (device.name, device.fake) == ("cuda:0", False)


@pytest.mark.parametrize(
    ("changes", "seen"), [({"is_available": lambda: False}, 0), ({}, 1)]
)
def test_a_gpu_torch_cannot_see(cuda, changes, seen):
    for name, value in changes.items():
        setattr(cuda, name, value)
    with pytest.raises(DeviceUnavailable, match=f"'cuda:1'.*torch sees {seen} GPUs"):
        open_cuda("cuda:1")
