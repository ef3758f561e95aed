"""What of the candidate is laid over the base, and what must not be."""

import os

import pytest

from pytest_perfgate.campaign import overlay
from pytest_perfgate.campaign.overlay import Overlay, Project, lay_over, named, plan
from pytest_perfgate.errors import UsageError, WorktreeFailed


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    return root


def write(root, *names, text="candidate"):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def planned(root, *files, rootdir=".", inifile="pytest.ini", extra=()):
    write(root, *(name for name in files if not (root / name).exists()))
    return plan(
        Project(
            root=root,
            rootdir=(root / rootdir).resolve(),
            inifile=inifile and root / inifile,
            files=tuple(root / name for name in files),
            extra=extra,
        )
    )


@pytest.mark.parametrize(
    ("file", "folder"),
    [
        ("benches/bench_a.py", "benches"),
        ("benchmarks/gpu/bench_a.py", "benchmarks"),
        ("tests/perf/test_a.py", "tests"),
        ("my_benchmarks/bench_a.py", "my_benchmarks"),
        ("perf-tests/bench_a.py", "perf-tests"),
        ("lib/benchmarks/bench_a.py", "lib/benchmarks"),
        ("src/torch_bench/benchmarks/bench_a.py", "src/torch_bench/benchmarks"),
        # library code, whatever its name
        ("src/torch_bench/bench_a.py", None),
        ("src/lib/testing/bench_a.py", None),
        ("perfect/bench_a.py", None),
        ("scripts/bench_a.py", None),
        ("bench_a.py", None),
    ],
)
def test_the_folder_that_goes_with_a_benchmark(root, file, folder):
    made = planned(root, file)
    assert made.folders == ((folder,) if folder else ())
    assert made.lonely == (() if folder else (file,))
    assert (file in made.files) == (folder is None)


@pytest.mark.parametrize("name", ["torch-bench", "Torch.Bench"])
def test_the_package_itself_may_be_called_bench(root, name):
    (root / "pyproject.toml").write_text(f"[project]\nname = {name!r}\n")
    assert planned(root, "torch_bench/bench_a.py").folders == ()
    made = planned(root, "torch_bench/tests/bench_a.py")
    assert made.folders == ("torch_bench/tests",)


def test_a_rootdir_below_the_repository(root):
    """A folder above the rootdir says nothing, a rootdir of benchmarks does."""
    made = planned(root, "perf/lib/bench_a.py", rootdir="perf/lib")
    assert made.folders == ()
    made = planned(root, "perf/bench_a.py", "perf/gpu/bench_b.py", rootdir="perf")
    assert made.folders == ("perf",)
    write(root, "perf/setup.py")
    assert planned(root, "perf/bench_a.py", rootdir="perf").folders == ()


def test_conftests_on_the_way_and_the_settings(root):
    made = planned(root, "pkg/lib/bench_a.py", rootdir="pkg", inifile="pkg/my.toml")
    assert made.files == (
        "pkg/conftest.py",
        "pkg/lib/bench_a.py",
        "pkg/lib/conftest.py",
        "pkg/my.toml",
    )


def test_without_settings_the_base_has_none_either(root):
    made = planned(root, "benches/bench_a.py", inifile=None)
    assert {"pytest.ini", "tox.ini", "pyproject.toml"} < set(made.files)


def test_settings_outside_the_repository_are_no_part_of_it(root, tmp_path):
    made = planned(root, "benches/bench_a.py", inifile=tmp_path / "elsewhere.ini")
    assert made.files == ("conftest.py",)


def test_what_the_user_names(root):
    write(root, "data/x.bin", "src/lib/helpers.py")
    extra = ("data", "src/lib/helpers.py", str(root / "data"))
    made = planned(root, "benches/bench_a.py", extra=extra)
    assert made.folders == ("benches", "data")
    assert "src/lib/helpers.py" in made.files


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nosuch", "nosuch does not exist"),
        ("..", "is not below"),
        ("../project", "is not below"),
        ("../other/..", "is not below"),
        (".", "is not below"),
    ],
)
def test_what_the_user_cannot_name(root, name, why):
    (root.parent / "other").mkdir()
    with pytest.raises(UsageError, match=rf"--perfgate-overlay='{name}'.*{why}"):
        planned(root, "benches/bench_a.py", extra=(name,))


def test_files_outside_the_repository_are_left_where_they_are(root, tmp_path):
    write(tmp_path, "other/bench_b.py")
    made = planned(root, "../other/bench_b.py", "benches/bench_a.py")
    assert made.folders == ("benches",)
    assert made.lonely == ()


# -- laying it over


@pytest.fixture
def tree(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    return tree


def lay(root, tree, *, folders=(), files=()):
    return lay_over(Overlay(folders=folders, files=files), candidate=root, tree=tree)


def test_a_folder_is_the_candidates_and_nothing_else(root, tree):
    write(root, "benches/bench_a.py", "benches/models.py", "benches/data/x.json")
    write(root, "benches/__pycache__/a.pyc", "benches/.venv/pyvenv.cfg")
    write(tree, "benches/bench_a.py", "benches/bench_old.py", text="base")
    laid = lay(root, tree, folders=("benches",))
    there = {str(p.relative_to(tree)) for p in tree.rglob("*") if p.is_file()}
    assert there == {"benches/bench_a.py", "benches/models.py", "benches/data/x.json"}
    assert (tree / "benches/bench_a.py").read_text() == "candidate"
    assert laid.entries == ("benches/",)


def test_what_the_candidate_lacks_is_removed(root, tree):
    write(tree, "conftest.py", "pytest.ini", text="base")
    write(root, "tox.ini")
    laid = lay(root, tree, files=("conftest.py", "pytest.ini", "setup.cfg", "tox.ini"))
    assert [path.name for path in tree.iterdir()] == ["tox.ini"]
    assert laid.entries == ("conftest.py", "pytest.ini", "tox.ini")


def test_links_lead_into_the_same_tree(root, tree):
    write(root, "lib/x.py", "benches/bench_a.py")
    (root / "benches/near").symlink_to("../lib/x.py")
    (root / "benches/far").symlink_to(root / "lib/x.py")
    (root / "benches/folder").symlink_to(root / "lib", target_is_directory=True)
    write(tree, "lib/x.py", text="base")
    lay(root, tree, folders=("benches",))
    for name in ("near", "far", "folder/x.py"):
        assert (tree / "benches" / name).read_text() == "base"


def test_large_files_are_linked_to_and_named(root, tree):
    write(root, "benches/bench_a.py")
    with (root / "benches/weights.bin").open("wb") as file:
        file.truncate(33 * 1024**2)
    laid = lay(root, tree, folders=("benches",))
    assert (tree / "benches/weights.bin").readlink() == root / "benches/weights.bin"
    assert laid.linked == ("benches/weights.bin",)


def test_pipes_are_not_waited_for(root, tree):
    write(root, "benches/bench_a.py")
    os.mkfifo(root / "benches/pipe")
    lay(root, tree, folders=("benches",))
    assert not (tree / "benches/pipe").exists()


def test_a_full_disk_is_said_to_be_one(root, tree, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    write(root, "benches/bench_a.py")
    monkeypatch.setattr(overlay.shutil, "copy2", full)
    with pytest.raises(WorktreeFailed, match=r"No space left on device.*TMPDIR"):
        lay(root, tree, folders=("benches",))


def test_some_are_named_and_the_rest_counted():
    assert named(["a", "b"]) == "a, b"
    assert named(list("abcdefg")) == "a, b, c, d, e and 2 more"
