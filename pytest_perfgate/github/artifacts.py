"""Reports out of the artifacts of another run: read in memory, trusted in nothing."""

import io
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_perfgate.errors import BadAnswer
from pytest_perfgate.github.client import Client
from pytest_perfgate.github.payload import dig, text_at, whole_at

PREFIX = "perfgate-"
LARGEST_ZIP = 100 * 1024 * 1024
"""Bytes; a whole folder with its raw samples, for it is held in memory."""
LARGEST_REPORT = 50 * 1024 * 1024
"""Bytes of one report.json, unpacked."""
REPORT = "report.json"

_NAME = re.compile(rf"{PREFIX}(?:(?P<leg>.+)-)?(?P<attempt>[0-9]{{1,6}})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One artifact of a run that holds a report, by its name and attempt."""

    id: int
    name: str
    leg: str
    attempt: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundReport:
    """The bytes of a `report.json`, and where they are from."""

    leg: str
    attempt: int
    artifact: str
    data: bytes


def list_artifacts(
    client: Client, run_id: int, *, attempt: int
) -> tuple[Artifact, ...]:
    """List what a run has uploaded, of each leg the newest attempt up to `attempt`.

    Names are `perfgate-<leg>-<attempt>`; expired ones are left out.
    """
    newest: dict[str, Artifact] = {}
    path = f"actions/runs/{run_id}/artifacts"
    for entry in client.paginate(path, key="artifacts"):
        found = _artifact(entry)
        if found is None or found.attempt > attempt:
            continue
        known = newest.get(found.leg)
        if known is None or (known.attempt, known.id) < (found.attempt, found.id):
            newest[found.leg] = found
    return tuple(newest[leg] for leg in sorted(newest))


def _artifact(entry: Mapping[str, object]) -> Artifact | None:
    name, number = text_at(entry, "name"), whole_at(entry, "id")
    named = _NAME.fullmatch(name)
    if named is None or number is None or dig(entry, "expired") is True:
        return None
    return Artifact(
        id=number,
        name=name,
        leg=named["leg"] or "",
        attempt=int(named["attempt"]),
        size=whole_at(entry, "size_in_bytes") or 0,
    )


def fetch_report(client: Client, artifact: Artifact) -> FoundReport:
    """Download one artifact and read the report inside, and nothing else.

    Raises
    ------
    BadAnswer
        Where it is too large, no archive, or holds no report.
    """
    if artifact.size > LARGEST_ZIP:
        raise BadAnswer(
            f"the artifact {artifact.name} has {artifact.size:,} bytes, above "
            f"{LARGEST_ZIP:,}, and was not read; upload the {REPORT} alone"
        )
    data = client.download(f"actions/artifacts/{artifact.id}/zip", limit=LARGEST_ZIP)
    return FoundReport(
        leg=artifact.leg,
        attempt=artifact.attempt,
        artifact=artifact.name,
        data=report_in(data, name=artifact.name),
    )


def report_in(archive: bytes, *, name: str, limit: int = LARGEST_REPORT) -> bytes:
    """Read `report.json` out of an archive, in memory.

    Parameters
    ----------
    archive : the bytes of a zip file, from whomever
    name : says in messages which one
    limit : bytes; more is refused, by what is declared and by what comes out

    Raises
    ------
    BadAnswer
        Where there is no such file, it is too large, or the archive is damaged.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entry = _entry(opened, name)
            if entry.file_size > limit:
                raise _too_large(name, entry.file_size, limit)
            with opened.open(entry) as file:
                data = file.read(limit + 1)
    except (
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,  # so zipfile calls a compression that it does not know
        EOFError,
    ) as error:
        raise BadAnswer(
            f"the artifact {name} is no archive that can be read: {error}"
        ) from error
    except RuntimeError as error:  # an entry with a password
        raise BadAnswer(f"the artifact {name} cannot be opened: {error}") from error
    if len(data) > limit:
        raise _too_large(name, len(data), limit)
    return data


def _entry(opened: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Find the report, at the top or in one folder; the topmost of several."""
    found = [
        entry
        for entry in opened.infolist()
        if entry.filename.rsplit("/", 1)[-1] == REPORT and not entry.is_dir()
    ]
    if not found:
        raise BadAnswer(f"the artifact {name} holds no {REPORT}")
    return min(found, key=lambda entry: (entry.filename.count("/"), entry.filename))


def _too_large(name: str, size: int, limit: int) -> BadAnswer:
    return BadAnswer(
        f"the {REPORT} in the artifact {name} has {size:,} bytes or more, above "
        f"{limit:,}; it was not read"
    )
