"""The benchmarks' models compute what they claim to, so that their times mean something."""

import pytest

torch = pytest.importorskip("torch")

from benches import conftest, models  # noqa: E402  (they need torch)

CONFIG = models.DecoderConfig(
    vocabulary=61, width=32, layers=2, heads=4, kv_heads=2, hidden=48, context=24
)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        yield


@pytest.fixture
def decoder():
    return models.Decoder(CONFIG).eval()


@pytest.fixture
def ids():
    return models.random_ids(3, 20, vocabulary=CONFIG.vocabulary, device=CPU)


def make_cache(decoder, *, batch):
    return models.KVCache(decoder.config, batch=batch, like=decoder.head.weight)


# --- rotary embeddings


def rotated(x):
    cosine, sine = models.rotary_tables(CONFIG)
    return models.rotate(x, cosine[: x.shape[-2]], sine[: x.shape[-2]])


def test_rotary_keeps_every_norm():
    x = torch.randn(2, 4, 20, CONFIG.head_width)
    torch.testing.assert_close(rotated(x).norm(dim=-1), x.norm(dim=-1))


def test_rotary_leaves_the_first_position_and_turns_the_second_by_its_angles():
    x = torch.randn(2, CONFIG.head_width)
    half = CONFIG.head_width // 2
    turned = rotated(x)
    torch.testing.assert_close(turned[0], x[0])
    angles = torch.tensor(
        [10_000.0 ** (-2 * i / CONFIG.head_width) for i in range(half)]
    )
    as_complex = torch.complex(x[1, :half], x[1, half:]) * torch.polar(
        torch.ones(half), angles
    )
    torch.testing.assert_close(turned[1, :half], as_complex.real)
    torch.testing.assert_close(turned[1, half:], as_complex.imag)


def test_rotary_scores_depend_on_the_distance_alone():
    query, key = torch.randn(2, CONFIG.head_width)
    queries = rotated(query.expand(20, -1))
    keys = rotated(key.expand(20, -1))
    scores = queries @ keys.T
    torch.testing.assert_close(scores[5, 2], scores[15, 12])
    torch.testing.assert_close(scores[3, 3], query @ key)
    assert not torch.isclose(scores[5, 2], scores[5, 3])


# --- attention


def reference_attention(query, key, value):
    """Written out, with each key repeated for the heads that share it."""
    share = query.shape[1] // key.shape[1]
    key, value = (
        key.repeat_interleave(share, dim=1),
        value.repeat_interleave(share, dim=1),
    )
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    offset = key.shape[-2] - query.shape[-2]
    future = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(offset + 1)
    return scores.masked_fill(future, float("-inf")).softmax(dim=-1) @ value


@pytest.mark.parametrize(
    ("length", "end"),
    [(9, 9), (1, 9), (4, 9), (1, 1)],
    ids=["prefill", "one-step", "later-chunk", "first-token"],
)
def test_grouped_queries_equal_repeated_heads(length, end):
    query = torch.randn(2, 6, length, 8)
    key, value = torch.randn(2, 2, 2, end, 8)
    torch.testing.assert_close(
        models.causal_attention(query, key, value),
        reference_attention(query, key, value),
    )


# --- decoder and its cache


@pytest.mark.parametrize("chunks", [[20], [19, 1], [1] * 20, [5, 7, 8]])
@torch.inference_mode()
def test_cached_steps_equal_the_full_forward(decoder, ids, chunks):
    cache = make_cache(decoder, batch=3)
    start, parts = 0, []
    for length in chunks:
        parts.append(decoder(ids[:, start : start + length], cache, start=start))
        start += length
    torch.testing.assert_close(
        torch.cat(parts, dim=1), decoder(ids), rtol=1e-4, atol=1e-5
    )


@torch.inference_mode()
def test_last_only_is_the_last_position(decoder, ids):
    torch.testing.assert_close(
        decoder(ids, last_only=True), decoder(ids)[:, -1], rtol=1e-4, atol=1e-5
    )


@torch.inference_mode()
def test_no_position_sees_the_future(decoder, ids):
    changed = ids.clone()
    changed[:, 12] = (changed[:, 12] + 1) % CONFIG.vocabulary
    before, after = decoder(ids), decoder(changed)
    torch.testing.assert_close(before[:, :12], after[:, :12])
    assert not torch.allclose(before[:, 12:], after[:, 12:])


@torch.inference_mode()
def test_a_repeated_step_gives_the_same(decoder, ids):
    cache = make_cache(decoder, batch=3)
    decoder(ids, cache)
    step = ids[:, -1:]
    first = decoder(step, cache, start=19)
    assert torch.equal(decoder(step, cache, start=19), first)


@torch.inference_mode()
def test_the_cache_is_allocated_once(decoder, ids):
    cache = make_cache(decoder, batch=3)
    place = cache.keys.data_ptr(), cache.values.data_ptr()
    decoder(ids, cache)
    assert (cache.keys.data_ptr(), cache.values.data_ptr()) == place
    assert cache.keys.shape == (2, 3, 2, 24, 8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 30}, "width 30, heads 4 and kv_heads 2"),
        ({"kv_heads": 3}, "kv_heads 3 must each be a multiple"),
        ({"width": 12}, "heads of width 3 cannot be rotated"),
    ],
)
def test_a_shape_that_cannot_be_built_is_refused(changes, message):
    shape = {name: getattr(CONFIG, name) for name in CONFIG.__dataclass_fields__}
    with pytest.raises(ValueError, match=message):
        models.DecoderConfig(**(shape | changes))


def parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("make", "config", "billions"),
    [
        (models.Decoder, models.LARGE_DECODER, 1.1),
        (models.Decoder, models.MEDIUM_DECODER, 0.2),
        (models.Encoder, models.LARGE_ENCODER, 0.34),
    ],
)
def test_large_models_have_the_size_their_comment_states(make, config, billions):
    with torch.device("meta"):
        model = make(config)
    assert parameters(model) / 1e9 == pytest.approx(billions, rel=0.06)


# --- encoder


@torch.inference_mode()
def test_encoder_equals_torchs_own_layers():
    config = models.EncoderConfig(
        vocabulary=61, width=32, layers=2, heads=4, hidden=64, context=16
    )
    encoder = models.Encoder(config).eval()
    ids = models.random_ids(3, 12, vocabulary=61, device=CPU)
    x = encoder.embed(ids) + encoder.position[:12]
    for block in encoder.blocks:
        layer = torch.nn.TransformerEncoderLayer(
            32, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        layer.self_attn.in_proj_weight.copy_(block.qkv.weight)
        layer.self_attn.in_proj_bias.copy_(block.qkv.bias)
        layer.self_attn.out_proj.load_state_dict(block.out.state_dict())
        layer.linear1.load_state_dict(block.up.state_dict())
        layer.linear2.load_state_dict(block.down.state_dict())
        x = layer.eval()(x)
    torch.testing.assert_close(
        encoder(ids), encoder.norm(x).mean(dim=1), rtol=1e-4, atol=1e-5
    )


# --- training and generation


@pytest.mark.parametrize("autocast", [False, True], ids=["fp32", "bf16"])
def test_training_reduces_the_loss(decoder, ids, autocast):
    optimizer = models.make_optimizer(decoder)
    batch = ids[:, :-1], ids[:, 1:]
    losses = []
    for _ in range(30):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = models.next_token_loss(decoder(batch[0]), batch[1])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(torch.tensor(61.0).log().item(), rel=0.1)
    assert losses[-1] < 0.9 * losses[0]


def test_every_parameter_is_trained(decoder, ids):
    models.next_token_loss(decoder(ids[:, :-1]), ids[:, 1:]).backward()
    still = [name for name, p in decoder.named_parameters() if not p.grad.any()]
    assert still == []


def test_generation_gives_the_same_tokens_every_time(decoder, ids):
    generator = models.GreedyGenerator(decoder, new_tokens=10)
    first, second = (list(generator.stream(ids[:1, :8])) for _ in range(2))
    other = list(generator.stream(ids[1:2, :8]))
    assert first == second
    assert len(other) == 10
    assert first != other


@torch.inference_mode()
def test_generation_is_greedy(decoder, ids):
    prompt = ids[:1, :8]
    tokens = list(models.GreedyGenerator(decoder, new_tokens=10).stream(prompt))
    expected = prompt
    for _ in range(10):
        expected = torch.cat((expected, decoder(expected)[:, -1:].argmax(-1)), dim=1)
    assert tokens == expected[0, 8:].tolist()


def test_generation_streams_and_leaves_inference_mode_between_tokens(decoder, ids):
    stream = models.GreedyGenerator(decoder, new_tokens=3).stream(ids[:1, :8])
    assert isinstance(next(stream), int)
    assert not torch.is_inference_mode_enabled()
    assert len(list(stream)) == 2


# --- where they run


def fail_with_one_thread():
    with conftest.one_thread(torch):
        assert torch.get_num_threads() == 1
        raise ZeroDivisionError


def test_one_thread_is_undone_even_after_a_failure():
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with pytest.raises(ZeroDivisionError):
            fail_with_one_thread()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)


class Options:
    def __init__(self, *, flag=None, ini=None):
        self.getoption = {"perfgate_device": flag}.__getitem__
        self.getini = {"perfgate_device": ini}.__getitem__


class Machine:
    def __init__(self, *, gpu):
        self.cuda = self
        self.is_available = lambda: gpu


@pytest.mark.parametrize(
    ("options", "gpu", "device"),
    [
        (Options(), True, "cuda"),
        (Options(), False, "cpu"),
        (Options(flag="auto"), True, "cuda"),
        (Options(flag="cpu"), True, "cpu"),
        (Options(ini="cuda:1"), True, "cuda:1"),
        (Options(flag="cpu", ini="cuda:1"), True, "cpu"),
    ],
)
def test_the_device_is_the_one_asked_for(options, gpu, device):
    assert conftest.wanted_device(options, Machine(gpu=gpu)) == device


@pytest.mark.parametrize(
    ("device", "dtype", "size"),
    [("cpu", "float32", "small"), ("meta", "bfloat16", "large")],
)
def test_frozen_models_fit_their_target(device, dtype, size):
    target = conftest.Target(device=torch.device(device), dtype=getattr(torch, dtype))
    model = target.build_frozen(models.Decoder, CONFIG)
    assert target.pick(small="small", large="large") == size
    assert not model.training
    for parameter in model.parameters():
        assert parameter.device == target.device
        assert parameter.dtype == target.dtype
        assert not parameter.requires_grad
