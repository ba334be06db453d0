"""Samples of Fourier transforms and windows."""

import numpy as np

from samples.sample import S, Sample, bad, below, normal

x = normal(3, 10)
z = (normal(3, 10) + 1j * normal(3, 10)).astype(np.complex64)
once = {"layouts": ("contiguous",), "atol": 3e-5}


def transforms(kind: str) -> dict[str, list[Sample]]:
    """Of a kind over one, two and several axes."""
    a = x if kind in ("rfft", "ihfft") else z
    return {
        f"fft.{kind}": [
            S(a), S(a, n=15, norm="forward").but(**once), S(a, n=7, dim=0, norm="ortho").but(**once),
            bad("there must be one", a, n=0), bad("norm is one of", a, norm="none"),
            bad("", a, dim=2), bad("float32", normal(4)).but(dtype="float16"),
            *([bad("takes a real", z)] if a is x else [S(x).but(**once)]),
        ],
        f"fft.{kind}2": [S(a, s=(-1, 5), dim=(1, 0)).but(**once), bad("", a[0])],
        f"fft.{kind}n": [
            S(a).but(**once), S(a, s=(4, 6), norm="ortho").but(**once), bad("once", a, dim=(1, -1)),
            bad("for 2 axes", a, s=(3,), dim=(0, 1)),
        ],
    }  # fmt: skip


def long(*lengths: int) -> list[Sample]:
    """Of other radices, and Bluestein's; complex numbers in rows and in columns."""
    rows = [(normal(2, n) + 1j * normal(2, n)).astype(np.complex64) for n in lengths]
    return [S(row).but(**once, second=False, alone=row.shape[1] == 67) for row in rows] + [
        S(rows[-1], n=71, dim=0).but(**once)
    ]


SAMPLES: dict[str, list[Sample]] = {
    name: rows for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for name, rows in
        transforms(kind).items()
}  # fmt: skip
SAMPLES["fft.fft"] += [
    S(np.sin(np.arange(384, dtype=np.float32) ** 2).reshape(3, 128)).but(variants=("shared",), **once),
    S(normal(48, 3), dim=0).but(variants=("shared",), **once), *long(1, 256, 61, 67),
    S(below(9, 6)).but(**once), bad("a tensor without axes", np.float32(1))]  # fmt: skip
SAMPLES["fft.fftn"] += [S(np.float32(3)).but(**once), S(normal(2, 3, 4), dim=1).but(**once)]
SAMPLES["fft.rfft"] += [
    S(np.sin(np.arange(512, dtype=np.float32) ** 2).reshape(2, 256)).but(variants=("shared",), **once)
]
SAMPLES["fft.rfftn"] += [bad("no axis", np.float32(3))]
SAMPLES |= {
    "fft.fftfreq": [S(7, 0.5).but(**once), S(4).but(**once), S(0).but(**once)],
    "fft.rfftfreq": [S(7, 0.5).but(**once), S(4).but(**once)],
    **{
        f"fft.{name}": [S(normal(3, 4)), S(normal(3, 4), (1,)).but(**once), S(normal(3, 4), 0).but(**once)]
        for name in ("fftshift", "ifftshift")
    }
}  # fmt: skip


def window(*settings: dict, **of: float) -> list[Sample]:
    """Of lengths with a meaning of their own, symmetric and not."""
    usual = [S(n, sym=sym, **of) for n, sym in ((0, True), (1, True), (1, False), (8, True), (7, False))]
    made = [s.but(**once) for s in (*usual, *[S(7, **own) for own in settings])]
    return [*made, bad("-1 elements", -1, **of), bad("float32 or float64", 4, dtype="float16", **of)]


def older(*settings: tuple) -> list[Sample]:
    """Of the names in `pellucid`."""
    made = [S(*args).but(**once) for args in ((8,), (1,), (7, False), *settings)]
    return [*made, bad("floating-point type", 4, dtype="int64")]


SAMPLES |= {
    **{f"signal.windows.{name}": window() for name in ("bartlett", "blackman", "cosine", "hamming", "hann",
        "nuttall")},
    "signal.windows.exponential": [*window({"center": 2.0, "sym": False}, {"tau": 3.0}),
        bad("must be positive", 4, tau=0.0), bad("has its own", 4, center=1.0)],
    "signal.windows.gaussian": [*window({"std": 2.0}), bad("must be positive", 4, std=0.0)],
    "signal.windows.general_cosine": [*window(a=[0.4, 0.35, 0.25]), bad("empty", 4, a=[]),
        bad("several numbers", 4, a=1)],
    "signal.windows.general_hamming": window(alpha=0.6),
    "signal.windows.kaiser": [*window(beta=5.0), bad("not be negative", 4, beta=-1.0)],
    **{f"{name}_window": older() for name in ("bartlett", "blackman", "hann")},
    "hamming_window": older((5, True, 0.5), (5, True, 0.5, 0.4)),
    "kaiser_window": older((5, True, 3.0))
}  # fmt: skip

signal, tap = normal(2, 24), np.abs(normal(8)) + np.float32(0.5)
spectra, half = (normal(8, 7) + 1j * normal(8, 7)).astype(np.complex64), z[:, :5].T.copy()
line = {**once, "rtol": 1e-4}
SAMPLES |= {
    "stft": [
        *[
            s.but(**line) for s in (
                S(signal, 8, window=tap, return_complex=True),
                S(signal[0], 8, 3, window=tap, normalized=True, pad_mode="circular", return_complex=True),
                S(z, 8, 3, window=tap, center=False),
                S(signal, 8, 3, onesided=False, return_complex=False).but(second=False),
                S(signal, 12, 5, 8, tap, center=False, align_to_window=True, return_complex=True)
            )
        ],
        bad("return_complex must", signal, 8), bad("no one-sided", z, 8, onesided=True),
        bad("for center=False", signal, 8, align_to_window=True, return_complex=True),
        bad("takes", normal(2, 2, 9), 4, center=False, return_complex=True),
        bad("signal has 24", signal, 25, center=False, return_complex=True),
        bad("must be positive", signal, 8, 0, return_complex=True),
        bad("for a win_length of 8", signal, 8, window=tap[:4], return_complex=True)
    ],
    "istft": [
        *[
            s.but(**line) for s in (
                S(half, 8, 2, window=tap), S(half, 8, 3, window=tap, length=9, center=False, normalized=True),
                S(half, 8, 3, window=tap, length=30), S(half, 9, 3, 8, window=tap),
                S(spectra, 8, 3, window=tap, onesided=False),
                S(spectra, 8, 3, window=tap, onesided=False, return_complex=True),
                S(spectra, 8, 2, 6, window=tap[:6] * (1 + 1j), onesided=False, return_complex=True),
                S(np.stack([half, half]), 8, 2).but(second=False)
            )
        ],
        bad("takes complex", signal, 8), bad("takes .batch", half[None, None], 8),
        bad("frequencies are not", half, 12),
        bad("leaves gaps", half, 8, 6, 4), bad("gives a real signal", half, 8, return_complex=True),
        bad("needs return_complex", half, 8, window=tap + 0j), bad("add up to 0", half, 8, window=0 * tap)
    ]
}  # fmt: skip
