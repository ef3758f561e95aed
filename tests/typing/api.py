"""Public usage that mypy --strict must accept; never run."""

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import pytest

from pytest_perfgate import __version__
from pytest_perfgate.api import compare, load_report
from pytest_perfgate.fixture import PerfGate
from pytest_perfgate.model import Comparison, Judgement, Outcome, Reason, Report


def word_count(text: str, *, lower: bool = False) -> int:
    return len((text.lower() if lower else text).split())


def bench_call(perfgate: PerfGate) -> None:
    assert_type(perfgate(word_count, "a b", lower=True), int)
    assert_type(perfgate(word_count, "a b", name="second"), int)


def bench_inference(perfgate: PerfGate) -> None:
    output = perfgate.inference(word_count, "a b", batch_size=2, tokens=2, name="n")
    assert_type(output, int)


def bench_train(perfgate: PerfGate) -> None:
    def batches() -> Iterator[tuple[str, str]]:
        yield "a", "b"

    for loader in (batches, [("a", "b")] * 4, None):
        perfgate.training_step(
            word_count, object(), word_count, ("a", "b"), batch_size=1, loader=loader
        )


def bench_chat(perfgate: PerfGate) -> None:
    def stream(prompt: str) -> Iterator[list[int]]:
        yield [len(prompt)]

    replies = perfgate.generation(stream, ["a", "b"])
    assert_type(replies, list[list[int]])


@pytest.mark.perfgate(budget={"median": "3%"}, limit={"p99": "<=150ms"}, gate=False)
def bench_loop(perfgate: PerfGate) -> None:
    for number in perfgate.iterations():
        assert_type(number, int)
        with perfgate.stage("count"):
            word_count("a")


def bench_record(perfgate: PerfGate) -> None:
    perfgate.record("wait", [0.1, 0.2], unit="s", better="lower")
    perfgate.record("calls", (3,), unit="1", better="lower", exact=True)


def in_a_notebook(folder: Path) -> str:
    report = load_report(folder)
    assert_type(report, Report)
    assert_type(load_report("report.json"), Report)
    for result in report.results:
        assert_type(result.verdict.outcome, Outcome)
    judgement = compare([[1.0, 2.0]], [[1.0, 2.0]], budget="5%", statistic="p99")
    assert_type(judgement, Judgement)
    assert_type(judgement.outcome, Outcome)
    assert_type(judgement.reason, Reason)
    assert_type(judgement.comparison, Comparison | None)
    compare([[1.0]], [[1.0]], budget=0.1, confirmation=[[1.0]], paired=True)
    compare([[1.0]], [[1.0]], confirmation=([[1.0]], [[1.0]]), better="higher")
    return __version__
