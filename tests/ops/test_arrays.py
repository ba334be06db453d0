"""Arrays of numpy as tensors and beside them: shared memory, byte order, types that are no numbers."""

import numpy as np
import pytest

import pellucid
from pellucid.errors import DTypeError
from pellucid.nn import functional as F


def test_arrays_are_not_unequal_to_every_tensor():
    """An array with axes is refused by `==` as by every operator; one without is a number."""
    with pellucid.device("cpu"):
        x = pellucid.tensor([3.0, 4.0])
        for array in (np.array([3.0, 4.0]), np.ones((2, 2))):
            with pytest.raises(TypeError, match="must be Tensor or number"):
                x == array  # noqa: B015
            with pytest.raises(TypeError, match="must be Tensor or number"):
                x != array  # noqa: B015
        assert (x == np.array(3)).tolist() == [True, False]
        assert (x != np.array(3)).tolist() == [False, True]
        assert x != "3"


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
