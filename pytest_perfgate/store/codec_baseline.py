"""Baseline files to JSON and back; the format's history is in `codec`."""

from collections.abc import Mapping

from pytest_perfgate.measured import METRICS, Metric
from pytest_perfgate.model import Baseline, BaselineFile, Session
from pytest_perfgate.store.codec import (
    decode_environment,
    decode_metrics,
    decode_plan,
    encode_environment,
    encode_metrics,
    encode_plan,
    number_of,
    optional_string,
    present,
)
from pytest_perfgate.store.codec_profile import decode_profile, encode_profile
from pytest_perfgate.store.codec_runs import decode_runs, encode_runs
from pytest_perfgate.store.document import Kind
from pytest_perfgate.store.fields import Json, Node
from pytest_perfgate.store.layout import tidy
from pytest_perfgate.store.migrations import BASELINE_STEPS, BASELINE_VERSION


def encode_baseline_file(file: BaselineFile) -> Json:
    """Encode a file's body; fractions are rounded to six significant digits."""
    tree = {
        "environment": encode_environment(file.environment),
        "benchmarks": {
            name: encode_baseline(baseline)
            for name, baseline in file.benchmarks.items()
        },
    }
    return {key: tidy(member) for key, member in tree.items()}


def decode_baseline_file(fields: Mapping[str, Node]) -> BaselineFile:
    return BaselineFile(
        environment=decode_environment(fields["environment"]),
        benchmarks={
            name: decode_baseline(node)
            for name, node in fields["benchmarks"].members().items()
        },
    )


BASELINE = Kind(
    name="baseline",
    version=BASELINE_VERSION,
    steps=BASELINE_STEPS,
    encode=encode_baseline_file,
    decode=decode_baseline_file,
    body=("environment", "benchmarks"),
    way_out=(
        "restore it from version control, or delete it and record it again with "
        "--perfgate-update"
    ),
)


def encode_baseline(baseline: Baseline) -> Json:
    # the anchor is written only once it has left the sessions: it is large
    anchored = baseline.anchor == baseline.sessions[0]
    environment, profile = baseline.environment, baseline.profile
    return present(
        plan=encode_plan(baseline.plan),
        metrics=encode_metrics(baseline.metrics),
        sessions=[encode_session(session) for session in baseline.sessions],
        anchor=None if anchored else encode_session(baseline.anchor),
        sketch={name: list(values) for name, values in baseline.sketch.items()},
        counts=dict(baseline.counts),
        environment=None if environment is None else encode_environment(environment),
        profile=None if profile is None else encode_profile(profile),
    )


def decode_baseline(node: Node) -> Baseline:
    fields = node.fields(
        "plan",
        "metrics",
        "sessions",
        "sketch",
        "counts",
        optional=("anchor", "environment", "profile"),
    )
    metrics = decode_metrics(fields["metrics"])
    sessions = _decode_sessions(fields["sessions"], metrics=metrics)
    anchor, environment = fields.get("anchor"), fields.get("environment")
    return Baseline(
        plan=decode_plan(fields["plan"]),
        metrics=metrics,
        sessions=sessions,
        anchor=decode_session(anchor, metrics=metrics) if anchor else sessions[0],
        sketch=_decode_sketch(fields["sketch"], metrics=metrics),
        counts={
            name: member.integer(minimum=0)
            for name, member in fields["counts"].members().items()
        },
        environment=decode_environment(environment) if environment else None,
        profile=decode_profile(fields.get("profile")),
    )


def _decode_sessions(
    node: Node, *, metrics: Mapping[str, Metric]
) -> tuple[Session, ...]:
    items = node.items()
    if not items:
        raise node.refuse("at least one session")
    sessions = tuple(decode_session(item, metrics=metrics) for item in items)
    # only older sessions may know a metric that is not measured any more
    newest = items[-1].members()["runs"].members()
    _known(newest["statistics"], metrics)
    return sessions


def _decode_sketch(
    node: Node, *, metrics: Mapping[str, Metric]
) -> dict[str, tuple[float, ...]]:
    return {
        name: tuple(number_of(metrics[name], item) for item in member.items())
        for name, member in _known(node, metrics).items()
    }


def encode_session(session: Session) -> Json:
    return present(
        time=session.time,
        commit=session.commit,
        environment_digest=session.environment_digest,
        runs=encode_runs(session.runs),
    )


def decode_session(node: Node, *, metrics: Mapping[str, Metric]) -> Session:
    fields = node.fields("time", "environment_digest", "runs", optional=("commit",))
    runs = decode_runs(fields["runs"], metrics={**METRICS, **metrics})
    if not runs:
        raise fields["runs"].corrupt("expected at least one run")
    return Session(
        time=fields["time"].string(),
        commit=optional_string(fields, "commit"),
        environment_digest=fields["environment_digest"].string(),
        runs=runs,
    )


def _known(node: Node, metrics: Mapping[str, Metric]) -> dict[str, Node]:
    """Return the members of an object whose keys are names of metrics."""
    members = node.members()
    for name, member in members.items():
        if name not in metrics:
            raise member.corrupt("this metric is not among the benchmark's metrics")
    return members
