"""Token generation: one iteration goes through all prompts once.

Time to first token is from submitting a prompt to its first tokens being
visible to the host; time per output token is (t_last - t_first) / (n - m) with
n tokens in all and m of them in the first chunk, and undefined where n = m;
end to end is from submitting to the last token. One value a request each.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pytest_perfgate.errors import BadSample, UsageError
from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.device import Device
from pytest_perfgate.measure.recipe import recipe
from pytest_perfgate.measure.runner import Outcome, drive, schedule
from pytest_perfgate.measure.settling import Request
from pytest_perfgate.measured import METRICS, Measurement, Samples
from pytest_perfgate.workloads.assembly import (
    Findings,
    assemble,
    counted,
    samples,
    throughput,
    workload_digest,
)
from pytest_perfgate.workloads.target import Target

Stream = Callable[[object], Iterable[object]]
Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One request: when it was submitted and when each chunk was seen."""

    submitted_ns: int
    seen_ns: tuple[int, ...]
    chunks: tuple[Tokens, ...]

    @property
    def tokens(self) -> Tokens:
        return tuple(token for chunk in self.chunks for token in chunk)

    @property
    def ttft_s(self) -> float:
        return (self.seen_ns[0] - self.submitted_ns) / 1e9

    @property
    def e2e_s(self) -> float:
        return (self.seen_ns[-1] - self.submitted_ns) / 1e9

    @property
    def tpot_s(self) -> float | None:
        later = len(self.tokens) - len(self.chunks[0])
        if not later:
            return None
        return (self.seen_ns[-1] - self.seen_ns[0]) / 1e9 / later


def tokens_of(chunk: object) -> Tokens:
    """Read the token ids of a chunk, bringing them to the host.

    Parameters
    ----------
    chunk : an id, a flat sequence of ids, or a tensor or array of at most one
        dimension

    Raises
    ------
    UsageError
        It is text, nested, or anything else whose tokens cannot be counted.
    """
    if isinstance(chunk, int):
        return (chunk,)
    values = _on_host(chunk)
    if isinstance(values, int):
        return (values,)
    if isinstance(values, list | tuple):
        ids = [_on_host(value) for value in values]
        if all(isinstance(token, int) for token in ids):
            return tuple(token for token in ids if isinstance(token, int))
    raise UsageError(
        "generation: a stream yields token ids or flat chunks of them, not "
        f"{type(chunk).__name__} {chunk!r:.60}; tokens are counted from ids, "
        "never from text, one sequence at a time"
    )


def _on_host(value: object) -> object:
    to_list = getattr(value, "tolist", None)  # tensors and arrays
    return value if to_list is None else to_list()


def receive(device: Device, stream: Stream, prompt: object) -> Reply:
    """Submit one prompt and note when each chunk is seen.

    Raises
    ------
    BadSample
        The stream gave no token.
    """
    seen: list[int] = []
    chunks: list[Tokens] = []
    submitted = previous = device.now_ns()
    for chunk in stream(prompt):
        tokens = tokens_of(chunk)
        if not tokens:
            continue
        now = device.now_ns()
        if device.stretches:
            device.stretch(now - previous, "chunk" if seen else "first")
            now = device.now_ns()
        seen.append(now)
        chunks.append(tokens)
        previous = now
    if not seen:
        raise _no_token(prompt)
    return Reply(submitted_ns=submitted, seen_ns=tuple(seen), chunks=tuple(chunks))


def consume(stream: Stream, prompt: object) -> list[int]:
    """Read one reply to its end, unmeasured.

    Raises
    ------
    BadSample
        The stream gave no token.
    """
    tokens = [token for chunk in stream(prompt) for token in tokens_of(chunk)]
    if not tokens:
        raise _no_token(prompt)
    return tokens


def _no_token(prompt: object) -> BadSample:
    return BadSample(f"generation: the stream gave no token for prompt {prompt!r:.60}")


@dataclass(slots=True, kw_only=True)
class Conversation:
    """Performs iterations by going through the prompts; keeps measured replies."""

    device: Device
    stream: Stream
    prompts: Sequence[object]
    replies: list[Reply] = field(default_factory=list)
    digests: set[str] = field(default_factory=set)
    _usual: tuple[tuple[Tokens, ...], ...] = ()
    last: tuple[Reply, ...] = ()

    def __call__(self, request: Request) -> list[int]:
        times = []
        if request.dropped:
            del self.replies[-request.dropped * len(self.prompts) :]
        for _ in range(request.count):
            started = self.device.now_ns()
            self.last = tuple(
                receive(self.device, self.stream, prompt) for prompt in self.prompts
            )
            times.append(self.device.now_ns() - started)
            self._file(measured=request.measured)
        return times

    def _file(self, *, measured: bool) -> None:
        chunks = tuple(reply.chunks for reply in self.last)
        if chunks != self._usual:  # a digest costs more than most comparisons
            self._usual = chunks
            self.digests.add(digest([reply.tokens for reply in self.last]))
        if measured:
            self.replies += self.last


def digest(replies: Sequence[Tokens]) -> str:
    """Digest of the token ids of all replies, in order."""
    text = repr([list(tokens) for tokens in replies])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def check_prompts(prompts: Iterable[object]) -> list[object]:
    """Make a list of the prompts.

    Raises
    ------
    UsageError
        There is none, or it is a single text.
    """
    if isinstance(prompts, str | bytes):
        raise UsageError(
            f"generation: prompts={prompts!r:.60} is one text; write [prompt]"
        )
    listed = list(prompts)
    if not listed:
        raise UsageError("generation: prompts is empty; give at least one prompt")
    return listed


def measure_generation(
    context: MeasureContext,
    target: Target,
    stream: Stream,
    prompts: Iterable[object],
) -> tuple[Measurement, list[list[int]]]:
    """Measure a stream of tokens; returns the last reply to each prompt, too."""
    listed = check_prompts(prompts)
    device = context.device
    wanted = recipe(context, target.benchmark, samples_per_iteration=len(listed))
    talk = Conversation(device=device, stream=stream, prompts=listed)
    device.begin(target.benchmark, run=context.run, slowdown=context.slowdown)
    outcome = drive(schedule(device, wanted.single("generation")), talk)
    found = Findings(
        series=_series(target, outcome, talk),
        workload=workload_digest(f"generation {_lengths(talk)}", listed),
        output=_output(talk),
        remarks=_remarks(talk),
        counted=counted(
            context, outcome, lambda: [consume(stream, prompt) for prompt in listed]
        ),
    )
    return assemble(context, target, outcome, found), [
        list(reply.tokens) for reply in talk.last
    ]


def _output(talk: Conversation) -> dict[str, float]:
    """Tell what was said; nothing where it differs from iteration to iteration."""
    if len(talk.digests) > 1:
        return {}
    replies = [reply.tokens for reply in talk.last]
    return {f"tokens {digest(replies)}": float(sum(map(len, replies)))}


def _lengths(talk: Conversation) -> tuple[int, ...]:
    """Count the tokens of the replies, which are part of the work if they hold."""
    if len(talk.digests) > 1:
        return ()
    return tuple(len(reply.tokens) for reply in talk.last)


def _series(
    target: Target, outcome: Outcome, talk: Conversation
) -> tuple[Samples, ...]:
    replies = talk.replies
    values = {
        "ttft": [reply.ttft_s for reply in replies],
        "tpot": [reply.tpot_s for reply in replies if reply.tpot_s is not None],
        "e2e": [reply.e2e_s for reply in replies],
    }
    tokens = sum(len(reply.tokens) for reply in replies) / outcome.iterations
    return (
        *(
            samples(METRICS[name], found, where=target.benchmark)
            for name, found in values.items()
            if found
        ),
        *throughput(
            outcome,
            work_per_iteration=tokens,
            unit="tokens",
            wall_ns=sum(outcome.host_ns),
        ),
    )


def _remarks(talk: Conversation) -> tuple[str, ...]:
    remarks = []
    if len(talk.digests) > 1:
        remarks.append("unstable output")
    undefined = sum(reply.tpot_s is None for reply in talk.last)
    if undefined:
        remarks.append(
            f"tpot undefined for {undefined} of {len(talk.last)} requests: "
            "their first chunk was their last"
        )
    return tuple(remarks)
