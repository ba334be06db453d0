"""Cases of what moves a window over images: convolutions, their transposes, means and maxima."""

from case import EDGES, Case, apart, normal

from pellucid.nn.modules.padding import MODES


def moved(name: str, *args, **options):
    """A call of the function with these settings."""
    return lambda t, *tensors: getattr(t.nn.functional, name)(*tensors, *args, **options)


def conv() -> list[Case]:
    settings = {
        "one by one": ((2, 9, 6, 5), (20, 9, 1, 1), {}),
        "strided": ((2, 4, 11, 10), (6, 4, 3, 5), {"stride": (3, 2), "padding": (0, 2)}),
        "strided and dilated": (
            (1, 4, 16, 19), (6, 4, 3, 3), {"stride": (2, 4), "dilation": (3, 6), "padding": 4}
        ),
        "depthwise": ((2, 6, 9, 8), (6, 1, 3, 3), {"groups": 6, "padding": 1}),
        "same": ((2, 3, 7, 8), (5, 3, 4, 2), {"padding": "same", "dilation": (1, 3)}),
        "a depth in parts": ((1, 400, 4, 3), (24, 400, 3, 3), {"padding": 1}),
    }  # fmt: skip
    turned = {
        "strided": ((2, 4, 5, 6), (4, 20, 4, 4), {"stride": 2, "padding": 1}),
        "strided and dilated": (
            (2, 3, 5, 4), (3, 6, 3, 3), {"stride": (4, 3), "dilation": (6, 2), "padding": 3}
        ),
        "groups": ((2, 6, 5, 4), (6, 5, 3, 3), {"groups": 3, "stride": 2, "output_padding": 1}),
    }  # fmt: skip
    made = [
        Case(
            f"conv2d, {name}", moved("conv2d", **options), (normal(*x), normal(*w), normal(w[0])),
            atol=1e-4, rtol=1e-4,
        )
        for name, (x, w, options) in settings.items()
    ] + [
        Case(
            f"conv_transpose2d, {name}", moved("conv_transpose2d", **options),
            (normal(*x), normal(*w), normal(w[1] * options.get("groups", 1))), atol=1e-4, rtol=1e-4,
        )
        for name, (x, w, options) in turned.items()
    ]  # fmt: skip
    line, rows = normal(2, 4, 21), normal(4, 6, 5)
    return [
        *made,
        Case("conv1d", moved("conv1d", stride=2, padding=2), (line, normal(6, 4, 5)), atol=1e-4),
        Case("conv_transpose1d", moved("conv_transpose1d", stride=3), (line, rows), atol=1e-4),
        Case(
            "gradients of gradients", _twice, (normal(1, 2, 6, 5), normal(3, 2, 3, 3)), atol=1e-3, rtol=1e-3,
        ),
        Case(
            "halves", lambda t, x, w: t.nn.functional.conv2d(x.half(), w.half()).float(),
            (normal(2, 3, 6, 7), normal(5, 3, 3, 3)), rtol=1e-2, atol=1e-2, grad=False,
        ),
        Case(
            "pad", lambda t, x: [t.nn.functional.pad(x, (2, 1, 0, 2), mode) for mode in MODES[1:]],
            (normal(2, 3, 4, 5),),
        ),
    ]  # fmt: skip


def _twice(t, x, w):
    """A sum of squares of the gradients, whose own gradients reach through all three maps."""
    x, w = x * 1, w * 1
    if not x.requires_grad:
        x, w = x.requires_grad_(), w.requires_grad_()
    out = t.nn.functional.conv2d(x, w, stride=2, padding=1)
    return sum((g * g).sum() for g in t.autograd.grad((out * out).sum(), (x, w), create_graph=True))


def pool() -> list[Case]:
    x, line = apart(2, 3, 8, 9), normal(2, 3, 13)
    return [
        Case("max_pool2d", moved("max_pool2d", 3, 2, 1), (x,)),
        Case("max_pool2d, uneven", moved("max_pool2d", (3, 2), (2, 3), (1, 0), (2, 3), True), (x,)),
        Case("places", moved("max_pool2d", 2, return_indices=True), (x,), grad=False),
        Case(
            "edges", moved("max_pool1d", 3, 1, 1, return_indices=True), (EDGES.reshape(1, 1, -1),), grad=False
        ),
        Case("max_pool1d", moved("max_pool1d", 3, 2), (apart(2, 3, 13),)),
        Case("avg_pool2d", moved("avg_pool2d", 3, 2, 1), (x,)),
        Case("avg_pool2d of the image", moved("avg_pool2d", (2, 4), 3, (1, 2), True, False), (x,)),
        Case("avg_pool1d", moved("avg_pool1d", 4, 3, 2, True), (line,)),
        Case("adaptive_avg_pool2d", moved("adaptive_avg_pool2d", (3, 5)), (x,)),
        Case("adaptive_avg_pool2d to one", moved("adaptive_avg_pool2d", 1), (x,)),
        Case("adaptive_avg_pool1d", moved("adaptive_avg_pool1d", 20), (line,)),
    ]


GROUPS = {"conv": conv, "pool": pool}
# Groups whose kernels have two variants.
