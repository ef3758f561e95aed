"""Identical code in turns: the process that measures, and who asks it."""

import io
import json
import math

import pytest

from pytest_perfgate.errors import MeasurementError
from pytest_perfgate.measure import side_by_side, trial
from pytest_perfgate.measure.side_by_side import (
    Pair,
    Turn,
    measure_pair,
    measure_pairs,
)
from pytest_perfgate.measure.trial import Trial, cpu_work, serve


def make_turn(median_s, disturbed=None):
    return Turn(median_s=median_s, disturbed=disturbed, steal=0.0, throttled_s=0.0)


def make_pair(first, second):
    return Pair(
        first=tuple(map(make_turn, first)), second=tuple(map(make_turn, second))
    )


def test_turns_are_answered_one_by_one(make_fake):
    calls = []
    device = make_fake(benchmarks={"*": {"seconds": 0.001}})
    device.begin("trial", run=0, slowdown=0.0)
    answers = io.StringIO()
    serve(Trial(device, lambda: calls.append(1)), io.StringIO("0.02\n0.005\n"), answers)
    ready, *told = answers.getvalue().splitlines()
    assert ready == "ready"
    assert len(calls) == 300 + 20 + 5  # warm for 0.3 s, then as long as asked
    for line in told:
        turn = Turn(**json.loads(line))
        assert turn == make_turn(0.001)


def test_a_disturbed_turn_says_so(make_fake):
    device = make_fake(benchmarks={"*": {"runs": {"0": {"disturbed": True}}}})
    device.begin("trial", run=0, slowdown=0.0)
    served = Trial(device, lambda: None)
    served.warm_up()
    assert served.turn(0.02)["disturbed"] == "kept waiting for a CPU"


def test_the_workload_does_the_same_each_time():
    first, second = cpu_work(), cpu_work()
    total, product = first()
    assert total == 6000
    assert (product == second()[1]).all()


def test_what_pairs_say():
    pair = make_pair([1.0, 2.0, 1.0], [1.1, 2.2, 1.2])
    assert pair.medians_s == (1.0, 1.2)
    assert pair.difference == pytest.approx(math.log(1.1))
    assert len(pair.turns) == 6


def test_two_real_processes_take_turns():
    pair = measure_pair("cpu", until=0.0, clock=lambda: 1.0)
    assert len(pair.first) == len(pair.second) == 20
    assert all(turn.median_s > 0 for turn in pair.turns)


def test_a_process_that_cannot_measure_shows_its_own_words():
    with pytest.raises(MeasurementError, match="device 'nonsense' is not known"):
        measure_pair("nonsense", until=0.0, clock=lambda: 1.0)


def test_a_process_that_says_something_else(monkeypatch):
    monkeypatch.setattr(side_by_side, "READY", "steady")
    with pytest.raises(MeasurementError, match="said 'ready'"):
        measure_pair("cpu", until=0.0, clock=lambda: 1.0)


@pytest.mark.parametrize(("each_s", "made"), [(1.0, 5), (4.0, 5), (6.0, 4), (20.0, 3)])
def test_pairs_are_made_while_there_is_time_and_three_always(monkeypatch, each_s, made):
    now = [0.0]

    def measure(device, *, until, clock):
        now[0] += each_s
        return make_pair([1.0], [1.0])

    monkeypatch.setattr(side_by_side, "measure_pair", measure)
    pairs = measure_pairs("cpu", seconds=20.0, clock=lambda: now[0])
    assert len(pairs) == made


def test_the_program_reads_its_input_to_the_end(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("0.001\n"))
    monkeypatch.setattr(trial, "_WARM_NS", 1)
    trial.main("cpu")
    ready, turn = capsys.readouterr().out.splitlines()
    assert ready == "ready"
    assert json.loads(turn)["median_s"] > 0
