"""Softmax, layer_norm, rms_norm and norms."""
