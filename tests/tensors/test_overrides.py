"""``__torch_function__``: one program in both libraries leaves the same log."""

import numpy as np
import pytest
import torch

import pellucid

LIBRARIES = [pellucid, torch]


def both(program):
    logs = [program(lib) for lib in LIBRARIES]
    assert logs[0] == logs[1]
    return logs[0]


def name_of(function):
    return function.__name__.strip("_")


def marked(lib):
    class Marked(lib.Tensor):
        pass

    return Marked


def kinds(value):
    if isinstance(value, (list, tuple)):
        return [kinds(v) for v in value]
    return (
        (type(value).__name__, np.round(np.asarray(value.tolist(), float), 5).tolist())
        if hasattr(value, "tolist")
        else value
    )


def test_ops_keep_a_subclass():
    def program(lib):
        kind = marked(lib)
        x = lib.tensor([[1.0, -2.0], [3.0, 4.0]], device="cpu").as_subclass(kind)
        y = lib.ones(2, 2, device="cpu")
        F = lib.nn.functional
        made = {
            "self": x, "add": x + y, "radd": y + x, "number": 2 * x, "sum": x.sum(), "max": x.max(0),
            "index": x[0], "mask": x[x > 0], "T": x.T, "detach": x.detach(), "to": x.to(lib.float64),
            "float": x.double(), "reshape": x.reshape(4), "split": x.split(1), "stack": lib.stack([x, y]),
            "cat": lib.cat([y, x]), "relu": F.relu(x), "softmax": F.softmax(x, -1), "linear": F.linear(y, x),
            "matmul": y @ x, "where": lib.where(y > 0, y, x), "zeros": lib.zeros_like(x),
            "new": x.new_zeros(2),
            "clone": x.clone(), "data": x.data, "in place": x.clone().add_(1), "topk": x.topk(1),
            "einsum": lib.einsum("ij,jk->ik", x, y), "item": x[0, 0].item(), "list": x.tolist(),
            "loss": F.mse_loss(x, y), "contiguous": x.contiguous(), "mean": lib.mean(x, dim=1), "len": len(x),
            "shape": tuple(x.shape), "cross": F.cross_entropy(x, lib.tensor([0, 1], device="cpu")),
            "pad": F.pad(x, (1, 0)), "bool": x.bool(), "iter": list(x), "unbind": x.unbind(0), "neg": -x,
            "plain": x.as_subclass(lib.Tensor),
        }  # fmt: skip
        return {name: kinds(value) for name, value in made.items()}

    both(program)


def test_a_subclass_in_the_graph():
    def program(lib):
        kind = marked(lib)
        x = lib.tensor([1.0, 2.0], requires_grad=True, device="cpu")
        y = (x * 3).as_subclass(kind)
        z = (y * y).sum()
        z.backward()
        leaf = lib.Tensor._make_subclass(kind, lib.tensor([1.0, 2.0], device="cpu"), True)
        out = (leaf * leaf * y.detach()).sum()
        (g,) = lib.autograd.grad(out, leaf, create_graph=True)
        g.sum().backward()
        base = lib.zeros(3, device="cpu").as_subclass(kind)
        base[1:] = 5
        base[0].add_(2)
        return [x.grad.tolist(), leaf.grad.tolist(), type(z).__name__, leaf.is_leaf, base.tolist()]

    both(program)


def test_ways_to_make_one():
    def program(lib):
        class Named(lib.Tensor):
            def __new__(cls, data, name, *args, **kwargs):
                return super().__new__(cls, data, *args, **kwargs)

            def __init__(self, data, name):
                super().__init__()
                self.name_of_it = name

        class Made(lib.Tensor):
            @staticmethod
            def __new__(cls, data, label=None):
                made = lib.Tensor._make_subclass(cls, data)
                made.label = label
                return made

            def doubled(self):
                return self * 2

        a, b = Named([1.0, 2.0], "a"), Made(lib.ones(2, device="cpu"), label=7)
        c = marked(lib)([1.0, 2.0])
        return [
            kinds(a.cpu()), a.name_of_it, kinds(b.doubled()), b.label, kinds(c.cpu() + 1),
            isinstance(b, lib.Tensor), lib.is_tensor(b),
        ]  # fmt: skip

    both(program)


def logged(lib, log):
    class Logged(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((name_of(func), [t.__name__ for t in types if t is not lib.Tensor]))
            return super().__torch_function__(func, types, args, kwargs)

    return Logged


def test_what_a_subclass_is_asked():
    def program(lib):
        log = []
        x = lib.ones(2, 2, device="cpu").as_subclass(logged(lib, log))
        y = lib.ones(2, 2, device="cpu")
        log.clear()
        lib.add(x, y)
        y.mul(x)
        x.sum(dim=0)
        lib.nn.functional.cross_entropy(x, y)
        lib.stack([y, x])
        x.to(lib.float64)
        x.add_(1)
        lib.exp(x, out=y)
        lib.nn.functional.interpolate(x[None, None], scale_factor=2)
        lib.nn.Linear(2, 2, device="cpu")(x)
        return log

    both(program)


class Diagonal:
    """What stands for a matrix: a number along its diagonal."""

    def __init__(self, n, value):
        self.n, self.value = n, value

    def dense(self, lib):
        return lib.eye(self.n, device="cpu") * self.value


def diagonal(lib, handled):
    class Matrix(Diagonal):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in handled or not all(issubclass(t, (lib.Tensor, cls)) for t in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    return Matrix


def test_what_stands_for_a_tensor():
    def program(lib):
        handled = {
            lib.mean: lambda x: x.value / x.n,
            lib.add: lambda x, y: ("add", type(x).__name__, type(y).__name__),
            lib.stack: lambda xs, dim=0: ("stack", len(xs), dim),
            lib.nn.functional.mse_loss: lambda a, b, **more: ("loss", type(b).__name__),
            lib.nn.functional.relu: lambda x, inplace=False: ("relu", x.value),
            lib.matmul: lambda x, y: y.dense(lib) @ x if isinstance(y, Diagonal) else x.dense(lib) @ y,
        }
        d = diagonal(lib, handled)(2, 4.0)
        y = lib.ones(2, 2, device="cpu")
        log = [
            lib.mean(d), lib.add(d, y), lib.add(y, d), lib.stack([y, d], dim=1), lib.stack([d]),
            lib.nn.functional.mse_loss(y, d), lib.nn.ReLU()(d), lib.matmul(d, y).tolist(),
        ]  # fmt: skip
        for call in (lambda: lib.exp(d), lambda: lib.cat([y, d]), lambda: lib.nn.functional.pad(d, (1, 1))):
            with pytest.raises(
                TypeError, match=r"(no implementation found|Multiple dispatch failed) for 'torch"
            ):
                call()
        return log

    both(program)


def test_modes():
    def program(lib):
        log = []

        class Log(lib.overrides.TorchFunctionMode):
            def __init__(self, word):
                super().__init__()
                self.word = word

            def __torch_function__(self, func, types, args=(), kwargs=None):
                log.append((self.word, name_of(func)))
                return func(*args, **(kwargs or {}))

        class Ones(lib.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                func = lib.ones if func is lib.zeros else func
                return func(*args, **(kwargs or {}))

        x = lib.ones(2, device="cpu")
        layer = lib.nn.Linear(2, 1, device="cpu")
        with Log("outer"):
            lib.add(x, 1)
            with Log("inner"):
                x.sum()
            lib.nn.functional.relu(x)
            lib.tensor([1.0], device="cpu")
            x.view(2, 1)
            layer(x)
        lib.add(x, 1)
        with Ones():
            made = lib.zeros(2, device="cpu") + lib.zeros(2, device="cpu")
        log.append((made.tolist(), lib.zeros(1, device="cpu").tolist()))
        return log

    both(program)


def test_modes_and_subclasses():
    def program(lib):
        log = []

        class Log(lib.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                log.append(("mode", name_of(func), [t.__name__ for t in types]))
                return func(*args, **(kwargs or {}))

        x = lib.ones(2, device="cpu").as_subclass(logged(lib, log))
        log.clear()
        with Log():
            lib.add(x, 1)
        with lib._C.DisableTorchFunctionSubclass():
            log.append(type(lib.add(x, 1)).__name__)
        return log

    both(program)


def test_functions_of_programs():
    def program(lib):
        o = lib.overrides

        def twice(x):
            if o.has_torch_function_unary(x):
                return o.handle_torch_function(twice, (x,), x)
            return x * 2

        handled = {twice: lambda x: ("twice", x.value)}
        d, x = diagonal(lib, handled)(2, 3.0), lib.ones(1, device="cpu")
        kind = marked(lib)
        return [
            twice(d), twice(x).tolist(), o.has_torch_function((x, d)), o.has_torch_function((x, 1)),
            o.has_torch_function_variadic(x, d), o.is_tensor_like(d), o.is_tensor_like(x),
            o.is_tensor_like(1),
            o.is_tensor_like(x.as_subclass(kind)), o.has_torch_function((lib.nn.Parameter(x),)),
            o.resolve_name(lib.add), lib.add in o.get_overridable_functions()[lib],
            lib.nn.functional.relu in o.get_overridable_functions()[lib.nn.functional],
        ]  # fmt: skip

    both(program)


def test_parameters_of_programs():
    def program(lib):
        class Scale(lib.nn.Parameter):
            pass

        p = Scale(lib.ones(2, device="cpu"))
        m = lib.nn.Module()
        m.scale = p
        (p * 2).sum().backward()
        return [type(p * 2).__name__, p.grad.tolist(), [n for n, _ in m.named_parameters()], type(p).__name__]

    both(program)


def test_plain_tensors_find_their_plans():
    """No op is slower for what subclasses and modes did before."""
    x = pellucid.ones(2, device="cpu")
    x.add(x)
    before = pellucid.Tensor.__add__.__globals__["plans"]
    with pellucid.overrides.BaseTorchFunctionMode():
        assert pellucid.Tensor.__add__.__globals__["plans"] is not before
        x.add(x)
    assert pellucid.Tensor.__add__.__globals__["plans"] is before
    assert "_meta" not in vars(pellucid.Tensor)
