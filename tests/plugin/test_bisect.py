"""`perfgate bisect`: whole searches in histories of their own."""

import json
import os
import signal
import subprocess

import pytest

from tests.plugin import commands

pytestmark = pytest.mark.slow

GIT = ["git", "-c", "user.name=Ann", "-c", "user.email=a@x"]
BENCH = (
    "import mylib\n"
    "def bench_work(perfgate):\n    perfgate(mylib.work)\n"
    "def bench_other(perfgate):\n    perfgate(lambda: None)\n"
)
WORK = "benches/bench_a.py::bench_work"
FEW = ("--", "--perfgate-runs=3:3")
QUIET = {"seconds": 0.001, "run_sd": 0.002, "iteration_sd": 0.01}
DEVICE = {"*bench_work": QUIET | {"factor_from": "mylib:PACE"}, "*": QUIET}


class Library:
    """A repository whose library got slower, and benchmarks only lately.

    The paths by which it is imported are those of an editable install: they lead
    into the user's own checkout.
    """

    def __init__(self, folder, *, commits, culprit, broken=()):
        self.folder = folder
        self.path = folder.path
        self.temporary = commands.temporary(folder)
        folder.device(DEVICE)
        (self.path / ".gitignore").write_text(
            ".gitignore\n__pycache__/\nfake-device.json\n"
        )
        self.git("init", "-q", "-b", "main")
        for number in range(commits + 1):
            pace = 1.3 if number >= culprit else 1.0
            text = f"NUMBER = {number}\nPACE = {pace}\ndef work():\n    return NUMBER\n"
            if number in broken:
                text += "import no_such_module\n"
            folder.bench(text, "src/mylib/__init__.py")
            if number == commits:
                folder.bench(BENCH)
            self.git("add", ".")
            self.git("commit", "-qm", f"Change number {number}")
            self.git("tag", f"v{number}")

    def git(self, *arguments):
        done = subprocess.run(
            [*GIT, *arguments],
            check=True,
            cwd=self.path,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def state(self):
        """All that a user would miss."""
        return (
            self.git("status", "--porcelain", "--ignored"),
            self.git("for-each-ref"),
            self.git("worktree", "list", "--porcelain"),
            self.git("symbolic-ref", "HEAD"),
            sorted(map(str, self.path.rglob("*"))),
        )

    def start(self, *arguments):
        paths = [str(self.path / "src"), *filter(None, [os.getenv("PYTHONPATH")])]
        return commands.start(
            self.folder,
            "bisect",
            *arguments,
            columns=100,
            PYTHONPATH=os.pathsep.join(paths),
        )

    def run(self, *arguments):
        before = self.state()
        process = self.start(*arguments)
        self.output, _ = process.communicate(timeout=600)
        self.code = process.returncode
        assert self.state() == before
        assert list(self.temporary.iterdir()) == []


@pytest.fixture
def make_library(make_spawned):
    def make(name, **history):
        return Library(make_spawned(f"bisect-{name}"), **history)

    return make


def test_a_commit_among_sixteen_is_found(make_library, refused_by):
    library = make_library("sixteen", commits=16, culprit=11)
    (library.path / "src/mylib/__init__.py").write_text("PACE = 'unsaved work'\n")
    answer = library.temporary.parent / "bisect.json"
    library.run("v0", "v16", "--json", str(answer), *FEW)
    assert library.code == 0, library.output
    assert refused_by("bisect", answer.read_text()) == []
    found = json.loads(answer.read_text())
    assert found["found"] == library.git("rev-parse", "v11").strip()
    assert [one["subject"].split()[-1] for one in found["steps"]] == [
        *("16", "8", "12", "10", "11"),
    ]
    assert [one["state"] for one in found["steps"]] == [
        *("bad", "good", "bad", "good", "bad"),
    ]
    assert {one["benchmark"] for one in found["benchmarks"]} == {WORK}
    (effect,) = found["steps"][-1]["effects"]
    assert effect["ratio"] == pytest.approx(1.3, abs=0.01)
    assert effect["low"] < effect["ratio"] < effect["high"]
    short = found["found"][:12]
    assert (
        f"first bad commit: {short} Change number 11 (Ann <a@x>, 20" in library.output
    )
    assert f"  {WORK}: latency·median +30." in library.output
    assert "  its parent: " in library.output


def test_what_cannot_be_told_is_left(make_library):
    library = make_library("broken", commits=4, culprit=3, broken={2, 3})
    library.run("v0", "v4", "benches/bench_a.py::bench_work", *FEW)
    assert library.code == 13, library.output
    assert "the first bad commit is one of these 3" in library.output
    assert "No module named 'no_such_module'" in library.output
    for number in (2, 3, 4):
        assert f"  {library.git('rev-parse', f'v{number}')[:12]} " in library.output


def test_there_is_nothing_to_find_where_nothing_is_slower(make_library):
    library = make_library("same", commits=2, culprit=9)
    library.run("v0", "v2", *FEW)
    assert library.code == 1, library.output
    assert f"{WORK}: " in library.output
    assert "BAD is not slower than GOOD" in library.output


def test_an_interruption_leaves_everything_as_it_was(make_library):
    library = make_library("interrupted", commits=2, culprit=1)
    before = library.state()
    process = library.start("v0", "v2")
    measuring = "perfgate-bisect-*/session/runs/*.records.jsonl"
    commands.wait_for(library.temporary, measuring, process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 2, output
    assert output.endswith("perfgate: interrupted\n")
    assert library.state() == before
    assert list(library.temporary.iterdir()) == []


@pytest.fixture(scope="module")
def small(make_spawned):
    return Library(make_spawned("bisect-usage"), commits=2, culprit=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["v0", "nowhere"], ["'nowhere'"]),
        (["v2", "v0"], ["swap them"]),
        (["v0", "v2", "benches/none.py"], ["benches/none.py"]),
        (["v0", "v2", "--", "--perfgate-against=v1"], ["--perfgate-against", "drop"]),
        (["v0"], ["BAD"]),
    ],
)
def test_wrong_usage_is_4_and_says_why(small, arguments, words):
    small.run(*arguments)
    assert small.code == 4, small.output
    for word in words:
        assert word in small.output
    assert "Traceback" not in small.output


def test_what_cannot_be_set_up_cannot_be_told(small):
    small.run("v0", "v2", "--setup", "echo no compiler; exit 3")
    assert small.code == 12
    assert "--setup='echo no compiler; exit 3' ended with exit code 3: no compiler" in (
        small.output
    )
