"""What several reports fail on: of two policies the stricter holds for all."""

from collections.abc import Sequence

from pytest_perfgate.gate.consistency import ON_INCONCLUSIVE, ON_MISSING, records
from pytest_perfgate.model import Report


def merged_policy(reports: Sequence[Report]) -> dict[str, str]:
    """Merge policies: of what to fail on the stricter, of the rest all values."""
    names = dict.fromkeys(name for report in reports for name in report.policy)
    policy = {
        name: " | ".join(
            dict.fromkeys(r.policy[name] for r in reports if name in r.policy)
        )
        for name in names
    }
    strict = fails_on(reports)
    for name, judge in SWITCHES.items():
        if name in policy or len(set(map(judge, reports))) > 1:
            policy[name] = strict[_KEYWORDS[name]]
    return policy


def fails_on(reports: Sequence[Report]) -> dict[str, str]:
    """Return what to fail on, for `exit_codes`: the stricter of all reports."""
    return {
        keyword: "fail" if "fail" in map(SWITCHES[name], reports) else "warn"
        for name, keyword in _KEYWORDS.items()
    }


def _on_missing(report: Report) -> str:
    return report.policy.get(ON_MISSING, "fail")


def _on_inconclusive(report: Report) -> str:
    if records(report):
        return "fail"
    return report.policy.get(ON_INCONCLUSIVE, "warn")


SWITCHES = {ON_MISSING: _on_missing, ON_INCONCLUSIVE: _on_inconclusive}
"""By option, what a report was told to do: `fail` or `warn`."""
_KEYWORDS = {ON_MISSING: "on_missing", ON_INCONCLUSIVE: "on_inconclusive"}
