"""The last step: the exit code, and with it the colour of the check."""

from collections.abc import Mapping

from pytest_perfgate.cli.action_log import say, tell
from pytest_perfgate.gate.suite import EXIT_INTERNAL
from pytest_perfgate.github.commands import Level


def gate(env: Mapping[str, str]) -> int:
    """End as the step Report has decided; where it did not, never green."""
    code, exit_code = env.get("PERFGATE_CODE", ""), env.get("PERFGATE_GATE_CODE", "")
    if not (code.isdecimal() and exit_code.isdecimal()):
        tell(Level.ERROR, "there is no verdict: the step Report did not reach its end")
        return EXIT_INTERNAL
    say(f"{env['PERFGATE_VERDICT']}: {env['PERFGATE_SENTENCE']}")
    if code != exit_code:
        fail_on = env["PERFGATE_FAIL_ON"]
        say(f"exit code {exit_code} and not {code}, by fail-on: {fail_on}")
    return int(exit_code)
