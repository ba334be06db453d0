"""Windows of signals, as `pellucid.signal.windows` has them, and their older names such as `hann_window`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from math import pi, sqrt
from typing import Any

from ...errors import ArgumentError, RangeError
from ...op.arguments import boolean, number
from ...op.declaration import docstring, function
from ...tensors.dtypes import DType, float32, float64, get_default_dtype
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..shape.creation import arange, ones


def _sum_of_cosines(a: Sequence[float]) -> Callable:
    """A window of cosines, whose signs alternate."""

    def make(k: Tensor, span: int) -> Tensor:
        made = k * 0 + a[0]
        for i, w in enumerate(a[1:], 1):
            made = made + (-1) ** i * w * (k * (2 * pi * i / span)).cos()
        return made

    return make


def _general_cosine(k: Tensor, span: int, a: Sequence[float]) -> Tensor:
    if isinstance(a, str) or not hasattr(a, "__iter__"):
        raise ArgumentError(f"general_cosine: a must be several numbers, not {a!r}.")
    factors = [number(w, "general_cosine: a") for w in a]
    if not factors:
        raise RangeError("general_cosine: a is empty. Give at least one factor.")
    return _sum_of_cosines(factors)(k, span)


def _positive(name: str, value: float) -> float:
    value = number(value, name)
    if value <= 0:
        raise RangeError(f"{name} must be positive, not {value}.")
    return value


def _exponential(k: Tensor, span: int, center: float | None, tau: float) -> Tensor:
    middle = span / 2 if center is None else number(center, "exponential: center")
    return (-((k - middle) / _positive("exponential: tau", tau)).abs()).exp()


def _kaiser(k: Tensor, span: int, beta: float) -> Tensor:
    beta = number(beta, "kaiser: beta")
    if beta < 0:
        raise RangeError(f"kaiser: beta must not be negative, not {beta}.")
    root = (1 - (2 * k / span - 1).square()).clamp(min=0).sqrt()
    return (beta * root).i0() / (k * 0 + beta).i0()


_blackman, _hann = _sum_of_cosines((0.42, 0.5, 0.08)), _sum_of_cosines((0.5, 0.5))
_nuttall = _sum_of_cosines((0.3635819, 0.4891775, 0.1365995, 0.0106411))


def _made(
    name: str, make: Callable, count: int, sym: bool, own: dict, dtype: DType | None, device, requires_grad
) -> Tensor:
    count = index(count, f"{name}: M")
    if count < 0:
        raise RangeError(f"{name}: a window of {count} elements is asked for.")
    dtype = dtype or get_default_dtype()
    span = count if not boolean(sym, f"{name}: sym") and count > 1 else count - 1
    if count == 0 or (count == 1 and own.get("center") is None):
        made = ones(count, dtype=dtype, device=device)
    else:
        made = make(arange(count, dtype=dtype, device=device), span, **own)
    return made.requires_grad_(requires_grad)


_OPTIONS = {"dtype": ("DType | None", None), "device": ("Any", None), "requires_grad": ("bool", False)}


def _called(name: str, positional: dict, named: dict, doc: str, make: Callable) -> Any:
    """A function of a name with these parameters, each with its annotation and default."""
    parameters = [
        Parameter(n, kind, annotation=annotation, default=default)
        for kind, group in ((Parameter.POSITIONAL_OR_KEYWORD, positional), (Parameter.KEYWORD_ONLY, named))
        for n, (annotation, default) in group.items()
    ]
    form = Signature(parameters, return_annotation="Tensor")

    def call(*args, **kwargs):
        bound = form.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        return make(given, {n: given.pop(n) for n in _OPTIONS})

    call.__name__ = call.__qualname__ = name
    call.__doc__, call.__signature__ = doc, form
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return call


_KNOWN = {"dtype, device, requires_grad": "of the result; the default float if None."}


def _window(name: str, make: Callable, sentence: str, **own: tuple) -> Any:
    """Declare a window of `signal.windows`: ``make(k, span, **own)`` of the positions and their span."""

    def made(given: dict, options: dict) -> Tensor:
        count, sym = given.pop("M"), given.pop("sym")
        if options["dtype"] not in (None, float32, float64):
            raise RangeError(f"{name}: dtype is float32 or float64, not {options['dtype']}.")
        if sym and given.get("center") is not None:
            raise RangeError(f"{name}: center is given, and a symmetric window has its own.")
        return _made(name, make, count, sym, given, **options)

    known = {"M": "number of elements.", **dict.fromkeys(own, "a number.")}
    known["sym"] = "whether it is symmetric; else it is one period of a longer one, for transforms."
    doc = docstring(sentence, {"Args": known | _KNOWN})
    named = {**own, "sym": ("bool", True), **_OPTIONS}
    call = _called(name, {"M": ("int", Parameter.empty)}, named, doc, made)
    return function(exports="signal.windows", ours="PyTorch makes it in Python, of other ops")(call)


def _older(name: str, make: Callable, aten: tuple[str, ...] = (), **own: tuple) -> Any:
    """Declare a window of `pellucid`, which is periodic unless it is said."""

    def made(given: dict, options: dict) -> Tensor:
        count, periodic = given.pop("window_length"), given.pop("periodic")
        if options["dtype"] is not None and not options["dtype"].is_floating_point:
            raise RangeError(f"{name}: dtype is a floating-point type, not {options['dtype']}.")
        return _made(name, make, count, not boolean(periodic, f"{name}: periodic"), given, **options)

    known = {
        "window_length": "number of elements.",
        "periodic": "one period of a longer window, for transforms.",
    }
    known |= dict.fromkeys(own, "a number.") | _KNOWN
    doc = docstring(f"`signal.windows.{name.removesuffix('_window')}`.", {"Args": known})
    positional = {"window_length": ("int", Parameter.empty), "periodic": ("bool", True), **own}
    overloads = tuple(f"{name}.{end}" for end in ("default", "periodic", *aten))
    return function(aten=overloads)(_called(name, positional, _OPTIONS, doc, made))


_DEFAULT: dict[str, tuple] = {"beta": ("float", 12.0)}


def _bartlett(k: Tensor, span: int) -> Tensor:
    return 1 - (2 * k / span - 1).abs()


bartlett = _window("bartlett", _bartlett, "A triangle: ``1 - |2 k / span - 1|``.")
blackman = _window("blackman", _blackman, "Blackman's window, of two cosines.")
cosine = _window("cosine", lambda k, span: ((k + 0.5) * (pi / (span + 1))).sin(), "Half a period of a sine.")
exponential = _window(
    "exponential", _exponential, "``exp(-|k - center| / tau)``.",
    center=("float | None", None), tau=("float", 1.0),
)  # fmt: skip
gaussian = _window(
    "gaussian",
    lambda k, span, std: (-((k - span / 2) / (sqrt(2) * _positive("gaussian: std", std))).square()).exp(),
    "``exp(-(k - span / 2)^2 / (2 std^2))``.", std=("float", 1.0),
)  # fmt: skip
general_cosine = _window(
    "general_cosine", _general_cosine, "``sum_i (-1)^i a[i] cos(2 pi i k / span)``.",
    a=("Sequence[float]", Parameter.empty),
)  # fmt: skip
general_hamming = _window(
    "general_hamming", lambda k, span, alpha: _sum_of_cosines((alpha, 1 - alpha))(k, span),
    "``alpha - (1 - alpha) cos(2 pi k / span)``.", alpha=("float", 0.54),
)  # fmt: skip
hamming = _window("hamming", _sum_of_cosines((0.54, 0.46)), "Hamming's window, of one cosine.")
hann = _window("hann", _hann, "Hann's window: ``sin(pi k / span)^2``.")
kaiser = _window("kaiser", _kaiser, "``i0(beta sqrt(1 - (2 k / span - 1)^2)) / i0(beta)``.", **_DEFAULT)
nuttall = _window("nuttall", _nuttall, "Nuttall's window, of three cosines.")

bartlett_window = _older("bartlett_window", _bartlett)
blackman_window, hann_window = _older("blackman_window", _blackman), _older("hann_window", _hann)
hamming_window = _older(
    "hamming_window", lambda k, span, alpha, beta: _sum_of_cosines((alpha, beta))(k, span),
    ("periodic_alpha", "periodic_alpha_beta"), alpha=("float", 0.54), beta=("float", 0.46),
)  # fmt: skip
kaiser_window = _older("kaiser_window", _kaiser, ("beta",), **_DEFAULT)
