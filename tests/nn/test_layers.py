"""Every layer against PyTorch's with the same weights: forward, and gradients of inputs and parameters."""

import copy
import inspect
import re

import numpy as np
import pytest
import torch

import pellucid
from nn.twins import floats, same, same_call, state_of

LAYERS = [
    ("Linear", (5, 3), {}, (2, 4, 5)),
    ("Linear", (5, 3), {"bias": False}, (5,)),
    ("Linear", (7, 1), {}, (6, 7)),
    ("LayerNorm", (6,), {}, (3, 6)),
    ("LayerNorm", ((2, 6),), {"eps": 1e-3}, (3, 2, 6)),
    ("LayerNorm", (6,), {"bias": False}, (3, 6)),
    ("LayerNorm", (6,), {"elementwise_affine": False}, (3, 6)),
    ("RMSNorm", (6,), {}, (2, 3, 6)),
    ("RMSNorm", (6,), {"eps": 1e-5}, (3, 6)),
    ("RMSNorm", ([2, 6],), {"elementwise_affine": False}, (3, 2, 6)),
    ("BatchNorm1d", (3,), {"momentum": None}, (4, 3)),
    ("BatchNorm2d", (3,), {"track_running_stats": False}, (2, 3, 2, 2)),
    ("BatchNorm3d", (2,), {"affine": False}, (2, 2, 1, 2, 2)),
    ("GroupNorm", (2, 4), {"bias": False}, (3, 4, 2)),
    ("InstanceNorm1d", (3,), {"affine": True}, (3, 4)),
    ("InstanceNorm2d", (3,), {"track_running_stats": True}, (2, 3, 2, 2)),
    ("LocalResponseNorm", (3,), {}, (2, 4, 3)),
    ("Identity", (1, "anything"), {"at": "all"}, (3,)),
    ("Flatten", (), {}, (2, 3, 4)),
    ("Flatten", (0, 1), {}, (2, 3, 4)),
    ("Unflatten", (1, (2, 3)), {}, (2, 6)),
    ("ReLU", (), {}, (4, 5)),
    ("ReLU6", (), {}, (4, 5)),
    ("SiLU", (), {}, (4, 5)),
    ("Mish", (), {}, (4, 5)),
    ("Hardswish", (), {}, (4, 5)),
    ("Hardsigmoid", (), {}, (4, 5)),
    ("Tanh", (), {}, (4, 5)),
    ("Sigmoid", (), {}, (4, 5)),
    ("LogSigmoid", (), {}, (4, 5)),
    ("Softsign", (), {}, (4, 5)),
    ("GELU", (), {}, (4, 5)),
    ("GELU", (), {"approximate": "tanh"}, (4, 5)),
    ("LeakyReLU", (0.2,), {}, (4, 5)),
    ("ELU", (1.5,), {}, (4, 5)),
    ("CELU", (1.5,), {}, (4, 5)),
    ("SELU", (), {}, (4, 5)),
    ("Hardshrink", (), {}, (4, 5)),
    ("Softshrink", (0.25,), {}, (4, 5)),
    ("Tanhshrink", (), {}, (4, 5)),
    ("Threshold", (0.1, 20), {}, (4, 5)),
    ("PReLU", (), {}, (4, 5)),
    ("PReLU", (3, 0.1), {}, (2, 3, 4)),
    ("Softmax2d", (), {}, (2, 3, 4, 5)),
    ("Hardtanh", (-0.5, 0.75), {}, (4, 5)),
    ("Softplus", (2.0, 5.0), {}, (4, 5)),
    ("GLU", (), {}, (4, 6)),
    ("Softmax", (-1,), {}, (4, 5)),
    ("Softmax", (1,), {}, (2, 3, 4)),
    ("LogSoftmax", (0,), {}, (4, 5)),
    ("Softmin", (1,), {}, (4, 5)),
    ("Dropout", (0.0,), {}, (4, 5)),
    ("Dropout1d", (0.0,), {}, (4, 5)),
    ("Dropout2d", (0.0,), {}, (2, 3, 2, 2)),
    ("AlphaDropout", (0.0,), {}, (4, 5)),
]


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "shape"), LAYERS, ids=[f"{n}{a}{k}" for n, a, k, _ in LAYERS]
)
def test_equals_pytorch(name, args, kwargs, shape, device):
    theirs = getattr(torch.nn, name)(*args, **kwargs)
    with pellucid.device(device):
        ours = getattr(pellucid.nn, name)(*args, **kwargs)
    ours.load_state_dict(state_of(theirs))
    same_call(ours, theirs, device, 1.5 * floats(*shape))


@pytest.mark.parametrize(
    ("name", "args", "kwargs"), [case[:3] for case in LAYERS], ids=[str(c[:3]) for c in LAYERS]
)
def test_prints_as_pytorch(name, args, kwargs):
    with pellucid.device("cpu"):
        ours = repr(getattr(pellucid.nn, name)(*args, **kwargs))
    expected = repr(getattr(torch.nn, name)(*args, **kwargs))
    assert ours == expected


@pytest.mark.parametrize("name", ["ReLU", "SiLU", "SELU", "Hardtanh", "LeakyReLU", "ELU"])
def test_in_place_activation_writes_over_its_input(name, device):
    x = pellucid.tensor(floats(3, 4), device=device)
    layer = getattr(pellucid.nn, name)(inplace=True)
    out = layer(x)
    same(x, getattr(torch.nn, name)()(torch.tensor(floats(3, 4))))
    assert out is x
    assert repr(layer) == repr(getattr(torch.nn, name)(inplace=True))


@pytest.mark.parametrize("momentum", [0.3, None])
def test_running_statistics_move_in_training_and_are_used_in_eval(momentum, device):
    """Also in a captured function, which replays what moves them."""
    theirs = torch.nn.BatchNorm1d(3, momentum=momentum)
    ours = pellucid.nn.BatchNorm1d(3, momentum=momentum, device=device)
    run = pellucid.compile(ours)
    for seed in range(5):
        x = floats(6, 3, seed=seed)
        same(run(pellucid.tensor(x, device=device)), theirs(torch.tensor(x)))
        for name, buffer in ours.named_buffers():
            same(buffer, dict(theirs.named_buffers())[name])
    same(ours.eval()(pellucid.tensor(x, device=device)), theirs.eval()(torch.tensor(x)))
    ours.reset_running_stats()
    assert ours.num_batches_tracked.item() == 0


def test_channel_norms_refuse_what_has_no_variance_or_other_axes():
    nn = pellucid.nn
    for layer, shape, text in (
        (nn.BatchNorm1d(3, device="cpu"), (1, 3), "more than 1 value per channel"),
        (nn.InstanceNorm1d(3, device="cpu"), (2, 3, 1), "more than 1 spatial element"),
        (nn.BatchNorm2d(3, device="cpu"), (2, 3), "expected 4D input"),
    ):
        with pytest.raises(ValueError, match=text):
            layer(pellucid.zeros(*shape, device="cpu"))
    with pytest.raises(ValueError, match="divisible by num_groups"):
        nn.GroupNorm(2, 3)
    with pytest.raises(RuntimeError, match="one process"):
        nn.SyncBatchNorm(3, process_group=object())
    with pytest.raises(ValueError, match="at least 2D"):
        nn.SyncBatchNorm(3, device="cpu")(pellucid.zeros(3, device="cpu"))


def test_batch_norms_of_one_process():
    nn = pellucid.nn
    model = nn.Sequential(nn.Conv2d(2, 3, 1, device="cpu"), nn.BatchNorm2d(3, eps=0.1, device="cpu"))
    theirs = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 1), torch.nn.BatchNorm2d(3, eps=0.1))
    x = pellucid.randn(4, 2, 3, 3, device="cpu")
    wanted = nn.BatchNorm2d(3, eps=0.1, device="cpu")(model[0](x)).tolist()
    made = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert made is model
    assert type(made[1]) is nn.SyncBatchNorm
    assert str(made) == str(torch.nn.SyncBatchNorm.convert_sync_batchnorm(theirs))
    assert [*made.state_dict()] == [*theirs.state_dict()]
    assert made(x).tolist() == wanted
    single = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3, device="cpu").eval())
    assert not single.training


@pytest.mark.parametrize("padding_idx", [None, 2, -1])
def test_embedding(padding_idx, device):
    theirs = torch.nn.Embedding(6, 4, padding_idx=padding_idx)
    with pellucid.device(device):
        ours = pellucid.nn.Embedding(6, 4, padding_idx=padding_idx)
    if padding_idx is not None:
        assert not ours.weight[padding_idx].any().item()
    ours.load_state_dict(state_of(theirs))
    same_call(ours, theirs, device, np.array([[1, 2, 2], [5, 0, 5]]))
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode, device):
    theirs = torch.nn.EmbeddingBag(6, 4, mode=mode, padding_idx=1)
    ours = pellucid.nn.EmbeddingBag(6, 4, mode=mode, padding_idx=1, device=device)
    ours.load_state_dict(state_of(theirs))
    same_call(ours, theirs, device, np.array([1, 2, 2, 5, 0]), np.array([0, 3]))
    assert repr(ours) == repr(theirs)


def test_bilinear(device):
    theirs = torch.nn.Bilinear(3, 4, 2)
    ours = pellucid.nn.Bilinear(3, 4, 2, device=device)
    ours.load_state_dict(state_of(theirs))
    same_call(ours, theirs, device, floats(5, 3), floats(5, 4, seed=1))
    assert repr(ours) == repr(theirs)


def test_embedding_refuses_a_padding_row_that_it_has_not():
    with pytest.raises(IndexError, match=r"padding_idx 6 is not one of the 6 rows"):
        pellucid.nn.Embedding(6, 4, padding_idx=6, device="cpu")


def test_embedding_from_pretrained(device):
    table = pellucid.tensor(floats(5, 3), device=device)
    layer = pellucid.nn.Embedding.from_pretrained(table)
    assert not layer.weight.requires_grad
    assert layer.weight.data_ptr() == table.data_ptr()
    assert pellucid.nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    with pytest.raises(ValueError, match=r"shape \(5,\); it must be \(rows, columns\)"):
        pellucid.nn.Embedding.from_pretrained(table[:, 0])


def test_embedding_raises_for_a_row_outside_the_table(device):
    layer = pellucid.nn.Embedding(6, 4, device=device)
    with pytest.raises(IndexError, match="index 6"):
        layer(pellucid.tensor([1, 6], device=device)).detach().numpy()


def test_dropout_keeps_the_expectation_and_stops_in_eval(device):
    layer = pellucid.nn.Dropout(0.25)
    x = pellucid.ones(64, 64, device=device, requires_grad=True)
    out = layer(x)
    values = set(np.unique(out.detach().numpy()).tolist())
    assert values == {0.0, float(np.float32(1 / 0.75))}
    kept = (out != 0).sum().item() / 4096
    assert abs(kept - 0.75) < 0.03
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), out.detach().numpy())
    assert layer.eval()(x) is x
    with pytest.raises(ValueError, match=r"p must lie between 0 and 1, not 1\.5"):
        pellucid.nn.Dropout(1.5)


def test_alpha_dropout_keeps_mean_and_variance(device):
    x = pellucid.nn.functional.alpha_dropout(pellucid.randn(20000, device=device), 0.3, training=True)
    assert abs(x.mean().item()) < 0.05
    assert abs(x.var().item() - 1) < 0.1
    whole = pellucid.nn.FeatureAlphaDropout(0.5)(pellucid.ones(8, 8, 3, device=device))
    assert (whole == whole[:, :, :1]).all().item()


def test_linear_names_the_shapes_that_do_not_fit(device):
    layer = pellucid.nn.Linear(3, 2, device=device)
    with pytest.raises(ValueError, match=r"linear: input of shape \(4, 5\)"):
        layer(pellucid.zeros(4, 5, device=device))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_layers(dtype, device):
    theirs = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.SiLU(), torch.nn.RMSNorm(8, eps=1e-5))
    with pellucid.device(device):
        nn = pellucid.nn
        ours = nn.Sequential(nn.Linear(6, 8), nn.SiLU(), nn.RMSNorm(8, eps=1e-5))
    ours.load_state_dict(state_of(theirs))
    ours.to(getattr(pellucid, dtype))
    assert {p.dtype.name for p in ours.parameters()} == {dtype}
    out = ours(pellucid.tensor(floats(3, 6), device=device, dtype=getattr(pellucid, dtype)))
    assert out.dtype.name == dtype
    same(out.float(), theirs(torch.tensor(floats(3, 6))), rtol=0.05, atol=0.05)


LAZY = [
    ("LazyLinear", (3,), (2, 5)),
    ("LazyConv2d", (4, 2), (1, 3, 4, 4)),
    ("LazyConvTranspose1d", (4, 2), (2, 3, 4)),
    ("LazyBatchNorm1d", (), (4, 3)),
    ("LazyInstanceNorm1d", (), (2, 3, 5)),
]


@pytest.mark.parametrize(("name", "args", "shape"), LAZY, ids=[case[0] for case in LAZY])
def test_lazy_layers_take_sizes_from_the_first_input_or_a_state(name, args, shape, device):
    theirs = getattr(torch.nn, name)(*args)
    with pellucid.device(device):
        ours, other = (getattr(pellucid.nn, name)(*args) for _ in range(2))
    assert repr(ours) == repr(theirs)
    assert ours.has_uninitialized_params()
    before = list(ours.parameters())
    assert all(p.numel() == 0 and pellucid.nn.parameter.is_lazy(p) for p in before)
    assert list(map(repr, before)) == [repr(p) for p in theirs.parameters()]
    x = floats(*shape)
    theirs(torch.tensor(x))
    ours(pellucid.tensor(x, device=device))
    assert repr(ours) == repr(theirs)
    assert [a is b for a, b in zip(ours.parameters(), before, strict=True)] == [True] * len(before)
    assert {type(p) for p in before} <= {pellucid.nn.Parameter}
    for m in (ours, other):
        m.load_state_dict(state_of(theirs))
    same_call(ours.eval(), theirs.eval(), device, x)
    same(other.eval()(pellucid.tensor(x, device=device)), theirs(torch.tensor(x)))


def test_parameters_and_buffers_without_a_shape():
    """They are PyTorch's: what they say of themselves, and what they become."""
    found = []
    for library in (pellucid, torch):
        made = library.nn.parameter.UninitializedParameter(device="cpu", dtype=library.float16)
        buffer = library.nn.parameter.UninitializedBuffer(device="cpu", persistent=False)
        said = [repr(made), repr(buffer), made.requires_grad, buffer.requires_grad, buffer.persistent]
        twin = copy.deepcopy(made)
        assert library.nn.parameter.is_lazy(twin)
        assert not library.nn.parameter.is_lazy(3)
        twin.materialize((2, 3), dtype=library.float32)
        made.materialize((2, 3))
        buffer.materialize((4,))
        assert type(made) is type(twin) is library.nn.Parameter
        assert not library.nn.parameter.is_lazy(buffer)
        kinds = [str(t.dtype).partition(".")[2] for t in (made, twin, buffer)]
        found.append([*said, *kinds, tuple(made.shape), tuple(buffer.shape), made.requires_grad])
    assert found[0] == found[1]


def test_a_lazy_layer_needs_a_tensor():
    with pytest.raises(ValueError, match="the first input tells the sizes"):
        pellucid.nn.LazyLinear(2)(3)


def test_docstrings():
    """Each names its page of PyTorch's documentation, and explains only arguments that it has."""
    for name in dir(torch.nn):
        layer = getattr(pellucid.nn, name, None)
        if not (inspect.isclass(layer) and issubclass(layer, pellucid.nn.Module)):
            continue
        doc = inspect.getdoc(layer)
        if name not in ("CrossMapLRN2d", "NLLLoss2d", "RNNCellBase"):  # which have none
            assert f"Source: https://pytorch.org/docs/stable/generated/torch.nn.{name}.html" in doc, name
        args = re.search(r"\nArgs:\n((?:    .*\n)+)", f"{doc}\n")
        told = re.findall(r"^    (\w[\w, *]*):", args[1], re.MULTILINE) if args else []
        named = {word for words in told for word in words.replace("*", "").split(", ")}
        assert named <= {*inspect.signature(layer.__init__).parameters}, name
    for layer, arg in ((pellucid.nn.Conv1d, "kernel_size"), (pellucid.nn.ReflectionPad3d, "padding")):
        assert f"    {arg}: " in layer.__doc__
