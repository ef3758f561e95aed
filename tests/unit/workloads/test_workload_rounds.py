import gc

import pytest

from pytest_perfgate.errors import MeasurementError, UsageError
from pytest_perfgate.measure.cpu import CpuDevice
from pytest_perfgate.measure.cpu_guard import Reading
from pytest_perfgate.workloads.rounds import Rounds


class StillGuard:
    def read(self, now_ns, *, closing):
        del closing
        return Reading(wall_ns=now_ns(), cpu_ns=0)


@pytest.fixture
def make_rounds(make_context, target):
    def make(**changes):
        found = []
        fields = {"iterations": 3, "warmup": 2} | changes
        rounds = Rounds(make_context(**fields), target, done=found.append)
        return rounds, found

    return make


@pytest.fixture
def still(make_clock):
    """A CPU whose clock costs nothing and is moved by hand."""
    clock = make_clock(step=0)
    return clock, CpuDevice(clock=clock, guard=StillGuard())


def test_warm_up_and_measured_rounds_are_lent_alike(make_rounds):
    rounds, found = make_rounds()
    assert list(rounds) == [0, 1, 2, 3, 4]
    assert found[0].plan.iterations == 3
    assert found[0].plan.warmup == 2


def test_a_round_without_stages_is_a_latency(make_rounds, make_fake, by_name):
    device = make_fake(benchmarks={"*": {"values": [0.001, 0.002, 0.003]}})
    rounds, found = make_rounds(device=device)
    for _ in rounds:
        pass
    assert by_name(found[0])["latency"] == (0.001, 0.002, 0.003)


def test_stages_are_samples_of_their_own(make_rounds, make_fake, by_name):
    device = make_fake(benchmarks={"*": {"parts": {"stage:x": 2.0}}})
    rounds, found = make_rounds(device=device)
    for _ in rounds:
        with rounds.stage("x"):
            pass
        with rounds.stage("y"):
            pass
    values = by_name(found[0])
    assert values["stage:x"] == (0.002,) * 3
    assert values["stage:y"] == (0.001,) * 3
    assert values["latency"] == (0.003,) * 3


def test_on_a_cpu_the_clock_is_read_around_rounds_and_stages(
    make_rounds, still, by_name
):
    clock, device = still
    rounds, found = make_rounds(device=device)
    for _ in rounds:
        clock.now += 5
        with rounds.stage("x"):
            clock.now += 100
        with rounds.stage("x"):
            clock.now += 20
    values = by_name(found[0])
    assert values["stage:x"] == pytest.approx((120e-9,) * 3)
    assert values["latency"] == pytest.approx((125e-9,) * 3)


def test_a_slowdown_stretches_stages_and_the_rest_of_the_round_once(
    make_rounds, make_clock, by_name
):
    clock = make_clock(step=1)
    device = CpuDevice(clock=clock, guard=StillGuard())
    rounds, found = make_rounds(device=device, slowdown=0.5)
    for _ in rounds:
        clock.now += 40_000
        with rounds.stage("outer"):
            clock.now += 10_000
            with rounds.stage("inner"):
                clock.now += 100_000
    values = by_name(found[0])
    assert values["stage:inner"] == pytest.approx((150e-6,) * 3, rel=0.001)
    assert values["stage:outer"] == pytest.approx((165e-6,) * 3, rel=0.001)
    assert values["latency"] == pytest.approx((225e-6,) * 3, rel=0.001)


def test_a_gpu_is_waited_for_at_every_boundary(make_rounds, make_fake):
    waits = []
    device = make_fake()
    device.name = "cuda:0"
    device.synchronize = lambda: waits.append(None)
    rounds, _ = make_rounds(device=device, iterations=1, warmup=1)
    for _ in rounds:
        with rounds.stage("x"):
            pass
    assert len(waits) == 2 * 4


@pytest.mark.parametrize("missing_at", [3, 4])
def test_a_stage_must_be_in_every_round(make_rounds, missing_at):
    rounds, found = make_rounds()

    def loop():
        for number in rounds:
            if number != missing_at:
                with rounds.stage("x"):
                    pass

    with pytest.raises(MeasurementError, match="stage 'x' is in some iterations"):
        loop()
    assert not found
    assert gc.isenabled()


def test_a_stage_may_be_missing_while_warming_up(make_rounds, by_name):
    rounds, found = make_rounds()
    for number in rounds:
        if number:
            with rounds.stage("x"):
                pass
    assert len(by_name(found[0])["stage:x"]) == 3


def test_a_new_stage_halfway_is_refused(make_rounds):
    rounds, _ = make_rounds()

    def loop():
        for number in rounds:
            if number >= 4:
                with rounds.stage("late"):
                    pass

    with pytest.raises(MeasurementError, match="'late' is in some"):
        loop()


def test_a_stage_inside_itself_is_refused(make_rounds):
    rounds, _ = make_rounds()
    next(iter(rounds))
    with (
        pytest.raises(MeasurementError, match="'x' inside itself"),
        rounds.stage("x"),
        rounds.stage("x"),
    ):
        pass


@pytest.mark.parametrize("name", ["", "  ", "a\nb"])
def test_a_stage_needs_a_name(make_rounds, name):
    rounds, _ = make_rounds()
    with pytest.raises(UsageError, match="no name of a stage"):
        rounds.stage(name)


def test_leaving_early_measures_nothing_and_restores_the_collector(make_rounds):
    rounds, found = make_rounds()
    for number in rounds:
        if number == 3:
            assert not gc.isenabled()
            break
    gc.collect()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    assert not found


def test_an_inner_loop_means_nothing_here(make_rounds):
    rounds, _ = make_rounds(inner_loop=2)
    with pytest.raises(UsageError, match="inner_loop=2 means nothing for the loop"):
        next(iter(rounds))


def test_a_flushed_cache_means_nothing_here(make_rounds):
    rounds, _ = make_rounds(cache="flush")
    with pytest.raises(UsageError, match="cache='flush' means nothing for the loop"):
        next(iter(rounds))


# rounds that are counted, when all timed ones are over


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def make_counted(make_rounds):
    return lambda **changes: make_rounds(counting=True, **changes)


def modes():
    """Return what counting may leave behind, as it is now."""
    import warnings

    from torch.autograd.profiler import KinetoStepTracker  # noqa: F401 (is there)
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    return _get_current_dispatch_mode(), gc.isenabled(), list(warnings.filters)


def test_rounds_beyond_the_timed_ones_are_counted(torch, make_counted, by_name):
    rounds, found = make_counted()
    x, before = torch.ones(4), modes()
    numbers = []
    for number in rounds:
        numbers.append(number)
        with rounds.stage("add"):
            x + 1
    # two timed as warm-up, three timed; then two counted and three traced
    assert numbers == list(range(2 + 3 + 2 + 3))
    values = by_name(found[0])
    assert values["ops"] == (1.0,)
    assert len(values["latency"]) == len(values["stage:add"]) == 3
    assert modes() == before


def test_a_loop_that_does_not_count_lends_no_more_rounds(torch, make_rounds, by_name):
    rounds, found = make_rounds(counting=False)
    assert list(rounds) == [0, 1, 2, 3, 4]
    assert "ops" not in by_name(found[0])


def test_a_counted_round_is_neither_waited_for_nor_slowed(
    torch, make_counted, make_fake
):
    """Waits of a stage would be counted as the benchmark's own."""
    waits, device = [], make_fake(benchmarks={"*": {"seconds": 0.01}})
    device.synchronize = lambda: waits.append(None)
    rounds, _ = make_counted(device=device, slowdown=0.5)
    rounds._book.synchronizes = True
    x, clock = torch.ones(4), {}
    for number in rounds:
        waits.clear()
        with rounds.stage("x"):
            x + 1
        clock[number] = device.now_ns(), len(waits)
    assert [waited for _, waited in clock.values()] == [2] * 5 + [0] * 5
    assert len({at for at, _ in list(clock.values())[5:]}) == 1


@pytest.mark.parametrize("left_in", range(5, 10))
def test_leaving_a_counted_round_restores_everything_and_keeps_the_times(
    torch, make_counted, by_name, left_in
):
    rounds, found = make_counted()
    x, before = torch.ones(4), modes()
    for number in rounds:
        x + 1
        if number == left_in:
            break
    assert modes() == before
    assert not found
    rounds.finish()
    assert len(by_name(found[0])["latency"]) == 3
    assert found[0].remarks[-1] == (
        "counts were not taken: the loop was left in a round that was counted"
    )


@pytest.mark.parametrize("raised_in", range(5, 10))
def test_what_is_raised_in_a_counted_round_restores_everything(
    torch, make_counted, raised_in
):
    rounds, found = make_counted()
    x, before = torch.ones(4), modes()

    def loop():
        for number in rounds:
            x + 1
            if number == raised_in:
                raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        loop()
    assert modes() == before
    assert rounds.is_timed
    assert not found


def test_what_fails_about_a_counter_costs_the_counts_alone(
    torch, make_counted, by_name, monkeypatch
):
    from pytest_perfgate.measure import counters

    def broken(**_):
        raise RuntimeError("no profiler here")

    monkeypatch.setattr(counters, "tracing", broken)
    rounds, found = make_counted()
    x, before = torch.ones(4), modes()
    for _ in rounds:
        x + 1
    assert modes() == before
    assert len(by_name(found[0])["latency"]) == 3
    assert (
        found[0].remarks[-1] == "counts were not taken: RuntimeError: no profiler here"
    )
