"""A Llama-style decoder, as a server runs it: reading a prompt, writing one token."""

import pytest

from benches.models import (
    LARGE_DECODER,
    SMALL_DECODER,
    Decoder,
    Server,
    random_ids,
)


def make_server(target, *, batch):
    config = target.pick(small=SMALL_DECODER, large=LARGE_DECODER)
    return Server(target.build_frozen(Decoder, config), batch=batch)


def make_ids(target, server, *, batch, length):
    vocabulary = server.decoder.config.vocabulary
    return random_ids(batch, length, vocabulary=vocabulary, device=target.device)


def check_logits(logits, server, *, batch):
    assert logits.shape == (batch, server.decoder.config.vocabulary)
    assert logits.isfinite().all()


@pytest.mark.parametrize("batch", [1, 4])
def bench_prefill(perfgate, target, batch):
    server = make_server(target, batch=batch)
    length = target.pick(small=32, large=2048)
    ids = make_ids(target, server, batch=batch, length=length)
    logits = perfgate.inference(server, ids, batch_size=batch, tokens=ids.numel())
    check_logits(logits, server, batch=batch)


@pytest.mark.parametrize("batch", [1, 8])
def bench_decode(perfgate, target, batch):
    """One token after a full context, always at the same position: a constant cost."""
    server = make_server(target, batch=batch)
    last = target.pick(small=255, large=2047)
    ids = make_ids(target, server, batch=batch, length=last + 1)
    server(ids[:, :last])
    logits = perfgate.inference(
        server, ids[:, last:], last, batch_size=batch, tokens=batch
    )
    check_logits(logits, server, batch=batch)
