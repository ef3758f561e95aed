"""The network and the pictures of the benchmarks are what they claim to be."""

import pytest

torch = pytest.importorskip("torch")

from benches import vision  # noqa: E402  (it needs torch)

CPU = torch.device("cpu")
CONFIG = vision.ConvnetConfig(width=4, stages=3, blocks=2, classes=7)


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        yield


def test_each_stage_halves_the_picture_and_doubles_the_channels():
    model = vision.Convnet(CONFIG).eval()
    pictures = vision.random_pictures(2, 32, device=CPU, dtype=torch.float32)
    features = model.body(model.stem(pictures))
    assert features.shape == (2, 16, 4, 4)
    assert model(pictures).shape == (2, 7)


def test_a_block_adds_to_what_came_in():
    block = vision.ResidualBlock(4, 4, stride=1).eval()
    torch.nn.init.zeros_(block.second.weight)
    x = torch.rand(1, 4, 6, 6)
    torch.testing.assert_close(block(x), x)


def test_a_picture_does_not_see_its_neighbours_when_answering():
    model = vision.Convnet(CONFIG).eval()
    pictures = vision.random_pictures(3, 16, device=CPU, dtype=torch.float32)
    torch.testing.assert_close(model(pictures)[1:2], model(pictures[1:2]))


def test_training_reduces_the_loss():
    model = vision.Convnet(CONFIG)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pictures = vision.random_pictures(8, 16, device=CPU, dtype=torch.float32)
    labels = torch.randint(7, (8,))
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = vision.functional.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_records_are_decoded_as_they_were_and_compress_well():
    records = vision.random_records(3, 32, classes=5)
    assert all(0 <= record.label < 5 for record in records)
    for record in records:
        picture = vision.decode(record, side=32)
        assert picture.shape == (3, 32, 32)
        assert picture.dtype == torch.uint8
        assert len(record.data) < 0.9 * picture.numel()
        assert picture.float().std() > 1  # not one colour


def test_augmenting_shifts_mirrors_and_scales():
    picture = torch.arange(3 * 8 * 8, dtype=torch.uint8).reshape(3, 8, 8)
    plain = vision.augment(picture, margin=0, flip=False)
    torch.testing.assert_close(plain, picture.float() / 127.5 - 1)
    mirrored = vision.augment(picture, margin=0, flip=True)
    assert torch.equal(mirrored, plain.flip(-1))
    shifted = {
        vision.augment(picture, margin=2, flip=False).sum().item() for _ in range(20)
    }
    assert len(shifted) > 1


def test_a_batch_keeps_pictures_and_labels_together():
    records = vision.random_records(4, 16, classes=9)
    pictures = [vision.decode(record, side=16) for record in records]
    batch, labels = vision.collate(pictures, records)
    assert torch.equal(batch[2], pictures[2])
    assert labels.tolist() == [record.label for record in records]
