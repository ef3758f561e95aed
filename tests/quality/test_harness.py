"""The validation harness: counts, peers' rules, cache and page."""

import json

import numpy as np
import pytest

from tests.quality import __main__ as harness
from tests.quality import page
from tests.quality.designs import DESIGNS, LAWS, Iterations
from tests.quality.figures import Mean, Share, decode, encode, exact_interval
from tests.quality.peers import RULES
from tests.quality.study import study_tail


def test_intervals_of_shares_are_clopper_and_pearsons():
    assert exact_interval(0, 100) == pytest.approx((0.0, 0.0362), abs=1e-4)
    assert exact_interval(5, 100) == pytest.approx((0.0164, 0.1128), abs=1e-4)
    assert exact_interval(100, 100) == pytest.approx((0.9638, 1.0), abs=1e-4)


def test_figures_add_up_and_survive_storage():
    parts = [np.array([1.0, 2.0]), np.array([4.0])]
    mean = Mean.of(parts[0]) + Mean.of(parts[1])
    assert mean.value == pytest.approx(7 / 3)
    share = Share.of(np.array([True, False])) + Share.of(np.array([True]))
    assert (share.hits, share.total) == (2, 3)
    for figure in (mean, share):
        assert decode(json.loads(json.dumps(encode(figure)))) == figure


def samples(level, *, seed, iterations=None):
    rng = np.random.default_rng(seed)
    drawn = iterations or Iterations(correlation=0.0)
    return drawn.draw(rng, np.log(np.full((40, 10), level)))


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_other_tools_see_half_as_slow_again_and_not_half_as_fast(rule):
    base = samples(100.0, seed=1)
    assert rule(base, samples(150.0, seed=2)).all()
    assert not rule(base, samples(60.0, seed=3)).any()


def test_other_tools_take_the_offset_of_one_process_for_a_regression():
    base, now = samples(100.0, seed=1), samples(103.0, seed=2)
    for name in ("Mann–Whitney on iterations", "Criterion, beyond +1 %"):
        assert RULES[name](base, now).mean() > 0.5
    for name in ("pytest-benchmark, median:5%", "asv continuous"):
        assert RULES[name](base, now).mean() < 0.1


@pytest.mark.parametrize("name", LAWS)
def test_iterations_have_the_spread_and_the_likeness_that_are_asked_for(name):
    _, law = LAWS[name]
    drawn = law.draw(np.random.default_rng(0), np.zeros((400, 5)))
    assert np.exp(np.median(np.log(drawn))) == pytest.approx(1.0, abs=0.02)
    if name in {"independent", "alike", "very-alike"}:
        logs = np.log(drawn)
        assert logs.std() == pytest.approx(law.sd, rel=0.05)
        near = np.mean(logs[..., 1:] * logs[..., :-1]) / logs.var()
        assert near == pytest.approx(law.correlation, abs=0.03)
    if law.tick:
        assert np.allclose(drawn / law.tick, np.round(drawn / law.tick))


@pytest.mark.slow
def test_a_finished_study_is_not_made_again(tmp_path, monkeypatch, capsys):
    arguments = ["--divide", "200", "--processes", "1", "--only", "normal-1"]
    arguments += ["--only", "paired-1", "--only", "go-order", "--cache", str(tmp_path)]
    arguments += ["--out", str(tmp_path / "page.md")]
    assert harness.main(arguments) == 0
    assert "normal-1: done" in capsys.readouterr().err
    first = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert harness.main(arguments) == 0
    told = capsys.readouterr().err
    # what has no data here is asked for again, what is finished is not
    assert told == "go-order: no data here\n"
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == first
    monkeypatch.setattr(harness, "digest", lambda _: "changed code")
    assert harness.main(arguments) == 0
    assert "normal-1: done" in capsys.readouterr().err
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == first


def test_the_page_says_what_is_not_met():
    bad = {
        "normal-3": {
            page.CALMER: {"regressed@0.1": Share(hits=10, total=1000)},
            page.WITH_BASE: {"regressed@0.1": Share(hits=990, total=1000)},
        },
        "normal-1": {page.CALMER: {"regressed@0.1": Share(hits=995, total=1000)}},
    }
    text = page.write(bad)
    lines = {line.split(" | ")[0]: line for line in text.splitlines()}
    assert lines["| `regressed` at 10 %, run sd 3 %"].endswith("**not met** |")
    assert lines["| `regressed` at 10 %, run sd 1 / 2 %"].endswith(
        "met, the interval reaches beyond |"
    )
    assert "not measured here" in text
    assert "Not on this machine: left out." in text


def test_every_design_and_law_has_a_place_on_the_page():
    assert {name for name in DESIGNS if not DESIGNS[name].title} == set()
    tasks = harness.tasks(None, 1)
    assert {*DESIGNS, *(f"law-{name}" for name in LAWS), "tail"} <= tasks.keys()


@pytest.mark.slow
def test_a_tail_alone_is_seen_and_identical_tails_are_not():
    rows = study_tail("slice", total=60)
    for rule in (page.WITH_BASE, page.STORED):
        assert rows[rule]["regressed@0"].hits == 0
        assert rows[rule]["passed@0.2"].hits == 0
    assert rows[page.WITH_BASE]["regressed@0.3"].value > 0.5
