"""What one test may measure, and how each number is told from the others."""

THREE = ("--perfgate-runs=3:3", "benches")
BENCH = "benches/bench_a.py::bench_one"
TWO = """
def bench_one(perfgate):
    assert perfgate(lambda: 1, name="first") == 1
    perfgate(lambda: None, name="second")
"""


def result(project, benchmark):
    return next(r for r in project.report["results"] if r["benchmark"] == benchmark)


def judgement(project, benchmark, metric, statistic="median"):
    return next(
        j
        for j in result(project, benchmark)["judgements"]
        if (j["metric"]["name"], j["statistic"]) == (metric, statistic)
    )


def test_named_measurements_are_judged_each_for_itself(project):
    project.bench(TWO)
    project.adopt("benches")
    project.device({f"{BENCH}::second": {"factor": 1.5}}, salt=1)
    session = project.run("--junitxml=j.xml", *THREE)
    assert session.ret == 1
    assert project.outcomes == {
        f"{BENCH}::first": ("unchanged", "within-budget"),
        f"{BENCH}::second": ("regressed", "confirmed-without-base"),
    }
    session.assert_outcomes(failed=1)  # one test, and its worst decides
    session.stdout.fnmatch_lines(["regressed: latency*", f"  {BENCH}::second"])
    text = (project.path / "j.xml").read_text()
    assert text.count("<testcase") == 1
    assert {'value="unchanged"', 'value="regressed"'} <= set(
        text.replace("/", " ").split()
    )


def test_a_name_that_is_measured_no_more_is_missing(project):
    project.bench(TWO)
    project.adopt("benches")
    project.bench(TWO.replace("second", "other"))
    session = project.run("--perfgate-on-missing=warn", *THREE)
    assert session.ret == 14
    assert project.outcomes[f"{BENCH}::second"] == ("missing", "gone")
    assert project.outcomes[f"{BENCH}::other"] == ("no-baseline", "nothing-stored")
    session.stdout.fnmatch_lines([f"*{BENCH}::second*missing: gone*"])


def test_a_second_measurement_needs_a_name(one):
    one.bench("def bench_one(perfgate):\n    perfgate(int)\n    perfgate(int)\n")
    session = one.run(*THREE)
    assert (session.ret, one.outcomes[BENCH]) == (1, ("error", "body-raised"))
    session.stdout.fnmatch_lines(["*a second measurement needs a name*"])


EVERYTHING = """
import pytest


def bench_one(perfgate):
    perfgate.record("wait", [0.002] * 50, unit="s", better="lower")
    perfgate.record("hits", [7.0], unit="1", better="higher", exact=True)
    for _ in perfgate.iterations():
        with perfgate.stage("load"):
            pass
        with perfgate.stage("forward"):
            pass


@pytest.mark.perfgate(isolate=True)
def bench_alone(perfgate):
    perfgate(lambda: None)


def bench_stream(perfgate):
    perfgate.generation(lambda prompt: iter([1, 2, 3]), ["a", "b"])
"""


def test_stages_records_streams_and_a_process_of_its_own(project):
    project.bench(EVERYTHING)
    project.adopt("benches")
    project.device({BENCH: {"parts": {"stage:forward": 1.5}}}, salt=1)
    session = project.run(
        "--perfgate-budget=stage:forward=5%", "-v", "--perfgate-slowdown=1%", *THREE
    )
    assert session.ret == 1
    assert project.outcomes[BENCH][0] == "regressed"
    forward = judgement(project, BENCH, "stage:forward")
    assert forward["verdict"]["outcome"] == "regressed"
    assert judgement(project, BENCH, "stage:load")["verdict"]["outcome"] == "unchanged"
    assert judgement(project, BENCH, "wait")["comparison"]["ratio"] == 1.0
    metrics = {s.metric.name for m in project.measurements() for s in m.samples}
    assert {"hits", "wait", "stage:load", "ttft", "e2e", "latency"} <= metrics
    session.stdout.fnmatch_lines(
        [f"note: {BENCH}: the slowdown cannot reach what record('wait') was given"]
    )
    workers = {}
    for record in project.records():
        if record["kind"] == "hello":
            pid = record["pid"]
        elif record["kind"] == "open":
            workers.setdefault(pid, []).append(record["nodeid"])
    alone = "benches/bench_a.py::bench_alone"
    assert [opened for opened in workers.values() if alone in opened] == [[alone]] * 3


def test_a_slowdown_reaches_every_call(stored):
    session = stored.run("--perfgate-slowdown=60%", *THREE)
    assert (session.ret, stored.outcomes[BENCH][0]) == (1, "regressed")
    assert 1.5 < judgement(stored, BENCH, "latency")["comparison"]["ratio"] < 1.7
    assert stored.report["policy"]["--perfgate-slowdown"] == "60%"


def test_markers_say_what_is_judged(stored):
    stored.bench(
        "import pytest\n"
        "@pytest.mark.perfgate(metrics=('cpu_time',), budget={'cpu_time': '5%'})\n"
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
    )
    stored.device({"*": {"factor": 1.5}}, salt=1)
    session = stored.run(*THREE)
    assert session.ret == 1
    gated = {
        j["metric"]["name"] for j in result(stored, BENCH)["judgements"] if j["gated"]
    }
    assert gated == {"cpu_time"}
