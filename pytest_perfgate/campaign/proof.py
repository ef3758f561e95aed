"""Whether the base's worker ran the base's code: judged on what both workers saw.

That nothing came from the candidate is no proof alone: an installed wheel and a
suite that imports nothing pass that test too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_perfgate.campaign.overlay import named


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What the evidence of a pair amounts to."""

    measured: bool
    """Each worker imported its own tree's library, and nothing of the other's."""
    why: str
    """Why it did not, in words; empty where it did."""
    differences: tuple[str, ...]
    """What only one side imported, and what else a reader should know."""


def judge_proof(
    base: Mapping[str, Any] | None, candidate: Mapping[str, Any] | None
) -> Proof:
    """Judge what the two workers of a pair found in themselves.

    Parameters
    ----------
    base, candidate : `redirect.evidence` of each; None where a worker ended
        before it could look
    """
    why = _why_not(base) or (_crossed(candidate) if candidate else "")
    return Proof(
        measured=not why,
        why=why,
        differences=_differences(base, candidate) if base and candidate else (),
    )


def _why_not(base: Mapping[str, Any] | None) -> str:
    if base is None:
        return "the base's worker ended before it could say what it had imported"
    if base["foreign"]:
        found = [f"{name} ({file})" for name, file in base["foreign"]]
        return f"the base's worker imported the candidate's code: {named(found)}"
    if base["mapped"]:
        return (
            "the base's worker loaded the candidate's compiled libraries: "
            f"{named(base['mapped'])}; build the base's own with --perfgate-base-setup"
        )
    if base["installed"]:
        return (
            "the base's worker imported an installed copy instead of the base's code: "
            f"{named(base['installed'])}; install the package in editable mode, or "
            "name the folder it lies in with pytest's `pythonpath`"
        )
    if not base["library"]:
        return _nothing(itself=bool(base["itself"]))
    return ""


def _crossed(candidate: Mapping[str, Any]) -> str:
    found = [f"{name} ({file})" for name, file in candidate["foreign"]]
    if not found and not candidate["mapped"]:
        return ""
    return (
        "the candidate's worker imported the base's code: "
        f"{named([*found, *candidate['mapped']])}; install the candidate again, and "
        "let --perfgate-base-setup make an environment for the base, which "
        "--perfgate-base-python then names"
    )


def _nothing(*, itself: bool) -> str:
    if itself:
        return (
            "the repository is pytest-perfgate's own, and both workers measure with "
            "the candidate's: compare it with stored baselines"
        )
    return (
        "the benchmarks imported no code of the repository, apart from what was taken "
        "from the candidate: if they measure an installed copy, install the package in "
        "editable mode; if they measure only themselves, compare with stored baselines"
    )


def _differences(
    base: Mapping[str, Any], candidate: Mapping[str, Any]
) -> tuple[str, ...]:
    ours = {*candidate["library"], *candidate["installed"]}
    theirs = set(base["library"])
    notes = []
    if candidate["installed"]:
        notes.append(
            "the candidate's worker imported an installed copy and not the working "
            f"tree: {named(candidate['installed'])}"
        )
    for names, side in ((theirs - ours, "base"), (ours - theirs, "candidate")):
        if names:
            notes.append(f"only the {side} imported {named(sorted(names))}")
    return tuple(notes)
