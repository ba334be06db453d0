"""A model whose weights stay in their file and are read one at a time: for writing it in another format."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ..device import device as Device
from ..device.steps import now
from ..errors import ArgumentError
from ..nn.parameter import Parameter
from ..tensors import dtypes as dt
from ..tensors.meta import meta
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint, TensorInfo
from ..weights.folder import Folder
from .auto import from_file, origin_of
from .gguf import kind
from .loading import LoadOptions, check_names, fetch
from .parameters import elements, joined, kept_format, packed, plain_tensors
from .pretrained import REGISTRIES, PretrainedModel
from .stored import StoredWeight


class UnloadedModel:
    """A model on the device ``meta``, and what its weights are in the file.

    Attributes:
        model: its parameters have the dtypes that they would be loaded with.
        folder: what it was opened from.
        nbytes: of its weights in the file.
    """

    def __init__(
        self, model: PretrainedModel, folder: Folder, names: dict[str, str], stored: dict[str, StoredWeight]
    ):
        self.model, self.folder, self._stored = model, folder, stored
        wanted = dict(model.named_parameters())
        saved = model.state_dict()
        buffers = {path: b for path, b in model.named_buffers() if path in saved}
        wanted |= buffers
        check_names(wanted, folder.checkpoint, names, stored)
        self._infos: dict[str, list[TensorInfo]] = {}
        for info in plain_tensors(wanted, folder.checkpoint, names, stored):
            self._infos.setdefault(names[info.name], []).append(info)
        self.nbytes = sum(map(self.nbytes_of, {*self._infos, *stored}))
        for path in wanted:
            format = stored[path].format.name if path in stored else kept_format(self._infos[path][0])
            if path not in buffers and format is not None:
                known = meta(tuple(wanted[path].shape), dt.NAMES[format], Device("meta"))
                place = Tensor(wanted[path]._storage, known, 0)
                owner, _, name = path.rpartition(".")
                setattr(model.get_submodule(owner), name, Parameter(place, requires_grad=False))
        model.tie_weights()

    def read(self, path: str) -> Tensor:
        """A parameter on the device ``cpu``. Waits for the file.

        Args:
            path: in the model.
        """
        shape = tuple(self.model.state_dict()[path].shape)
        if path not in self._infos and path not in self._stored:
            path = self.model.ties().get(path, path)
        infos, stored = self._infos.get(path, []), self._stored.get(path)
        return now(_read(self.folder.checkpoint, infos, stored, shape))

    def nbytes_of(self, path: str) -> int:
        """Bytes of a parameter in the file."""
        infos = self._stored[path].infos.values() if path in self._stored else self._infos.get(path, ())
        return sum(info.nbytes for info in infos)


def open_unloaded(folder: Folder) -> Generator[tuple, Any, UnloadedModel]:
    """Steps that open a model which has a GGUF, without its weights.

    Args:
        folder: of `pellucid.weights.open_folder`; it stays open.

    Raises:
        ArgumentError: its architecture is not known, or has no GGUF.
        FormatError, WeightError: as `AutoModel.from_pretrained`.
    """
    is_gguf = folder.checkpoint.format == "gguf"
    name = kind(folder.checkpoint) if is_gguf else (folder.config or {}).get("model_type")
    for auto, registry in REGISTRIES.items():
        known = registry.gguf_architectures if is_gguf else registry.model_types
        found = known.get(str(name))
        if found is not None and (found.gguf_architectures or found.gguf_like):
            model, names, stored, generation = yield from from_file(auto, folder)
            model.origin = origin_of(folder, names, stored)
            if hasattr(model, "generate"):
                model.generation_config = generation
            return UnloadedModel(model.eval(), folder, names, stored)
    what = "there is no config.json" if name is None else f"{name!r} is no architecture with a GGUF here"
    raise ArgumentError(
        f"convert: {folder.name}: {what}. A GGUF says which model it is: give a folder of one that "
        "docs/models.md lists with a GGUF, or a target that ends in .safetensors."
    )


def _read(
    checkpoint: Checkpoint, infos: list[TensorInfo], stored: StoredWeight | None, shape: tuple[int, ...]
) -> Generator[tuple, Any, Tensor]:
    """One parameter of a checkpoint on the device ``cpu``, as `load_weights` would make it.

    Args:
        checkpoint: where the bytes are.
        infos: those of `plain_tensors` that are its own.
        stored: or the quantized weight of several tensors that it is.
        shape: the parameter's.
    """
    options = LoadOptions(Device("cpu"), None, None, None, 6)
    own = list(stored.infos.values()) if stored is not None else infos
    raws = yield from fetch(checkpoint, own, options, None)
    make = packed if stored is None else elements
    parts = [make(info, raw, options.device) for info, raw in zip(own, raws, strict=True)]
    return joined(parts, shape) if stored is None else stored.weight(parts)
