"""Plans as Python text: what writes it, and the texts of everyday ops, compiled with the package."""
