"""What came out is described by place, type, shape and magnitude."""

import math

import numpy as np
import pytest

from pytest_perfgate.workloads import outputs
from pytest_perfgate.workloads.call import measure_call
from pytest_perfgate.workloads.inference import Work, measure_inference
from pytest_perfgate.workloads.outputs import output_of, output_remarks


def test_an_array_is_its_type_shape_and_mean_magnitude():
    array = np.array([[1.0, -3.0]], dtype=np.float32)
    assert output_of(array) == {"float32[1,2]": 2.0}
    assert output_of(np.array([3 + 4j])) == {"complex128[1]": 5.0}
    assert output_of(np.array([True, False])) == {"bool[2]": 0.5}


def test_containers_say_where_an_array_was():
    one = np.ones(2)
    result = {"logits": (one, 2 * one), "past": [[{"k": one}]], "name": "x"}
    assert output_of(result) == {
        "logits 0 float64[2]": 1.0,
        "logits 1 float64[2]": 2.0,
        "past 0 0 k float64[2]": 1.0,
    }


def test_a_container_that_holds_itself_ends():
    endless = []
    endless.append(endless)
    assert output_of(endless) == {}


def test_only_the_first_arrays_are_looked_at():
    assert len(output_of([np.ones(1)] * 20)) == outputs.MOST_ARRAYS


def test_nothing_is_made_of_what_holds_no_numbers():
    for found in (None, 3.0, "text", object(), np.array(["a"]), np.array([None])):
        assert output_of(found) == {}


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_named_and_remarked(bad):
    found = output_of(np.array([1.0, bad]))
    assert found == {"float64[2] not finite": 0.0}
    assert output_remarks(found) == ("the output holds NaN or infinity: float64[2]",)
    assert output_remarks({"float64[2]": 1.0}) == ()


def test_an_empty_and_a_huge_array_are_their_shape(monkeypatch):
    monkeypatch.setattr(outputs, "MOST_ELEMENTS", 3)
    assert output_of([np.ones(0), np.ones(4)]) == {
        "0 float64[0]": 0.0,
        "1 float64[4]": 0.0,
    }


def test_calls_and_inference_carry_it(make_context, target):
    context = make_context(iterations=3, warmup=1)
    called, _ = measure_call(context, target, np.full, (2, np.nan), {})
    assert called.output == {"float64[2] not finite": 0.0}
    assert "the output holds NaN or infinity: float64[2]" in called.remarks
    inferred, _ = measure_inference(context, target, np.ones, (2,), Work())
    assert inferred.output == {"float64[2]": 1.0}


class TestTensors:
    torch = pytest.importorskip("torch")

    @pytest.mark.parametrize("name", ["float16", "bfloat16", "float64", "int64"])
    def test_a_tensor_likewise(self, name):
        tensor = self.torch.tensor([1, -3], dtype=getattr(self.torch, name))
        assert output_of((tensor,)) == {f"0 {name}[2]": 2.0}

    def test_one_that_needs_a_gradient_keeps_its_graph(self):
        weight = self.torch.ones(2, requires_grad=True)
        assert output_of(weight * 2) == {"float32[2]": 2.0}
        assert weight.grad is None

    def test_half_precision_does_not_overflow(self):
        assert output_of(self.torch.full((4096,), 6e4).half()) == {
            "float16[4096]": pytest.approx(6e4)
        }

    def test_what_is_no_plain_tensor_is_left_out(self):
        torch = self.torch
        sparse = torch.eye(2).to_sparse()
        nested = torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged)
        meta = torch.ones(2, device="meta")
        derived = torch.ones(2).as_subclass(type("Odd", (torch.Tensor,), {}))
        assert output_of([sparse, nested, meta, derived]) == {}
        assert output_of(torch.nn.Parameter(torch.ones(2))) == {"float32[2]": 1.0}
