"""What an explanation names, in which order, and what it does not claim."""

import math

import pytest

from pytest_perfgate.gate.explain import Commit, History, clue_text, explain
from pytest_perfgate.gate.profiles import MOST
from pytest_perfgate.measured import (
    METRICS,
    UNSTABLE,
    Metric,
    OperatorUse,
    Plan,
    Profile,
)
from pytest_perfgate.model import (
    Baseline,
    BenchmarkResult,
    Clue,
    ClueKind,
    Comparison,
    Difference,
    Judgement,
    Outcome,
    Reason,
    RunStatistic,
    RunSummary,
    Session,
    Verdict,
)

TORCH = "cpu torch 2.13"
SAME = History(since="1a2b3c4d5e6f")


def count(name, *, made="x/1", holds=TORCH, **others):
    return Metric(
        name=name, unit="1", definition=f"{made}@{holds}", exact=True, **others
    )


def run(device=None, output=None, *, enqueued=None, **values):
    return RunSummary(
        enqueue_share=enqueued,
        iterations=1,
        output=output or {},
        statistics={n: {"max": RunStatistic(value=v)} for n, v in values.items()},
        device=device or {},
    )


def baseline(*runs, metrics=(), profile=None):
    session = Session(
        time="", commit=None, environment_digest="", runs=runs or (run(),)
    )
    return Baseline(
        plan=Plan(iterations=1, warmup=0),
        metrics={metric.name: metric for metric in metrics},
        sessions=(session,),
        anchor=session,
        profile=profile,
    )


def judgement(name, old, new, *, outcome=Outcome.REGRESSED, statistic="median", **rest):
    compared = Comparison(
        baseline=old,
        candidate=new,
        ratio=new / old,
        low=1.0,
        high=2.0,
        p_identity=0.0,
        baseline_runs=3,
        candidate_runs=3,
        spread=0.0,
        detectable=None,
    )
    return Judgement(
        metric=METRICS[name],
        statistic=statistic,
        verdict=Verdict(outcome=outcome, reason=Reason.CONFIRMED),
        comparison=compared,
        **rest,
    )


def result(*runs, metrics=(), **others):
    return BenchmarkResult(
        benchmark="b",
        nodeid="b",
        verdict=Verdict(outcome=Outcome.REGRESSED, reason=Reason.CONFIRMED),
        runs=runs or (run(),),
        metrics={metric.name: metric for metric in metrics},
        **others,
    )


def uses(**named):
    return {
        name.replace("__", "::"): OperatorUse(count=calls, self_s=seconds)
        for name, (calls, seconds) in named.items()
    }


def profile(total=None, **named):
    operators = uses(**named)
    seconds = sum(one.self_s for one in operators.values()) if total is None else total
    return Profile(operators=operators, operators_s=seconds)


def kernels(**named):
    found = uses(**named)
    return Profile(
        operators={}, kernels=found, kernels_s=sum(one.self_s for one in found.values())
    )


def texts(explanation):
    return [clue_text(line) for line in explanation.lines]


def of_kind(explanation, kind):
    return [clue_text(line) for line in explanation.lines if line.kind is kind]


# -- counts


def test_counts_that_became_worse_come_first_and_the_telling_ones_before_the_rest():
    metrics = [count(name) for name in ("ops", "syncs", "graph_breaks", "own", "flops")]
    metrics.append(count("cached", better="higher"))
    old = run(ops=4.0, syncs=0.0, graph_breaks=1.0, own=1.0, flops=9.0, cached=2.0)
    new = run(ops=5.0, syncs=1.0, graph_breaks=0.0, own=2.0, flops=9.0, cached=1.0)
    found = explain(baseline(old, metrics=metrics), result(new, metrics=metrics), SAME)
    assert texts(found) == [
        "syncs: 0 → 1",
        "ops: 4 → 5",
        "cached: 2 → 1",
        "own: 1 → 2",
        "graph_breaks: 1 → 0",
    ]
    assert (found.lines[0].old, found.lines[0].new) == ("0", "1")


def test_counts_of_fresh_runs_are_counts_too():
    syncs = count("syncs")
    made = result(run(), metrics=[syncs], confirmation=(run(syncs=3.0),))
    found = explain(baseline(run(syncs=1.0), metrics=[syncs]), made, SAME)
    assert texts(found) == ["syncs: 1 → 3"]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (count("syncs", made="x/1"), count("syncs", made="x/2")),
        (count("syncs", holds=UNSTABLE), count("syncs")),
        (count("syncs"), count("syncs", holds=UNSTABLE)),
        (METRICS["latency"], METRICS["latency"]),
        (count("other"), count("syncs")),
    ],
    ids=["made-otherwise", "was-unstable", "is-unstable", "a-time", "not-there"],
)
def test_what_cannot_be_held_against_each_other_is_not(before, now):
    old, new = run(**{before.name: 0.0}), run(**{now.name: 1.0})
    found = explain(baseline(old, metrics=[before]), result(new, metrics=[now]), SAME)
    assert not of_kind(found, ClueKind.COUNT)


def test_a_count_without_a_value_says_nothing():
    syncs = count("syncs")
    found = explain(baseline(metrics=[syncs]), result(metrics=[syncs]), SAME)
    assert not of_kind(found, ClueKind.COUNT)


def test_a_count_of_another_torch_says_so():
    now = count("ops", holds="cpu torch 2.14")
    found = explain(
        baseline(run(ops=1.0), metrics=[count("ops")]),
        result(run(ops=2.0), metrics=[now]),
        SAME,
    )
    assert texts(found) == ["ops: 1 → 2 (with cpu torch 2.13, now with cpu torch 2.14)"]


@pytest.mark.parametrize(("new", "named"), [(1030.0, False), (2048.0, True)])
def test_a_peak_of_memory_is_named_beyond_its_noise(new, named):
    memory = METRICS["peak_memory"]
    found = explain(
        baseline(run(peak_memory=1024.0), metrics=[memory]),
        result(run(peak_memory=new), metrics=[memory]),
        SAME,
    )
    expected = ["peak_memory: 1.00 KiB → 2.00 KiB"] if named else []
    assert of_kind(found, ClueKind.COUNT) == expected


# -- operators and kernels


def test_operators_are_named_by_their_calls_then_by_their_time():
    old = profile(mm=(1, 0.1), add=(1, 0.1), gone=(1, 0.01), same=(1, 0.3))
    new = profile(mm=(2, 0.2), add=(1, 0.4), item=(1, 0.04), same=(1, 0.31))
    slower = judgement("latency", 1.0, 1.4)
    found = explain(
        baseline(profile=old), result(profile=new, judgements=(slower,)), SAME
    )
    assert of_kind(found, ClueKind.OPERATOR) == [
        "mm: 1 → 2 calls, 100 ms → 200 ms: 25 % of the slowdown",
        "item: 0 → 1 calls, – → 40.0 ms: 10 % of the slowdown",
        "gone: 1 → 0 calls, 10.0 ms → –",
        "add: 100 ms → 400 ms: 75 % of the slowdown",
    ]
    assert (found.lines[1].old, found.lines[1].new) == ("–", "1 in 40.0 ms")


def test_without_a_slowdown_times_name_nothing():
    old, new = profile(mm=(1, 0.1)), profile(mm=(1, 0.9))
    found = explain(baseline(profile=old), result(profile=new), SAME)
    assert not of_kind(found, ClueKind.OPERATOR)


def test_a_little_of_a_large_slowdown_is_not_named():
    old, new = profile(mm=(1, 0.01)), profile(mm=(1, 0.02))
    slower = judgement("latency", 1.0, 2.0)
    found = explain(
        baseline(profile=old), result(profile=new, judgements=(slower,)), SAME
    )
    assert not of_kind(found, ClueKind.OPERATOR)


@pytest.mark.parametrize("side", ["old", "new"])
def test_a_name_that_the_other_list_left_out_is_not_called_new_or_gone(side):
    short = profile(mm=(1, 0.1), total=1.0)
    long = profile(mm=(1, 0.1), item=(1, 0.001))
    old, new = (short, long) if side == "old" else (long, short)
    found = explain(baseline(profile=old), result(profile=new), SAME)
    assert not of_kind(found, ClueKind.OPERATOR)


def test_no_more_are_named_than_one_reads():
    many = {f"op{n}": (1, 0.1) for n in range(2 * MOST)}
    found = explain(
        baseline(profile=profile(op0=(1, 0.1))), result(profile=profile(**many)), SAME
    )
    named = of_kind(found, ClueKind.OPERATOR)
    assert len(named) == MOST + 1
    assert named[-1] == f"… and {MOST - 1} more operators"


def test_a_share_that_would_be_none_is_not_written():
    assert clue_text(Clue(kind=ClueKind.COUNT, text="x", share=0.004)) == "x"


def test_kernels_explain_the_device_time_and_operators_then_no_share():
    old, new = kernels(gemm=(1, 0.1)), kernels(gemm=(1, 0.3))
    new = Profile(
        operators=uses(mm=(2, 0.1)),
        operators_s=0.1,
        kernels=new.kernels,
        kernels_s=new.kernels_s,
    )
    slower = judgement("latency", 1.0, 2.0), judgement("device_time", 0.2, 0.6)
    found = explain(baseline(profile=old), result(profile=new, judgements=slower), SAME)
    assert texts(found) == [
        "gemm: 100 ms → 300 ms: 50 % of the slowdown",
        "mm: 0 → 2 calls, – → 100 ms",
    ]


@pytest.mark.parametrize(
    "judged",
    [
        judgement("latency", 1.0, 1.4, outcome=Outcome.UNCHANGED),
        judgement("latency", 1.0, 1.4, statistic="p99"),
        judgement("latency", 1.0, 1.4, anchor=True),
        judgement("latency", 1.4, 1.0),
        judgement("tpot", 1.0, 1.4),
        judgement("throughput", 1.0, 1.4),
        Judgement(
            metric=METRICS["latency"],
            statistic="median",
            verdict=Verdict(outcome=Outcome.REGRESSED, reason=Reason.CONFIRMED),
        ),
    ],
    ids=["unchanged", "tail", "anchor", "faster", "a-token", "a-rate", "no-numbers"],
)
def test_a_share_is_that_of_one_calls_slowdown_or_there_is_none(judged):
    found = explain(
        baseline(profile=profile(mm=(1, 0.1))),
        result(profile=profile(mm=(2, 0.2)), judgements=(judged,)),
        SAME,
    )
    assert texts(found) == ["mm: 1 → 2 calls, 100 ms → 200 ms"]


def test_what_explains_more_than_all_is_called_all():
    assert clue_text(Clue(kind=ClueKind.COUNT, text="x", share=1.7)) == (
        "x: as much as the whole slowdown"
    )


# -- the machine


def test_a_lower_clock_has_its_share():
    slower = judgement("latency", 1.0, 2.0)
    found = explain(
        baseline(run({"sm_clock_mhz": 1980.0})),
        result(
            run({"sm_clock_mhz": 1980.0 / math.sqrt(2), "pcie_width": 16.0}),
            judgements=(slower,),
        ),
        SAME,
    )
    assert texts(found) == ["median SM clock: 1980 → 1400 MHz: 50 % of the slowdown"]
    assert (found.lines[0].old, found.lines[0].new) == ("1980 MHz", "1400 MHz")


@pytest.mark.parametrize(
    ("before", "now", "judged", "expected"),
    [
        (1000.0, 1005.0, (), []),
        (1000.0, 1100.0, ("latency", 1.0, 2.0), ["median SM clock: 1000 → 1100 MHz"]),
        (1000.0, 900.0, (), ["median SM clock: 1000 → 900 MHz"]),
    ],
    ids=["the-same", "higher", "not-slower"],
)
def test_clocks_without_a_share(before, now, judged, expected):
    found = explain(
        baseline(run({"sm_clock_mhz": before})),
        result(
            run({"sm_clock_mhz": now}),
            judgements=(judgement(*judged),) if judged else (),
        ),
        SAME,
    )
    assert of_kind(found, ClueKind.CLOCK) == expected


@pytest.mark.parametrize("shares", [(0.9, 0.9), (0.3, 0.9), (0.9, 0.3)])
def test_a_clock_has_no_share_where_the_gpu_waits_for_the_host(shares):
    before, now = shares
    found = explain(
        baseline(run({"sm_clock_mhz": 1980.0}, enqueued=before)),
        result(
            run({"sm_clock_mhz": 1400.0}, enqueued=now),
            judgements=(judgement("latency", 1.0, 2.0),),
        ),
        SAME,
    )
    assert of_kind(found, ClueKind.CLOCK) == ["median SM clock: 1980 → 1400 MHz"]


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((0.3, 0.9), "became host-bound: 30 % → 90 % of the latency goes by"),
        ((0.9, 0.3), "is host-bound no longer: 90 % → 30 % of the latency goes by"),
        ((0.9, 0.9), None),
        ((None, 0.9), None),
    ],
)
def test_who_decides_is_named_where_it_changed(shares, said):
    before, now = shares
    found = explain(
        baseline(run(enqueued=before)),
        result(run(enqueued=now)),
        SAME,
    )
    (*told,) = of_kind(found, ClueKind.BOUND)
    expected = [] if said is None else [f"{said} before the GPU has all its work"]
    assert told == expected


def test_a_narrower_link_is_named():
    found = explain(
        baseline(run({"pcie_width": 16.0})), result(run({"pcie_width": 8.0})), SAME
    )
    assert texts(found) == ["PCIe width 16 → 8"]


def differing(*names):
    return tuple(
        Difference(field=name, baseline="1", candidate="2", forbids=False)
        for name in names
    )


def test_one_field_that_differs_is_named():
    found = explain(baseline(), result(differences=differing("torch")), SAME)
    assert texts(found) == ["torch: 1 → 2"]
    assert (found.lines[0].old, found.lines[0].new) == ("1", "2")


def test_several_cannot_be_told_apart():
    forbidden = Difference(field="gpu", baseline="a", candidate="b", forbids=True)
    made = result(differences=(*differing("torch", "driver"), forbidden))
    assert texts(explain(baseline(), made, SAME)) == [
        (
            "2 versions and settings differ (torch, driver): which of them is a cause "
            "cannot be told apart"
        ),
        "torch: 1 → 2",
        "driver: 1 → 2",
    ]


# -- commits


def test_one_commit_is_named():
    history = History(since="a", commits=(Commit(name="c1", subject="Do it"),), count=1)
    assert texts(explain(baseline(), result(), history)) == ["commit c1: Do it"]


def test_many_are_counted_and_the_newest_listed():
    history = History(
        since="a" * 12,
        commits=(Commit(name="c2", subject="two"), Commit(name="c1", subject="one")),
        count=1200,
        dirty=True,
    )
    assert texts(explain(baseline(), result(), history)) == [
        "there are uncommitted changes",
        "1,200 commits since the baseline's aaaaaaaaaaaa",
        "commit c2: two",
        "commit c1: one",
        "… and 1,198 earlier commits",
    ]


# -- what cannot be told


def test_where_nothing_differs_it_says_so_and_what_was_compared():
    syncs = count("syncs")
    mhz = run({"sm_clock_mhz": 1000.0}, syncs=1.0)
    same = profile(mm=(1, 0.1))
    found = explain(
        baseline(mhz, metrics=[syncs], profile=same),
        result(mhz, metrics=[syncs], profile=same),
        SAME,
    )
    assert texts(found) == [
        (
            "nothing that was recorded differs; compared: 1 count, operators, the GPU's "
            "clock, versions and settings, commits"
        )
    ]
    assert found.lines[0].kind is ClueKind.NOTE


def test_what_could_not_be_compared_is_named():
    history = History(since="abc+dirty", problem="no such commit")
    found = explain(baseline(), result(profile=profile(mm=(1, 0.1))), history)
    assert texts(found) == [
        "nothing that was recorded differs; compared: versions and settings",
        "operators were not compared: there is no profile of what it was held against",
        "the baseline has changes in it that were never committed",
        "commits were not compared: no such commit",
    ]


def test_a_candidate_without_a_profile_is_named():
    found = explain(baseline(profile=profile(mm=(1, 0.1))), result(), SAME)
    assert texts(found)[1:] == [
        "operators were not compared: there is no profile of the candidate"
    ]


def test_another_output_is_the_first_that_is_named():
    syncs = count("syncs")
    before = baseline(run({}, {"float32[8]": 0.5}, syncs=1.0), metrics=(syncs,))
    now = run({}, {"float32[4]": 0.5}, syncs=2.0)
    lines = explain(before, result(now, metrics=(syncs,)), SAME).lines
    assert (lines[0].kind, lines[0].text) == (
        ClueKind.OUTPUT,
        "other work: the output was float32[8] and is float32[4]",
    )
    assert lines[1].kind is ClueKind.COUNT
