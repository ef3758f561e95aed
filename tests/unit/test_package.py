"""What is shipped: the package and nothing else, typed, under one version."""

import ast
import email
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pytest_perfgate
from pytest_perfgate import cli

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pytest_perfgate"
MODULES = sorted(PACKAGE.rglob("*.py"))
PROGRAMS = sorted((ROOT / "scripts").glob("*.py"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (file,) = folder.glob("*.whl")
    with zipfile.ZipFile(file) as opened:
        yield opened


def metadata(wheel):
    (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(wheel.read(name))


def test_the_wheel_holds_only_the_package(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    version = pytest_perfgate.__version__
    assert tops == {"pytest_perfgate", f"pytest_perfgate-{version}.dist-info"}


def test_the_wheel_holds_the_whole_package(wheel):
    shipped = {n for n in wheel.namelist() if n.startswith("pytest_perfgate/")}
    ours = [p for p in PACKAGE.rglob("*") if p.is_file() and p.suffix != ".pyc"]
    assert shipped == {str(path.relative_to(ROOT)) for path in ours}
    assert "pytest_perfgate/py.typed" in shipped


def test_there_is_one_version(wheel, capsys):
    assert metadata(wheel)["Version"] == pytest_perfgate.__version__
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.split()[-1] == pytest_perfgate.__version__


def test_torch_is_not_required(wheel):
    needed = metadata(wheel).get_all("Requires-Dist")
    always = {spec.split(">=")[0] for spec in needed if "extra ==" not in spec}
    assert always == {
        "jinja2",
        "numpy",
        "nvidia-ml-py",
        "pytest",
        "requests",
        "scipy",
    }


@pytest.mark.parametrize("path", [*MODULES, *PROGRAMS], ids=lambda path: path.stem)
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_bytes()))
