"""Samples of views, copies, joins and new tensors."""

import warnings

import numpy as np

from samples.sample import DTYPES, S, Sample, bad, below, each, normal, nothing

x, matrix = normal(2, 3, 4), normal(5, 5)
TYPED = {"layouts": ("contiguous",), "grad": False}


def laid_out(t, made):
    """Shape, strides and type of what has no values."""
    return t.tensor([*made.shape, *made.stride()]), t.zeros((), dtype=made.dtype)


def quietly(t, *given, **options):
    """`range`, which says that it is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return t.range(*given, **options)


def relaid(name: str, *rows: tuple) -> list[Sample]:
    """An in-place view of what was computed, which was used before, and of a view."""

    def call(t, x, *args):
        y = 2 * x
        before = y * y
        view = (3 * x)[:]
        return before, getattr(y, name)(*args), y.exp(), getattr(view, name)(*args).mul_(2), view.stride()

    def in_pytorch(t, x, *args):
        y = 2 * x
        made = getattr(y.clone(), name)(*args)  # PyTorch refuses the gradient of what was used before
        view = (3 * x)[:]
        return y * y, made, made.exp(), getattr(view, name)(*args).mul_(2), view.stride()

    return [S(*row).but(call=call, theirs=in_pytorch, layouts=("contiguous",)) for row in rows]


def moves(*samples: Sample, dtypes=()) -> list[Sample]:
    """These, and the first of them in other types."""
    return [*samples, *each(dtypes, *samples[0].args, **samples[0].kwargs)]


def out_of(*calls, of: np.ndarray = x) -> list[Sample]:
    """Each function of the module and a tensor."""
    return [S(call, of) for call in calls]


# Shapes and dtypes of what is joined: in PyTorch most of them are, some are refused.
JOINED = [
    [((2, 3), "float32"), ((4, 3), "float32")], [((2, 3), "float32"), ((2, 4), "float32")],
    [((3,), "float32")] * 3,
    [((), "float32"), ((), "int64")], [((), "float32"), ((2,), "float32")],
    [((3,), "float32"), ((2, 3), "float32")],
    [((2, 3, 4), "float16")] * 2, [((0,), "float32"), ((2, 3), "float32")],
    [((2, 3), "int32"), ((0,), "int64"), ((2, 3), "int32")], [((2, 3), "float32"), ((0, 3), "float32")],
    [((1, 0), "float32"), ((2, 3), "float32")], [((0,), "int32"), ((0,), "float32")],
    [((2, 2), "bool"), ((2, 2), "int32")], [((2, 2), "int64"), ((2, 2), "float16")], [((2, 2), "float32")],
    [((4, 5), d) for d in ("int32", "float32", "int64", "float32", "bool", "float16", "uint8", "float32")],
    [((4, 5), d) for d in ("int64", "int32", "int16", "bool", "uint8", "int8", "int64", "int32")]
]  # fmt: skip


def joins(*samples: Sample, dims=({},)) -> list[Sample]:
    """Two matrices, what is joined and refused in PyTorch, what is no list of tensors, and these."""
    given = [[np.resize(normal(40) * 9, s).astype(d) for s, d in row] for row in JOINED]
    known = [
        S(row, **dim).but(maybe=True, grad=False, layouts=("offset",), paged=False)
        for row in given
        for dim in dims
    ]
    error = {"error": ValueError}
    return [
        S([normal(2, 3), normal(2, 3)]), S((x, x)), *known, *each(DTYPES, [x, normal(2, 3, 4)]), *samples,
        bad("is empty. Give at least one", []).but(**error), bad("must be a non-empty tuple or list", x),
        bad("must be Tensor, not int 1", [x, 1]), bad(r"tensor 0 has shape .*tensor 1", [x[0], normal(5, 7)])
    ]  # fmt: skip


PARTS = out_of(
    lambda t, x: x.split(1, 1)[1] * 2, lambda t, x: x.split(3, 2)[1].exp(), lambda t,
    x: x.split([0, 3], 1)[0],
    lambda t, x: x.split([1, 1, 2], 2)[0] * x.split([1, 1, 2], 2)[1], lambda t,
    x: x.split([0, 1, 0, 2], 1)[1:],
    lambda t, x: x.split(7, 1)[0].exp(), lambda t,
    x: [a.sum() + 2 * b.sum() for a, b in [x.split([1, 3], 2)]]
)  # fmt: skip
TRIANGLES = [
    *moves(S(x), dtypes=DTYPES),
    S(x, 1),
    S(x, -2),
    S(matrix, 2),
    S(nothing(3, 0)),
    bad("at least two axes", x[0, 0]),
]
CASTS = np.array(
    [0, -0.0, 1, -1, 1.5, -1.5, 0.4999, 2.5, 100, -100, 127, 3e-5, 6e-8, np.inf, -np.inf, np.nan], np.float32
)


def filled(name: str, *values) -> list[Sample]:
    """``<name>_like`` and its values, in every type."""
    return [S(x, *values), *each(DTYPES, x, *values), S(x, *values, dtype="int64"), S(nothing(0, 3), *values)]


def made(*ways: tuple, refused: Sample | None = None) -> list[Sample]:
    """New tensors of these arguments; keywords are in a dict at the end."""
    calls = [S(*way[:-1], **way[-1]) if isinstance(way[-1], dict) else S(*way) for way in ways]
    return [*calls, refused.but(error=ValueError)] if refused else calls


sized = [
    *made((2, 3), ((2, 3), {"dtype": "int64"}), ([2], {"dtype": "float16"}), ((),), (0, 3)),
    S(5, dtype="bool"), bad("negative length", 2, -1), bad("a size must be an integer, not float", 2.5)
]  # fmt: skip
SAMPLES: dict[str, list[Sample]] = {
    "reshape": [
        S(x, (-1,)), S(x, (3, 8)), S(lambda t, x: x.transpose(0, 2).reshape(4, 6), x),
        S(lambda t, x: x.reshape(2, -1, 2), x),
        bad(r"shape \(5, 5\) is invalid for 24 elements", x, (5, 5)),
        bad("a size must be an integer", x, (2.0, 12)),
        bad("at most one length may be -1", x, (-1, -1)), *each(DTYPES, x, (6, 4))
    ],
    "Tensor.view": [
        S(lambda t, x: x.reshape(2, 12).view(4, -1), x), S(lambda t, x: x.reshape(24).view((2, 12)), x),
        S(lambda t, x: x.view(t.int32), x).but(layouts=("contiguous",)),
        bad("without a copy. Use reshape", lambda t, x: x.mT.view(24), x),
        bad("not a multiple of 5", x, 5, -1),
        *[S(call, x).but(layouts=("contiguous",), grad=False) for call in (
            lambda t, x: x.view(t.uint8), lambda t, x: x[..., 2:].view(t.int64),
            lambda t, x: x[:, 1:, 1:].view(t.int16)[..., 1].to(t.int32))],
        *[bad("whole elements of", call, x).but(grad=False) for call in (
            lambda t, x: x.mT.view(t.uint8), lambda t, x: x[..., 1:3].view(t.int64),
            lambda t, x: x[0, 0, 0].view(t.uint8))],
    ],
    "Tensor.view_as": out_of(lambda t, x: x.contiguous().view_as(t.zeros(4, 6))),
    "flatten": [S(x), S(x, 1), S(x, 0, 1), S(np.array(2.0, np.float32))],
    "unflatten": [S(x, 2, (2, 2)), S(x, -1, (-1, 1))],
    "permute": [*moves(S(x, (2, 0, 1)), S(x, (1, -1, 0)), dtypes=DTYPES),
        bad("are not a permutation of", x, (0, 1)).but(error=ValueError)],
    "swapaxes": [S(x, 0, 2), S(x, axis0=-1, axis1=1)],
    "transpose": [S(x, 0, 2), S(x, -1, 1), *out_of(lambda t, x: (x[0].T, x.mT)),
        bad("takes -3 to 2", x, 0, 3)],
    "t": [S(matrix), S(matrix[0]), bad("at most two axes", x)],
    "movedim": [S(x, 0, 2), S(x, (0, 1), (-1, 0))],
    "Tensor.expand": [
        *out_of(lambda t, x: (x[:, :1].expand(2, 5, 4), x[:1].expand(3, -1, 3, 4), x[0, 0].expand(2, 3, 4))),
        *[s.but(call=lambda t, x: x[:1].expand(5, 3, 4)) for s in each(DTYPES, x)],
        bad("only axes of length 1 expand", x, 2, 5, 4)
    ],
    "Tensor.expand_as": out_of(lambda t, x: x[0, 0].expand_as(x)),
    "broadcast_to": [S(x[:1], (5, 3, 4)), S(x, (2, 2, 3, 4))],
    "broadcast_tensors": [S(x[:1], x[0, :, :1])],
    "squeeze": [S(x[:1]), S(x[:, :1], 1), S(x, 0), S(x[:1, :1], (0, 1))],
    "unsqueeze": [S(x, 0), S(x, -1), S(x, -2)],
    "as_strided": [S(x, (2, 2), (5, 3)).but(layouts=("contiguous",)),
        bad("reach elements 0 to 24 of 24", x, (5, 5), (5, 1))],
    "narrow": [S(x, 1, 1, 2), S(x, -1, -3, 2),
        bad("start 2 and length 2 do not lie within", x, 1, 2, 2),
        bad("without axes", np.float32(1), 0, 0, 1)],
    "select": [S(x, 1, 2), S(x, -1, -1)],
    "diagonal": [*moves(S(x), S(x, 1, 1, 2), S(x, -1, 2, 0), S(x, 7), dtypes=DTYPES)],
    "zero_": [S(lambda t, x: t.zero_(x * 1), x).but(grad=False)],
    "unsafe_split": [S(x, 2, 2), S(x, 3, -1)],
    "split": [
        *moves(S(x, 2, 2), S(x, [1, 2], 1), S(x, 3, -1), dtypes=DTYPES), *PARTS,
        bad("must add up to 3", x, [1, 1], 1).but(error=ValueError)
    ],
    "chunk": [
        S(x, 2), S(x, 3, 2), S(x, 7, 1), bad("chunks must be positive, not 0", x, 0).but(error=ValueError),
        *out_of(lambda t, x: [p[0] * p[2] for p in [x.chunk(3, 1)]], lambda t,
            x: x.chunk(2, 0)[1].split(2, 2)[0].unbind(1)[2] * 3)
    ],
    "unbind": [
        S(x, 1), S(x), *out_of(lambda t, x: x.unbind(-1)[2] * 2, lambda t,
            x: [r[0] * r[2] for r in [x.unbind(1)]],
        lambda t, x: t.stack([row * (k + 1) for k, row in enumerate(x.unbind(2))], 0))
    ],
    "clone": [*moves(S(x), dtypes=DTYPES),
        S(lambda t, x: x.mT.clone(), normal(2, 150, 250)).but(
            layouts=("contiguous",), grad=False, variants=("shared",)),
        *out_of(lambda t, x: x.transpose(0, 1).clone(), lambda t, x: x[:, ::2, 1:].clone())],
    "Tensor.contiguous": [*moves(S(x), dtypes=DTYPES), *out_of(lambda t, x: x.mT.contiguous())],
    **dict.fromkeys(("tril", "triu"), TRIANGLES),
    "cat": joins(
        *out_of(
            lambda t, x: (t.cat([x, x[:, 1:]], 1), t.cat([x[:0], x]), t.concat([x, x]),
                t.concatenate([x, x], -1)),
            lambda t, x: t.cat([x[k % 2] * (k + 1) for k in range(9)]),
            lambda t, x: t.cat([x, x[:, :2], x, x[:, :0], x[:, 1:], x], 1),
            lambda t, x: t.cat([x, x[..., 1:], x.flip(2), x[..., :1]] * 4, -1),
            lambda t, x: t.cat([x, x.transpose(0, 1)[:, :1].transpose(0, 1)[:, :3], x[1:], x])
        ),
        S([normal(2, n) for n in (3, 70000, 2, 5, 1, 66000, 4, 4)], 1).but(grad=False, paged=False),
        bad("must agree in every axis but 0", [x, x, x[:, :, 1:]]),
        bad("no axis to be joined along", [x[0, 0, 0], x[0, 0, 0]]),
        bad("same number of", [nothing(0), x, x[0]]), bad("dimension -4 is out of range", [x, x], -4),
        dims=({}, {"dim": 1}, {"dim": -1}, {"dim": 2})
    ),
    "stack": joins(
        *out_of(
            lambda t, x: (t.stack([x, x * 2]), t.stack((x, x), -1), t.stack([x, x], 1), t.stack([x] * 8, -1)),
            lambda t, x: t.stack([x[1, k % 3] for k in range(30)]), lambda t,
            x: t.stack([x[k % 2, k % 3, k % 4] for k in range(17)])
        ),
        bad("dimension 4 is out of range", [x, x], 4), dims=({}, {"dim": 1}, {"dim": -1})
    ),
    **{name: joins() for name in ("hstack", "vstack", "dstack", "column_stack")},
    "tile": [S(x, (2, 3)), S(x, (2,)), S(normal(2, 3), (0, 2)), *each(DTYPES, x, (2,))],
    "Tensor.repeat": [S(x, 2, 1, 3), S(x, 2, 1, 1, 2), *each(DTYPES, x, 2, 1, 1)],
    "repeat_interleave": [S(x, 2), S(x, 3, 1), S(x, 2, dim=-1)],
    "flip": [*moves(S(x, (0,)), S(x, (1, 2)), dtypes=DTYPES),
        *out_of(lambda t, x: x.flip(0, -1), lambda t, x: t.flip(x, dims=(1,)))],
    "roll": [
        bad("a tensor without axes", np.float32(1), 1, 0),
        *moves(S(x, 1), S(x, -1, 0), S(x, (1, 2), (0, 2)), S(x, 5, 1), dtypes=DTYPES), S(nothing(0, 3), 1, 0),
        bad("2 shifts for 1 axes", x, (1, 2), 0).but(error=ValueError)
    ],
    **dict.fromkeys(("zeros", "ones"), sized),
    "empty": [S(lambda t: t.empty(2, 3).shape), S(lambda t: t.empty(0)), bad("negative length", 2, -1)],
    "full": made(
        ((2, 2), 3.5), ((2,), 7), ((3,), True), ((2,), -(2**40)), ((2,), -np.inf), ((2,), np.nan),
        *[((5,), 3, {"dtype": d}) for d in DTYPES], ((5,), 200, {"dtype": "uint8"}),
        ((5,), 1.01, {"dtype": "bfloat16"})
    ),
    "zeros_like": filled("zeros"),
    "ones_like": filled("ones"),
    "full_like": filled("full", 1),
    "empty_like": [S(lambda t, x: t.empty_like(x).shape, x)],
    "eye": made((3,), (2, 4, {"dtype": "int64"}), (4, 2)),
    "arange": made(
        (7,), (2, 9), (9, 2, -2), (0.5, 3, 0.25), (5, {"dtype": "float32"}), (-3, 3, {"dtype": "int32"}),
        (-3, 9, 3, {"dtype": "int8"}), (3, 3), (2**40, 2**40 + 3), (5, {"dtype": "int16"}),
        refused=bad("step -1 does not lead from 0 to 3", 0, 3, -1)
    ),
    "logspace": made(
        (-1, 2, 7), (0, 10, 11, 2.0), (3, 4, 1), (0, 4, 5, -2, {"dtype": "float16"}),
        (0, 5, 6, {"dtype": "int64"}), (0.5, 2.5, 4, {"dtype": "int64"}),
        refused=bad("must not be negative", 0, 3, -1)
    ),
    "scalar_tensor": [S(2.5), S(3), S(3, dtype="int64")],
    "empty_strided": [S(lambda t: laid_out(t, t.empty_strided((2, 3), (1, 2)))),
        S(lambda t: laid_out(t, t.empty_strided((2, 0), (1, 2), dtype=t.int64))), bad("", (2, 3), (1,)),
        bad("", (2, 3), (1, -1))],
    "empty_permuted": [S(lambda t: laid_out(t, t.empty_permuted((2, 3, 4), (2, 0, 1)))),
        bad("each of 2 axes", (2, 3), (0, 0))],
    "Tensor.new_empty_strided": [S(lambda t, x: laid_out(t, x.new_empty_strided((2, 3), (3, 1))), x)],
    "fill": [S(x, 2.5), S(x, normal(1)[0]), S(below(9, 3), 7), bad("", x, normal(2))],
    "range": [
        S(lambda t: quietly(t, 1, 4)).but(**TYPED), S(lambda t: quietly(t, 0.5, 3, 0.75)).but(**TYPED),
        S(lambda t: quietly(t, 4, 0, -2, dtype=t.int64)).but(**TYPED),
        S(lambda t: quietly(t, 1, 2, 0.4, dtype=t.float32)).but(**TYPED),
    ],
    "linspace": made((-1, 2, 7), (3, 4, 1), (0, 10, 11)),
    "nn.functional.pad": [
        S(x, (1, 2)), S(x, (1, 2, -1, 1), value=3.0), S(normal(2, 3), (-1, -2)),
        S(below(9, 4), (1, 2), value=7),
        *[S(normal(2, 3, 4, 5), (2, 1, 0, 2), mode) for mode in ("reflect", "replicate", "circular")],
        *[S(normal(2, 3, 4), (-2, 2), mode).but(layouts=("contiguous",)) for mode in (
            "reflect", "replicate", "circular")]
    ],
    "constant_pad_nd": [S(x, (1, 0, -1, 1), 2), S(below(9, 4), [1, 2], 7)],
    "nn.functional.one_hot": [
        S(below(7, 2, 3), 7), S(below(7, 4)), S(below(300, 999), 300), S(below(3, 90_000), 3),
        S(np.zeros((0, 2), np.int64), 3), S(np.int64(2), 4),
        *[bad("empty tensor", np.zeros(0, np.int64), n).but(error=ValueError) for n in (0, -1, -2)],
        *[bad("Give at least one", below(7, 4), n).but(error=ValueError) for n in (0, -2)],
        *[bad("is out of range for", lambda t, ids: t.nn.functional.one_hot(ids, 7).tolist(), ids)
          .but(error=IndexError) for ids in (np.array([0, 7]), np.array([-1]))],
    ],
    "ravel": [S(x), *out_of(lambda t, x: x.mT.ravel(), lambda t, x: x[0, 0, 0].ravel())],
    "Tensor.reshape_as": out_of(lambda t, x: x.reshape_as(t.zeros(4, 6))),
    "fliplr": [S(x), bad("at least two axes, not 1", x[0, 0])],
    "flipud": [S(x), S(x[0, 0]), bad("at least one axis", x[0, 0, 0])],
    "rot90": [*[S(x, k) for k in (-3, -2, -1, 0, 1, 2, 3, 5)], S(x, 1, (2, 0)), S(x, -1, [1, -1]),
        bad("are one axis", x, 1, (0, -3)), bad("takes two of at least two", x, 1, (0,)),
        bad("at least two axes", x[0, 0])],
    **{
        f"atleast_{n}d": [S(x[0, 0, 0]), S(x[0, 0]), S(x[0]), S(x), S(x[0, 0, 0], x), S([x[0, 0], x[0]])]
        for n in (1, 2, 3)
    },
    "adjoint": [S(x), S(x[0]), bad("at least two axes", x[0, 0])],
    "diag_embed": [S(x), S(x, 1), S(x, -2, 0, 2), S(x, 1, 2, 0), S(x[0, 0], -1), *each(DTYPES, x),
        bad("Name two", x, 0, 1, -3), bad("at least one axis", x[0, 0, 0]).but(error=ValueError)],
    "diag": [S(matrix), S(matrix[:3], 1), S(matrix[0]), S(matrix[0], -2), bad("not 3 axes", x)],
    "diagflat": [S(x), S(x[0, 0], 1), S(x[0, 0, 0], -1)],
    "trace": [S(matrix), S(matrix[:2]), S(nothing(0, 3)), S(below(9, 3, 3)), bad("takes a matrix", x)],
    "Tensor.fill_diagonal_": [
        *[S(lambda t, a, k=k, w=w: (a * 2)[:k].fill_diagonal_(3.5, w), normal(9,
        3)).but(layouts=("contiguous",))
            for k in (2, 3, 4, 7, 9) for w in (False, True)],
        S(lambda t, a: (a * 2).t().fill_diagonal_(3.5), normal(2, 9)),
        S(lambda t, a: (a * 2).fill_diagonal_(1), normal(3, 3, 3)),
        bad("more axes of one length", lambda t, a: (a * 2).fill_diagonal_(1), x),
        bad("takes a matrix", lambda t, a: (a * 2).fill_diagonal_(1), x[0, 0])
    ],
    "block_diag": [S(x[0], x[1, 0], x[0, 0, 0], matrix), S(), S(x[0], below(5, 2, 2)), S(x[0], nothing(2,
        0), x[1]),
        bad("tensor 1 has 3 axes", x[0], x)],
    "select_scatter": [S(x, normal(2, 4), 1, -1), S(x, normal(3, 4), 0, 1), bad("src has shape", x, x, 0, 0)],
    "slice_scatter": [S(x, normal(2, 2, 4), 1, 1), S(x, normal(2, 3, 2), 2, 0, 4, 2), S(x, normal(2, 3, 4)),
        bad("src has shape", x, x, 1, 1), bad("step must be positive", x, x, 0, 0, 2, -1)],
    "diagonal_scatter": [S(matrix, normal(4), 1), S(x, normal(3, 2), 0, 2, 0), bad("src has shape",
        matrix, x)],
    # PyTorch's gradient of input is the one of what was overwritten.
    "as_strided_scatter": [
        *[s.but(layouts=("contiguous",), grad=False)
            for s in (S(x, normal(2, 2), (2, 2), (5, 3)), S(x, normal(3), (3,), (2,), 4))],
        bad("src has shape", x, x, (2, 2), (1, 1)),
        S(lambda t, y, x: t.as_strided_scatter(x.detach().contiguous(), y, (2, 2), (5, 3)), normal(2, 2), x)
    ],
    "broadcast_shapes": [S(lambda t: t.broadcast_shapes((2,), (3, 1), (1, 1, 1))),
        S(lambda t: t.broadcast_shapes(4, (3, 1))),
        bad("do not broadcast", lambda t: t.broadcast_shapes((2,), (3,)))],
    "meshgrid": [*[S([normal(3), normal(4), normal(2)], indexing=way) for way in ("ij", "xy")],
        S(normal(3), normal(1)[0], indexing="xy"), S(normal(3), indexing="xy"),
        bad("'ij' or 'xy'", normal(2), indexing="yx").but(error=TypeError), bad("at most one axis", x,
        indexing="ij")],
    "cartesian_prod": [S(normal(3), normal(2), normal(4)), S(normal(3)), bad("Give vectors", x, x)],
    "combinations": [*[S(normal(5), r, w) for r in (0, 1, 2, 3) for w in (False, True)], S(normal(2), 3),
        bad("must not be negative", normal(3), -1), bad("takes a vector", x)],
    **dict.fromkeys(
        ("tril_indices", "triu_indices"),
        made((3, 4), (4, 3, 1), (4, 3, -2), (0, 3), (3, 3, {"dtype": "int32"}), refused=bad("negative",
        -1, 2)),
    ),
    "vander": [S(normal(4)).but(grad=False), S(normal(3), 5, True).but(grad=False), S(normal(3), 0),
        S(below(5, 3), 4), bad("takes a vector", x)],
    "Tensor.unfold": [
        S(lambda t, x: x.unfold(1, 2, 1), x), S(lambda t, x: x.unfold(-1, 3, 2), x), S(lambda t,
        x: x.unfold(2, 1, 3), x),
        S(lambda t, x: x[0, 0, 0].unfold(0, 1, 1), x), S(lambda t, x: x.unfold(0, 0, 1), x),
        bad("windows of 0 to 3", lambda t, x: x.unfold(1, 4, 1), x), bad("step", lambda t, x: x.unfold(1,
        1, 0), x)
    ],
    "split_with_sizes": [S(x, [1, 2], 1), S(x, (2, 0)), bad("must add up to 3", x, [1, 1], 1)],
    "tensor_split": [S(x, 2, 2), S(x, 3, -1), S(x, 7, 1), S(x, (1, 3), 2), S(x, [-1], 1), S(x, (2, 1, 9),
        2), S(x, []), S(x, sections=2, dim=1), S(x, indices=(1, 3), dim=2),
        bad("one of indices and sections", x), bad("sections must be an integer", x, sections=(1,)),
        bad("sections must be positive", x, 0), bad("at least one axis", x[0, 0, 0], 1)],
    "hsplit": [S(x, 3), S(x, [1, 2]), S(x, sections=3), S(x, indices=[1, 2]), S(x[0, 0], 2),
        bad("parts of one length", x, 2), bad("at least 1 axes", x[0, 0, 0], 1)],
    "vsplit": [S(x, 2), S(x, [1]), S(x, sections=2), S(x, indices=[1]), bad("at least 2 axes", x[0, 0], 2)],
    "dsplit": [S(x, 2), S(x, [1, 3]), S(x, sections=2), S(x, indices=[1, 3]),
        bad("at least 3 axes", x[0], 2)],
    **{
        f"{name}_copy": [S(x, *args).but(layouts=("contiguous",))]
        for name, args in {
            "alias": (), "as_strided": ((2, 2), (5, 3)), "diagonal": (1,), "expand": ((5, 2, 3, 4),),
        "narrow": (1, 1, 2),
            "permute": ((2, 0, 1),), "select": (1, 2), "split_with_sizes": ([1, 2], 1), "squeeze": (),
        "transpose": (0, 2),
            "unbind": (1,), "unfold": (1, 2, 1), "unsqueeze": (1,), "view": ((4, 6),),
        }.items()
    },
    "t_copy": [S(matrix)],
    **{f"Tensor.{name}_": [*relaid(f"{name}_", *rows), bad("a leaf that requires grad", lambda t, x, n=name,
            a=rows[0][1:]: getattr(x.requires_grad_(), f"{n}_")(*a), rows[0][0]).but(error=RuntimeError)]
        for name, rows in {
            "squeeze": ((x[:1],), (x[:, :1], 1), (x[:1, :1], (0, 1)), (x, 0)), "unsqueeze": ((x, 1), (x, -1)),
            "transpose": ((x, 0, 2), (x, -1, 1)), "swapaxes": ((x, 0, 2),), "t": ((matrix[:3],), (x[0, 0],)),
            "as_strided": ((matrix, (2, 3), (5, 1)), (matrix, (2, 2), (1, 5), 3))}.items()},
    "Tensor.resize_": [
        *[S(call, x).but(**TYPED) for call in (
            lambda t, x: x.clone().resize_(2, 5), lambda t, x: x.clone().resize_((4, 6)),
            lambda t, x: [y.resize_(30)[:20] for y in [x.clone().reshape(-1)[4:]]],
            lambda t, x: [y for y in [x.clone()] if y[1].resize_(40).numel()],  # the memory of both grows
            lambda t, x: x.clone().resize_(0).resize_(2, 0),
            lambda t, x: x.clone().resize_(1, 2, 3, 4, memory_format=t.channels_last))],
        bad("negative", lambda t, x: x.clone().resize_(-1), x).but(grad=False),
        bad("require grad", lambda t, x: x.requires_grad_().resize_(3), x)
    ],
    "Tensor.resize_as_": [S(lambda t, x: t.resize_as_(x.clone(), t.zeros(2, 3)), x).but(**TYPED)],
    "Tensor.set_": [
        *[S(call, x).but(**TYPED) for call in (
            lambda t, x: t.zeros(0).set_(x), lambda t, x: x.clone().set_(),
            lambda t, x: t.zeros(0).set_(x.untyped_storage(), 1, (2, 2)),
            lambda t, x: t.zeros(0).set_(x.untyped_storage(), 1, (2, 2), (1, 3)))],
        bad("Give the same", lambda t, x: x.clone().set_(t.zeros(2, dtype=t.int64)), x),
        bad("Choose smaller ones", lambda t, x: x.clone().set_(x.untyped_storage(), 0, (9, 9)), x).but(
            error=ValueError)
    ]
}  # fmt: skip
