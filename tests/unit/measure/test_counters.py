"""What one call of real torch code counts; all of it in one process of its own."""

import contextlib
import json
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.gate.comparability import definitions
from pytest_perfgate.gate.explain import History, explain
from pytest_perfgate.gate.judge import Look, judge_benchmark
from pytest_perfgate.gate.policy import resolve_policy
from pytest_perfgate.gate.summary import summarise
from pytest_perfgate.gate.update import Recording, update_baseline
from pytest_perfgate.measure import counters
from pytest_perfgate.measure.compile_watch import BreakBook
from pytest_perfgate.measure.counters import NOTHING, Occasion, take_counts
from pytest_perfgate.measure.profiling import ProfilerTaken, Traced, trace_of
from pytest_perfgate.measure.threads import Others
from pytest_perfgate.measure.traces import read_trace
from pytest_perfgate.measured import Health
from pytest_perfgate.model import BenchmarkResult, Outcome, Reason, Session, Verdict
from pytest_perfgate.reports.failure import failure_text
from pytest_perfgate.store import decode_measurement

CHILD = Path(__file__).with_name("counting_child.py")


@pytest.fixture(scope="module")
def story():
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, str(CHILD)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def measured(story):
    found = story["measurements"]
    return {name: decode_measurement(each) for name, each in found.items()}


@pytest.fixture
def counts(measured):
    return lambda name: {
        series.metric.name: series.values[0]
        for series in measured[name].samples
        if series.metric.exact
    }


def test_python_has_no_counts(counts):
    assert counts("python") == {}
    assert counts("python beside a compiler") == {}


def test_counting_brings_no_compiler_in(story):
    assert story["free of the compiler"]


def test_a_plain_call(counts):
    assert counts("plain") == {
        "ops": 2,
        "syncs": 0,
        "allocations": 2,
        "peak_memory": 2 * 8 * 16 * 4,
        "compiled_graphs": 0,
        "graph_breaks": 0,
        "recompiles": 0,
        "flops": 0,
    }


def test_inference_counts_as_the_call_does(counts):
    assert counts("inference") == counts("plain")


def test_reading_tokens_is_a_read_each(counts):
    assert counts("generation")["syncs"] == 0  # tolist() of a tensor on the host


def test_a_round_of_a_loop_counts_as_the_call_does(counts, measured):
    assert counts("loop") == counts("plain")
    assert counts("loop python") == {}
    assert measured["loop"].profile.operators["aten::relu"].count == 1
    assert not measured["loop"].remarks


def test_compiled_code_in_a_loop_stays_compiled(counts):
    assert counts("loop compiled") == counts("whole")


def test_rounds_that_are_counted_are_no_samples(measured):
    sampled = {s.metric.name: s.values for s in measured["loop"].samples}
    assert len(sampled["latency"]) == len(sampled["stage:all"]) == 8


def test_rounds_that_differ_are_unstable(measured):
    metrics = {s.metric.name: s.metric for s in measured["loop random"].samples}
    assert metrics["ops"].definition == "leaf-operators/1@unstable"


def test_two_optimizers_do_the_same_work(counts, measured):
    assert counts("training") == counts("training again")
    assert counts("training")["ops"] > 10
    assert not measured["training"].remarks


def test_what_a_training_step_reads_is_counted(counts):
    own = counts("training")["syncs"]
    assert own == 2  # Adam, its number of steps for each parameter; nothing of ours
    assert counts("training, loss read")["syncs"] == own + 1
    assert counts("training, scaled")["syncs"] == own + 1  # whether to skip the step


def test_a_compiled_function_is_one_graph_and_stays_compiled(story, counts):
    assert counts("whole")["compiled_graphs"] == 1
    assert len(story["still compiled"]) == 1
    assert counts("whole again") == counts("whole")


def test_what_the_first_call_compiles_is_remarked(measured):
    assert measured["whole"].remarks == ("functions compiled in the first call: 1",)
    assert not measured["whole again"].remarks
    assert not measured["plain"].remarks


def test_compiled_code_is_counted_uncompiled_besides(counts):
    assert counts("whole")["ops_eager"] == counts("plain")["ops"]
    assert "ops_eager" not in counts("plain")


def test_an_operator_without_a_formula_leaves_the_flops_out(counts, measured):
    assert "flops" not in counts("lstm")
    assert counts("training")["flops"] == 3 * 2 * 8 * 16 * 4 - 2 * 8 * 16 * 4
    assert not measured["lstm"].remarks  # no peak is known here anyway


def test_a_profile_names_the_operators(measured):
    profile = measured["training"].profile
    assert profile.operators["aten::addmm"].count == 1
    assert sum(use.self_s for use in profile.operators.values()) > 0
    assert profile.kernels == {}
    assert measured["python"].profile is None


def test_a_profile_names_compiled_code_alike_in_every_process(measured):
    assert "Torch-Compiled Region" in measured["whole"].profile.operators


@pytest.mark.parametrize(
    "case",
    [
        "layers",
        "layers trained",
        "batched",
        "added",
        "convolution",
        "convolution trained",
        "grouped",
        "transposed",
    ],
)
def test_formulas_agree_with_those_of_torch(story, case):
    ours, theirs = story["flops"][case]
    assert ours == theirs > 0


def test_attention_has_a_formula_on_the_cpu_too(story):
    found = story["hidden"]["attention"]
    assert found == {"fused": [], "plain": [], "flops": 2 * 8 * 16 * 16 * (8 + 8)}


def test_a_fused_layer_is_taken_apart(story):
    found = story["hidden"]["transformer"]
    assert found["fused"] == ["aten::_transformer_encoder_layer_fwd"]
    assert (found["plain"], found["flops"]) == ([], 1_334_400)
    assert story["hidden"]["restored"]


def test_what_cannot_be_taken_apart_is_named(story):
    assert story["hidden"]["lstm"]["plain"] == ["aten::mkldnn_rnn_layer"]


def test_weights_that_are_cast_anew_at_every_call_are_seen(measured):
    inside = measured["autocast inside"].profile.operators["aten::_to_copy"]
    assert inside.count == 3  # input, weight and bias
    assert "aten::_to_copy" not in measured["plain"].profile.operators


def test_a_graph_break_is_counted_for_whoever_runs_the_graph(counts):
    assert counts("whole")["graph_breaks"] == 0
    assert counts("broken")["graph_breaks"] == 1
    assert counts("broken")["compiled_graphs"] == 2
    assert counts("broken first")["graph_breaks"] == 1


def test_a_recompilation_while_timed(counts):
    assert counts("steady")["recompiles"] == 0
    assert counts("recompiled")["recompiles"] == 1


def test_what_differs_between_two_calls_is_unstable(measured):
    metrics = {s.metric.name: s.metric for s in measured["random"].samples}
    assert metrics["ops"].definition == "leaf-operators/1@unstable"
    assert metrics["syncs"].holds_for.startswith("cpu torch ")
    assert any(
        remark.startswith("ops is unstable: 13 and 14 in two calls")
        for remark in measured["random"].remarks
    )


def test_a_body_that_fails_when_counted_keeps_its_times(counts, measured):
    assert counts("moody") == {}
    assert measured["moody"].remarks == ("counts were not taken: OSError: no more",)


# what the gate makes of it


def judged(before, after, **budget):
    runs = [summarise(replace(before, run=run, health=Health())) for run in range(3)]
    session = Session(
        time="2026-01-01T00:00:00Z",
        commit=None,
        environment_digest="d",
        runs=tuple(runs),
    )
    metrics = {series.metric.name: series.metric for series in before.samples}
    recording = Recording(plan=before.plan, metrics=metrics, session=session)
    return judge_benchmark(
        policy=resolve_policy(
            "a.py::b", marker_budget=budget, metrics=tuple(budget), gate=True
        ),
        baseline=update_baseline(None, recording).baseline,
        candidate=[summarise(after)] * 3,
        look=Look(last=True),
        metrics={series.metric.name: series.metric for series in after.samples},
    )


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ("steady", "recompiled", "recompiles"),
        ("whole", "broken", "graph_breaks"),
        ("whole", "broken", "compiled_graphs"),
        ("plain", "training", "ops"),
        ("autocast outside", "autocast inside", "ops"),
    ],
)
def test_one_more_is_red_with_a_budget_of_none(measured, before, after, count):
    found = judged(measured[before], measured[after], **{count: "+0"})
    assert found.verdict.reason is Reason.COUNT_OVER_BUDGET
    same = judged(measured[after], measured[after], **{count: "+0"})
    assert same.verdict.reason is Reason.COUNT_EQUAL


def test_an_unstable_count_is_shown_and_not_gated(measured):
    found = judged(measured["plain"], measured["random"], ops="+0")
    assert found.verdict.reason is Reason.NOT_GATED
    assert "ops is not gated: it differed now between two calls of one run" in (
        found.remarks
    )


# where nothing is counted


@pytest.fixture
def make_occasion(make_fake):
    def make(**changes):
        fields = {
            "device": make_fake(),
            "made": 9,
            "typical_s": 0.001,
            "recompiles": 0,
            "breaks": BreakBook(),
        }
        return Occasion(**(fields | changes))

    return make


@pytest.fixture
def count_of(make_occasion):
    """Count a call."""
    return lambda call, **changes: take_counts(make_occasion(**changes), call)


def test_without_torch_the_call_is_not_made(count_of, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert count_of(lambda: pytest.fail("called")) == NOTHING


def test_python_beside_torch_is_called_once_more_and_has_no_counts(
    count_of, monkeypatch
):
    pytest.importorskip("torch")
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    calls = []
    assert count_of(lambda: calls.append(1)) == NOTHING
    assert calls == [1]


def test_python_beside_a_compiler_has_no_counts_either(count_of, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "torch._dynamo", object())
    assert count_of(lambda: None) == NOTHING


def test_a_call_that_takes_too_long_is_not_made_again(count_of, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", object())
    found = count_of(lambda: pytest.fail("called"), typical_s=6.25)
    assert found.remarks == (
        "counts were not taken: one call takes 6.25 s, more than 5 s",
    )


def test_too_many_operators_make_no_trace(count_of, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(counters, "MOST_OPERATORS", 1)
    monkeypatch.setattr(counters, "tracing", lambda **_: pytest.fail("traced"))
    x = torch.ones(2)
    found = count_of(lambda: x + 1 + 1)
    names = {series.metric.name for series in found.series}
    assert names == {"ops", "syncs", "flops", "recompiles"}
    assert found.remarks == (
        "no trace was made: one call dispatches 2 operators, more than 1",
    )


def test_a_torch_that_would_stay_uncompiled_counts_no_operators(count_of, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(counters, "can_count", lambda: False)
    x = torch.ones(2)
    found = count_of(lambda: x + 1)
    names = {series.metric.name for series in found.series}
    assert "ops" not in names
    assert "allocations" in names
    assert "ops were not counted" in found.remarks[0]


def test_a_warning_is_no_reason_to_count_nothing(count_of):
    torch = pytest.importorskip("torch")
    x = torch.ones(2)

    def step():
        warnings.warn("again", UserWarning, stacklevel=1)
        return x + 1

    assert values_of(count_of(step))["ops"] == 1


def test_lazy_state_is_there_before_anything_is_counted(count_of):
    torch = pytest.importorskip("torch")
    state = []

    def step():
        if len(state) < 3:
            state.append(torch.ones(2))
        return state[0] + 1

    found = count_of(step, made=0)
    values = {series.metric.name: series.values[0] for series in found.series}
    assert values["ops"] == 1


def test_a_call_that_profiles_itself_keeps_its_operators(count_of):
    """Two sessions of torch's profiler: reading the outer one ends the process."""
    torch = pytest.importorskip("torch")
    x = torch.ones(2)

    def profiled():
        with torch.autograd.profiler.profile(use_kineto=True):
            return x + 1

    found = count_of(profiled)
    names = {series.metric.name for series in found.series}
    assert "ops" in names
    assert "allocations" not in names
    (remark,) = found.remarks
    assert remark.startswith("no trace was made: the call uses torch's profiler itself")


def test_a_profile_that_is_under_way_is_left_alone():
    torch = pytest.importorskip("torch")
    x = torch.ones(2)
    with torch.autograd.profiler.profile(use_kineto=True) as theirs:
        x.neg()
        with pytest.raises(ProfilerTaken, match="under way"):
            trace_of(lambda: x + 1, on_gpu=False)
        x.abs()
    names = {event.key for event in theirs.key_averages()}
    assert {"aten::neg", "aten::abs"} <= names


def test_a_thread_that_was_there_may_work_for_the_call(make_occasion, monkeypatch):
    torch = pytest.importorskip("torch")
    x = torch.ones(300, 300)
    with ThreadPoolExecutor(1) as pool:
        found = take_counts(make_occasion(), lambda: pool.submit(x.mm, x).result())
    assert found.remarks == (counters._ASIDE,)


@pytest.mark.parametrize(
    ("busy", "aside"), [((True, True), True), ((True, False), False)]
)
def test_a_thread_that_wakes_up_once_is_chance(make_occasion, monkeypatch, busy, aside):
    torch = pytest.importorskip("torch")
    seen = iter(busy)
    monkeypatch.setattr(
        counters, "watching_threads", lambda: nullcontext(Others(busy=next(seen)))
    )
    x = torch.ones(2, 2)
    found = take_counts(make_occasion(), lambda: x @ x)
    assert (counters._ASIDE in found.remarks) is aside
    assert ("flops" in values_of(found)) is not aside


@pytest.mark.parametrize("own", [0, 1])
def test_what_other_threads_do_is_said_not_to_be_counted(count_of, monkeypatch, own):
    torch = pytest.importorskip("torch")
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    x = torch.ones(2, 2)

    def aside():
        thread = threading.Thread(target=lambda: x @ x)
        thread.start()
        thread.join()
        return [x @ x for _ in range(own)]

    found = count_of(aside)
    assert found.remarks == (counters._ASIDE,)
    counts = values_of(found)
    assert counts.get("ops", 0) == own
    assert "flops" not in counts


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("bincount", 1),
        ("solve", 1),
        ("repeated", 1),
        ("repeated to a known length", 0),
        ("coalesced", 1),
        ("filled", 0),
    ],
)
def test_what_asks_for_values_on_the_host(name, reads):
    torch = pytest.importorskip("torch")
    from pytest_perfgate.measure.operators import dispatched

    x, numbers = torch.eye(3), torch.arange(3)
    places = torch.zeros(2, 2, dtype=torch.long)
    calls = {
        "bincount": lambda: torch.bincount(numbers),
        "solve": lambda: torch.linalg.solve(x, x),
        "repeated": lambda: torch.repeat_interleave(x, numbers, dim=0),
        "repeated to a known length": lambda: torch.repeat_interleave(
            x, numbers, dim=0, output_size=3
        ),
        "coalesced": lambda: torch.sparse_coo_tensor(
            places, x[0, :2], check_invariants=True
        ).coalesce(),
        "filled": lambda: x.masked_fill(x > 0, 1.0),
    }
    assert dispatched(calls[name]).reads == reads


# on a GPU, of which there is only what its traces would say


TRACES = Path(__file__).parents[2] / "data" / "traces"


class Gpu:
    """A device by its name, and what counting asks it for."""

    name = "cuda:0"

    def synchronize(self):
        pass


@pytest.fixture
def on_gpu(count_of, monkeypatch):
    """Count a call whose two traces are those of the given names."""
    torch = pytest.importorskip("torch")
    stats = iter(range(0, 90, 10))
    monkeypatch.setattr(
        torch.cuda, "memory_stats", lambda device: {"num_alloc_retries": next(stats)}
    )
    x = torch.ones(4, 4)

    def count(*names, peak=0.25, call=lambda: x @ x, **changes):
        given = iter([names[0], *names])

        @contextlib.contextmanager
        def tracing(*, on_gpu, wait):
            found = Traced()
            yield found
            found.trace = read_trace((TRACES / f"{next(given)}.json").read_text())

        monkeypatch.setattr(counters, "tracing", tracing)
        monkeypatch.setattr(counters, "utilisation", lambda *_: peak)
        fields = {"device": Gpu(), "per_call_s": 0.001} | changes
        return count_of(call, **fields)

    return count


def values_of(found):
    return {series.metric.name: series.values[0] for series in found.series}


def test_what_a_trace_of_a_gpu_counts(on_gpu):
    assert values_of(on_gpu("copies", "copies")) == {
        "ops": 1,
        "allocations": 0,
        "compiled_graphs": 0,
        "graph_breaks": 0,
        "kernel_launches": 1,
        "graph_launches": 0,
        "kernels": 1,
        "syncs": 2,
        "copies_h2d": 2,
        "bytes_h2d": 5120,
        "copies_d2h": 3,
        "bytes_d2h": 28,
        "copies_pageable": 3,
        "allocation_retries": 10,
        "recompiles": 0,
        "flops": 2 * 4 * 4 * 4,
        "mfu": 0.25,
    }


class Noting:
    """A device whose waits show in a trace, as those of a GPU do."""

    name = "cuda:0"

    def synchronize(self):
        from torch.profiler import record_function

        with record_function("our own wait"):
            pass


def test_our_own_wait_is_no_part_of_the_call(count_of, monkeypatch):
    """It would be one synchronisation more in every call of every benchmark."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda device: {})
    seen = []
    monkeypatch.setattr(counters, "profile_of", seen.extend)
    x = torch.ones(4)
    count_of(lambda: x + x, device=Noting())
    names = [{event.name for event in trace.events} for trace in seen]
    assert len(names) == 2
    for each in names:
        assert "aten::add" in each
        assert "our own wait" not in each


def test_counts_of_a_gpu_hold_for_gpus(on_gpu):
    metrics = {s.metric.name: s.metric for s in on_gpu("copies", "copies").series}
    assert metrics["syncs"].made == "host-waits/1"
    assert metrics["syncs"].holds_for.startswith("cuda torch ")
    assert not metrics["mfu"].exact


def test_two_traces_that_differ(on_gpu):
    found = on_gpu("copies", "syncs")
    assert "syncs is unstable: 2 and 5" in "; ".join(found.remarks)


def test_a_profiler_that_sees_nothing_of_the_gpu_counts_nothing_of_it(on_gpu):
    """Zero launches would be the best of all counts."""
    found = on_gpu("no-gpu-events", "no-gpu-events")
    counts = values_of(found)
    unknown = {"kernel_launches", "kernels", "syncs", "copies_h2d", "bytes_d2h"}
    assert not unknown & counts.keys()
    assert counts["allocations"] == 1
    assert any(
        remark.startswith("launches, waits and copies were not counted")
        for remark in found.remarks
    )


def test_kernels_launched_past_the_operators_hide_operations(on_gpu, monkeypatch):
    monkeypatch.setattr(
        "pytest_perfgate.measure.traces.Trace.compiled", frozenset(), raising=True
    )
    found = on_gpu("triton", "triton")
    assert "flops" not in values_of(found)
    assert found.remarks == (
        "no mfu: no formula for kernels launched by the driver, such as Triton's",
    )


def test_kernels_of_compiled_code_hide_nothing(on_gpu):
    found = values_of(on_gpu("triton", "triton"))
    assert found["mfu"] == 0.25
    assert found["ops_eager"] == 1


def test_no_peak_no_utilisation(on_gpu):
    found = on_gpu("copies", "copies", peak="NVIDIA Z1 is not in the table of peaks")
    assert "mfu" not in values_of(found)
    assert found.remarks == ("no mfu: NVIDIA Z1 is not in the table of peaks",)


def test_what_is_no_model_has_no_utilisation(on_gpu):
    assert "mfu" not in values_of(on_gpu("copies", "copies", per_call_s=0.0))


class Blind(BreakBook):
    """One that was not there when the graphs were made."""

    def of(self, graphs):
        return None


def test_graphs_that_nobody_saw_being_made_have_no_breaks(on_gpu):
    found = on_gpu("triton", "triton", breaks=Blind())
    assert "graph_breaks" not in values_of(found)
    assert found.remarks == (
        "graph breaks were not counted: a graph was made before anyone watched",
    )


def test_a_truncated_trace_costs_the_counts_alone(on_gpu):
    found = on_gpu("truncated")
    assert found.series == ()
    assert found.remarks[0].startswith(
        "counts were not taken: MeasurementError: trace is cut off or no JSON"
    )


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("steady", "recompiled", "recompiles: 0 → 1"),
        ("whole", "broken", "graph_breaks: 0 → 1"),
        ("autocast outside", "autocast inside", "aten::_to_copy: 1 → 3 calls"),
    ],
)
def test_what_compiled_code_does_otherwise_is_named(measured, before, after, named):
    """A failure tells of a recompilation and of a graph break, first of all."""
    # a busy machine disturbs times, and a baseline takes no disturbed runs
    old, new = (replace(measured[name], health=Health()) for name in (before, after))
    recording = Recording(
        plan=old.plan,
        metrics=definitions([old]),
        session=Session(
            time="", commit=None, environment_digest="", runs=(summarise(old),) * 3
        ),
        profile=old.profile,
    )
    result = BenchmarkResult(
        benchmark="b",
        nodeid="b",
        verdict=Verdict(outcome=Outcome.REGRESSED, reason=Reason.COUNT_OVER_BUDGET),
        runs=(summarise(new),),
        metrics=definitions([new]),
        profile=new.profile,
    )
    found = explain(update_baseline(None, recording).baseline, result, History())
    text = failure_text(replace(result, explanation=found))
    if named.startswith("aten::"):  # of operators, their times decide which
        assert any(line.text.startswith(named) for line in found.lines)
    else:
        assert f"  changed with it: {named}" in text
