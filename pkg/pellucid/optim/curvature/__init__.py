"""Curvature of losses: Hessian-vector products, Fisher matrices, Laplace approximations."""

from .fisher import fisher, per_example_gradients
from .laplace import LaplacePosterior
from .products import gauss_newton_vector_product, hessian_vector_product

__all__ = [
    "LaplacePosterior",
    "fisher",
    "gauss_newton_vector_product",
    "hessian_vector_product",
    "per_example_gradients",
]
