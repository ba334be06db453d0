"""``pellucid.match`` of files (Hugging Face, GGUF, .pt2, ONNX, recording), and `record`, its reference."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from os import PathLike, fspath
from os.path import splitext
from typing import Any

import numpy as np

from .. import weights
from ..device.steps import later, now
from ..errors import ArgumentError, FormatError, MissingError
from ..lens.match import Match, compare
from ..lens.sides import CALL, INPUT, recorded
from ..models import auto
from ..models.graph import export, onnx, tflite
from ..models.pretrained import REGISTRIES
from ..nn.modules.module import Module
from ..op.arguments import describe
from ..tensors.construct import tensor
from ..weights.saving import save_file
from .npz import save_npz

__all__ = ["match", "match_async", "open_model", "record"]

# What opens the files of graphs, by their endings.
GRAPHS: dict[str, Any] = {".pt2": export, ".onnx": onnx, ".tflite": tflite}


def match(
    a: Any,
    b: Any,
    *inputs: Any,
    tolerance: float = 1e-3,
    device: Any = None,
    on_progress: Callable[[weights.Progress], None] | None = None,
    **forward: Any,
) -> Match:
    """Compare two models, or a model with recorded values, point by point: where they first depart, and why.

    Files are opened as models of their kind; everything else is as in `pellucid.lens.match`.

    Args:
        a, b: a module; a module of PyTorch; a Hugging Face folder or hub id, a GGUF, a ``.pt2``, an ONNX
            or TFLite file, as path or URL; a recording (``.npz``, ``.safetensors``, a mapping).
        inputs: arguments of the models' call; one mapping, or the path of an npz, has them by name.
        tolerance: largest relative error that counts as equal.
        device: where models of files run; the default device if None.
        on_progress: called with a `pellucid.weights.Progress` while weights are loaded.
        forward: further arguments by name.

    Returns:
        A `pellucid.lens.Match`: ``print`` it, ``to_json()``, or look at ``first``.

    Raises:
        WeightError: no point of the two is the same, or there are no inputs.
        FormatError, SourceError: a file cannot be read.

    Example:
        >>> import pellucid as torch
        >>> torch.match("model/", "model.gguf", "inputs.npz")  # doctest: +SKIP
    """
    return now(_match(a, b, inputs, forward, tolerance, {"device": device, "on_progress": on_progress}))


async def match_async(
    a: Any,
    b: Any,
    *inputs: Any,
    tolerance: float = 1e-3,
    device: Any = None,
    on_progress: Callable[[weights.Progress], None] | None = None,
    **forward: Any,
) -> Match:
    """The awaitable twin of `match`."""
    settings = {"device": device, "on_progress": on_progress}
    return await later(_match(a, b, inputs, forward, tolerance, settings))


def _match(
    a: Any, b: Any, inputs: tuple, named: dict[str, Any], tolerance: float, settings: dict[str, Any]
) -> Generator[tuple, Any, Match]:
    sides: list[Any] = []
    names: list[Any] = []
    for what in (a, b):
        names.append(what if isinstance(what, (str, PathLike)) else None)
        if _is_of_torch(what):
            what = record(what, (yield from _by_name(inputs, named)))
        elif isinstance(what, (str, PathLike)) and not _is_recording(what):
            what = yield from _open(what, settings)
        sides.append(what)
    result = yield from compare(sides[0], sides[1], inputs, named, tolerance)
    first, second = (n if m is None else fspath(m) for m, n in zip(names, result.names))
    result.names = first, second
    return result


def _by_name(inputs: tuple, named: Mapping[str, Any]) -> Generator[tuple, Any, dict[str, Any]]:
    """Steps that give the arguments of a call by name, for a module of PyTorch."""
    if len(inputs) > 1:
        raise ArgumentError("match: a module of PyTorch takes its arguments by name. Give a mapping.")
    given: Any = inputs[0] if inputs else {}
    if isinstance(given, (str, PathLike)):
        given = yield from recorded(given)
    return {**(given if isinstance(given, Mapping) else {"input": given}), **named}


def _is_recording(source: Any) -> bool:
    return fspath(source).endswith((".npz", ".safetensors"))


def _is_of_torch(what: Any) -> bool:
    return any(c.__module__.startswith("torch.nn.") for c in type(what).__mro__)


def open_model(source: Any, **settings: Any) -> Module:
    """The model of a file of any kind: Hugging Face folder or hub id, GGUF, ``.pt2``, ONNX, TFLite.

    Args:
        source: a path, a URL or a hub id.
        settings: ``device``, ``on_progress`` and ``cancel``, as the loaders take them.

    Returns:
        The module, in eval mode.

    Raises:
        FormatError: the file is of no known kind, or its architecture is not known.
        SourceError: bytes cannot be had.
    """
    return now(_open(source, settings))


def _open(source: Any, settings: dict[str, Any]) -> Generator[tuple, Any, Module]:
    reader = GRAPHS.get(splitext(fspath(source).partition("?")[0])[1])
    if reader is not None:
        found = yield reader, "load", (source,), settings
        return found.module() if isinstance(found, export.ExportedProgram) else found
    folder: weights.Folder = yield weights, "open_folder", (source,), {}
    with folder:
        loader = getattr(auto, auto_class(folder))
        return (yield loader, "from_pretrained", (folder,), settings)


def auto_class(folder: weights.Folder) -> str:
    """The Auto class for a folder's model: that of its ``architectures``, else the first that knows it.

    Raises:
        FormatError: none does.
    """
    config, checkpoint = folder.config or {}, folder.checkpoint
    told = (config.get("architectures") or [""])[0]
    kind, value = "model_types", config.get("model_type")
    if checkpoint.format == "gguf":
        kind, value = "gguf_architectures", checkpoint.metadata.get("general.architecture")
    fits = {a: getattr(r, kind)[value] for a, r in REGISTRIES.items() if value in getattr(r, kind)}
    if not fits:
        raise FormatError(f"{folder.name}: {kind} {value!r} is not known. docs/models.md lists what loads.")
    return next((a for a, model in fits.items() if model.__name__ == told), next(iter(fits)))


def record(
    module: Any,
    inputs: Mapping[str, Any],
    filename: str | PathLike | None = None,
    *,
    pattern: Callable[[str], bool] = lambda path: True,
) -> dict[str, np.ndarray]:
    """Run a module of PyTorch, and keep what each of its modules gets and returns: the reference of `match`.

    The model runs twice; a value that differs between the two is refused, since nothing can be compared with
    it.

    Args:
        module: a ``torch.nn.Module``; it is run in eval mode.
        inputs: its arguments by name, as arrays or tensors; ``input`` is the first where it has no such name.
        filename: where to write it: ``.npz`` or ``.safetensors``; nowhere if None.
        pattern: which paths.

    Returns:
        Arrays: ``call:NAME`` of the arguments, ``PATH:input`` and ``PATH`` of modules, ``output:NAME``.

    Raises:
        MissingError: PyTorch is not installed.
        ArgumentError: the file has another ending, or two runs differ.

    Example:
        >>> import pellucid
        >>> pellucid.record(torch_model, {"input_ids": ids}, "reference.npz")  # doctest: +SKIP
    """
    try:
        import torch
    except ImportError:
        raise MissingError("record: PyTorch is not installed. Install it where you record.") from None
    if not isinstance(module, torch.nn.Module):
        raise ArgumentError(f"record: module must be a torch.nn.Module, not {describe(module)}.")
    if filename is not None and not fspath(filename).endswith((".npz", ".safetensors")):
        raise ArgumentError(f"record: {fspath(filename)!r} must end in .npz or .safetensors.")
    given = {name.removeprefix(CALL): torch.as_tensor(np.asarray(x)) for name, x in inputs.items()}
    was_training = module.training
    module.eval()
    try:
        found, again = (_recorded(torch, module, given, pattern) for _ in range(2))
    finally:
        module.train(was_training)
    for name, value in found.items():
        if name not in again or not np.array_equal(value, again[name], equal_nan=True):
            raise ArgumentError(
                f"record: {name} differs between two runs. Switch off what is random, or leave it out by "
                "pattern=."
            )
    found = {f"{CALL}{name}": x.numpy() for name, x in given.items()} | found
    if filename is not None:
        _save(found, filename)
    return found


def _first_of(value: Any) -> Any:
    """The first tensor of nested results; an empty tuple stays."""
    while isinstance(value, (tuple, list)) and value:
        value = value[0]
    return value


def _recorded(torch: Any, module: Any, given: dict[str, Any], pattern: Callable[[str], bool]) -> dict:
    import inspect

    found: dict[str, np.ndarray] = {}

    def keep(path: str, value: Any) -> None:
        value = _first_of(value)
        if hasattr(value, "to_tuple"):
            return keep(path, value.to_tuple())
        if isinstance(value, torch.Tensor) and not value.is_complex():
            found.pop(path, None)
            x: Any = value.detach().cpu()
            found[path] = (x.float() if x.dtype == torch.bfloat16 else x).numpy().copy()

    def hook(path: str) -> Callable:
        def heard(_: Any, args: tuple, kwargs: dict, output: Any) -> None:
            keep(f"{path}{INPUT}", args or tuple(kwargs.values()))
            keep(path, output)

        return heard

    names = [(path, m) for path, m in module.named_modules() if path and pattern(path)]
    handles = [m.register_forward_hook(hook(path), with_kwargs=True) for path, m in names]
    try:
        with torch.no_grad():
            if len(given) == 1 and not given.keys() <= inspect.signature(module.forward).parameters.keys():
                output = module(*given.values())
            else:
                output = module(**given)
    finally:
        for handle in handles:
            handle.remove()
    items = output.items() if hasattr(output, "items") else enumerate(
        output if isinstance(output, (tuple, list)) else (output,)
    )  # fmt: skip
    for name, value in items:
        keep(f"output:{name}", value)
    return found


def _save(arrays: dict[str, np.ndarray], filename: str | PathLike) -> None:
    if fspath(filename).endswith(".npz"):
        save_npz(filename, arrays.items())
        return
    import json

    tensors = {name: tensor(x, device="cpu") for name, x in arrays.items()}
    save_file(tensors, filename, {"points": json.dumps(list(arrays))})
