"""Evolution: networks compared, crossed, mutated, and whole populations of them."""
