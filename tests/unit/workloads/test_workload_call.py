import asyncio

import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measured import METRICS, Plan
from pytest_perfgate.workloads.call import bound, check_callable, measure_call

MS = 1_000_000


def measure(context, target, function=lambda: None, *args, **kwargs):
    return measure_call(context, target, function, args, kwargs)


def test_a_call_gives_exact_latencies_and_cpu_time(
    make_context, make_fake, target, by_name
):
    device = make_fake(benchmarks={"*": {"values": [0.001, 0.002]}})
    context = make_context(device=device, iterations=4, warmup=2, run=3, seed=7)
    measurement, _ = measure(context, target)
    values = by_name(measurement)
    assert values["latency"] == (0.001, 0.002, 0.001, 0.002)
    assert values["cpu_time"] == pytest.approx((0.0015,))
    assert set(values) == {"latency", "cpu_time", "first_call"}
    assert measurement.samples[0].metric == METRICS["latency"]
    assert measurement.plan == Plan(
        iterations=4,
        warmup=2,
        seed=7,
        device="fake",
        threads=measurement.plan.threads,
        workload=measurement.plan.workload,
    )
    assert (measurement.benchmark, measurement.run) == ("a.py::b", 3)


def test_arguments_reach_the_function_and_its_last_result_comes_back(
    make_context, target
):
    calls = []

    def work(*args, **kwargs):
        calls.append((args, kwargs))
        return len(calls)

    context = make_context(iterations=5, warmup=3)
    _, result = measure(context, target, work, 1, key=2)
    assert calls == [((1,), {"key": 2})] * 8
    assert result == 8


def test_a_function_without_arguments_is_called_as_it_is():
    def work():
        return 1

    assert bound(work, (), {}) is work
    assert bound(work, (1,), {}) is not work


def test_samples_are_per_call_of_an_inner_loop(
    make_context, make_fake, target, by_name
):
    device = make_fake(benchmarks={"*": {"seconds": 0.001}})
    context = make_context(device=device, iterations=4, warmup=2, inner_loop=5)
    measurement, _ = measure(context, target)
    assert by_name(measurement)["latency"] == (0.001,) * 4
    assert by_name(measurement)["cpu_time"] == pytest.approx((0.001,))
    assert measurement.clock_tick_s == pytest.approx(1e-9 / 5)
    assert measurement.plan.inner_loop == 5


@pytest.mark.parametrize("inner_loop", [1, 5])
def test_what_the_first_call_takes_is_no_sample(
    make_context, make_fake, target, by_name, inner_loop
):
    values = [9.0] + [0.001] * (inner_loop * 6)
    device = make_fake(benchmarks={"*": {"values": values}})
    context = make_context(device=device, iterations=4, warmup=2, inner_loop=inner_loop)
    found = by_name(measure(context, target)[0])
    assert found["first_call"] == (9.0,)  # one call, whatever the inner loop
    assert len(found["latency"]) == 4


def test_without_a_warm_up_the_first_call_is_a_sample(
    make_context, make_fake, target, by_name
):
    device = make_fake(benchmarks={"*": {"values": [9.0, 0.001]}})
    context = make_context(device=device, iterations=2, warmup=0)
    found = by_name(measure(context, target)[0])
    assert "first_call" not in found
    assert found["latency"] == (9.0, 0.001)


def test_a_device_with_events_gives_its_own_time(
    make_context, make_fake, target, by_name
):
    device = make_fake(benchmarks={"*": {"seconds": 0.001, "device": 0.5}})
    context = make_context(device=device, iterations=4, warmup=2, inner_loop=2)
    measurement, _ = measure(context, target)
    assert by_name(measurement)["device_time"] == (0.0005,) * 4


def test_a_planted_slowdown_shows(make_context, target, by_name):
    context = make_context(iterations=2, warmup=1, slowdown=0.6)
    measurement, _ = measure(context, target)
    assert by_name(measurement)["latency"] == (0.0016, 0.0016)


def test_what_the_function_raises_comes_through(make_context, target):
    with pytest.raises(ZeroDivisionError):
        measure(make_context(), target, lambda: 1 / 0)


async def coroutine():
    await asyncio.sleep(0)


def generator():
    yield 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (42, "42 is none"),
        (coroutine, "coroutine function"),
        (generator, "generator function"),
    ],
)
def test_what_would_do_no_work_is_refused(value, words):
    with pytest.raises(UsageError, match=words):
        check_callable(value)
