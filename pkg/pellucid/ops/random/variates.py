"""Random numbers of named distributions: normal with tensors of means, multinomial, and methods that fill."""

from __future__ import annotations

from math import inf, log, pi

from ...errors import ArgumentError, DTypeError, RangeError, ShapeError
from ...op.arguments import number
from ...op.public import function
from ...tensors import dtypes as dt
from ...tensors.dtypes import DType
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..index.counting import searchsorted
from ..index.sort import topk
from ..shape.creation import arange, options_of
from ..shape.views import broadcast_tensors
from .distributions import bernoulli, rand, randint, randn
from .generator import Generator

# One past the integers that a float holds exactly, from 0 on; of bools all.
_EXACT = {dt.float32: (1 << 24) + 1, dt.float16: (1 << 11) + 1, dt.bfloat16: (1 << 8) + 1, dt.bool_: 2}


def _uniform(self: Tensor, generator: Generator | None) -> Tensor:
    return rand(*self._meta.shape, device=self._meta.device, generator=generator)


def _positive(name: str, value: float) -> float:
    value = number(value, name)
    if not value > 0:
        raise RangeError(f"{name} is {value}; it must be positive.")
    return value


@function(
    aten=(
        "normal.Tensor_Tensor(mean, std, *, generator=None)",
        "normal.Tensor_float(mean, std=1.0, *, generator=None)",
        "normal.float_Tensor(mean, std, *, generator=None)",
        "normal.float_float",
    )
)
def normal(
    mean: Tensor | float,
    std: Tensor | float = 1.0,
    size=None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal random numbers, each with its own mean and standard deviation: ``mean + std * randn``.

    Args:
        mean, std: tensors that broadcast, or numbers.
        size: the shape, where both are numbers.
        dtype, device, requires_grad: where both are numbers.

    Raises:
        ArgumentError: both are numbers and there is no size.
        RangeError: the deviation is a negative number or NaN; those in a tensor are not looked at.
    """
    if not isinstance(std, Tensor) and not number(std, "normal: std") >= 0:
        raise RangeError(f"normal: std is {std}; it must not be negative.")
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if not tensors:
        if size is None:
            raise ArgumentError("normal: give a size, or a tensor as mean or std.")
        made = randn(size, dtype=dtype, device=device, generator=generator) * std + mean
        return made.requires_grad_(requires_grad)
    like = broadcast_tensors(*tensors)[0]
    drawn = randn(*like.shape, dtype=like.dtype, device=like.device, generator=generator)
    return drawn * std + mean


@function(aten=("randint_like.default(self, high, *, dtype=None, device=None)", "randint_like.low_dtype"))
def randint_like(
    input: Tensor,
    low: int = 0,
    high: int | None = None,
    *,
    dtype: DType | None = None,
    device=None,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`randint` with the shape, dtype and device of ``input``; ``randint_like(input, high)`` begins at 0."""
    low, high = (0, low) if high is None else (low, high)
    options = {**options_of(input, dtype, device), "requires_grad": requires_grad}
    return randint(low, high, tuple(input.shape), generator=generator, **options)


@function(method=True)
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Indices drawn in proportion to weights. Waits for the device, which looks at the weights.

    Args:
        input: (n) or (rows, n) weights, floating point, not negative; they need not add up to 1.
        num_samples: how many of each row.
        replacement: whether an index may come twice.

    Returns:
        (num_samples) or (rows, num_samples) int64.

    Raises:
        RangeError: a weight is negative, infinite or NaN; a row has none, or fewer than are drawn without
            replacement.
        ShapeError: another number of axes.

    Example:
        >>> import pellucid as torch
        >>> torch.multinomial(torch.tensor([0.0, 3.0, 0.0], device="cpu"), 2, replacement=True).tolist()
        [1, 1]
    """
    m, count = input._meta, index(num_samples, "multinomial: num_samples")
    if not m.dtype.is_floating_point:
        raise DTypeError(f"multinomial: weights are {m.dtype}, not floating point. Convert with .float().")
    if m.rank not in (1, 2) or not m.numel:
        raise ShapeError(f"multinomial: weights have shape {tuple(m.shape)}; give (n) or (rows, n).")
    if count < 1:
        raise RangeError(f"multinomial: num_samples is {count}; it must be positive.")
    weights = input.detach().float()
    known, some = ((weights >= 0) & (weights < inf)).all(), (weights > 0).sum(-1).min()
    is_known, least = bool(known), int(some)
    if not is_known:
        raise RangeError("multinomial: a weight is negative, infinite or NaN.")
    if least < (1 if replacement else count):
        raise RangeError(
            f"multinomial: a row has {least} positive weights. Draw fewer, or with replacement=True."
        )
    if not replacement:
        # The order of exponential waiting times with these rates.
        waited = -(1 - _uniform(weights, generator)).log()
        return topk(where(weights > 0, weights / waited, -1.0), count, -1)[1]
    return weighted(weights, count, generator)


def weighted(weights: Tensor, count: int, generator: Generator | None = None) -> Tensor:
    """Indices drawn in proportion to weights, each as if alone, (..., count) int64. Nobody looks at the
    weights, (..., n): none is negative, and in each row one at least is positive."""
    m = weights._meta
    total = weights.cumsum(-1)
    drawn = rand(*m.shape[:-1], count, device=m.device, generator=generator) * total[..., -1:]
    last = where(weights > 0, arange(m.shape[-1], device=m.device), 0).amax(-1, keepdim=True)
    return searchsorted(total, drawn, right=True).minimum(last)


@function(exports=None, method=True)
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed numbers of rate ``lambd``."""
    rate = _positive("exponential_: lambd", lambd)
    return self.copy_((1 - _uniform(self, generator)).log() / -rate)


@function(exports=None, method=True)
def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers of a Cauchy distribution."""
    width = _positive("cauchy_: sigma", sigma)
    return self.copy_(((_uniform(self, generator) - 0.5) * pi).tan() * width + number(median, "median"))


@function(exports=None, method=True)
def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers whose logarithms are normal."""
    width = _positive("log_normal_: std", std)
    drawn = randn(*self._meta.shape, device=self._meta.device, generator=generator)
    return self.copy_((drawn * width + number(mean, "mean")).exp())


@function(exports=None, method=True)
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of trials up to the first success, of probability ``p`` each."""
    p = number(p, "geometric_: p")
    if not 0 < p < 1:
        raise RangeError(f"geometric_: p is {p}; it must lie between 0 and 1.")
    return self.copy_(((1 - _uniform(self, generator)).log() / log(1 - p)).ceil().clamp_min(1))


@function(exports=None, method=True, aten=("bernoulli_.float", "bernoulli_.Tensor"))
def bernoulli_(self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 of probability ``p``, else 0.

    Raises:
        RangeError: ``p`` is not between 0 and 1, or on the cpu device an element of it. On webgpu nothing
            waits for values.
    """
    if isinstance(p, Tensor) and p.device.type == self.device.type == "cpu":
        return self.copy_(bernoulli(p.detach().expand(self.shape), generator=generator))
    if not isinstance(p, Tensor) and not 0 <= number(p, "bernoulli_: p") <= 1:
        raise RangeError(f"bernoulli_: p is {p}; it must lie between 0 and 1.")
    return self.copy_(_uniform(self, generator) < p)


@function(
    exports=None,
    method=True,
    aten=(
        "random_.from(self, low, to, *, generator=None)",
        "random_.to(self, to, *, generator=None)",
        "random_",
    ),
)
def random_(
    self: Tensor, low: int = 0, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Fill with random integers from ``low`` to before ``to``; ``random_(to)`` begins at 0. Without
    bounds they go up to what the dtype holds exactly, at most 2^31 - 1.
    """
    m = self._meta
    if m.dtype.is_complex:
        raise DTypeError(f"random_: takes real tensors, not {m.dtype}. Fill real and imaginary parts.")
    low = index(low, "random_: from")
    if to is None:
        low, to = (0, low) if low else (0, _EXACT.get(m.dtype, 1 << min(8 * m.dtype.itemsize - 1, 31)))
    return self.copy_(randint(low, to, tuple(m.shape), device=m.device, generator=generator))
