"""Values to JSON and back, written out by hand, for the format is a contract.

Format history of baseline files, newest first:

1  first format (0.1.0)

Format history of report.json, newest first:

1  first format (0.1.0)

This module has the values that both kinds of file and the records of the
workers share; `codec_runs`, `codec_baseline` and `codec_report` have the rest.
An absent key means "none"; null appears only in the free fields of an
environment, where it means "could not be found out".
"""

import hashlib
import json
from collections.abc import Mapping

from pytest_perfgate.measured import (
    CACHES,
    HOT,
    METRICS,
    UNFIT,
    Health,
    Measurement,
    Metric,
    Plan,
    Samples,
)
from pytest_perfgate.model import Better, Environment, Reason
from pytest_perfgate.store.codec_profile import decode_profile, encode_profile
from pytest_perfgate.store.codec_slow import decode_slow, encode_slow
from pytest_perfgate.store.fields import Json, Node, Scalar
from pytest_perfgate.store.layout import tidy

_DIGEST_LENGTH = 12
_MAY_BE_NOTHING = frozenset({"cpu_time", "loader_wait"})


def present(**fields: object) -> Json:
    """Return the fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}


# metrics ----------------------------------------------------------------------


def encode_metric(metric: Metric) -> Json:
    return {"name": metric.name, **encode_metric_body(metric)}


def encode_metric_body(metric: Metric) -> Json:
    """Encode a metric whose name is the key it is stored under."""
    return {
        "better": metric.better.value,
        "definition": metric.definition,
        "exact": metric.exact,
        "unit": metric.unit,
    }


_METRIC_BODY = ("better", "definition", "exact", "unit")


def decode_metric(node: Node) -> Metric:
    fields = node.fields("name", *_METRIC_BODY)
    if not fields["name"].string():
        raise fields["name"].refuse("a name")
    return _metric(fields, name=fields["name"].string())


def encode_metrics(metrics: Mapping[str, Metric]) -> Json:
    """Encode metrics by name."""
    for name, metric in metrics.items():
        if name != metric.name:
            raise ValueError(f"the metric {metric.name!r} is filed under {name!r}")
    return {name: encode_metric_body(metric) for name, metric in metrics.items()}


def decode_metrics(node: Node) -> dict[str, Metric]:
    """Decode what `encode_metrics` made."""
    if "" in node.members():
        raise node.corrupt("a metric has no name")
    return {
        name: _metric(member.fields(*_METRIC_BODY), name=name)
        for name, member in node.members().items()
    }


def _metric(fields: Mapping[str, Node], *, name: str) -> Metric:
    metric = Metric(
        name=name,
        unit=fields["unit"].string(),
        better=fields["better"].choice(Better),
        definition=fields["definition"].string(),
        exact=fields["exact"].boolean(),
    )
    known = METRICS.get(name, metric)
    if not _fits(metric.unit, known.unit):
        raise fields["unit"].refuse(f"{known.unit!r}, the unit of {name}")
    if metric.better is not known.better:
        raise fields["better"].refuse(f"'{known.better}', the direction of {name}")
    return metric


def _fits(unit: str, known: str) -> bool:
    # what is counted differs from workload to workload: `tokens/s`, `samples/s`
    return unit == known or (known == "1/s" and unit.endswith("/s"))


def number_of(metric: Metric, node: Node) -> float:
    """Read a number of a metric, and refuse what the metric cannot be.

    The known times are never zero: they are compared as ratios. The CPU's time
    can be, where its clock is coarse, and so can the wait for a batch that is
    there, or a size; what a benchmark records itself may be any number.
    """
    known = metric.name in METRICS
    if known and metric.unit == "s" and metric.name not in _MAY_BE_NOTHING:
        return node.number(above=0)
    if known or metric.unit == "B":
        return node.number(minimum=0)
    return node.number()


# plan, environment, health ----------------------------------------------------


def encode_plan(plan: Plan) -> Json:
    return present(
        iterations=plan.iterations,
        warmup=plan.warmup,
        inner_loop=plan.inner_loop,
        seed=plan.seed,
        batch_size=plan.batch_size,
        threads=plan.threads,
        device=plan.device,
        workload=plan.workload,
        cache=None if plan.cache == HOT else plan.cache,
    )


def decode_plan(value: object, path: str = "plan") -> Plan:
    """Decode what `encode_plan` made; messages begin with `path`, or a node's own."""
    fields = _node(value, path).fields(
        "iterations",
        "warmup",
        "inner_loop",
        "seed",
        "device",
        "workload",
        optional=("batch_size", "threads", "cache"),
    )
    return Plan(
        iterations=fields["iterations"].integer(minimum=1),
        warmup=fields["warmup"].integer(minimum=0),
        inner_loop=fields["inner_loop"].integer(minimum=1),
        seed=fields["seed"].integer(),
        batch_size=_optional_integer(fields, "batch_size"),
        threads=_optional_integer(fields, "threads"),
        device=fields["device"].string(),
        workload=fields["workload"].string(),
        cache=_cache(fields),
    )


def _cache(fields: Mapping[str, Node]) -> str:
    node = fields.get("cache")
    if node is None:
        return HOT
    if node.string() not in CACHES:
        raise node.refuse(f"one of {', '.join(CACHES)}")
    return node.string()


def encode_environment(environment: Environment) -> Json:
    return {
        "key": environment.key,
        "hardware": dict(environment.hardware),
        "software": dict(environment.software),
        "fake": environment.fake,
    }


def decode_environment(value: object, path: str = "environment") -> Environment:
    """Decode what `encode_environment` made."""
    fields = _node(value, path).fields("key", "hardware", "software", "fake")
    return Environment(
        key=fields["key"].string(),
        hardware=_scalars(fields["hardware"]),
        software=_scalars(fields["software"]),
        fake=fields["fake"].boolean(),
    )


def _scalars(node: Node) -> dict[str, Scalar]:
    return {key: member.scalar() for key, member in node.members().items()}


def environment_digest(environment: Environment) -> str:
    """Return twelve hexadecimal digits that name an environment.

    The digest of an environment read back from a baseline file, where fractions
    have six digits, is the same as before it was stored.
    """
    text = json.dumps(tidy(encode_environment(environment)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def encode_health(health: Health) -> Json:
    return present(
        blocks=health.blocks,
        disturbed_blocks=health.disturbed_blocks,
        cpu_share=health.cpu_share,
        involuntary_switches=health.involuntary_switches,
        disturbed=health.disturbed,
        steady=health.steady,
        evidence=list(health.evidence),
        repeated_blocks=health.repeated_blocks or None,
        unfit=health.unfit.value if health.unfit else None,
        device=dict(health.device) or None,
    )


def decode_health(node: Node) -> Health:
    fields = node.fields(
        "blocks",
        "disturbed_blocks",
        "disturbed",
        "steady",
        "evidence",
        optional=(
            "cpu_share",
            "involuntary_switches",
            "repeated_blocks",
            "unfit",
            "device",
        ),
    )
    return Health(
        blocks=fields["blocks"].integer(minimum=0),
        disturbed_blocks=fields["disturbed_blocks"].integer(minimum=0),
        cpu_share=optional_number(fields, "cpu_share"),
        involuntary_switches=_optional_integer(fields, "involuntary_switches"),
        disturbed=fields["disturbed"].boolean(),
        steady=fields["steady"].boolean(),
        evidence=fields["evidence"].strings(),
        repeated_blocks=_optional_integer(fields, "repeated_blocks") or 0,
        unfit=_unfit(fields.get("unfit")),
        device={
            name: node.number()
            for name, node in (
                fields["device"].members() if "device" in fields else {}
            ).items()
        },
    )


def _unfit(node: Node | None) -> Reason | None:
    if node is None:
        return None
    reason = node.choice(Reason)
    if reason not in UNFIT:
        raise node.refuse(f"one of {sorted(one.value for one in UNFIT)}")
    return reason


# measurements -----------------------------------------------------------------


def encode_measurement(measurement: Measurement) -> Json:
    """Encode one process's measurement, raw samples included."""
    profile, slow = measurement.profile, measurement.slow
    return present(
        benchmark=measurement.benchmark,
        nodeid=measurement.nodeid,
        run=measurement.run,
        plan=encode_plan(measurement.plan),
        samples=[encode_samples(samples) for samples in measurement.samples],
        health=encode_health(measurement.health),
        clock_tick_s=measurement.clock_tick_s,
        output=dict(measurement.output) or None,
        alone=measurement.alone,
        remarks=list(measurement.remarks),
        turns=list(measurement.turns) or None,
        profile=None if profile is None else encode_profile(profile),
        slow=None if slow is None else encode_slow(slow),
        enqueue_share=measurement.enqueue_share,
    )


def decode_measurement(value: object, path: str = "measurement") -> Measurement:
    """Decode what `encode_measurement` made.

    Samples need only be finite here: one that is zero or negative must reach
    the gate, which answers `error` for that benchmark.

    Raises
    ------
    BaselineCorrupt
        Naming the path and the value that is not as it must be.
    """
    fields = _node(value, path).fields(
        "benchmark",
        "nodeid",
        "run",
        "plan",
        "samples",
        "health",
        "clock_tick_s",
        "alone",
        "remarks",
        optional=("output", "turns", "profile", "slow", "enqueue_share"),
    )
    return Measurement(
        benchmark=fields["benchmark"].string(),
        nodeid=fields["nodeid"].string(),
        run=fields["run"].integer(),
        plan=decode_plan(fields["plan"]),
        samples=tuple(decode_samples(item) for item in fields["samples"].items()),
        health=decode_health(fields["health"]),
        clock_tick_s=fields["clock_tick_s"].number(minimum=0),
        output=_decode_output(fields.get("output")),
        alone=fields["alone"].boolean(),
        remarks=fields["remarks"].strings(),
        turns=tuple(
            item.integer(minimum=1)
            for item in (fields["turns"].items() if "turns" in fields else ())
        ),
        profile=decode_profile(fields.get("profile")),
        slow=decode_slow(fields["slow"]) if "slow" in fields else None,
        enqueue_share=(
            fields["enqueue_share"].number(minimum=0)
            if "enqueue_share" in fields
            else None
        ),
    )


def _decode_output(node: Node | None) -> dict[str, float]:
    members = {} if node is None else node.members()
    return {name: value.number(minimum=0) for name, value in members.items()}


def encode_samples(samples: Samples) -> Json:
    return {"metric": encode_metric(samples.metric), "values": list(samples.values)}


def decode_samples(node: Node) -> Samples:
    fields = node.fields("metric", "values")
    values = fields["values"].numbers()
    if not values:
        raise fields["values"].refuse("at least one sample")
    return Samples(metric=decode_metric(fields["metric"]), values=values)


# helpers ----------------------------------------------------------------------


def _node(value: object, path: str) -> Node:
    return value if isinstance(value, Node) else Node(value, key=path)


def _optional_integer(fields: Mapping[str, Node], key: str) -> int | None:
    return fields[key].integer() if key in fields else None


def optional_number(fields: Mapping[str, Node], key: str) -> float | None:
    return fields[key].number() if key in fields else None


def optional_string(fields: Mapping[str, Node], key: str) -> str | None:
    return fields[key].string() if key in fields else None
