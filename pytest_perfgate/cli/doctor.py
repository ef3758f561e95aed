"""`perfgate doctor`: is this machine fit to judge, and how small a change can it see."""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pytest_perfgate.errors import PerfGateError, UsageError
from pytest_perfgate.gate.budgets import DEFAULT_BUDGET
from pytest_perfgate.gate.sight import Sight, paired_sight, stored_sight
from pytest_perfgate.measure.device import resolve_device
from pytest_perfgate.measure.device_lock import DeviceLock
from pytest_perfgate.measure.examine import (
    Finding,
    State,
    examine_cpu,
    examine_gpu,
    examine_gpu_at_work,
    examine_turns,
)
from pytest_perfgate.measure.health import Telemetry
from pytest_perfgate.measure.nvml import (
    Gpu,
    driver_version,
    packaging_hint,
    visible_gpus,
)
from pytest_perfgate.measure.nvml_telemetry import SilentTelemetry, manager_telemetry
from pytest_perfgate.measure.side_by_side import Pair, measure_pairs

FIT, UNFIT = 0, 12
_QUICK_S = 8.0
_TOO_COARSE = 2 * DEFAULT_BUDGET
"""Who sees nothing smaller than twice the budget cannot hold it."""
_MARKS = {State.GOOD: "ok   ", State.WARN: "warn ", State.UNFIT: "unfit"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """Everything that was found out."""

    device: str
    findings: tuple[Finding, ...]
    pairs: tuple[Pair, ...] = ()

    @property
    def why_unfit(self) -> tuple[str, ...]:
        return tuple(
            f"{finding.name}: {finding.value}"
            for finding in self.findings
            if finding.state is State.UNFIT
        )


def add(commands: Any) -> None:  # noqa: ANN401 (argparse keeps the type private)
    """Add the command to those of the parser."""
    parser = commands.add_parser(
        "doctor",
        help="examine this machine: is it fit to judge, how small a change does it see",
    )
    parser.add_argument(
        "--device",
        default="auto",
        metavar="auto|cpu|cuda[:N]",
        help="the device that would be measured (default: auto)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=20.0,
        metavar="S",
        help="how long to measure identical code, about (default: 20)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="the same as --seconds 8: three pairs"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, nothing else")
    parser.set_defaults(run=_doctor)


def _doctor(given: argparse.Namespace) -> int:
    seconds = _QUICK_S if given.quick else given.seconds
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--seconds={seconds:g} is not a time; write one above 0")
    found = examine(given.device, seconds=seconds)
    lines = [_as_json(found)] if given.json else text_of(found)
    for line in lines:
        print(line)
    return UNFIT if found.why_unfit else FIT


# examining ----------------------------------------------------------------------


def examine(spec: str, *, seconds: float) -> Examination:
    """Examine GPU and processor, and measure identical code on one of them.

    Parameters
    ----------
    spec : `auto`, `cpu`, `cuda` or `cuda:N`

    Raises
    ------
    UsageError
        The specification is none of these, or there is no such GPU.
    """
    gpu, telemetry = _gpu(spec)
    findings: list[Finding] = []
    if gpu is not None and telemetry is not None:
        findings += examine_gpu(gpu, telemetry, driver=driver_version())
        hint = packaging_hint()
        if hint is not None:
            findings.append(
                Finding(
                    name="pynvml", value=hint, state=State.WARN, advice="as it says"
                )
            )
    findings += examine_cpu()
    if any(
        finding.name == "GPU state" and finding.state is State.UNFIT
        for finding in findings
    ):
        return Examination(device=spec, findings=tuple(findings))
    device, obstacle = _measured_device(spec, gpu)
    findings += obstacle
    measured, pairs = _try(device, telemetry, gpu, seconds=seconds)
    return Examination(device=device, findings=(*findings, *measured), pairs=pairs)


def _gpu(spec: str) -> tuple[Gpu | None, Telemetry | None]:
    if spec == "cpu":
        return None, None
    if spec != "auto" and not spec.startswith("cuda"):
        resolve_device(spec)  # which refuses it
    gpus = visible_gpus()
    index = spec.partition(":")[2] or "0"
    if not index.isdigit() or (spec != "auto" and int(index) >= len(gpus)):
        raise UsageError(
            f"--device={spec}: the NVIDIA driver lists {len(gpus)} GPUs here; use "
            "--device=cpu, or look at CUDA_VISIBLE_DEVICES"
        )
    if not gpus:
        return None, None
    gpu = gpus[int(index)]
    if gpu.problem:
        return gpu, SilentTelemetry(gpu.problem, lost="lost" in gpu.problem.lower())
    return gpu, manager_telemetry(gpu.uuid)


def _measured_device(spec: str, gpu: Gpu | None) -> tuple[str, list[Finding]]:
    """Choose what the trial runs on: the GPU, unless torch cannot use it."""
    try:
        return resolve_device(spec if gpu is None or spec != "auto" else "cuda:0"), []
    except PerfGateError as error:
        finding = Finding(
            name="torch",
            value=str(error).partition("; ")[0],
            state=State.WARN if spec == "auto" else State.UNFIT,
            advice="install a torch that is built for this GPU and its driver; what "
            "follows was measured on the processor",
        )
        return "cpu", [finding]


def _try(
    device: str, telemetry: Telemetry | None, gpu: Gpu | None, *, seconds: float
) -> tuple[list[Finding], tuple[Pair, ...]]:
    """Measure identical code, holding the device as a session of the gate does."""
    lock = DeviceLock(gpu.uuid if gpu is not None and device != "cpu" else "cpu")
    try:
        holder = lock.acquire(patience_s=0.0)
    except OSError:
        holder = None  # who cannot lock it can measure all the same
    if holder is not None:
        advice = "wait for its end, and ask again"
        busy = f"measuring: {holder}"
        found = Finding(name="the gate", value=busy, state=State.UNFIT, advice=advice)
        return [found], ()
    try:
        before = telemetry.read() if telemetry and device != "cpu" else None
        pairs = measure_pairs(device, seconds=seconds)
        after = telemetry.read() if telemetry and before else None
    except PerfGateError as error:
        advice = "measuring does not work here at all: see to that first"
        found = Finding(
            name="trial", value=str(error), state=State.UNFIT, advice=advice
        )
        return [found], ()
    finally:
        lock.release()
    at_work = [examine_gpu_at_work(before, after)] if before and after else []
    turns = [turn for pair in pairs for turn in pair.turns]
    return [*at_work, *examine_turns(turns), *_sights(pairs)], pairs


def _sights(pairs: Sequence[Pair]) -> Iterator[Finding]:
    """Say how small a change could be seen, and whether that is small enough."""
    stored, paired = _seen(pairs)
    blind = min(stored.sees, paired.sees) > _TOO_COARSE
    for name, sight, what in (
        ("against a stored baseline", stored, "processes"),
        ("side by side in pairs", paired, "pairs"),
    ):
        value = (
            f"sees {sight.sees:.1%} and more at a budget of {DEFAULT_BUDGET:.0%} "
            f"(spread {sight.spread:.1%} between {what})"
        )
        if sight.sees <= _TOO_COARSE:
            yield Finding(name=name, value=value)
        elif blind:
            advice = (
                "a change of twice the budget would be missed: use a quieter machine"
            )
            yield Finding(name=name, value=value, state=State.UNFIT, advice=advice)
        else:
            other = "--perfgate-against" if sight is stored else "stored baselines"
            advice = f"a change of twice the budget may be missed: {other} sees more"
            yield Finding(name=name, value=value, state=State.WARN, advice=advice)


def _seen(pairs: Sequence[Pair]) -> tuple[Sight, Sight]:
    medians = [median for pair in pairs for median in pair.medians_s]
    return stored_sight(medians), paired_sight([pair.difference for pair in pairs])


# telling ------------------------------------------------------------------------


def text_of(found: Examination) -> Iterator[str]:
    """Yield the lines that a person reads."""
    width = max(len(finding.name) for finding in found.findings)
    for finding in found.findings:
        yield f"{_MARKS[finding.state]} {finding.name:<{width}}  {finding.value}"
        if finding.advice:
            yield f"{'':<{width + 6}}  → {finding.advice}"
    if found.pairs:
        count = 2 * len(found.pairs)
        yield f"measured: {count} processes of identical code on {found.device}, in turns"
    if found.why_unfit:
        names = [f.name for f in found.findings if f.state is State.UNFIT]
        yield f"unfit to judge: {', '.join(names)}"
    else:
        yield "fit to judge"


def _as_json(found: Examination) -> str:
    trial: dict[str, object] = {}
    if found.pairs:
        stored, paired = _seen(found.pairs)
        trial = {
            "budget": DEFAULT_BUDGET,
            "processes": 2 * len(found.pairs),
            "medians_s": [m for pair in found.pairs for m in pair.medians_s],
            "pair_log_ratios": [pair.difference for pair in found.pairs],
            "stored": asdict(stored),
            "paired": asdict(paired),
        }
    return json.dumps(
        {
            "schema_version": 1,
            "device": found.device,
            "fit": not found.why_unfit,
            "why_unfit": list(found.why_unfit),
            "findings": [asdict(finding) for finding in found.findings],
            "trial": trial,
        },
        indent=2,
    )
