"""A training step with its loader, as a user sees it: in real workers."""

SOURCE = """
import pytest


class Net:
    def __call__(self, batch):
        return self

    def zero_grad(self, *, set_to_none):
        pass

    def backward(self):
        pass

    def step(self):
        pass

    def detach(self):
        return 0.5


def batches():
    for number in range(40):
        if number == FAILS_AT:
            raise OSError("no such shard")
        yield number, number


def bench_train(perfgate):
    net = Net()
    perfgate.training_step(net, net, lambda *_: net, (1, 1), loader=batches)
"""
BENCH = "benches/bench_a.py::bench_train"
QUICK = ("--perfgate-runs=3:3", "--perfgate-iterations=20", "--perfgate-warmup=3")


def source(fails_at):
    return SOURCE.replace("FAILS_AT", str(fails_at))


def means(project, name):
    (result,) = project.report["results"]
    return [
        judgement
        for judgement in result["judgements"]
        if judgement["metric"]["name"] == name
    ]


def test_loading_is_shown_and_gated_where_it_is_named(project):
    project.bench(source(None))
    law = {"parts": {"loader": 0.0}}
    project.device({BENCH: law})
    project.adopt("benches", *QUICK)
    session = project.run(*QUICK, "-v", "benches")
    assert session.ret == 0
    session.stdout.fnmatch_lines(["*data_share*", "*loader_rate*", "*loader_wait*"])
    # the step as it was, and a loader that takes as long again
    project.device({BENCH: {"parts": {"loader": 1.0}}}, salt=1)
    assert project.run(*QUICK, "benches").ret == 0
    session = project.run(*QUICK, "--perfgate-budget=data_share=+5%", "benches")
    assert session.ret == 1
    session.stdout.fnmatch_lines(["regressed: data_share·mean +0.*allowed +0.05"])
    session = project.run(*QUICK, "--perfgate-limit=data_share<=10%", "benches")
    assert session.ret == 1
    session.stdout.fnmatch_lines(["*data_share·mean*<= 0.1*regressed: over-limit"])
    (judged,) = [found for found in means(project, "data_share") if found["bound"]]
    assert judged["verdict"]["reason"] == "over-limit"


def test_a_share_of_nothing_is_unchanged(project):
    project.bench(source(None))
    project.device({BENCH: {"parts": {"loader": 0.0}}})
    project.adopt("benches", *QUICK)
    # the steps on the loader's batches come out no slower than the timed ones
    session = project.run(*QUICK, "--perfgate-budget=data_share=+5%", "benches")
    assert session.ret == 0
    (judged,) = means(project, "data_share")
    assert judged["verdict"]["outcome"] == "unchanged"
    assert 0 <= judged["comparison"]["candidate"] < 0.05


def test_an_error_of_the_loader_is_that_of_the_benchmark(project):
    project.bench(source(7))
    session = project.run(*QUICK, "benches")
    assert session.ret == 1
    assert project.outcomes == {BENCH: ("error", "body-raised")}
    session.stdout.fnmatch_lines(
        ["*no such shard*", "*drawing batch 7 of the loader*", "*bench_a.py*OSError*"]
    )
