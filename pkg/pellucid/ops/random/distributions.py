"""Random tensors: uniform, normal, integers, permutations, dropout."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable
from math import nan, prod, sqrt

import numpy as np

from ...autograd.batching import drawn_by_each, enclose, levels
from ...autograd.composed import composed
from ...autograd.formulas import zeros
from ...device import device as Device
from ...device import resolved
from ...errors import ArgumentError, DTypeError, RangeError, ShapeError
from ...op.arguments import by_name, element_type, number
from ...op.declaration import elementwise, function, op
from ...op.elementwise import Elementwise
from ...op.families import Declared, called, formed
from ...op.rules import as_input, same, sized, stated
from ...tensors import dtypes as dt
from ...tensors.construct import tensor
from ...tensors.dtypes import DType
from ...tensors.shape import index, sizes
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..elementwise.complex import view_as_complex
from ..shape.creation import options_of
from .generator import Generator, chosen, words

STATE = "index, seed_low, seed_high, offset_low, offset_high"
WORDS: dict[str, str] = dict.fromkeys(("seed_low", "seed_high", "offset_low", "offset_high", "span"), "u32")


def uniform(size, seed_low, seed_high, offset_low, offset_high, dtype=None, device=None):
    bits = words(int(np.prod(size)), seed_low, seed_high, offset_low, offset_high)
    return ((bits >> 8).astype(np.float32) * np.float32(2**-24)).reshape(size)


def _normal(size, seed_low, seed_high, offset_low, offset_high, dtype, device):
    count = int(np.prod(size))
    bits = words(count + count % 2, seed_low, seed_high, offset_low, offset_high).reshape(-1, 2) >> 8
    radius = np.sqrt(-2 * np.log((bits[:, 0] + 1.0) * 2**-24))
    angle = bits[:, 1] * (2 * np.pi * 2**-24)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)[:count].reshape(size)


def _integer(size, low, span, seed_low, seed_high, offset_low, offset_high, dtype, device):
    bits = words(int(np.prod(size)), seed_low, seed_high, offset_low, offset_high)
    return (low + (bits % np.uint32(span)).astype(np.int64)).reshape(size)


def _of_size(
    size: tuple[int, ...], seed_low: float, seed_high: float, offset_low: float, offset_high: float,
    dtype: DType, device: Device,
) -> Tensor: ...  # fmt: skip


def _from_low(
    size: tuple[int, ...], low: float, span: float, seed_low: float, seed_high: float, offset_low: float,
    offset_high: float, dtype: DType, device: Device,
) -> Tensor: ...  # fmt: skip


def _block(public: str, form: Callable, kernel: Elementwise, reference: Callable, sentence: str) -> Declared:
    """Declare numbers from a place in a generator's stream, `uniform_block` of `uniform`."""
    doc = f"{sentence} from a place in a generator's stream."
    made = op(public=public, dtype=stated, shape=sized, kernel=kernel, reference=reference, grad=None)
    return made(formed(form, f"{reference.__name__.removeprefix('_')}_block", doc))


_WORD = f"(random_word({STATE}) % span)"
uniform_block, normal_block = [
    _block(public, _of_size, elementwise(f"{call}({STATE})", i32=False, own=WORDS), reference, sentence)
    for public, call, reference, sentence in (
        ("rand", "uniform_of", uniform, "Uniform numbers in [0, 1)"),
        ("randn", "normal_of", _normal, "Standard normal numbers"),
    )
]
integer_block = _block(
    "randint", _from_low,
    elementwise(
        f"low + f32{_WORD}", i32=f"low + bitcast<i32>{_WORD}", u32=f"low + {_WORD}",
        i64=f"i64_add(low, vec2<u32>({_WORD}, 0u))", own=WORDS,
    ),
    _integer, "Integers from ``low`` to before ``low + span``",
)  # fmt: skip


def _draw(
    block, size, dtype: DType | None, device, generator: Generator | None, requires_grad: bool, *arguments
) -> Tensor:
    shape = sizes(size)
    d = dt.get_default_dtype() if dtype is None else element_type(dtype)
    examples = drawn_by_each()
    shape = (*[level.size for level in examples], *shape)
    state = chosen(generator).take(max(prod(shape), 0), each=True)
    out = enclose(block(shape, *arguments, *state, d, resolved(device)), examples)
    return out if requires_grad is False or requires_grad is None else out.requires_grad_(requires_grad)


def _real(name: str, d: DType | None) -> DType:
    """The dtype of the numbers to draw: of complex ones that of their parts."""
    d = dt.get_default_dtype() if d is None else element_type(d)
    if d.is_complex:
        return dt.float32 if d is dt.complex64 else dt.float64
    if not d.is_floating_point:
        raise DTypeError(f"{name}: dtype must be floating point, not {d}. Use randint for integers.")
    return d


def _numbers(name: str, block: Callable, scale: float, doc: str) -> Callable[..., Tensor]:
    """Declare numbers of a law; the parts of complex ones follow each other in the stream, times a scale."""

    @by_name
    def call(
        *given,
        size=None,
        dtype: DType | None = None,
        device=None,
        generator: Generator | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        size = given if size is None else (*given, size)
        drawn = _real(name, dtype)
        if dtype is None or not element_type(dtype).is_complex:
            return _draw(block, size, drawn, device, generator, requires_grad)
        parts = call(*sizes(size), 2, dtype=drawn, device=device, generator=generator)
        out = view_as_complex(parts * scale)
        return out.requires_grad_() if requires_grad else out

    return called(name, doc, call, aten=(f"{name}.default", f"{name}.generator"))


rand = _numbers(
    "rand", uniform_block, 1.0,
    "Uniform random numbers in [0, 1), 24 bits each; the same on every device; both parts of complex ones.",
)  # fmt: skip
randn = _numbers(
    "randn", normal_block, sqrt(0.5),
    "Standard normal random numbers; equal on every device within 1e-5. The parts of complex ones have the\n"
    "    variance 1/2 each.",
)  # fmt: skip


@function(aten=("randint.low", "randint.low_generator"))
def randint(
    low: int = 0,
    high=None,
    size=None,
    *,
    dtype: DType | None = None,
    device=None,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Random integers from ``low`` to before ``high``.

    Args:
        low, high: bounds; ``randint(high, size)`` begins at 0. The range is below 2^32.
        size: the shape.
        dtype: int64 if not given.

    Raises:
        RangeError: the range is empty or too large.
        DTypeError: a complex dtype.
    """
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if size is None:
        raise ArgumentError("randint: give randint(high, size) or randint(low, high, size).")
    low, high = index(low, "low"), index(high, "high")
    if not 0 < high - low < 2**32:
        raise RangeError(f"randint: from {low} to {high} is not a range of 1 to 2^32 - 1 integers.")
    d = dt.int64 if dtype is None else element_type(dtype)
    if d.is_complex:
        raise DTypeError(f"randint: dtype must be real, not {d}. Convert the integers with .to().")
    return _draw(integer_block, (size,), d, device, generator, requires_grad, low, high - low)


def _like(draw: Callable, name: str) -> Callable[..., Tensor]:
    """Declare numbers of a law like a tensor."""

    def call(
        input: Tensor,
        *,
        dtype: DType | None = None,
        device=None,
        generator: Generator | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        options = {**options_of(input, dtype, device), "requires_grad": requires_grad}
        return draw(*input.shape, generator=generator, **options)

    doc = f"`{name}` with the shape, dtype and device of ``input``."
    return called(f"{name}_like", doc, call)


rand_like, randn_like = _like(rand, "rand"), _like(randn, "randn")


@function(aten=("randperm.default", "randperm.generator"))
def randperm(
    n: int,
    *,
    dtype: DType | None = None,
    device=None,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The integers from 0 to before ``n`` in random order."""
    n = index(n, "n")
    if n < 0:
        raise ShapeError(f"randperm: n is {n}; there are no permutations of fewer than 0 integers.")
    keys = words(2 * n, *chosen(generator).take(2 * n)).reshape(n, 2).astype(np.uint64)
    order = np.argsort(keys[:, 0] << np.uint64(32) | keys[:, 1], kind="stable")
    d = dt.int64 if dtype is None else dtype
    return tensor(order.astype(np.int64), dtype=d, device=device, requires_grad=requires_grad)


def _chance(input, seed_low, seed_high, offset_low, offset_high):
    if not ((input >= 0) & (input <= 1)).all():
        raise RangeError("all probabilities must be between 0 and 1.")
    drawn = uniform(input.shape, seed_low, seed_high, offset_low, offset_high)
    return (drawn < input).astype(input.dtype)


# By the bits: a compiler may take for granted that nothing is NaN.
_IS_CHANCE = "(bitcast<u32>(input) <= 0x3f800000u || bitcast<u32>(input) == 0x80000000u)"


@op(
    public="bernoulli",
    dtype=same,
    shape=as_input,
    kernel=elementwise(
        f"select(not_defined(input), select(0.0, 1.0, uniform_of({STATE}) < input), {_IS_CHANCE})",
        i32=False,
        own=WORDS,
    ),
    reference=_chance,
    grad=None,
)
def chance_block(
    input: Tensor, seed_low: float, seed_high: float, offset_low: float, offset_high: float
) -> Tensor:
    """1 where numbers from a place in a generator's stream are below ``input``, else 0; NaN where that is no
    probability."""


@function(method=True, aten=("bernoulli.default", "bernoulli.p"))
@composed(input=zeros)
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that ``input`` gives, else 0.

    Args:
        input: probabilities; with ``p`` a tensor of which shape, dtype and device count.
        p: one probability for all elements.

    Raises:
        DTypeError: the input is not floating point, and there is no ``p``.
        RangeError: ``p`` is not between 0 and 1, or on the cpu device an element of ``input``. On webgpu
            nothing waits for values: there it gives NaN.
    """
    m = input._meta
    if p is not None:
        if not 0 <= number(p, "bernoulli: p") <= 1:
            raise RangeError(f"bernoulli: p is {p}; it must lie between 0 and 1.")
        return (rand(*m.shape, device=m.device, generator=generator) < p).to(m.dtype)
    if not m.dtype.is_floating_point:
        raise DTypeError(f"bernoulli: the input is {m.dtype}, not floating point. Convert with .float().")
    if not levels():
        return chance_block(input, *chosen(generator).take(max(m.numel, 0)))
    drawn = (rand(*m.shape, device=m.device, generator=generator) < input).to(m.dtype)
    return drawn.masked_fill(~((input >= 0) & (input <= 1)), nan)


@function(
    exports=("torch", "nn.functional"), ours="PyTorch's operator is given its noise", node="RreluWithNoise"
)
def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """``input`` where positive, else ``input`` times a random slope; without training times the middle one.

    Args:
        input: floating point.
        lower, upper: the bounds of the slopes.
        training: whether slopes are random.
        inplace: write the result over the input.
    """
    lower, upper = number(lower, "rrelu: lower"), number(upper, "rrelu: upper")
    if not lower <= upper:
        raise RangeError(f"rrelu: lower {lower} is greater than upper {upper}. Exchange them.")
    slope = rand_like(input) * (upper - lower) + lower if training else (lower + upper) / 2
    out = where(input > 0, input, input * slope)
    return input.copy_(out) if inplace else out


@function(exports=None, method=True)
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with normal random numbers.

    Raises:
        RangeError: ``std`` is negative or NaN.
    """
    generator = chosen(generator, "normal_")
    mean, std = number(mean, "normal_: mean"), number(std, "normal_: std")
    if not std >= 0:
        raise RangeError(f"normal_: std is {std}; it must not be negative.")
    dtype = self.dtype if self.dtype.is_complex else None
    drawn = randn(*self._meta.shape, dtype=dtype, device=self._meta.device, generator=generator)
    return self.copy_(drawn * std + mean)


@function(exports=None, method=True)
def uniform_(self: Tensor, a: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with uniform random numbers from ``a``, which PyTorch calls ``from``, to ``to``.

    Raises:
        RangeError: ``to`` is less than ``a``, or one of them is NaN.
    """
    generator, a, to = chosen(generator, "uniform_"), number(a, "uniform_: a"), number(to, "uniform_: to")
    if not a <= to:
        raise RangeError(f"uniform_: there is nothing from a = {a} to {to}. Exchange them.")
    return self.copy_(rand(*self._meta.shape, device=self._meta.device, generator=generator) * (to - a) + a)
