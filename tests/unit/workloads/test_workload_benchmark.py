"""Rounds of pytest-benchmark as a measurement of ours, on a device with a script."""

import random
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.interop import pytest_benchmark as interop
from pytest_perfgate.model import Reason
from pytest_perfgate.workloads.benchmark import BenchmarkRounds

ID = "a.py::b"


@pytest.fixture
def take(make_context, make_benchmark):
    """Take a real fixture object over; returns both."""

    def take(*, fixture=None, **changes):
        fixture = fixture or make_benchmark()
        rounds = BenchmarkRounds(make_context(**changes), ID, fixture)
        return rounds, fixture

    return take


def scripted(make_fake, **law):
    return make_fake(benchmarks={"*": law})


def test_a_round_takes_what_the_script_says(take, make_fake):
    rounds, benchmark = take(device=scripted(make_fake, values=[0.1, 0.2, 0.3]))
    assert benchmark(lambda: "result") == "result"
    measurement = rounds.measurement()
    (series,) = measurement.samples
    assert series.metric.name == "latency"
    assert series.metric.definition == "round-mean/1"
    assert series.values[:4] == pytest.approx((0.1, 0.2, 0.3, 0.1))
    assert measurement.benchmark == measurement.nodeid == ID


def test_the_plan_counts_rounds_and_their_calls(take, make_fake):
    device = scripted(make_fake, seconds=0.01)
    rounds, benchmark = take(device=device)
    benchmark.pedantic(lambda: None, rounds=6, iterations=3)
    plan = rounds.measurement().plan
    assert (plan.iterations, plan.inner_loop, plan.warmup) == (6, 3, 0)
    assert plan.workload.startswith("pytest-benchmark benchmark.pedantic(...)")
    assert plan.device == "fake"


def test_a_stored_plan_governs(take, make_fake):
    def measured(plan=None):
        device = scripted(make_fake, seconds=0.3)
        rounds, benchmark = take(device=device, plans={ID: plan} if plan else {})
        benchmark(lambda: None)
        return rounds.measurement().plan

    own = measured()
    assert (own.iterations, own.inner_loop) == (5, 1)
    stored = replace(own, iterations=8, inner_loop=2)
    assert measured(stored) == stored


def test_the_first_run_governs_the_others(take, make_fake):
    rounds, benchmark = take(
        device=scripted(make_fake, seconds=0.3),
        calibrated={ID: 9},
        calibrated_inner={ID: 4},
    )
    benchmark(lambda: None)
    measured = rounds.measurement().plan
    assert (measured.iterations, measured.inner_loop) == (9, 4)


def test_a_planted_slowdown_reaches_every_call(take, make_fake):
    device = scripted(make_fake, seconds=0.01)
    rounds, benchmark = take(device=device, slowdown=0.5)
    benchmark(lambda: None)
    assert rounds.measurement().samples[0].values[0] == pytest.approx(0.015)


def test_a_disturbed_run_is_seen(take, make_fake):
    device = scripted(make_fake, seconds=0.1, runs={"0": {"disturbed": True}})
    rounds, benchmark = take(device=device)
    benchmark(lambda: None)
    health = rounds.measurement().health
    assert health.disturbed
    assert health.blocks == 4  # ten rounds, a block for each 0.25 s


def test_a_throttled_gpu_is_seen(take, make_fake):
    device = scripted(make_fake, seconds=0.1, gpu={"throttled": 0.5})
    rounds, benchmark = take(device=device)
    benchmark(lambda: None)
    assert rounds.measurement().health.unfit == Reason.THROTTLED


def test_blocks_end_between_rounds_and_the_rest_counts(take, make_fake):
    rounds, benchmark = take(device=scripted(make_fake, seconds=0.1))
    benchmark.pedantic(lambda: None, rounds=7)
    assert rounds.measurement().health.blocks == 3


def test_the_turn_is_given_away_between_rounds(take, make_fake, make_other_side):
    other = make_other_side()
    device = scripted(make_fake, seconds=0.007)
    rounds, benchmark = take(device=device, pair=other)
    benchmark.pedantic(lambda: None, rounds=11)
    measurement = rounds.measurement()
    assert measurement.turns == (3, 3, 3, 2)
    assert other.turns == 5  # before the first, between them, and after the last


def test_both_sides_of_a_pair_make_the_same_rounds(take, make_fake, make_other_side):
    first = make_other_side()
    device = scripted(make_fake, seconds=0.004)
    rounds, benchmark = take(device=device, pair=first)
    benchmark(lambda: None)
    own = rounds.measurement()
    assert first.agreed.iterations == own.plan.iterations
    assert first.agreed.inner_loop == own.plan.inner_loop
    slower = scripted(make_fake, seconds=0.009)
    rounds, benchmark = take(device=slower, pair=make_other_side(first.agreed))
    benchmark(lambda: None)
    theirs = rounds.measurement()
    assert (theirs.plan.iterations, theirs.turns) == (own.plan.iterations, own.turns)


def test_without_the_name_it_needs_turns_are_not_promised(
    take, make_fake, make_benchmark, make_other_side
):
    said, other = [], make_other_side()
    fixture = make_benchmark()
    del fixture._add_stats
    rounds, _ = take(
        fixture=fixture,
        device=scripted(make_fake, seconds=0.1),
        note=said.append,
        pair=other,
    )
    assert not rounds.driver.takes_turns
    assert "cannot take turns" in said[0]
    assert other.turns == 0


def test_what_a_version_lacks_is_said(take, make_fake, make_context, monkeypatch):
    said = []
    for name in ("FOR_TURNS", "FOR_GOVERNING", "FOR_CALLS"):
        monkeypatch.setattr(interop, name, ("_gone",))
    with pytest.raises(UsageError, match="a fake device needs"):
        take(device=scripted(make_fake), note=said.append)
    device = scripted(make_fake)
    device.fake = False
    take(device=device, note=said.append, slowdown=0.5)
    assert any("not slow down" in text for text in said)
    assert any("number of rounds" in text for text in said)


def test_what_the_test_says_of_itself_is_handed_on_once(
    take, make_fake, make_benchmark
):
    for run, told in ((1, ("group: g", "extra_info: {'n': 3}")), (2, ())):
        rounds, benchmark = take(
            run=run, fixture=make_benchmark(group="g"), device=scripted(make_fake)
        )
        benchmark.extra_info["n"] = 3
        benchmark(lambda: None)
        assert rounds.measurement().remarks == told


def test_the_test_draws_the_same_numbers_in_every_run(take, make_fake):
    state = random.getstate()
    drawn = []
    for run in (1, 2):
        rounds, _ = take(run=run, device=scripted(make_fake))
        drawn.append(random.random())  # noqa: S311 (that it repeats is the point)
        rounds.close()
    assert drawn[0] == drawn[1]
    assert random.getstate() == state


# counts, when all rounds have been made


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def count(take, make_fake):
    """Take a fixture over whose calls are to be counted."""
    return lambda **changes: take(
        device=scripted(make_fake, seconds=0.1), counting=True, **changes
    )


class Called:
    """A function that counts its calls, each of some operators of torch."""

    def __init__(self, torch):
        self.x = torch.ones(4)
        self.calls = []

    def __call__(self, *args, **kwargs):
        self.calls.append((args, kwargs))
        return (self.x + 1).relu()


def counts_of(measurement):
    series = (s for s in measurement.samples if s.metric.exact)
    return {s.metric.name: s.values for s in series}


def test_a_call_is_counted_once_its_rounds_have_been_made(torch, count):
    rounds, benchmark = count()
    called = Called(torch)
    benchmark(called, 1, function=2)  # a name of the user's own
    before = len(called.calls)
    found = rounds.measurement()
    assert len(called.calls) == before
    assert counts_of(found)["ops"] == (2.0,)
    assert counts_of(found).keys() >= {"syncs", "peak_memory", "graph_breaks"}
    assert "recompiles" not in counts_of(found)
    assert set(map(str, called.calls)) == {str(((1,), {"function": 2}))}
    assert len(found.samples[0].values) == found.plan.iterations == 10
    assert found.health.blocks == 4
    assert found.profile.operators["aten::relu"].count == 1


def test_without_counting_no_call_is_added(torch, take, make_fake):
    made = []
    for counting in (False, True):
        called = Called(torch)
        device = scripted(make_fake, seconds=0.1)
        rounds, benchmark = take(device=device, counting=counting)
        benchmark(called)
        rounds.measurement()
        made.append(len(called.calls))
    assert made[1] == made[0] + 2 + 3


@pytest.mark.parametrize(
    ("given", "calls"),
    [
        ({"rounds": 3}, 3),
        ({"rounds": 3, "warmup_rounds": 2}, 5),
        ({"rounds": 3, "iterations": 4}, 13),  # one more, for its result
    ],
)
def test_pedantic_makes_the_calls_it_says_and_no_more(torch, count, given, calls):
    rounds, benchmark = count()
    called = Called(torch)
    benchmark.pedantic(called, **given)
    found = rounds.measurement()
    assert len(called.calls) == calls
    assert counts_of(found) == {}
    (remark,) = found.remarks
    assert remark == (
        "no counts of benchmark.pedantic: just as many calls are made as it says; "
        "@pytest.mark.perfgate(counts=True) adds some"
    )


def test_pedantic_is_counted_where_that_is_asked_for(torch, count):
    rounds, benchmark = count(counting_asked=True)
    called = Called(torch)
    benchmark.pedantic(called, args=(1,), kwargs={"k": 2}, rounds=3, iterations=4)
    assert counts_of(rounds.measurement())["ops"] == (2.0,)
    assert called.calls == [((1,), {"k": 2})] * (13 + 2 + 3)


def test_each_counted_call_has_a_set_up_of_its_own_which_is_not_counted(torch, count):
    rounds, benchmark = count(counting_asked=True)
    called, made, torn = Called(torch), [], []

    def setup():
        made.append(called.x + 1 + 1 + 1)
        return (len(made),), {}

    benchmark.pedantic(called, setup=setup, teardown=torn.append, rounds=3)
    assert counts_of(rounds.measurement())["ops"] == (2.0,)
    numbers = list(range(1, 1 + 3 + 2 + 3))
    assert [args for (args, _) in called.calls] == [(number,) for number in numbers]
    assert torn == numbers


def test_a_function_that_can_be_called_no_more_keeps_its_times(torch, count):
    rounds, benchmark = count(counting_asked=True)
    data = iter(range(3))

    def take_one():
        next(data)

    benchmark.pedantic(take_one, rounds=3)
    found = rounds.measurement()
    assert len(found.samples[0].values) == 3
    assert found.remarks == ("counts were not taken: StopIteration: ",)


def test_the_other_side_goes_on_before_anything_is_counted(
    torch, count, make_other_side
):
    other = make_other_side()
    rounds, benchmark = count(pair=other)
    seen = []

    def call():
        seen.append(other.turns)
        return torch.ones(2)

    benchmark(call)
    given = other.turns
    assert seen[-5:] == [given] * 5
    assert given > seen[-6]
    rounds.measurement()
    assert other.turns == given


def weave(target, aspect, *, methods):
    """Stand in for aspectlib, which is not needed otherwise."""
    before = getattr(target, methods)
    setattr(target, methods, aspect(before))
    return SimpleNamespace(rollback=lambda: setattr(target, methods, before))


def test_what_weaves_is_counted_as_well(torch, count, monkeypatch):
    monkeypatch.setitem(sys.modules, "aspectlib", SimpleNamespace(weave=weave))
    rounds, benchmark = count()
    called = Called(torch)

    library = SimpleNamespace(work=called)
    benchmark.weave(library, methods="work")
    library.work()
    assert counts_of(rounds.measurement())["ops"] == (2.0,)


def test_a_version_whose_end_is_not_reached_is_said_to_have_no_counts(
    count, monkeypatch
):
    said = []
    monkeypatch.setattr(interop, "FOR_COUNTS", ("_gone",))
    count(note=said.append)
    assert "not call once more, to take counts" in said[0]
