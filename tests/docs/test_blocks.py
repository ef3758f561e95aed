"""Every command and code block of our pages does what it says.

A page is one project, and its blocks are taken in order. Python is written to
the file that its first line names, and runs; a shell line ends with exit code 0,
or with the one that its comment `# exit N` states. A table in a text block looks
like what the line above it printed. The device is a fake one.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)^```$", re.MULTILINE)
LANGUAGES = {"python", "sh", "toml", "json", "text", "yaml"}
WORKFLOWS = ROOT / "docs" / "workflows"
TABLE = "  benchmark "
EXIT = re.compile(r"\s+# exit (\d+)$")
QUIET = {"seconds": 0.001, "run_sd": 0.002, "iteration_sd": 0.01}
PLUGIN = "pytest_perfgate.plugin"
AS_BENCHMARKS = "pytest -q --perfgate --perfgate-runs=3:3 --perfgate-on-missing=warn"


@dataclass(frozen=True, kw_only=True)
class Block:
    language: str
    text: str
    line: int


def blocks(page):
    text = page.read_text(encoding="utf-8")
    fences = len(re.findall(r"^\s*```", text, re.MULTILINE))
    found = list(FENCE.finditer(text))
    assert fences == 2 * len(found), f"{page.name}: a fence is indented or not closed"
    return [
        Block(language=m[1], text=m[2], line=text.count("\n", 0, m.start()) + 1)
        for m in found
    ]


class Reader:
    """Does what a page says, in a project of its own."""

    def __init__(self, folder, plugins=PLUGIN):
        self.folder = folder
        self.unmeasured = set()
        self.printed = ""
        script = folder / "fake-device.json"
        script.write_text(json.dumps({"benchmarks": {"*": QUIET}}))
        programs = Path(sys.executable).parent
        self.environment = os.environ | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "_PERFGATE_FAKE": str(script),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": plugins,
            "PYTEST_ADDOPTS": "-o perfgate_max_time=0.05",
            "COLUMNS": "80",
            "OMP_NUM_THREADS": "1",
        }
        self.shell("git init --quiet", where="the project")

    def shell(self, line, *, where, expected=0):
        done = subprocess.run(
            ["bash", "-c", line],
            check=False,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == expected, f"{where}: {line}\n{done.stdout}"
        self.printed = done.stdout

    def python(self, block, where):
        first, _, _ = block.text.partition("\n")
        named = re.fullmatch(r"# ([\w/]+\.py)", first)
        assert named, f"{where}: the first line is not `# path/file.py`: {first}"
        path = self.folder / named[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
        if path.name.startswith("bench_"):
            self.unmeasured.add(named[1])
        else:
            self.shell(f"python {named[1]}", where=where)

    def sh(self, block, where):
        lines = [line.strip() for line in block.text.splitlines()]
        for line in filter(None, lines):
            stated = EXIT.search(line)
            command = EXIT.sub("", line)
            if command.startswith("pip install "):
                check_requirements(command, where)
            elif command.startswith("make "):
                check_target(command, where)
            else:
                code = int(stated[1]) if stated else 0
                self.shell(command, where=where, expected=code)
            if command.startswith("pytest --perfgate benches"):
                self.unmeasured.clear()

    def toml(self, block, where):
        tomllib.loads(block.text)
        (self.folder / "pyproject.toml").write_text(block.text)
        for gating in ("", "--perfgate"):
            line = f"pytest {gating} --strict-config --collect-only -q"
            self.shell(f"{line} || test $? = 5", where=where)

    def json(self, block, where):
        json.loads(block.text)

    def yaml(self, block, where):
        """A workflow: one of those that we ship, lint and run, to the letter."""
        shipped = {file.read_text(): file for file in WORKFLOWS.glob("*.yml")}
        assert block.text in shipped, f"{where} is none of docs/workflows"
        schema = "--builtin-schema vendor.github-workflows"
        file = shipped[block.text]
        self.shell(f"check-jsonschema {schema} {shlex.quote(str(file))}", where=where)

    def text(self, block, where):
        if block.text.startswith(TABLE):
            printed = set(map(without_numbers, self.printed.splitlines()))
            for line in block.text.splitlines():
                assert without_numbers(line) in printed, f"{where}:\n{self.printed}"

    def rest(self, page):
        """Measure the benchmarks that no command of the page has measured."""
        if self.unmeasured:
            files = " ".join(sorted(self.unmeasured))
            self.shell(f"{AS_BENCHMARKS} {files}", where=f"{page.name}: at its end")
            self.unmeasured.clear()


def without_numbers(line):
    """Leave out what another machine prints otherwise: numbers, units, widths."""
    return re.sub(r"[-+]?[\d.,]+( [nµm]?s)?|\s", "", line)


def check_requirements(command, where):
    words = shlex.split(command)[2:]
    for word in words:
        if word in {"-e", "--editable", "."}:
            continue
        named = re.fullmatch(r"([\w.-]+)(?:\[([\w,-]+)\])?", word)
        assert named, f"{where}: {word!r} is no requirement that can be checked"
        assert named[1] == PROJECT["name"], where
        extras = set(filter(None, (named[2] or "").split(",")))
        assert extras <= set(PROJECT["optional-dependencies"]), f"{where}: {word}"


def check_target(command, where):
    dry = ["make", "-n", *shlex.split(command)[1:]]
    done = subprocess.run(dry, check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{where}: {command}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_works(page, tmp_path):
    found = blocks(page)
    if any("import torch" in block.text for block in found):
        pytest.importorskip("torch")
    if any("(benchmark" in block.text for block in found):
        pytest.importorskip("pytest_benchmark")
        reader = Reader(tmp_path, f"{PLUGIN},pytest_benchmark.plugin")
    else:
        reader = Reader(tmp_path)
    for block in found:
        where = f"{page.name}:{block.line}"
        assert block.language in LANGUAGES, f"{where}: {block.language!r}"
        getattr(reader, block.language)(block, where)
    reader.rest(page)
