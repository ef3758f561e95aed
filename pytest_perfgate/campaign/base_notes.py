"""What a reader of a paired report should know of its base tree."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_perfgate.campaign.overlay import named
from pytest_perfgate.campaign.repository import Repository

_SUBMODULES = (
    "submodules are empty in the base tree; check them out with "
    "--perfgate-base-setup 'git submodule update --init'"
)
_LFS = (
    "files of git-lfs are pointers in the base tree; where the base reads them, fetch "
    "them with --perfgate-base-setup 'git lfs pull'"
)
_COPIED = (
    "git ignores generated files, and the base commit has none: the candidate's were "
    "copied into the base tree"
)
_REFUSED = (
    "git ignores compiled files, and the base must not run the candidate's: build its "
    "own with --perfgate-base-setup"
)
_LINKED = "large files beside the benchmarks, which the base tree links to"
_LONELY = (
    "benchmarks among library code, of whose folders nothing else was laid over the "
    "base; name what belongs to them with --perfgate-overlay"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What came from the candidate into the base tree, or did not; relative paths."""

    linked: tuple[str, ...]
    lonely: tuple[str, ...]
    copied: tuple[str, ...]
    refused: tuple[str, ...]


def notes_on(
    repository: Repository, tree: Path, *, commit: str, brought: Brought
) -> tuple[str, ...]:
    """Say what may surprise, one sentence each."""
    lists = (
        (_SUBMODULES, repository.submodules(commit)),
        (_LFS, repository.lfs_files(commit, tree)),
        (_COPIED, brought.copied),
        (_REFUSED, brought.refused),
        (_LINKED, brought.linked),
        (_LONELY, brought.lonely),
    )
    return (
        *_on_the_candidate(repository, commit),
        *(f"{what}: {named(paths)}" for what, paths in lists if paths),
    )


def _on_the_candidate(repository: Repository, commit: str) -> Iterator[str]:
    changed = repository.uncommitted()
    if changed:
        yield f"the candidate has uncommitted changes, and is measured with them: {named(changed)}"
    if commit == repository.head():
        what = (
            "only what is not committed can differ"
            if changed
            else "the same code is measured on both sides"
        )
        yield f"HEAD is itself the base ({repository.short(commit)}): {what}"
