"""From compressed records to a model's answer, one stage after another.

Where a training job waits for its data, one of these stages is why. All of it runs
in one process: a loader with processes of its own hides its time, not its cost.
"""

from benches.vision import (
    LARGE_CONVNET,
    TINY_CONVNET,
    Convnet,
    augment,
    collate,
    decode,
    random_records,
    torch,
)

MARGIN = 2


def bench_data_pipeline(perfgate, target):
    config = target.pick(small=TINY_CONVNET, large=LARGE_CONVNET)
    count, side = target.pick(small=(8, 32), large=(64, 224))
    records = random_records(count, side, classes=config.classes)
    model = target.build_frozen(Convnet, config)
    logits = labels = None
    for _ in perfgate.iterations():
        with perfgate.stage("decode"):
            pictures = [decode(record, side=side) for record in records]
        with perfgate.stage("augment"):
            shifted = [
                augment(picture, margin=MARGIN, flip=index % 2 == 1)
                for index, picture in enumerate(pictures)
            ]
        with perfgate.stage("collate"):
            batch, labels = collate(shifted, records)
        with perfgate.stage("transfer"):
            batch = batch.to(target.device, target.dtype)
            labels = labels.to(target.device)
        with perfgate.stage("forward"), torch.inference_mode():
            logits = model(batch)
    assert logits.shape == (count, config.classes)
    assert logits.isfinite().all()
    assert labels.tolist() == [record.label for record in records]
