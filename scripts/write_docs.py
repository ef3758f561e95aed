"""Write the pages that are generated from the code: docs/options.md."""

from itertools import groupby
from pathlib import Path

from pytest_perfgate.options import MARKER_ONLY, OPTIONS, Option

PAGE = Path(__file__).resolve().parent.parent / "docs" / "options.md"
HEAD = """# Options

Each option has one name in four places: the flag `--perfgate-name`, the ini
value `perfgate_name` (in pytest's own configuration), the keyword `name` of
`@pytest.mark.perfgate` where it makes sense for one benchmark, and this page.
The marker wins over the command line, which wins over the ini value.

This page is generated from the table in `pytest_perfgate/options.py`
(`make docs`).
"""
FOOT = """
In `pyproject.toml` lists and quoted values work with every pytest:

```toml
[tool.pytest.ini_options]
perfgate_runs = "3:12"
perfgate_budget = ["5%", "benches/slow/*:median=10%"]
```

On one benchmark, or on a class or module of them (`pytestmark`):

```python
# benches/bench_marked.py
import pytest


@pytest.mark.perfgate(budget={"median": "3%", "p99": "8%"}, max_time=0.5)
def bench_marked(perfgate):
    perfgate(sum, range(1000))
```
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def row(option: Option) -> str:
    flag = option.flag + (f" {option.metavar}" if option.metavar else "")
    ini = f"`{option.dest}`" if option.ini else "–"
    keyword = f"`{option.keyword}`" if option.marker else "–"
    default = f"`{option.default}`" if option.default else "–"
    return f"| `{cell(flag)}` | {ini} | {keyword} | {default} | {cell(option.help)} |"


def page() -> str:
    lines = [HEAD]
    for group, options in groupby(OPTIONS, key=lambda option: option.group):
        lines += [
            f"## {group}\n",
            "| flag | ini | marker | default | |",
            "| --- | --- | --- | --- | --- |",
            *map(row, options),
            "",
        ]
    lines += ["## Marker only\n", "| keyword | |", "| --- | --- |"]
    lines += [f"| `{name}` | {cell(text)} |" for name, text in MARKER_ONLY]
    return "\n".join(lines) + "\n" + FOOT


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
