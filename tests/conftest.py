"""What several kinds of tests need."""

pytest_plugins = ["pytester"]
