"""Stop performance regressions of GPU and ML code before they merge.

PYTEST_DONT_REWRITE: the base worker of a pair imports this before pytest.
"""

__version__ = "0.1.0"
