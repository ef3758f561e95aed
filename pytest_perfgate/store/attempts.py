"""What earlier attempts on the same commit measured: `.perfgate/attempts.json`.

A small file beside the run folder, which git ignores. It is no record of
anything: whoever deletes it loses the memory of attempts and nothing else.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_perfgate.errors import BaselineCorrupt
from pytest_perfgate.measured import Plan
from pytest_perfgate.model import Baseline, Environment, RunSummary
from pytest_perfgate.store.atomic import locked, unreachable, write_atomically
from pytest_perfgate.store.codec import encode_plan, environment_digest
from pytest_perfgate.store.codec_baseline import encode_baseline
from pytest_perfgate.store.codec_runs import decode_runs, encode_runs
from pytest_perfgate.store.document import Kind
from pytest_perfgate.store.fields import Json, Node
from pytest_perfgate.store.layout import lines_of, tidy

FILE = Path(".perfgate", "attempts.json")
"""Relative to rootdir, wherever the report goes: another folder is no new start."""

KEPT_COMMITS = 5
KEPT_RUNS = 100
"""Of one benchmark; older ones are forgotten."""

_IGNORE = ".gitignore"
_DIGEST_LENGTH = 16


def conditions_of(baseline: Baseline, plan: Plan, environment: Environment) -> str:
    """Return a digest of what runs are judged against, and of how they are made."""
    tree = {
        "baseline": tidy(encode_baseline(baseline)),
        "plan": encode_plan(plan),
        "environment": environment_digest(environment),
    }
    return hashlib.sha256(lines_of(tree).encode()).hexdigest()[:_DIGEST_LENGTH]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What all attempts so far measured of one benchmark."""

    conditions: str
    """Digest of what must be the same for the runs to count together."""
    attempts: int
    runs: tuple[RunSummary, ...]
    """Made for screening."""
    fresh: tuple[RunSummary, ...] = ()
    """Made to confirm what was flagged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Of the latest commits, by commit and kind of hardware, then by benchmark."""

    commits: Mapping[tuple[str, str], Mapping[str, Evidence]] = field(
        default_factory=dict
    )
    """The latest last."""

    def of(self, commit: str, hardware: str) -> Mapping[str, Evidence]:
        return self.commits.get((commit, hardware), {})

    def having(
        self, commit: str, hardware: str, found: Mapping[str, Evidence]
    ) -> "Attempts":
        """Return these with what a session brought; the oldest commits go."""
        key = (commit, hardware)
        others = {k: of for k, of in self.commits.items() if k != key}
        bounded = {name: _bounded(evidence) for name, evidence in found.items()}
        latest = {**others, key: {**self.of(*key), **bounded}}
        return Attempts(commits=dict(list(latest.items())[-KEPT_COMMITS:]))


def _bounded(evidence: Evidence) -> Evidence:
    return replace(
        evidence, runs=evidence.runs[-KEPT_RUNS:], fresh=evidence.fresh[-KEPT_RUNS:]
    )


def _encode(attempts: Attempts) -> Json:
    return {
        "commits": [
            {
                "commit": commit,
                "hardware": hardware,
                "benchmarks": {name: _encode_one(one) for name, one in found.items()},
            }
            for (commit, hardware), found in attempts.commits.items()
        ]
    }


def _encode_one(evidence: Evidence) -> Json:
    return {
        "conditions": evidence.conditions,
        "attempts": evidence.attempts,
        "runs": encode_runs(evidence.runs),
        "fresh": encode_runs(evidence.fresh),
    }


def _decode(fields: Mapping[str, Node]) -> Attempts:
    commits: dict[tuple[str, str], Mapping[str, Evidence]] = {}
    for node in fields["commits"].items():
        entry = node.fields("commit", "hardware", "benchmarks")
        key = (entry["commit"].string(), entry["hardware"].string())
        members = entry["benchmarks"].members()
        commits[key] = {name: _decode_one(one) for name, one in members.items()}
    return Attempts(commits=commits)


def _decode_one(node: Node) -> Evidence:
    fields = node.fields("conditions", "attempts", "runs", "fresh")
    return Evidence(
        conditions=fields["conditions"].string(),
        attempts=fields["attempts"].integer(minimum=1),
        runs=decode_runs(fields["runs"], metrics={}),
        fresh=decode_runs(fields["fresh"], metrics={}),
    )


ATTEMPTS: Kind[Attempts] = Kind(
    name="memory of attempts",
    version=1,
    steps={},
    encode=_encode,
    decode=_decode,
    body=("commits",),
    way_out="earlier attempts are forgotten, and nothing else",
)


def load_attempts(path: Path) -> Attempts:
    """Read the file; there is none at first.

    Raises
    ------
    BaselineCorrupt, SchemaTooNew
        Where it cannot be used as it is.
    StoreUnreachable
        Where it is there and cannot be read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Attempts()
    except OSError as error:
        raise unreachable(path, "read", error) from error
    return ATTEMPTS.read(data, source=str(path))


def keep_attempts(
    path: Path, *, commit: str, hardware: str, found: Mapping[str, Evidence]
) -> None:
    """Add what a session brought; a file that is corrupt is begun anew.

    Raises
    ------
    SchemaTooNew
        Where a newer version wrote it: it is left alone.
    StoreUnreachable
        Where the disk refuses.
    """
    with locked(path):
        try:
            known = load_attempts(path)
        except BaselineCorrupt:
            known = Attempts()
        text = ATTEMPTS.text(known.having(commit, hardware, found))
        write_atomically(path, text.encode())
    ignore = path.with_name(_IGNORE)
    if not ignore.exists():
        write_atomically(ignore, b"*\n")
