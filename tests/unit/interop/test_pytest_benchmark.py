"""What is read of pytest-benchmark's objects, and how they are driven."""

import bisect
from types import SimpleNamespace

import pytest

from pytest_perfgate.errors import NothingMeasured
from pytest_perfgate.interop import pytest_benchmark as interop
from pytest_perfgate.interop.pytest_benchmark import Doors, Driver, Rounds


class Clock:
    """Seconds that pass only while somebody works."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def drive(clock):
    """Take an object over, with the doors recorded."""

    def take(fixture, *, governing=None, **doors):
        happened = []
        given = {
            "begin": lambda: happened.append("begin"),
            "pause": lambda: happened.append("pause"),
            "pause_s": 1.0,
            "clock": clock,
        }
        driver = Driver(
            fixture,
            Doors(**given | doors),
            where="a.py::b",
            governing=governing,
        )
        return driver, happened

    return take


@pytest.fixture
def work(clock):
    def work(seconds=0.25):
        clock.now += seconds
        return "done"

    return work


# the names we lean on


def test_this_version_has_every_name_we_lean_on(make_benchmark):
    """Where this fails, a new pytest-benchmark wants another way in."""
    fixture = make_benchmark()
    for name in (
        *interop.FOR_TURNS,
        *interop.FOR_GOVERNING,
        *interop.FOR_CALLS,
        *interop.FOR_COUNTS,
        *set(interop.HOW_MANY) - {"_precision", "_confidence"},  # from 5.3 on
        *interop.HOW,
        interop.PRECISIONS,
        interop.MODE,
        "disabled",
        "has_error",
        "stats",
        "group",
        "extra_info",
    ):
        assert hasattr(fixture, name), name
    plugin = pytest.importorskip("pytest_benchmark.plugin")
    definition = plugin.benchmark
    function = getattr(definition, "_fixture_function", definition)
    assert interop.is_meant([SimpleNamespace(func=function, argnames=("request",))])


def test_every_option_we_put_out_exists():
    plugin = pytest.importorskip("pytest_benchmark.plugin")
    parser = pytest.Parser(_ispytest=True)
    plugin.pytest_addoption(parser)
    known = vars(parser.parse([]))
    options = SimpleNamespace(**known)
    assert interop.put_out(options, output=True) == ()
    unknown = set(vars(options)) - set(known)
    assert unknown == set()
    later = {"benchmark_cprofile_dump"}
    for name in (interop._FILES | interop._CHOICE | interop._OUTPUT).keys() - later:
        assert name in known


# whose fixture it is


def definition(module, *argnames):
    function = SimpleNamespace(__module__=module)
    return SimpleNamespace(func=function, argnames=argnames)


THEIRS = definition("pytest_benchmark.plugin", "request")


@pytest.mark.parametrize(
    ("definitions", "meant"),
    [
        ((), True),
        ((THEIRS,), True),
        ((definition("conftest"),), False),
        ((THEIRS, definition("conftest")), False),
        ((THEIRS, definition("conftest", "benchmark")), True),
        ((definition("pytest_codspeed.plugin", "request"),), False),
        ((definition("conftest", "benchmark"),), False),
        ((SimpleNamespace(func=object(), argnames=()),), False),
    ],
)
def test_a_fixture_of_that_name_may_be_somebody_elses(definitions, meant):
    assert interop.is_meant(definitions) is meant


def test_a_value_is_known_by_its_class(make_benchmark):
    assert interop.is_fixture(make_benchmark())
    assert not interop.is_fixture(object())


# options


def test_what_writes_or_stops_it_is_put_out_and_named():
    options = SimpleNamespace(
        benchmark_json="x.json",
        benchmark_disable=True,
        benchmark_only=True,
        benchmark_compare=[],
        benchmark_quiet=False,
        other="kept",
    )
    told = interop.put_out(options)
    assert told == ("--benchmark-json", "--benchmark-disable")
    assert options.benchmark_json is None
    assert not options.benchmark_disable
    assert not options.benchmark_only
    assert options.benchmark_quiet is False  # the manager's own header stays
    assert options.other == "kept"


def test_without_the_plugin_there_is_nothing_to_put_out():
    options = SimpleNamespace()
    assert interop.put_out(options, output=True) == ()
    assert vars(options) == {}


# measuring


def test_rounds_are_read_as_they_were_measured(make_benchmark, drive, work):
    fixture = make_benchmark(group="g")
    driver, happened = drive(fixture)
    fixture.extra_info["n"] = 3
    assert fixture(work) == "done"
    found = driver.read()
    assert found.seconds == (0.25,) * 5
    assert (found.rounds, found.iterations) == (5, 1)
    assert found.group == "g"
    assert found.extra_info == {"n": 3}
    assert happened == ["begin", "pause"]
    assert found.turns == (4, 1)


def test_a_disabled_one_measures_all_the_same(make_benchmark, drive, work):
    fixture = make_benchmark(disabled=True)
    driver, _ = drive(fixture)
    fixture(work)
    assert driver.read().rounds == 5


def test_pedantic_keeps_its_rounds_and_its_setup(make_benchmark, drive, work, clock):
    fixture = make_benchmark()
    driver, happened = drive(
        fixture, governing=Rounds(rounds=50, iterations=7), pause_s=0.5
    )

    def setup():
        clock.now += 10.0
        return (0.5,), {}

    fixture.pedantic(work, setup=setup, rounds=3)
    found = driver.read()
    assert found.seconds == (0.5, 0.5, 0.5)
    assert found.turns == (1, 1, 1)
    assert happened == ["begin", "pause", "pause", "pause"]


def test_an_iteration_is_one_of_the_calls_of_a_round(make_benchmark, drive, work):
    fixture = make_benchmark()
    driver, _ = drive(fixture)
    fixture.pedantic(work, rounds=2, iterations=4)
    found = driver.read()
    assert found.seconds == (0.25, 0.25)
    assert (found.rounds, found.iterations) == (2, 4)


def test_a_plan_fixes_rounds_and_calls(make_benchmark, drive, work):
    fixture = make_benchmark(precision=0.5)
    driver, _ = drive(fixture, governing=Rounds(rounds=12, iterations=3))
    fixture(work)
    found = driver.read()
    assert (found.rounds, found.iterations) == (12, 3)


@pytest.fixture
def counted(work):
    """Work that takes so long each time, the last one from then on."""

    def make(*seconds):
        calls = []

        def call():
            calls.append(seconds[min(len(calls), len(seconds) - 1)])
            work(calls[-1])

        return call, calls

    return make


def test_a_neighbour_in_the_first_round_does_not_make_the_plan(
    make_benchmark, drive, counted
):
    fixture = make_benchmark()
    driver, _ = drive(fixture)
    call, _ = counted(0.3, 0.01)
    fixture(call)
    assert driver.read().rounds == 100


def test_nor_does_it_lessen_the_calls_of_a_round(make_benchmark, drive, counted):
    fixture = make_benchmark(min_time=0.04)
    driver, _ = drive(fixture)
    call, _ = counted(0.3, 0.01)
    fixture(call)
    found = driver.read()
    assert (found.rounds, found.iterations) == (10, 10)


def test_a_slow_function_is_tried_once(make_benchmark, drive, counted):
    fixture = make_benchmark()
    driver, _ = drive(fixture)
    call, calls = counted(2.0)
    fixture(call)
    assert driver.read().rounds == 5
    assert len(calls) == 1 + 5 + 1  # the last is for its result


def test_a_warmup_is_made_once(make_benchmark, drive, counted):
    fixture = make_benchmark(warmup=True, warmup_iterations=20)
    driver, _ = drive(fixture)
    call, calls = counted(0.125)
    fixture(call)
    assert driver.read().rounds == 8
    assert len(calls) == (1 + 20) + 8 + 8 + 1


@pytest.mark.parametrize(("min_rounds", "rounds"), [(7, 12), (8, 8)])
def test_a_plan_does_not_govern_what_is_made_otherwise(
    make_benchmark, drive, work, min_rounds, rounds
):
    told = (
        "pytest-benchmark benchmark(...) min_rounds=7 max_time=1.0 min_time=5e-06 "
        "timer=time.perf_counter"
    )
    governing = Rounds(rounds=12, iterations=3, workload=told)
    fixture = make_benchmark(min_rounds=min_rounds)
    driver, _ = drive(fixture, governing=governing)
    fixture(work)
    assert driver.read().rounds == rounds


def test_the_workload_names_what_makes_the_rounds(make_benchmark, drive, work):
    fixture = make_benchmark(min_rounds=7, disable_gc=True)
    driver, _ = drive(fixture, governing=Rounds(rounds=12, iterations=3))
    fixture(work)
    assert driver.workload == (
        "pytest-benchmark benchmark(...) min_rounds=7 max_time=1.0 min_time=5e-06 "
        "timer=time.perf_counter disable_gc=True"
    )


def test_the_workload_of_pedantic_has_no_options_that_mean_nothing_there(
    make_benchmark, drive, work
):
    fixture = make_benchmark(min_rounds=7)
    driver, _ = drive(fixture)
    fixture.pedantic(work)
    told = driver.workload
    assert told == "pytest-benchmark benchmark.pedantic(...) timer=time.perf_counter"


def test_every_call_is_stretched(make_benchmark, drive, work, clock):
    def stretch():
        started = clock.now
        return lambda: work(clock.now - started)

    fixture = make_benchmark()
    driver, _ = drive(fixture, stretch=stretch)
    fixture.pedantic(work, rounds=2, iterations=4)
    assert driver.read().seconds == (0.5, 0.5)


def test_nothing_is_handed_on_to_its_table(make_benchmark, drive, work):
    listed = []
    fixture = make_benchmark(add_stats=listed.append)
    drive(fixture)
    fixture(work)
    assert listed == []


# side by side


def test_it_says_what_it_chose_and_goes_by_the_answer(make_benchmark, drive, counted):
    chosen = []

    def settle(rounds, round_s):
        chosen.append((rounds.rounds, rounds.iterations, round_s))
        return 3

    fixture = make_benchmark(precision=0.9)
    driver, happened = drive(fixture, settle=settle)
    call, _ = counted(0.125)
    fixture(call)
    found = driver.read()
    assert chosen == [(8, 1, 0.125)]
    assert found.rounds == 8  # precise long before
    assert found.turns == (3, 3, 2)
    assert happened == ["begin", "pause", "pause"]


def test_what_the_other_side_chose_is_made(make_benchmark, drive, counted):
    fixture = make_benchmark()
    driver, _ = drive(
        fixture,
        governing=Rounds(rounds=8, iterations=2),
        pause_rounds=3,
    )
    call, _ = counted(5.0)
    fixture(call)
    found = driver.read()
    assert (found.rounds, found.iterations) == (8, 2)
    assert found.turns == (3, 3, 2)


def test_turns_are_settled_for_a_stored_plan_too(make_benchmark, drive, counted):
    chosen = []

    def settle(rounds, round_s):
        chosen.append((rounds.rounds, rounds.iterations, round_s))
        return 4

    fixture = make_benchmark()
    driver, _ = drive(fixture, governing=Rounds(rounds=8, iterations=2), settle=settle)
    call, _ = counted(0.25)
    fixture(call)
    assert chosen == [(8, 2, 0.5)]
    assert driver.read().turns == (4, 4)


def test_a_turn_of_which_nothing_is_kept_is_none(
    make_benchmark, drive, work, monkeypatch
):
    monkeypatch.setattr(interop, "MOST_SAMPLES", 2)
    fixture = make_benchmark()
    driver, _ = drive(fixture, pause_rounds=1)
    fixture.pedantic(work, rounds=20)
    assert driver.read().turns == (1, 1)


# what is no measurement


def test_never_called(make_benchmark, drive):
    driver, _ = drive(make_benchmark())
    with pytest.raises(NothingMeasured, match=r"a\.py::b: asks .*measured nothing"):
        driver.read()


def test_a_call_that_raised_is_not_read_where_the_test_went_on(
    make_benchmark, drive, work
):
    calls = []

    def fragile():
        work()
        calls.append(1)
        if len(calls) == 4:
            raise ValueError("no more")

    fixture = make_benchmark()
    driver, _ = drive(fixture)
    with pytest.raises(ValueError, match="no more"):
        fixture(fragile)
    with pytest.raises(NothingMeasured, match="raised and the test went on"):
        driver.read()


# other versions


class Plain:
    """What a version might look like that has none of the private names."""

    def __init__(self):
        self.disabled = False
        self.group = None
        self.extra_info = {}
        self.stats = None

    def __call__(self, function):
        data = []
        self.stats = SimpleNamespace(
            stats=SimpleNamespace(data=data), iterations=1, update=data.append
        )
        for _ in range(3):
            function()
            self.stats.update(0.5)


def test_a_version_without_the_private_names_is_read_all_the_same(drive, work):
    fixture = Plain()
    driver, happened = drive(
        fixture,
        clock=None,
        governing=Rounds(rounds=9, iterations=9),
        stretch=lambda: work,
    )
    assert not driver.takes_turns
    assert not driver.fixes_rounds
    assert not driver.reaches_calls
    fixture(work)
    found = driver.read()
    assert found.seconds == (0.5,) * 3
    assert found.turns == (3,)
    assert happened == []
    assert driver.workload == "pytest-benchmark benchmark"


# drawing


def test_few_are_kept_as_they_are():
    assert list(interop.drawn(4, 5)) == [0, 1, 2, 3]


def test_of_many_one_is_drawn_from_each_stretch():
    kept = interop.drawn(1003, 100)
    assert len(kept) == 100
    for index, place in enumerate(kept):
        assert index * 1003 // 100 <= place < (index + 1) * 1003 // 100
    assert kept == interop.drawn(1003, 100)


def test_drawing_does_not_keep_step_with_what_recurs():
    kept = interop.drawn(60_000, 5000)
    slow = sum(index % 4 == 3 for index in kept)
    assert 0.2 < slow / len(kept) < 0.3


def test_turns_count_what_was_kept(make_benchmark, drive, work, monkeypatch):
    monkeypatch.setattr(interop, "MOST_SAMPLES", 10)
    fixture = make_benchmark()
    driver, _ = drive(fixture, pause_s=5.0)
    fixture.pedantic(work, rounds=100)
    found = driver.read()
    kept = interop.drawn(100, 10)
    assert len(found.seconds) == sum(found.turns) == 10
    assert found.rounds == 100
    assert found.turns == tuple(
        bisect.bisect_left(kept, end) - bisect.bisect_left(kept, end - 20)
        for end in range(20, 101, 20)
    )
