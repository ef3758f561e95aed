"""Each option once: flag, ini name, marker keyword, default and help.

PYTEST_DONT_REWRITE: nothing here is worth the cost of rewriting asserts.

The module is imported by every pytest start, so it holds plain tuples and
nothing that needs an import. `settings` turns the strings into objects.
"""

from typing import NamedTuple


class Option(NamedTuple):
    """One option, under one name in all four places."""

    name: str
    """`runs` → `--perfgate-runs`, ini `perfgate_runs`, keyword `runs`."""
    metavar: str | None
    """None for a flag that takes no value."""
    default: str
    help: str
    group: str
    ini: bool = True
    marker: bool = False
    repeatable: bool = False
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        return f"--perfgate-{self.name}" if self.name else "--perfgate"

    @property
    def dest(self) -> str:
        return f"perfgate_{self.name.replace('-', '_')}" if self.name else "perfgate"

    @property
    def keyword(self) -> str:
        return self.name.replace("-", "_")


JUDGING, MEASURING, PAIRING, REPORTING = (
    "Judging",
    "Measuring",
    "Pairing",
    "Reports",
)

OPTIONS: tuple[Option, ...] = (
    Option(
        "",
        None,
        "",
        "measure the benchmarks, and only them, and judge them against their baselines",
        JUDGING,
        ini=False,
    ),
    Option(
        "update",
        None,
        "",
        "with --perfgate: record what is measured as baselines (ten runs of one session)",
        JUDGING,
        ini=False,
    ),
    Option(
        "update-force",
        None,
        "",
        "like --perfgate-update, and add the session also where the data cannot tell",
        JUDGING,
        ini=False,
    ),
    Option(
        "against",
        "REF",
        "",
        "judge against the merge base of REF and HEAD, measured side by side on this "
        "machine; stored baselines are not looked at",
        JUDGING,
    ),
    Option(
        "confirm",
        "REF",
        "",
        "judge against stored baselines, and measure what looks slower once more in "
        "pairs with the merge base of REF and HEAD before it goes red",
        JUDGING,
    ),
    Option(
        "baselines",
        "DIR",
        "baselines",
        "folder of the baselines, relative to rootdir",
        JUDGING,
    ),
    Option(
        "budget",
        "SPEC",
        "",
        "how much worse a statistic may get: 5%, p99=10%, peak_memory=2%, "
        "benches/slow/*:median=10% (repeatable)",
        JUDGING,
        marker=True,
        repeatable=True,
    ),
    Option(
        "anchor-budget",
        "SPEC",
        "",
        "how much worse it may get since the anchor, the first session of its baseline: "
        "20%, p99=40% (repeatable); without it three times the budget",
        JUDGING,
        marker=True,
        repeatable=True,
    ),
    Option(
        "limit",
        "SPEC",
        "",
        "absolute bound: p99<=150ms, throughput>=500/s, benches/chat/*:ttft.p99<=1s (repeatable)",
        JUDGING,
        marker=True,
        repeatable=True,
    ),
    Option(
        "on-missing",
        "fail|warn",
        "fail",
        "what a benchmark without a baseline on this hardware does",
        JUDGING,
        choices=("fail", "warn"),
    ),
    Option(
        "on-inconclusive",
        "fail|warn",
        "warn",
        "what a benchmark does whose data cannot tell",
        JUDGING,
        choices=("fail", "warn"),
    ),
    Option(
        "runs",
        "MIN[:MAX]",
        "3:12",
        "processes for each benchmark: at least MIN, and up to MAX while undecided",
        MEASURING,
    ),
    Option(
        "iterations",
        "N",
        "",
        "iterations for each run; without it as the baseline's plan says, or as many as fit",
        MEASURING,
        marker=True,
    ),
    Option(
        "max-time",
        "S",
        "3",
        "seconds of samples for each benchmark and run, where no plan says otherwise",
        MEASURING,
        marker=True,
    ),
    Option(
        "warmup",
        "N|auto",
        "auto",
        "iterations before the measured ones; auto: until they are steady",
        MEASURING,
        marker=True,
    ),
    Option(
        "timeout",
        "S",
        "300",
        "seconds after which a benchmark's run is taken for hung and ended",
        MEASURING,
        marker=True,
    ),
    Option(
        "max-total",
        "S",
        "",
        "seconds for the whole session; what is undecided then is inconclusive: out-of-time",
        MEASURING,
    ),
    Option(
        "seed",
        "N",
        "0",
        "seed of the order of benchmarks and of random, numpy and torch in each",
        MEASURING,
        marker=True,
    ),
    Option(
        "device",
        "auto|cpu|cuda[:N]",
        "auto",
        "the device that is measured",
        MEASURING,
    ),
    Option(
        "lock-clocks",
        None,
        "",
        "lock the GPU's clocks at its base clock while measuring, and give them back: "
        "as root, from Volta on",
        MEASURING,
        ini=False,
    ),
    Option(
        "slowdown",
        "X%",
        "",
        "plant a real slowdown in every measured call: the canary that shows the gate go red",
        MEASURING,
        ini=False,
    ),
    Option(
        "interleave",
        "block|run",
        "block",
        "how two trees alternate: in turns of about 20 ms, or whole runs (where both "
        "do not fit into the device's memory together)",
        PAIRING,
        choices=("block", "run"),
    ),
    Option(
        "base-python",
        "PATH",
        "",
        "the Python that measures the base tree; without it the one that runs pytest",
        PAIRING,
    ),
    Option(
        "base-setup",
        "CMD",
        "",
        "a command run in the base tree before it is measured, as in 'make -C native'",
        PAIRING,
    ),
    Option(
        "overlay",
        "PATH",
        "",
        "one more file or folder the base tree gets from the candidate, relative to "
        "rootdir (repeatable)",
        PAIRING,
        repeatable=True,
    ),
    Option(
        "report",
        "DIR",
        ".perfgate/last",
        "folder for the workers' records, raw samples and report.json, relative to rootdir",
        REPORTING,
    ),
    Option(
        "explain",
        "auto|always|never",
        "auto",
        "say what changed with a benchmark: counts, operators, clocks, versions, commits; "
        "auto: for what regressed; always: for all that was judged",
        REPORTING,
        choices=("auto", "always", "never"),
    ),
)

MARKER_ONLY: tuple[tuple[str, str], ...] = (
    ("metrics", "a tuple of the metrics to judge; without it all that have a budget"),
    ("gate", "False: measure and show, never fail the build"),
    ("isolate", "True: a process of its own in every run"),
    (
        "counts",
        (
            "False: take no counts, for which some more calls are made; "
            "True: take them of benchmark.pedantic, too"
        ),
    ),
    (
        "inner_loop",
        (
            "calls for each sample, for functions of less than a microsecond; else one, "
            "or as many as a GPU needs that is done with one in under 50 microseconds"
        ),
    ),
    (
        "cache",
        (
            "'flush': displace what the GPU's L2 cache holds before each sample; "
            "'hot' (the default): a call finds what the one before left there"
        ),
    ),
    (
        "hide_launch",
        "True: `device_period` is that of a queue which a GPU begins when all is launched",
    ),
)
"""Keywords of the marker that make no sense for a whole session."""

MARKER_KEYWORDS: tuple[str, ...] = (
    *(option.keyword for option in OPTIONS if option.marker),
    *(name for name, _ in MARKER_ONLY),
)
