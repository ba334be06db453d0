"""Public names: the functions that `pellucid`, `nn.functional` and Tensor offer, registered where each is
declared.

`@op` registers ops, `@function` what is written in terms of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

from ..autograd.edges import labelled
from ..errors import DTypeError, PellucidError
from ..tensors.absent import public as known
from ..tensors.dtypes import DType, can_cast
from ..tensors.tensor import Tensor
from . import arguments
from .arguments import READERS, aliases_of, described, laid_out, laid_words, named, reader, renamed, wrong
from .call import written
from .schema import overrides

F = TypeVar("F", bound=Callable)

_EXPLAINED = {
    **{name: f"nn.functional.{name.removeprefix('native_')}" for name in ("relu", "softmax", "log_softmax",
        "batch_norm", "native_batch_norm", "native_group_norm", "native_layer_norm", "instance_norm",
        "embedding")},
    **{name: f"Tensor.{name}_" for name in ("fill", "index_add", "index_copy", "index_fill", "index_put",
        "index_reduce", "masked_scatter", "put", "scatter_reduce")},
    **{name: f"Tensor.{name}" for name in ("masked_fill", "nonzero_static", "zero_")},
    "clamp_min": "clamp", "clamp_max": "clamp", "constant_pad_nd": "nn.functional.pad", "rsub": "sub",
    "Tensor.nonzero_async": "nonzero", "split_with_sizes": "split",
}  # fmt: skip
# What arguments of many functions are, where a docstring does not say.
_SHARED = {
    "dim": "the axis.", "dtype": "of the result.", "out": "a tensor for the result.",
    "device": "of the result; the default device if not given.",
    "requires_grad": "whether to record what is computed from it.",
    "keepdim": "whether an axis stays, with length 1.",
    "generator": "of the random numbers; the default one if not given.",
}  # fmt: skip

# Functions by name, for each module that exports them; "torch" is `pellucid` itself.
EXPORTS: dict[str, dict[str, Callable]] = {
    place: {} for place in ("torch", "nn.functional", "special", "linalg", "fft", "signal.windows")
}
# Methods of Tensor by name.
METHODS: dict[str, Callable] = {}
# The op of each in-place method of Tensor, by the method's name.
IN_PLACE: dict[str, Any] = {}
# What gives Tensor its methods: those of ops that a program declares later come at once.
attach: list[Callable[[], None]] = []
# By ATen's overload, such as "add.Tensor": what computes it, and the arguments where they are not its own.
OVERLOADS: dict[str, tuple[Callable, str]] = {}
# Why a function is no operator of ATen.
OURS: dict[Callable, str] = {}
_FORM = "an in-place form, which `ops.aten` finds by the name of the function"

# Signatures are read once: several places ask for that of a function.
form_of = cache(signature)


def function(
    *,
    exports: str | tuple[str, ...] | None = "torch",
    method: bool = False,
    in_place: bool = False,
    aten: str | tuple[str, ...] | None = None,
    ours: str = "",
    node: str = "",
) -> Callable[[F], F]:
    """Declare a public function that has no kernel of its own; `publish` explains the arguments. Its form in
    place copies the result. Called by a program, its result has the one node that PyTorch has, by name."""

    def declare(function: F) -> F:
        publish(function, exports, method or in_place, node=node)
        if in_place:
            form = METHODS[f"{function.__name__}_"] = copied_over(METHODS[function.__name__])
            OURS[form] = _FORM
        name_overloads(function, aten, ours, exports)
        return function

    return declare


def is_written(name: str, exports: str | tuple[str, ...] | None) -> bool:
    """Whether PyTorch's function of a name takes ``out=``."""
    places = (exports,) if isinstance(exports, str) else exports or ()
    rows = (f"out of {'torch' if place == 'torch' else f'torch.{place}'}" for place in places)
    return any(name in known().get(row, ()) for row in rows)


def _writing(call: Callable) -> Callable:
    """A function that takes ``out=`` besides, whose dtype and device new tensors have."""
    taken = [name for name in ("device", "dtype") if "device" in form_of(call).parameters]

    def into(*args, out=None, **kwargs):
        if out is None:
            return call(*args, **kwargs)
        kwargs = {name: getattr(out, name, None) for name in taken} | kwargs
        return written(call.__name__, out, call(*args, **kwargs), (*args, *kwargs.values()))

    return wraps(call)(into)


def copied_over(function: Callable) -> Callable:
    """The in-place form of a function: the result is copied over its first argument."""
    name = f"{function.__name__}_"

    @wraps(function)
    def form(input, *args, **kwargs):
        given = kwargs.get("dtype")
        if isinstance(given, DType) and given is not input.dtype:
            raise DTypeError(f"{name}: dtype {given} is not that of the tensor, {input.dtype}. Leave it out.")
        # What the graph keeps of the input must not be written.
        out = function(input.clone() if input.requires_grad else input, *args, **kwargs)
        if out.numel() and not can_cast(out.dtype, input.dtype):
            raise DTypeError(
                f"{name}: a result of {out.dtype} does not fit into a tensor of {input.dtype}. Use the form "
                "without underscore."
            )
        return input.copy_(out)

    form.__name__ = name
    form.__doc__ = f"In-place form of `{name[:-1]}`: writes the result into this tensor and returns it."
    return form


def publish(
    function: Callable,
    exports: str | tuple[str, ...] | None,
    method: bool,
    in_place: bool | tuple[str, ...] = False,
    node: str = "",
) -> None:
    """Register a function under its name.

    Args:
        function: what users call.
        exports: where it is public, one or several places of `EXPORTS`, or None.
        method: whether it is a method of Tensor.
        in_place: of an op: whether it is a method with an in-place form, ``<name>_`` or as given here.
        node: of what is made of several ops: what the node is called that PyTorch has for all of them, such
            as "Repeat".

    Raises:
        TypeError: the name is taken, or there is no such place.
    """
    name = function.__name__
    wanted = (exports,) if isinstance(exports, str) else exports or ()
    if unknown := [place for place in wanted if place not in EXPORTS]:
        raise TypeError(f"function {name}: there is no {unknown[0]!r}. There are {', '.join(EXPORTS)}.")
    places = [EXPORTS[place] for place in wanted]
    if method or in_place:
        places.append(METHODS)
    forms = in_place if isinstance(in_place, tuple) else (f"{name}_",) if in_place else ()
    entries: list[tuple[dict, str, Any]] = [(place, name, function) for place in places]
    o: Any = getattr(function, "op", None)
    if places and function.__module__.startswith("pellucid."):
        function.__doc__ = documented(function, page_of(name, exports or "Tensor"))
    if forms and o.prepare is not None:
        # A call may be given to another op, so there is no form that writes while it computes.
        form = copied_over(function)
        OURS[form] = _FORM
        entries += [(METHODS, n, form) for n in forms]
    else:
        entries += [(IN_PLACE, n, o) for n in forms]
    for place, n, _ in entries:
        if n in place or (place in (METHODS, IN_PLACE) and (n in METHODS or n in IN_PLACE)):
            raise TypeError(f"function {n} is declared twice")
    public = function if hasattr(function, "op") else explained(function, node)
    takes = o is None and is_written(name, exports) and "out" not in form_of(function).parameters
    outer = vars(public)["exported"] = _writing(public) if takes else public
    form = form_of(function).parameters
    for place, n, value in entries:
        # What takes nothing but its own tensor has one, and no words about memory.
        is_safe = place is METHODS and len(_tensors(function)) == len(_plain(function)) == 1
        is_safe &= not (laid_words({*form}) or aliases_of(name, form) or node)
        place[n] = value if value is not function or is_safe else public if place is METHODS else outer
    if method or forms:
        for give in attach:
            give()


def page_of(name: str, exports: str | tuple[str, ...]) -> str:
    """What PyTorch's documentation has a function as, behind ``torch.``."""
    places = (exports,) if isinstance(exports, str) else exports or ("torch",)
    place = next((p for p in ("nn.functional", "torch") if p in places), places[0])
    known = name.removesuffix("_with_indices")
    return known if place == "torch" else f"{place}.{known}"


def documented(function: Callable, page: str) -> str:
    """The docstring of a function, with arguments that many have and its page of PyTorch's documentation."""
    code: Any = function.__code__
    taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    form = form_of(function).parameters
    is_axis = "dim" in form and str(form["dim"].annotation).partition(" | ")[0] == "int"
    names = [n for n in dict.fromkeys((*form, *taken)) if n != "dim" or is_axis]
    page = "special" if page.startswith("special.") else f"generated/torch.{_EXPLAINED.get(page, page)}"
    return described(function.__doc__ or "", names, _SHARED, f"{page}.html")


def explained(function: Callable, node: str = "") -> Callable:
    """The function as users call it: flags, numbers and texts are what their annotations say, errors begin
    with its name, and say which argument is of a wrong type. Tensors are looked at once something is raised.
    ``node`` as `publish` has it.
    """
    where, form = function.__name__, form_of(function).parameters
    plain, laid = _plain(function), laid_words({*form})
    aliases, is_sum = aliases_of(where, form), where in arguments.NUMBERS_BETWEEN

    def call(*args, **kwargs):
        if overrides.active and (found := overrides.find((*args, *kwargs.values()))) is not None:
            return overrides.dispatch(public.exported, args, kwargs, found)
        if is_sum:
            args, kwargs = arguments.numbers_by_name(where, args, kwargs)
        if kwargs and aliases:
            kwargs = renamed(where, aliases, kwargs)
        if laid and not laid.isdisjoint(kwargs):
            return laid_out(where, call, args, kwargs)
        for k, name, classes, read in plain:
            value = args[k] if k < len(args) else kwargs.get(name, read)
            if value is not read and not isinstance(value, classes):
                if not overrides.active and hasattr(type(value), "__torch_function__"):
                    overrides.active = True
                    return call(*args, **kwargs)
                try:
                    read(value, name)
                except PellucidError as error:
                    raise named(where, error) from None
        try:
            out = function(*args, **kwargs)
            return labelled(f"{node}Backward0", out, args) if node else out
        except PellucidError as error:
            # Other ops have put their names before theirs.
            known = re.match(r"[\w.]+(\(\))?: |device ", str(error))
            raise error if known else named(where, error) from None
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as problem:
            for error in _mistakes(function, args, kwargs):
                raise named(where, error) from None
            other = arguments.without_axes(where, problem, args, kwargs)
            if other is problem:
                raise
            raise other from problem

    public: Any = wraps(function)(call)
    public.declared, public.exported = function, public
    return public


# The classes of plain values by their annotations.
_CLASSES: dict[str, tuple[type, ...]] = {
    "bool": (bool,), "complex": (complex,), "float": (int, float), "int": (int,), "str": (str,),
    "Tensor": (Tensor,),
}  # fmt: skip


def _tensor(value: Any, name: str) -> None:
    """Refuse what is no tensor; what stands for one has a layout."""
    if not hasattr(value, "_meta"):
        raise wrong(name, "Tensor", value)


@cache
def _plain(function: Callable) -> list[tuple[int, str, tuple[type, ...], Callable]]:
    """The arguments that are plain values: place, name, classes, and the reader of what else is taken."""
    found = []
    for k, p in enumerate(form_of(function).parameters.values()):
        kinds = str(p.annotation).split(" | ")
        known = [c for kind in kinds for c in _CLASSES.get(kind, ())]
        mixed = "Tensor" in kinds and {*kinds} - {"Tensor", "None"}
        if known and {*kinds} <= {*_CLASSES, "None"} and not mixed and p.kind is not p.VAR_POSITIONAL:
            place = sys.maxsize if p.kind is Parameter.KEYWORD_ONLY else k
            classes = (*known, type(None)) if "None" in kinds else tuple(known)
            read = _tensor if "Tensor" in kinds else reader(str(p.annotation))
            found.append((place, p.name, classes, read))
    return found


def _mistakes(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Iterator[PellucidError]:
    """What is wrong with the arguments of a call, as the annotations have them."""
    form = form_of(function)
    try:
        given = form.bind(*args, **kwargs).arguments
    except TypeError:  # too few or too many, which Python has said
        return
    for name, value in given.items():
        parameter = form.parameters[name]
        kinds = frozenset(str(parameter.annotation).split(" | "))
        if value is None and "None" in kinds:
            continue
        if "Tensor" in kinds:
            several: Any = value if parameter.kind is Parameter.VAR_POSITIONAL else (value,)
            for each in several:
                is_number = "float" in kinds and isinstance(each, (int, float))
                if not (is_number or hasattr(each, "_meta")):
                    yield wrong(name, "Tensor", each)
        elif kinds - {"None"} in READERS and (read := reader(str(parameter.annotation))) is not None:
            try:
                read(value, name)
            except PellucidError as error:
                yield error


def _tensors(function: Callable) -> list[str]:
    """The parameters of a function that are tensors."""
    form = form_of(function).parameters
    return [name for name, p in form.items() if "Tensor" in str(p.annotation).split(" | ")]


def alias(name: str, known: str) -> None:
    """Register another name of a function, of its in-place form and of its operators, wherever they are."""
    for place in (*EXPORTS.values(), METHODS, IN_PLACE):
        for end in ("", "_"):
            if known + end in place:
                place.setdefault(name + end, place[known + end])
    if any(overload.startswith(f"{name}.") for overload in OVERLOADS):
        return
    for overload, found in list(OVERLOADS.items()):
        if overload.startswith(f"{known}."):
            OVERLOADS[f"{name}.{overload.removeprefix(f'{known}.')}"] = found


def name_overloads(
    function: Callable,
    aten: str | tuple[str, ...] | None,
    ours: str,
    exports: str | tuple[str, ...] | None = "torch",
) -> None:
    """Register which of ATen's operators a function computes; `ops.aten` calls it by them.

    Args:
        function: what computes them.
        aten: overloads; ``<name>.default`` if None, where nothing else is; of linalg
            ``linalg_<name>.default``. Behind one that takes other arguments than the function, or in another
            order, stand ATen's, as in ``"add.Scalar(self, other, alpha=1)"``.
        ours: why there is none.
        exports: where the function is public.

    Raises:
        TypeError: an overload has been named before.
    """
    name = function.__name__
    function = getattr(function, "newer", function)  # without arguments that ATen never had
    if ours:
        OURS[function] = ours
        return
    if aten is None:
        place = "linalg_" if exports == "linalg" else ""
        OVERLOADS.setdefault(f"{place}{name}.default", (function, ""))
        return
    for text in (aten,) if isinstance(aten, str) else aten:
        overload, _, arguments = text.rstrip(")").partition("(")
        if overload in OVERLOADS:
            raise TypeError(f"aten.{overload} is declared twice")
        OVERLOADS[overload] = function, arguments
