"""Whose code the base's worker imports, by the ways a candidate can be present.

Each case is a real environment that points at the candidate, and real pytest
processes. Whatever the environment does, the candidate is never measured twice:
the base's worker imports the base's code, or its evidence says that it did not.
"""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile

import pytest

from pytest_perfgate.campaign.base_tree import BaseRequest, open_base_tree
from pytest_perfgate.campaign.proof import judge_proof

TEST = """
import json
import os


def test_whose():
    import lib
    import lib.part
    from pytest_perfgate import redirect

    said = {"lib": lib.WHOSE, "part": lib.part.WHOSE, "proof": redirect.proof()}
    with open(os.environ["_SAID"], "w") as file:
        json.dump(said, file)
"""
SETUPTOOLS = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "lib"
version = "1"
[tool.setuptools]
packages = ["lib"]
package-dir = {{"" = "{}"}}
"""
HATCHLING = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "lib"
version = "1"
[tool.hatch.build.targets.wheel]
packages = ["{}"]
"""
FINDER = """
import importlib.util, os, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        place = os.path.join({!r}, *name.split("."))
        for file in (os.path.join(place, "__init__.py"), place + ".py"):
            if name.split(".")[0] == "lib" and os.path.exists(file):
                return importlib.util.spec_from_file_location(name, file)

sys.meta_path.{}Finder())
"""


class Case:
    """A repository, an environment, and workers of both sides."""

    def __init__(self, checkout, environment):
        self.checkout = checkout
        self.root = checkout.path
        self.environment = environment
        self.temporary = environment.parent
        self.below = "."
        self.inifile = None
        self.arguments = ("benches",)
        self.as_module = False
        self.more = ""

    def library(self, whose, folder):
        text = f"{self.more}WHOSE = {whose!r}\n"
        return {f"{folder}/__init__.py": text, f"{folder}/part.py": text}

    def commit_both(self, files, folder="src/lib"):
        """Make a base that says `base`, and a candidate beside it."""
        benches = {f"{self.below}/benches/test_lib.py": TEST}
        self.checkout.write(
            {**benches, **files, **self.library("base", folder)}
        ).commit()
        self.checkout.git("checkout", "-q", "-b", "topic")
        self.checkout.write(self.library("candidate", folder)).commit()

    def build(self, hook, settings=None, folder="."):
        """Install the candidate as its own backend packs it and pip unpacks it."""
        text = (self.root / folder / "pyproject.toml").read_text()
        backend = "hatchling.build" if "hatchling" in text else "setuptools.build_meta"
        code = (
            f"import sys, {backend} as backend;"
            f"print(); print(backend.{hook}(sys.argv[1], {settings!r}))"
        )
        out = self.environment.parent / "wheels"
        out.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", code, out],
            cwd=self.root / folder,
            check=True,
            capture_output=True,
            text=True,
        )
        with zipfile.ZipFile(out / done.stdout.split()[-1]) as wheel:
            wheel.extractall(self.site)
        (info,) = self.site.glob("lib-1.dist-info")
        self.direct_url = info / "direct_url.json"
        editable = {"editable": True} if "editable" in hook else {}
        url = {"url": (self.root / folder).as_uri(), "dir_info": editable}
        self.direct_url.write_text(json.dumps(url))

    @property
    def site(self):
        (site,) = self.environment.glob("lib/python*/site-packages")
        return site

    def finder(self, where, folder="src"):
        """Install a finder of the candidate's, as some backends' editables do."""
        code = FINDER.format(str(self.root / folder), where)
        (self.site / "_finder.py").write_text(code)
        (self.site / "_finder.pth").write_text("import _finder\n")

    def run(self):
        """Run both sides; returns what each said, None where it said nothing."""
        rootdir = (self.root / self.below).resolve()
        request = BaseRequest(
            ref="main",
            rootdir=rootdir,
            start=rootdir,
            inifile=self.inifile and self.root / self.inifile,
            files=(rootdir / "benches/test_lib.py",),
        )
        path = () if self.as_module else ("-P",)
        python = str(self.environment / "bin/python")
        worker = (python, *path, "-m", "pytest", *self.arguments, "-pno:cacheprovider")
        own = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        with open_base_tree(request, temporary=self.temporary) as tree:
            base = (python, *tree.command(worker)[1:])
            self.base = self._start(base, tree.environment(own), tree.start)
            self.candidate = self._start(
                worker, tree.candidate_environment(own), rootdir
            )
            return self._said(self.base), self._said(self.candidate)

    def _start(self, command, environment, folder):
        out = folder / "said.json"
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, "_SAID": str(out), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return process, out

    def _said(self, started):
        process, out = started
        self.output, _ = process.communicate(timeout=100)
        return json.loads(out.read_text()) if out.exists() else None

    def check_base_is_measured(self):
        base, candidate = self.run()
        assert candidate["lib"] == candidate["part"] == "candidate"
        assert base, self.output
        assert base["lib"] == base["part"] == "base"
        proof = judge_proof(base["proof"], candidate["proof"])
        assert proof.measured, proof.why
        assert proof.differences == ()
        assert base["proof"]["library"] == ["lib", "lib.part"]

    def check_refused(self, why):
        """Check that what is not the base's is not taken for it."""
        base, candidate = self.run()
        proof = judge_proof(base and base["proof"], candidate and candidate["proof"])
        assert not proof.measured
        assert why in proof.why
        return base


@pytest.fixture
def case(make_checkout, tmp_path):
    environment = tmp_path / "environment"
    venv.EnvBuilder(with_pip=False, symlinks=True).create(environment)
    made = Case(make_checkout(), environment)
    ours = sysconfig.get_paths()["purelib"]
    # behind what is installed into the new environment
    line = f"import site; site.addsitedir({ours!r})\n"
    (made.site / "zz_ours.pth").write_text(line)
    return made


def test_setuptools_src(case):
    case.commit_both({"pyproject.toml": SETUPTOOLS.format("src")})
    case.build("build_editable")
    case.check_base_is_measured()


def test_setuptools_flat(case):
    case.commit_both({"pyproject.toml": SETUPTOOLS.format(".")}, "lib")
    case.build("build_editable")
    case.check_base_is_measured()


def test_setuptools_strict(case):
    files = {"pyproject.toml": SETUPTOOLS.format("src"), ".gitignore": "build/\n"}
    case.commit_both(files)
    case.build("build_editable", {"editable_mode": "strict"})
    case.check_base_is_measured()


def test_hatchling_path(case):
    case.commit_both({})
    (case.site / "_lib.pth").write_text(f"{case.root / 'src'}\n")
    case.check_base_is_measured()


def test_hatchling_exact(case):
    case.commit_both({})
    case.finder("append(")
    case.check_base_is_measured()


def test_a_finder_before_all_others(case):
    case.commit_both({})
    case.finder("insert(0, ")
    case.check_base_is_measured()


def test_a_finder_for_a_folder_that_no_root_names(case):
    case.commit_both({}, "python/lib")
    case.finder("insert(0, ", "python")
    case.check_base_is_measured()


def test_pythonpath_setting(case):
    case.inifile = "pytest.ini"
    case.commit_both({"pytest.ini": "[pytest]\npythonpath = python\n"}, "python/lib")
    case.check_base_is_measured()


def test_a_conftest_with_a_relative_path(case):
    code = "import sys\nfrom pathlib import Path\n\nhere = Path(__file__).parent\n"
    code += "sys.path.insert(0, str(here.parent / 'python'))\n"
    case.commit_both({"benches/conftest.py": code}, "python/lib")
    case.check_base_is_measured()


def test_a_conftest_with_an_absolute_path(case):
    code = f"import sys\n\nsys.path.insert(0, {str(case.root / 'python')!r})\n"
    case.commit_both({"benches/conftest.py": code}, "python/lib")
    case.check_base_is_measured()


def test_rootdir_in_a_subfolder(case):
    case.below = "packages/lib"
    case.inifile = "packages/lib/pyproject.toml"
    text = SETUPTOOLS.format("src")
    case.commit_both({"packages/lib/pyproject.toml": text}, "packages/lib/src/lib")
    case.build("build_editable", folder="packages/lib")
    case.check_base_is_measured()


@pytest.mark.parametrize(
    "url", [True, False], ids=["from-the-checkout", "from-an-index"]
)
def test_an_ordinary_wheel(case, url):
    """No file of it lies in the candidate's tree."""
    case.commit_both({"pyproject.toml": HATCHLING.format("src/lib")})
    case.build("build_wheel")
    if not url:
        case.direct_url.unlink()
    base, candidate = case.run()
    assert base["lib"] == "base"
    proof = judge_proof(base["proof"], candidate["proof"])
    assert proof.measured
    (difference,) = proof.differences
    assert "imported an installed copy" in difference
    assert difference.endswith(": lib, lib.part")


def test_a_wheel_whose_source_is_not_found(case):
    case.commit_both({"pyproject.toml": HATCHLING.format("python/lib")}, "python/lib")
    case.build("build_wheel")
    base = case.check_refused("imported no code of the repository")
    assert base["lib"] == "candidate"


def test_the_working_directory(case):
    case.as_module = True
    case.commit_both({}, "lib")
    case.check_base_is_measured()


def test_an_environment_inside_the_repository(case):
    """What is installed there is neither the candidate's nor missing in the base."""
    case.more = "import dependency\n"
    case.commit_both({".gitignore": "/.venv/\n"})
    inside = case.root / ".venv"
    case.environment.rename(inside)
    case.environment = inside
    case.site.joinpath("dependency.py").write_text("")
    case.site.joinpath("_lib.pth").write_text(f"{case.root / 'src'}\n")
    case.check_base_is_measured()
