"""Reports to JSON and back; the format's history is in `codec`."""

import math
from collections.abc import Mapping

from pytest_perfgate.measured import METRICS, Metric
from pytest_perfgate.model import (
    BaseCode,
    BenchmarkResult,
    Comparison,
    Difference,
    Judgement,
    Outcome,
    Reason,
    Report,
    RunSummary,
    Shift,
    Verdict,
)
from pytest_perfgate.store.codec import (
    decode_environment,
    decode_metric,
    decode_metrics,
    decode_plan,
    encode_environment,
    encode_metric,
    encode_metrics,
    encode_plan,
    optional_number,
    optional_string,
    present,
)
from pytest_perfgate.store.codec_explanation import (
    decode_explanation,
    encode_explanation,
)
from pytest_perfgate.store.codec_profile import decode_profile, encode_profile
from pytest_perfgate.store.codec_runs import decode_runs, encode_runs
from pytest_perfgate.store.codec_slow import decode_slow, encode_slow
from pytest_perfgate.store.document import Kind
from pytest_perfgate.store.fields import Json, Node
from pytest_perfgate.store.migrations import REPORT_STEPS, REPORT_VERSION

_BODY = ("created", "results", "exit_code", "summary", "policy", "cost", "interrupted")
_OPTIONAL = ("commit", "environment", "shift", "problem", "notes", "base")


def encode_report(report: Report) -> Json:
    """Encode a report's body; numbers are written so that they come back equal."""
    environment = report.environment
    return present(
        created=report.created,
        commit=report.commit,
        environment=None if environment is None else encode_environment(environment),
        results=[encode_result(result) for result in report.results],
        exit_code=report.exit_code,
        summary=report.summary,
        policy=dict(report.policy),
        cost=dict(report.cost),
        interrupted=report.interrupted,
        shift=None if report.shift is None else encode_shift(report.shift),
        problem=report.problem or None,
        notes=list(report.notes) or None,
        base=None if report.base is None else encode_base(report.base),
    )


def decode_report(fields: Mapping[str, Node]) -> Report:
    environment, shift = fields.get("environment"), fields.get("shift")
    return Report(
        created=fields["created"].string(),
        commit=optional_string(fields, "commit"),
        environment=decode_environment(environment) if environment else None,
        results=tuple(decode_result(item) for item in fields["results"].items()),
        exit_code=fields["exit_code"].integer(),
        summary=fields["summary"].string(),
        policy={
            name: member.string() for name, member in fields["policy"].members().items()
        },
        cost={
            name: member.number() for name, member in fields["cost"].members().items()
        },
        interrupted=fields["interrupted"].boolean(),
        shift=decode_shift(shift) if shift else None,
        problem=fields["problem"].string() if "problem" in fields else "",
        notes=fields["notes"].strings() if "notes" in fields else (),
        base=decode_base(fields["base"]) if "base" in fields else None,
    )


REPORT = Kind(
    name="report",
    version=REPORT_VERSION,
    steps=REPORT_STEPS,
    encode=encode_report,
    decode=decode_report,
    body=_BODY,
    optional=_OPTIONAL,
    way_out="use the report.json of a session that ran to its end",
)


def encode_shift(shift: Shift) -> Json:
    return {
        "ratio": shift.ratio,
        "benchmarks": shift.benchmarks,
        "share": shift.share,
    }


def decode_shift(node: Node) -> Shift:
    fields = node.fields("ratio", "benchmarks", "share")
    return Shift(
        ratio=fields["ratio"].number(),
        benchmarks=fields["benchmarks"].integer(minimum=0),
        share=fields["share"].number(),
    )


def encode_base(base: BaseCode) -> Json:
    return {
        "ref": base.ref,
        "commit": base.commit,
        "overlaid": list(base.overlaid),
        "notes": list(base.notes),
    }


def decode_base(node: Node) -> BaseCode:
    fields = node.fields("ref", "commit", "overlaid", "notes")
    return BaseCode(
        ref=fields["ref"].string(),
        commit=fields["commit"].string(),
        overlaid=fields["overlaid"].strings(),
        notes=fields["notes"].strings(),
    )


def encode_result(result: BenchmarkResult) -> Json:
    environment, profile = result.environment, result.profile
    explained = result.explanation
    return present(
        benchmark=result.benchmark,
        nodeid=result.nodeid,
        verdict=encode_verdict(result.verdict),
        judgements=[encode_judgement(judgement) for judgement in result.judgements],
        runs=encode_runs(result.runs),
        confirmation=encode_runs(result.confirmation),
        base_runs=_runs_or_none(result.base_runs),
        base_confirmation=_runs_or_none(result.base_confirmation),
        plan=None if result.plan is None else encode_plan(result.plan),
        differences=[encode_difference(item) for item in result.differences],
        discarded=list(result.discarded),
        remarks=list(result.remarks),
        text=result.text,
        attempt=result.attempt if result.attempt > 1 else None,
        earlier_runs=result.earlier_runs or None,
        absorbed=result.absorbed or None,
        metrics=encode_metrics(result.metrics) or None,
        longest_warmup=result.longest_warmup or None,
        environment=None if environment is None else encode_environment(environment),
        profile=None if profile is None else encode_profile(profile),
        explanation=None if explained is None else encode_explanation(explained),
        slow=[encode_slow(run) for run in result.slow] or None,
    )


def _runs_or_none(runs: tuple[RunSummary, ...]) -> Json | None:
    return encode_runs(runs) if runs else None


def decode_result(node: Node) -> BenchmarkResult:
    fields = node.fields(
        "benchmark",
        "nodeid",
        "verdict",
        "judgements",
        "runs",
        "confirmation",
        "differences",
        "discarded",
        "remarks",
        "text",
        optional=(
            *("plan", "attempt", "earlier_runs"),
            *("base_runs", "base_confirmation", "explanation", "slow"),
            *("absorbed", "metrics", "longest_warmup", "environment", "profile"),
        ),
    )
    verdict = decode_verdict(fields["verdict"])
    judgements = tuple(decode_judgement(j) for j in fields["judgements"].items())
    metrics = decode_metrics(fields["metrics"]) if "metrics" in fields else {}
    known = {judgement.metric.name: judgement.metric for judgement in judgements}
    known = {**METRICS, **known, **metrics}
    environment = fields.get("environment")

    def runs(name: str) -> tuple[RunSummary, ...]:
        return _decode_runs(fields[name], verdict, known) if name in fields else ()

    return BenchmarkResult(
        benchmark=fields["benchmark"].string(),
        nodeid=fields["nodeid"].string(),
        verdict=verdict,
        judgements=judgements,
        runs=runs("runs"),
        confirmation=runs("confirmation"),
        base_runs=runs("base_runs"),
        base_confirmation=runs("base_confirmation"),
        plan=decode_plan(fields["plan"]) if "plan" in fields else None,
        differences=tuple(decode_difference(d) for d in fields["differences"].items()),
        discarded=fields["discarded"].strings(),
        remarks=fields["remarks"].strings(),
        text=fields["text"].string(),
        attempt=_whole(fields, "attempt", absent=1),
        earlier_runs=_whole(fields, "earlier_runs", absent=0),
        absorbed=fields["absorbed"].boolean() if "absorbed" in fields else False,
        metrics=metrics,
        longest_warmup=_whole(fields, "longest_warmup", absent=0),
        environment=decode_environment(environment) if environment else None,
        profile=decode_profile(fields.get("profile")),
        explanation=decode_explanation(fields.get("explanation")),
        slow=tuple(decode_slow(run) for run in fields["slow"].items())
        if "slow" in fields
        else (),
    )


def _whole(fields: Mapping[str, Node], key: str, *, absent: int) -> int:
    """Read a number that is written only where it is above its usual value."""
    return fields[key].integer(minimum=absent + 1) if key in fields else absent


def _decode_runs(
    node: Node, verdict: Verdict, known: Mapping[str, Metric]
) -> tuple[RunSummary, ...]:
    if verdict.outcome is Outcome.ERROR:
        return decode_runs(node, metrics={})  # a time of zero may be the very error
    return decode_runs(node, metrics=known)


def encode_verdict(verdict: Verdict) -> Json:
    return {
        "outcome": verdict.outcome.value,
        "reason": verdict.reason.value,
        "detail": verdict.detail,
    }


def decode_verdict(node: Node) -> Verdict:
    fields = node.fields("outcome", "reason", "detail")
    return Verdict(
        outcome=fields["outcome"].choice(Outcome),
        reason=fields["reason"].choice(Reason),
        detail=fields["detail"].string(),
    )


def encode_judgement(judgement: Judgement) -> Json:
    comparison = judgement.comparison
    return present(
        metric=encode_metric(judgement.metric),
        statistic=judgement.statistic,
        verdict=encode_verdict(judgement.verdict),
        budget=judgement.budget,
        bound=judgement.bound,
        gated=judgement.gated,
        comparison=None if comparison is None else encode_comparison(comparison),
        remarks=list(judgement.remarks),
        anchor=judgement.anchor or None,
    )


def decode_judgement(node: Node) -> Judgement:
    fields = node.fields(
        "metric",
        "statistic",
        "verdict",
        "bound",
        "gated",
        "remarks",
        optional=("budget", "comparison", "anchor"),
    )
    comparison = fields.get("comparison")
    return Judgement(
        metric=decode_metric(fields["metric"]),
        statistic=fields["statistic"].string(),
        verdict=decode_verdict(fields["verdict"]),
        budget=optional_number(fields, "budget"),
        bound=fields["bound"].string(),
        gated=fields["gated"].boolean(),
        comparison=decode_comparison(comparison) if comparison else None,
        remarks=fields["remarks"].strings(),
        anchor=fields["anchor"].boolean() if "anchor" in fields else False,
    )


def encode_comparison(comparison: Comparison) -> Json:
    """Encode a comparison; a bound that is infinite is absent."""
    return present(
        baseline=comparison.baseline,
        candidate=comparison.candidate,
        ratio=comparison.ratio,
        low=comparison.low if comparison.low > -math.inf else None,
        high=comparison.high if comparison.high < math.inf else None,
        p_identity=comparison.p_identity,
        baseline_runs=comparison.baseline_runs,
        candidate_runs=comparison.candidate_runs,
        spread=comparison.spread,
        absolute=comparison.absolute,
        detectable=comparison.detectable,
        q_value=comparison.q_value,
    )


def decode_comparison(node: Node) -> Comparison:
    fields = node.fields(
        "baseline",
        "candidate",
        "ratio",
        "p_identity",
        "baseline_runs",
        "candidate_runs",
        "spread",
        "absolute",
        optional=("low", "high", "detectable", "q_value"),
    )
    return Comparison(
        baseline=fields["baseline"].number(),
        candidate=fields["candidate"].number(),
        ratio=fields["ratio"].number(),
        low=fields["low"].number() if "low" in fields else -math.inf,
        high=fields["high"].number() if "high" in fields else math.inf,
        p_identity=fields["p_identity"].number(),
        baseline_runs=fields["baseline_runs"].integer(minimum=0),
        candidate_runs=fields["candidate_runs"].integer(minimum=0),
        spread=fields["spread"].number(),
        absolute=fields["absolute"].boolean(),
        detectable=optional_number(fields, "detectable"),
        q_value=optional_number(fields, "q_value"),
    )


def encode_difference(difference: Difference) -> Json:
    return {
        "field": difference.field,
        "baseline": difference.baseline,
        "candidate": difference.candidate,
        "forbids": difference.forbids,
    }


def decode_difference(node: Node) -> Difference:
    fields = node.fields("field", "baseline", "candidate", "forbids")
    return Difference(
        field=fields["field"].string(),
        baseline=fields["baseline"].string(),
        candidate=fields["candidate"].string(),
        forbids=fields["forbids"].boolean(),
    )
