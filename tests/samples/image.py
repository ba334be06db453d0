"""Samples of images: resampling, sampling at points, elements between channels and pixels."""

import numpy as np

from samples.sample import S, Sample, bad, below, each, normal, uniform

ONCE: dict = {"layouts": ("contiguous",), "second": False}
line, image, volume = normal(2, 2, 5), normal(1, 2, 5, 4), normal(1, 1, 3, 2, 4)
flat, deep = uniform(-1.4, 1.4, 1, 3, 2, 2), uniform(-1.4, 1.4, 1, 2, 1, 2, 3)
THETA = normal(2, 2, 3)


def resampled(x: np.ndarray, mode: str, *ways: dict) -> list[Sample]:
    """The first way in every layout, and with its second derivative."""
    return [S(x, mode=mode, **way).but(**(ONCE if k else {})) for k, way in enumerate(ways)]


def at_points(x: np.ndarray, grid: np.ndarray, *ways: tuple) -> list[Sample]:
    """Derivatives of the derivative are not in PyTorch."""
    return [S(x, grid, *way).but(**(ONCE if k else {"second": False})) for k, way in enumerate(ways)]


SAMPLES: dict[str, list[Sample]] = {
    "nn.functional.interpolate": [
        *resampled(line, "nearest", {"size": 8}, {"scale_factor": 1.3}),
        *resampled(image, "nearest", {"scale_factor": (1.2, 2)}), *resampled(volume, "nearest", {"size": 3}),
        *resampled(image, "nearest-exact", {"size": (3, 9)}),
        *resampled(line, "linear", {"size": 3}, {"size": 9, "align_corners": True}, {"size": 1}),
        S(normal(1, 3, 5, 70), (9, 150), mode="bilinear").but(second=False, paged=False),
        *resampled(image, "bilinear", {"scale_factor": 1.7}, {"scale_factor": 0.6, "antialias": True},
            {"size": (2, 4), "align_corners": True, "antialias": True}, {"scale_factor": 1.1},
            {"scale_factor": 1.7, "recompute_scale_factor": True}),
        *resampled(volume, "trilinear", {"size": (2, 3, 4)}),
        *resampled(image, "bicubic", {"size": (7, 3)}, {"size": (3, 6), "antialias": True},
            {"size": (9, 1), "align_corners": True}),
        *resampled(image, "area", {"size": 3}), *each(("float16",), image, 3),
        S(below(9, 1, 2, 3, 4).astype(np.uint8), 5).but(**ONCE),
        *[bad("", image, **way) for way in (
            {}, {"size": 2, "scale_factor": 2}, {"size": (2, 3, 4)}, {"size": 2, "mode": "linear"},
            {"size": 2, "mode": "other"}, {"size": 2, "align_corners": True},
            {"size": 2, "mode": "nearest", "antialias": True}, {"size": 2, "recompute_scale_factor": True},
            {"size": 0}
        )],
    ],
    "nn.functional.upsample": [S(image, 6).but(**ONCE)],
    "nn.functional.upsample_nearest": [S(image, scale_factor=2).but(**ONCE)],
    "nn.functional.upsample_bilinear": [S(image, 7).but(**ONCE)],
    "nn.functional.grid_sample": [
        *at_points(image, flat, ("bilinear", "zeros", False), ("bilinear", "border", True),
            ("nearest", "reflection", True), ("bicubic", "zeros", True), ("bicubic", "reflection", False)),
        *at_points(volume, deep, ("bilinear", "reflection", False), ("nearest", "zeros", False)),
        *[bad("", image, flat, *way) for way in (("other",), ("bilinear", "other"))],
        *[bad("", *pair) for pair in (
            (image, deep), (image, flat[..., :1]), (image, np.repeat(flat, 2, 0)), (line, flat)
        )],
        bad("", volume, deep, "bicubic"),
    ],
    "grid_sampler": [S(image, flat, 0, 0, True).but(**ONCE), bad("", image, flat, 3, 0, True).but(
        error=RuntimeError)],
    "grid_sampler_2d": [S(image, flat, 1, 1, False).but(**ONCE)],
    "grid_sampler_3d": [S(volume, deep, 0, 2, True).but(**ONCE)],
    "nn.functional.affine_grid": [
        S(THETA, (2, 1, 3, 2), False), S(THETA, (2, 3, 2, 4), True).but(**ONCE),
        S(normal(1, 3, 4), (1, 1, 2, 3, 2), False).but(**ONCE), bad("", THETA, (1, 1, 3, 2)),
        bad("", THETA, (2, 3, 2)),
    ],
    "affine_grid_generator": [S(THETA, (2, 1, 2, 2), True).but(**ONCE)],
    **{name: [S(normal(2, 8, 2, 4), 2), S(normal(4, 2, 2), 2).but(**ONCE), bad("", normal(3, 3, 3), 2),
        bad("", normal(1, 4, 2, 2), 0)] for name in ("pixel_shuffle", "pixel_unshuffle")},
    "channel_shuffle": [S(normal(2, 6, 3), 3), bad("", normal(2, 5, 3), 3), bad("", normal(2, 6), 3)],
    "nn.functional.unfold": [
        S(normal(1, 2, 5, 4), (2, 3), (2, 1), (1, 0), (1, 2)), S(normal(2, 4, 4), 2, stride=2).but(**ONCE),
        bad("", image, 9), bad("", image, 2, stride=0), bad("", volume, 2),
    ],
    "nn.functional.fold": [
        S(normal(1, 12, 5), (5, 4), (2, 3), (2, 1), (1, 0), (2, 2)).but(maybe=True),
        S(normal(8, 4), 4, 2, stride=2).but(**ONCE), S(normal(1, 4, 9), (4, 4), 2),
        bad("", normal(1, 5, 9), (4, 4), 2), bad("", normal(1, 4, 8), (4, 4), 2),
    ],
}  # fmt: skip
