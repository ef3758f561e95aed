"""Chat: greedy answers of one length to prompts of one length, token by token."""

import pytest

from benches.models import (
    LARGE_DECODER,
    TINY_DECODER,
    Decoder,
    GreedyGenerator,
    random_ids,
)

PROMPTS = 16


@pytest.mark.parametrize("prompt", ["question", "document"])
def bench_chat(perfgate, target, prompt):
    config = target.pick(small=TINY_DECODER, large=LARGE_DECODER)
    lengths = target.pick(
        small={"question": 8, "document": 48}, large={"question": 64, "document": 2048}
    )
    decoder = target.build_frozen(Decoder, config)
    generator = GreedyGenerator(decoder, new_tokens=target.pick(small=12, large=32))
    ids = random_ids(
        PROMPTS, lengths[prompt], vocabulary=config.vocabulary, device=target.device
    )
    prompts = list(ids.split(1))
    answers = perfgate.generation(generator.stream, prompts)
    assert [len(answer) for answer in answers] == [generator.new_tokens] * PROMPTS
    assert all(0 <= token < config.vocabulary for answer in answers for token in answer)
