"""Training. A package of its own, since `benchmarks/` has a module of this name."""
