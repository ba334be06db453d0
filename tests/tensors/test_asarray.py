"""`asarray`, `from_dlpack` and `frombuffer` share memory as in PyTorch; `fork_rng`; `retains_grad`."""

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import ArgumentError, DTypeError, PellucidError, RangeError
from pellucid.ops.random.generator import fork_rng
from pellucid.utils.compat.rooms import room


def made(t, what: str):
    """A tensor, and the array whose memory it may share."""
    array = np.arange(6, dtype=np.float32)
    source = {"array": array, "tensor": t.from_numpy(array), "list": array.tolist(), "number": 2.5}[what]
    return source, array


@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("dtype", [None, "float32", "int64"])
@pytest.mark.parametrize("what", ["array", "tensor", "list", "number"])
def test_memory_is_shared_as_in_pytorch(what, dtype, copy):
    found = []
    for t in (pellucid, torch):
        source, array = made(t, what)
        try:
            out = t.asarray(source, dtype=dtype and getattr(t, dtype), device="cpu", copy=copy)
        except (ValueError, TypeError, RuntimeError):
            found.append("refused")
            continue
        array[0] = 9
        found.append((out.tolist(), str(out.dtype).split(".")[1]))
    assert found[0] == found[1]


def test_buffers_and_dlpack():
    data = bytearray(np.arange(5, dtype=np.int32).tobytes())
    ours = pellucid.frombuffer(data, dtype=pellucid.int32, count=3, offset=4)
    assert ours.tolist() == torch.frombuffer(data, dtype=torch.int32, count=3, offset=4).tolist() == [1, 2, 3]
    data[4] = 7
    assert ours[0].item() == 7
    array = np.arange(3.0)
    shared = pellucid.from_dlpack(array)
    array[0] = 5
    assert shared.tolist() == [5, 1, 2]
    assert pellucid.from_dlpack(torch.ones(2)).tolist() == [1, 1]
    # Whether memory is shared, by copy and device.
    for copy, device, is_shared in ((None, "cpu", True), (False, None, True), (True, "cpu", False)):
        for library in (pellucid, torch):
            array = np.arange(3.0)
            taken = library.from_dlpack(array, device=device, copy=copy)
            array[0] = 5
            assert taken.tolist() == [5 if is_shared else 0, 1, 2]
    assert pellucid.from_dlpack(ours, copy=False) is ours
    with pytest.raises(ArgumentError, match="Leave copy out"):
        pellucid.from_dlpack(array, device="meta", copy=False)
    assert pellucid.from_dlpack(array, device="meta").device.type == "meta"
    with pytest.raises(RangeError, match="frombuffer"):
        pellucid.frombuffer(data, dtype=pellucid.int64, offset=3)
    with pytest.raises(DTypeError, match="bfloat16"):
        pellucid.frombuffer(data, dtype=pellucid.bfloat16)
    with pytest.raises(ArgumentError, match="__dlpack__"):
        pellucid.from_dlpack([1, 2])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool", "complex64"])
def test_dlpack_shares_memory_both_ways(dtype):
    ours = pellucid.arange(12, device="cpu").reshape(3, 4).to(getattr(pellucid, dtype))
    theirs = torch.from_dlpack(ours.t()[1:])
    array = np.from_dlpack(ours)
    again = pellucid.from_dlpack(room("utils.dlpack").to_dlpack(ours[:, 1]))
    back = pellucid.from_dlpack(theirs)
    ours[0] = 1
    for seen in (theirs, back):
        assert seen.tolist() == ours.t()[1:].tolist()
        assert tuple(seen.stride()) == (1, 4)
    assert array.tolist() == ours.tolist()
    assert again.tolist() == ours[:, 1].tolist()
    back[0, 0] = 0
    assert array[0, 1] == 0


def test_what_dlpack_refuses():
    x = pellucid.ones(2, device="cpu")
    for say, call in (
        (r"Use \.cpu\(\) first", lambda: pellucid.to_dlpack(pellucid.ones(2, device="webgpu"))),
        (r"Use \.cpu\(\) first", lambda: np.from_dlpack(pellucid.ones(2, device="webgpu"))),
        ("requires grad", lambda: pellucid.to_dlpack(x.clone().requires_grad_())),
        ("bfloat16 as float32", lambda: pellucid.to_dlpack(x.bfloat16())),
        ("a CPU has none", lambda: x.__dlpack__(stream=3)),
        ("takes a tensor", lambda: pellucid.to_dlpack([1])),
    ):
        with pytest.raises(PellucidError, match=say):
            call()
    assert x.__dlpack_device__() == torch.ones(2).__dlpack_device__()
    assert "dltensor" in str(x.__dlpack__(stream=-1))


def test_on_webgpu_arrays_are_copied():
    array = np.arange(3, dtype=np.float32)
    assert pellucid.asarray(array).tolist() == [0, 1, 2]
    with pytest.raises(ArgumentError, match="Leave copy out"):
        pellucid.asarray(array, copy=False)
    x = pellucid.ones(2)
    assert pellucid.asarray(x) is x
    assert pellucid.asarray(x, requires_grad=True).requires_grad
    assert not x.requires_grad


@pytest.mark.filterwarnings("ignore:.*unspecified requires_grad:UserWarning")
def test_a_result_requires_grad_as_asked():
    """As the object does, unless something is said."""
    for lib in (torch, pellucid):
        leaf = lib.ones(2, requires_grad=True, device="cpu")
        node = leaf * 2
        assert lib.asarray(leaf) is leaf
        assert lib.asarray(node) is node
        assert lib.asarray(node, requires_grad=True).grad_fn is not None
        assert lib.asarray(node, requires_grad=False).grad_fn is None
        assert not lib.asarray(node, copy=True, requires_grad=False).requires_grad
        assert lib.asarray(node, copy=True).grad_fn is not None
        assert lib.asarray([1.0], requires_grad=True).is_leaf


def test_the_memory_of_a_capsule_is_written():
    for lib in (torch, pellucid):
        x = lib.arange(6, device="cpu").reshape(2, 3).t()
        y = lib.from_dlpack(lib.to_dlpack(x))
        y[0] = 9
        y.mul_(2)
        assert x.tolist() == y.tolist() == [[18, 18], [2, 8], [4, 10]]


def test_a_block_gives_the_generator_back():
    pellucid.manual_seed(1)
    with fork_rng():
        first = pellucid.rand(3).tolist()
    assert pellucid.rand(3).tolist() == first
    with fork_rng(enabled=False):
        again = pellucid.rand(3).tolist()
    assert pellucid.rand(3).tolist() != again


def test_whether_gradients_are_retained():
    x = pellucid.ones(2, requires_grad=True)
    y = x * 2
    assert [x.retains_grad, y.retains_grad] == [False, False]
    y.retain_grad()
    assert y.retains_grad
