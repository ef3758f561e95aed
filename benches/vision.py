"""A residual network for images, and the pictures that it is fed with.

Plain torch, random weights, no downloads. A checkout without torch skips whatever
imports this module.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn
functional = torch.nn.functional


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvnetConfig:
    """The shape of a residual network: each stage halves the picture."""

    width: int
    """Channels of the first stage; each further one has twice as many."""
    stages: int
    blocks: int
    """Residual blocks a stage."""
    classes: int


TINY_CONVNET = ConvnetConfig(width=8, stages=2, blocks=1, classes=10)
SMALL_CONVNET = ConvnetConfig(width=12, stages=3, blocks=1, classes=100)
LARGE_CONVNET = ConvnetConfig(width=128, stages=4, blocks=3, classes=1000)


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions with normalisation, added to what came in."""

    def __init__(self, channels: int, out: int, *, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.second = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(out), nn.BatchNorm2d(out)])
        same = stride == 1 and channels == out
        self.shortcut = (
            nn.Identity()
            if same
            else nn.Conv2d(channels, out, 1, stride=stride, bias=False)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(hidden)) + self.shortcut(x))


class Convnet(nn.Module):
    """Pictures (batch, 3, height, width) to logits (batch, classes)."""

    def __init__(self, config: ConvnetConfig) -> None:
        super().__init__()
        self.config = config
        self.stem = nn.Conv2d(3, config.width, 3, padding=1, bias=False)
        layers: list[nn.Module] = []
        channels = config.width
        for stage in range(config.stages):
            out = config.width * 2**stage
            for block in range(config.blocks):
                stride = 2 if block == 0 else 1
                layers.append(ResidualBlock(channels, out, stride=stride))
                channels = out
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(channels, config.classes)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        features = self.body(self.stem(pictures))
        return self.head(features.mean(dim=(2, 3)))


def random_pictures(
    batch: int, side: int, *, device: torch.device, dtype: torch.dtype
) -> torch.Tensor:
    return torch.randn(batch, 3, side, side, device=device, dtype=dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A picture as a data set stores it, compressed, with its label."""

    data: bytes
    label: int


def random_records(count: int, side: int, *, classes: int) -> list[Record]:
    """Make smooth pictures of random colours, which compress as photographs do."""
    coarse = torch.rand(count, 3, side // 8, side // 8)
    smooth = functional.interpolate(coarse, size=side, mode="bilinear")
    pixels = (smooth * 255).to(torch.uint8)
    labels = torch.randint(classes, (count,)).tolist()
    return [
        Record(data=zlib.compress(bytes(picture.flatten().tolist())), label=label)
        for picture, label in zip(pixels, labels, strict=True)
    ]


def decode(record: Record, *, side: int) -> torch.Tensor:
    """Unpack a picture: (3, side, side), whole numbers of eight bits."""
    pixels = bytearray(zlib.decompress(record.data))
    return torch.frombuffer(pixels, dtype=torch.uint8).reshape(3, side, side)


def augment(picture: torch.Tensor, *, margin: int, flip: bool) -> torch.Tensor:
    """Shift by up to `margin`, perhaps mirror, and scale to -1…1."""
    side = picture.shape[-1]
    padded = functional.pad(picture, (margin,) * 4)
    down, right = torch.randint(2 * margin + 1, (2,)).tolist()
    cut = padded[:, down : down + side, right : right + side]
    cut = cut.flip(-1) if flip else cut
    return cut.to(torch.float32) / 127.5 - 1.0


def collate(
    pictures: Sequence[torch.Tensor], records: Sequence[Record]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Put single pictures and labels together in a batch."""
    labels = torch.tensor([record.label for record in records])
    return torch.stack(list(pictures)), labels
