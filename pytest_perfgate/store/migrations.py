"""Old formats to the current one, one version at a time.

A step takes the parsed JSON of version n and returns that of version n + 1; it
need not touch `schema_version`. Both formats are at their first version, so
that there is no step yet. When the meaning of a field changes: raise the
version, add a line to the history at the top of `codec.py`, put the step here,
and leave the golden file of the old version where it is.
"""

from collections.abc import Callable, Mapping

from pytest_perfgate.errors import BaselineCorrupt
from pytest_perfgate.store.fields import Json

Step = Callable[[Json], Json]

BASELINE_VERSION = 1
REPORT_VERSION = 1

BASELINE_STEPS: Mapping[int, Step] = {}
REPORT_STEPS: Mapping[int, Step] = {}


def migrate(
    tree: Json, *, version: int, current: int, steps: Mapping[int, Step]
) -> Json:
    """Bring parsed JSON from `version` to `current`; the tree is left as it was.

    Raises
    ------
    BaselineCorrupt
        Where a step on the way is missing, so that the version never existed.
    """
    for number in range(version, current):
        if number not in steps:
            raise BaselineCorrupt(f"schema_version: there never was a version {number}")
        tree = {**steps[number](dict(tree)), "schema_version": number + 1}
    return tree
