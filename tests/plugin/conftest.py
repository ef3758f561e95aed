"""Whole sessions in a project of their own: real processes, a fake device."""

import json

import pytest

# loaded once: pytester forgets what a session in this process has imported
import pytest_perfgate.campaign.session  # noqa: F401


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
        pytester.makeini("[pytest]\nfilterwarnings = error\nperfgate_max_time = 0.05\n")

    def device(self, benchmarks=None, *, salt=0, **fields):
        """Say what benchmarks take: by pattern, see the fake device."""
        quiet = {"seconds": 0.001, "run_sd": 0.002, "iteration_sd": 0.01}
        table = {k: quiet | v for k, v in (benchmarks or {}).items()}
        script = {"salt": salt, "benchmarks": table | {"*": quiet}, **fields}
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
