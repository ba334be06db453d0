"""Checkpoints of unknown make: tensors of every dtype, roles by names, layers by names and shapes."""
