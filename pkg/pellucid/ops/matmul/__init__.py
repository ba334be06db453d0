"""Matrix products of float tensors."""
