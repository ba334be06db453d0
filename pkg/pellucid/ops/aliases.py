"""Further names: of what stands in `pellucid` and Tensor, with in-place forms and operators of ATen; and what
`pellucid.special` calls functions that stand elsewhere."""

from __future__ import annotations

from ..op.public import EXPORTS, alias

ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "fix": "trunc",
    "ger": "outer",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "moveaxis": "movedim",
    "multiply": "mul",
    "native_channel_shuffle": "channel_shuffle",
    "negative": "neg",
    "not_equal": "ne",
    "row_stack": "vstack",
    "subtract": "sub",
    "swapdims": "transpose",
    "trapz": "trapezoid",
    "unsafe_chunk": "chunk",
    "unsafe_split_with_sizes": "split_with_sizes",
}
SPECIAL = {
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "gammainc": "igamma",
    "gammaincc": "igammac",
    "gammaln": "lgamma",
    "i0": "i0",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma",
    "polygamma": "polygamma",
    "psi": "digamma",
    "round": "round",
    "sinc": "sinc",
    "softmax": "softmax",
    "xlogy": "xlogy",
}


def name_aliases() -> None:
    """Register them, once all that they name is declared."""
    for name, known in ALIASES.items():
        alias(name, known)
    for name, known in SPECIAL.items():
        EXPORTS["special"][name] = EXPORTS["torch"][known]
    EXPORTS["linalg"]["matmul"] = EXPORTS["torch"]["matmul"]
    # In `pellucid` itself adaptive maxima come with their places always.
    EXPORTS["torch"]["adaptive_max_pool1d"] = EXPORTS["nn.functional"]["adaptive_max_pool1d_with_indices"]
