"""Search for architectures: differentiable cells, networks made at random or by a few numbers."""
