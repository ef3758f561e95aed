import json
import statistics
import sys
from types import ModuleType

import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measure.fake import FakeDevice
from pytest_perfgate.measure.fake_script import parse_script, read_script

MS = 1_000_000


def times(device, benchmark="b", *, run=0, slowdown=0.0, count=4):
    device.begin(benchmark, run=run, slowdown=slowdown)
    device.measuring()
    return device.time_calls(lambda: None, count=count, inner=1).host_ns


def test_without_a_script_a_call_takes_a_millisecond(make_fake):
    assert times(make_fake()) == [MS] * 4


def test_every_call_is_made_once(make_fake):
    calls = []
    device = make_fake()
    timed = device.time_calls(lambda: calls.append(0) or len(calls), count=3, inner=5)
    assert len(calls) == 3
    assert timed.result == 3
    assert timed.host_ns == [5 * MS] * 3


def test_the_first_fitting_pattern_governs(make_fake):
    device = make_fake(
        benchmarks={
            "a.py::x[1]": {"seconds": 0.002},
            "a.py::*": {"seconds": 0.003},
            "*": {"seconds": 0.004},
        }
    )
    assert times(device, "a.py::x[1]", count=1) == [2 * MS]
    assert times(device, "a.py::y", count=1) == [3 * MS]
    assert times(device, "b.py::y", count=1) == [4 * MS]


def test_factors_and_slowdown_multiply(make_fake):
    law = {"seconds": 0.001, "factor": 2.0, "runs": {"4": {"factor": 1.5}}}
    device = make_fake(benchmarks={"*": law})
    assert times(device, run=3, count=1) == [2 * MS]
    assert times(device, run=4, count=1) == [3 * MS]
    assert times(device, run=4, slowdown=0.6, count=1) == [4_800_000]


def test_a_factor_can_stand_in_the_code_under_test(make_fake, monkeypatch):
    library = ModuleType("slow_library")
    library.SLOWNESS = 1.5
    monkeypatch.setitem(sys.modules, "slow_library", library)
    law = {"seconds": 0.001, "factor": 2.0, "factor_from": "slow_library:SLOWNESS"}
    device = make_fake(benchmarks={"*": law})
    assert times(device, count=1) == [3 * MS]
    library.SLOWNESS = 4
    assert times(device, count=1) == [8 * MS]


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("no_such_library:X", "No module"),
        ("sys:nothing", "attribute"),
        ("sys:path", "float"),
    ],
)
def test_a_factor_that_is_not_there_is_refused(make_fake, place, told):
    device = make_fake(benchmarks={"*": {"factor_from": place}})
    with pytest.raises(UsageError, match=f"(?s){place}.*{told}"):
        times(device)


def test_values_come_in_turn_from_the_first_measured_one(make_fake):
    device = make_fake(benchmarks={"*": {"values": [0.001, 0.003], "run_sd": 0.5}})
    device.begin("b", run=0, slowdown=0.0)
    device.time_calls(lambda: None, count=1, inner=1)
    device.measuring()
    timed = device.time_calls(lambda: None, count=3, inner=1)
    assert timed.host_ns == [MS, 3 * MS, MS]


def test_noise_is_the_same_again_and_depends_on_all_that_names_it(make_fake):
    law = {"run_sd": 0.05, "iteration_sd": 0.02}

    def draw(benchmark="b", run=0, salt=0):
        device = make_fake(benchmarks={"*": law}, salt=salt)
        return times(device, benchmark, run=run)

    assert draw() == draw()
    others = [draw(), draw("c"), draw(run=1), draw(salt=1)]
    assert len({tuple(other) for other in others}) == 4


def test_noise_has_the_stated_spread(make_fake):
    law = {"seconds": 1.0, "run_sd": 0.05, "iteration_sd": 0.02}
    device = make_fake(benchmarks={"*": law})
    levels = [
        statistics.fmean(times(device, run=run, count=50)) / 1e9 for run in range(200)
    ]
    within = [value / 1e9 for value in times(device, count=400)]
    assert statistics.stdev(levels) == pytest.approx(0.05, rel=0.2)
    assert statistics.stdev(within) == pytest.approx(0.02, rel=0.2)


def test_parts_have_shares_of_their_own(make_fake):
    law = {"parts": {"stage:x": 0.25, "first": 5.0, "chunk": 0.5}}
    device = make_fake(benchmarks={"*": law})
    device.begin("b", run=0, slowdown=0.0)

    def step(part):
        before = device.now_ns()
        device.stretch(123, part)
        return (device.now_ns() - before) / MS

    assert step("stage:x") == 0.25
    assert step("stage:y") == 1.0
    assert step("phase:forward") == 0.2
    assert step("first") == 5.0
    assert step("chunk") == 0.5


def test_the_first_chunk_is_usually_a_chunk(make_fake):
    device = make_fake(benchmarks={"*": {"parts": {"chunk": 0.5}}})
    device.begin("b", run=0, slowdown=0.0)
    device.stretch(0, "first")
    assert device.now_ns() == MS // 2


def test_a_round_with_stages_takes_no_time_of_its_own(make_fake):
    device = make_fake()
    device.stretch(0, "round")
    assert device.now_ns() == MS
    device.stretch(0, "stage:x")
    device.stretch(0, "round")
    assert device.now_ns() == 2 * MS
    device.stretch(0, "round")
    assert device.now_ns() == 3 * MS


def test_device_time_and_memory_where_the_script_has_them(make_fake):
    device = make_fake(benchmarks={"g": {"device": 0.9, "peak_memory": 4096}})
    device.begin("g", run=0, slowdown=0.0)
    timed = device.time_calls(lambda: None, count=1, inner=1)
    assert timed.device_ns == [pytest.approx(0.9 * MS)]
    assert device.peak_memory(lambda: None).values == {"peak_memory": 4096}
    device.begin("other", run=0, slowdown=0.0)
    assert device.time_calls(lambda: None, count=1, inner=1).device_ns is None
    assert not device.peak_memory(lambda: None).values


def test_a_cache_is_flushed_where_the_script_has_one(make_fake):
    device = make_fake(benchmarks={"*": {"seconds": 0.001, "flush": 2.0}})
    with device.flushing() as flush:
        timed = device.time_calls(int, count=2, inner=1, flush=flush)
    assert timed.host_ns == [2_000_000] * 2
    assert (flush.count, flush.spent, flush.typical_ns) == (2, (100_000,) * 2, 50_000)
    assert device.now_ns() == 4_100_000
    assert device.time_calls(int, count=1, inner=1).host_ns == [1_000_000]
    with make_fake().flushing() as none:
        assert none is None


def test_marks_are_moments_of_the_virtual_clock(make_fake):
    device = make_fake()
    first = device.mark()
    device.stretch(0, "stage:x")
    assert device.span_s(first, device.mark()) == 0.001
    with pytest.raises(TypeError, match="not marks"):
        device.span_s("a", first)
    device.synchronize()
    assert device.now_ns() == MS


def test_a_script_is_read_from_a_file(tmp_path):
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"key": "box", "benchmarks": {"*": {"seconds": 2}}}))
    device = FakeDevice.from_file(path)
    assert device.script.key == "box"
    assert times(device, count=1) == [2_000 * MS]


@pytest.mark.parametrize("text", ["{", "[1]", '"x"', '{"benchmarks": []}'])
def test_what_is_no_script_is_refused(tmp_path, text):
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"script\.json"):
        read_script(path)


def test_an_absent_script_is_refused(tmp_path):
    with pytest.raises(UsageError, match="absent"):
        read_script(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ({"saltt": 1}, "saltt"),
        ({"benchmarks": {"*": {"second": 1}}}, "second"),
        ({"benchmarks": {"*": {"runs": {"1": {"factr": 2}}}}}, "factr"),
    ],
)
def test_unknown_keys_are_refused_by_name(script, name):
    with pytest.raises(UsageError, match=f"'{name}' is none of"):
        parse_script(script)
