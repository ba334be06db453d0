"""``pellucid.inspect``: what a model's file holds, from its headers alone (tensors, quantization, memory)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Generator
from dataclasses import asdict, dataclass, field
from math import prod
from os import PathLike, fspath
from os.path import splitext
from typing import Any

from .. import weights
from ..device.steps import later, now
from ..errors import FormatError
from ..models.graph import reader
from ..models.graph.file_model import GraphReading
from ..models.graph.onnx.load import read_graph as read_onnx
from ..models.graph.tflite.load import read_graph as read_tflite
from ..weights.checkpoint import Checkpoint
from ..weights.place import find
from .matching import auto_class

__all__ = ["Inspection", "inspect", "inspect_async"]

# Keys of configurations, as config.json and as a GGUF have them, by what is told of them.
_SIZES = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "block_count"),
    "hidden": ("hidden_size", "n_embd", "d_model", "embedding_length"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "attention.head_count"),
    "key heads": ("num_key_value_heads", "attention.head_count_kv"),
    "head columns": ("head_dim", "attention.key_length"),
    "vocabulary": ("vocab_size",),
    "context": ("max_position_embeddings", "n_positions", "context_length"),
}
_LICENCE = re.compile(r"\A---\s*\n(?:.*\n)*?license:\s*(\S+)", re.M)
_LONGEST_README = 1 << 20
_GRAPHS = {".onnx": read_onnx, ".tflite": read_tflite}


@dataclass
class Inspection:
    """What `inspect` found.

    Attributes:
        name: where it came from.
        format: "safetensors", "gguf", "pt2", "onnx" or "tflite".
        architecture: the kind of model; empty where the file does not say.
        loads_with: what opens it here; empty where nothing does.
        tensors: name, shape, dtype and bytes of each.
        parameters, nbytes: of all tensors together.
        dtypes: how many tensors there are of each dtype or quantized format.
        tied: names of tensors that are the same bytes.
        operators: how often each occurs in a graph.
        inputs, outputs: of a graph.
        sizes: of the configuration.
        memory: bytes: of the weights on the device, and of the keys and values of one position.
        tokenizer, licence: as the file names them.
    """

    name: str
    format: str
    architecture: str = ""
    loads_with: str = ""
    tensors: list[dict[str, Any]] = field(default_factory=list)
    parameters: int = 0
    nbytes: int = 0
    dtypes: dict[str, int] = field(default_factory=dict)
    tied: list[list[str]] = field(default_factory=list)
    operators: dict[str, int] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    tokenizer: str = ""
    licence: str = ""

    def to_json(self) -> str:
        """All of it as JSON, for programs."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        rows = [("name", "shape", "dtype", "bytes")]
        rows += [
            (t["name"], "x".join(map(str, t["shape"])) or "scalar", t["dtype"], f"{t['bytes']:,}")
            for t in self.tensors
        ]
        width = [max(len(row[k]) for row in rows) for k in range(4)]
        lines = [f"{a:<{width[0]}}  {b:<{width[1]}}  {c:<{width[2]}}  {d:>{width[3]}}" for a, b, c, d in rows]
        listed = {
            "file": f"{self.name} ({self.format})",
            "architecture": self.architecture,
            "loads with": self.loads_with,
            "parameters": f"{self.parameters:,} in {len(self.tensors)} tensors, {self.nbytes:,} bytes",
            "dtypes": _counted(self.dtypes),
            "tied": "; ".join(" = ".join(names) for names in self.tied),
            "operators": _counted(self.operators),
            "inputs": ", ".join(self.inputs),
            "outputs": ", ".join(self.outputs),
            "sizes": ", ".join(f"{what} {n:,}" for what, n in self.sizes.items()),
            "memory": ", ".join(f"{what} {n:,} bytes" for what, n in self.memory.items()),
            "tokenizer": self.tokenizer,
            "licence": self.licence,
        }
        return "\n".join([*lines, "", *(f"{k:<12}  {v}" for k, v in listed.items() if v)])


def inspect(source: Any, **where: Any) -> Inspection:
    """What a model's file or folder holds, from its headers alone: of a URL, by Range requests.

    Args:
        source: a Hugging Face folder or hub id, safetensors, GGUF, ``.pt2``, ONNX or TFLite file: a path, a
            URL, a File or bytes of safetensors or GGUF.
        where: ``revision=``, ``filename=``, ``token=``, ``endpoint=`` as in `pellucid.weights.find`.

    Returns:
        An `Inspection`; ``print`` it for a table.

    Raises:
        FormatError: a header is malformed.
        SourceError: a file cannot be had.

    Example:
        >>> import json, pellucid
        >>> header = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
        >>> pellucid.inspect(len(header).to_bytes(8, "little") + header + bytes(8)).parameters
        2
    """
    return now(_inspect(source, where))


async def inspect_async(source: Any, **where: Any) -> Inspection:
    """The awaitable twin of `inspect`."""
    return await later(_inspect(source, where))


def _inspect(source: Any, where: dict[str, Any]) -> Generator[tuple, Any, Inspection]:
    name = where.get("filename") or (fspath(source) if isinstance(source, (str, PathLike)) else "")
    kind = splitext(name.partition("?")[0])[1]
    if kind == ".pt2":
        file = yield reader, "open_program", (source, where), {}
        file.checkpoint.close()
        return _program(file)
    if kind in _GRAPHS:
        return (yield from _graph(source, kind, where))
    folder: weights.Folder = yield weights, "open_folder", (source,), where
    try:
        return (yield from _folder(folder))
    finally:
        folder.close()


def _folder(folder: weights.Folder) -> Generator[tuple, Any, Inspection]:
    checkpoint = folder.checkpoint
    found = _of_tensors(checkpoint)
    config, prefix = dict(folder.config or {}), ""
    if checkpoint.format == "gguf":
        config = checkpoint.metadata
        found.architecture = str(config.get("general.architecture", ""))
        prefix = f"{found.architecture}."
        found.licence = str(config.get("general.license", ""))
        tokens = config.get("tokenizer.ggml.tokens", ())
        found.tokenizer = str(config.get("tokenizer.ggml.model", ""))
        if tokens:
            found.sizes["vocabulary"] = len(tokens)
    else:
        found.architecture = str((config.get("architectures") or [config.get("model_type", "")])[0])
        settings = yield folder, "json", ("tokenizer_config.json",), {}
        found.tokenizer = str((settings or {}).get("tokenizer_class", ""))
        readme = yield folder, "read", ("README.md",), {}
        if readme and len(readme) <= _LONGEST_README:
            told = _LICENCE.match(readme.decode("utf-8", "replace"))
            found.licence = told[1] if told else ""
    for what, keys in _SIZES.items():
        value = next((config[prefix + k] for k in keys if isinstance(config.get(prefix + k), int)), None)
        if value is not None:
            found.sizes[what] = value
    try:
        found.loads_with = auto_class(folder)
    except FormatError:
        found.loads_with = ""
    s = found.sizes
    has_cache = found.loads_with == "AutoModelForCausalLM"
    if has_cache and {"layers", "hidden", "heads"} <= s.keys() and s["heads"]:
        columns = s.get("head columns", s["hidden"] // s["heads"])
        found.memory["keys and values of a position"] = (
            2 * 4 * s["layers"] * s.get("key heads", s["heads"]) * columns
        )
    return found


def _of_tensors(checkpoint: Checkpoint) -> Inspection:
    infos = list(checkpoint.values())
    found = Inspection(checkpoint.name, checkpoint.format)
    found.tensors = [
        {"name": t.name, "shape": list(t.shape), "dtype": t.dtype, "bytes": t.nbytes} for t in infos
    ]
    places: dict[tuple, list[str]] = {}
    for t in infos:
        if t.nbytes:
            places.setdefault((t.shard, t.start, t.stop), []).append(t.name)
    found.tied = [names for names in places.values() if len(names) > 1]
    found.parameters, found.nbytes = checkpoint.numel, checkpoint.nbytes
    found.dtypes = dict(Counter(t.dtype for t in infos).most_common())
    # Matrices stay as they are; norms and biases in half precision become float32.
    halves = sum(t.nbytes for t in infos if t.dtype in ("float16", "bfloat16") and len(t.shape) < 2)
    found.memory = {"weights": checkpoint.nbytes + halves}
    return found


def _program(file: reader.ProgramFile) -> Inspection:
    found = _of_tensors(file.checkpoint)
    graph = file.document["graph_module"]["graph"]
    kinds = {info.name: info for info in file.checkpoint.values()}
    found.loads_with = "export.load"
    found.tensors = [
        {
            "name": name,
            "shape": list(t.shape),
            "dtype": kinds[t.file].dtype,
            "bytes": prod(t.shape) * itemsize,
        }
        for name, t in file.tensors.items()
        for itemsize in [kinds[t.file].nbytes // max(kinds[t.file].numel, 1)]
    ]
    places: dict[Any, list[str]] = {}
    for name, t in file.tensors.items():
        places.setdefault((t.file, t.offset, t.shape, t.strides), []).append(name)
    found.tied = [names for names in places.values() if len(names) > 1]
    found.operators = dict(Counter(node["target"] for node in graph["nodes"]).most_common())
    specs = file.document["graph_module"]["signature"]["input_specs"]
    found.inputs = [
        str(next(iter(s["user_input"]["arg"].values())).get("name")) for s in specs if "user_input" in s
    ]
    return found


def _graph(source: Any, kind: str, where: dict[str, Any]) -> Generator[tuple, Any, Inspection]:
    file: Any = find(source, **where)
    shards = [file]
    try:
        graph, shards = yield GraphReading(), "graph", (_GRAPHS[kind](file),), {}
    finally:
        for shard in shards:
            shard.close()
    found = Inspection(file.name, kind[1:], loads_with=f"{kind[1:]}.load")
    for name, value in graph.constants.items():
        dtype = value.dtype if isinstance(value, weights.TensorInfo) else str(value.dtype)
        row = {"name": name, "shape": list(value.shape), "dtype": dtype, "bytes": value.nbytes}
        found.tensors.append(row)
        found.parameters += prod(value.shape)
        found.nbytes += value.nbytes
    found.dtypes = dict(Counter(t["dtype"] for t in found.tensors).most_common())
    found.memory = {"weights": found.nbytes}
    found.operators = dict(Counter(step.operator.name for step in graph.steps).most_common())
    found.inputs, found.outputs = [repr(i) for i in graph.inputs], [repr(o) for o in graph.outputs]
    return found


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
