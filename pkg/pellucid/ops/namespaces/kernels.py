"""`pellucid.kernels`: compute shaders of one's own in WGSL, called with tensors; and the texts of ours."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from inspect import Parameter, Signature
from itertools import count
from typing import Any

from ...device import resources
from ...errors import ArgumentError, DeviceError, DTypeError, GradientError, KernelError, ShapeError
from ...op.arguments import integer_or_integers
from ...op.call import Call
from ...op.declaration import op
from ...op.kernel import KernelSource, Launch, load, physical
from ...tensors.tensor import Tensor

__all__ = ["Kernel", "compile", "names", "source"]

_NUMBERS = count()
_FIELDS = {"f32": "float", "u32": "int", "i32": "int"}
_RANGES = {"u32": (0, 2**32 - 1), "i32": (-(2**31), 2**31 - 1)}
_ENTRY = re.compile(r"@compute\b[^{]*?\bfn (\w+)", re.S)
_LAYOUT = (
    "Declare buffers as `@group(0) @binding(k) var<storage, read> x: array<f32>;` (or read_write), and "
    "numbers as `struct Params { n: u32 }` with `@group(1) @binding(0) var<uniform> params: Params;`."
)


class Kernel:
    """A compute shader that is called with tensors; `compile` makes it.

    Attributes:
        name: what errors and traces call it.
        buffers: names of the bindings, in the order in which tensors are given.
        written: those that the shader writes into.
        numbers: fields of Params that every call gives.
    """

    def __init__(self, source: KernelSource, reference: Callable | None):
        self.name = source.name
        self.buffers = tuple(b.name for b in source.bindings)
        self.written = tuple(b.name for b in source.bindings if b.written)
        offsets = {f"{name}_offset" for name in self.buffers}
        self.numbers = tuple(name for name in source.fields if name not in offsets)
        self._offsets = frozenset(source.fields) & offsets
        self._source = source
        self._op = _declare(source, self, reference)

    def __call__(
        self, *tensors: Tensor, grid: int | Sequence[int], **numbers: float
    ) -> Tensor | tuple[Tensor, ...]:
        """Run the shader.

        Args:
            tensors: one for each of ``buffers``, any shapes; those that are read and not contiguous are
                copied first.
            grid: workgroups, as one number (folded into two dimensions past 65,535) or up to three.
            numbers: the fields of Params by name. ``<buffer>_offset`` is filled in: the element at which
                the tensor begins in its buffer.

        Returns:
            What was written into: a tensor, or a tuple of them.

        Raises:
            ArgumentError: a tensor or a number is missing or too many.
            DTypeError: a buffer's element type is not the tensor's.
            DeviceError: a tensor is on another device than the others, or on ``cpu`` without a reference.
            GradientError: a tensor that is written into requires a gradient.
            KernelError: the shader does not compile.
            ShapeError: a tensor that is written into is not contiguous, or begins inside its buffer and the
                shader has no field for that.
        """
        where = f"kernel {self.name}"
        if len(tensors) != len(self.buffers):
            raise ArgumentError(
                f"{where}: {len(tensors)} tensors for the buffers {', '.join(self.buffers)}. Give one for "
                "each."
            )
        if missing := [name for name in self.numbers if name not in numbers]:
            raise ArgumentError(
                f"{where}: Params has the fields {', '.join(missing)}, which no argument gives. Give them "
                "by name."
            )
        if extra := sorted(set(numbers) - set(self.numbers)):
            raise ArgumentError(
                f"{where}: Params has no field {', '.join(extra)}. It has "
                f"{', '.join(self.numbers) or 'none'}."
            )
        size = integer_or_integers(grid, f"{where}: grid")
        shape = (size,) if isinstance(size, int) else tuple(size)
        if not 1 <= len(shape) <= 3 or min(shape) < 1:
            raise ArgumentError(
                f"{where}: grid is {grid}. Give one to three numbers of workgroups, each at least 1."
            )
        given = [self._fitting(b, t) for b, t in zip(self._source.bindings, tensors, strict=True)]
        targets = {
            id(t._storage): b.name for b, t in zip(self._source.bindings, given, strict=True) if b.written
        }
        if len(targets) < len(self.written):
            raise ArgumentError(
                f"{where}: two of {', '.join(self.written)} share memory. Write into separate tensors."
            )
        for k, b in enumerate(self._source.bindings):
            if not b.written and id(given[k]._storage) in targets:
                given[k] = given[k].clone()
        for field in self.numbers:
            kind, value = self._source.fields[field].type, numbers[field]
            low, high = _RANGES.get(kind, (-math.inf, math.inf))
            if isinstance(value, int) and not low <= value <= high:
                raise ArgumentError(
                    f"{where}: {field} is {value}, and the field is a {kind}. Give a number of {low} "
                    f"to {high}."
                )
        self._op(
            *given,
            *(numbers[name] for name in self.numbers),
            shape[0] if len(shape) == 1 else (*shape, 1, 1)[:3],
        )
        made = tuple(t for t, name in zip(tensors, self.buffers, strict=True) if name in self.written)
        return made[0] if len(made) == 1 else made

    def _fitting(self, binding: Any, t: Any) -> Tensor:
        """A tensor as the shader reads it, or the error that says why it cannot."""
        where = f"kernel {self.name}: {binding.name}"
        if not isinstance(t, Tensor):
            raise ArgumentError(f"{where} is a {type(t).__name__}. Give a tensor.")
        if binding.written:
            if t.requires_grad:
                raise GradientError(
                    f"{where} requires a gradient, which a shader cannot give. Write into x.detach(), or "
                    "wrap the call in an autograd.Function."
                )
            if not t.is_contiguous():
                raise ShapeError(f"{where} is not contiguous and is written into. Give a contiguous tensor.")
        elif not t.is_contiguous():
            t = t.contiguous()
        if t.device.type == "webgpu":
            element = physical(t.dtype)[0]
            if element != binding.element.replace("vec2u", "vec2<u32>").replace("vec2f", "vec2<f32>"):
                raise DTypeError(
                    f"{where} is an array of {binding.element}; {t.dtype} lies in memory as {element}. "
                    "Convert the tensor, or declare the buffer so."
                )
            if t.storage_offset() and f"{binding.name}_offset" not in self._offsets:
                if binding.written:
                    raise ShapeError(
                        f"{where} begins at element {t.storage_offset()} of its buffer. Add a field "
                        f"{binding.name}_offset: u32 to Params and to every index."
                    )
                t = t.clone()
        return t

    def __repr__(self) -> str:
        return f"Kernel({self.name}: {', '.join(self.buffers)}; {', '.join(self.numbers)})"


def _declare(source: KernelSource, kernel: Kernel, reference: Callable | None) -> Callable:
    """The op that runs a shader."""

    def launch(call: Call) -> Launch:
        return Launch(source, call["grid"])

    def on_cpu(*given: Any) -> None:
        if reference is None:
            raise DeviceError(
                f"kernel {kernel.name}: a shader runs on webgpu only. Move the tensors there, or give "
                "compile() a reference."
            )
        reference(
            *given[: len(kernel.buffers)],
            **dict(zip(kernel.numbers, given[len(kernel.buffers) : -1], strict=True)),
        )

    def declared(): ...

    kinds = {
        **dict.fromkeys(kernel.buffers, "Tensor"),
        **{name: _FIELDS[source.fields[name].type] for name in kernel.numbers},
        "grid": "int | tuple[int, ...]",
    }
    form: Any = declared
    form.__name__ = form.__qualname__ = f"_kernel_{next(_NUMBERS)}"
    form.__module__ = "kernels"  # a program's, not the package's
    form.__doc__ = f"The shader {kernel.name}."
    form.__annotations__ = kinds
    form.__signature__ = Signature(
        [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, annotation=kind) for n, kind in kinds.items()]
    )
    return op(
        public=kernel.name,
        kernel=launch,
        reference=on_cpu,
        grad=None,
        outputs=(),
        mutates=kernel.written,
        dynamic=tuple(name for name in kernel.numbers if source.fields[name].type != "f32"),
    )(form)


def compile(source: str, *, name: str | None = None, reference: Callable[..., None] | None = None) -> Kernel:
    """A compute shader, ready to be called with tensors.

    The text is WGSL. Buffers are the storage bindings of group 0; numbers are the fields (u32, i32, f32) of a
    ``struct Params`` at group 1. A call is one dispatch in the order of all others: it is captured by
    `compile`, profiled, and named in errors. It has no derivative; `autograd.Function` gives it one.

    Args:
        source: the shader, with one entry point called ``main``.
        name: what errors and traces call it; "kernel" if None.
        reference: a function of numpy arrays (the buffers, in order) and of the numbers by name, which writes
            into the arrays that the shader writes into. It is the kernel on the ``cpu`` device, and what
            ``PELLUCID_CHECK=1`` compares with.

    Returns:
        The kernel. WGSL is compiled at the first call.

    Raises:
        KernelError: the text declares no buffer that it writes into, has no entry point ``main``, or a field
            of Params is of another type.

    Source: https://www.w3.org/TR/WGSL

    Example:
        >>> import pellucid as torch
        >>> double = torch.kernels.compile('''
        ... @group(0) @binding(0) var<storage, read> x: array<f32>;
        ... @group(0) @binding(1) var<storage, read_write> out: array<f32>;
        ... struct Params { n: u32, factor: f32 }
        ... @group(1) @binding(0) var<uniform> params: Params;
        ... @compute @workgroup_size(64)
        ... fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        ...     if (id.x < params.n) { out[id.x] = params.factor * x[id.x]; }
        ... }''')
        >>> x = torch.arange(3.0, device="webgpu")
        >>> double(x, torch.empty_like(x), grid=1, n=3, factor=2.0).tolist()
        [0.0, 2.0, 4.0]
    """
    if not isinstance(source, str):
        raise ArgumentError(
            f"kernels.compile: source is a {type(source).__name__}. Give the text of a shader in WGSL."
        )
    parsed = KernelSource(name or "kernel", source, typed=True)
    where = f"kernels.compile: {parsed.name}"
    if "main" not in _ENTRY.findall(source):
        raise KernelError(
            f"{where} has no entry point `@compute @workgroup_size(...) fn main`. Name it main."
        )
    if not any(b.written for b in parsed.bindings):
        raise KernelError(f"{where} declares no buffer that it writes into. {_LAYOUT}")
    if taken := {b.name for b in parsed.bindings} & {*parsed.fields, "grid"} or {"grid", "op"} & set(
        parsed.fields
    ):
        raise KernelError(f"{where}: the name {sorted(taken)[0]} is taken. Choose another.")
    for field, what in parsed.fields.items():
        if what.type not in _FIELDS:
            raise KernelError(f"{where}: field {field} of Params is a {what.type}. Use u32, i32 or f32.")
    return Kernel(parsed, reference)


def names() -> list[str]:
    """The package's own compute shaders, by the names that traces and errors say.

    Returns:
        Names such as "shape/triangle", in alphabetical order.

    Example:
        >>> import pellucid as torch
        >>> "shape/triangle" in torch.kernels.names()
        True
    """
    top = resources.path("wgsl")
    files = (file for file in top.rglob("*.wgsl") if "@compute" in file.read_text(encoding="utf-8"))
    return sorted(file.relative_to(top).with_suffix("").as_posix() for file in files)


def source(name: str) -> str:
    """The WGSL of one of the package's own compute shaders.

    It is whole: what the file uses of others is in it. An op fills in types, sizes and expressions of its own
    before the text is compiled; `debug.trace` shows what ran.

    Args:
        name: one of `names`.

    Raises:
        ArgumentError: there is no such shader.

    Source: https://www.w3.org/TR/WGSL

    Example:
        >>> import pellucid as torch
        >>> "@compute" in torch.kernels.source("shape/triangle")
        True
    """
    known = names()
    if name not in known:
        near = ", ".join(map(repr, get_close_matches(str(name), known))) or "one of kernels.names()"
        raise ArgumentError(f"kernels.source: there is no shader {name!r}. Give {near}.")
    return load(name).text
