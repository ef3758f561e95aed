"""Run one step of the action with the action's own code.

The interpreter is the user's, and may hold another version of the package, or
one that a pull request chose; only what it depends on is taken from there.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pytest_perfgate.cli import main

sys.exit(main(["action", *sys.argv[1:]]))
