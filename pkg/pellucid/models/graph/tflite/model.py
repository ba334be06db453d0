"""A module that runs the graph of a TensorFlow Lite file."""

from __future__ import annotations

from ..file_model import FileModel


class TfliteModel(FileModel):
    """A graph that is called like a module: tensors in the graph's order or by name.

    One output is a tensor, several are a tuple in the graph's order. Values of nodes are seen and replaced
    through `pellucid.lens`; a node's path is the name of its first result.

    Attributes:
        inputs, outputs: what the file declares: names, dtypes, shapes.

    Source: https://ai.google.dev/edge/litert
    """
