"""Programs written for PyTorch, and the table of its modules."""
