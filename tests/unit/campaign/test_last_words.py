"""What is shown of a worker's end."""

from pytest_perfgate.campaign.last_words import last_words

CRASH = """\
============================= test session starts ==============================
rootdir: /project
collected 3 items

benches/bench_a.py .Fatal Python error: Segmentation fault

Current thread 0x00007f58 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/project/benches/bench_a.py", line 19 in bench_segfault
  File "/venv/lib/python3.11/site-packages/_pytest/python.py", line 187 in runtest
  File "/venv/lib/python3.11/site-packages/pluggy/_callers.py", line 77 in _multicall
  File "/venv/lib/python3.11/site-packages/pytest/__main__.py", line 9 in <module>
  File "<frozen runpy>", line 88 in _run_code

Extension modules: numpy._core (total: 1)
"""


def log(tmp_path, text):
    path = tmp_path / "log"
    path.write_bytes(text.encode())
    return path


def test_a_crash_shows_its_stack_and_not_the_machinery(tmp_path):
    text = last_words(log(tmp_path, CRASH))
    assert "collected 3 items" in text
    assert "Fatal Python error: Segmentation fault" in text
    assert 'bench_a.py", line 19 in bench_segfault' in text
    for noise in ("_pytest", "pluggy", "runpy", "Extension modules"):
        assert noise not in text


def test_the_last_of_several_stacks_counts(tmp_path):
    again = CRASH.replace("bench_segfault", "bench_later")
    text = last_words(log(tmp_path, CRASH + "\n" * 9 + again))
    assert "bench_later" in text
    assert "bench_segfault" not in text


def test_a_deep_stack_keeps_its_innermost_frames(tmp_path):
    frames = "\n".join(f'  File "/project/a.py", line {n} in f{n}' for n in range(200))
    text = last_words(log(tmp_path, f"Fatal Python error: Aborted\n{frames}\n"))
    assert "line 0 in f0\n" in text
    assert "f199" not in text
    assert text.endswith("… and 171 more lines")


def test_without_a_stack_the_last_lines_are_shown(tmp_path):
    text = last_words(log(tmp_path, "\n".join(f"line {n}" for n in range(100))))
    assert text.splitlines() == [f"line {n}" for n in range(70, 100)]


def test_any_bytes_can_be_shown(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"\xff\xfe raw")
    assert last_words(path) == "�� raw"
    path.write_bytes(b"")
    assert last_words(path) == ""
