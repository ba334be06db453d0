"""Methods of interpretability: one idea a file, each with its paper."""
