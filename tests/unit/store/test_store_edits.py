import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.store.edits import (
    benchmark_file_of,
    merged,
    placed,
    renamed,
    without,
)


@pytest.fixture
def here(make):
    return make.an_environment()


@pytest.fixture
def there(make):
    return make.an_environment(software={"torch": "2.14.0"})


def test_the_file_of_a_benchmark_is_what_its_id_begins_with():
    assert benchmark_file_of("b/a.py::C::x[a::b]") == "b/a.py"


def test_a_first_merge_makes_the_file(make, here):
    file = merged(None, {"a": make.a_baseline(environment=here)}, environment=here)
    assert file == make.a_file(a=make.a_baseline())
    assert file.environment == here


def test_a_merge_leaves_the_other_benchmarks(make, here):
    old = make.a_file(a=make.a_baseline(), b=make.a_baseline())
    new = make.a_baseline(plan=make.a_plan(seed=8))
    file = merged(old, {"b": new, "c": new}, environment=here)
    assert file == make.a_file(a=make.a_baseline(), b=new, c=new)


def test_a_benchmark_recorded_elsewhere_carries_its_own_environment(make, here, there):
    old = make.a_file(a=make.a_baseline(), b=make.a_baseline())
    file = merged(old, {"b": make.a_baseline()}, environment=there)
    assert file.environment == here
    assert file.benchmarks["a"].environment is None
    assert file.benchmarks["b"].environment == there


def test_an_update_of_all_makes_the_new_environment_the_files(make, here, there):
    old = make.a_file(a=make.a_baseline(), b=make.a_baseline(environment=there))
    file = merged(old, {"a": make.a_baseline()}, environment=there)
    assert file.environment == there
    assert [b.environment for b in file.benchmarks.values()] == [None, None]


def test_without_forgets_and_names_what_is_not_there(make):
    file = make.a_file(aa=make.a_baseline(), ab=make.a_baseline())
    assert list(without(file, ["aa"]).benchmarks) == ["ab"]
    assert without(file, ["aa", "ab"]).benchmarks == {}
    with pytest.raises(
        UsageError, match=r"^ac has no baseline; did you mean a. or a.\?"
    ):
        without(file, ["aa", "ac"])
    with pytest.raises(UsageError, match=r"^zzz has no baseline; see `perfgate basel"):
        without(file, ["zzz"])


def test_renamed_keeps_the_baseline_and_its_place(make):
    first, second = make.a_baseline(), make.a_baseline(plan=make.a_plan(seed=8))
    file = renamed(make.a_file(a=first, b=second), "a", "c")
    assert list(file.benchmarks.items()) == [("c", first), ("b", second)]
    with pytest.raises(UsageError, match=r"^a has no baseline"):
        renamed(file, "a", "d")
    with pytest.raises(UsageError, match=r"^b has a baseline already; prune it first"):
        renamed(file, "c", "b")


def test_placed_takes_the_environment_along(make, here, there):
    origin = make.a_file(a=make.a_baseline(), b=make.a_baseline(environment=there))
    target = make.a_file(x=make.a_baseline())
    assert placed(None, origin, old="a", new="n").environment == here
    assert placed(None, origin, old="b", new="n").environment == there
    file = placed(target, origin, old="b", new="n")
    assert file.environment == here
    assert file.benchmarks["n"].environment == there
    with pytest.raises(UsageError, match=r"^x has a baseline already"):
        placed(target, origin, old="a", new="x")
    with pytest.raises(UsageError, match=r"^c has no baseline"):
        placed(target, origin, old="c", new="n")
