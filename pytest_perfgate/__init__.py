"""Stop performance regressions of GPU and ML code before they merge."""

__version__ = "0.1.0"
