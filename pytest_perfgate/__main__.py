"""`python -m pytest_perfgate` is the `perfgate` command."""

import sys

from pytest_perfgate.cli import main

sys.exit(main())
