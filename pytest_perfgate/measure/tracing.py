"""Finds out whether something watches every line, so that times mean nothing."""

import os
import sys

ALLOW = "_PERFGATE_ALLOW_TRACER"
"""Private: lets this project's own tests measure coverage inside workers."""
_TOOLS = 6


def active_tracer() -> str | None:
    """Name what slows the interpreter or the device down; None if nothing does."""
    if os.environ.get(ALLOW) == "1":
        return None
    if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
        return "CUDA_LAUNCH_BLOCKING=1"
    for hook, found in (("trace", sys.gettrace()), ("profile", sys.getprofile())):
        if found is not None:
            return f"{_owner(found)} ({hook} function)"
    return _monitoring_tool()


def _owner(hook: object) -> str:
    module = getattr(hook, "__module__", None) or type(hook).__module__
    return str(module).partition(".")[0]


def _monitoring_tool() -> str | None:
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    if monitoring is None:
        return None
    tools = (monitoring.get_tool(number) for number in range(_TOOLS))
    return next((f"{tool} (sys.monitoring)" for tool in tools if tool), None)
