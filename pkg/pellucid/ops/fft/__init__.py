"""Discrete Fourier transforms, windows, and transforms over short times."""
