"""When a base counts as measured, and what is said when it does not."""

import pytest

from pytest_perfgate.campaign.proof import judge_proof


def evidence(side="base", **found):
    empty = {"foreign": [], "mapped": [], "library": ["lib"], "installed": []}
    return {"side": side, "itself": False, **empty, **found}


OURS = evidence("candidate")


def test_a_base_that_ran_its_own_code():
    proof = judge_proof(evidence(), OURS)
    assert proof.measured
    assert proof.why == ""
    assert proof.differences == ()


@pytest.mark.parametrize(
    ("base", "why"),
    [
        (None, "the base's worker ended before"),
        (
            evidence(foreign=[["lib.core", "src/lib/core.py"]]),
            r"imported the candidate's code: lib.core (src/lib/core.py)",
        ),
        (
            evidence(mapped=["build/core.so"]),
            "compiled libraries: build/core.so; build",
        ),
        (
            evidence(installed=["lib.x"]),
            "an installed copy instead of the base's code: ",
        ),
        (evidence(library=[]), "imported no code of the repository"),
        (evidence(library=[], itself=True), "the repository is pytest-perfgate's own"),
    ],
)
def test_a_base_that_did_not(base, why):
    proof = judge_proof(base, OURS)
    assert not proof.measured
    assert why in proof.why


@pytest.mark.parametrize(
    "found", [{"foreign": [["lib", "src/lib.py"]]}, {"mapped": ["src/lib.py"]}]
)
def test_a_base_installed_over_the_candidate(found):
    """Both sides would be the base, and no regression would ever be seen."""
    proof = judge_proof(evidence(), evidence("candidate", library=[], **found))
    assert not proof.measured
    assert "the candidate's worker imported the base's code: " in proof.why
    assert "src/lib.py" in proof.why


def test_much_is_not_listed_to_its_end():
    foreign = [[f"lib.m{n}", f"lib/m{n}.py"] for n in range(9)]
    assert judge_proof(evidence(foreign=foreign), OURS).why.endswith(" and 4 more")


def test_what_only_one_side_imported_is_told():
    base = evidence(library=["lib", "lib.gone"])
    candidate = evidence("candidate", library=["lib", "lib.new", "lib.newer"])
    assert judge_proof(base, candidate).differences == (
        "only the base imported lib.gone",
        "only the candidate imported lib.new, lib.newer",
    )


def test_an_installed_candidate_is_told_and_compared():
    candidate = evidence("candidate", library=[], installed=["lib"])
    (difference,) = judge_proof(evidence(), candidate).differences
    assert difference.endswith("an installed copy and not the working tree: lib")


def test_a_lost_candidate_takes_nothing_from_the_base():
    proof = judge_proof(evidence(), None)
    assert proof.measured
    assert proof.differences == ()
