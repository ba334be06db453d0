"""Linear algebra: solvers and decompositions of batches of matrices."""
