"""Pellucid in the comparison. These files run inside Pyodide."""
