"""What stands below the tables of the comment: texts, environment, advice, footer."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_perfgate.model import BenchmarkResult, Outcome, Report
from pytest_perfgate.reports import figures
from pytest_perfgate.reports.advice import UPDATE
from pytest_perfgate.reports.around import Around, BaselineEdit, Links, plain
from pytest_perfgate.reports.comment_rows import FEW, STRONGEST, of_outcome
from pytest_perfgate.reports.escape import one_line
from pytest_perfgate.reports.explained import all_lines
from pytest_perfgate.reports.words import GREEN, QUIET, machines, title
from pytest_perfgate.units import format_change, format_value

_MOST_TEXTS, _MOST_TEXT = 10, 1_500
_MOST_FACTS = 30
_MOST_TO_REPRODUCE = 3
_LONGEST_ID = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What a body or a crash said, or all that changed with a benchmark."""

    name: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line of the environment."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command to copy, and what it is for."""

    told: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of the footer, a link where there is an address."""

    told: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One statistic of an edited baseline, written out."""

    benchmark: str
    hardware: str
    metric: str
    old: str
    new: str
    change: str


def explanations(results: Sequence[BenchmarkResult]) -> Iterator[Text]:
    """Give all that changed with a benchmark, where its row has no room for it."""
    told = [(one, lines) for one in results if len(lines := all_lines(one)) > STRONGEST]
    for result, lines in told[:_MOST_TEXTS]:
        text = "\n".join(map(one_line, lines))
        yield Text(
            name=title(result), reason="what changed with it", text=text[:_MOST_TEXT]
        )


def texts(results: Sequence[BenchmarkResult]) -> Iterator[Text]:
    told = [one for one in results if one.text and one.verdict.outcome not in QUIET]
    for result in told[:_MOST_TEXTS]:
        yield Text(
            name=title(result),
            reason=result.verdict.reason.value,
            text=result.text[-_MOST_TEXT:],
        )


def facts(report: Report) -> Iterator[Fact]:
    environment = report.environment
    if environment is None:
        return
    yield Fact(name="machine", value=environment.key)
    both = {**environment.hardware, **environment.software}
    known = [(name, value) for name, value in both.items() if value is not None]
    for name, value in known[:_MOST_FACTS]:
        yield Fact(name=name, value=str(value))
    given = [f"{name}={value}" for name, value in report.policy.items()]
    if given:
        yield Fact(name="judged by", value=" ".join(given))


def edit_row(edit: BaselineEdit) -> Edit:
    def side(value: float | None) -> str:
        return figures.NOTHING if value is None else format_value(value, edit.unit)

    return Edit(
        benchmark=edit.benchmark,
        hardware=edit.hardware,
        metric=f"{edit.metric}·{edit.statistic}" if edit.metric else "",
        old=side(edit.old),
        new=side(edit.new),
        change=edit.told or _edit_change(edit),
    )


def _edit_change(edit: BaselineEdit) -> str:
    if edit.old is None:
        return "added"
    if edit.new is None:
        return "removed"
    if edit.old > 0 and edit.new > 0:
        return format_change(edit.new / edit.old)
    return "changed"


def reproduce(results: Sequence[BenchmarkResult]) -> Iterator[Command]:
    """Give the command for the worst ones; an id too long to copy is left out."""
    red = [
        one for one in results if one.verdict.outcome not in GREEN | {Outcome.MISSING}
    ]
    ids = dict.fromkeys(one.nodeid for one in red)
    short = [one for one in ids if len(one) <= _LONGEST_ID and one.isprintable()]
    if not short:
        return
    words = shlex.join(["pytest", "--perfgate", *short[:_MOST_TO_REPRODUCE]])
    count = len(short[:_MOST_TO_REPRODUCE])
    which = "the worst" if len(ids) > count else "them"
    yield Command(told=f"measure {which} again, on a machine of this kind", line=words)


def accept(results: Sequence[BenchmarkResult], around: Around) -> Iterator[str]:
    found = [one for one in results if one.verdict.outcome not in GREEN]
    if not found:
        return
    yield (
        f"Record the new numbers with {UPDATE} on a machine of this kind, and commit "
        "the baselines in this pull request: they are reviewed with the code."
    )
    yield (
        "Or take them out of the report of this run: download its artifact, and commit "
        "what `perfgate accept REPORT` writes."
    )
    if around.label and of_outcome(results, Outcome.REGRESSED):
        yield (
            f"Or let somebody with write access set the label `{plain(around.label)}` "
            "and say why in a line `Perf-Accept: REASON` of the description; then run "
            "the gate again. That holds for this pull request, not for the baselines."
        )


def footer(links: Links, report: Report | None = None) -> Iterator[Part]:
    yield Part(told="pytest-perfgate")
    if links.run:
        yield Part(told=f"run, attempt {links.attempt}", url=links.run)
    commit = links.commit or (report.commit if report else None) or ""
    if commit and links.repository and links.commit:
        yield Part(
            told=f"commit {commit[:12]}", url=f"{links.repository}/commit/{commit}"
        )
    elif commit:
        yield Part(told=f"commit `{plain(commit)}`")
    if report is None:
        return
    on = [f"`{plain(machine)}`" for machine in machines(report)]
    if on:
        yield Part(told=f"on {', '.join(on[:FEW])}")
    yield Part(told=f"made {plain(report.created)}")
    if report.cost:
        yield Part(told=plain(figures.cost_text(report.cost)))
