"""Probability distributions, with PyTorch's as the oracle."""
