"""Names without arithmetic: every line gives in both libraries what PyTorch gives."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import DeviceError

FLOATS = (
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
)
INTEGERS = ("uint8", "int8", "int16", "uint16", "int32", "uint32", "int64")
LINES = """
t.Tensor([1, 2]); t.Tensor([[1.5]]); t.Tensor(2, 3).shape; t.Tensor().shape; t.Tensor(t.Size([2])).shape
t.Tensor((2, 3)); t.Tensor(np.arange(3)); t.Tensor(range(3)); t.Tensor(t.ones(2)); t.Tensor(0).shape
t.LongTensor([1, 2]); t.HalfTensor(2).dtype; t.BoolTensor([0, 3]); t.ByteTensor([[1], [2]]); t.Tensor(2.5)
isinstance(t.ones(2), t.FloatTensor); isinstance(t.ones(2), t.LongTensor); isinstance(1, t.LongTensor)
t.ones(2).type(); t.ones(2).long().type(); t.ones(2).type('torch.LongTensor'); t.ones(2).type(t.int32)
t.ones(2).type(t.ByteTensor); t.ones(2).int().new([1, 2]); t.ones(2).new(3).shape; t.is_tensor(t.ones(1))
t.is_tensor(1); t.is_floating_point(t.ones(1)); t.is_complex(t.ones(1)); t.numel(t.ones(2, 3))
t.is_floating_point(1); t.is_nonzero(t.ones(1)); t.is_nonzero(t.ones(2)); t.ones(1).is_nonzero()
t.ones(2).is_signed(); t.is_same_size(t.ones(2), t.ones(3)); t.ones(2).is_conj(); t.ones(2).is_neg()
t.ones(2).is_inference(); t.numel(2); t.ones(2).get_device(); t.ones(2, 3).mT.dim_order()
t.ones(2).is_pinned(); t.ones(2).is_shared(); t.ones(2).ndimension(); t.ones(2).is_cuda; t.ones(2).is_cpu
t.ones(2).is_meta; t.ones(2).is_sparse; t.ones(2).is_quantized; t.ones(2).name; t.inf; t.nan; t.pi; t.e
t.newaxis; t.short; t.cfloat; t.cdouble; t.ones(2).layout; t.contiguous_format; t.channels_last
t.can_cast(t.float32, t.int32); t.can_cast(t.int32, t.float32); t.can_cast(t.bool, t.uint8)
t.result_type(t.ones(2).int(), 1.0); t.result_type(t.ones(2).int(), t.ones(())); t.result_type(2, True)
t.result_type(t.ones(2).half(), t.ones(2)); t.result_type(t.ones(2), 'x'); t.float16.is_signed
t.uint8.is_signed; t.float32.to_complex(); t.complex64.to_real(); t.int64.to_complex()
t.complex128.to_complex(); t.get_float32_matmul_precision(); t.set_float32_matmul_precision('high')
t.set_num_threads(2); t.zeros(2, 3, 4, 5).to(memory_format=t.channels_last).stride()
t.zeros(2, 3, 4, 5).contiguous(memory_format=t.channels_last).is_contiguous(memory_format=t.channels_last)
t.zeros(2, 3, 4, 5).is_contiguous(memory_format=t.channels_last)
t.zeros(2, 3).is_contiguous(memory_format=t.channels_last)
t.arange(24).reshape(1, 2, 3, 4).clone(memory_format=t.channels_last).stride()
t.ones(2).contiguous(memory_format=t.preserve_format)
t.arange(24).reshape(1, 2, 3, 2, 2).to(memory_format=t.channels_last_3d)
t.ones(2, 3).clone(memory_format=t.channels_last)
t.ones(2, 3).mT.clone(memory_format=t.contiguous_format).stride()
t.zeros(2, 1, 4, 1).is_contiguous(memory_format=t.channels_last)
t.set_default_tensor_type('torch.LongTensor'); t.set_default_tensor_type(t.FloatTensor); complex(t.ones(1))
t.ones(3).untyped_storage().nbytes(); t.ones(2).is_set_to(t.ones(2)); [*reversed(t.arange(3))]
t.ones(()).output_nr
"""


def shown(value):
    """A value in terms that both libraries share."""
    if isinstance(value, (torch.Tensor, pellucid.Tensor)):
        return str(value.dtype).rpartition(".")[2], value.tolist()
    if isinstance(value, list):
        return [shown(v) for v in value]
    if isinstance(value, (tuple, torch.Size)):
        return tuple(value)
    if isinstance(value, float) and value != value:
        return "nan"
    return str(value).rpartition(".")[2] if "." in str(value) and not isinstance(value, float) else value


def outcome(module, line: str):
    with pellucid.device("cpu"):
        try:
            return shown(eval(line, {"t": module, "np": np}))
        except Exception as error:
            return type(error)


@pytest.mark.parametrize("line", [part for part in LINES.replace("\n", "; ").split("; ") if part])
def test_as_pytorch(line):
    theirs, ours = outcome(torch, line), outcome(pellucid, line)
    assert str(ours) == str(theirs) or (isinstance(theirs, type) and issubclass(ours, theirs))


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_limits(name):
    of = "finfo" if name in FLOATS else "iinfo"
    ours, theirs = (getattr(m, of)(getattr(m, name)) for m in (pellucid, torch))
    for field in ("bits", "max", "min", "eps", "tiny", "smallest_normal", "resolution", "dtype"):
        if hasattr(theirs, field):
            wanted = getattr(theirs, field)
            assert getattr(ours, field) == (pytest.approx(wanted) if field == "resolution" else wanted)
    assert repr(ours) == repr(theirs)
    with pytest.raises(TypeError):
        getattr(pellucid, of)(getattr(pellucid, "int8" if of == "finfo" else "float32"))


def test_channels_last_has_the_same_values_and_gradient():
    x = pellucid.arange(24.0).reshape(1, 2, 3, 4).requires_grad_()
    y = x.to(memory_format=pellucid.channels_last)
    assert y.stride() == (24, 1, 8, 2)
    assert (y == x).all().item()
    assert y.contiguous(memory_format=pellucid.channels_last) is y
    (y * y).sum().backward()
    assert (x.grad == 2 * x.detach()).all().item()


def test_what_is_not_here_is_refused():
    x = pellucid.ones(2)
    for call in (x.cuda, x.xpu, x.share_memory_, x.__dlpack__, x.__dlpack_device__):
        with pytest.raises(DeviceError, match=r"Use|Work"):
            call()
    with pytest.raises(DeviceError, match="There are 'webgpu', 'cpu' and 'meta'"):
        x.to("cuda")


def test_arrays_and_other_libraries_share_memory():
    x = pellucid.ones(2, device="cpu")
    array, other = np.from_dlpack(x), torch.from_dlpack(x)
    array[0] = 5
    assert other.tolist() == x.tolist() == [5.0, 1.0]
    assert type(np.add(array, 1)) is np.ndarray
    assert x.untyped_storage().data_ptr() == x[1:].untyped_storage().data_ptr()


def test_formats_are_themselves_when_copied():
    for name in ("channels_last", "strided", "sparse_coo", "preserve_format"):
        value = getattr(pellucid, name)
        assert value is deepcopy(value) is getattr(pellucid, repr(value).partition(".")[2])
    assert pickle.loads(pickle.dumps(pellucid.float32)) is pellucid.float32


def test_two_tensors_change_places():
    for lib in (torch, pellucid):
        layer, other = lib.nn.Linear(2, 2, device="cpu"), lib.nn.Parameter(lib.ones(2, 2, device="cpu"))
        layer.weight.note = "first"
        lib.utils.swap_tensors(layer.weight, other)
        assert layer.weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]
        assert other.note == "first"
        a, b = lib.ones(2, device="cpu"), lib.zeros(3, dtype=lib.int64, device="cpu")
        lib.utils.swap_tensors(a, b)
        assert (a.tolist(), b.tolist()) == ([0, 0, 0], [1.0, 1.0])
    with pytest.raises(RuntimeError, match="t2 is recorded in the graph"):
        lib.utils.swap_tensors(a, layer.weight * 2)
    awaited = (layer.weight * 2).sum()
    with pytest.raises(RuntimeError, match="a graph leads to t1"):
        lib.utils.swap_tensors(layer.weight, other)
    awaited.backward()
    del awaited
    lib.utils.swap_tensors(layer.weight, other)
    whole = lib.ones(4, device="cpu")
    part = whole[:2]
    with pytest.raises(RuntimeError, match="t1 has views"):
        lib.utils.swap_tensors(whole, lib.ones(2, device="cpu"))
    del part
    with pytest.raises(TypeError, match="t1 must be a Tensor"):
        lib.utils.swap_tensors(1, a)


def test_shifts_by_operators():
    for lib in (torch, pellucid):
        x = lib.tensor([1, 2, 3], device="cpu")
        same = x
        x <<= 1
        x >>= 1
        x <<= 2
        assert same.tolist() == [4, 8, 12]
        assert (1 << x).tolist() == [16, 256, 4096]
        assert (4096 >> x).tolist() == [256, 16, 1]


def test_arrays_beside_tensors():
    """What ``tensor + array`` is: a tensor of numpy's common type."""
    arrays = [np.array([1, 2, 3, 4], d) for d in ("float64", "float32", "int64", "int16", "bool")]
    calls = [
        lambda x, n: x + n, lambda x, n: x - n, lambda x, n: x * n, lambda x, n: x / (n + 1),
        lambda x, n: x ** n, lambda x, n: x @ n, lambda x, n: x < n,
    ]  # fmt: skip
    for call in calls:
        for array in arrays:
            wanted = torch.as_tensor(call(np.float32([4, 3, 2, 1]), array))
            found = call(pellucid.tensor([4.0, 3, 2, 1], device="cpu"), array)
            assert str(found.dtype).split(".")[1] == str(wanted.dtype).split(".")[1]
            assert found.tolist() == pytest.approx(wanted.tolist())


def test_words_of_conversions():
    for lib in (torch, pellucid):
        x = lib.ones(2, device="cpu")
        kinds = [str(x.to(kind).dtype).split(".")[1] for kind in (float, int, bool)]
        assert kinds == ["float64", "int64", "bool"]
        assert x.cpu(memory_format=lib.preserve_format).shape == (2,)
        assert x.broadcast_to(3, 2).shape == (3, 2)
        assert lib.nn.functional.linear(x, x).item() == 2
        assert lib.nn.functional.linear(x, x, x[0]).item() == 3
        assert [len(p) for p in lib.arange(6, device="cpu").hsplit(2, 3)] == [2, 1, 3]
        assert lib.nn.PReLU(init=0, device="cpu").weight.item() == 0


def test_dictionaries_by_tensors_that_go():
    theirs = pytest.importorskip("torch.utils.weak")
    for lib, weak in ((torch, theirs), (pellucid, pellucid.utils.weak)):
        x, y = lib.ones(2, device="cpu"), lib.ones(2, device="cpu")
        found = weak.WeakTensorKeyDictionary({x: 1})
        found[y] = 2
        assert (found[x], found[y], len(found), x in found, 3 in found) == (1, 2, 2, True, False)
        assert sorted(found.values()) == [1, 2]
        reference = weak.TensorWeakRef(y)
        assert reference() is y
        assert weak.WeakIdRef(x) == weak.WeakIdRef(x)
        assert (weak.WeakIdRef(x) == weak.WeakIdRef(y)) is False
        del y
        assert len(found) == 1
        assert reference() is None
        del found[x]
        assert found.get(x) is None
    with pytest.raises(TypeError):
        f"{x:.2f}"
