"""Arrays of numpy as tensors and beside them: shared memory, byte order, types that are no numbers."""

import operator

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import DTypeError
from pellucid.nn import functional as F


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_operators_take_arrays_on_both_sides(device):
    """Element by element, in both orders; PyTorch refuses some of these, and of a != b says True alone."""
    a, b = np.array([1.0, 2.0, 3.0], np.float32), np.array([1.0, 5.0, 2.0], np.float32)
    x, y = (pellucid.tensor(array, device=device) for array in (a, b))
    numbers = ["eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
    for name in [*numbers, "and_", "or_", "xor", "lshift", "rshift", "matmul"]:
        call = getattr(operator, name)
        p, q = (a, b) if name in numbers else (a.astype(np.int32), b.astype(np.int32))
        s, t = (x, y) if name in numbers else (x.int(), y.int())
        for found in (call(s, q), call(p, t)):
            assert type(found) is pellucid.Tensor, name
            np.testing.assert_allclose(found.numpy(), call(p, q), rtol=1e-6, err_msg=name)
    assert (x == np.array(3)).tolist() == [False, False, True]
    assert (x != np.array(3)).tolist() == [True, True, False]
    assert x != "3"


@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning")
def test_what_is_written_over_beside_an_array_is_a_new_tensor():
    """As in PyTorch, where Python goes on to the operator that makes one."""
    for lib in (torch, pellucid):
        for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"):
            x, array = lib.tensor([1.0, 2.0, 3.0], device="cpu"), np.array([1.0, 5.0, 2.0], np.float32)
            made = getattr(operator, name)(x, array)
            assert made is not x
            assert x.tolist() == [1.0, 2.0, 3.0]
            assert isinstance(made, lib.Tensor)
            np.testing.assert_array_equal(made.numpy(), getattr(operator, name[1:])(x.numpy(), array))
        x = lib.ones(2, device="cpu")
        with pytest.raises(TypeError):
            x.add_(np.ones(2, np.float32))
        y = x
        y += np.float32(1)
        assert y is x


def test_the_other_byte_order_is_refused():
    for call in (pellucid.from_numpy, pellucid.tensor, pellucid.as_tensor):
        with pellucid.device("cpu"), pytest.raises(DTypeError, match=r"'float32'"):
            call(np.array([1.0, 2.0], ">f4"))


@pytest.mark.parametrize("call", [pellucid.from_numpy, pellucid.as_tensor])
def test_memory_is_shared(call):
    whole = np.arange(12.0).reshape(3, 4)
    for array in (whole, whole.T, whole[1:, ::2], whole[::-1], whole[0, 1:2]):
        with pellucid.device("cpu"):
            x = call(array)
        array[...] += 1
        np.testing.assert_array_equal(x.numpy(), array)
        x += 1
        np.testing.assert_array_equal(x.numpy(), array)


def test_memory_that_is_not_an_elements_own_is_refused():
    with pytest.raises(ValueError, match="Copy the array first"):
        pellucid.from_numpy(np.zeros(2, [("a", "i1"), ("b", "f4")])["b"])
    at_odds = np.frombuffer(bytes(9), np.uint8)[1:].view(np.float32)
    assert pellucid.from_numpy(at_odds).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a"]),
        np.array([object()]),
        np.array(["2020-01-01"], "M8[D]"),
        np.array([1, None], object),
    ],
)
def test_what_is_no_number_is_refused(array):
    with pellucid.device("cpu"):
        for d in (None, pellucid.float32):
            with pytest.raises(TypeError, match=r"numpy dtype|no numbers"):
                pellucid.tensor(array, dtype=d)
        x = pellucid.zeros(1)
        with pytest.raises(TypeError, match=r"numpy dtype|no numbers"):
            x[...] = array


def test_complex_numbers_lose_no_part():
    with pellucid.device("cpu"):
        x = pellucid.zeros(1)
        for value in (np.array([1j]), 1j):
            with pytest.raises(DTypeError, match="does not hold complex"):
                x[...] = value
        assert pellucid.tensor([3 + 4j]).abs().dtype is pellucid.float32
        assert pellucid.tensor([3 + 4j]).abs().tolist() == [5.0]
        assert pellucid.tensor([1j, 1j]).cumsum(0).tolist() == [1j, 2j]
        z = pellucid.tensor([[1j, 2.0]])
        for name in ("floor", "sign", "relu", "argmax", "sort", "erf", "cummax", "cummin"):
            with pytest.raises(TypeError, match="complex"):
                getattr(z, name)(*([0] if name.startswith("cum") else []))
        for pooled in (F.max_pool1d, F.adaptive_max_pool1d):
            with pytest.raises(TypeError, match="complex"):
                pooled(z[None], 2)


@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept")  # of PyTorch
def test_functions_of_numpys_make_tensors_of_tensors():
    for lib in (torch, pellucid):
        x = lib.tensor([0.0, 4.0], device="cpu")
        for made in (np.sqrt(x), np.add(x.numpy(), x), np.maximum(x, 2.0), np.isnan(x)):
            assert isinstance(made, lib.Tensor)
        assert np.sqrt(x).tolist() == [0, 2]
        assert np.add(x.numpy(), x).dtype is lib.float32


def test_sizes_and_numbers_that_pytorch_refuses():
    for lib in (torch, pellucid):
        with pytest.raises(TypeError, match="size"):
            lib.full(2, 1)
        with pytest.raises((ValueError, RuntimeError)):
            lib.tensor([2**70])
