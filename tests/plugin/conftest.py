"""Whole sessions in a project of their own: real processes, a fake device."""

import json

import pytest

# loaded once: pytester forgets what a session in this process has imported
import pytest_perfgate.campaign.session  # noqa: F401
from pytest_perfgate.gate.update import Recording, update_baseline
from pytest_perfgate.model import Session
from pytest_perfgate.protocol import RecordReader
from pytest_perfgate.store import (
    BaselineStore,
    benchmark_file_of,
    decode_measurement,
    load_report,
)


class Project:
    """A user's project with benchmarks that take as long as a script says."""

    def __init__(self, pytester, monkeypatch):
        self.pytester = pytester
        self.path = pytester.path
        self._script = self.path / "fake-device.json"
        self.device()
        monkeypatch.setenv("_PERFGATE_FAKE", str(self._script))
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
        # other plugins would triple the start of every worker
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        monkeypatch.setenv("PYTEST_PLUGINS", "pytest_perfgate.plugin")
        pytester.makeini("[pytest]\nfilterwarnings = error\nperfgate_max_time = 0.05\n")

    def device(self, benchmarks=None, *, salt=0, **fields):
        """Say what benchmarks take: by pattern, see the fake device."""
        quiet = {"seconds": 0.001, "run_sd": 0.002, "iteration_sd": 0.01}
        table = {k: quiet | v for k, v in (benchmarks or {}).items()}
        table.setdefault("*", quiet)  # the first pattern that fits governs
        script = {"salt": salt, "benchmarks": table, **fields}
        self._script.write_text(json.dumps(script))

    def bench(self, source, name="benches/bench_a.py"):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return path

    def run(self, *arguments):
        """Run pytest --perfgate; the manager in this process, workers in their own."""
        return self.pytester.runpytest_inprocess("--perfgate", *arguments)

    def spawn(self, *arguments):
        """Run pytest --perfgate in a process of its own."""
        return self.pytester.runpytest_subprocess("--perfgate", *arguments)

    def record(self, *arguments):
        result = self.run("--perfgate-update", *arguments)
        assert result.ret == 0, result.stdout.str()
        return result

    def adopt(self, *arguments):
        """Make baselines of three runs; a real update makes ten."""
        arguments = ("--perfgate-runs=3:3", "--perfgate-on-missing=warn", *arguments)
        result = self.run(*(arguments or ("benches",)))
        store = BaselineStore(self.path / "baselines")
        report = load_report(self.path / ".perfgate" / "last")
        for benchmark in report.results:
            if benchmark.runs and benchmark.plan:
                self._store(store, report, benchmark)
        return result

    def _store(self, store, report, result):
        session = Session(
            time="2026-01-01T00:00:00Z",
            commit=None,
            environment_digest="adopted",
            runs=result.runs,
        )
        metrics = {
            series.metric.name: series.metric
            for measurement in self.measurements()
            if measurement.benchmark == result.benchmark
            for series in measurement.samples
        }
        recording = Recording(plan=result.plan, metrics=metrics, session=session)
        baseline = update_baseline(None, recording).baseline
        store.merge(
            "fake",
            benchmark_file_of(result.benchmark),
            {result.benchmark: baseline},
            environment=report.environment,
        )

    def measurements(self):
        """What the workers of the last session measured."""
        runs = self.path / ".perfgate" / "last" / "runs"
        for file in sorted(runs.glob("*.records.jsonl")):
            for record in RecordReader(file).read():
                if record["kind"] == "measured":
                    yield decode_measurement(record["measurement"])

    @property
    def report(self):
        path = self.path / ".perfgate" / "last" / "report.json"
        return json.loads(path.read_text())

    @property
    def outcomes(self):
        """By benchmark: outcome and reason."""
        return {
            result["benchmark"]: (
                result["verdict"]["outcome"],
                result["verdict"]["reason"],
            )
            for result in self.report["results"]
        }

    def baseline(self, name="benches/bench_a.py"):
        return self.path / "baselines" / "fake" / f"{name}.json"


@pytest.fixture
def project(pytester, monkeypatch):
    return Project(pytester, monkeypatch)


ONE = "def bench_one(perfgate):\n    perfgate(lambda: None)\n"


@pytest.fixture
def one(project):
    """A project with one benchmark."""
    project.bench(ONE)
    return project
