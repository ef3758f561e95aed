import random
import subprocess
import sys

import pytest

from pytest_perfgate.errors import BadSample, NothingMeasured, UsageError
from pytest_perfgate.fixture import PerfGate
from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.fake import FakeDevice
from pytest_perfgate.measure.fake_script import parse_script

NODEID = "benches/bench_a.py::bench_b"


class Session:
    """A measuring session: what was emitted and noted."""

    def __init__(self, **changes):
        self.emitted = []
        self.notes = []
        fields = {
            "device": FakeDevice(parse_script({})),
            "run": 0,
            "seed": 0,
            "max_time_s": 1.0,
            "iterations": 3,
            "warmup": 2,
            "inner_loop": 1,
            "plans": {},
            "slowdown": 0.0,
            "emit": self.emitted.append,
            "note": self.notes.append,
            "alone": False,
            "wants_p99": False,
            "counting": False,  # what is counted depends on what else is imported
        }
        self.gate = PerfGate(NODEID, context=MeasureContext(**(fields | changes)))

    @property
    def ids(self):
        return [measurement.benchmark for measurement in self.emitted]

    def metrics(self, at=0):
        return [series.metric.name for series in self.emitted[at].samples]


@pytest.fixture
def make_session():
    return Session


@pytest.fixture
def plain():
    return PerfGate(NODEID, context=None)


@pytest.fixture(params=["plain", "measured"])
def gate(request, plain, make_session):
    return plain if request.param == "plain" else make_session().gate


class Parts:
    """A model, an optimizer and a loss in one."""

    def __init__(self):
        self.steps = 0

    def __call__(self, batch):
        return batch

    def zero_grad(self, *, set_to_none):
        assert set_to_none

    def backward(self):
        pass

    def step(self):
        self.steps += 1

    def detach(self):
        return 0.5


def train(gate, parts, **changes):
    return gate.training_step(parts, parts, lambda *_: parts, ("x", "y"), **changes)


# -- in a plain run


def test_a_plain_call_is_made_once_and_gives_its_result(plain):
    calls = []
    assert plain(lambda *a, **k: calls.append((a, k)) or 7, 1, key=2) == 7
    assert calls == [((1,), {"key": 2})]
    plain.close()


def test_a_plain_loop_has_one_round(plain):
    rounds = []
    for number in plain.iterations():
        with plain.stage("x"):
            rounds.append(number)
    assert rounds == [0]
    plain.close()


def test_plain_inference_is_one_call(plain):
    calls = []
    assert plain.inference(lambda x: calls.append(x) or x, 4, batch_size=2) == 4
    assert calls == [4]


def test_a_plain_training_step_is_one_step(plain):
    parts = Parts()
    assert train(plain, parts) == 0.5
    assert parts.steps == 1


def test_a_plain_training_step_leaves_its_loader_alone(plain):
    parts, begun = Parts(), []
    assert train(plain, parts, loader=lambda: begun.append(1)) == 0.5
    assert (parts.steps, begun) == (1, [])
    with pytest.raises(UsageError, match="loader=<list_iterator"):
        train(plain, parts, loader=iter([1]), name="again")


def test_plain_generation_reads_each_prompt_once(plain):
    prompts = []
    replies = plain.generation(lambda p: prompts.append(p) or range(p), [2, 3])
    assert prompts == [2, 3]
    assert replies == [[0, 1], [0, 1, 2]]


def test_plain_records_are_checked_and_dropped(plain):
    plain.record("x", [1.0], unit="s", better="lower")
    with pytest.raises(BadSample):
        plain.record("y", [float("nan")], unit="s", better="lower")
    plain.close()


def test_a_plain_test_may_measure_nothing(plain):
    plain.close()


def test_a_plain_run_leaves_random_numbers_alone(plain):
    random.seed(5)
    state = random.getstate()
    plain(lambda: None)
    plain.close()
    assert random.getstate() == state


def test_a_plain_run_imports_nothing_heavy():
    program = """if True:
    import sys
    from pytest_perfgate.fixture import PerfGate
    gate = PerfGate("a", context=None)
    gate(print, end="")
    gate.inference(len, "x", name="i")
    gate.generation(lambda p: [1], ["x"], name="g")
    gate.record("r", [1.0], unit="s", better="lower")
    for _ in gate.iterations(name="l"): pass
    gate.close()
    print([m for m in ("numpy", "scipy", "torch", "pynvml") if m in sys.modules])
    """
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


# -- measured


def test_a_call_is_measured_and_handed_over_at_the_end(make_session):
    session = make_session()
    calls = []
    assert session.gate(lambda: calls.append(0) or len(calls)) == 5
    session.gate.close()
    assert session.ids == [NODEID]
    assert session.metrics() == ["latency", "cpu_time", "first_call"]
    assert session.emitted[0].nodeid == NODEID


def test_named_measurements_have_ids_of_their_own(make_session):
    session = make_session()
    session.gate(lambda: None, name="first")
    assert session.ids == [f"{NODEID}::first"]  # at once
    session.gate(lambda: None)
    for _ in session.gate.iterations(name="loop"):
        pass
    session.gate.close()
    assert session.ids == [f"{NODEID}::first", f"{NODEID}::loop", NODEID]
    assert {measurement.nodeid for measurement in session.emitted} == {NODEID}


def test_every_workload_is_measured(make_session):
    session = make_session()
    gate = session.gate
    assert gate.inference(lambda x: x, 4, tokens=10, name="inference") == 4
    assert train(gate, Parts(), batch_size=2, name="training") == 0.5
    assert gate.generation(lambda _: [1, 2], ["p"], name="generation") == [[1, 2]]
    for _ in gate.iterations(name="loop"):
        with gate.stage("x"):
            pass
    gate.close()
    assert session.metrics(0) == ["latency", "throughput", "cpu_time", "first_call"]
    assert session.metrics(1)[0] == "step_time"
    assert session.metrics(1)[-3:] == ["throughput", "cpu_time", "first_call"]
    timed = ["ttft", "tpot", "e2e", "throughput"]
    assert session.metrics(2) == [*timed, "cpu_time", "first_call"]
    assert session.metrics(3) == ["latency", "stage:x", "cpu_time", "first_call"]


def test_records_are_metrics_of_one_benchmark(make_session):
    session = make_session()
    session.gate.record("a", [1.0, 2.0], unit="s", better="lower")
    session.gate.record("b", [3], unit="1", better="higher", exact=True)
    session.gate.close()
    assert session.ids == [NODEID]
    assert session.metrics() == ["a", "b"]
    assert session.emitted[0].samples[1].metric.exact


def test_records_join_the_test_s_own_measurement(make_session):
    session = make_session()
    session.gate.record("a", [1.0], unit="s", better="lower")
    session.gate(lambda: None)
    session.gate(lambda: None, name="other")
    session.gate.close()
    assert session.ids == [f"{NODEID}::other", NODEID]
    assert session.metrics(1) == ["latency", "cpu_time", "first_call", "a"]


def test_a_slowdown_cannot_reach_a_record_and_says_so(make_session):
    session = make_session(slowdown=0.5)
    session.gate.record("a", [1.0], unit="s", better="lower")
    assert session.notes == [
        f"{NODEID}: the slowdown cannot reach what record('a') was given"
    ]


def test_hidden_launches_cannot_reach_what_is_recorded_and_say_so(make_session):
    session = make_session(hide_launch=True, cache="flush")
    session.gate.record("a", [1.0], unit="s", better="lower")
    session.gate.close()
    assert session.notes == [
        f"{NODEID}: cache='flush' cannot reach what record(…) was given",
        f"{NODEID}: hide_launch=True cannot reach what record(…) was given",
    ]


def test_a_flushed_cache_cannot_reach_what_is_recorded_and_says_so(make_session):
    session = make_session(cache="flush")
    session.gate.record("a", [1.0], unit="s", better="lower")
    session.gate.close()
    assert session.notes == [
        f"{NODEID}: cache='flush' cannot reach what record(…) was given"
    ]


def test_closing_twice_hands_over_once(make_session):
    session = make_session()
    session.gate(lambda: None)
    session.gate.close()
    session.gate.close()
    assert len(session.emitted) == 1


def test_measuring_nothing_is_an_error(make_session):
    session = make_session()
    with pytest.raises(NothingMeasured, match="measured nothing"):
        session.gate.close()


def test_a_body_that_failed_is_not_blamed_for_measuring_nothing(make_session):
    session = make_session()
    session.gate.close(complete=False)
    session = make_session()
    session.gate(lambda: None)
    session.gate.close(complete=False)
    assert session.emitted == []


def test_a_loop_left_early_is_an_error(make_session):
    session = make_session()
    for _ in session.gate.iterations():
        break
    with pytest.raises(NothingMeasured, match=r"iterations\(\) was left early"):
        session.gate.close()


def test_a_named_loop_left_early_is_named(make_session):
    session = make_session()
    session.gate(lambda: None)
    next(session.gate.iterations(name="x"))
    with pytest.raises(NothingMeasured, match=r"iterations\('x'\) was left early"):
        session.gate.close()


def test_nothing_is_measured_inside_a_loop(make_session):
    session = make_session()
    next(session.gate.iterations())
    with pytest.raises(UsageError, match="whose loop has not ended"):
        session.gate(lambda: None, name="inner")


def test_seeds_are_the_same_in_every_run_and_differ_by_benchmark(make_session):
    def draw(**changes):
        gate = make_session(iterations=1, warmup=1, **changes).gate
        in_body = random.random()  # noqa: S311
        return in_body, gate(random.random), gate(random.random, name="x")

    first = draw()
    assert draw(run=5) == first
    assert draw(seed=1) != first
    assert first[1] != first[2]


def test_closing_restores_the_random_numbers(make_session):
    random.seed(9)
    state = random.getstate()
    gate = make_session().gate
    gate(random.random)
    gate.close()
    assert random.getstate() == state


# -- in both


@pytest.mark.parametrize("name", [None, "x"])
def test_a_name_is_taken_once(gate, name):
    gate(lambda: None, name=name)
    words = "needs a name" if name is None else "named 'x'"
    with pytest.raises(UsageError, match=f"{NODEID}: a second measurement {words}"):
        gate.generation(lambda _: [1], ["p"], name=name)


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_names_are_printable_text(gate, name):
    with pytest.raises(UsageError, match="is no name"):
        gate(lambda: None, name=name)


def test_numbers_that_cannot_be_handed_over_are_an_error(make_session):
    gate = make_session().gate
    gate(lambda: None)
    gate.record("latency", [1.0], unit="s", better="lower")
    with pytest.raises(UsageError, match="has the name of a metric"):
        gate.close()


def test_a_stage_belongs_into_a_loop(make_session):
    gate = make_session().gate
    with pytest.raises(UsageError, match=r"stage\('x'\) outside of a loop"):
        gate.stage("x")


def test_stages_and_records_need_names(gate):
    with pytest.raises(UsageError, match="'' is no name"):
        gate.stage("")
    with pytest.raises(UsageError, match="'' is no name"):
        gate.record("", [1], unit="s", better="lower")


def test_a_record_is_given_once(gate):
    gate.record("x", [1.0], unit="s", better="lower")
    with pytest.raises(UsageError, match=r"record\('x'\) twice"):
        gate.record("x", [1.0], unit="s", better="lower")


@pytest.mark.parametrize("use", ["call", "inference"])
def test_what_is_not_callable_is_refused(gate, use):
    with pytest.raises(UsageError, match="42 is none"):
        gate(42) if use == "call" else gate.inference(42)


def test_what_the_body_raises_comes_through(gate):
    with pytest.raises(ZeroDivisionError):
        gate(lambda: 1 / 0)


# a loop that is left when all is timed and some more rounds are counted


@pytest.fixture
def counting(make_session):
    """A session whose loop body has a part in torch: five rounds, then five more."""
    torch = pytest.importorskip("torch")
    session = make_session(counting=True)
    session.x = torch.ones(4)
    return session


def mode():
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    return _get_current_dispatch_mode()


@pytest.mark.parametrize("held", [False, True], ids=["in a for", "in a variable"])
def test_leaving_a_loop_while_it_is_counted_costs_the_counts_alone(counting, held):
    loop = counting.gate.iterations()
    rounds = [loop] if held else []
    for number in loop:
        counting.x + 1
        if number == 5:
            break
    del loop
    counting.gate(len, "x", name="after")
    assert mode() is None
    counting.gate.close()
    assert sorted(counting.ids) == [NODEID, f"{NODEID}::after"]
    assert any("left in a round" in r for m in counting.emitted for r in m.remarks)
    assert len(rounds) == held


def test_an_error_while_a_loop_is_counted_says_so_and_restores(counting):
    loop = counting.gate.iterations()
    error = OSError("no more")
    for number in loop:
        counting.x + 1
        if number == 5:
            counting.gate.abandon(error)
            break
    assert mode() is None
    (note,) = error.__notes__
    assert note == (
        "perfgate: raised in a round of iterations() that is counted, after all "
        "timed ones; @pytest.mark.perfgate(counts=False) makes no such rounds"
    )


def test_an_error_while_a_loop_is_timed_has_no_note(counting):
    error = OSError("no more")
    for _ in counting.gate.iterations():
        break
    counting.gate.abandon(error)
    assert not hasattr(error, "__notes__")
