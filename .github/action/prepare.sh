#!/usr/bin/env bash
# First step of the action: finds a Python that can run prepare.py.
set -euo pipefail

if [ "${PERFGATE_MODE:-all}" != comment ]; then
  # whatever stops the action before there is a report is an error, not a pass
  echo "verdict=error" >> "$GITHUB_OUTPUT"
fi

recent() {
  "$@" -c 'import sys; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1
}

read -ra given <<< "${PERFGATE_PYTHON:-}"
for candidate in python python3; do
  if recent "$candidate"; then
    exec "$candidate" -I "$GITHUB_ACTION_PATH/.github/action/prepare.py"
  fi
done
# the command of a tool that brings its own Python; not asked where there is
# another, because it may run what the checkout says
if [ "${#given[@]}" -gt 0 ] && [ "${GITHUB_EVENT_NAME:-}" != pull_request_target ] &&
  recent "${given[@]}"; then
  exec "${given[@]}" -I "$GITHUB_ACTION_PATH/.github/action/prepare.py"
fi
echo "::error title=pytest-perfgate::there is no Python 3.11 or newer on PATH as python or python3; add a step with actions/setup-python before this one, or install Python on this self-hosted runner and name it with the input 'python'"
exit 4
