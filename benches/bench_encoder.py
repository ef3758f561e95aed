"""A text encoder over the shapes that an embedding service sees."""

import pytest

from benches.models import LARGE_ENCODER, SMALL_ENCODER, Encoder, random_ids


@pytest.mark.parametrize("length", ["short", "long"])
@pytest.mark.parametrize("batch", [1, 8])
def bench_encoder(perfgate, target, batch, length):
    config = target.pick(small=SMALL_ENCODER, large=LARGE_ENCODER)
    model = target.build_frozen(Encoder, config)
    lengths = target.pick(
        small={"short": 16, "long": 64}, large={"short": 64, "long": 512}
    )
    ids = random_ids(
        batch, lengths[length], vocabulary=config.vocabulary, device=target.device
    )
    vectors = perfgate.inference(model, ids, batch_size=batch, tokens=ids.numel())
    assert vectors.shape == (batch, config.width)
    assert vectors.isfinite().all()
