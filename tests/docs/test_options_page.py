"""The options page says what the table says."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_the_table():
    spec = importlib.util.spec_from_file_location(
        "write_docs", ROOT / "scripts" / "write_docs.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert written == module.page(), "run `make docs`"
