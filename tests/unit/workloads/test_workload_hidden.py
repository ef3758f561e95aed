"""`hide_launch=True`: a full queue that a GPU begins when the host is done with it."""

import sys
import types

import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measure.counters import Counted
from pytest_perfgate.measure.device import open_device
from pytest_perfgate.measure.recipe import recipe
from pytest_perfgate.measured import Metric, Samples
from pytest_perfgate.workloads import call as calls_module
from pytest_perfgate.workloads.call import measure_call
from pytest_perfgate.workloads.hidden import HIDDEN_PERIOD
from pytest_perfgate.workloads.inference import Work, measure_inference
from tests.streams import US, Gpu

LAW = {"seconds": 1e-3, "device": 0.9, "period": 0.5, "hidden": 0.25, "enqueue": 0.1}
NONE = "no device_period, since no launch can be hidden: "


@pytest.fixture
def counting(monkeypatch):
    """Say what was counted of a call."""

    def say(**counts):
        counts = {"kernel_launches": 2, "syncs": 0, "copies_pageable": 0} | counts
        series = tuple(
            Samples(metric=Metric(name=name, unit="1", exact=True), values=(value,))
            for name, value in counts.items()
            if value is not None
        )
        monkeypatch.setattr(
            calls_module, "counted", lambda *_, **__: Counted(series=series)
        )

    say()
    return say


@pytest.fixture
def measure(make_context, make_fake, target, counting):
    """Measure a call by a law, with launches to be hidden; gives the record."""

    def measure(law=LAW, *, work=None, call=int, **changes):
        fields = {
            "device": make_fake(benchmarks={"*": law}),
            "iterations": 4,
            "warmup": 3,
            "hide_launch": True,
        }
        context = make_context(**(fields | changes))
        if work is None:
            return measure_call(context, target, call, (), {})[0]
        return measure_inference(context, target, call, (), work)[0]

    return measure


def series_of(measurement, name):
    (found,) = [s for s in measurement.samples if s.metric.name == name]
    return found


def test_the_period_is_that_of_a_queue_which_was_handed_over_before(measure):
    found = series_of(measure(LAW), "device_period")
    assert found.metric == HIDDEN_PERIOD
    # three entries a call, two launches and a mark, of five hundred
    assert found.values == pytest.approx((0.25e-3,) * 166)


def test_calls_that_last_fill_a_quarter_of_a_second(measure):
    found = series_of(measure(LAW | {"seconds": 0.05}), "device_period")
    assert len(found.values) == 5


def test_unasked_it_stays_as_it_was(measure):
    found = series_of(measure(LAW, hide_launch=False), "device_period")
    assert found.metric.definition == "event-period/1"
    assert found.metric.definition != HIDDEN_PERIOD.definition
    assert found.values == pytest.approx((0.5e-3,) * 250)


def test_throughput_is_that_of_the_queue_as_it_is(measure):
    found = measure(LAW, work=Work(batch_size=1))
    assert series_of(found, "throughput").values == pytest.approx((2000.0,))
    assert series_of(found, "device_period").metric == HIDDEN_PERIOD


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ({"kernel_launches": None}, "what a call launches was not counted"),
        ({"syncs": 1}, "a call waits for the GPU, 1 times"),
        ({"copies_pageable": 3}, "a call makes pageable copies, 3 times"),
        ({"kernel_launches": 0}, "a call launches nothing"),
        (
            {"kernel_launches": 499},
            "a call launches 499 times, more than fit into a queue",
        ),
        (
            {"graph_launches": 498},
            "a call launches 500 times, more than fit into a queue",
        ),
    ],
)
def test_where_launches_cannot_be_hidden_there_is_no_period(
    measure, counting, counts, why
):
    counting(**counts)
    found = measure(LAW)
    assert found.remarks == (NONE + why,)
    assert "device_period" not in {s.metric.name for s in found.samples}


def test_a_call_that_just_fits_is_a_queue_of_its_own(measure, counting):
    counting(kernel_launches=498)
    assert len(series_of(measure(LAW), "device_period").values) == 1


def test_a_graph_is_one_launch_and_copies_are_launches(measure, counting):
    counting(kernel_launches=0, graph_launches=1, copies_h2d=1, copies_d2h=1)
    assert len(series_of(measure(LAW), "device_period").values) == 125


def test_a_device_that_cannot_be_kept_waiting_says_so(measure):
    law = {name: value for name, value in LAW.items() if name != "hidden"}
    assert measure(law).remarks == (
        NONE + "this version of torch cannot keep a GPU waiting",
    )


def test_no_gpu_is_kept_waiting_for_more_than_a_second(measure):
    (remark,) = measure(LAW | {"seconds": 1.5, "enqueue": 0.7}).remarks
    assert remark == (
        NONE + "handing 1 calls over takes 1.05 s, longer than a GPU should be kept "
        "waiting"
    )


def test_without_a_queue_it_means_nothing(measure):
    assert measure({"seconds": 1e-3}).remarks == (
        "hide_launch=True means nothing on fake: it has no queue",
    )


def test_it_is_for_calls_and_inference(make_context):
    wanted = recipe(make_context(hide_launch=True), "b")
    with pytest.raises(UsageError, match="hide_launch=True means nothing for training"):
        wanted.single("training")


@pytest.fixture
def gpu(monkeypatch):
    made = Gpu()
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=made))
    return made


@pytest.fixture
def device(gpu, monkeypatch):
    opened = open_device("cuda:0", fake_script=None)
    monkeypatch.delitem(sys.modules, "torch")  # the rest goes without it
    opened.now_ns = lambda: gpu.host_ns
    return opened


def test_kernels_shorter_than_their_launches_show_their_own_time(gpu, device, measure):
    """Of 1 µs each, launched every 5 µs: a full queue alone shows the launching."""

    def period(**changes):
        found = measure(device=device, call=lambda: gpu.work(1 * US), **changes)
        assert not any(remark.startswith(NONE) for remark in found.remarks)
        return series_of(found, "device_period").values[1:]

    assert period(hide_launch=False) == pytest.approx((5e-6,) * 999)
    assert period() == pytest.approx((1e-6,) * 165)


def test_nothing_is_launched_behind_a_spin_before_all_was_tried_without(
    gpu, device, measure
):
    measure(device=device, call=lambda: gpu.work(1 * US))
    order = [what for what, _ in gpu.order]
    first, last = order.index("sleep"), len(order) - order[::-1].index("sleep")
    assert order[:first].count("work") > 1000  # warm-up, and both passes
    # the spin alone, twice: loaded, and timed
    assert order[first : first + 5] == ["sleep", "event", "sleep", "event", "sync"]
    # a queue without it, and one behind it
    assert order[first + 5 : last].count("work") == 166
    assert order[last:].count("work") == 166
    assert order.count("sleep") == 3


def test_a_host_that_takes_longer_every_time_is_never_ahead(gpu, device, measure):
    host_ns = [100.0]

    def call():
        host_ns[0] *= 1.002  # which makes 1.4 of a queue of 166
        gpu.host_ns += round(host_ns[0])

    found = measure(device=device, call=call)
    assert found.remarks[-1] == NONE + "handing over took longer than before, 3 times"


def test_a_torch_without_the_spin_kernel(gpu, device, measure, monkeypatch):
    monkeypatch.delattr(Gpu, "_sleep")
    found = measure(device=device, call=lambda: gpu.work(1 * US))
    assert found.remarks[-1].endswith("this version of torch cannot keep a GPU waiting")


def test_a_planted_slowdown_is_in_the_queue_too(gpu, device, measure):
    found = measure(device=device, call=lambda: gpu.work(95 * US), slowdown=0.5)
    # half of the 100 µs that a call of its own takes, launch and all
    assert series_of(found, "device_period").values[1:] == pytest.approx(
        (145e-6,) * 124
    )
