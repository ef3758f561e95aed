"""How many calls a sample is made of, on a device whose events need longer ones."""

import sys
import types
from dataclasses import replace

import pytest

from pytest_perfgate.measure.context import Agreement
from pytest_perfgate.measure.device import open_device
from pytest_perfgate.measure.lengthening import calls_needed
from pytest_perfgate.measured import Plan
from pytest_perfgate.workloads.call import measure_call
from pytest_perfgate.workloads.target import Target
from tests.streams import US, Gpu

TARGET = Target(nodeid="a.py::b", benchmark="a.py::b")
NO_P99 = "no P99: a sample is the mean of {} calls (inner_loop=1 takes them one by one)"


@pytest.fixture
def measure(make_context, make_fake):
    """Measure a call by a law, where nobody says how many calls a sample has."""

    def measure(law, **changes):
        fake = make_fake(benchmarks={"*": law})
        fields = {"inner_loop": None, "iterations": 4, "device": fake} | changes
        return measure_call(make_context(**fields), TARGET, int, (), {})[0]

    return measure


def values(measurement, name):
    return next(s.values for s in measurement.samples if s.metric.name == name)


@pytest.mark.parametrize(
    ("span_us", "calls"),
    [(49.9, 5), (40, 5), (20, 10), (12, 17), (10, 20), (1, 200), (0.1, 1000)],
)
def test_a_sample_spans_two_hundred_microseconds_at_least(measure, span_us, calls):
    found = measure({"seconds": 2e-6 * span_us, "device": 0.5})
    assert found.plan.inner_loop == calls
    assert calls * span_us >= 200 or calls == 1000
    # all values are of one call still
    assert values(found, "device_time") == pytest.approx(
        (span_us * 1e-6,) * 4, rel=0.01
    )
    assert values(found, "latency") == pytest.approx((span_us * 2e-6,) * 4, rel=0.01)
    assert found.remarks[0] == NO_P99.format(f"{calls:,}")


@pytest.mark.parametrize("span_us", [50, 51, 900])
def test_a_call_that_is_long_enough_is_a_sample_of_its_own(measure, span_us):
    found = measure({"seconds": 2e-6 * span_us, "device": 0.5})
    assert (found.plan.inner_loop, found.remarks) == (1, ())


@pytest.mark.parametrize("law", [{"seconds": 1e-6}, {"seconds": 1e-6, "period": 1.0}])
def test_without_events_a_call_is_a_sample(measure, law):
    assert measure(law).plan.inner_loop == 1


def test_a_span_of_nothing_ends_at_a_thousand_calls(measure):
    found = measure({"seconds": 1e-5, "device": 0.0})
    assert found.plan.inner_loop == 1000
    assert found.remarks[1] == (
        "device_time of 0 µs a sample is mostly gaps between launches; "
        "and there is no making it long enough"
    )
    assert calls_needed(0.0) == 1000


LAW = {"seconds": 2e-5, "device": 0.5}


@pytest.mark.parametrize(
    ("changes", "calls", "advice"),
    [
        ({"inner_loop": 1}, 1, "inner_loop=20 would make it long enough"),
        ({"inner_loop": 2}, 2, "inner_loop=20 would make it long enough"),
        ({"inner_loop": 1, "calibrated_inner": {"a.py::b": 20}}, 1, "inner_loop=20"),
        (
            {"plans": {"a.py::b": Plan(iterations=4, warmup=3)}},
            1,
            "the stored plan has inner_loop=1, and --perfgate-update records one that",
        ),
        ({"warmup": 0}, 1, "inner_loop=20 would make it long enough"),
    ],
)
def test_what_is_said_beforehand_holds(measure, changes, calls, advice):
    found = measure(LAW, **changes)
    assert found.plan.inner_loop == calls
    assert advice in found.remarks[-1]


@pytest.mark.parametrize(("seconds", "calls"), [(2.01e-4, 1), (1.9e-4, 40)])
def test_what_the_host_waits_longer_for_is_work_that_no_event_sees(
    measure, seconds, calls
):
    found = measure({"seconds": seconds, "device": 5e-6 / seconds})
    assert found.plan.inner_loop == calls


def test_a_flushed_cache_allows_one_call_a_sample(measure):
    found = measure(LAW | {"flush": 0.001}, cache="flush")
    assert (found.plan.cache, found.plan.inner_loop) == ("flush", 1)
    (remark,) = found.remarks
    assert remark.endswith("one call a sample is what a flushed cache allows")


def test_later_runs_follow_the_first(measure):
    found = measure({"seconds": 1.0, "device": 0.5}, calibrated_inner={"a.py::b": 20})
    assert found.plan.inner_loop == 20


def test_a_stored_plan_outweighs_all(measure):
    plans = {"a.py::b": Plan(iterations=4, warmup=3, inner_loop=7)}
    found = measure(
        LAW, plans=plans, inner_loop=3, calibrated_inner={"a.py::b": 20}, warmup=9
    )
    assert found.plan == replace(plans["a.py::b"], **_as_measured(found.plan))


def _as_measured(plan):
    names = ("seed", "threads", "device", "workload")
    return {name: getattr(plan, name) for name in names}


def test_the_side_that_comes_first_settles_it_for_both(measure, make_other_side):
    first = make_other_side()
    led = measure(LAW, pair=first, warmup=40)
    assert first.agreed == Agreement(iterations=4, warmup=40, per_turn=1, inner_loop=20)
    second = make_other_side(first.agreed)
    followed = measure({"seconds": 1.0, "device": 0.5}, pair=second)
    assert followed.plan == led.plan


def test_an_older_side_that_says_nothing_takes_single_calls(measure, make_other_side):
    agreed = Agreement(iterations=4, warmup=3, per_turn=1)
    found = measure(LAW, pair=make_other_side(agreed))
    assert found.plan.inner_loop == 1


def test_calls_of_the_warm_up_add_up_to_iterations(measure):
    found = measure(LAW, max_time_s=0.001)
    # one cold, forty that are few enough to be told steady, and five of twenty
    single = measure(LAW, max_time_s=0.001, inner_loop=1).plan.warmup
    assert found.plan.warmup == -(-(single + 5 * 20) // 20)


def test_as_many_whole_iterations_as_fill_the_time(measure):
    found = measure(LAW, iterations=None, max_time_s=0.4, wants_p99=True)
    # 400 µs each, and nothing raised for a P99 that there is not
    assert (found.plan.inner_loop, found.plan.iterations) == (20, 1000)


class Watched:
    """A device that keeps what is asked of it."""

    def __init__(self, device):
        self._device = device
        self.asked = []

    def __getattr__(self, name):
        return getattr(self._device, name)

    def time_calls(self, call, *, count, inner, **others):
        self.asked.append((count, inner))
        return self._device.time_calls(call, count=count, inner=inner, **others)


SINGLES = {
    1: [(1, 1), (1, 1), (5, 1), (5, 20)],  # one is not known to be short before
    4: [(1, 1), (3, 1), (5, 1), (5, 20)],
    40: [(1, 1), (39, 1), (5, 20), (33, 20)],  # 140 calls are 7 of 40 iterations
    6000: [(1, 1), (5000, 1), (999, 1), (5, 20), (5000, 20), (695, 20)],
}


@pytest.mark.parametrize("warmup", SINGLES)
def test_a_stated_warm_up_stays_in_the_plan(measure, make_fake, warmup):
    device = Watched(make_fake(benchmarks={"*": LAW}))
    assert measure(LAW, warmup=warmup, device=device).plan.warmup == warmup
    assert device.asked == [*SINGLES[warmup], (4, 20)]


def test_one_more_call_tells_that_a_long_one_needs_no_others(measure, make_fake):
    def asked(law):
        device = Watched(make_fake(benchmarks={"*": law}))
        measure(law, warmup=1, iterations=3, device=device)
        return device.asked

    slow = {"seconds": 5.0, "device": 0.9}
    assert asked(slow) == [(1, 1), (1, 1), *[(1, 1)] * 3]
    assert asked({"seconds": 5.0}) == [(1, 1), *[(1, 1)] * 3]  # has no events
    assert asked(LAW) == [(1, 1), (1, 1), (5, 1), (5, 20), (3, 20)]


@pytest.fixture
def gpu(monkeypatch):
    made = Gpu()
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=made))
    return made


def test_calls_in_a_row_span_less_than_their_number_times_one(
    make_context, gpu, monkeypatch
):
    """One of 1 µs spans 6: launching it takes 5. In a row each adds but 5."""
    device = open_device("cuda:0", fake_script=None)
    device.now_ns = lambda: gpu.host_ns
    monkeypatch.delitem(sys.modules, "torch")  # the rest goes without it
    context = make_context(
        device=device, inner_loop=None, iterations=3, warmup=9, max_time_s=0.01
    )
    found, _ = measure_call(context, TARGET, lambda: gpu.work(1 * US), (), {})
    # 34 calls would do if they took 6 µs each; they span 171
    assert found.plan.inner_loop == 50
    assert values(found, "device_time") == pytest.approx((251e-6 / 50,) * 3)
    assert values(found, "latency") == pytest.approx((251e-6 / 50,) * 3)
