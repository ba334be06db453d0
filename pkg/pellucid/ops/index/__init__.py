"""Indexing: gather, scatter, selections, rows, sorting."""
