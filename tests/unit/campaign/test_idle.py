"""Budgets and limits of metrics that nothing measured."""

import types

import pytest

from pytest_perfgate.campaign.idle import idle_metrics

MEASURED = {"latency", "graph_breaks", "syncs"}


@pytest.fixture
def notes():
    def of(*, budgets=(), limits=(), typed=(), measured=MEASURED):
        settings = types.SimpleNamespace(
            budgets=budgets, limits=limits, anchor_budgets=()
        )
        return list(idle_metrics(settings, measured, {"--perfgate-budget": typed}))

    return of


def test_a_slip_is_told_wherever_it_stands(notes):
    assert notes(budgets=("graph_break=+0",)) == [
        (
            "--perfgate-budget='graph_break=+0': nothing measured graph_break;"
            " is graph_breaks meant?"
        )
    ]


def test_what_is_typed_is_told_of_even_if_nothing_is_near(notes):
    spec = "kernel_launches=+0"
    assert notes(budgets=(spec,), typed=(spec,)) == [
        "--perfgate-budget='kernel_launches=+0': nothing measured kernel_launches"
    ]


def test_an_ini_file_may_speak_of_other_benchmarks(notes):
    assert notes(budgets=("kernel_launches=+0",), limits=("mfu>=0.4",)) == []


def test_limits_too(notes):
    assert "is syncs meant" in notes(limits=("sync<=3",))[0]


def test_what_is_measured_or_names_no_metric_needs_no_word(notes):
    assert notes(budgets=("5%", "p99=10%", "syncs=+0")) == []


def test_where_nothing_was_measured_there_is_no_telling(notes):
    assert notes(budgets=("graph_break=+0",), measured=()) == []
