"""One step of training a decoder with AdamW, in full and in mixed precision."""

import pytest

from benches.models import (
    MEDIUM_DECODER,
    TINY_DECODER,
    Decoder,
    make_optimizer,
    next_token_loss,
    random_ids,
    torch,
)

AUTOCAST = {"fp32": None, "bf16": torch.bfloat16}


@pytest.mark.parametrize("precision", AUTOCAST)
def bench_training_step(perfgate, target, precision):
    config = target.pick(small=TINY_DECODER, large=MEDIUM_DECODER)
    batch, length = target.pick(small=(2, 32), large=(8, 1024))
    model = target.build(Decoder, config)
    ids = random_ids(
        batch, length + 1, vocabulary=config.vocabulary, device=target.device
    )
    loss = perfgate.training_step(
        model,
        make_optimizer(model),
        next_token_loss,
        (ids[:, :-1], ids[:, 1:]),
        autocast=AUTOCAST[precision],
        batch_size=batch,
    )
    assert loss.shape == ()
    assert loss.isfinite()
    assert all(parameter.isfinite().all() for parameter in model.parameters())
