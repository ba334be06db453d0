"""Reductions, minima and maxima, cumulative ops."""
