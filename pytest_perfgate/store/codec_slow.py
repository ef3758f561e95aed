"""Slow iterations to JSON and back."""

from pytest_perfgate.measured import SlowIteration, SlowIterations
from pytest_perfgate.store.fields import Json, Node


def encode_slow(slow: SlowIterations) -> Json:
    return {
        "run": slow.run,
        "beyond_s": slow.beyond_s,
        "rule": slow.rule,
        "count": slow.count,
        "worst": [_encode_iteration(one) for one in slow.worst],
    }


def _encode_iteration(one: SlowIteration) -> Json:
    return {
        "index": one.index,
        "at_s": one.at_s,
        "value_s": one.value_s,
        "known": list(one.known),
    }


def decode_slow(node: Node) -> SlowIterations:
    fields = node.fields("run", "beyond_s", "rule", "count", "worst")
    worst = tuple(_decode_iteration(item) for item in fields["worst"].items())
    if not worst:
        raise fields["worst"].refuse("one iteration or more")
    return SlowIterations(
        run=fields["run"].integer(),
        beyond_s=fields["beyond_s"].number(minimum=0),
        rule=fields["rule"].string(),
        count=fields["count"].integer(minimum=len(worst)),
        worst=worst,
    )


def _decode_iteration(node: Node) -> SlowIteration:
    fields = node.fields("index", "at_s", "value_s", "known")
    return SlowIteration(
        index=fields["index"].integer(minimum=0),
        at_s=fields["at_s"].number(minimum=0),
        value_s=fields["value_s"].number(minimum=0),
        known=fields["known"].strings(),
    )
