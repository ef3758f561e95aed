"""Sessions on a machine that is not well: what is repeated, and what is not judged."""

import pytest


def told(project, name):
    """What the report says of one benchmark, in words."""
    (result,) = [r for r in project.report["results"] if r["benchmark"].endswith(name)]
    return result


def test_a_throttled_run_is_discarded_and_made_again(stored):
    stored.device({"*": {"runs": {"2": {"gpu": {"throttled": 0.25}}}}}, salt=1)
    result = stored.run()
    assert result.ret == 0, result.stdout.str()
    one = told(stored, "bench_one")
    assert one["verdict"]["outcome"] == "unchanged"
    assert one["discarded"] == [
        "run 2 not used: throttled; hardware thermal slowdown for 25.0% of the run"
    ]
    assert stored.report["cost"]["waited_s"] == 5
    result.stdout.fnmatch_lines(
        ["note: 1 run not used, not whole or disturbed; the reasons are in the report*"]
    )


@pytest.mark.parametrize(
    ("gpu", "reason", "words"),
    [
        ({"throttled": 0.01}, "throttled", "hardware thermal slowdown for 1.0%"),
        ({"foreign": ["python train.py"]}, "busy", "(python train.py) computed"),
        ({"lost": 1}, "device-lost", "the driver lost the GPU (GPU is lost)"),
        ({"xid": 94}, "device-lost", "the driver reported XID 94 (uncorrected memory"),
    ],
)
def test_a_device_that_does_not_recover_is_invalid(stored, gpu, reason, words):
    stored.device({"*": {"gpu": gpu}}, salt=1)
    result = stored.run()
    assert result.ret == 12
    assert stored.outcomes["benches/bench_a.py::bench_one"] == ("invalid", reason)
    one = told(stored, "bench_one")
    assert len(one["discarded"]) == 4  # the first, and three more
    assert one["verdict"]["detail"].startswith("4 runs not used, the last: ")
    assert words in one["verdict"]["detail"]
    assert stored.report["cost"]["waited_s"] == 5 + 10 + 20


def test_a_run_with_an_error_of_the_gpu_is_made_again_and_counted(stored):
    stored.device({"*": {"runs": {"2": {"gpu": {"xid": 79}}}}}, salt=1)
    result = stored.run()
    assert result.ret == 0, result.stdout.str()
    one = told(stored, "bench_one")
    assert one["verdict"]["outcome"] == "unchanged"
    assert one["discarded"] == [
        "run 2 not used: device-lost; the driver reported XID 79 (it has fallen off the bus)"
    ]
    assert stored.report["cost"]["waited_s"] == 5


def test_throttling_below_half_a_per_cent_is_no_reason(stored):
    stored.device({"*": {"gpu": {"throttled": 0.004}}}, salt=1)
    assert stored.run().ret == 0
    assert told(stored, "bench_one")["discarded"] == []


def test_a_driver_that_falls_silent_ends_nothing(stored):
    stored.device({"*": {"gpu": {"blind": 1}}}, salt=1)
    result = stored.run()
    assert result.ret == 0
    one = told(stored, "bench_one")
    assert one["verdict"]["outcome"] == "unchanged"
    (remark,) = one["remarks"]
    assert remark == (
        "the driver could not be asked any more (Unknown Error): "
        "the GPU was not watched to the end"
    )


def test_disturbed_blocks_are_measured_again_and_counted(one):
    one.device({"*": {"runs": {"2": {"disturbed_blocks": [0]}}}})
    result = one.run("--perfgate-iterations=2000", "--perfgate-on-missing=warn")
    assert result.ret == 0, result.stdout.str()
    assert told(one, "bench_one")["discarded"] == [
        "run 2: 1 of 10 blocks discarded and measured again: kept waiting for a CPU"
    ]
    for measured in one.measurements():
        assert len(measured.samples[0].values) == 2000


def test_a_gpu_that_warms_up_meanwhile_is_disturbed(stored):
    stored.device({"*": {"gpu": {"warmed_c": 16}}}, salt=1)
    assert stored.run().ret == 0
    assert stored.outcomes["benches/bench_a.py::bench_one"] == (
        "inconclusive",
        "disturbed",
    )
    assert "warmed from 50 to 66 °C" in told(stored, "bench_one")["discarded"][0]


def test_nothing_unfit_is_recorded(one):
    one.device({"*": {"gpu": {"throttled": 0.5}}})
    assert one.run("--perfgate-update").ret == 12
    assert not one.baseline().exists()


def test_a_dip_of_the_clock_costs_its_run_and_no_verdict(stored):
    dip = {"factor": 1.25, "gpu": {"throttled": 0.2, "sm_mhz": 1580}}
    stored.device({"*": {"gpu": {}, "runs": {"2": dip}}}, salt=1)
    result = stored.run("--perfgate-runs=3:3")
    assert result.ret == 0, result.stdout.str()
    one = told(stored, "bench_one")
    assert one["verdict"]["outcome"] == "unchanged"
    assert one["discarded"] == [
        "run 2 not used: throttled; hardware thermal slowdown for 20.0% of the run"
    ]
    values = one["runs"]["statistics"]["latency"]["median"]
    assert [value for value, _ in values] == [pytest.approx(0.001, rel=0.02)] * 3


def test_runs_that_are_all_throttled_are_no_empty_success(one):
    one.device({"*": {"gpu": {"throttled": 0.9}}})
    result = one.run("--perfgate-on-missing=warn")
    assert result.ret == 12
    assert list(one.outcomes.values()) == [("invalid", "throttled")]
    found = told(one, "bench_one")
    assert (len(found["discarded"]), found.get("judgements")) == (4, [])
    assert "1 passed" not in result.stdout.str()


def test_a_low_clock_alone_empties_no_result(one):
    """Tiny kernels run at 59 % of the clock, and nobody throttles them."""
    law = {"*": {"seconds": 2e-6, "gpu": {"sm_mhz": 1168}}}
    one.device(law)
    one.adopt("benches")
    one.device(law, salt=1)
    result = one.run("--perfgate-runs=3:3")
    assert result.ret == 0, result.stdout.str()
    found = told(one, "bench_one")
    assert found["verdict"]["outcome"] == "unchanged"
    assert found["discarded"] == []
    assert len(found["runs"]["iterations"]) == 3


def test_a_clock_that_falls_under_load_is_told_with_the_drift(one):
    one.device({"*": {"gpu": {"sm_mhz": 1965}}})
    one.adopt("benches", "--perfgate-iterations=900")
    falling = [0.001 * (1 + 0.16 * step / 899) for step in range(900)]
    law = {"values": falling, "gpu": {"sm_mhz": 1965, "last_sm_mhz": 1580}}
    one.device({"*": law}, salt=1)
    result = one.run("--perfgate-runs=3:3", "--perfgate-iterations=900")
    assert result.ret == 0, result.stdout.str()
    verdict = told(one, "bench_one")["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == ("inconclusive", "not-steady")
    assert verdict["detail"].startswith("latency drifts by +1")
    assert verdict["detail"].endswith(
        "within 3 of 3 runs, while the GPU's clock went from 1965 to 1580 MHz"
    )
    result.stdout.fnmatch_lines(["*from 1965 to 1580 MHz*"])


def test_a_difference_of_clocks_is_no_regression(one):
    one.device({"*": {"gpu": {"sm_mhz": 1980}}})
    one.adopt("benches")
    slower = {"factor": 1.08}
    one.device({"*": slower | {"gpu": {"sm_mhz": 1830}}}, salt=1)
    result = one.run("--perfgate-runs=3:3")
    assert result.ret == 0, result.stdout.str()
    assert one.outcomes["benches/bench_a.py::bench_one"] == (
        "inconclusive",
        "disturbed",
    )
    detail = told(one, "bench_one")["verdict"]["detail"]
    assert detail.startswith("a difference of clocks, not a regression: +7.9 %")
    assert detail.endswith("in cycles (1980 → 1830 MHz)")
    # the same in time, on the same clock: the code
    one.device({"*": slower | {"gpu": {"sm_mhz": 1980}}}, salt=1)
    assert one.run("--perfgate-runs=3:3").ret == 1


HOST_BOUND = {"seconds": 0.001, "device": 0.5, "enqueue": 0.9, "gpu": {"sm_mhz": 1980}}


@pytest.fixture
def host_bound(one):
    """A baseline of calls for which the GPU waits, and runs that differ from it."""
    one.device({"*": HOST_BOUND})
    one.adopt("benches")

    def measure(**changes):
        one.device({"*": HOST_BOUND | changes}, salt=1)
        return one.run("--perfgate-runs=3:3")

    one.measure = measure
    return one


def judged(project, metric):
    (found,) = (
        one
        for one in told(project, "bench_one")["judgements"]
        if one["metric"]["name"] == metric and one["statistic"] == "median"
    )
    return found


def test_while_the_host_decides_the_gpu_s_time_is_shown(host_bound):
    result = host_bound.measure(device=0.8)
    assert result.ret == 0, result.stdout.str()
    assert judged(host_bound, "latency")["gated"]
    shown = judged(host_bound, "device_time")
    assert not shown["gated"]
    assert shown["comparison"]["ratio"] > 1.5
    assert shown["remarks"][0].startswith("device_time is not gated: host-bound")
    runs = told(host_bound, "bench_one")["runs"]
    assert runs["enqueue_share"] == [[pytest.approx(0.9, abs=1e-3)]] * 3


def test_what_stops_to_be_host_bound_is_gated_and_explained(host_bound):
    result = host_bound.measure(device=0.8, enqueue=0.3)
    assert result.ret == 1
    assert judged(host_bound, "device_time")["verdict"]["outcome"] == "regressed"
    said = "is host-bound no longer: 90 % → 30 % of the latency goes by before"
    one = told(host_bound, "bench_one")
    assert any(remark.startswith(said) for remark in one["remarks"])
    assert said in one["explanation"][0]["text"]
    assert "changed with it: is host-bound no longer" in result.stdout.str()


def test_a_lower_clock_excuses_no_slower_host(host_bound):
    assert host_bound.measure(factor=1.08, gpu={"sm_mhz": 1830}).ret == 1
    assert told(host_bound, "bench_one")["verdict"]["outcome"] == "regressed"


SPOILT = """
import os, pathlib

def bench_blocks(perfgate): perfgate(int)
def bench_throttled(perfgate): perfgate(int)
def bench_error(perfgate): perfgate(int)
def bench_noisy(perfgate): perfgate(int)
def bench_dies(perfgate):
    if os.environ.get("DIES") and not pathlib.Path("died").exists():
        pathlib.Path("died").touch()
        os._exit(7)
    perfgate(int)
"""
USED = "used, for want of a quiet one, though disturbed"
BUS = "XID 79 (it has fallen off the bus)"


def test_nothing_is_dropped_in_silence_whatever_shows_the_report(project, monkeypatch):
    project.bench(SPOILT)
    project.adopt("benches", "--perfgate-iterations=2000")
    exact = {"run_sd": 0.0, "iteration_sd": 0.0}
    noisy = {str(run): {"disturbed": True} for run in range(1, 7)}
    project.device(
        {
            "*bench_blocks": exact | {"runs": {"2": {"disturbed_blocks": [0]}}},
            "*bench_throttled": {"runs": {"2": {"gpu": {"throttled": 0.25}}}},
            "*bench_error": {"runs": {"2": {"gpu": {"xid": 79}}}},
            "*bench_noisy": exact | {"runs": noisy},
        },
        salt=1,
    )
    monkeypatch.setenv("DIES", "1")
    result = project.run("--perfgate-runs=3:3", "-v")
    assert result.ret == 0, result.stdout.str()
    said = {
        name: told(project, f"bench_{name}")["discarded"]
        for name in ("blocks", "throttled", "error", "dies", "noisy")
    }
    spoilt = "2 of 10 blocks discarded and measured again: kept waiting for a CPU"
    assert said.pop("noisy") == [
        f"run {run} {used}: {spoilt}; 8 of 8 blocks kept waiting for a CPU"
        for run, used in enumerate([USED] * 3 + ["not used"] * 3, 1)
    ]
    assert said == {
        "blocks": [
            "run 2: 1 of 9 blocks discarded and measured again: kept waiting for a CPU"
        ],
        "throttled": [
            "run 2 not used: throttled; hardware thermal slowdown for 25.0% of the run"
        ],
        "error": [f"run 2 not used: device-lost; the driver reported {BUS}"],
        "dies": ["run 1 not used: exit code 7"],
    }
    folder = project.path / ".perfgate" / "last"
    table = " ".join(result.stdout.str().split())
    for name in ("report.md", "report.html"):
        page = (folder / name).read_text()
        for (text,) in said.values():
            assert text in page
            assert text in table
        assert page.count("used, for want of a quiet one") == 3
        assert page.count("not used: 2 of ") == 3
    assert "10 runs not used, not whole or disturbed" in table
