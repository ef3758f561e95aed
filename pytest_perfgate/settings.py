"""Options, ini values and marker keywords as objects, checked.

Strings travel (pytest keeps them, reports show them); here they become
numbers, once, with errors that name the option as the user wrote it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pytest_perfgate import units
from pytest_perfgate.errors import UsageError
from pytest_perfgate.gate.looks import planned_looks
from pytest_perfgate.gate.policy import parse_budget, parse_limit
from pytest_perfgate.interop import pytest_benchmark
from pytest_perfgate.marker_values import cache_of, flag_of, names_of, table_of
from pytest_perfgate.measured import HOT, Plan
from pytest_perfgate.options import MARKER_KEYWORDS, OPTIONS, Option

MARKER = "perfgate"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Against which code of the past the candidate is measured, and how."""

    against: str | None = None
    """A git ref: everything is measured in pairs with its merge base."""
    confirm: str | None = None
    """A git ref: only what looks slower than stored is."""
    interleave: str = "block"
    python: str | None = None
    setup: str | None = None
    overlay: tuple[str, ...] = ()

    @property
    def ref(self) -> str | None:
        return self.against or self.confirm


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds for a whole session."""

    rootdir: Path
    baselines: Path
    report: Path
    budgets: tuple[str, ...]
    anchor_budgets: tuple[str, ...]
    limits: tuple[str, ...]
    on_missing: str
    on_inconclusive: str
    runs_min: int
    runs_max: int
    iterations: int | None
    max_time_s: float
    warmup: int | None
    timeout_s: float
    max_total_s: float | None
    seed: int
    device: str
    slowdown: float
    lock_clocks: bool
    update: bool
    force: bool
    pairing: Pairing
    explain: str
    given: Mapping[str, str]
    """The options as the user gave them, for the report."""

    @property
    def paired(self) -> bool:
        """Whether everything is measured in pairs with the base tree."""
        return self.pairing.against is not None and not self.update

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of runs, or of pairs, after which benchmarks are judged."""
        return planned_looks(self.runs_min, self.runs_max, paired=self.paired)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSettings:
    """What holds for one benchmark: the session's values under its markers."""

    nodeid: str
    budget: Mapping[str, str] | str | None
    limit: Mapping[str, str] | str | None
    metrics: tuple[str, ...] | None
    gate: bool
    isolate: bool
    counts: bool | None
    """True: even where a test says how many calls are made; None: unless it does."""
    iterations: int | None
    max_time_s: float
    warmup: int | None
    timeout_s: float
    seed: int
    inner_loop: int | None
    cache: str = HOT
    hide_launch: bool = False

    def keeps(self, plan: Plan) -> bool:
        """Whether what the user says leaves a stored plan as it is.

        A CPU is measured hot, whatever is said.
        """
        if plan.workload.startswith(pytest_benchmark.KIND) or plan.device == "cpu":
            return self.agrees_with(plan)
        return self.agrees_with(plan) and self.cache == plan.cache

    def agrees_with(self, plan: Plan) -> bool:
        """Whether what the user says of the numbers that a plan governs is in it."""
        if plan.workload.startswith(pytest_benchmark.KIND):
            return True  # it goes by options of its own
        return (
            self.iterations in {None, plan.iterations}
            and self.warmup in {None, plan.warmup}
            and self.inner_loop in {None, plan.inner_loop}
        )

    anchor_budget: Mapping[str, str] | str | None = None


def resolve(config: pytest.Config) -> Settings:
    """Read flags and ini values of a session.

    Raises
    ------
    UsageError
        Naming the option, its value, and what may stand there.
    """
    text = {option.keyword: _text(config, option) for option in OPTIONS}
    runs_min, runs_max = _option("runs", text["runs"], _runs)
    return Settings(
        rootdir=config.rootpath,
        baselines=config.rootpath / text["baselines"],
        report=config.rootpath / text["report"],
        budgets=tuple(_specs(config, "budget", parse_budget)),
        anchor_budgets=tuple(_specs(config, "anchor_budget", parse_budget)),
        limits=tuple(_specs(config, "limit", parse_limit)),
        on_missing=text["on_missing"],
        on_inconclusive=text["on_inconclusive"],
        runs_min=runs_min,
        runs_max=runs_max,
        iterations=_optional("iterations", text["iterations"], _whole),
        max_time_s=_option("max-time", text["max_time"], _seconds),
        warmup=_option("warmup", text["warmup"], _warm),
        timeout_s=_option("timeout", text["timeout"], _seconds),
        max_total_s=_optional("max-total", text["max_total"], _seconds),
        seed=_option("seed", text["seed"], _seed),
        device=text["device"],
        slowdown=_optional("slowdown", text["slowdown"], units.parse_fraction) or 0.0,
        lock_clocks=bool(config.getoption("perfgate_lock_clocks")),
        update=bool(
            config.getoption("perfgate_update")
            or config.getoption("perfgate_update_force")
        ),
        force=bool(config.getoption("perfgate_update_force")),
        pairing=_pairing(config, text),
        explain=text["explain"],
        given=dict(_given(config)),
    )


def _pairing(config: pytest.Config, text: Mapping[str, str]) -> Pairing:
    """Read how the base tree is measured; refuse what contradicts itself."""
    found = Pairing(
        against=text["against"] or None,
        confirm=text["confirm"] or None,
        interleave=text["interleave"],
        python=text["base_python"] or None,
        setup=text["base_setup"] or None,
        overlay=tuple(_lines(config, "overlay")),
    )
    updating = config.getoption("perfgate_update") or config.getoption(
        "perfgate_update_force"
    )
    for name, ref in (("against", found.against), ("confirm", found.confirm)):
        if ref is not None and ref.startswith("-"):
            raise UsageError(
                f"--perfgate-{name}={ref!r} is no git ref; write --perfgate-{name}=main"
            )
        if updating and config.getoption(f"perfgate_{name}"):
            raise UsageError(
                f"--perfgate-{name} judges and --perfgate-update records: drop one"
            )
    return _one_of_both(config, found)


def _one_of_both(config: pytest.Config, found: Pairing) -> Pairing:
    """Let the flag outweigh the ini where both ways of pairing are named."""
    if not (found.against and found.confirm):
        return found
    flags = {
        name: config.getoption(f"perfgate_{name}") for name in ("against", "confirm")
    }
    if all(flags.values()) or not any(flags.values()):
        raise UsageError(
            f"--perfgate-against={found.against!r} and "
            f"--perfgate-confirm={found.confirm!r} exclude each other: the first "
            "measures everything in pairs, the second what looks slower than stored"
        )
    if flags["against"]:
        return replace(found, confirm=None)
    return replace(found, against=None)


def _raw(config: pytest.Config, option: Option) -> object:
    """Return the flag's value, else the ini value, else None."""
    value = config.getoption(option.dest)
    if value in (None, []) and option.ini:
        value = config.getini(option.dest)
    return None if value in (None, [], "") else value


def _text(config: pytest.Config, option: Option) -> str:
    if config.getoption(option.dest) in ("", [""]):  # an unset variable of a script
        raise UsageError(f"{option.flag}='' is empty; give it a value, or drop it")
    value = _raw(config, option)
    text = option.default if value is None else str(value)
    if option.choices and text not in option.choices:
        raise UsageError(
            f"{option.flag}={text!r} is not one of {', '.join(option.choices)}"
        )
    return text


def _lines(config: pytest.Config, name: str) -> Iterator[str]:
    """Yield a repeatable option's values, ini first: later ones win."""
    yield from config.getini(f"perfgate_{name}") or ()
    yield from config.getoption(f"perfgate_{name}") or ()


def _specs(
    config: pytest.Config, name: str, parse: Callable[..., object]
) -> Iterator[str]:
    """Yield them after reading each once, whether or not a benchmark wants it."""
    for spec in _lines(config, name):
        parse(spec, name=f"--perfgate-{name.replace('_', '-')}")
        yield spec


def _given(config: pytest.Config) -> Iterator[tuple[str, str]]:
    for option in OPTIONS:
        if option.repeatable:
            value: object = " ".join(_lines(config, option.keyword))
        else:
            value = _raw(config, option)
        if value not in (None, False, ""):
            yield option.flag, str(value)


def _parsed(name: str, text: object, parse: Callable[[str], T]) -> T:
    """Parse one value; the error names it as the user wrote it."""
    where = f"{name}={str(text)!r}"
    try:
        return parse(str(text))
    except UsageError as error:  # units begin with "value='…'"
        told = str(error).removeprefix(f"value={str(text)!r} ")
        raise UsageError(f"{where} {told}") from None
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None


def _option(name: str, text: str, parse: Callable[[str], T]) -> T:
    return _parsed(f"--perfgate-{name}", text, parse)


def _optional(name: str, text: str, parse: Callable[[str], T]) -> T | None:
    return _option(name, text, parse) if text else None


def _runs(text: str) -> tuple[int, int]:
    return units.parse_runs(text, name="value")


def _whole(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError("write a whole number from 1 up")
    return int(text)


def _seed(text: str) -> int:
    if not text.strip().isdecimal() or int(text) >= 2**32:
        raise ValueError("write a whole number from 0 to 4294967295")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = units.parse_duration(text)
    if not 0 < seconds < float("inf"):
        raise ValueError("write seconds above 0, as in 3 or 500ms")
    return seconds


def _warm(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.strip().isdecimal():
        raise ValueError("write auto or a whole number from 0 up")
    return int(text)


def item_settings(item: pytest.Item, settings: Settings) -> ItemSettings:
    """Lay a benchmark's markers over the session's settings.

    Raises
    ------
    UsageError
        For a positional argument, an unknown keyword, or a value that cannot
        be read, naming the benchmark.
    """
    given = _keywords(item)
    try:
        return _overlaid(item.nodeid, given, settings)
    except UsageError as error:
        raise UsageError(f"{item.nodeid}: {error}") from None


def _keywords(item: pytest.Item) -> dict[str, Any]:
    """Merge the markers of module, class and function; the closest wins."""
    merged: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(MARKER))):
        _check_keywords(item.nodeid, mark)
        for name, value in mark.kwargs.items():
            below = merged.get(name)
            if isinstance(below, dict) and isinstance(value, dict):
                merged[name] = {**below, **value}
            else:
                merged[name] = value
    return merged


def _check_keywords(nodeid: str, mark: pytest.Mark) -> None:
    if mark.args:
        raise UsageError(
            f"{nodeid}: @pytest.mark.perfgate takes keywords only, got {mark.args!r}"
        )
    for name in mark.kwargs:
        if name not in MARKER_KEYWORDS:
            known = ", ".join(sorted(MARKER_KEYWORDS))
            raise UsageError(
                f"{nodeid}: @pytest.mark.perfgate has no keyword {name!r}; it knows {known}"
            )


def _overlaid(
    nodeid: str, given: Mapping[str, Any], settings: Settings
) -> ItemSettings:
    def pick(name: str, parse: Callable[[str], T], otherwise: T) -> T:
        return _parsed(name, given[name], parse) if name in given else otherwise

    return ItemSettings(
        nodeid=nodeid,
        budget=table_of("budget", given.get("budget")),
        anchor_budget=table_of("anchor_budget", given.get("anchor_budget")),
        limit=table_of("limit", given.get("limit")),
        metrics=names_of(given.get("metrics")),
        gate=flag_of("gate", given.get("gate", True)),
        isolate=flag_of("isolate", given.get("isolate", False)),
        counts=flag_of("counts", given["counts"]) if "counts" in given else None,
        iterations=pick("iterations", _whole, settings.iterations),
        max_time_s=pick("max_time", _seconds, settings.max_time_s),
        warmup=pick("warmup", _warm, settings.warmup),
        timeout_s=pick("timeout", _seconds, settings.timeout_s),
        seed=pick("seed", _seed, settings.seed),
        inner_loop=pick("inner_loop", _whole, None),
        cache=cache_of(given),
        hide_launch=flag_of("hide_launch", given.get("hide_launch", False)),
    )
