"""The models that the benchmarks run: plain torch, random weights, no downloads.

A Llama-style decoder and a pre-norm encoder, each in a size for a CPU and in one for
a data-centre GPU. A checkout without torch skips whatever imports this module.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn
functional = torch.nn.functional


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """The shape of a decoder; `kv_heads` must divide `heads`, and `heads` `width`."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    context: int
    """Positions that the rotary tables and a cache have room for."""
    rope_base: float = 10_000.0

    def __post_init__(self) -> None:
        if self.width % self.heads or self.heads % self.kv_heads:
            raise ValueError(
                f"width {self.width}, heads {self.heads} and kv_heads {self.kv_heads} "
                "must each be a multiple of the next"
            )
        if self.head_width % 2:
            raise ValueError(
                f"heads of width {self.head_width} cannot be rotated; make it even"
            )

    @property
    def head_width(self) -> int:
        return self.width // self.heads


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """The shape of an encoder; `heads` must divide `width`."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    hidden: int
    context: int


TINY_DECODER = (
    DecoderConfig(  # for training and chat, which make many calls an iteration
        vocabulary=256, width=64, layers=1, heads=4, kv_heads=2, hidden=176, context=64
    )
)
SMALL_DECODER = DecoderConfig(
    vocabulary=512, width=128, layers=2, heads=8, kv_heads=2, hidden=352, context=256
)
MEDIUM_DECODER = DecoderConfig(  # 0.2 billion parameters; 3 GB with AdamW in float32
    vocabulary=32_768,
    width=1024,
    layers=12,
    heads=16,
    kv_heads=4,
    hidden=2816,
    context=1024,
)
LARGE_DECODER = DecoderConfig(  # 1.1 billion parameters; 2.2 GB in bfloat16
    vocabulary=32_768,
    width=2048,
    layers=16,
    heads=32,
    kv_heads=8,
    hidden=8192,
    context=4096,
)
SMALL_ENCODER = EncoderConfig(
    vocabulary=512, width=64, layers=2, heads=4, hidden=256, context=128
)
LARGE_ENCODER = EncoderConfig(  # the shape of BERT large
    vocabulary=32_768, width=1024, layers=24, heads=16, hidden=4096, context=512
)


def rotary_tables(config: DecoderConfig) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of every position's angles, each (context, head_width / 2).

    References
    ----------
    Su et al., RoFormer (arXiv 2104.09864), equation 34.
    """
    pairs = (
        torch.arange(0, config.head_width, 2, dtype=torch.float32) / config.head_width
    )
    angles = torch.outer(torch.arange(config.context), config.rope_base**-pairs)
    return angles.cos(), angles.sin()


def rotate(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Turn each pair of features by its position's angle.

    A pair is one feature of the first half and its partner of the second.

    Parameters
    ----------
    x : (…, length, head_width)
    cosine, sine : (length, head_width / 2)
    """
    first, second = x.chunk(2, dim=-1)
    return torch.cat(
        (first * cosine - second * sine, first * sine + second * cosine), dim=-1
    )


class KVCache:
    """Room for the keys and values of a whole context, allocated once.

    A step writes its positions and attends to all before them, so that stepping twice
    at one position costs the same and gives the same.
    """

    def __init__(
        self, config: DecoderConfig, *, batch: int, like: torch.Tensor
    ) -> None:
        shape = (
            config.layers,
            batch,
            config.kv_heads,
            config.context,
            config.head_width,
        )
        self.keys = torch.empty(shape, dtype=like.dtype, device=like.device)
        self.values = torch.empty_like(self.keys)

    def write(
        self, layer: int, start: int, key: torch.Tensor, value: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store positions from `start` on; return views of all positions so far."""
        end = start + key.shape[-2]
        self.keys[layer, :, :, start:end] = key
        self.values[layer, :, :, start:end] = value
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]


def causal_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> torch.Tensor:
    """Attention of the last positions to all before them, heads sharing keys in groups.

    Parameters
    ----------
    query : (batch, heads, length, head_width)
    key, value : (batch, kv_heads, end, head_width), end >= length
    """
    length, end = query.shape[-2], key.shape[-2]
    mask = None
    if (
        1 < length < end
    ):  # a later chunk of a prompt: `is_causal` would align the wrong corner
        mask = torch.ones(length, end, dtype=torch.bool, device=query.device).tril(
            end - length
        )
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=1 < length == end, enable_gqa=True
    )


class DecoderBlock(nn.Module):
    """Grouped-query attention and a SwiGLU, each behind an RMSNorm and a residual."""

    def __init__(self, config: DecoderConfig, *, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.heads, self.kv_heads = config.heads, config.kv_heads
        self.head_width = config.head_width
        all_heads = config.heads + 2 * config.kv_heads  # queries, keys and values
        self.attention_norm = nn.RMSNorm(config.width, eps=1e-5)
        self.qkv = nn.Linear(config.width, all_heads * config.head_width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.mlp_norm = nn.RMSNorm(config.width, eps=1e-5)
        self.gate = nn.Linear(config.width, config.hidden, bias=False)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(
        self,
        x: torch.Tensor,
        tables: tuple[torch.Tensor, torch.Tensor],
        cache: KVCache | None,
        start: int,
    ) -> torch.Tensor:
        x = x + self.out(self._attend(self.attention_norm(x), tables, cache, start))
        normed = self.mlp_norm(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))

    def _attend(
        self,
        x: torch.Tensor,
        tables: tuple[torch.Tensor, torch.Tensor],
        cache: KVCache | None,
        start: int,
    ) -> torch.Tensor:
        heads = self.qkv(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
        turning, value = heads.split((self.heads + self.kv_heads, self.kv_heads), dim=1)
        query, key = rotate(turning, *tables).split((self.heads, self.kv_heads), dim=1)
        if cache is not None:
            key, value = cache.write(self.layer, start, key, value)
        return causal_attention(query, key, value).transpose(1, 2).flatten(-2)


class Decoder(nn.Module):
    """A Llama-style language model."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList(
            DecoderBlock(config, layer=layer) for layer in range(config.layers)
        )
        self.norm = nn.RMSNorm(config.width, eps=1e-5)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        cosine, sine = rotary_tables(config)
        self.register_buffer("cosine", cosine, persistent=False)
        self.register_buffer("sine", sine, persistent=False)

    def forward(
        self,
        ids: torch.Tensor,
        cache: KVCache | None = None,
        *,
        start: int = 0,
        last_only: bool = False,
    ) -> torch.Tensor:
        """Logits (batch, length, vocabulary), or of the last position alone.

        Parameters
        ----------
        ids : int64, (batch, length)
        cache : holds the positions before `start`, and takes these
        start : position of the first of `ids`
        last_only : what serving wants: the head is run on one position; (batch, vocabulary)
        """
        x = self.embed(ids)
        tables = tuple(
            table[start : start + ids.shape[1]].to(x.dtype)
            for table in (self.cosine, self.sine)
        )
        for block in self.blocks:
            x = block(x, tables, cache, start)
        return self.head(self.norm(x[:, -1] if last_only else x))


class EncoderBlock(nn.Module):
    """Self-attention and a GELU layer, each behind a LayerNorm and a residual.

    Written out rather than taken from `nn.TransformerEncoderLayer`, whose fused fast
    path hides its operators from profilers and FLOP counters.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.attention_norm = nn.LayerNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.mlp_norm = nn.LayerNorm(config.width)
        self.up = nn.Linear(config.width, config.hidden)
        self.down = nn.Linear(config.hidden, config.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(self.attention_norm(x)).chunk(3, dim=-1)
        )
        attended = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.out(attended.transpose(1, 2).flatten(-2))
        return x + self.down(functional.gelu(self.up(self.mlp_norm(x))))


class Encoder(nn.Module):
    """A pre-norm transformer encoder that gives one vector a sequence."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.position = nn.Parameter(torch.randn(config.context, config.width) * 0.02)
        self.blocks = nn.Sequential(
            *(EncoderBlock(config) for _ in range(config.layers))
        )
        self.norm = nn.LayerNorm(config.width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Mean of the last layer, (batch, width), for ids (batch, length)."""
        x = self.embed(ids) + self.position[: ids.shape[1]]
        return self.norm(self.blocks(x)).mean(dim=1)


def random_ids(*shape: int, vocabulary: int, device: torch.device) -> torch.Tensor:
    """Token ids, uniform over the vocabulary, from torch's global generator."""
    return torch.randint(vocabulary, shape, device=device)


def next_token_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy of logits (batch, length, vocabulary) and ids (batch, length)."""
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """AdamW in its fused form, which the CPU has as well."""
    return torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)


class Server(nn.Module):
    """A decoder with a cache of its own, as an inference server holds it."""

    def __init__(self, decoder: Decoder, *, batch: int) -> None:
        super().__init__()
        self.decoder = decoder
        self.cache = KVCache(decoder.config, batch=batch, like=decoder.head.weight)

    def forward(self, ids: torch.Tensor, start: int = 0) -> torch.Tensor:
        """Logits (batch, vocabulary) of what follows `ids`, the first at position `start`."""
        return self.decoder(ids, self.cache, start=start, last_only=True)


class GreedyGenerator:
    """Streams the most likely tokens after a prompt, always the same number of them.

    The end-of-text token is ignored and the cache is reused, so that every request of
    one prompt length costs the same.
    """

    def __init__(self, decoder: Decoder, *, new_tokens: int) -> None:
        self.server = Server(decoder, batch=1)
        self.new_tokens = new_tokens

    @torch.inference_mode()
    def stream(self, prompt: torch.Tensor) -> Iterator[int]:
        """Token ids one by one, each as soon as the host has it; prompt (1, length)."""
        ids, start = prompt, 0
        for _ in range(self.new_tokens):
            logits = self.server(ids, start)
            start += ids.shape[1]
            ids = logits.argmax(dim=-1, keepdim=True)
            yield int(ids)
