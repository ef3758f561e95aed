"""What a worker is told, said for the base's checkout."""

import pytest

from pytest_perfgate.campaign.translation import Translation


@pytest.fixture
def make(tmp_path):
    candidate, base = tmp_path / "project", tmp_path / "private/project"
    for tree in (candidate, base):
        (tree / "sub/benches").mkdir(parents=True)
    (tmp_path / "outside").mkdir()

    def makes(started=".", rootdir=".", inifile=None):
        return Translation(
            candidate=candidate,
            base=base,
            rootdir=(candidate / rootdir).resolve(),
            started=(candidate / started).resolve(),
            inifile=inifile and candidate / inifile,
        )

    return makes


def said(translation, *own):
    """Return what becomes of the user's own words."""
    return translation.arguments(own, basetemp=None)[: len(own)]


def test_relative_paths_mean_the_same_from_the_same_place(make):
    words = ("sub/benches", "-k", "sub", "sub/benches/bench_a.py::bench_a[x/y]", "-q")
    assert said(make(), *words) == words


def test_absolute_paths_are_translated_where_the_base_has_them(make):
    there = make()
    project = there.candidate
    words = (
        f"{project}/sub/benches::bench_a",
        f"--ignore={project}/sub",
        f"cache_dir={project}/.perfgate/last/cache",
        "/usr",
        "--k=/usr",
    )
    assert said(there, *words) == (
        f"{there.base}/sub/benches::bench_a",
        f"--ignore={there.base}/sub",
        *words[2:],
    )


def test_paths_that_lead_out_of_the_tree_stay_where_they_are(make, tmp_path):
    assert said(make("sub"), "../../outside") == (str(tmp_path / "outside"),)
    assert said(make("sub"), "../sub") == ("../sub",)


def test_started_outside_the_repository(make, tmp_path):
    there = make("..")
    assert there.start == tmp_path
    assert said(there, "project/sub", "outside") == (f"{there.base}/sub", "outside")


def test_rootdir_and_settings_are_said_before_the_end_of_options(make):
    there = make(rootdir="sub", inifile="sub/pytest.ini")
    assert there.arguments(("-q", "--", "-odd.py"), basetemp=None) == (
        "-q",
        f"--rootdir={there.base}/sub",
        "--continue-on-collection-errors",
        "-c",
        f"{there.base}/sub/pytest.ini",
        "--",
        "-odd.py",
    )


def test_each_side_has_a_temporary_folder_of_its_own(make, tmp_path):
    """pytest empties the one it is given."""
    words = make().arguments(("--basetemp=/t",), basetemp=tmp_path / "b")
    assert words[-1] == f"--basetemp={tmp_path}/b"


def test_the_environment(make):
    there = make("sub")
    project = there.candidate
    assert there.environment(
        {
            "PYTHONPATH": f"{project}/src:relative:/usr/lib",
            "PYTEST_ADDOPTS": f"-q '--ignore={project}/sub'",
            "PWD": f"{project}/sub",
            "HOME": "/h",
        }
    ) == {
        "PYTHONPATH": f"{there.base}/src:relative:/usr/lib",
        "PYTEST_ADDOPTS": f"-q --ignore={there.base}/sub",
        "PWD": f"{there.base}/sub",
        "HOME": "/h",
    }
    assert there.environment({}) == {}


def test_what_pytest_is_told_to_collect_exists(make):
    """A path that the base lacks would end its worker before it begins."""
    there = make("sub")
    new = there.started / "tests"
    new.mkdir()
    (new / "test_new.py").write_text("x")
    (new / "more").mkdir()
    there.provide(("tests/test_new.py::test_a", f"{new}/more", "nosuch", "/usr"))
    assert (there.base / "sub/tests/test_new.py").read_text() == "x"
    assert (there.base / "sub/tests/more").is_dir()
    assert not (there.base / "sub/nosuch").exists()


def test_roots(make, tmp_path):
    there = make(rootdir="sub")
    (tmp_path / "outside/src").mkdir()
    paths = (there.candidate / "python", tmp_path / "outside/src")
    assert there.roots(paths) == ("python", "sub/src", "sub", "src", ".")
