"""What is stored for the benchmarks of this session, read once."""

from collections.abc import Iterable, Iterator, Mapping

from pytest_perfgate.campaign.selection import file_of
from pytest_perfgate.errors import BaselineError
from pytest_perfgate.measured import Plan
from pytest_perfgate.model import Baseline, BaselineFile, Environment
from pytest_perfgate.store import BaselineStore


class Shelf:
    """The baselines of one kind of hardware, for some benchmark files.

    A file that cannot be read is kept as its error: its benchmarks are not
    judged, and everything else goes on.
    """

    def __init__(self, store: BaselineStore, key: str, files: Iterable[str]) -> None:
        self.store = store
        self.key = key
        self._files: dict[str, BaselineFile | None] = {}
        self._problems: dict[str, BaselineError] = {}
        for name in dict.fromkeys(files):
            try:
                self._files[name] = store.load(key, name)
            except BaselineError as error:
                self._problems[name] = error
        self._items = {
            name: _by_item(file.benchmarks) if file else {}
            for name, file in self._files.items()
        }

    def problem(self, nodeid: str) -> BaselineError | None:
        return self._problems.get(file_of(nodeid))

    def baseline(self, benchmark: str) -> Baseline | None:
        return self._benchmarks(benchmark).get(benchmark)

    def environment(self, benchmark: str) -> Environment | None:
        """Return the environment in which a benchmark was recorded."""
        baseline, file = self.baseline(benchmark), self._files.get(file_of(benchmark))
        own = baseline.environment if baseline else None
        return own or (file.environment if file else None)

    def of_item(self, nodeid: str) -> Mapping[str, Baseline]:
        """Return an item's stored benchmarks: its own, and the named ones under it."""
        return self._items.get(file_of(nodeid), {}).get(nodeid, {})

    def plans(self, nodeid: str) -> Mapping[str, Plan]:
        return {b: baseline.plan for b, baseline in self.of_item(nodeid).items()}

    def stored(self, file: str) -> tuple[str, ...]:
        """Return the ids stored for a benchmark file."""
        stored = self._files.get(file)
        return tuple(stored.benchmarks) if stored else ()

    def elsewhere(self) -> tuple[str, ...]:
        """Return the kinds of hardware that have baselines, other than this one."""
        return tuple(key for key in self.store.keys() if key != self.key)  # noqa: SIM118 (a method of ours, no dict)

    def _benchmarks(self, benchmark: str) -> Mapping[str, Baseline]:
        file = self._files.get(file_of(benchmark))
        return file.benchmarks if file else {}


def _by_item(benchmarks: Mapping[str, Baseline]) -> Mapping[str, dict[str, Baseline]]:
    found: dict[str, dict[str, Baseline]] = {}
    for benchmark, baseline in benchmarks.items():
        for item in items_of(benchmark):
            found.setdefault(item, {})[benchmark] = baseline
    return found


def items_of(benchmark: str) -> Iterator[str]:
    """Yield the node ids whose benchmark this is: its own, or what it is named under."""
    yield benchmark
    while "::" in benchmark:
        benchmark = benchmark.rpartition("::")[0]
        yield benchmark
