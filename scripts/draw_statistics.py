"""Draw the pictures of docs/statistics.md, from the package's own functions.

Nothing is random: what looks like noise is a sequence that fills the normal
distribution evenly, so that the files are the same wherever they are made.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import NormalDist, median

from pytest_perfgate.api import compare
from pytest_perfgate.stats.interval import detectable, two_samples

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "img"
WIDTH = 760
GOLDEN = (math.sqrt(5) - 1) / 2
JITTER = math.sqrt(2) - 1
STYLE = """
text { font: 14px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1c2128; }
.faint { fill: #5c6570; } .small { font-size: 12.5px; } .strong { font-weight: 600; }
.rule { stroke: #d9dde3; } .axis { stroke: #5c6570; } .dot { fill: #3a5a8c; fill-opacity: .45; }
.level { stroke: #b3261e; stroke-width: 2.5; } .budget { stroke: #b3261e; stroke-dasharray: 5 4; }
.bad { fill: #b3261e; } .good { fill: #1a6e36; } .doubt { fill: #8a5a00; }
.bar { stroke: #3a5a8c; stroke-width: 4; stroke-linecap: round; } .estimate { fill: #3a5a8c; }
.line { fill: none; stroke-width: 2.5; }
"""


def normal(count: int, *, start: float = 0.5) -> list[float]:
    """Fill the standard normal distribution evenly, in an order that looks random."""
    law = NormalDist()
    return [law.inv_cdf((start + n * GOLDEN) % 1 or 0.5) for n in range(count)]


def text(
    x: float, y: float, words: str, *, css: str = "", anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{css}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css}"/>'
    )


def dot(x: float, y: float, *, radius: float = 3, css: str = "dot") -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{css}"/>'


def key(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def picture(height: int, title: str, parts: Iterator[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img">'
    )
    # a page of its own, so that it can be read on a dark one as well
    sheet = f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>'
    body = "\n".join(parts)
    return (
        f"{head}\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
        f"{sheet}\n{body}\n</svg>\n"
    )


# two sides of three processes, all of the same code -----------------------------

PROCESS_SD, ITERATION_SD, ITERATIONS = 0.02, 0.004, 70
STRIPS_LEFT, STRIPS_RIGHT = 120, 720
SLOWEST_MS, FASTEST_MS = 1.055, 0.965


def strips() -> str:
    """Show that each process agrees with itself more than with the others."""
    return picture(330, "Six processes of the same code", _strips())


def _strips() -> Iterator[str]:
    yield text(24, 34, "Six processes of the same code, 70 calls each", css="strong")
    for tick in (0.98, 1.0, 1.02, 1.04):
        x = _strip_x(tick)
        yield line(x, 56, x, 278, "rule")
        yield text(x, 298, f"{tick:.2f} ms", css="faint small", anchor="middle")
    levels = [1 + PROCESS_SD * z for z in (0.35, -0.8, 0.1, 1.5, -0.3, 0.9)]
    for row, level in enumerate(levels):
        y = 76 + 37 * row
        noise = normal(ITERATIONS, start=0.13 * (row + 1))
        calls = [level * math.exp(ITERATION_SD * z) for z in noise]
        for number, call in enumerate(calls):
            yield dot(_strip_x(call), y + 20 * ((number * JITTER) % 1 - 0.5))
        middle = _strip_x(median(calls))
        yield line(middle, y - 13, middle, y + 13, "level")
        yield text(24, y + 5, f"process {row + 1}", css="faint")
    yield text(
        24,
        320,
        "Red: the median of each process. It is one number a run, and all the gate counts.",
        css="small",
    )


def _strip_x(value_ms: float) -> float:
    share = (value_ms - FASTEST_MS) / (SLOWEST_MS - FASTEST_MS)
    return STRIPS_LEFT + share * (STRIPS_RIGHT - STRIPS_LEFT)


# intervals and the budget -------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Case:
    """One benchmark as it might come out."""

    change: float
    sd: float
    meaning: str


BUDGET = 0.05
CASES = (
    Case(change=0.005, sd=0.012, meaning="wholly below the budget: proven"),
    Case(change=-0.08, sd=0.012, meaning="wholly on the better side: proven"),
    Case(change=0.12, sd=0.015, meaning="wholly beyond it: confirmed by fresh runs"),
    Case(change=0.02, sd=0.06, meaning="both are possible: more runs, or less noise"),
    Case(change=0.075, sd=0.03, meaning="looks slower, and is not proven"),
)
CHANGE_LEFT, CHANGE_RIGHT = 40, 460
LOWEST, HIGHEST = -0.12, 0.16


def runs_of(change: float, sd: float, count: int) -> list[list[float]]:
    """Make runs whose spread between processes is just so."""
    noise = normal(count)
    mean = sum(noise) / count
    size = math.sqrt(sum((z - mean) ** 2 for z in noise) / (count - 1))
    return [[(1 + change) * math.exp(sd * (z - mean) / size)] * 3 for z in noise]


def verdicts() -> str:
    """Each verdict is read from the two ends of an interval."""
    return picture(365, "Five intervals and their verdicts", _verdicts())


def _verdicts() -> Iterator[str]:
    yield text(
        24, 34, "Where the interval lies decides, not the dot in it", css="strong"
    )
    for tick in (-0.10, -0.05, 0.0, 0.05, 0.10, 0.15):
        x = _change_x(tick)
        css = "budget" if tick == BUDGET else "axis" if tick == 0 else "rule"
        yield line(x, 62, x, 308, css)
        words = "no change" if tick == 0 else f"{tick:+.0%}".replace("%", " %")
        yield text(x, 326, words, css="faint small", anchor="middle")
    yield text(_change_x(BUDGET), 54, "budget", css="bad small", anchor="middle")
    for row, case in enumerate(CASES):
        yield from _verdict_row(case, 86 + 48 * row)
    yield text(
        24,
        352,
        "Ten baseline runs against twelve new ones; every verdict is the gate's own.",
        css="faint small",
    )


def judged(case: Case):  # noqa: ANN201 (a Judgement)
    """Judge a case with as many runs as a last look has, and five fresh ones."""
    return compare(
        runs_of(0.0, case.sd, 10),
        runs_of(case.change, case.sd, 12),
        confirmation=runs_of(case.change, case.sd, 5),
    )


def _verdict_row(case: Case, y: float) -> Iterator[str]:
    found = judged(case)
    numbers = found.comparison
    low = max(numbers.low - 1, LOWEST)
    high = min(numbers.high - 1, HIGHEST)
    yield line(_change_x(low), y, _change_x(high), y, "bar")
    yield dot(_change_x(numbers.ratio - 1), y, radius=6, css="estimate")
    css = {"unchanged": "good", "improved": "good", "regressed": "bad"}
    words = str(found.outcome)
    if found.reason in {"suspect", "too-noisy"}:
        words = f"{found.outcome}: {found.reason}"
    colour = css.get(found.outcome, "doubt")
    yield text(485, y, words, css=f"{colour} strong")
    yield text(485, y + 17, case.meaning, css="faint small")


def _change_x(change: float) -> float:
    share = (change - LOWEST) / (HIGHEST - LOWEST)
    return CHANGE_LEFT + share * (CHANGE_RIGHT - CHANGE_LEFT)


# what can be seen ---------------------------------------------------------------

SPREADS = {
    0.005: "#1a6e36",
    0.01: "#3a5a8c",
    0.02: "#8a5a00",
    0.03: "#a34a8c",
    0.05: "#b3261e",
}
MOST_RUNS = 24
LABEL_GAP = 17
SIGHT_LEFT, SIGHT_RIGHT, SIGHT_TOP, SIGHT_BOTTOM = 70, 590, 60, 330
SIGHT_LOWEST, SIGHT_HIGHEST = 0.04, 0.21


def sees(spread: float, runs: int, *, baseline: int = 10) -> float:
    """Give the smallest slowdown that so many runs see in 95 of 100 sessions.

    One stored session of ten runs and the default budget, as after a first
    `--perfgate-update`.
    """
    pattern = [values[0] for values in runs_of(0.0, spread, baseline)]
    logs = [math.log(value) for value in pattern]
    found = two_samples([logs], logs)
    return math.expm1(detectable(found, theta=math.log1p(BUDGET), runs=runs))


def sight() -> str:
    """More runs help, and less noise helps more."""
    return picture(400, "What the gate can see", _sight())


def _sight() -> Iterator[str]:
    yield text(
        24, 34, "The smallest slowdown that is seen in 95 of 100 sessions", css="strong"
    )
    for tick in (0.05, 0.10, 0.15, 0.20):
        y = _sight_y(tick)
        yield line(
            SIGHT_LEFT, y, SIGHT_RIGHT, y, "budget" if tick == BUDGET else "rule"
        )
        yield text(
            SIGHT_LEFT - 10,
            y + 4,
            f"{tick:.0%}".replace("%", " %"),
            css="faint small",
            anchor="end",
        )
    for runs in (3, 6, 12, 18, 24):
        yield text(
            _sight_x(runs),
            SIGHT_BOTTOM + 20,
            f"{runs}",
            css="faint small",
            anchor="middle",
        )
    yield text(
        (SIGHT_LEFT + SIGHT_RIGHT) / 2,
        SIGHT_BOTTOM + 42,
        "new runs, against ten baseline runs",
        css="faint small",
        anchor="middle",
    )
    yield text(SIGHT_LEFT + 6, _sight_y(BUDGET) + 16, "budget", css="bad small")
    label = math.inf
    for spread, colour in reversed(SPREADS.items()):
        points = " ".join(
            f"{_sight_x(runs):.1f},{_sight_y(sees(spread, runs)):.1f}"
            for runs in range(3, MOST_RUNS + 1)
        )
        yield f'<polyline points="{points}" class="line" stroke="{colour}"/>'
    for spread, colour in SPREADS.items():
        label = min(_sight_y(sees(spread, MOST_RUNS)) + 4, label - LABEL_GAP)
        yield key(SIGHT_RIGHT + 14, label - 4, colour)
        yield text(
            SIGHT_RIGHT + 24, label, f"runs differ by {spread * 100:g} %", css="small"
        )


def _sight_x(runs: float) -> float:
    share = (runs - 3) / (MOST_RUNS - 3)
    return SIGHT_LEFT + share * (SIGHT_RIGHT - SIGHT_LEFT)


def _sight_y(change: float) -> float:
    share = (change - SIGHT_LOWEST) / (SIGHT_HIGHEST - SIGHT_LOWEST)
    return SIGHT_BOTTOM - share * (SIGHT_BOTTOM - SIGHT_TOP)


PICTURES = {"processes.svg": strips, "verdicts.svg": verdicts, "sight.svg": sight}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
    for spread in SPREADS:
        print(
            f"{spread:.1%}", *(f"{sees(spread, runs):.1%}" for runs in (3, 6, 12, 24))
        )
