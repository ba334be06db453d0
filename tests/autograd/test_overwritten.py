"""Gradients of tensors that were written in place: every form, also through views, beside PyTorch's."""

import inspect

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from pellucid.errors import DTypeError, GradientError

VALUES = np.linspace(0.15, 0.85, 12, dtype=np.float32).reshape(3, 4)

# PyTorch lets their old gradients pass: what else makes their values.
LIKE = {"logical_not": "zero", "logical_xor": "zero", "logical_and": "sign", "logical_or": "sign"}
# Arguments of the forms that take some; functions make them for the part that is written. Forms of two
# tensors, `input` and `other`, need no row.
ARGUMENTS = {
    "pow": (1.5,),
    "heaviside": (lambda p, part: full(p, part, 0.7),),
    "clamp": (0.3, 0.6),
    "lerp": (lambda p, part: full(p, part, 0.7), 0.25),
    **dict.fromkeys(("addcmul", "addcdiv"), (lambda p, part: full(p, part, 0.7),) * 2),
    "masked_fill": (lambda p, part: part.detach() > 0.6, 3.0),
    "fill": (3.0,),
    "copy": (lambda p, part: full(p, part, 0.7),),
    **dict.fromkeys(
        ("scatter", "scatter_add"),
        (0, lambda p, part: places(p, part, 1), lambda p, part: full(p, part[:1], 0.7)),
    ),
    "index_add": (0, lambda p, part: places(p, part, 0), lambda p, part: full(p, part[:1], 0.7)),
    "index_put": (lambda p, part: (places(p, part, 0),), lambda p, part: full(p, part[:1], 0.7)),
    "index_copy": (0, lambda p, part: places(p, part, 0), lambda p, part: full(p, part[:1], 0.7)),
    "index_fill": (0, lambda p, part: places(p, part, 0), 0.7),
    "put": (lambda p, part: places(p, part, 0), lambda p, part: p.ones_like(part.reshape(-1)[:1]).detach()),
    "masked_scatter": (lambda p, part: part.detach() > 0.6, lambda p, part: full(p, part, 0.7)),
    **dict.fromkeys(("clamp_min", "clamp_max"), (0.5,)),
    **dict.fromkeys(("mvlgamma", "polygamma"), (1,)),
    "clip": (0.3, 0.6),
    **dict.fromkeys(("cumsum", "cumprod"), (0,)),
    "scatter_reduce": (0, lambda p, part: places(p, part, 1), lambda p, part: full(p, part[:1], 0.7), "amax"),
    "index_reduce": (0, lambda p, part: places(p, part, 0), lambda p, part: full(p, part[:1], 0.7), "amax"),
    # So that there is one value to draw.
    "bernoulli": (1.0,),
    "geometric": (1 - 1e-12,),
    "log_normal": (0.0, 1e-30),
    "random": (2, 3),
}
RANDOM = {"normal", "uniform"}
# Not of values (layouts have tests of their own), only of integers or float64, of two axes, random, or
# refused where PyTorch lets the old gradient pass.
ELSE = {
    "requires_grad", "detach", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "gcd", "lcm",
    "bitwise_left_shift", "bitwise_right_shift", "fill_diagonal", "nextafter", "share_memory",
    "cauchy", "exponential", "addbmm", "addmm", "addmv", "addr", "baddbmm", "renorm", "tril", "triu",
    "as_strided", "resize", "resize_as", "set", "squeeze", "swapaxes", "swapdims", "t", "transpose",
    "unsqueeze", "float_power", "apply", "map",
}  # fmt: skip
# Of which PyTorch has no derivative in place.
HYPERBOLIC = {"acosh", "asinh", "atanh", "arccosh", "arcsinh", "arctanh"}

FORMS = sorted(
    name[:-1]
    for name in dir(pellucid.Tensor)
    if hasattr(pellucid.Tensor, name)
    and name.endswith("_")
    and not name.endswith("__")
    and not name.startswith("_")
    and name[:-1] not in ELSE
)


def arguments_of(p, name, part):
    """What its form takes beside the part that is written."""
    given = ARGUMENTS.get(name, ())
    required = [
        k
        for k, a in inspect.signature(getattr(pellucid.Tensor, f"{name}_")).parameters.items()
        if a.default is a.empty
    ]
    if name not in ARGUMENTS and required[1:] == ["other"]:
        given = (lambda p, part: full(p, part, 0.7),)
    return [a(p, part) if callable(a) else a for a in given]


def full(p, part, value):
    return p.full(tuple(part.shape), value, **({} if p is torch else {"device": part.device}))


def places(p, part, first):
    """Indices that are all 0: along the first axis, or of the shape of its first line."""
    shape = tuple(part[:1].shape) if first else (1,)
    return p.zeros(shape, dtype=p.int64, **({} if p is torch else {"device": part.device}))


def whole(y, write):
    write(y)
    return y


def a_part(y, write):
    write(y[1:, ::2])
    return y


def a_view_of_a_view(y, write):
    part = y.t()[1:3][:, 1]
    write(part)
    return y * part.sum()


def a_view_read_after_its_base(y, write):
    part = y[:, 1:][1]
    write(y)
    return part


def a_base_read_after_another_shape(y, write):
    part = y.view(-1)[2:7]
    write(y.view(2, 6))
    return y[0] * part[:4]


PLACES = [whole, a_part, a_view_of_a_view, a_view_read_after_its_base, a_base_read_after_another_shape]


def gradient(p, name, place, device):
    """The gradient of a leaf of which a product was written."""
    options = {} if p is torch else {"device": device}
    x = p.tensor(VALUES + (name in ("acosh", "arccosh")), requires_grad=True, **options)

    def write(part):
        if p is torch and name in HYPERBOLIC:
            part.copy_(getattr(part.clone(), name)())
        else:
            getattr(part, f"{name}_")(*arguments_of(p, name, part))

    y = place(x * 1.1, write)
    (y * p.arange(1, 1 + y.numel(), **options).reshape(*y.shape)).sum().backward()
    return (x.grad + 0).numpy()


def test_every_form_is_known():
    """A form that takes arguments needs some here."""
    assert {"zero", "relu", "exp", "normal", "copy"} <= set(FORMS)
    assert set(ARGUMENTS) | RANDOM <= set(FORMS)


@pytest.mark.turns(3)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_gradient_of_what_was_written(name, device):
    for place in PLACES:
        if name in RANDOM and place in (a_view_of_a_view, a_base_read_after_another_shape):
            continue  # other numbers, so other gradients
        try:
            expected = gradient(torch, name, place, None)
        except RuntimeError:
            with pytest.raises(GradientError, match="has no derivative, as in PyTorch"):
                gradient(pellucid, name, place, device)
            continue
        if name in LIKE:
            expected = gradient(torch, LIKE[name], place, None)
        found = gradient(pellucid, name, place, device)
        np.testing.assert_allclose(
            found, expected, rtol=1e-4, atol=1e-5, err_msg=f"{name}_ of {place.__name__}"
        )


@pytest.mark.parametrize("device", DEVICES)
def test_a_state_that_is_begun_anew(device):
    x = pellucid.tensor([1.0, 2.0], requires_grad=True, device=device)
    state = pellucid.zeros(2, device=device) + x
    state.zero_()
    (state + x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_written_without_a_graph_keeps_its_gradient(device):
    x = pellucid.tensor([1.0, 2.0], requires_grad=True, device=device)
    y = x * 2
    with pellucid.no_grad():
        y.zero_()
    (y + 1).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


INTO_INTEGERS = {
    "copy_": lambda p, m, x: m.copy_(x),
    "setitem": lambda p, m, x: m.__setitem__(slice(None), x),
    "setitem of a part": lambda p, m, x: m.__setitem__(slice(1, 3), x[1:3]),
    "copy_ into a view": lambda p, m, x: m.view(2, 2)[1].copy_(x[2:]),
    "floor": lambda p, m, x: m.copy_(x.floor()),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_integers_take_values_but_no_gradient(dtype, device):
    for what, write in INTO_INTEGERS.items():
        found = []
        for p in (torch, pellucid):
            options = {} if p is torch else {"device": device}
            x = p.tensor([1.5, 2.5, 0.0, 3.5], requires_grad=True, **options)
            m = p.zeros(4, dtype=getattr(p, dtype if p is torch or dtype != "bool" else "bool_"), **options)
            write(p, m, x)
            assert not m.requires_grad, what
            (m * x).sum().backward()
            found.append((m.tolist(), x.grad.tolist()))
        assert found[1] == found[0], what


@pytest.mark.parametrize("device", DEVICES)
def test_integers_that_fill_and_index_take_no_gradient(device):
    """As in PyTorch fills are refused, and so are floats that are written at indices."""
    x = pellucid.tensor([1.5, 2.5], requires_grad=True, device=device)
    m = pellucid.zeros(2, dtype=pellucid.int64, device=device)
    with pytest.raises(GradientError, match="fill_: the value requires grad"):
        m.fill_(x[0])
    with pytest.raises(GradientError, match="masked_fill_: the value requires grad"):
        m.masked_fill_(pellucid.tensor([True, False], device=device), x[0])
    with pytest.raises(DTypeError, match="setitem: values of"):
        m[pellucid.tensor([1, 0], device=device)] = x
    assert not m.requires_grad
    (m * x).sum().backward()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.zero_(),
        lambda y: y.__setitem__(0, 5.0),
        lambda y: y[:1].mul_(7),
        lambda y: y.mul_(2).add_(1),
    ],
)
def test_a_retained_gradient_is_that_of_the_new_value(write, device):
    grads = []
    for p, options in ((torch, {}), (pellucid, {"device": device})):
        x = p.ones(2, requires_grad=True, **options)
        y = x * 2
        y.retain_grad()
        write(y)
        (y * 3).sum().backward()
        grads.append((y.grad.tolist(), x.grad.tolist()))
    assert grads[0] == grads[1]


def _columns(t, w):
    """Columns one behind the other in memory, of which one is written, then two."""
    b = w.new_empty_strided((3, 4), (1, 3)).copy_(w)
    b[:, 1].mul_(w[:, 0])
    b[:, 2:].exp_()
    return [b * w]


def _channels_last(t, w):
    b = (w * 2).reshape(1, 2, 3, 2).contiguous(memory_format=t.channels_last)
    b[0, 0].mul_(3)
    shown = b[:, 1]
    b[0, 1, 0] = w[0, :2]
    return [b, shown * shown]


def _with_gaps(t, w):
    """Rows that lie apart in memory, and a view across them."""
    b = w.new_zeros(40).as_strided((3, 4), (9, 2), 3).copy_(w)
    b[0].mul_(w[1])
    across = b.as_strided((2, 2), (9, 4), 3)
    across.add_(1)
    return [b * b, across]


def _of_columns(t, w):
    shown = w.T.as_strided((5, 2), (2, 1))
    return [shown * shown]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("write", [_columns, _channels_last, _with_gaps, _of_columns])
def test_views_of_tensors_with_strides_of_their_own(write, device):
    found = []
    for t, where in ((torch, "cpu"), (pellucid, device)):
        w = t.tensor(VALUES, device=where, requires_grad=True)
        made = write(t, w)
        (g,) = t.autograd.grad(sum(m.sin().sum() for m in made), [w], create_graph=True)
        (second,) = t.autograd.grad((g * g).sum(), [w])
        found.append([x.detach().cpu().numpy() for x in (*made, g, second)])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_view_of_elements_that_share_memory_is_not_followed():
    x = pellucid.ones(3, 1, device="cpu", requires_grad=True)
    with pytest.raises(GradientError, match="whose elements share memory"):
        x.expand(3, 2).detach().requires_grad_().as_strided((3,), (1,))
