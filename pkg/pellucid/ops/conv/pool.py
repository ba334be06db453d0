"""The names of poolings over one to three axes: max_pool1d to fractional_max_pool3d."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

from ...op.declaration import docstring
from ...op.families import called
from . import pool_kinds as kinds

_KNOWN = {
    "kernel_size": "lengths of a window: one number, or one for each axis, as all that follow.",
    "stride": "places from one window to the next; the kernel's size if None.",
    "padding": "places outside of the image where windows may begin; at most half of a window. Maxima pass "
    "over them, means take zeros.",
    "dilation": "places from one element of a window to the next.",
    "ceil_mode": "whether a last window may reach further than the padding.",
    "return_indices": "whether to return places too.",
    "count_include_pad": "whether places of the padding count in the mean.",
    "divisor_override": "what sums are divided by, instead of the number of places.",
    "output_size": "lengths of the result: one number, or one for each axis. Where windows adapt, None "
    "leaves a length as it is.",
    "output_ratio": "the result's lengths as shares of the input's, in its place.",
    "norm_type": "the power.",
    "indices": "int64, places in the flat image, as a pooling returns them.",
    "_random_samples": "(batch, channels, axes) between 0 and 1, which say where windows begin; drawn if "
    "None.",
}
_PLACES = "; or that and the int64 places of the elements in the flat image, the first of equal ones"
_MADE = "each length being ``(length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1``"
_COVER = (
    "of so many windows, as equal as they can be, which cover the image.\n\n    Window ``q`` of ``m`` over a "
    "length ``n`` is from ``floor(q * n / m)`` to ``ceil((q + 1) * n / m)``."
)
# By kind: a sentence, what it returns, why ATen has no such operator.
_KINDS: dict[str, tuple[str, str, str]] = {
    "max_pool": ("The largest element of each window; a NaN is larger than any number.", _MADE + _PLACES, ""),
    "avg_pool": ("The mean of each window; of int64, the quotient towards 0.", _MADE, ""),
    "adaptive_avg_pool": (f"Means {_COVER}", "of lengths ``output_size``", ""),
    "adaptive_max_pool": (
        f"Maxima {_COVER}", f"of lengths ``output_size``{_PLACES}",
        "ATen's adaptive_max_pool always returns places, as the form with indices does",
    ),
    "lp_pool": (
        "The norm of each window: ``sum(x ** norm_type) ** (1 / norm_type)``.", _MADE,
        "made of a mean in PyTorch, in Python",
    ),
    "max_unpool": (
        "The values at their places in an image of zeros: the inverse of a pooling.",
        "each length being ``(length - 1) * stride + kernel - 2 * padding``, or ``output_size``",
        "the form of nn.functional; ATen's takes the lengths of the result",
    ),
    "fractional_max_pool": (
        "The largest element of windows at pseudo-random distances (Graham 2014), two neighbouring integers.",
        f"of lengths ``output_size``{_PLACES}", "the form of nn.functional; ATen's takes the samples always",
    ),
}  # fmt: skip
# What PyTorch calls their nodes. Those of two axes are one op, whose node says it by itself; means of whole
# images are means.
_NODES = {
    "avg_pool2d": "AvgPool2D", "avg_pool3d": "AvgPool3D", "max_pool3d": "MaxPool3DWithIndices",
    "adaptive_max_pool2d": "AdaptiveMaxPool2D", "adaptive_max_pool3d": "AdaptiveMaxPool3D",
    "max_unpool2d": "MaxUnpool2D", "max_unpool3d": "MaxUnpool3D",
    "fractional_max_pool2d": "FractionalMaxPool2D", "fractional_max_pool3d": "FractionalMaxPool3D",
}  # fmt: skip
_IN_TORCH = {
    "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "adaptive_avg_pool1d", "max_pool1d_with_indices"
}  # fmt: skip


def _pool(
    kind: str, count: int, with_indices: bool = False, aten: tuple[str, ...] | None = None, example: str = ""
) -> Callable:
    """Declare a kind of pooling over so many axes."""
    sentence, returns, ours = _KINDS[kind]
    make = getattr(kinds, kind)
    page = f"{kind}{count}d"
    name = f"{page}_with_indices" if with_indices else page
    call = make(name, count, True) if with_indices else make(name, count)
    shape = f"(batch, channels, {kinds.AXES[count]})"
    known = _KNOWN | {"input": f"{shape} or (channels, {kinds.AXES[count]})."}
    sections: dict[str, dict[str, str] | str] = {
        "Args": {k: known[k] for k in signature(call).parameters},
        "Returns": f"{shape}, {returns}.",
        "Raises": {"ShapeError": "windows do not fit the image, or a setting does not fit them."},
    }
    call.__module__ = __name__
    if with_indices and "adaptive" in kind:
        aten = (f"{page}.default(self, output_size)",)
    places = ("torch", "nn.functional") if name in _IN_TORCH else "nn.functional"
    doc = docstring(sentence, sections, example)
    return called(
        name, doc, call, exports=places, aten=aten, ours="" if aten else ours, node=_NODES.get(page, "")
    )


max_pool1d, max_pool3d = (_pool("max_pool", n) for n in (1, 3))
max_pool2d = _pool(
    "max_pool", 2,
    example=""">>> import pellucid as torch
>>> x = torch.tensor([[[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]]], device="cpu")
>>> torch.nn.functional.max_pool2d(x, 2, stride=1).tolist()
[[[5.0, 6.0]]]""",
)  # fmt: skip
max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    _pool("max_pool", n, True) for n in (1, 2, 3)
)
avg_pool1d, avg_pool2d, avg_pool3d = (_pool("avg_pool", n) for n in (1, 2, 3))
adaptive_avg_pool1d = _pool("adaptive_avg_pool", 1)
adaptive_avg_pool2d, adaptive_avg_pool3d = (
    _pool("adaptive_avg_pool", n, aten=(f"adaptive_avg_pool{n}d.default", f"_adaptive_avg_pool{n}d.default"))
    for n in (2, 3)
)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _pool("adaptive_max_pool", n) for n in (1, 2, 3)
)
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = (
    _pool("adaptive_max_pool", n, True) for n in (1, 2, 3)
)
lp_pool1d, lp_pool2d, lp_pool3d = (_pool("lp_pool", n) for n in (1, 2, 3))
max_unpool1d, max_unpool2d, max_unpool3d = (_pool("max_unpool", n) for n in (1, 2, 3))
fractional_max_pool2d, fractional_max_pool3d = (_pool("fractional_max_pool", n) for n in (2, 3))
fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = (
    _pool("fractional_max_pool", n, True) for n in (2, 3)
)
