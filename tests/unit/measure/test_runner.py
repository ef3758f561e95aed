import gc
import weakref
from dataclasses import replace

import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measure.context import Agreement
from pytest_perfgate.measure.recipe import FOR_P99, Recipe, calibrate, recipe
from pytest_perfgate.measure.runner import drive, schedule
from pytest_perfgate.measured import Plan

MS = 1_000_000


def make_recipe(**changes):
    fields = {"iterations": None, "warmup": None, "inner_loop": 1, "max_time_s": 1.0}
    return Recipe(**(fields | changes))


class Performer:
    """Performs iterations on the virtual clock of a fake device."""

    flush = None

    def __init__(self, device, *, work=lambda: None):
        self.device = device
        self.requests = []
        self.work = work

    def __call__(self, request):
        self.requests.append(request)
        timed = self.device.time_calls(
            self.work, count=request.count, inner=1, flush=self.flush
        )
        return timed.host_ns

    @property
    def measured(self):
        return [request.count for request in self.requests if request.measured]

    @property
    def unmeasured(self):
        return [request.count for request in self.requests if not request.measured]

    @property
    def warmup(self):
        return sum(request.count for request in self.requests if not request.measured)


@pytest.fixture
def measure(make_fake):
    def run(wanted, *, work=lambda: None, **law):
        device = make_fake(benchmarks={"*": law})
        device.begin("b", run=0, slowdown=0.0)
        perform = Performer(device, work=work)
        return drive(schedule(device, wanted), perform), perform

    return run


def test_the_plan_governs_warm_up_and_iterations(measure):
    outcome, perform = measure(make_recipe(iterations=30, warmup=7))
    assert (outcome.iterations, outcome.warmup) == (30, 7)
    assert perform.warmup == 7
    assert sum(perform.measured) == 30


def test_the_first_call_is_made_apart(measure):
    _, perform = measure(make_recipe(iterations=30, warmup=7))
    assert [request.count for request in perform.requests[:2]] == [1, 6]


def test_a_warm_up_of_one_is_the_first_call_alone(measure):
    outcome, perform = measure(make_recipe(iterations=30, warmup=1))
    assert (outcome.warmup, perform.warmup) == (1, 1)


def test_without_warm_up_the_first_call_is_measured(measure):
    outcome, perform = measure(make_recipe(warmup=0), seconds=0.02)
    assert perform.warmup == 0
    assert perform.measured[0] == 1
    assert outcome.iterations == 50


def test_samples_are_exact_seconds(measure):
    outcome, _ = measure(make_recipe(iterations=3, warmup=1), values=[0.001, 0.002])
    assert outcome.seconds == (0.001, 0.002, 0.001)


def test_iterations_fill_the_wanted_time(measure):
    outcome, _ = measure(make_recipe(max_time_s=2.0), seconds=0.01)
    assert outcome.iterations == 200


def test_blocks_last_a_quarter_of_a_second(measure):
    outcome, perform = measure(make_recipe(iterations=120, warmup=5), seconds=0.01)
    assert perform.measured == [25, 25, 25, 25, 20]
    assert outcome.health.blocks == 5
    assert outcome.cpu_time_s == pytest.approx([0.01] * 5)
    assert outcome.wall_ns == 120 * 10 * MS


def flushed(device, wanted):
    """Drive a schedule whose iterations are made with a flushed cache."""
    device.begin("b", run=0, slowdown=0.0)
    perform = Performer(device)
    with device.flushing() as perform.flush:
        return drive(schedule(device, wanted, flush=perform.flush), perform), perform


def test_what_flushing_takes_is_in_no_number(make_fake):
    device = make_fake(benchmarks={"*": {"seconds": 1e-3, "flush": 1.5}})
    outcome, perform = flushed(device, make_recipe(iterations=200, warmup=5))
    assert outcome.seconds == (1.5e-3,) * 200
    assert outcome.wall_ns == 200 * 1.5 * MS
    assert outcome.cpu_time_s == pytest.approx([1.5e-3] * 2)
    assert outcome.cache == "flush"
    assert perform.flush.count == 205  # the warm-up's, too


def test_blocks_and_turns_last_as_long_with_what_flushing_takes(
    make_fake, make_other_side
):
    device = make_fake(benchmarks={"*": {"seconds": 50e-6, "flush": 1.0}})
    wanted = make_recipe(iterations=5000, warmup=5)
    outcome, perform = flushed(device, wanted)
    assert perform.measured == [2500] * 2  # 50 µs each, and 50 µs for the flush
    other = make_other_side()
    outcome, _ = flushed(device, replace(wanted, pair=other))
    assert outcome.turns == (200,) * 25
    assert other.agreed.per_turn == 200


def test_turns_last_twenty_milliseconds_and_are_handed_over(measure, make_other_side):
    other = make_other_side()
    wanted = make_recipe(iterations=100, warmup=5, pair=other)
    outcome, perform = measure(wanted, seconds=0.005)
    assert perform.measured == [4] * 25
    assert outcome.turns == (4,) * 25
    assert other.turns == 26  # before each, and after the last
    assert other.agreed == Agreement(iterations=100, warmup=5, per_turn=4, inner_loop=1)


def test_short_runs_have_turns_enough_to_compare(measure, make_other_side):
    other = make_other_side()
    outcome, _ = measure(make_recipe(iterations=50, warmup=5, pair=other), seconds=1e-4)
    assert outcome.turns == (4,) * 12 + (2,)


def test_who_comes_second_measures_as_was_agreed(measure, make_other_side):
    other = make_other_side(Agreement(iterations=10, warmup=3, per_turn=4))
    wanted = make_recipe(iterations=10, warmup=3, pair=other, per_turn=4)
    outcome, _ = measure(wanted, seconds=0.5)
    assert (outcome.turns, outcome.warmup) == ((4, 4, 2), 3)


def test_a_pair_without_warm_up_looks_once_at_what_it_takes(measure, make_other_side):
    other = make_other_side()
    outcome, perform = measure(make_recipe(warmup=0, pair=other), seconds=0.01)
    assert perform.unmeasured == [1]
    assert other.agreed == Agreement(iterations=100, warmup=0, per_turn=2, inner_loop=1)
    assert outcome.iterations == 100


def test_a_recipe_asks_what_was_agreed(make_context, make_other_side):
    agreed = Agreement(iterations=10, warmup=3, per_turn=4)
    other = make_other_side(agreed)
    plans = {"b": Plan(iterations=99, warmup=1, inner_loop=7)}
    wanted = recipe(make_context(pair=other, plans=plans), "b")
    assert other.begun == ["b"]
    found = (wanted.iterations, wanted.warmup, wanted.per_turn, wanted.inner_loop)
    assert found == (10, 3, 4, 7)
    assert (
        recipe(make_context(pair=make_other_side(), plans=plans), "b").iterations == 99
    )


@pytest.mark.parametrize(
    ("seconds", "for_p99", "chosen"),
    [
        (1e-7, None, 5000),  # at most
        (0.001, None, 1000),
        (0.0011, None, 910),  # rounded up
        (2.0, None, 10),  # at least
        (0.008, FOR_P99, FOR_P99),  # 125 would do, but for P99
        (0.008, None, 125),
        (0.001, FOR_P99, 1000),
        (0.1, FOR_P99, 10),  # P99 would take 33 times as long
    ],
)
def test_calibration(seconds, for_p99, chosen):
    wanted = make_recipe(for_p99=for_p99)
    assert calibrate([round(seconds * 1e9)], wanted) == chosen


def test_warm_up_ends_when_steady_and_takes_a_tenth_of_the_time(measure):
    outcome, _ = measure(make_recipe(), seconds=0.001, iteration_sd=0.01)
    assert outcome.health.steady
    assert 100 <= outcome.warmup < 300


def test_warm_up_is_bounded_by_half_of_the_wanted_time(make_fake):
    plan = schedule(make_fake(), make_recipe(max_time_s=2.0))
    assert next(plan).count == 1
    request = plan.send([60_000 * MS])  # the first call has no part in it
    spent_ns, level_ns = 0, 50 * MS
    while not request.measured:
        times = []
        for _ in range(request.count):
            level_ns = round(level_ns * 0.97)
            times.append(level_ns)
        spent_ns += sum(times)
        request = plan.send(times)
    plan.close()
    assert 1000 * MS <= spent_ns < 1050 * MS


def test_what_never_settles_is_not_steady(make_fake):
    plan = schedule(make_fake(), make_recipe(iterations=5))
    request, level = next(plan), 1.0
    try:
        while True:
            times = []
            for _ in range(request.count):
                level *= 0.99
                times.append(max(round(level * 50 * MS), 1))
            request = plan.send(times)
    except StopIteration as finished:
        outcome = finished.value
    assert not outcome.health.steady


def test_slow_calls_get_three_more_than_the_first(measure):
    outcome, perform = measure(make_recipe(), seconds=2.0)
    assert perform.warmup == 4
    assert outcome.health.steady


def test_fast_calls_are_warmed_up_by_number(measure):
    outcome, _ = measure(make_recipe(), seconds=1e-7)
    assert outcome.warmup == 5001


def test_the_device_may_know_that_it_is_not_steady(measure):
    outcome, _ = measure(
        make_recipe(iterations=5, warmup=2), runs={"0": {"steady": False}}
    )
    assert not outcome.health.steady


def test_a_disturbed_run_says_so(measure):
    outcome, _ = measure(
        make_recipe(iterations=5, warmup=2), runs={"0": {"disturbed": True}}
    )
    assert outcome.health.disturbed
    assert outcome.health.evidence == ("1 of 1 blocks kept waiting for a CPU",)


def test_the_collector_is_off_inside_blocks_and_on_again_at_the_end(measure):
    seen = set()
    measure(make_recipe(iterations=5, warmup=2), work=lambda: seen.add(gc.isenabled()))
    assert seen == {True, False}  # on in the warm-up
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_garbage_of_the_body_does_not_heap_up(measure):
    """With the collector off all along, a long run would fill the memory."""
    knots = weakref.WeakSet()
    most = 0

    class Knot:
        def __init__(self):
            self.itself = self

    def work():
        nonlocal most
        knots.add(Knot())
        most = max(most, len(knots))

    _, perform = measure(make_recipe(iterations=100), work=work, seconds=0.01)
    assert perform.measured == [25] * 4
    assert most <= perform.warmup + 25


def test_a_collection_inside_a_block_is_told(measure):
    outcome, _ = measure(make_recipe(iterations=3, warmup=2), work=gc.collect)
    assert outcome.remarks == ("garbage was collected 3 times inside blocks",)


def test_a_body_that_raises_leaves_the_collector_as_it_was(measure):
    calls = []

    def work():
        calls.append(None)
        if len(calls) == 5:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure(make_recipe(iterations=5, warmup=2), work=work)
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_a_recipe_takes_the_stored_plan_first(make_context):
    plan = Plan(iterations=11, warmup=3, inner_loop=2)
    context = make_context(
        plans={"b": plan}, iterations=50, warmup=9, calibrated={"b": 70}
    )
    stored, own = recipe(context, "b"), recipe(context, "other")
    assert (stored.iterations, stored.warmup, stored.inner_loop) == (11, 3, 2)
    assert (own.iterations, own.warmup, own.inner_loop) == (50, 9, 1)


def test_a_recipe_follows_what_an_earlier_run_calibrated(make_context):
    context = make_context(calibrated={"b": 70})
    assert recipe(context, "b").iterations == 70


def test_several_samples_an_iteration_make_p99_cheaper(make_context):
    wanted = recipe(make_context(wants_p99=True), "b", samples_per_iteration=4)
    assert wanted.for_p99 == 84
    assert recipe(make_context(), "b").for_p99 is None


def test_an_inner_loop_is_refused_where_it_means_nothing():
    assert make_recipe().single("generation").inner_loop == 1
    with pytest.raises(UsageError, match="inner_loop=4 means nothing for generation"):
        make_recipe(inner_loop=4).single("generation")


def blocks(*, at, iterations=3000, **changes):
    """Measure blocks of a quarter of a second on a device that disturbs some."""
    run = {"0": {"disturbed_blocks": at}}
    return make_recipe(iterations=iterations, warmup=7, **changes), run


def test_a_disturbed_block_is_measured_again(measure):
    wanted, runs = blocks(at=[1])
    outcome, perform = measure(wanted, runs=runs)
    assert perform.measured == [250] * 13
    dropped = [request.dropped for request in perform.requests if request.measured]
    assert dropped == [0, 0, 250] + [0] * 10
    assert (outcome.iterations, len(outcome.seconds)) == (3000, 3000)
    health = outcome.health
    assert (health.blocks, health.repeated_blocks, health.disturbed_blocks) == (
        12,
        1,
        0,
    )
    assert not health.disturbed
    assert health.evidence == (
        "1 of 13 blocks discarded and measured again: kept waiting for a CPU",
    )


@pytest.mark.parametrize(
    ("enqueue", "repeated"),
    [(0.03, 0), (0.3, 3), (0.9, 3)],  # bound by the GPU, by both, by the host
)
def test_a_block_whose_host_was_pushed_aside_while_the_gpu_worked(
    measure, enqueue, repeated
):
    wanted, runs = blocks(at=[1, 3, 5])
    outcome, _ = measure(wanted, runs=runs, device=0.99, enqueue=enqueue)
    assert outcome.health.repeated_blocks == repeated
    assert not outcome.health.disturbed_blocks
    (told,) = outcome.health.evidence
    assert told.startswith("3 of ")
    assert ("while the GPU worked on" in told) is (not repeated)


def test_no_more_than_three_blocks_in_ten_are_measured_again(measure):
    wanted, runs = blocks(at=list(range(100)))
    outcome, perform = measure(wanted, runs=runs)
    assert len(perform.measured) == 12 + 3
    assert outcome.health.repeated_blocks == 3
    assert outcome.health.disturbed_blocks == 12
    assert outcome.health.disturbed


def test_what_was_measured_again_counts_as_disturbed(measure):
    wanted, runs = blocks(at=[0, 1, 2, 3, 5])
    outcome, _ = measure(wanted, runs=runs)
    # three repeated and two kept, of fifteen: more than three in ten
    assert outcome.health.disturbed
    wanted, runs = blocks(at=[0, 1, 2, 3])
    assert not measure(wanted, runs=runs)[0].health.disturbed


def test_the_time_of_a_discarded_block_counts_nowhere(measure):
    wanted, runs = blocks(at=[1])
    outcome, _ = measure(wanted, runs=runs)
    assert outcome.wall_ns == sum(outcome.host_ns) == 3000 * MS
    assert len(outcome.cpu_time_s) == 12


def test_in_a_pair_no_turn_is_repeated(measure, make_other_side):
    wanted, runs = blocks(at=list(range(200)), pair=make_other_side())
    outcome, perform = measure(wanted, runs=runs)
    assert len(perform.measured) == 150
    assert outcome.health.repeated_blocks == 0
    assert outcome.health.disturbed


def test_the_gpu_is_read_between_blocks(measure):
    outcome, _ = measure(
        make_recipe(iterations=1000, warmup=7), gpu={"sm_mhz": 1410, "pcie_width": 8}
    )
    assert outcome.health.device["sm_clock_mhz"] == 1410
    assert outcome.health.device["pcie_width"] == 8
    assert outcome.health.unfit is None


def test_a_gpu_that_throttles_makes_the_run_unfit(measure):
    outcome, _ = measure(
        make_recipe(iterations=1000, warmup=7), gpu={"throttled": 0.25}
    )
    assert outcome.health.unfit == "throttled"
    assert outcome.health.evidence == (
        "hardware thermal slowdown for 25.0% of the run",
    )


def test_the_driver_is_never_asked_inside_a_block(make_fake):
    device = make_fake(benchmarks={"*": {"gpu": {"sm_mhz": 1410}}})
    device.begin("b", run=0, slowdown=0.0)
    order = []

    class Asked(type(device)):
        @property
        def telemetry(self):
            door = super().telemetry
            read = door.read

            def noted(*, processes=False):
                order.append("list" if processes else "read")
                return read(processes=processes)

            door.read = noted
            return door

        def reading(self, *, closing):
            order.append("end" if closing else "begin")
            return super().reading(closing=closing)

    device.__class__ = Asked
    drive(schedule(device, make_recipe(iterations=600, warmup=7)), Performer(device))
    two, last = ["begin", "end", "read"] * 2, ["begin", "end", "list"]
    assert order == ["list", *two, *last]


def test_an_iteration_that_stands_out_has_what_is_known_of_its_block(measure):
    """Garbage that a function collects itself, in the seventh block."""
    calls = []

    def work():
        calls.append(1)
        if len(calls) == 8:
            gc.collect()

    outcome, _ = measure(
        make_recipe(iterations=10, warmup=1, inner_loop=1), work=work, seconds=0.25
    )
    assert [one.iterations for one in outcome.evidence] == [1] * 10
    assert [one.collections for one in outcome.evidence] == [0] * 6 + [1] + [0] * 3
    slower = replace(outcome, host_ns=(1,) * 6 + (9,) + (1,) * 3)
    (slow,) = slower.slow.worst
    assert (slow.index, slow.known) == (6, ("1 garbage collection",))
    assert outcome.slow is None
