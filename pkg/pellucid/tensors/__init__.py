"""Tensors: shape, strides and offset over a storage; their methods, indexing, reading and printing."""
