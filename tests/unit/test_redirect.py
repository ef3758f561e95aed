"""Imports that a base worker would make from the candidate, and what it finds instead.

Each in a process of its own: an import machinery is turned over only once.
"""

import json
import subprocess
import sys

import pytest

from pytest_perfgate import redirect
from pytest_perfgate.trees import OWN, Tree, Trees, within

PRELUDE = """
import json, os, sys
from pytest_perfgate import redirect
from pytest_perfgate.trees import Trees

{early}
redirect.install(Trees.read(sys.argv[1]), as_module={as_module})
said = {{}}
{code}
said["evidence"] = redirect.evidence(Trees.read(sys.argv[1]))
print(json.dumps(said))
"""


class Pair:
    """Two trees that differ in what their modules say."""

    def __init__(self, path):
        self.path = path
        self.candidate = path / "project"
        self.base = path / "private" / "project"
        for tree in (self.candidate, self.base):
            tree.mkdir(parents=True)
        self.overlaid = ()

    def write(self, *names, side=("candidate", "base")):
        for one in (side,) if isinstance(side, str) else side:
            for name in names:
                path = getattr(self, one) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"WHOSE = {one!r}\n")
        return self

    def install(self, side, *, editable=False):
        """Install a tree's `lib` as pip does; returns where."""
        site = self.path / "site"
        info = site / "lib-1.dist-info"
        info.mkdir(parents=True)
        text = "Metadata-Version: 2.1\nName: lib\nVersion: 1\n"
        (info / "METADATA").write_text(text)
        (info / "RECORD").write_text("lib.py,,\nlib-1.dist-info/METADATA,,\n")
        url = {"url": getattr(self, side).as_uri(), "dir_info": {"editable": editable}}
        (info / "direct_url.json").write_text(json.dumps(url))
        (site / "lib.py").write_text("WHOSE = 'installed'\n")
        return site

    def run(self, code, *, early="", as_module=False, side="base", **environment):
        trees = Trees(
            side=side,
            candidate=str(self.candidate),
            base=str(self.base),
            start=str(self.base),
            roots=("src", "."),
            overlaid=self.overlaid,
        )
        manifest = self.path / "manifest.json"
        trees.write(str(manifest))
        program = PRELUDE.format(
            code=code, as_module=as_module, early=self._filled(early)
        )
        done = subprocess.run(
            [sys.executable, "-P", "-c", self._filled(program), manifest],
            cwd=self.base,
            env={"PATH": "/usr/bin:/bin", **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _filled(self, text):
        return text.replace("CANDIDATE", str(self.candidate))


@pytest.fixture
def pair(tmp_path):
    return Pair(tmp_path)


ON_PATH = "sys.path.insert(0, 'CANDIDATE/python')"
FINDER = """
from importlib.util import spec_from_file_location

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in FILES:
            file = os.path.join("CANDIDATE", FILES[name])
            package = [os.path.dirname(file)] if file.endswith("__init__.py") else None
            return spec_from_file_location(name, file, submodule_search_locations=package)

sys.meta_path.insert(0, Finder())
"""


def finder(files):
    return f"FILES = {files!r}\n{FINDER}"


def test_a_module_that_only_the_candidate_has(pair):
    pair.write("python/lib/__init__.py")
    pair.write("python/lib/new.py", side="candidate")
    code = """
import lib
try:
    import lib.new
except ModuleNotFoundError as error:
    said["error"], said["name"] = str(error), error.name
"""
    files = {"lib": "python/lib/__init__.py", "lib.new": "python/lib/new.py"}
    said = pair.run(code, early=finder(files))
    assert said["name"] == "lib.new"
    assert said["error"] == (
        "No module named 'lib.new' in the base tree: python/lib/new.py exists only in "
        "the candidate"
    )
    assert said["evidence"]["foreign"] == []
    assert said["evidence"]["library"] == ["lib"]


def test_a_compiled_module_that_only_the_candidate_has(pair):
    suffix = ".abi3.so"
    pair.write("python/lib/__init__.py").write(f"lib/_core{suffix}", side="candidate")
    code = """
try:
    import lib._core
except ModuleNotFoundError as error:
    said["error"] = str(error)
"""
    files = {"lib": "python/lib/__init__.py", "lib._core": f"lib/_core{suffix}"}
    said = pair.run(code, early=finder(files))
    assert said["error"].endswith("build the base tree's with --perfgate-base-setup")


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("python/lib/part.py", "python/lib/part/__init__.py"),
        ("python/lib/part/__init__.py", "python/lib/part.py"),
    ],
)
def test_a_module_that_became_a_package(pair, here, there):
    pair.write("python/lib/__init__.py")
    pair.write(here, side="candidate").write(there, side="base")
    files = {"lib": "python/lib/__init__.py", "lib.part": here}
    said = pair.run(
        "import lib.part\nsaid['part'] = lib.part.WHOSE", early=finder(files)
    )
    assert said["part"] == "base"


def test_a_library_that_moved(pair):
    pair.write("src/lib/__init__.py", side="candidate").write(
        "lib/__init__.py", side="base"
    )
    files = {"lib": "src/lib/__init__.py"}
    said = pair.run("import lib\nsaid['lib'] = lib.WHOSE", early=finder(files))
    assert said["lib"] == "base"


def test_a_namespace_package(pair):
    pair.write("python/space/lib/__init__.py")
    code = """
import space.lib
said["lib"], said["path"] = space.lib.WHOSE, list(space.__path__)
"""
    said = pair.run(code, early=ON_PATH)
    assert said["lib"] == "base"
    assert said["path"] == [str(pair.base / "python/space")]
    assert said["evidence"]["foreign"] == []
    assert said["evidence"]["library"] == ["space.lib"]


NAMESPACE = """
from importlib.machinery import ModuleSpec

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "space":
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = ["CANDIDATE/python/space"]
            return spec

sys.meta_path.insert(0, Finder())
"""


def test_a_namespace_from_a_finder(pair):
    pair.write("python/space/lib.py")
    said = pair.run("import space.lib\nsaid['lib'] = space.lib.WHOSE", early=NAMESPACE)
    assert said["lib"] == "base"


def test_a_namespace_that_only_the_candidate_has(pair):
    pair.write("python/space/lib.py", side="candidate")
    code = """
try:
    import space
except ModuleNotFoundError as error:
    said["error"] = str(error)
"""
    said = pair.run(code, early=NAMESPACE)
    assert "python/space exists only in the candidate" in said["error"]


def test_a_folder_that_only_the_candidate_has_is_not_looked_into(pair):
    pair.write("python/lib.py", side="candidate")
    code = """
try:
    import lib
except ModuleNotFoundError as error:
    said["error"] = str(error)
"""
    said = pair.run(f"{ON_PATH}\n{code}")
    assert said["error"] == "No module named 'lib'"


def test_a_path_added_later(pair):
    pair.write("python/lib.py")
    said = pair.run(f"{ON_PATH}\nimport lib\nsaid['lib'] = lib.WHOSE")
    assert said["lib"] == "base"


def test_children_that_take_over_the_path_find_the_base(pair):
    """As those of multiprocessing do, which know nothing of finders."""
    pair.write("python/lib.py")
    said = pair.run("said['path'] = sys.path", early=ON_PATH)
    assert said["path"][0] == str(pair.base / "python")


def test_the_standard_library_goes_before_the_roots(pair):
    pair.write("statistics.py", "lib.py", side="base")
    code = """
import lib, statistics
said["statistics"], said["lib"] = hasattr(statistics, "WHOSE"), lib.WHOSE
said["handed on"] = os.environ["PYTHONPATH"]
"""
    said = pair.run(code)
    assert said["statistics"] is False
    assert said["lib"] == "base"
    # a child has nothing but this variable, which goes before the standard library
    assert said["handed on"] == ""


def test_what_children_inherit(pair):
    pair.write("src/lib.py", "deep/other.py")
    code = """
import subprocess
said["child"] = subprocess.check_output([sys.executable, "-c", "import lib, other; print(lib.WHOSE, other.WHOSE)"], text=True)
"""
    said = pair.run(code, PYTHONPATH=f"{pair.candidate}/deep")
    assert said["child"].split() == ["base", "base"]


def test_the_working_directory_goes_first(pair):
    pair.write("statistics.py")
    said = pair.run("import statistics\nsaid['it'] = statistics.WHOSE", as_module=True)
    assert said["it"] == "base"


def test_what_was_imported_before_is_said_to_be_the_candidates(pair):
    pair.write("python/lib/__init__.py")
    said = pair.run("import lib", early=f"{ON_PATH}\nimport lib")
    assert said["evidence"]["foreign"] == [["lib", "python/lib/__init__.py"]]
    assert said["evidence"]["library"] == []


def test_what_was_loaded_by_its_path_is_said_to_be_the_candidates(pair):
    pair.write("python/lib.py")
    code = """
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("mine", "CANDIDATE/python/lib.py")
sys.modules["mine"] = module_from_spec(spec)
"""
    assert pair.run(code)["evidence"]["foreign"] == [["mine", "python/lib.py"]]


def test_a_mapped_library_is_said_to_be_the_candidates(pair):
    code = """
import mmap
held = []
for name, access in (("core.so", mmap.PROT_READ | mmap.PROT_EXEC), ("data.bin", mmap.PROT_READ)):
    path = os.path.join("CANDIDATE", name)
    with open(path, "wb") as file:
        file.write(b"x" * 4096)
    with open(path, "rb") as file:
        held.append(mmap.mmap(file.fileno(), 0, prot=access, flags=mmap.MAP_PRIVATE))
"""
    if sys.platform != "linux":
        pytest.skip("only Linux says what is mapped")
    assert pair.run(code)["evidence"]["mapped"] == ["core.so"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 7, "dir_info": null}'])
def test_a_damaged_note_of_an_installer_says_nothing(pair, text):
    site = pair.install("base")
    (site / "lib-1.dist-info/direct_url.json").write_text(text)
    pair.write("src/lib.py")
    said = pair.run("import lib\nsaid['lib'] = lib.WHOSE", PYTHONPATH=str(site))
    assert said["lib"] == "base"


@pytest.mark.parametrize("built", ["build/_core.py", "../site/_core.py"])
def test_what_a_setup_built_in_place_is_taken(pair, built):
    """The candidate's is in a folder for builds, or in the environment."""
    pair.write("python/lib/__init__.py").write(built, side="candidate")
    pair.write("python/lib/_core.py", side="base")
    files = {"lib": "python/lib/__init__.py", "lib._core": built}
    code = "import lib._core\nsaid['core'] = lib._core.WHOSE"
    said = pair.run(code, early=finder(files))
    assert said["core"] == "base"
    assert said["evidence"]["installed"] == []


def test_what_a_backend_put_into_the_environment_is_not_the_bases(pair):
    pair.write("python/lib/__init__.py").write("../site/_core.py", side="candidate")
    files = {"lib": "python/lib/__init__.py", "lib._core": "../site/_core.py"}
    evidence = pair.run("import lib._core", early=finder(files))["evidence"]
    assert evidence["library"] == ["lib"]
    assert evidence["installed"] == ["lib._core"]


def test_the_loader_of_an_editable_install_is_no_library(pair):
    site = pair.install("candidate", editable=True)
    pair.write("python/other.py")
    code = "import lib, other"
    early = f"{ON_PATH}\nsys.path.append({str(site)!r})"
    evidence = pair.run(code, early=early, side="candidate")["evidence"]
    assert evidence["installed"] == []


def test_a_compiled_part_beside_the_trees_is_no_part_of_the_base(pair, tmp_path):
    """As a backend builds it for an editable install, outside the checkout."""
    pair.write("python/lib/__init__.py")
    outside = tmp_path / "build"
    outside.mkdir()
    (outside / "_core.py").write_text("")
    code = f"""
import lib
lib.__path__.append({str(outside)!r})
import lib._core
"""
    evidence = pair.run(code, early=ON_PATH)["evidence"]
    assert evidence["library"] == ["lib"]
    assert evidence["installed"] == ["lib._core"]


@pytest.mark.parametrize(
    ("side", "kind"), [("base", "library"), ("candidate", "installed")]
)
def test_what_was_built_from_the_base_is_the_bases(pair, side, kind):
    """An install of the candidate may be older than the candidate."""
    site = pair.install(side)
    pair.write("python/lib.py")
    code = "import lib\nsaid['lib'] = lib.WHOSE"
    said = pair.run(code, side=side, PYTHONPATH=str(site))
    assert said["lib"] == "installed"
    assert said["evidence"][kind] == ["lib"]


def test_a_base_that_is_installed_is_imported_as_it_was_built(pair):
    """Its source tree may lack what was compiled."""
    site = pair.install("base")
    pair.write("src/lib.py")
    code = "import lib\nsaid['lib'] = lib.WHOSE"
    early = f"sys.path.append({str(site)!r})"
    assert pair.run(code, early=early)["lib"] == "installed"


def test_what_is_laid_over_is_no_library(pair):
    pair.overlaid = ("benches/", "conftest.py")
    pair.write("benches/models.py", "conftest.py", "benches_of_mine.py")
    code = """
sys.path.insert(0, "CANDIDATE/benches")
sys.path.insert(0, "CANDIDATE")
import models, conftest, benches_of_mine
"""
    assert pair.run(code)["evidence"]["library"] == ["benches_of_mine"]


def test_the_candidates_own_worker_says_what_it_imported(pair):
    pair.write("python/lib/__init__.py")
    manifest = pair.path / "m.json"
    fields = {"start": "", "base": str(pair.base), "candidate": str(pair.candidate)}
    Trees(side="candidate", roots=(".",), overlaid=(), **fields).write(str(manifest))
    code = (
        f"import sys; sys.path.insert(0, {str(pair.candidate / 'python')!r}); import lib;"
        "from pytest_perfgate import redirect; import json;"
        "print(json.dumps(redirect.proof()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={redirect.VARIABLE: str(manifest)},
        capture_output=True,
        text=True,
        check=True,
    )
    evidence = json.loads(done.stdout)
    assert evidence["library"] == ["lib"]
    assert evidence["foreign"] == []


def test_a_base_where_the_candidate_was_installed_is_seen(pair):
    pair.write("python/lib/__init__.py")
    code = f"sys.path.insert(0, {str(pair.base / 'python')!r})\nimport lib"
    evidence = pair.run(code, side="candidate")["evidence"]
    assert evidence["foreign"] == [["lib", "python/lib/__init__.py"]]
    assert evidence["library"] == []


def test_outside_a_pair_there_is_nothing_to_prove(monkeypatch):
    monkeypatch.delenv(redirect.VARIABLE, raising=False)
    assert redirect.proof() is None


# -- what belongs to a tree


def test_an_environment_and_this_package_are_no_part_of_a_tree(tmp_path, monkeypatch):
    environment = tmp_path / ".venv"
    site = environment / "lib/site-packages"
    site.mkdir(parents=True)
    deps = tmp_path / "__pypackages__"
    (deps / "thing-1.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(environment))
    monkeypatch.syspath_prepend(str(deps))
    tree = Tree(str(tmp_path))
    assert tree.relative(str(site / "torch/__init__.py")) is None
    assert tree.relative(str(deps / "thing.py")) is None
    assert tree.relative(str(tmp_path / "src/lib.py")) == "src/lib.py"
    assert Tree(str(OWN)).relative(f"{OWN}/units.py") is not None


def test_this_package_is_no_part_of_its_own_checkout():
    checkout = OWN.rpartition("/")[0]
    assert Tree(checkout).relative(f"{OWN}/units.py") is None


def test_an_environment_around_a_tree_takes_nothing_out(tmp_path, monkeypatch):
    """As /usr is around /usr/src."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "src/app"))
    tree = Tree(str(tmp_path / "src/app"))
    assert tree.relative(str(tmp_path / "src/app/lib.py")) == "lib.py"


def test_links_are_followed(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/lib.py").write_text("")
    (tmp_path / "link.py").symlink_to(tmp_path / "tree/lib.py")
    (tmp_path / "folder").symlink_to(tmp_path / "tree")
    tree = Tree(str(tmp_path / "tree"))
    assert tree.relative(str(tmp_path / "link.py")) == "lib.py"
    assert tree.relative(str(tmp_path / "folder/lib.py")) == "lib.py"


def test_within_means_below_and_not_beside():
    assert within("/a/b", "/a")
    assert within("/a", "/a")
    assert within("/a", "/")
    assert not within("/ab", "/a")
