"""What torch compiles, seen through a make-believe compiler's callbacks."""

import sys
import types

import pytest

from pytest_perfgate.measure.compile_watch import BreakBook, watching_compiles


class Compiler:
    """Calls who wants to know, and counts as torch._dynamo does."""

    def __init__(self):
        self.start, self.end = [], []
        self.counters = {"graph_break": {}, "stats": {"unique_graphs": 0}}
        self.register_start_callback = self.start.append
        self.register_end_callback = self.end.append
        self.remove_start_callback = self.start.remove
        self.remove_end_callback = self.end.remove

    def compile(self, name, *, breaks=0, graph=True, trigger="DYNAMO"):
        event = types.SimpleNamespace(
            callback_trigger=types.SimpleNamespace(name=trigger), compile_id=name
        )
        for callback in self.start:
            callback(event)
        found = self.counters["graph_break"]
        found["print"] = found.get("print", 0) + breaks
        self.counters["stats"]["unique_graphs"] += graph
        for callback in self.end:
            callback(event)


@pytest.fixture
def compiler():
    return Compiler()


@pytest.fixture
def imported(monkeypatch, compiler):
    def do():
        callback = types.SimpleNamespace(callback_handler=compiler)
        utils = types.SimpleNamespace(counters=compiler.counters)
        monkeypatch.setitem(sys.modules, "torch._dynamo.callback", callback)
        monkeypatch.setitem(sys.modules, "torch._dynamo.utils", utils)

    monkeypatch.delitem(sys.modules, "torch._dynamo.callback", raising=False)
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils", raising=False)
    return do


@pytest.mark.usefixtures("imported")
def test_without_a_compiler_nothing_is_compiled():
    with watching_compiles() as seen:
        pass
    assert seen.count == 0


def test_only_what_is_compiled_within_counts(compiler, imported):
    imported()
    compiler.compile("0/0")
    with watching_compiles() as seen:
        compiler.compile("0/1")
        compiler.compile("0/1", trigger="LAZY_BACKWARD")
    compiler.compile("0/2")
    assert seen.count == 1
    assert not compiler.start


def test_a_failing_body_leaves_no_callback_behind(compiler, imported):
    imported()
    with pytest.raises(KeyError), watching_compiles():
        raise KeyError
    assert not compiler.start


def test_a_compiler_imported_within_is_asked_for_its_own_count(compiler, imported):
    with watching_compiles() as seen:
        imported()
        compiler.compile("0/0")
    assert seen.count == 1


def test_breaks_belong_to_the_graphs_that_a_call_runs(compiler, imported):
    imported()
    book = BreakBook()
    book.open()
    book.open()  # once is enough
    compiler.compile("0/0", breaks=2)
    compiler.compile("1/0")
    assert book.of(frozenset({"0/0", "1/0"})) == 2
    assert book.of(frozenset({"1/0"})) == 0
    book.close()
    book.close()
    assert not compiler.start
    assert not compiler.end


def test_a_break_before_the_first_operator_is_the_next_graphs(compiler, imported):
    imported()
    book = BreakBook()
    book.open()
    compiler.compile("0/0", breaks=1, graph=False)
    compiler.compile("1/0")
    compiler.compile("2/0")
    assert book.of(frozenset({"1/0"})) == 1
    assert book.of(frozenset({"2/0"})) == 0


def test_graphs_compiled_before_the_book_was_opened(compiler, imported):
    imported()
    compiler.compile("0/0")
    book = BreakBook()
    book.open()
    assert book.of(frozenset({"0/0"})) == 0  # there was no break at all
    compiler.counters["graph_break"]["print"] = 1
    late = BreakBook()
    late.open()
    assert late.of(frozenset({"0/0"})) is None
    assert late.of(frozenset()) == 0


def test_a_book_that_was_never_opened(compiler, imported):
    book = BreakBook()
    book.open()
    assert book.of(frozenset()) == 0
    imported()
    compiler.compile("0/0", breaks=1)
    assert book.of(frozenset({"0/0"})) is None
