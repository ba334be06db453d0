"""Hooks that all modules have: one program in both libraries leaves the same log."""

import pytest

from nn.test_hooks import Scale, run, shapes


def hooked(lib, name, hook, **options):
    return getattr(lib.nn.modules.module, f"register_module_{name}")(hook, **options)


def test_order_and_arguments():
    def program(lib, log):
        m = Scale(lib)
        m.register_forward_hook(lambda m, a, o: log.append("own post"))
        m.register_forward_pre_hook(lambda m, a: log.append("own pre"))
        m.register_full_backward_hook(lambda m, i, o: log.append("own backward"))
        m.register_full_backward_pre_hook(lambda m, o: log.append("own backward pre"))
        handles = [
            hooked(lib, "forward_hook", lambda m, a, o: log.append(("post", shapes(a), shapes(o)))),
            hooked(
                lib, "forward_hook", lambda m, a, k, o: log.append(("post 2", shapes(k))), with_kwargs=True
            ),
            hooked(lib, "forward_pre_hook", lambda m, a: log.append(("pre", shapes(a)))),
            hooked(lib, "full_backward_hook", lambda m, i, o: log.append(("backward", shapes(i), shapes(o)))),
            hooked(lib, "full_backward_pre_hook", lambda m, o: log.append(("backward pre", shapes(o)))),
        ]
        x = lib.ones(3, device="cpu", requires_grad=True)
        m(x, by=4.0).sum().backward()
        log.append("another")
        lib.nn.Sequential(Scale(lib), Scale(lib))(x)
        for handle in handles:
            handle.remove()
        log.append("removed")
        m(x)
        Scale(lib)(x)

    run(program)


def test_replacement():
    def program(lib, log):
        m = Scale(lib)
        with (
            hooked(lib, "forward_pre_hook", lambda m, a: a[0] + 1),
            hooked(lib, "forward_hook", lambda m, a, o: o * 10),
            hooked(lib, "full_backward_hook", lambda m, i, o: (i[0] * 100,)),
        ):
            x = lib.ones(2, device="cpu", requires_grad=True)
            out = m(x)
            out.sum().backward()
        log.append((out.tolist(), x.grad.tolist()))

    run(program)


def test_a_call_that_fails():
    def program(lib, log):
        class Broken(lib.nn.Module):
            def forward(self, x):
                raise KeyError("no")

        with (
            hooked(lib, "forward_hook", lambda m, a, o: log.append(o), always_call=True),
            hooked(lib, "forward_hook", lambda m, a, o: log.append("never")),
            pytest.raises(KeyError),
        ):
            Broken()(lib.ones(1, device="cpu"))

    run(program)


def test_what_is_registered():
    def program(lib, log):
        def note(kind):
            return lambda m, name, value: log.append(
                (kind, name, None if value is None else type(value).__name__)
            )

        kinds = ("parameter", "buffer", "module")
        handles = [hooked(lib, f"{kind}_registration_hook", note(kind)) for kind in kinds]
        m = lib.nn.Module()
        m.weight = lib.nn.Parameter(lib.ones(2, device="cpu"))
        m.register_parameter("bias", None)
        m.register_buffer("seen", lib.ones(1, device="cpu"))
        m.register_buffer("none", None)
        m.seen = lib.zeros(1, device="cpu")
        m.weight = None
        m.child = lib.nn.Identity()
        m.add_module("empty", None)
        m.child = None
        m.other = 3
        for handle in handles:
            handle.remove()
        m.late = lib.nn.Identity()

    run(program)


def test_what_hooks_put_in_the_place():
    def program(lib, log):
        mark = lib.nn.Identity()
        with (
            hooked(
                lib, "parameter_registration_hook",
                lambda m, name, p: lib.nn.Parameter(p * 2) if name == "weight" else None,
            ),
            hooked(lib, "module_registration_hook", lambda m, name, child: mark if name == "child" else None),
            hooked(lib, "buffer_registration_hook", lambda m, name, b: b + 1),
        ):  # fmt: skip
            m = lib.nn.Module()
            m.weight = lib.nn.Parameter(lib.ones(2, device="cpu"))
            m.child = lib.nn.ReLU()
            m.register_buffer("seen", lib.ones(1, device="cpu"))
        log.append(
            (m.weight.tolist(), m.child is mark, m.seen.tolist(), [n for n, _ in m.named_parameters()])
        )

    run(program)


def test_modules_whose_own_hooks_were_removed_are_heard():
    def program(lib, log):
        m = lib.nn.Sequential(lib.nn.Linear(2, 2, device="cpu"), lib.nn.Tanh())
        m[0].register_forward_hook(lambda *given: None).remove()
        hook = hooked(lib, "forward_hook", lambda module, given, out: log.append(type(module).__name__))
        m(lib.ones(1, 2, device="cpu"))
        hook.remove()
        m(lib.ones(1, 2, device="cpu"))

    assert run(program) == ["Linear", "Tanh", "Sequential"]
