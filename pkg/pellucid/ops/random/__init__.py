"""Random numbers, distributions, sampling of tokens."""
