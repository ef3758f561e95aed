"""Whole sessions in a project of their own: real processes, a fake device."""

import json
import os
import subprocess
import sys

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

INI = "[pytest]\nfilterwarnings = error\nperfgate_max_time = 0.05\n"


class Folder:
    """A user's project with benchmarks that take as long as a script says."""

    plugins = "pytest_perfgate.plugin"

    def __init__(self, path, adopted):
        self.path = path
        self._adopted = adopted
        self.script = path / "fake-device.json"
        self.device()

    @property
    def environment(self):
        return {
            "_PERFGATE_FAKE": str(self.script),
            "PYTHONDONTWRITEBYTECODE": "1",
            # other plugins would triple the start of every worker
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": self.plugins,
            "PYTEST_ADDOPTS": "",
        }

    def device(self, benchmarks=None, *, salt=0, **fields):
        """Say what benchmarks take: by pattern, see the fake device."""
        quiet = {"seconds": 0.001, "run_sd": 0.002, "iteration_sd": 0.01}
        table = {k: quiet | v for k, v in (benchmarks or {}).items()}
        table.setdefault("*", quiet)  # the first pattern that fits governs
        script = {"salt": salt, "benchmarks": table, **fields}
        self.script.write_text(json.dumps(script))

    def bench(self, source, name="benches/bench_a.py"):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return path

    def start(self, *arguments, **given):
        """Start pytest --perfgate in a process of its own."""
        command = [sys.executable, "-m", "pytest", "--perfgate", *arguments]
        environment = {**os.environ, **self.environment}
        given = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} | given
        return subprocess.Popen(
            command, cwd=self.path, env=environment, text=True, **given
        )

    def adopt(self, *arguments):
        """Make baselines of three runs; a real update makes ten.

        The same benchmarks on the same device are measured once: a fake device
        gives the same numbers again.
        """
        known = self._adopted.setdefault(self._content(arguments), {})
        if not known:
            self._measure_baselines(arguments)
            known.update(self.texts("baselines"))
        for name, text in known.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(text)

    def texts(self, folder):
        """By path: what stands in the JSON files of a folder."""
        return {
            str(path.relative_to(self.path)): path.read_text()
            for path in sorted((self.path / folder).rglob("*.json"))
        }

    def _content(self, arguments):
        sources = [p.read_text() for p in sorted(self.path.rglob("*.py"))]
        return (arguments, self.script.read_text(), *sources)

    def _measure_baselines(self, arguments):
        self.run("--perfgate-runs=3:3", "--perfgate-on-missing=warn", *arguments)
        store = BaselineStore(self.path / "baselines")
        report = load_report(self.path / ".perfgate" / "last")
        for benchmark in report.results:
            if benchmark.runs and benchmark.plan:
                self._store(store, report, benchmark)

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
        recording = Recording(
            plan=result.plan,
            metrics=metrics,
            session=session,
            profile=result.profile,
        )
        baseline = update_baseline(None, recording).baseline
        store.merge(
            "fake",
            benchmark_file_of(result.benchmark),
            {result.benchmark: baseline},
            environment=report.environment,
        )

    def records(self):
        """Everything the workers of the last session said."""
        runs = self.path / ".perfgate" / "last" / "runs"
        for file in sorted(runs.glob("*.records.jsonl")):
            yield from RecordReader(file).read()

    def measurements(self):
        """What the workers of the last session measured."""
        for record in self.records():
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


class Project(Folder):
    """One whose manager runs in this process: quicker by half a second."""

    def __init__(self, pytester, monkeypatch, adopted):
        super().__init__(pytester.path, adopted)
        self.pytester = pytester
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)
        pytester.makeini(INI)

    def run(self, *arguments):
        """Run pytest --perfgate; the manager in this process, workers in their own."""
        return self.pytester.runpytest_inprocess("--perfgate", *arguments)

    def plain(self, *arguments):
        """Run pytest without the gate, in a process of its own."""
        return self.pytester.runpytest_subprocess(*arguments)

    def record(self, *arguments):
        result = self.run("--perfgate-update", *arguments)
        assert result.ret == 0, result.stdout.str()
        return result


class Spawned(Folder):
    """One whose manager is a process of its own, for tests that share a session."""

    def __init__(self, path, adopted):
        super().__init__(path, adopted)
        (path / "tox.ini").write_text(INI)

    def run(self, *arguments):
        process = self.start(*arguments)
        self.output, _ = process.communicate(timeout=300)
        self.code = process.returncode


@pytest.fixture(scope="session")
def adopted():
    """Baselines that were measured already, by what was measured."""
    return {}


@pytest.fixture
def project(pytester, monkeypatch, adopted):
    return Project(pytester, monkeypatch, adopted)


@pytest.fixture(scope="session")
def make_spawned(tmp_path_factory, adopted):
    """Make projects that outlive a test."""
    return lambda name: Spawned(tmp_path_factory.mktemp(name), adopted)


ONE = "def bench_one(perfgate):\n    perfgate(lambda: None)\n"


@pytest.fixture
def one(project):
    """A project with one benchmark."""
    project.bench(ONE)
    return project


@pytest.fixture
def stored(one):
    """Its baseline stored, and another day's numbers to come."""
    one.adopt("benches")
    assert one.baseline().exists()
    one.device(salt=1)
    return one
