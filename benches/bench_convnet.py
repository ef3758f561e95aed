"""A residual network over pictures: answering, and one step of training it."""

import pytest

from benches.vision import (
    LARGE_CONVNET,
    SMALL_CONVNET,
    TINY_CONVNET,
    Convnet,
    functional,
    random_pictures,
    torch,
)


@pytest.mark.parametrize("batch", [1, 8])
def bench_convnet(perfgate, target, batch):
    config = target.pick(small=SMALL_CONVNET, large=LARGE_CONVNET)
    side = target.pick(small=32, large=224)
    model = target.build_frozen(Convnet, config)
    pictures = random_pictures(batch, side, device=target.device, dtype=target.dtype)
    logits = perfgate.inference(model, pictures, batch_size=batch)
    assert logits.shape == (batch, config.classes)
    assert logits.isfinite().all()


def bench_convnet_training_step(perfgate, target):
    config = target.pick(small=TINY_CONVNET, large=LARGE_CONVNET)
    batch, side = target.pick(small=(4, 16), large=(32, 224))
    model = target.build(Convnet, config)
    pictures = random_pictures(batch, side, device=target.device, dtype=torch.float32)
    labels = torch.randint(config.classes, (batch,), device=target.device)
    loss = perfgate.training_step(
        model,
        torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9),
        functional.cross_entropy,
        (pictures, labels),
        batch_size=batch,
    )
    assert loss.isfinite()
    assert all(parameter.isfinite().all() for parameter in model.parameters())
