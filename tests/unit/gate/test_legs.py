"""Which reports are attempts of one leg, and which of them counts."""

from pytest_perfgate.gate.legs import Broken, latest
from tests.unit.gate.reports import environment, part, renamed, result

LEG = part(result("a"), result("b"))


def sources(parts):
    return [one.source for one in parts]


def at(folder, **changes):
    return renamed(LEG, f"all/{folder}/report.json", **changes)


def test_the_highest_attempt_wins_as_a_number():
    parts = [at("perfgate-gpu-10"), at("perfgate-gpu-9"), at("perfgate-cpu-1")]
    kept, _, notes = latest(parts)
    assert sources(kept) == [
        "all/perfgate-cpu-1/report.json",
        "all/perfgate-gpu-10/report.json",
    ]
    (note,) = notes
    assert note == (
        "all/perfgate-gpu-9/report.json (attempt 9 of gpu) is left out:"
        " attempt 10 counts, all/perfgate-gpu-10/report.json"
    )


def test_of_one_attempt_the_newer_report_counts():
    old = at("perfgate-gpu-1", created="2026-11-02T09:00:00Z")
    new = renamed(old, "more/perfgate-gpu-1/x/report.json", created="2026-11-03")
    for order in ([old, new], [new, old]):
        kept, _, (note,) = latest(order)
        assert sources(kept) == [new.source]
        assert "(attempt 1 made 2026-11-02T09:00:00Z of gpu) is left out" in note


def test_a_folder_that_tells_nothing_is_a_leg_of_its_own():
    parts = [at("shard-1"), at("shard-2"), at("perfgate-1"), at("perfgate-2")]
    kept, _, notes = latest(parts)
    assert (len(kept), notes) == (4, ())


def test_what_the_latest_attempt_lacks_is_not_lost():
    other = part(result("c"), source="all/perfgate-gpu-1/report.json")
    kept, _, (note,) = latest([at("perfgate-gpu-2"), other])
    assert len(kept) == 2
    assert "which lacks 1 of its benchmarks" in note


def test_the_same_names_on_another_machine_are_others():
    elsewhere = at("perfgate-gpu-1", environment=environment("h2"))
    kept, _, (note,) = latest([at("perfgate-gpu-2"), elsewhere])
    assert len(kept) == 2
    assert "lacks 2 of its benchmarks" in note


def broken(folder):
    return Broken(source=f"all/{folder}/report.json", problem="cut off", exit_code=1)


def test_a_later_attempt_stands_for_a_report_that_cannot_be_used():
    bad = broken("perfgate-gpu-1")
    kept, left, (note,) = latest([at("perfgate-gpu-2")], [bad])
    assert (len(kept), left) == (1, ())
    assert "cannot be used (cut off), and is left out: attempt 2 counts" in note


def test_no_other_report_does():
    later, unknown = broken("perfgate-gpu-3"), broken("x")
    parts = [at("perfgate-gpu-2"), at("y")]
    _, left, notes = latest(parts, [later, unknown])
    assert (left, notes) == ((later, unknown), ())
