"""What a device with events adds to a call: a full queue, and honest labels."""

import pytest

from pytest_perfgate.measure.context import Agreement
from pytest_perfgate.measured import Plan, Samples
from pytest_perfgate.workloads.call import (
    DEVICE_PERIOD,
    METRICS,
    measure_call,
    on_one_stream,
)
from pytest_perfgate.workloads.inference import Work, measure_inference


@pytest.fixture
def measure(make_context, make_fake, target):
    """Measure a call by a law; gives the record."""

    def measure(law, *, work=None, **changes):
        fake = make_fake(benchmarks={"*": law})
        context = make_context(device=fake, iterations=4, warmup=1, **changes)
        if work is None:
            return measure_call(context, target, int, (), {})[0]
        return measure_inference(context, target, int, (), work)[0]

    return measure


def test_a_full_queue_gives_a_period(measure, by_name):
    law = {"seconds": 0.01, "device": 0.9, "period": 0.5}
    periods = by_name(measure(law))["device_period"]
    assert periods == pytest.approx((0.005,) * 25)  # a quarter of a second of calls


@pytest.mark.parametrize(("seconds", "count"), [(0.1, 10), (1e-5, 1000)])
def test_how_many_calls_fill_a_queue(measure, by_name, seconds, count):
    found = by_name(measure({"seconds": seconds, "period": 1.0}))
    assert len(found["device_period"]) == count


def test_without_a_queue_there_is_no_period(measure, by_name):
    assert "device_period" not in by_name(measure({"seconds": 0.01}))


def test_in_a_pair_the_full_queue_has_a_turn_of_its_own(
    measure, by_name, make_other_side
):
    law = {"seconds": 0.01, "period": 0.5}
    with_queue, without = make_other_side(), make_other_side()
    found = measure(law, pair=with_queue)
    measure({"seconds": 0.01}, pair=without)
    assert with_queue.turns == without.turns + 1
    # a quarter of a second as the two have agreed on it, one call a turn
    assert by_name(found)["device_period"] == pytest.approx((0.005,) * 12)


@pytest.mark.parametrize("seconds", [0.001, 0.002])
def test_both_sides_queue_as_many_calls(measure, by_name, make_other_side, seconds):
    agreed = Agreement(iterations=64, warmup=1, per_turn=4)
    law = {"seconds": seconds, "period": 0.5}
    found = by_name(measure(law, pair=make_other_side(agreed)))
    assert len(found["device_period"]) == 50


def test_throughput_in_a_pair_is_that_of_the_full_queue(measure, make_other_side):
    law = {"seconds": 0.01, "period": 0.5}
    found = measure(law, work=Work(batch_size=8), pair=make_other_side())
    (series,) = (s for s in found.samples if s.metric.name == "throughput")
    assert series.metric.definition == "work-over-queued-wall/1"
    assert series.values == pytest.approx((1600.0,))


@pytest.mark.parametrize(
    ("work", "unit", "rate"),
    [
        (Work(batch_size=8), "items/s", 1600.0),
        (Work(batch_size=8, tokens=64), "tokens/s", 12800.0),
    ],
)
def test_throughput_is_that_of_the_full_queue(measure, work, unit, rate):
    found = measure({"seconds": 0.01, "period": 0.5}, work=work)
    (series,) = (s for s in found.samples if s.metric.name == "throughput")
    assert series.metric.unit == unit
    assert series.metric.definition == "work-over-queued-wall/1"
    assert series.values == pytest.approx((rate,))


def test_a_planted_slowdown_reaches_the_queue(measure, by_name):
    found = by_name(measure({"seconds": 0.01, "period": 0.5}, slowdown=0.5))
    assert found["device_period"][0] == pytest.approx(0.0075)


@pytest.mark.parametrize(("share", "bound"), [(0.79, False), (0.8, True), (0.95, True)])
def test_what_the_host_holds_up_is_called_so(measure, share, bound):
    found = measure({"seconds": 0.01, "device": 0.9, "enqueue": share})
    assert [r.startswith("host-bound") for r in found.remarks] == [True] * bound
    assert all(f"{share:.0%} of the latency" in remark for remark in found.remarks)


def test_spans_too_short_for_events_are_named(measure):
    (remark,) = measure({"seconds": 2e-5, "device": 0.5}).remarks
    assert remark == (
        "device_time of 10 µs a sample is mostly gaps between launches; "
        "inner_loop=20 would make it long enough"
    )


def test_an_inner_loop_makes_a_sample_long_enough(measure):
    law = {"seconds": 2e-5, "device": 0.5}
    plans = {"a.py::b": Plan(iterations=4, warmup=1, inner_loop=20)}
    (remark,) = measure(law, plans=plans).remarks
    assert remark.startswith("no P99: a sample is the mean of 20 calls")


COLD = {"seconds": 0.01, "device": 0.9, "period": 0.5, "flush": 1.6}


def test_a_flushed_cache_makes_calls_slower_and_leaves_no_full_queue(measure, by_name):
    found = measure(COLD, work=Work(batch_size=8), cache="flush")
    values = by_name(found)
    assert values["latency"] == pytest.approx((0.016,) * 4)
    assert values["device_time"] == pytest.approx((0.0144,) * 4)
    assert values["throughput"] == pytest.approx((8 / 0.016,))
    assert values["cpu_time"] == pytest.approx((0.016,) * 2)
    assert "device_period" not in values
    (rate,) = (s for s in found.samples if s.metric.name == "throughput")
    assert rate.metric.definition == "work-over-wall/1"
    assert (found.plan.cache, found.remarks) == ("flush", ())


def test_hot_is_what_is_measured_unless_asked(measure, by_name):
    found = measure(COLD)
    assert found.plan.cache == "hot"
    assert by_name(found)["latency"] == pytest.approx((0.01,) * 4)
    assert "device_period" in by_name(found)


def test_where_there_is_no_cache_to_flush_it_is_hot_and_said_so(measure, by_name):
    found = measure({"seconds": 0.01}, cache="flush")
    assert found.plan.cache == "hot"
    assert found.remarks == ("cache='flush' means nothing on fake: measured hot",)


def test_an_inner_loop_of_another_time_does_not_hold_with_a_flushed_cache(measure):
    plans = {"a.py::b": Plan(iterations=4, warmup=1, inner_loop=20)}
    found = measure(COLD, plans=plans, cache="flush")
    assert (found.plan.inner_loop, found.plan.iterations) == (1, 4)
    assert measure({"seconds": 0.01}, plans=plans, cache="flush").plan.inner_loop == 20


def test_spans_too_short_for_events_have_no_inner_loop_with_a_flushed_cache(measure):
    (remark,) = measure(
        {"seconds": 2e-5, "device": 0.5, "flush": 1.0}, cache="flush"
    ).remarks
    assert remark == (
        "device_time of 10 µs a sample is mostly gaps between launches; "
        "one call a sample is what a flushed cache allows"
    )


def spans(*values):
    return Samples(metric=METRICS["device_time"], values=values)


PERIODS = Samples(metric=DEVICE_PERIOD, values=(1.0,))


def test_a_span_that_cannot_hold_the_kernels_is_left_out():
    series, remarks = on_one_stream((PERIODS, spans(5e-6, 5e-6)), 250e-6)
    assert series == (PERIODS,)
    assert remarks == (
        (
            "no device_time: kernels ran for 250 µs a call and the events span 5 µs: "
            "the work is on another stream; let the current stream wait for it, or "
            "measure inside `with torch.cuda.stream(...)`"
        ),
    )


@pytest.mark.parametrize("busy_s", [0.0, 250e-6, 499e-6])
def test_a_span_that_may_hold_them_stays(busy_s):
    given = (PERIODS, spans(250e-6))
    assert on_one_stream(given, busy_s) == (given, ())


def test_without_a_span_nothing_is_compared():
    assert on_one_stream((PERIODS,), 1.0) == ((PERIODS,), ())
