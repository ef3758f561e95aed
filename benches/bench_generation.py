"""Chat: greedy answers of one length to prompts of one length, token by token."""

from benches.models import (
    LARGE_DECODER,
    TINY_DECODER,
    Decoder,
    GreedyGenerator,
    random_ids,
)

PROMPTS = 16


def bench_chat(perfgate, target):
    config = target.pick(small=TINY_DECODER, large=LARGE_DECODER)
    length, new_tokens = target.pick(small=(32, 12), large=(512, 32))
    decoder = target.build_frozen(Decoder, config)
    generator = GreedyGenerator(decoder, new_tokens=new_tokens)
    ids = random_ids(
        PROMPTS, length, vocabulary=config.vocabulary, device=target.device
    )
    answers = perfgate.generation(generator.stream, ids.split(1))
    assert [len(answer) for answer in answers] == [new_tokens] * PROMPTS
    assert all(0 <= token < config.vocabulary for answer in answers for token in answer)
