"""Samples of convolutions, their transposes, and windows of means and maxima."""

from functools import partial

import numpy as np

from samples.sample import S, Sample, apart, bad, below, each, normal, nothing, uniform

ONCE: dict = {"layouts": ("contiguous",), "second": False}
CLOSE, SHARED = {"atol": 1e-4, "rtol": 1e-4}, {"variants": ("shared",)}


def convolved(input: tuple, weight: tuple, transpose: bool = False, bias: bool = True, **options) -> Sample:
    """Of normal numbers of these shapes."""
    channels = weight[1] * options.get("groups", 1) if transpose else weight[0]
    made = S(normal(*input), normal(*weight), *[normal(channels)] * bias, **options).but(**CLOSE)
    # Volumes take the kernels of planes.
    return made.but(**SHARED) if len(weight) < 5 else made


def refused(shape: tuple, *options: dict, weights: tuple = ()) -> list[Sample]:
    """Settings and weights that an image of (1, 4, ...) does not go with."""
    x = normal(*(1, 4, 5, 5)[: len(shape)])
    return [
        *[bad("", x, normal(*shape), **o) for o in options],
        *[bad("", x, *[normal(*s) for s in w]) for w in weights],
    ]


def placed(count: int, x: np.ndarray, *args, **options) -> Sample:
    """Maxima with their places, which nn.functional alone returns."""
    return S(
        lambda t, x: getattr(t.nn.functional, f"max_pool{count}d")(x, *args, return_indices=True, **options),
        x,
    )


def refused_volumes(shape: tuple, weight: tuple, *options: dict) -> list[Sample]:
    """The same of volumes."""
    return [bad("", normal(*shape), normal(*weight), **o) for o in options]


def drawn(name: str, size: int | tuple, options: dict, t, x, samples):
    """Fractional pooling with these samples, which have no derivative."""
    if "output_ratio" in options:
        options = {**options, "output_ratio": (options["output_ratio"],) * samples.shape[-1]}
    return getattr(t.nn.functional, name)(x, size, _random_samples=samples.detach(), **options)


def halved(shape: tuple, **options) -> list[Sample]:
    """Of half the width."""
    made = each(("float16", "bfloat16"), normal(2, 4, 7, 6), normal(*shape), normal(6), **options)
    return [
        s.but(grad=True, second=False, rtol=4 * s.rtol, atol=8 * s.atol, paged=s.dtype == "float16")
        for s in made
    ]


ANY = S(lambda t, x, w: t.nn.functional.conv2d(x.permute(0, 3, 1, 2)[:, :, ::2, 1:],
    w.flip(-1).transpose(0, 1), padding=1),
        normal(2, 12, 9, 3), normal(3, 20, 3, 3)).but(**CLOSE)  # fmt: skip
corner = np.zeros((1, 1, 4, 4), np.float32)
corner[0, 0, 0, 0] = np.inf
image, line, volume = apart(2, 3, 8, 9), normal(2, 3, 13), apart(1, 2, 4, 5, 6)
FRACTIONAL: dict[str, list[tuple[dict, dict]]] = {
    "": [({"output_ratio": 0.5, "return_indices": True}, {}), ({"output_size": 1}, ONCE)],
    "_with_indices": [({"output_size": 2}, ONCE)],
}
equal = np.array(
    [1, 1, np.nan, 2, np.nan, -np.inf, -np.inf, -np.inf, np.inf, 3, 3, 3, 0, -0.0], np.float32
).reshape(1, 1, -1)


def windows(*ways: tuple) -> list[Sample]:
    """Shapes, then arguments, then keywords."""
    return [S(normal(*shape), *args, **options) for shape, args, options in ways]


BOTH = [
    ((2, 3, 8, 9), (2,), {}), ((2, 3, 8, 9), (3,), {"stride": 2, "padding": 1}),
    ((2, 3, 8, 10), (3,), {"stride": 3, "ceil_mode": True}),
    ((1, 2, 7, 6), ((2, 3),), {"stride": (3, 2), "padding": 1, "ceil_mode": True}),
    ((3, 6, 7), ([2, 3],), {"stride": ()})
]  # fmt: skip
NO_WINDOWS = [bad("", image, 3, padding=2), bad("", image, 3, stride=0)]
EMPTY = normal(0, 3, 6, 7)
SAMPLES: dict[str, list[Sample]] = {
    "conv2d": [
        # First channels on their own, which have their own kernels: pages run one sample of a variant.
        convolved((2, 6, 9, 8), (6, 1, 3, 3), groups=6, padding=1),
        convolved((2, 3, 8, 9), (5, 3, 3, 3)), convolved((3, 5, 5, 7), (20, 5, 3, 3), padding=1),
        convolved((2, 9, 6, 5), (20, 9, 1, 1)),
        convolved((1, 3, 9, 8), (6, 3, 4, 2), padding=(2, 1)),
        convolved((2, 4, 11, 10), (6, 4, 3, 3), stride=2, padding=1),
        convolved((2, 4, 11, 10), (6, 4, 3, 5), stride=(3, 2), padding=(0, 2)),
        convolved((2, 4, 11, 12), (6, 4, 3, 2), dilation=(2, 3), padding=(2, 0)),
        convolved((1, 4, 16, 19), (6, 4, 3, 3), stride=(2, 4), dilation=(3, 6), padding=4),
        convolved((2, 6, 7, 8), (10, 3, 3, 3), groups=2, padding=1),
        convolved((2, 3, 9, 8), (21, 1, 5, 3), groups=3, stride=2, padding=2),
        convolved((2, 3, 16, 16), (12, 3, 8, 8), stride=8),
        convolved((2, 3, 7, 8), (5, 3, 3, 3), padding="same"),
        convolved((2, 3, 7, 8), (5, 3, 4, 2), padding="same", dilation=(1, 3)),
        convolved((2, 3, 7, 8), (5, 3, 3, 3), padding="valid"), convolved((3, 7, 8), (5, 3, 3, 3), padding=1),
        convolved((2, 3, 6, 5), (9, 3, 6, 5)), convolved((2, 3, 6, 7), (20, 3, 3, 3), bias=False, padding=1),
        convolved((2, 8, 7, 6), (8, 4, 4, 3), stride=3, dilation=2, padding=(1, 2), groups=2),
        # A depth in parts, no images, no outputs, padding of 0 beside infinity.
        convolved((1, 400, 4, 3), (24, 400, 3, 3), padding=1).but(second=False, rtol=1e-3, atol=1e-3,
            layouts=("contiguous",)),
        convolved((0, 3, 6, 7), (20, 3, 3, 3), padding=1), convolved((0, 3, 6, 7), (3, 1, 3, 3), groups=3),
        *[S(nothing(*x), nothing(*w)).but(maybe=True) for x,
            w in (((1, 2, 5, 5), (0, 2, 3, 3)), ((1, 2, 0, 5), (3, 2, 3, 3)))],
        S(corner, np.abs(normal(20, 1, 3, 3)), padding=2).but(grad=False), ANY,
        S(lambda t, x, w: t.nn.functional.conv2d(x.expand(4, 3, 5, 6), w), normal(1, 3, 5, 6),
            normal(5, 3, 2, 2)).but(**CLOSE),
        *halved((6, 4, 3, 3), padding=1),
        S(np.arange(120).reshape(2, 3, 5, 4), np.arange(72).reshape(6, 3, 2, 2) - 30, stride=2).but(**ONCE),
        *refused(
            (8, 4, 3, 3), {"stride": 0}, {"padding": -1}, {"padding": "same", "stride": 2},
            {"padding": "other"}, {"groups": 3},
            {"groups": 0}, {"groups": -1}, {"stride": (1, 2, 3)}, {"dilation": 0}, {"stride": 1.5},
            weights=(
                [(8, 2, 3, 3)], [(8, 4, 7, 7)], [(4, 3, 3)], [(0, 4, 3, 3)], [(8, 4, 0, 3)],
                [(8, 4, 3, 3), (3,)],
                [(8, 4, 3, 3), (8, 1)], [(9, 2, 3, 3)]
            )
        ),
        bad("", normal(5, 5), normal(8, 4, 3, 3)),
        bad("", normal(1, 4, 5, 5), np.float16(normal(8, 4, 3, 3))),
        bad("has 4 channels, weight of shape .* takes 3", normal(1, 4, 5, 5), normal(8, 3, 3, 3))
    ],
    "conv1d": [
        convolved((2, 3, 30), (5, 3, 3)), convolved((2, 8, 31), (20, 4, 5), stride=3, padding=2, groups=2),
        convolved((3, 31), (6, 3, 4), padding="same", dilation=3),
        convolved((2, 6, 17), (6, 1, 7), padding=(3,), groups=6, stride=(2,)),
        S(normal(0, 2, 5), normal(3, 2, 3)), bad("", normal(1, 4, 5, 5), normal(8, 4, 3, 3))
    ],
    "conv_transpose2d": [
        *[convolved(x, w, True, **options) for x, w, options in (
            ((2, 3, 6, 5), (3, 7, 3, 3), {}), ((2, 4, 5, 6), (4, 20, 4, 4), {"stride": 2, "padding": 1}),
            ((2, 4, 5, 6), (4, 6, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
            ((1, 3, 4, 5), (3, 6, 2, 2), {"stride": (3, 5), "output_padding": (0, 4)}),
            ((2, 3, 5, 4), (3, 6, 3, 2), {"dilation": (2, 3), "padding": 2, "output_padding": (1, 2)}),
            ((2, 3, 5, 4), (3, 6, 3, 3), {"stride": (4, 3), "dilation": (6, 2), "padding": 3}),
            ((2, 6, 5, 4), (6, 5, 3, 3), {"groups": 3, "stride": 2}),
            ((2, 6, 5, 4), (6, 1, 3, 3), {"groups": 6, "stride": 2, "padding": 1}),
            ((3, 5, 4), (3, 6, 3, 3), {"stride": 2}),
            ((2, 3, 6, 7), (3, 20, 3, 3), {"stride": 2, "bias": False}),
            ((0, 3, 6, 7), (3, 20, 3, 3), {"stride": 2})
        )],
        *halved((4, 6, 3, 3), stride=2),
        S(below(9, 2, 2, 3), below(9, 2, 1, 3, 2) - 4, None, 2, (0, 2)).but(**ONCE),
        *refused(
            (4, 2, 3, 3), {"output_padding": 1}, {"output_padding": -1}, {"padding": 4}, {"groups": 3},
            {"padding": "same"},
            weights=([(3, 2, 3, 3)], [(4, 2, 3, 3), (3,)])
        ),
        bad("it must be less than stride 2", normal(1, 4, 5, 5), normal(4, 3, 3, 3), stride=2,
            output_padding=2)
    ],
    "conv_transpose1d": [
        convolved((2, 3, 11), (3, 5, 3), True),
        convolved((2, 4, 9), (4, 10, 16), True, stride=8, padding=4, groups=2),
        convolved((3, 9), (3, 6, 5), True, stride=(2,), dilation=3, output_padding=2),
        S(normal(0, 2, 5), normal(2, 3, 3))
    ],
    "max_pool2d": [
        *windows(*BOTH, ((2, 3, 9, 11), ((3, 2),), {"stride": (2, 3), "padding": (1, 0), "dilation": (2, 3)}),
            ((2, 3, 5, 4), ((5, 4),), {})),
        placed(2, image, 2), placed(2, image, (3, 2), (2, 3), (1, 0), (2, 3), True),
        S(np.zeros((1, 2, 4, 5), np.float32), 2, 1), S(EMPTY, 2),
        S(image, 2).but(grad=False, alone=True, layouts=("offset",)),
        *each(("float16", "bfloat16"), normal(1, 2, 4, 5), 2),
        placed(2, np.arange(-20, 20).reshape(1, 2, 4, 5), 2, 1, 1).but(**ONCE), *NO_WINDOWS,
        *[bad("", image, k) for k in (0, 9, (3, 2, 1))], bad("", image, 3, dilation=0),
        bad("", image, 2, padding=-1),
        *[bad("", x, 2) for x in (image[0, 0], image[:, :0], image[:, :, :0], nothing(1, 1, 0, 4))]
    ],
    "max_pool1d": [
        S(line, 3, 2, 1, ceil_mode=True), placed(1, line, 2, dilation=3),
        *[placed(1, equal, k, 1, k // 2).but(grad=False) for k in (2, 3, 4)],
        bad("at most half of the 3 places", image[0], 3, padding=2)
    ],
    "nn.functional.avg_pool2d": [
        *windows(
            *BOTH, ((2, 3, 8, 9), (3, 2, 1), {"count_include_pad": False}),
            ((2, 3, 9, 11), ((4, 2),), {"stride": (2, 3), "padding": (2, 0)}),
            ((2, 3, 6, 7), (3,), {"padding": 1, "divisor_override": -4})
        ),
        S(EMPTY, 2), *each(("float16", "bfloat16"), normal(1, 2, 4, 5), 2), *NO_WINDOWS,
        bad("", image, 3, divisor_override=0),
        bad("smaller than windows of", normal(1, 3, 4), 5),
        S(np.arange(40, dtype=np.int64).reshape(1, 2, 4, 5) - 19, (2, 3), 1, 1, True, False).but(**ONCE),
        bad("takes floating-point tensors", np.arange(40, dtype=np.int32).reshape(1, 2, 4, 5), 2).but(
            error=TypeError)
    ],
    "avg_pool1d": [S(line, 4, 3, 2, True, False), S(line[0], (3,)), S(line, 4, 3, 2, True)],
    "adaptive_avg_pool1d": [S(line, 5), S(line, 20), S(line, 1)],
    "nn.functional.adaptive_avg_pool2d": [
        *[S(normal(2, 3, 7, 9), size) for size in (1, 3, (2, 5), (None, 4), (7, 9), (12, 3), [3, 1])],
        S(normal(2, 3, 7, 9), (0, 3)).but(grad=False),
        S(EMPTY, 3), *[bad("", image, size) for size in ((3,), -1, None)], bad("", image[:, :, :0], 3)
    ],
    "conv3d": [
        convolved((2, 3, 4, 5, 4), (2, 3, 3, 2, 3), padding=(1, 0, 1)),
        convolved((4, 5, 5, 4), (4, 2, 2, 3, 2), groups=2, stride=(2, 1, 2), dilation=(2, 1, 1),
            padding="valid"),
        convolved((1, 2, 4, 4, 3), (3, 2, 2, 3, 1), padding="same", dilation=(1, 1, 2), bias=False).but(
            **ONCE),
        S(normal(0, 2, 3, 3, 3), normal(3, 2, 2, 2, 2)).but(**ONCE),
        S(below(9, 2, 2, 2, 3), below(9, 4, 1, 2, 1, 2) - 4, below(9, 4), 1, (1, 0, 1), 1, 2).but(**ONCE),
        *refused_volumes((1, 4, 3, 3, 3), (2, 4, 2, 2, 2), {"stride": 0}, {"groups": 3}, {"dilation": 3},
            {"padding": "other"}),
        bad("", normal(1, 4, 3, 3), normal(2, 4, 2, 2))
    ],
    "conv_transpose3d": [
        convolved((2, 2, 3, 2, 3), (2, 3, 3, 2, 2), True, stride=(2, 1, 2), padding=(1, 0, 0),
            output_padding=(1, 0, 1)),
        convolved((4, 2, 3, 2), (4, 2, 2, 2, 3), True, groups=2, dilation=(2, 1, 1), bias=False),
        S(below(9, 2, 2, 2, 3), below(9, 2, 2, 2, 2, 2) - 4, below(9, 4), (2, 1, 2), 1, (1, 0, 0),
            2).but(**ONCE),
        *refused_volumes((1, 4, 3, 3, 3), (4, 2, 2, 2, 2), {"output_padding": 1}, {"padding": 4},
            {"padding": "same"})
    ],
    "max_pool3d": [
        placed(3, volume, 2), placed(3, volume[0], (3, 2, 2), (2, 1, 2), (1, 0, 1), (1, 2, 1), True),
        S(volume, 2, 1).but(**ONCE), bad("", volume, 3, padding=2), bad("", volume[0, 0], 2)
    ],
    "nn.functional.avg_pool3d": [
        S(volume, (2, 3, 2), (2, 1, 2), (1, 1, 0), True, False), S(volume[0], 2, divisor_override=3),
        S(below(20, 1, 2, 4, 3, 4) - 9, 2, 1, 1).but(**ONCE), bad("", volume, 2, divisor_override=0),
        bad("", volume, 9)
    ],
    "nn.functional.adaptive_avg_pool3d": [S(volume, (2, None, 3)), S(volume[0], 1).but(**ONCE),
        bad("", volume, (2, 3))],
    "nn.functional.adaptive_max_pool1d": [S(line, 5, return_indices=True), S(line[0], 17).but(**ONCE)],
    "nn.functional.adaptive_max_pool2d": [
        S(image, (3, 4), return_indices=True), S(image[0], (None, 1)).but(**ONCE),
        S(equal.reshape(1, 2, 7), (1, 3), return_indices=True).but(grad=False, layouts=("contiguous",)),
        bad("", image, -1), bad("", image[0, 0], 2)
    ],
    "nn.functional.adaptive_max_pool3d": [S(volume, (2, 3, 1), return_indices=True)],
    "max_pool1d_with_indices": [S(line, 3, 2).but(**ONCE)],
    "nn.functional.max_pool2d_with_indices": [S(image, 2).but(**ONCE)],
    "nn.functional.max_pool3d_with_indices": [S(volume, 2).but(**ONCE)],
    "adaptive_max_pool1d": [S(line, 3).but(**ONCE)],
    "nn.functional.adaptive_max_pool2d_with_indices": [S(image, 3).but(**ONCE)],
    "nn.functional.adaptive_max_pool3d_with_indices": [S(volume, 1).but(**ONCE)],
    "nn.functional.lp_pool1d": [S(np.abs(line), 3, 4, 2),
        S(np.abs(line[0]), 2.0, 3, ceil_mode=True).but(**ONCE)],
    "nn.functional.lp_pool2d": [S(uniform(0.5, 2, 2, 3, 5, 4), 2, (2, 3), 2)],
    "nn.functional.lp_pool3d": [S(uniform(0.5, 2, 1, 2, 3, 4, 3), 3, 2).but(**ONCE)],
    "nn.functional.max_unpool1d": [
        S(normal(2, 3, 4), below(2, 2, 3, 4) + 2 * np.arange(4), 2),
        S(normal(3, 4), below(2, 3, 4) + 2 * np.arange(4), 2, output_size=(9,)).but(**ONCE)
    ],
    "nn.functional.max_unpool2d": [
        S(normal(2, 1, 2, 2), np.tile(np.array([[0, 3], [9, 10]], np.int64), (2, 1, 1, 1)), 2).but(
            layouts=("contiguous",)),
        S(normal(1, 2, 2), np.array([[[0, 3], [12, 8]]], np.int64), 2, 2, 0, (5, 4)).but(**ONCE),
        bad("", normal(1, 2, 2), np.array([[[0, 3], [12, 8]]], np.int64), 2, 2, 0, (9, 4)),
        bad("", normal(1, 2, 2), np.zeros((1, 2, 3), np.int64), 2),
        bad("must be int64", normal(1, 2, 2), np.zeros((1, 2, 2), np.int32), 2)
    ],
    "nn.functional.max_unpool3d": [S(normal(1, 2, 2, 1, 1), np.array([0, 5, 3, 4],
        np.int64).reshape(1, 2, 2, 1, 1),
        (1, 2, 2)).but(**ONCE)],
    **{f"nn.functional.fractional_max_pool{n}d{end}": [
        S(partial(drawn, f"fractional_max_pool{n}d{end}", size, options), x, uniform(0, 1, 2, 3, n)).but(
            **more)
        for options, more in ways
    ] for end, ways in FRACTIONAL.items() for n, x, size in (
        (2, image, (2, 3)), (3, apart(2, 3, 4, 5, 6), 2)
    )}
}  # fmt: skip
