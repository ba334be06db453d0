"""Weights: files as bytes at a distance, what they hold, and their way into a device's buffers.

`open` lists the tensors of a file from its header; `stream` moves them into slots; `read` brings them into
numpy. What the bytes mean (dtypes, quantized formats) is not this room's business, nor are models.
"""

from .checkpoint import Checkpoint, TensorInfo
from .folder import Folder, open, open_async, open_folder, open_folder_async
from .load import read, read_async, stream, stream_async
from .place import find
from .plan import Target
from .progress import Cancel, Progress
from .saving import quantize, quantize_async, save, save_file
from .source import LocalSource, MemorySource, MissingFile, Source

__all__ = [
    "Cancel",
    "Checkpoint",
    "Folder",
    "LocalSource",
    "MemorySource",
    "MissingFile",
    "Progress",
    "Source",
    "Target",
    "TensorInfo",
    "find",
    "open",
    "open_async",
    "open_folder",
    "open_folder_async",
    "quantize",
    "quantize_async",
    "read",
    "read_async",
    "save",
    "save_file",
    "stream",
    "stream_async",
]
