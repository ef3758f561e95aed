import pytest

from pytest_perfgate.measure.cpu import CpuDevice, spin
from pytest_perfgate.measure.cpu_guard import Reading


class StillGuard:
    def read(self, now_ns, *, closing):
        return Reading(wall_ns=now_ns(), cpu_ns=1 if closing else 0)


@pytest.fixture
def clock(make_clock):
    return make_clock()


@pytest.fixture
def device(clock):
    return CpuDevice(clock=clock, guard=StillGuard())


def working(clock, duration):
    def work():
        clock.now += duration
        return clock.now

    return work


def test_one_reading_on_each_side_of_a_call(device, clock):
    timed = device.time_calls(working(clock, 100), count=3, inner=1)
    assert timed.host_ns == [110, 110, 110]
    assert clock.now == 3 * (10 + 100 + 10)
    assert timed.device_ns is None


def test_the_last_result_is_kept(device):
    results = iter("abc")
    assert device.time_calls(lambda: next(results), count=3, inner=1).result == "c"


@pytest.mark.parametrize(("inner", "slowdown"), [(1, 0.0), (3, 0.0), (1, 0.5)])
def test_the_earlier_result_is_gone_before_the_next_call(device, inner, slowdown):
    class Heavy:
        alive = 0

        def __init__(self):
            Heavy.alive += 1

        def __del__(self):
            Heavy.alive -= 1

    found = []

    def work():
        found.append(Heavy.alive)
        return Heavy()

    device.begin("b", run=0, slowdown=slowdown)
    device.time_calls(work, count=3, inner=inner)
    assert found[::inner] == [0, 0, 0]


def test_an_inner_loop_is_one_sample(device, clock):
    timed = device.time_calls(working(clock, 100), count=2, inner=5)
    assert timed.host_ns == [510, 510]


def test_a_slowdown_stretches_each_call_by_its_share(device, clock):
    device.begin("b", run=0, slowdown=0.6)
    timed = device.time_calls(working(clock, 990), count=3, inner=1)
    assert timed.host_ns == [1600, 1600, 1600]


def test_a_slowdown_stretches_the_inner_loop(device, clock):
    device.begin("b", run=0, slowdown=1.0)
    timed = device.time_calls(working(clock, 199), count=1, inner=10)
    assert timed.host_ns == [4000]


def test_a_slowdown_ends_with_the_measurement_it_was_planted_in(device, clock):
    device.begin("b", run=0, slowdown=0.6)
    device.begin("c", run=0, slowdown=0.0)
    assert not device.stretches
    assert device.time_calls(working(clock, 90), count=1, inner=1).host_ns == [100]


def test_stretching_a_part(device, clock):
    device.begin("b", run=0, slowdown=0.5)
    before = clock.now
    device.stretch(1000, "stage:x")
    assert 500 <= clock.now - before <= 520


def test_spinning_lasts_as_long_as_asked(clock):
    spin(clock, 200)
    assert clock.now >= 200


def test_marks_are_moments(device):
    first = device.mark()
    second = device.mark()
    assert device.span_s(first, second) == pytest.approx(10e-9)
    with pytest.raises(TypeError, match="not a mark"):
        device.span_s("a", second)


def test_readings_use_the_device_s_clock(device, clock):
    assert device.reading(closing=True).wall_ns == clock.now


def test_the_cpu_is_what_it_seems(device):
    device.synchronize()
    device.measuring()
    assert device.settled()
    assert (device.name, device.fake, device.stretches) == ("cpu", False, False)
    assert device.tick_s > 0


def test_a_processor_has_no_cache_to_flush():
    with CpuDevice().flushing() as flush:
        assert flush is None
