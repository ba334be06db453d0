"""Graphs from files: what runs them, and the readers of the formats that hold them."""
