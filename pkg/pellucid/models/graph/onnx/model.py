"""A module that runs the graph of an ONNX file."""

from __future__ import annotations

from ..file_model import FileModel


class OnnxModel(FileModel):
    """A graph that is called like a module: tensors in the graph's order or by name.

    One output is a tensor, several are a tuple in the graph's order; `run` has onnxruntime's form. Values of
    nodes are seen and replaced through `pellucid.lens`, whose paths are the nodes' names.

    Attributes:
        inputs, outputs: what the file declares: names, dtypes, shapes.

    Source: https://onnx.ai/onnx/repo-docs/IR.html
    """
