"""Where the host decides on both sides, the GPU's time says nothing of its own."""

from dataclasses import replace

import pytest

from pytest_perfgate.gate.host_bound import Bound, compare_bounds
from pytest_perfgate.model import Outcome, Reason, RunSummary

HOST, GPU = 0.9, 0.3


@pytest.fixture
def compare(make):
    """Judge candidate runs by latency and device time; both medians of noise."""

    def sides(center, count, seed, share, mhz):
        latency, device_time = center
        runs = make.noisy("latency__median", count, center=latency, sd=0.001, seed=seed)
        spans = make.noisy(
            "device_time__median", count, center=device_time, sd=0.001, seed=seed + 9
        )
        return tuple(
            replace(
                run,
                statistics={**run.statistics, **span.statistics},
                enqueue_share=share,
                device={"sm_clock_mhz": mhz},
            )
            for run, span in zip(runs, spans, strict=True)
        )

    def judge(now, *, shares=(HOST, HOST), clocks=(1980, 1980), **policy):
        base = sides((1.0, 0.5), 10, 0, shares[0], clocks[0])
        fresh = sides(now, 12, 1, shares[1], clocks[1])
        return make.judge(make.baseline(base), fresh, **policy)

    return judge


def of(judged, metric="device_time"):
    return next(one for one in judged.judgements if one.metric.name == metric)


def test_host_bound_on_both_sides_the_gpu_s_time_is_shown_with_its_reason(compare):
    judged = compare((1.0, 0.8))
    shown = of(judged)
    assert not shown.gated
    assert shown.verdict.reason is Reason.NOT_GATED
    assert shown.comparison.ratio == pytest.approx(1.6)
    assert shown.remarks == (
        (
            "device_time is not gated: host-bound on both sides (90 % → 90 % of the "
            "latency goes by before the GPU has all its work), it follows the host, "
            "and latency is gated"
        ),
    )
    assert judged.verdict.outcome is Outcome.UNCHANGED


def test_latency_is_gated_all_the_same(compare):
    judged = compare((1.3, 0.5))
    assert of(judged, "latency").verdict.reason is Reason.FLAGGED
    assert judged.flagged


@pytest.mark.parametrize("shares", [(GPU, GPU), (HOST, GPU), (GPU, HOST)])
def test_bound_by_the_host_on_one_side_or_none_it_is_gated(compare, shares):
    assert of(compare((1.0, 0.8), shares=shares)).verdict.reason is Reason.FLAGGED


@pytest.mark.parametrize(
    ("shares", "remark"),
    [
        ((GPU, GPU), None),
        (
            (GPU, HOST),
            "became host-bound: 30 % → 90 %",
        ),
        (
            (HOST, GPU),
            "is host-bound no longer: 90 % → 30 %",
        ),
    ],
)
def test_another_bound_is_remarked(compare, shares, remark):
    remarks = compare((1.0, 0.5), shares=shares).remarks
    of_latency = "of the latency goes by before the GPU has all its work"
    assert remarks == (() if remark is None else (f"{remark} {of_latency}",))


@pytest.mark.parametrize(
    "policy",
    [
        {"specs": ["device_time=5%"]},
        {"marker_budget": {"device_time": "5%"}},
        {"only": ("device_time",)},
    ],
)
def test_who_asks_for_it_by_name_gets_it_gated(compare, policy):
    judged = compare((1.0, 0.8), **policy)
    assert of(judged).verdict.reason is Reason.FLAGGED
    assert judged.remarks == (
        (
            "host-bound on both sides, and gated because a budget names it: 90 % → 90 % "
            "of the latency goes by before the GPU has all its work"
        ),
    )


def test_a_budget_for_all_times_names_none(compare):
    assert not of(compare((1.0, 0.8), specs=["5%"])).gated


def test_where_nothing_is_gated_nothing_is_said_of_it(compare):
    judged = compare((1.0, 0.8), gate=False)
    assert (of(judged).remarks, judged.remarks) == ((), ())


def test_a_baseline_that_does_not_tell_gates_as_ever(compare):
    judged = compare((1.0, 0.8), shares=(None, HOST))
    assert of(judged).verdict.reason is Reason.FLAGGED
    (remark,) = judged.remarks
    assert remark.startswith("host-bound now, and the baseline does not tell")
    assert compare((1.0, 0.5), shares=(None, GPU)).remarks == ()


def test_without_a_time_of_the_gpu_s_there_is_nothing_to_say_of_it(make):
    runs = make.noisy("latency__median", 10, enqueue_share=None)
    fresh = make.noisy("latency__median", 12, enqueue_share=HOST)
    assert make.judge(make.baseline(runs), fresh).remarks == ()


@pytest.mark.parametrize(
    ("shares", "share"),
    [
        ((0.9, 0.9, 0.3, 0.3), 0.3),
        ((0.9, 0.9, 0.9, 0.3), 0.9),
        ((0.9, 0.9, None), 0.9),
        ((0.9, 0.3, None), 0.3),
        ((0.9, None), None),
        ((), None),
    ],
)
def test_most_runs_decide_and_silence_counts_against(shares, share):
    runs = tuple(
        RunSummary(iterations=1, statistics={}, enqueue_share=one) for one in shares
    )
    assert compare_bounds((), runs) == Bound(now=share)


def test_an_unknown_side_has_a_word():
    assert Bound(now=0.25).text.startswith("unknown → 25 % of the latency")
    assert Bound(now=HOST).change is None


# -- clocks -----------------------------------------------------------------------


@pytest.mark.parametrize("shares", [(HOST, HOST), (GPU, HOST), (HOST, GPU)])
def test_no_clock_excuses_a_slower_host(compare, shares):
    judged = compare((1.08, 0.54), shares=shares, clocks=(1980, 1830))
    assert of(judged, "latency").verdict.reason is Reason.FLAGGED
    if shares != (HOST, HOST):
        assert of(judged).verdict.reason is Reason.FLAGGED


def test_bound_by_the_gpu_a_lower_clock_does(compare):
    judged = compare((1.08, 0.54), shares=(GPU, GPU), clocks=(1980, 1830))
    assert of(judged, "latency").verdict.reason is Reason.DISTURBED


def test_of_a_host_bound_candidate_a_higher_clock_hides_nothing(compare):
    clocks = (1700, 1980)
    assert of(compare((1.0, 0.5), clocks=clocks), "latency").outcome == "unchanged"
    assert of(compare((0.9, 0.5), clocks=clocks), "latency").outcome == "improved"


def test_what_waits_for_the_gpu_now_is_not_acquitted_by_a_higher_clock(compare):
    judged = compare((1.0, 0.5), shares=(HOST, GPU), clocks=(1700, 1980))
    assert of(judged, "latency").verdict.reason is Reason.DISTURBED
    assert of(judged).verdict.reason is Reason.DISTURBED


def test_a_narrower_link_slows_a_host_too(make):
    base = make.noisy(
        "latency__median", 10, device={"pcie_width": 16}, enqueue_share=HOST
    )
    now = make.noisy(
        "latency__median", 12, center=1.3, device={"pcie_width": 8}, enqueue_share=HOST
    )
    found = of(make.judge(make.baseline(base), now), "latency")
    assert found.verdict.detail == "not the code alone: PCIe width 16 → 8"


def test_more_time_under_the_power_cap_is_no_excuse_of_the_host(make):
    capped = [{"sw_power_cap_share": share} for share in (0.1, 0.4)]
    base = make.noisy("latency__median", 10, device=capped[0], enqueue_share=HOST)
    now = make.noisy(
        "latency__median", 12, center=1.3, device=capped[1], enqueue_share=HOST
    )
    found = of(make.judge(make.baseline(base), now), "latency")
    assert found.verdict.reason is Reason.FLAGGED


# -- the anchor -------------------------------------------------------------------


def anchored(make, share, **policy):
    """Judge what crept by half in device time alone, far beyond the anchor's 15 %."""

    def session(spans, seed):
        latency = make.noisy("latency__median", 10, sd=0.001, seed=seed)
        device = make.noisy(
            "device_time__median", 10, center=spans, sd=0.001, seed=seed
        )
        return tuple(
            replace(
                one,
                statistics={**one.statistics, **two.statistics},
                enqueue_share=share,
            )
            for one, two in zip(latency, device, strict=True)
        )

    stored = make.baseline(session(1.0, 0), session(1.5, 1))
    newest = replace(stored, sessions=stored.sessions[1:])
    judged = make.judge(newest, session(1.5, 2), **policy)
    return [
        one.metric.name for one in judged.judgements if one.anchor and one.gated
    ], judged


def test_the_anchor_of_a_host_bound_session_does_not_accuse_the_gpu_s_time(make):
    assert anchored(make, HOST)[0] == []
    assert anchored(make, GPU)[0] == ["device_time"]


def test_unless_it_is_asked_to(make):
    assert anchored(make, HOST, specs=["device_time=5%"])[0] == ["device_time"]
