"""The first part of a warm-up: compiling, taking memory, clocks, a loss scale."""

import sys
import types

import pytest

from pytest_perfgate.measure import settling
from pytest_perfgate.measure.compile_watch import watching_compiles
from pytest_perfgate.measure.health import DeviceReading
from pytest_perfgate.measure.recipe import Recipe
from pytest_perfgate.measure.runner import drive, schedule
from pytest_perfgate.measure.settling import Inner, settle

MS = 1_000_000


class Device:
    """A clock, an allocator and a GPU's clock rate, all by script."""

    def __init__(self, *, memory=(), mhz=()):
        self.now = 0
        self.memory = list(memory)
        self.mhz = list(mhz)
        self.read_at_ms = []

    def now_ns(self):
        return self.now

    def allocator_state(self):
        return self.memory[0] if self.memory else None

    @property
    def telemetry(self):
        return self if self.mhz else None

    def read(self):
        self.read_at_ms.append(self.now // MS)
        mhz = self.mhz.pop(0) if len(self.mhz) > 1 else self.mhz[0]
        return DeviceReading(time_s=self.now / 1e9, sm_mhz=mhz)


def run(device, *, inner=None, patience_s=60.0, each=lambda: 10 * MS):
    """Carry the first part out; each call takes what `each` says."""
    part = settle(device, inner, patience_s=patience_s)
    try:
        request = next(part)
        while True:
            assert (request.count, request.measured) == (1, False)
            took = each()
            device.now += took
            if len(device.memory) > 1:
                device.memory.pop(0)
            request = part.send([took])
    except StopIteration as ended:
        return ended.value


def test_two_calls_that_bring_nothing_new_are_enough():
    settled = run(Device())
    assert settled.times == (10 * MS,) * 2
    assert settled.quiet
    assert settled.clock_calls == 0


def test_memory_taken_from_the_driver_is_something_new():
    # taken by the first and the third call
    settled = run(Device(memory=[1, 2, 2, 3, 3, 3]))
    assert len(settled.times) == 5
    assert settled.quiet


@pytest.fixture
def compiler(monkeypatch):
    callbacks = []
    handler = types.SimpleNamespace(
        register_start_callback=callbacks.append,
        remove_start_callback=callbacks.remove,
    )
    module = types.SimpleNamespace(callback_handler=handler)
    monkeypatch.setitem(sys.modules, "torch._dynamo.callback", module)

    def compile_by(trigger):
        event = types.SimpleNamespace(
            callback_trigger=types.SimpleNamespace(name=trigger)
        )
        for callback in callbacks:
            callback(event)

    yield compile_by
    assert not callbacks


@pytest.mark.parametrize("trigger", ["DYNAMO", "LAZY_BACKWARD", "CUDAGRAPH_RECORDING"])
def test_a_call_that_compiles_or_records_is_not_quiet(compiler, trigger):
    left = [True, True, False, True]

    def each():
        if left and left.pop(0):
            compiler(trigger)
        return MS

    assert len(run(Device(), each=each).times) == 6


def test_in_blocks_only_functions_are_recompilations(compiler):
    with watching_compiles() as seen:
        compiler("LAZY_BACKWARD")
        compiler("DYNAMO")
    assert seen.count == 1


def test_what_compiles_at_every_call_is_given_up(compiler):
    settled = run(Device(), each=lambda: compiler("DYNAMO") or MS)
    assert len(settled.times) == settling.MOST_CALLS == 50
    assert not settled.quiet


def test_slow_calls_are_given_up_earlier(compiler):
    settled = run(Device(), patience_s=1.0, each=lambda: compiler("DYNAMO") or 400 * MS)
    assert len(settled.times) == 3
    assert not settled.quiet


def test_a_loss_scale_rests_for_ten_steps():
    scales = [8.0, 4.0, 4.0, 2.0] + [1.0] * 20
    inner = Inner(what="scale", state=lambda: scales[0], calls=10)
    settled = run(Device(), inner=inner, each=lambda: scales.pop(0) and MS)
    # the fourth step moves it last
    assert len(settled.times) == 4 + 10
    assert settled.quiet


def test_clocks_are_awaited_for_a_second_at_least():
    device = Device(mhz=[1980.0])
    settled = run(device)
    assert settled.clock_calls == 100
    # from the end of the two first calls on, four times a second
    assert device.read_at_ms == [20, 270, 520, 770, 1020]
    assert settled.remarks == ()


def test_a_clock_that_still_rises_is_awaited():
    device = Device(mhz=[1000.0, 1100.0, 1200.0, 1300.0, 1400.0, 1500.0, 1529.0])
    settled = run(device)
    assert settled.clock_calls == 150  # 1529 is less than 2 % above 1500
    assert device.read_at_ms[-1] == 1520


def test_a_clock_that_never_holds_is_awaited_for_ten_seconds():
    device = Device(mhz=[1000.0, 1500.0] * 100)
    settled = run(device)
    assert settled.clock_calls == 1000
    assert settled.quiet
    assert settled.remarks == (
        (
            "the GPU's clock still moved by 33.3% in a quarter of a second, "
            "after 10.0 s of warm-up"
        ),
    )


def test_a_driver_that_falls_silent_is_not_awaited():
    settled = run(Device(mhz=[1000.0, None]))
    assert settled.clock_calls == 25
    assert settled.remarks == ()


def test_the_whole_warm_up_is_counted(make_fake):
    device = make_fake(benchmarks={"*": {"seconds": 0.01, "gpu": {"sm_mhz": 1980}}})
    device.begin("b", run=0, slowdown=0.0)
    wanted = Recipe(iterations=5, warmup=None, inner_loop=1, max_time_s=1.0)
    made = []

    def perform(request):
        made.append(request.count)
        return device.time_calls(int, count=request.count, inner=1).host_ns

    outcome = drive(schedule(device, wanted), perform)
    assert outcome.warmup == sum(made) - 5
    assert made[:3] == [1, 1, 1]
    assert outcome.warmup > 1 + 2 + 100  # the clock's second is in it


def test_a_stated_warm_up_is_as_stated(make_fake):
    device = make_fake(benchmarks={"*": {"gpu": {"sm_mhz": 1980}}})
    wanted = Recipe(iterations=5, warmup=3, inner_loop=1, max_time_s=1.0)
    outcome = drive(
        schedule(device, wanted),
        lambda request: device.time_calls(int, count=request.count, inner=1).host_ns,
    )
    assert outcome.warmup == 3


def test_a_long_stated_warm_up_comes_in_portions(make_fake):
    # a second of clocks may be tens of thousands of calls in a plan
    device = make_fake()
    wanted = Recipe(iterations=5, warmup=12_001, inner_loop=1, max_time_s=1.0)
    made = []

    def perform(request):
        made.append(request.count)
        return [1_000_000] * request.count

    assert drive(schedule(device, wanted), perform).warmup == 12_001
    assert made[:4] == [1, 5000, 5000, 2000]


# -- what moves while it is measured


def measured(make_fake, moves, *, pair=None):
    """Measure twenty iterations in blocks of five, each a scripted state."""
    device = make_fake(benchmarks={"*": {"seconds": 0.05}})
    state = {"now": 0, "blocks": 0}
    inner = Inner(what="the loss scale", state=lambda: state["now"], calls=0)
    dropped = []

    def perform(request):
        if request.measured:
            dropped.append(request.dropped)
            state["now"] += state["blocks"] in moves
            state["blocks"] += 1
        return device.time_calls(int, count=request.count, inner=1).host_ns

    wanted = Recipe(iterations=20, warmup=2, inner_loop=1, max_time_s=1.0, pair=pair)
    return drive(schedule(device, wanted, inner=inner), perform), dropped


def test_a_block_in_which_it_moved_is_made_again(make_fake):
    outcome, dropped = measured(make_fake, {1})
    assert dropped == [0, 0, 5, 0, 0]
    assert outcome.iterations == 20
    assert outcome.health.steady
    assert outcome.remarks == ("the loss scale moved, blocks made again: 1",)


def test_what_moves_for_a_fourth_time_is_not_steady(make_fake):
    outcome, dropped = measured(make_fake, {0, 1, 2, 3})
    assert dropped == [0, 5, 5, 5, 0, 0, 0]
    assert not outcome.health.steady


def test_in_a_pair_nothing_is_made_again(make_fake, make_other_side):
    outcome, dropped = measured(make_fake, {0}, pair=make_other_side())
    assert not any(dropped)
    assert outcome.health.steady
