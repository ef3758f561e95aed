"""Which baselines a pull request edits, as far as this job can know."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from pytest_perfgate.cli.comment import NO_CHECKOUT
from pytest_perfgate.cli.edits import edited_baselines, git_in
from pytest_perfgate.github.context import Context
from pytest_perfgate.model import Report
from pytest_perfgate.reports.comment import BaselineEdit


def edits_of(
    report: Report, context: Context, env: Mapping[str, str]
) -> tuple[tuple[BaselineEdit, ...], str]:
    """List the baselines that a pull request edits, where there is a checkout."""
    if not context.base_ref or context.pr_number is None:
        return (), ""
    workspace = Path(env["GITHUB_WORKSPACE"])
    if not (workspace / ".git").exists():
        return (), NO_CHECKOUT
    folder = report.policy.get("--perfgate-baselines", "baselines")
    place = PurePosixPath(env["PERFGATE_WORKING_DIRECTORY"], folder)
    if place.is_absolute():
        return (), ""  # outside of what git knows
    base = f"origin/{context.base_ref}"
    return edited_baselines(git_in(workspace), base=base, folder=str(place))
