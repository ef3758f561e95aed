"""The user's history, read only, and checkouts of it that touch nothing of theirs.

A checkout is a repository of its own that borrows the user's objects: neither a
branch, nor a worktree, nor a lock is ever made in the user's repository, so that
nothing has to be cleaned up there, whatever ends us.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_perfgate.campaign.overlay import (
    Project,
    bring_generated,
    lay_over,
    plan,
)
from pytest_perfgate.campaign.repository import Repository
from pytest_perfgate.cli.bisection import Commit
from pytest_perfgate.errors import UsageError

_FORMAT = "%x1e%H%x1f%P%x1f%an <%ae>%x1f%aI%x1f%s"


def resolve(repository: Repository, good: str, bad: str) -> tuple[str, str]:
    """Return both commits.

    Raises
    ------
    UsageError
        Where git does not know one, or there is no way from good to bad.
    """
    found = []
    for ref in (good, bad):
        commit = repository.commit(ref)
        if commit is None:
            raise UsageError(repository.unknown_ref(ref))
        found.append(commit)
    first, last = found
    if first == last:
        raise UsageError(f"{good!r} and {bad!r} are one commit, {first[:12]}")
    if not repository.is_ancestor(first, last):
        raise UsageError(_no_way(repository, (good, first), (bad, last)))
    return first, last


def _no_way(repository: Repository, good: tuple[str, str], bad: tuple[str, str]) -> str:
    (good_ref, first), (bad_ref, last) = good, bad
    text = f"GOOD={good_ref!r} is no ancestor of BAD={bad_ref!r}"
    if repository.is_ancestor(last, first):
        return f"{text}, but the other way round; swap them"
    base = repository.common_ancestor(first, last)
    if base is None:
        return f"{text}, and they have no commit in common"
    return f"{text}; where they parted is {base[:12]}: name that as GOOD"


def between(
    repository: Repository, good: str, bad: str, *, first_parent: bool
) -> tuple[Commit, ...]:
    """Return what bad has and good has not, children before parents."""
    options = ["--first-parent"] if first_parent else []
    text = repository.ask(
        "log", "--topo-order", *options, f"--format={_FORMAT}", f"{good}..{bad}"
    )
    return tuple(map(_commit, text.split("\x1e")[1:]))


def _commit(record: str) -> Commit:
    sha, parents, author, date, subject = record.rstrip("\n").split("\x1f", 4)
    return Commit(
        sha=sha,
        parents=tuple(parents.split()),
        author=author,
        date=date,
        subject=subject,
    )


class Checkout:
    """A repository in a temporary folder, with one commit checked out at a time."""

    def __init__(self, source: Repository, folder: Path) -> None:
        """Make it, empty."""
        # named like the user's: a checkout may itself be a package
        self.root = folder / (source.root.name or "tree")
        self.root.mkdir(parents=True)
        self._source = source
        layout = source.ask("rev-parse", "--show-object-format").strip()
        source.ask(
            "init",
            "--quiet",
            "--template=",
            f"--object-format={layout}",
            str(self.root),
        )
        own = self.root / ".git"
        borrowed = own / "objects" / "info" / "alternates"
        borrowed.parent.mkdir(parents=True, exist_ok=True)
        borrowed.write_text(f"{source.common / 'objects'}\n", encoding="utf-8")
        shallow = source.common / "shallow"
        if shallow.exists():
            (own / "shallow").write_bytes(shallow.read_bytes())
        self._repository = Repository(self.root)

    def check_out(self, commit: str) -> None:
        """Leave nothing but that commit in it, and what git ignores in the user's.

        Raises
        ------
        WorktreeFailed
            With what git said.
        """
        self._repository.ask("checkout", "--quiet", "--force", "--detach", commit)
        self._repository.ask("clean", "--quiet", "-ffdx")

    def bring_generated(self) -> None:
        """Copy what a tool generated for the user's checkout, as `_version.py`."""
        bring_generated(self._source, self.root)

    def place_of(self, path: Path) -> Path:
        """Return the same place in this checkout."""
        return self.root / path.resolve().relative_to(self._source.root)

    def said(self, argument: str) -> str:
        """Say an argument of pytest for this checkout: absolute paths are the user's."""
        file, colons, test = argument.partition("::")
        path = Path(file)
        if not path.is_absolute() or not path.resolve().is_relative_to(
            self._source.root
        ):
            return argument
        return f"{self.place_of(path)}{colons}{test}"


class Benchmarks:
    """The benchmarks of one checkout, to be laid over others."""

    def __init__(
        self,
        checkout: Checkout,
        *,
        rootdir: Path,
        inifile: Path | None,
        files: Sequence[str],
        extra: tuple[str, ...],
    ) -> None:
        self._root = checkout.root
        self._overlay = plan(
            Project(
                root=checkout.root,
                rootdir=rootdir,
                inifile=inifile,
                files=tuple(_with_conftests(rootdir, files)),
                extra=extra,
            )
        )

    def lay_over(self, checkout: Checkout) -> None:
        """Let a checkout have these benchmarks, conftests and settings."""
        lay_over(self._overlay, candidate=self._root, tree=checkout.root)


def _with_conftests(rootdir: Path, files: Sequence[str]) -> Iterator[Path]:
    found: dict[Path, None] = {}
    for name in files:
        found[rootdir / name] = None
        for folder in Path(name).parents:
            conftest = rootdir / folder / "conftest.py"
            if conftest.is_file():
                found[conftest] = None
    yield from found
