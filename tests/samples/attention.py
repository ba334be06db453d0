"""Samples of attention."""

import numpy as np

from samples.sample import S, Sample, bad, each, normal

CLOSE = {"atol": 2e-5, "layouts": ("contiguous", "strided")}
SHAPES = [
    ((2, 3, 5, 8), (2, 3, 7, 8), 8), ((1, 2, 40, 64), (1, 2, 40, 64), 64),
    ((1, 1, 70, 33), (1, 1, 50, 33), 20),
    ((1, 2, 1, 64), (1, 2, 300, 64), 64), ((1, 1, 33, 128), (1, 1, 33, 128), 256),
    ((1, 1, 40, 8), (1, 1, 40, 8), 300),
    ((3, 6, 16), (3, 9, 16), 16), ((6, 16), (9, 16), 4)
]  # fmt: skip


few_layouts = {"layouts": ("contiguous",), "second": False, "paged": False}


def several_heads(t, x, weight, bias, last):
    """The function behind the module, with the same tensor in three places."""
    settings = (8, 2, weight, bias, None, None, False, 0.0, last, None)
    return t.nn.functional.multi_head_attention_forward(x, x, x, *settings)


def _by_definition(t, *args, **kwargs):
    """PyTorch's by its definition: other ways have no second derivative, and 0 where a query is NaN."""
    with t.nn.attention.sdpa_kernel(t.nn.attention.SDPBackend.MATH):
        return t.nn.functional.scaled_dot_product_attention(*args, **kwargs)


def heads(query: tuple, key: tuple, value_dim: int, *mask, **options) -> Sample:
    """Attention of tensors of these shapes."""
    return S(normal(*query), normal(*key), normal(*key[:-1], value_dim), *mask, **options).but(
        **CLOSE, second=query[-2] < 20, variants=("shared",) * (query[-2] in (1, 40)), theirs=_by_definition
    )


def masked(time: int) -> list[Sample]:
    """Added and true or false masks, of every head or some, that hide some keys of a row."""
    made = []
    for shape in ((2, 3), (2, 1), (1, 3), (1, 1), ()):
        added = normal(*shape, time, 33)
        added[..., :5] = -np.inf
        seen = normal(*shape, time, 33) > -0.3
        seen[..., 0] = True
        made += [
            heads((2, 3, time, 16), (2, 3, 33, 16), 16, mask).but(
                layouts=("contiguous",), variants=("shared",) * (shape == (2, 1))
            )
            for mask in (added, seen)
        ]
    return made


q, few = normal(1, 4, 3, 8), normal(1, 2, 3, 8)
nobody = np.ones((4, 9), bool)
nobody[1] = False
SAMPLES: dict[str, list[Sample]] = {
    "scaled_dot_product_attention": [
        *[heads(*shape, is_causal=causal) for shape in SHAPES for causal in (False, True)],
        *[heads((2, 6, n, 16), (2, 2, 50, 16), 16, is_causal=True, enable_gqa=True, scale=0.3) for n in (1, 4,
            20, 45)],
        *masked(2), *masked(40), heads((1, 1, 4, 8), (1, 1, 9, 8), 8,
            np.full((4, 9), np.finfo(np.float32).min, np.float32)),
        # A row that sees nothing is 0.
        heads((1, 2, 4, 8), (1, 2, 9, 8), 8, nobody), heads((1, 2, 0, 4), (1, 2, 3, 4), 4),
        heads((1, 2, 3, 4), (1, 2, 0, 4), 4),
        heads((1, 1, 40, 16), (1, 1, 40, 16), 16, scale=50.0).but(grad=False, atol=1e-4),
        heads((2, 3, 6, 8), (2, 3, 6, 8), 8, dropout_p=0.3).but(random=True, layouts=("contiguous",)),
        *each(("float16", "bfloat16"), q, q, q),
        S(normal(2, 3, 4), normal(1, 2, 5, 4), normal(1, 1, 5, 3)).but(**few_layouts),
        S(normal(1, 4, 3, 8), normal(1, 2, 5, 8), normal(1, 2, 5, 8), normal(4, 3, 5), enable_gqa=True).but(
            **few_layouts),
        bad("enable_gqa", q, few, few), bad("multiple", q, q[:, :3], q[:, :3], enable_gqa=True),
        bad("head_dim", q, q[..., :4], q),
        bad("not both", q, q, q, np.ones((3, 3), np.float32), is_causal=True),
        bad("must be equal", q, np.float16(q), q)
    ],
    "nn.functional.multi_head_attention_forward": [
        S(several_heads, normal(3, 2, 8), normal(24, 8), normal(24), normal(8, 8)).but(**few_layouts),
        bad("give attn_mask", *[normal(3, 2, 8)] * 3, 8, 2, normal(24, 8), None, None, None, False, 0.0,
            normal(8, 8), None, is_causal=True),
        bad("three axes", *[normal(8)] * 3, 8, 2, normal(24, 8), None, None, None, False, 0.0, normal(8, 8),
            None).but(error=RuntimeError)
    ]
}  # fmt: skip
