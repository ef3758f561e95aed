"""Formulas by hand, with make-believe tensors."""

import types

import pytest

from pytest_perfgate.measure.flops import Flops, computes


def tensor(*shape, dtype="torch.float32"):
    return types.SimpleNamespace(shape=shape, dtype=dtype)


@pytest.fixture
def added():
    def add(name, *args, out=None):
        flops = Flops()
        flops.add(f"aten::{name}", args, out)
        return flops

    return add


BIAS, A, B = tensor(6), tensor(4, 5), tensor(5, 6)
Q, K, V = tensor(2, 3, 4, 8), tensor(2, 3, 7, 8), tensor(2, 3, 7, 16)


@pytest.mark.parametrize(
    ("name", "args", "flops"),
    [
        ("mm", (A, B), 2 * 4 * 5 * 6),
        ("addmm", (BIAS, A, B), 2 * 4 * 5 * 6),
        ("bmm", (tensor(3, 4, 5), tensor(3, 5, 6)), 2 * 3 * 4 * 5 * 6),
        ("mv", (A, tensor(5)), 2 * 4 * 5),
        ("addmv", (tensor(4), A, tensor(5)), 2 * 4 * 5),
        ("dot", (tensor(5), tensor(5)), 2 * 5),
        (
            "_scaled_dot_product_flash_attention",
            (Q, K, V),
            2 * 2 * 3 * 4 * 7 * (8 + 16),
        ),
        (
            "_scaled_dot_product_efficient_attention_backward",
            (tensor(2, 3, 4, 16), Q, K, V),
            2 * 2 * 3 * 4 * 7 * (3 * 8 + 2 * 16),
        ),
    ],
)
def test_formulas(added, name, args, flops):
    assert added(name, *args).total == flops


def test_a_convolution_goes_over_its_output(added):
    image, weight, out = tensor(2, 4, 10, 10), tensor(8, 2, 3, 3), tensor(2, 8, 8, 8)
    rest = (None, [1, 1], [0, 0], [1, 1], False, [0, 0], 2)
    found = added("convolution", image, weight, *rest, out=out)
    assert found.by_kind == {("convolution", "float32"): 2 * 2 * 8 * 8 * 8 * 2 * 3 * 3}


@pytest.mark.parametrize(("wanted", "times"), [([True, True, True], 2), ([0, 1, 1], 1)])
def test_backwards_only_what_is_wanted_counts(added, wanted, times):
    out, image, weight = tensor(2, 8, 8, 8), tensor(2, 4, 10, 10), tensor(8, 4, 3, 3)
    rest = ([8], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, wanted)
    found = added("convolution_backward", out, image, weight, *rest)
    assert found.total == times * 2 * 2 * 8 * 8 * 8 * 4 * 9


def test_work_is_told_apart_by_the_numbers_that_are_multiplied(added):
    half = tensor(5, 6, dtype="torch.bfloat16")
    found = added("addmm", tensor(6), tensor(4, 5, dtype="torch.bfloat16"), half)
    assert list(found.by_kind) == [("matmul", "bfloat16")]


@pytest.mark.parametrize(
    "name",
    [
        *("aten::mkldnn_rnn_layer", "aten::lstm", "aten::_thnn_fused_lstm_cell"),
        *("aten::_transformer_encoder_layer_fwd", "aten::_cudnn_rnn", "aten::gru"),
        *("aten::_fft_r2c", "aten::linalg_inv_ex", "aten::_linalg_svd"),
        *("aten::cdist", "aten::_int_mm", "aten::_grouped_mm", "aten::addr"),
        *("aten::_flash_attention_forward", "aten::mkldnn_convolution"),
        *("mine::matter", "torchvision::roi_align", "higher_order::flex"),
        *("quantized::linear", "aten::_cholesky_solve_helper"),
    ],
)
def test_what_hides_operations(name):
    assert computes(name)


@pytest.mark.parametrize(
    "name",
    [
        *("aten::add", "aten::relu", "aten::gelu", "aten::native_dropout"),
        *("aten::upsample_bilinear2d", "aten::upsample_linear1d", "aten::celu"),
        *("aten::_convert_indices_from_coo_to_csr", "aten::native_layer_norm"),
        *("aten::sum", "aten::embedding", "aten::index", "prim::device"),
        *("c10d::allreduce_", "_c10d_functional::all_gather_into_tensor"),
        *("aten::_local_scalar_dense", "aten::permute", "aten::cumsum"),
    ],
)
def test_what_does_not(name):
    assert not computes(name)


def test_an_operator_without_a_formula_is_named(added):
    assert added("lstm", A).unknown == {"aten::lstm": 1}
    assert not added("relu", A).unknown
