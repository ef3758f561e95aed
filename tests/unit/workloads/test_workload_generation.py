import pytest

from pytest_perfgate.errors import BadSample, UsageError
from pytest_perfgate.workloads.generation import (
    Reply,
    check_prompts,
    consume,
    digest,
    measure_generation,
    tokens_of,
)

MS = 1_000_000


class Tensor:
    def __init__(self, values):
        self.values = values

    def tolist(self):
        return self.values


def make_reply(seen_ms, chunks, submitted_ms=0):
    return Reply(
        submitted_ns=submitted_ms * MS,
        seen_ns=tuple(moment * MS for moment in seen_ms),
        chunks=tuple(tuple(chunk) for chunk in chunks),
    )


def test_the_three_times_of_single_tokens():
    reply = make_reply([30, 40, 50, 70], [[1], [2], [3], [4]], submitted_ms=10)
    assert reply.ttft_s == pytest.approx(0.020)
    assert reply.e2e_s == pytest.approx(0.060)
    assert reply.tpot_s == pytest.approx(0.040 / 3)


def test_tokens_of_the_first_chunk_are_not_waited_for():
    reply = make_reply([30, 90], [[1, 2, 3], [4, 5]])
    assert reply.tpot_s == pytest.approx(0.060 / 2)


def test_time_per_token_is_undefined_where_all_come_at_once():
    assert make_reply([30], [[1, 2, 3]]).tpot_s is None


@pytest.mark.parametrize(
    ("chunk", "tokens"),
    [
        (7, (7,)),
        ([1, 2], (1, 2)),
        ((3,), (3,)),
        (Tensor([1, 2]), (1, 2)),
        (Tensor(5), (5,)),
        ([Tensor(5), 6], (5, 6)),
        ([], ()),
    ],
)
def test_chunks_are_ids_or_flat_sequences_of_them(chunk, tokens):
    assert tokens_of(chunk) == tokens


@pytest.mark.parametrize(
    "chunk", ["text", b"x", 1.5, None, Tensor([[1]]), [[1]], ["a"]]
)
def test_what_cannot_be_counted_is_refused(chunk):
    with pytest.raises(UsageError, match="never from text"):
        tokens_of(chunk)


@pytest.fixture
def measure(make_context, make_fake, target):
    def run(stream, prompts, *, law=None, **changes):
        device = make_fake(benchmarks={"*": law or {}})
        context = make_context(
            **({"device": device, "iterations": 3, "warmup": 2} | changes)
        )
        return measure_generation(context, target, stream, prompts)

    return run


def test_each_request_gives_one_value(measure, by_name):
    law = {"seconds": 0.001, "parts": {"first": 5.0}}
    measurement, replies = measure(range, [3, 5], law=law)
    values = by_name(measurement)
    assert values["ttft"] == (0.005,) * 6
    assert values["tpot"] == pytest.approx((0.001,) * 6)
    assert values["e2e"] == pytest.approx((0.007, 0.009) * 3)
    assert values["throughput"] == pytest.approx((8 / 0.016,))
    assert measurement.plan.iterations == 3
    assert measurement.remarks == ()
    assert replies == [[0, 1, 2], [0, 1, 2, 3, 4]]
    (unit,) = [
        s.metric.unit for s in measurement.samples if s.metric.name == "throughput"
    ]
    assert unit == "tokens/s"


def test_empty_chunks_are_not_seen(measure, by_name):
    measurement, _ = measure(lambda _: iter([[], [1], [], [2]]), ["p"])
    assert by_name(measurement)["ttft"] == (0.001,) * 3
    assert by_name(measurement)["tpot"] == (0.001,) * 3


def test_a_planted_slowdown_reaches_every_chunk(measure, by_name):
    measurement, _ = measure(lambda _: range(3), ["p"], slowdown=1.0)
    assert by_name(measurement)["ttft"] == (0.002,) * 3
    assert by_name(measurement)["tpot"] == (0.002,) * 3


def test_requests_that_come_at_once_have_no_time_per_token(measure, by_name):
    measurement, _ = measure(lambda prompt: iter([[1] * prompt, 2]), [1, 2])
    assert len(by_name(measurement)["tpot"]) == 6
    measurement, _ = measure(lambda prompt: iter([[1, 2], *[3] * prompt]), [0, 2])
    assert len(by_name(measurement)["tpot"]) == 3
    assert measurement.remarks == (
        "tpot undefined for 1 of 2 requests: their first chunk was their last",
    )
    measurement, _ = measure(lambda _: iter([[1, 2]]), [0])
    assert "tpot" not in by_name(measurement)


def test_the_digest_tells_outputs_apart_but_not_their_chunking(measure):
    def digest_of(chunks):
        measurement, _ = measure(lambda _: iter(chunks), ["p"])
        (name,) = measurement.output
        assert measurement.output[name] == 3.0
        return name

    assert digest_of([1, 2, 3]) == digest_of([[1, 2], [3]])
    assert digest_of([1, 2, 3]) != digest_of([1, 2, 4])
    assert digest([(1,), (2,)]) != digest([(1, 2), ()])


def test_output_that_changes_between_iterations_is_remarked(measure):
    calls = []

    def stream(_):
        calls.append(None)
        return iter([1, len(calls) // 4])

    measurement, _ = measure(stream, ["p"])
    assert measurement.remarks == ("unstable output",)
    assert measurement.output == {}


def test_the_same_output_in_other_chunks_is_stable(measure):
    calls = []

    def stream(_):
        calls.append(None)
        return iter([[1, 2], 3] if len(calls) % 2 else [1, 2, 3])

    measurement, _ = measure(stream, ["p"])
    assert measurement.remarks == ()


def test_lengths_are_part_of_the_workload(measure):
    one, _ = measure(lambda _: range(3), ["p"])
    same, _ = measure(lambda _: range(3), ["q"])
    other, _ = measure(lambda _: range(4), ["p"])
    assert one.plan.workload == same.plan.workload
    assert one.plan.workload != other.plan.workload


def test_lengths_of_unstable_output_are_not(measure):
    def workload(first):
        lengths = iter(range(first, 100))
        measurement, _ = measure(lambda _: [0] * next(lengths), ["p"])
        return measurement.plan.workload

    assert workload(1) == workload(2)


def test_more_prompts_need_fewer_iterations_for_p99(measure):
    changes = {"iterations": None, "warmup": 1, "wants_p99": True, "max_time_s": 1.0}
    law = {"seconds": 0.025}
    measurement, _ = measure(lambda _: [1], list("abcd"), law=law, **changes)
    assert measurement.plan.iterations == 10  # 84 would take too long
    law = {"seconds": 0.005}
    measurement, _ = measure(lambda _: [1], list("abcd"), law=law, **changes)
    assert measurement.plan.iterations == 84


def test_a_stream_without_tokens_is_an_error(measure):
    with pytest.raises(BadSample, match="no token for prompt 'p'"):
        measure(lambda _: iter([]), ["p"])
    with pytest.raises(BadSample, match="no token for prompt 'p'"):
        consume(lambda _: iter([]), "p")


def test_an_inner_loop_means_nothing_here(measure):
    with pytest.raises(UsageError, match="inner_loop=2 means nothing for generation"):
        measure(lambda _: [1], ["p"], inner_loop=2)


def test_a_flushed_cache_means_nothing_here(measure):
    with pytest.raises(UsageError, match="cache='flush' means nothing for generation"):
        measure(lambda _: [1], ["p"], cache="flush")


@pytest.mark.parametrize(("prompts", "words"), [("text", "one text"), ([], "empty")])
def test_prompts_are_several(prompts, words):
    with pytest.raises(UsageError, match=words):
        check_prompts(prompts)


def test_a_torch_stream(measure):
    torch = pytest.importorskip("torch")
    _, replies = measure(lambda _: iter([torch.tensor([1, 2]), torch.tensor(3)]), ["p"])
    assert replies == [[1, 2, 3]]
