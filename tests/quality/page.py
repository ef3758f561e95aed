"""`docs/validation.md`, written from the figures of finished studies."""

from tests.quality import page_names
from tests.quality.designs import DESIGNS, LAWS
from tests.quality.study import CALMER, PAIRED, STORED, WITH_BASE

CONTENDED_RESAMPLED, CONTENDED_ORDER = page_names.CONTENDED
GO_RESAMPLED, GO_ORDER = page_names.GO

INTRODUCTION = """\
# Validation of the decision rule

How often the gate is wrong, and how often it sees what it must. `python -m tests.quality`
writes this page; every figure is a share of comparisons in percent, or a mean, with its
95 % interval (Clopper and Pearson's; for means the normal one). All draws are seeded, so
that the same code writes the same page.

The rule that is tried here is the gate's own. The estimators are written down a second
time for whole arrays, and a test holds both against each other, verdict by verdict; all
that follows from an estimate (levels, bounds, looks, confirmation) is the same code. Each
comparison goes the way that a session goes: looks after 3, 6 and 12 candidate runs, or
after 5, 8 and 12 pairs, against ten baseline runs of one session, budget 5 %, 300 metrics
a suite; then five fresh runs for what was flagged.

Words: *regressed* is the final verdict, after confirmation; *passed* is `unchanged` or
`improved`; what is neither is `inconclusive`. A *false alarm* is `regressed` on identical
code, a *wrong pass* is `passed` at +10 %, twice the budget.
"""

RULES_TEXT = """\
## The rules in the tables

- **{with_base}**: what was flagged or is suspect is measured again in five
  fresh pairs of base and candidate. The pairs are drawn as if their halves had nothing
  in common: the least that alternation can do.
- **{calmer}**: the same, where alternation halves the variance of
  the difference, so that a pair's sd is that of one run. On a contended machine pairs in
  turns of 20 ms did better than that for compiled code.
- **{stored}**: five fresh candidate runs against the stored runs.
- **{paired}**: runs made in pairs from the start.
- **pytest-benchmark** `--benchmark-compare-fail=median:5%`: one stored process against
  one new, red beyond 5 %.
- **pyperf** `compare_to`: Student's t at 95 % on all values pooled, three a process.
- **asv** `continuous`: a factor of 1.1 and a U test below 0.002 on two processes a side.
- **benchstat**: a U test below 0.05 on ten values of one process, as `-count=10` gives.
- **Criterion**: a hundred samples of one process, the 95 % interval beyond +1 %.
- **Mann–Whitney**: a U test below 0.05 on all 200 iterations of one process.

The other tools' rules are restated from their documentation in `tests/quality/peers.py`.
They judge samples of the same worlds: 200 iterations a run, sd 5 %, neighbours alike (AR
0.5). They know no `inconclusive`: what is not called slower passes.
"""


class Page:
    """Looks figures up, and writes them in tables."""

    def __init__(self, results):
        self.results = results

    def get(self, name, rule, figure):
        return self.results.get(name, {}).get(rule, {}).get(figure)


def write(results):
    """Give the whole page as text."""
    page = Page(results)
    parts = [
        INTRODUCTION,
        promises(page),
        RULES_TEXT.format(
            with_base=WITH_BASE, calmer=CALMER, stored=STORED, paired=PAIRED
        ),
        "## Simulated suites\n",
        *(
            design_section(page, name, design.title, effects=(0, *design.effects))
            for name, design in DESIGNS.items()
            if name in results
        ),
        laws(page),
        tail(page),
        trends(page),
        contended(page),
        go_rounds(page),
        series(page),
        SCOPE,
    ]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


# tables -----------------------------------------------------------------------


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def cell(figure):
    return "–" if figure is None else str(figure)


def effect_text(effect):
    return "identical" if effect == 0 else f"+{100 * effect:g} %"


def design_section(page, name, title, *, effects, double=0.1):
    """Write one design: a table of all rules, and one of the gate's finer steps.

    Parameters
    ----------
    double : the effect of twice the budget, where nothing may pass
    """
    rules = page.results[name]
    finer = [effect for effect in effects if effect and effect != double]
    ours = {rule: row for rule, row in rules.items() if rule.startswith("perfgate")}
    parts = [
        f"### {title[0].upper()}{title[1:]}\n",
        figures_table(rules, main_columns(double)),
    ]
    if finer:
        parts.append(figures_table(ours, finer_columns(finer)))
    return "\n".join(parts)


def figures_table(rules, columns):
    shown = [
        (text, key)
        for text, key in columns
        if any(key in figures for figures in rules.values())
    ]
    rows = [
        [rule, *(cell(figures.get(key)) for _, key in shown)]
        for rule, figures in rules.items()
    ]
    return table(["rule", *(text for text, _ in shown)], rows)


def main_columns(double):
    text = effect_text(double)
    return [
        ("false alarms", "regressed@0"),
        ("suites with one", "suites"),
        ("inconclusive, identical", "inconclusive@0"),
        ("mean runs, identical", "runs@0"),
        (f"detected, {text}", f"regressed@{double:g}"),
        (f"wrong passes, {text}", f"passed@{double:g}"),
        (f"inconclusive, {text}", f"inconclusive@{double:g}"),
        (f"of these suspect, {text}", f"suspect@{double:g}"),
        (f"mean runs, {text}", f"runs@{double:g}"),
    ]


def finer_columns(effects):
    return [
        (f"{word}, {effect_text(effect)}", f"{key}@{effect:g}")
        for effect in effects
        for word, key in (("regressed", "regressed"), ("passed", "passed"))
    ]


# what was promised ------------------------------------------------------------


class Line:
    """One promise: figures that must stay on one side of a bound."""

    def __init__(self, text, target, bound, places, *, most=True, note=""):
        self.text, self.target, self.bound = text, target, bound
        self.places, self.most, self.note = places, most, note

    def row(self, page):
        found = [
            (label, figure)
            for label, *place in self.places
            if (figure := page.get(*place)) is not None
        ]
        if not found:
            return [self.text, self.target, "not measured here", "–"]
        reached = "; ".join(f"{label} {figure}".strip() for label, figure in found)
        note = f". {self.note}" if self.note else ""
        return [self.text, self.target, reached + note, self._met(found)]

    def _met(self, found):
        """Judge the figure itself; its interval says how sure that is."""
        if self.most:
            met = all(figure.value <= self.bound for _, figure in found)
            # of what must not happen at all, not once is all there is to see
            sure = not self.bound or all(
                figure.interval[1] <= self.bound for _, figure in found
            )
        else:
            met = all(figure.value >= self.bound for _, figure in found)
            sure = all(figure.interval[0] >= self.bound for _, figure in found)
        if not met:
            return "**not met**"
        return "met" if sure else "met, the interval reaches beyond"


def _places(names, rules, figure):
    return [
        (", ".join(filter(None, (names[name], label))), name, rule, figure)
        for name in names
        for label, rule in rules.items()
    ]


EITHER = {"with base code": WITH_BASE, "stored": STORED}
GENTLE = {
    "normal-1": "normal",
    "unlike-0.8": "unlike",
    "skewed-2": "skewed",
    "session-quarter": "session ¼",
}
HARD = {"bimodal": "bimodal", "noisy": "sd 10–25 %"}
ALL = {
    "normal-1": "sd 1 %",
    "normal-2": "2 %",
    "normal-3": "3 %",
    "unlike-0.8": "unlike",
    "skewed-2": "skewed",
    "session-quarter": "session ¼",
    "bimodal": "bimodal",
}
BASE_ONLY = {"": WITH_BASE}
PAIRS = {"paired-1": "paired 1 %", "paired-3": "paired 3 %"}

LINES = (
    Line(
        "suites of identical code with any `regressed`: normal, unlike benchmarks,"
        " skewed, session sd ≤ ¼ run sd",
        "≤ 1 %",
        0.01,
        _places(GENTLE, EITHER, "suites"),
    ),
    Line(
        "the same, bimodal or run sd 10–25 %",
        "≤ 1 %",
        0.01,
        _places(HARD, EITHER, "suites"),
    ),
    Line(
        "3,000 very noisy metrics a suite",
        "≤ 1 %",
        0.01,
        _places({"noisy-3000": ""}, EITHER, "suites"),
    ),
    Line(
        "`regressed` exactly at the budget",
        "≤ 5 %",
        0.05,
        [
            *_places(ALL, BASE_ONLY, "regressed@0.05"),
            *_places(PAIRS, {"": PAIRED}, "regressed@0.05"),
        ],
    ),
    Line(
        "`unchanged` exactly at the budget",
        "≤ 5 %",
        0.05,
        [
            *_places(ALL, BASE_ONLY, "passed@0.05"),
            *_places(PAIRS, {"": PAIRED}, "passed@0.05"),
        ],
    ),
    Line(
        "`unchanged` at one and a half times the budget",
        "≤ 0.5 %",
        0.005,
        _places(ALL, BASE_ONLY, "passed@0.075"),
    ),
    Line(
        "`unchanged` at twice the budget",
        "≤ 0.1 %",
        0.001,
        [
            *_places(ALL, BASE_ONLY, "passed@0.1"),
            *_places(PAIRS, {"": PAIRED}, "passed@0.1"),
        ],
    ),
    Line(
        "`regressed` at 10 %, run sd 1 / 2 %",
        "≥ 99 %",
        0.99,
        _places({"normal-1": "1 %", "normal-2": "2 %"}, {"": CALMER}, "regressed@0.1"),
        most=False,
    ),
    Line(
        "`regressed` at 10 %, run sd 3 %",
        "≥ 90 %",
        0.90,
        _places({"normal-3": "3 %"}, {"": CALMER}, "regressed@0.1"),
        most=False,
    ),
    Line(
        "`regressed` at 7.5 %, run sd 1 %",
        "≥ 99 %",
        0.99,
        _places({"normal-1": "1 %"}, {"": CALMER}, "regressed@0.075"),
        most=False,
    ),
    Line(
        "`regressed` at 7.5 %, run sd 2 %",
        "≥ 80 %",
        0.80,
        _places({"normal-2": "2 %"}, {"": CALMER}, "regressed@0.075"),
        most=False,
    ),
    Line(
        "`regressed` at 10 %, run sd 3 %, where alternation cancels nothing and a pair's"
        " sd is √2 of a run's",
        "≥ 90 %",
        0.90,
        _places({"normal-3": "3 %"}, {"": WITH_BASE}, "regressed@0.1"),
        most=False,
        note="Screening flags enough; five pairs twice as noisy confirm fewer of them."
        " What is not confirmed stays inconclusive",
    ),
    Line(
        "`regressed` at 7.5 %, run sd 2 %, where alternation cancels nothing",
        "≥ 80 %",
        0.80,
        _places({"normal-2": "2 %"}, {"": WITH_BASE}, "regressed@0.075"),
        most=False,
        note="As above",
    ),
    Line(
        "paired, pair sd 1 %: `regressed` at 6 %",
        "≥ 90 %",
        0.90,
        _places({"paired-1": ""}, {"": PAIRED}, "regressed@0.06"),
        most=False,
    ),
    Line(
        "paired, pair sd 1 %: `regressed` at 10 %",
        "≥ 99 %",
        0.99,
        _places({"paired-1": ""}, {"": PAIRED}, "regressed@0.1"),
        most=False,
    ),
    Line(
        "paired, pair sd 3 %: `regressed` at 10 %",
        "≥ 95 %",
        0.95,
        _places({"paired-3": ""}, {"": PAIRED}, "regressed@0.1"),
        most=False,
    ),
    Line(
        "mean candidate runs on identical code, run sd ≤ 1 %",
        "≤ 3.5",
        3.5,
        _places({"normal-0.3": "0.3 %", "normal-1": "1 %"}, BASE_ONLY, "runs@0"),
    ),
    Line(
        "unlike benchmarks, median sd 1.6 %: pass on identical code, log-sd 0.8",
        "≥ 82 %",
        0.82,
        _places({"unlike-0.8": ""}, BASE_ONLY, "passed@0"),
        most=False,
    ),
    Line(
        "the same where they are more unlike, log-sd 1.0",
        "≥ 82 %",
        0.82,
        _places({"unlike-1.0": ""}, BASE_ONLY, "passed@0"),
        most=False,
        note="A fifth of these benchmarks have a run sd beyond 3.8 %, from which on"
        " ten and twelve runs cannot tell identical code from 5 %",
    ),
    Line(
        "public Go rounds: confirmed false alarms",
        "0 in 10⁵",
        0.0,
        _places(
            {GO_RESAMPLED: "resampled", GO_ORDER: "in order"}, EITHER, "regressed@0"
        ),
    ),
    Line(
        "public Go rounds: pass on identical code",
        "≥ 93 %",
        0.93,
        _places(
            {GO_RESAMPLED: "resampled", GO_ORDER: "in order"}, BASE_ONLY, "passed@0"
        ),
        most=False,
    ),
    Line(
        "public Go rounds: `regressed` at 10 %",
        "≥ 90 %",
        0.90,
        _places(
            {GO_RESAMPLED: "resampled", GO_ORDER: "in order"},
            BASE_ONLY,
            "regressed@0.1",
        ),
        most=False,
    ),
    Line(
        "contended machine, identical code: `regressed`",
        "0",
        0.0,
        [
            (f"{name}, {text}, {label}", f"{name}-{kind}", rule, "regressed@0")
            for name in ("mlp", "tfm")
            for text, kind in (
                ("resampled", CONTENDED_RESAMPLED),
                ("in order", CONTENDED_ORDER),
            )
            for label, rule in EITHER.items()
        ],
    ),
    Line(
        "contended machine, 10 % slower, resampled: `regressed` with base code",
        "≥ 95 %",
        0.95,
        [
            (name, f"{name}-{CONTENDED_RESAMPLED}", WITH_BASE, "regressed@0.1")
            for name in ("mlp", "tfm")
        ],
        most=False,
    ),
    Line(
        "the same without fresh base runs: `inconclusive: suspect`",
        "≥ 95 %",
        0.95,
        [
            (name, f"{name}-{CONTENDED_RESAMPLED}", STORED, "suspect@0.1")
            for name in ("mlp", "tfm")
        ],
        most=False,
    ),
    Line(
        "interval coverage, normal runs, one session: nominal within two points",
        "≤ 2 points off",
        0.02,
        [(f"{runs} runs", "coverage", f"{runs} runs", "off") for runs in (3, 6, 12)],
    ),
)


def promises(page):
    rows = [line.row(page) for line in LINES]
    missed = [row[0] for row in rows if "not met" in row[3]]
    verdict = (
        f"{len(rows) - len(missed)} of {len(rows)} lines are met."
        + (" Not met, with the reason beside the figure: " if missed else "")
        + "; ".join(missed)
        + ("." if missed else "")
    )
    return (
        "## What the rule must show, line by line\n\n"
        + table(["what", "target", "reached", "met?"], rows)
        + f"\n{verdict}\n"
    )


# the other sections -----------------------------------------------------------


def laws(page):
    parts = [
        design_section(page, f"law-{name}", title, effects=(0, 0.05, 0.10))
        for name, (title, _) in LAWS.items()
        if f"law-{name}" in page.results
    ]
    if not parts:
        return ""
    text = (
        "## Iterations of many kinds\n\nHere the iterations themselves are drawn, 200 a"
        " run, and their median is judged as a median of real iterations is. Processes"
        " differ by 1 %.\n"
    )
    return "\n".join([text, *parts])


def tail(page):
    if "tail" not in page.results:
        return ""
    text = (
        "## A tail that gets slower alone\n\nP99 of 400 iterations of which 2 % take"
        " half as long again, budget 10 %; only the slowest 3 % of iterations get"
        " slower. +10 % is exactly at the budget.\n"
    )
    section = design_section(
        page, "tail", "P99, budget 10 %", effects=(0, 0.1, 0.2, 0.3), double=0.2
    )
    return f"{text}\n{section}"


def trends(page):
    parts = [
        design_section(page, name, title, effects=(0, 0.1))
        for name, title in page_names.WARMTH.items()
        if name in page.results
    ]
    text = (
        "## Runs that are not steady\n\nIterations as above, independent, 200 a run;"
        " here the gate itself reduces and judges them, and looks for trends within"
        " runs. Where most runs have one, the verdict is `inconclusive: not-steady`"
        " unless the whole interval lies beyond twice the budget.\n"
    )
    return "\n".join([text, *parts]) if parts else ""


def contended(page):
    names = [
        (f"{name}-{kind}", f"`{name}`, {text}")
        for name in ("mlp", "tfm")
        for kind, text in (
            (CONTENDED_RESAMPLED, "resampled"),
            (CONTENDED_ORDER, "in order of time"),
        )
    ]
    parts = [
        design_section(page, name, title, effects=(0, 0.1))
        for name, title in names
        if name in page.results
    ]
    text = (
        "## A contended machine\n\nTwo torch benchmarks of identical code, sixty"
        " processes each, on a machine of two cores that others wanted as well"
        " (`tests/data/contended`). The medians of processes differ by 14 to 17 %, the"
        " floors by about 1 %. Ten runs are the baseline, twelve the candidate, five"
        " and five the fresh pairs; slower code is the same times scaled. Judged is"
        " the whole benchmark by the gate itself: median, P99 where it can be, and the"
        " floor as a witness. Without fresh base runs the floor can do no more than"
        " accuse: `inconclusive: suspect`. In order of time this machine's speed"
        " itself moved between baseline and candidate by more than the budget, which"
        " is why stored comparisons on such machines are not safe, and pairs are.\n"
    )
    return "\n".join([text, *parts]) if parts else ""


def go_rounds(page):
    text = (
        "## Public Go rounds\n\nIdentical Go code measured round after round on four"
        " cloud hosts, from the replication package of *Predicting unstable software"
        " benchmarks using static source code features* (Laaber, Basmaci and Salza;"
        " `sealuzh/benchmark-instability-prediction-replication-package` at commit"
        " fa6202cd, CC BY 4.0). A round is a fresh process and counts as a run. Used are"
        " the benchmarks with 32 rounds or more; slower code is the same times scaled.\n"
    )
    parts = [
        design_section(page, name, title, effects=(0, 0.05, 0.075, 0.10))
        for name, title in (
            (GO_RESAMPLED, "rounds drawn at random"),
            (GO_ORDER, "rounds in order of time"),
        )
        if name in page.results
    ]
    if not parts:
        return f"{text}\nNot on this machine: left out.\n"
    return "\n".join([text, *parts])


def series(page):
    rules = page.results.get(page_names.SERIES)
    if not rules:
        return ""
    keys = ("still", "changed")
    rows = [
        [name, *(cell(figures.get(key)) for key in keys)]
        for name, figures in rules.items()
    ]
    return (
        "## Labelled series\n\nOne value a commit, from the tests of apache/otava"
        " (1ceb1537, Apache-2.0), mongodb/signal-processing-algorithms (aec099a9,"
        " Apache-2.0) and mozilla/treeherder (dc3080dd, MPL-2.0), with the places where"
        " those projects expect a change. The gate is not made for series: it has no"
        " runs of one commit, and nothing to confirm with. Ten values before a place are"
        " taken for the baseline and twelve after it for the candidate. *Flagged* is"
        " before any confirmation, slower or faster.\n\n"
        + table(["series", "flagged, no change inside", "flagged, at a change"], rows)
    )


SCOPE = """\
## What this does not show

- The 1 % for a whole suite holds where a session differs from the next by no more than a
  quarter of what runs differ by. Confirmed by fresh pairs it held up to one run sd of
  2 %, since both halves of a pair share their session. From a stored baseline alone it
  did not: see the table of session sd equal to the run sd. On machines that drift more
  than that, compare in pairs.
- A change between the budget and what the gate can see is mostly `inconclusive`, by
  intent: neither verdict would be honest.
- Simulated runs are independent of each other. Real ones are as far as sessions keep
  still; the two recorded data sets are what there is to say about that here.
"""
