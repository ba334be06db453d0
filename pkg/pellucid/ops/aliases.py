"""Further names: of what stands in `pellucid` and Tensor, with in-place forms and operators of ATen; and what
`pellucid.special` calls functions that stand elsewhere."""

from __future__ import annotations

from ..op.public import EXPORTS, alias

# By the name of PyTorch's that is declared: what else it is called.
ALIASES = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh", "cat": "concat concatenate",
    "channel_shuffle": "native_channel_shuffle", "chunk": "unsafe_chunk", "clamp": "clip", "div": "divide",
    "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lt": "less", "movedim": "moveaxis",
    "mul": "multiply", "ne": "not_equal", "neg": "negative", "outer": "ger",
    "split_with_sizes": "unsafe_split_with_sizes", "sub": "subtract", "transpose": "swapdims",
    "trapezoid": "trapz", "trunc": "fix", "vstack": "row_stack",
}  # fmt: skip
# What `pellucid.special` calls functions that stand elsewhere.
SPECIAL = {
    **{name: name for name in ("digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p",
        "log_softmax", "logit", "logsumexp", "polygamma", "round", "sinc", "softmax", "xlogy")},
    "expit": "sigmoid", "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma",
    "multigammaln": "mvlgamma", "psi": "digamma",
}  # fmt: skip


def name_aliases() -> None:
    """Register them, once all that they name is declared."""
    for known, names in ALIASES.items():
        for name in names.split():
            alias(name, known)
    for name, known in SPECIAL.items():
        EXPORTS["special"][name] = EXPORTS["torch"][known]
    EXPORTS["linalg"]["matmul"] = EXPORTS["torch"]["matmul"]
    # In `pellucid` itself adaptive maxima come with their places always.
    EXPORTS["torch"]["adaptive_max_pool1d"] = EXPORTS["nn.functional"]["adaptive_max_pool1d_with_indices"]
