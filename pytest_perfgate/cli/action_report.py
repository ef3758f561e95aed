"""The step that says what was found: outputs, report.md, summary, annotations.

The verdict is decided and put out first; what fails after that is a warning.
"""

from collections.abc import Mapping
from pathlib import Path

from pytest_perfgate.cli.action_edits import edits_of
from pytest_perfgate.cli.action_log import (
    context_of,
    only_warned,
    say,
    tell,
    tell_all,
    warn,
)
from pytest_perfgate.cli.action_verdict import Ruling, collect, rule
from pytest_perfgate.cli.annotations import report_annotations
from pytest_perfgate.cli.pull_request import links_of
from pytest_perfgate.errors import PerfGateError
from pytest_perfgate.github.client import Client
from pytest_perfgate.github.commands import (
    Annotation,
    Level,
    write_outputs,
    write_summary,
)
from pytest_perfgate.github.context import Context
from pytest_perfgate.github.pulls import Acceptance, acceptance
from pytest_perfgate.model import Outcome
from pytest_perfgate.reports import comment, summary
from pytest_perfgate.reports.comment import Accepted, Around
from pytest_perfgate.reports.escape import visible
from pytest_perfgate.store.atomic import write_atomically


def report(env: Mapping[str, str]) -> int:
    """Judge what was measured, and tell it in every way."""
    context = context_of(env)
    judges = env["PERFGATE_MODE"] != "measure"  # else the job that judges tells it
    found = collect(env)
    accepted = look_up(env, context) if judges else Acceptance(label="", accepted=False)
    ruling = rule(found, fail_on=env["PERFGATE_FAIL_ON"], accepted=accepted.accepted)
    problem = write_outputs(env, outputs(ruling))
    if problem:
        tell(Level.ERROR, problem)  # without outputs Gate is red, and this is why
    if ruling.report.problem or not ruling.measured:
        tell(Level.ERROR, ruling.sentence)
    say(f"{ruling.verdict}: {ruling.sentence}")
    if judges:
        with only_warned("the report was not told everywhere"):
            tell_everywhere(env, ruling, accepted, context)
    return 0


def tell_everywhere(
    env: Mapping[str, str], ruling: Ruling, accepted: Acceptance, context: Context
) -> None:
    """Tell it in the log, on the summary's page, and at the files."""
    tell_acceptance(ruling, accepted)
    text = text_of(ruling, accepted, context, env)
    if env["PERFGATE_MODE"] == "gate":  # else Measure has warned, and pytest written it
        for warning in context.warnings:
            warn(warning)
        warn(keep(env, text))
    if env["PERFGATE_SUMMARY"] == "true":
        warn(write_summary(env, text))
    if env["PERFGATE_ANNOTATIONS"] == "true":
        tell_all(annotations_of(ruling, env["PERFGATE_WORKING_DIRECTORY"]))


def annotations_of(ruling: Ruling, folder: str) -> tuple[Annotation, ...]:
    """Note at each file what is not well in it."""
    return report_annotations(
        ruling.report, accepted=ruling.verdict == "accepted", folder=folder
    )


def outputs(ruling: Ruling) -> dict[str, str]:
    """Give what later steps and jobs read."""
    return {
        "verdict": ruling.verdict,
        "code": str(ruling.code),
        "gate-code": str(ruling.exit_code),
        "sentence": visible(ruling.sentence),
        "regressions": str(ruling.count(Outcome.REGRESSED)),
        "improvements": str(ruling.count(Outcome.IMPROVED)),
        "missing": str(ruling.count(Outcome.NO_BASELINE, Outcome.MISSING)),
    }


# -- acceptance


def look_up(env: Mapping[str, str], context: Context) -> Acceptance:
    """Ask whether a label accepts the pull request's regressions, as of now.

    In a merge group nobody is asked: what is merged is judged by its baselines.
    """
    label, token = env.get("PERFGATE_ACCEPT_LABEL", ""), env.get("GITHUB_TOKEN", "")
    number = context.pr_number
    if not (label and token and number and context.repository):
        return Acceptance(label=label, accepted=False)
    try:
        client = Client(context.api_url, token, repository=context.repository)
        return acceptance(client, number, label)
    except PerfGateError as error:
        told = (
            f"the label {label!r} could not be looked up and counts as absent: {error}"
        )
        return Acceptance(label=label, accepted=False, warning=told)


def tell_acceptance(ruling: Ruling, accepted: Acceptance) -> None:
    """Warn of regressions that were accepted, and of labels that do not count."""
    if not ruling.count(Outcome.REGRESSED):
        return
    warn(accepted.warning)
    if accepted.accepted:
        reason = accepted.reason or "no reason given"
        warn(
            f"{ruling.count(Outcome.REGRESSED):,} regressed, accepted by {accepted.by} "
            f"with the label {accepted.label!r} at {accepted.at}: {reason}"
        )


# -- the text


def text_of(
    ruling: Ruling, accepted: Acceptance, context: Context, env: Mapping[str, str]
) -> str:
    """Render the page, as long as a summary may be."""
    links = links_of(context)
    if not ruling.measured:
        return comment.without_report(ruling.sentence, links=links).text
    who = Accepted(
        by=accepted.by,
        at=accepted.at,
        reason=accepted.reason,
        label=accepted.label,
    )
    edits, note = edits_of(ruling.report, context, env)
    around = Around(
        accepted=who if accepted.accepted else None,
        edits=edits,
        edits_note=note,
        label=accepted.label,
        notes=tuple(filter(None, (ruling.report.problem, accepted.warning))),
    )
    return summary.render(ruling.report, links=links, around=around)


def keep(env: Mapping[str, str], text: str) -> str:
    """Write report.md beside the reports; returns a warning, or nothing."""
    file = Path(env["PERFGATE_REPORT_DIR"]) / "report.md"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text.encode("utf-8", "replace"))
    except (OSError, PerfGateError) as error:
        return f"{file} was not written: {error}"
    return ""
