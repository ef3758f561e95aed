"""Explanations and slow iterations come back as they were, or are refused."""

import json

import pytest

from pytest_perfgate.errors import BaselineCorrupt
from pytest_perfgate.measured import SlowIteration, SlowIterations
from pytest_perfgate.model import Clue, ClueKind, Explanation
from pytest_perfgate.store import decode_measurement, encode_measurement
from pytest_perfgate.store.codec_explanation import (
    decode_explanation,
    encode_explanation,
)
from pytest_perfgate.store.codec_slow import decode_slow, encode_slow
from pytest_perfgate.store.fields import Node

EXPLANATION = Explanation(
    lines=(
        Clue(kind=ClueKind.COUNT, text="syncs: 0 → 1", old="0", new="1", share=0.25),
        Clue(kind=ClueKind.NOTE, text="operators were not compared"),
    )
)
SLOW = SlowIterations(
    run=3,
    beyond_s=0.002,
    rule="2 × P99",
    count=7,
    worst=(SlowIteration(index=4, at_s=0.5, value_s=0.25, known=("1 compilation",)),),
)


def through_json(value):
    return Node(json.loads(json.dumps(value)), key="it")


def test_an_explanation_travels_without_loss():
    assert (
        decode_explanation(through_json(encode_explanation(EXPLANATION))) == EXPLANATION
    )
    assert decode_explanation(None) is None


def test_slow_iterations_travel_without_loss(make):
    assert decode_slow(through_json(encode_slow(SLOW))) == SLOW
    measurement = make.a_measurement(slow=SLOW)
    travelled = json.loads(json.dumps(encode_measurement(measurement)))
    assert decode_measurement(travelled) == measurement


@pytest.mark.parametrize(
    ("decode", "value", "message"),
    [
        (decode_explanation, [], "it: expected one line or more"),
        (decode_explanation, [{"kind": "guess", "text": ""}], r"it\[0\].kind"),
        (decode_slow, encode_slow(SLOW) | {"worst": []}, "it.worst: expected one"),
        (decode_slow, encode_slow(SLOW) | {"count": 0}, "it.count"),
        (decode_slow, encode_slow(SLOW) | {"beyond_s": -1}, "it.beyond_s"),
    ],
)
def test_what_they_cannot_be_is_refused(decode, value, message):
    with pytest.raises(BaselineCorrupt, match=message):
        decode(through_json(value))
