"""The webgpu device from outside, as ``torch.cuda`` is for CUDA: is it there, how much memory is in use, wait
for it."""

from __future__ import annotations

from ..errors import ArgumentError, PellucidError
from ..op.fusion import fusion, is_fusion_enabled, set_fusion
from ..op.plan_cache import forget_plans
from ..tensors.dtypes import float32
from .stream import UNLIMITED, stream


def is_available() -> bool:
    """Whether a webgpu device can be opened here. Opens it."""
    try:
        stream().open()
    except (PellucidError, ImportError):
        return False
    return True


async def open_async() -> None:
    """Open the device where Python cannot block; needed once, before the first op.

    Raises:
        DeviceError: there is no WebGPU here.
    """
    await stream().open_async()


def device_count() -> int:
    """1 where webgpu is available, else 0."""
    return int(is_available())


def get_device_name(device=None) -> str:
    """The adapter's name."""
    info = stream().open().info
    return info.description or f"{info.vendor} {info.architecture}".strip()


def get_device_properties(device=None):
    """What the adapter is and offers: host, vendor, architecture, features, limits, immediates."""
    return stream().open().info


def synchronize() -> None:
    """Wait until everything asked for so far is done."""
    stream().synchronize()


async def synchronize_async() -> None:
    """The awaitable twin of `synchronize`."""
    await stream().synchronize_async()


def memory_allocated() -> int:
    """Bytes of tensors that are alive."""
    return stream().allocated


def max_memory_allocated() -> int:
    """The most bytes that were alive at the end of a window since `reset_peak_memory_stats`."""
    return max(stream().peak, stream().allocated)


def reset_peak_memory_stats() -> None:
    """Begin anew to watch for `max_memory_allocated`."""
    stream().peak = stream().allocated


def memory_reserved() -> int:
    """Bytes of device buffers, in use or kept for reuse."""
    s = stream()
    s.flush()
    return s.open().stats()["reserved_bytes"]


def memory_stats() -> dict[str, int]:
    """Counters of the device: bytes alive by kind (weight, parameter, cache, activation), buffers, dispatches
    and so on. Of the dispatches so many `pipelines` and `bind_groups` had to be made; others found theirs."""
    s = stream()
    s.flush()
    counted = {k: v for k, v in s.by_kind.items() if k != "activation"}
    by_kind = {**counted, "activation": s.allocated - sum(counted.values())}
    return {
        "allocated_bytes": s.allocated,
        "peak_bytes": max_memory_allocated(),
        **{f"{k}_bytes": v for k, v in by_kind.items()},
        "flushes": s.flushes,
        **s.open().stats(),
    }


def empty_cache() -> None:
    """Give buffers that are kept for reuse back to the system."""
    s = stream()
    s.flush()
    if s.host is not None:
        s.host.trim()


def set_float64_precision(precision: str) -> None:
    """What becomes of float64 and complex128 on this device, which computes in neither.

    With "float32" tensors keep their dtype, and all their bits where they are made, copied, viewed, moved and
    read; what ops compute is computed in float32, complex64, and has their precision and range. The first
    such tensor of a process warns.

    Args:
        precision: "none", the default, refuses these types with an error; "float32".

    Raises:
        ArgumentError: another word.

    Example:
        >>> import pellucid as torch
        >>> torch.webgpu.set_float64_precision("float32")
        >>> torch.ones(2, dtype=torch.float64).sum()  # doctest: +SKIP
        tensor(2., dtype=pellucid.float64)
        >>> torch.webgpu.set_float64_precision("none")
    """
    from ..ops.wide import let_in

    if precision not in ("none", "float32"):
        raise ArgumentError(f'set_float64_precision: give "none" or "float32", not {precision!r}.')
    let_in(precision == "float32")


def get_float64_precision() -> str:
    """What `set_float64_precision` said last."""
    from ..op.kernel.element_types import float64_precision

    return float64_precision


def set_memory_limit(nbytes: int | None) -> None:
    """The most bytes that tensors may take; None for no limit.

    Past it unused memory is collected, and if that is not enough an OutOfMemoryError is raised.
    """
    stream().limit = UNLIMITED if nbytes is None else nbytes


def tune(products=None, *, dtype=float32, seconds: float = 50.0, keep: bool = True, on_progress=None):
    """Measure which kernels multiply and convolve the fastest on this device, and use them from here on.

    Only a call of this changes what is used: kernels are else chosen by shape and device alone. Products of
    other sizes take the measurement of their neighbours (sizes up to the next of 1, 2, 3, 4, 6, 8, 12 and so
    on); sums may then be added in another order than before. `pellucid.use_deterministic_algorithms` ignores
    all measurements. Where it is interrupted, what was measured by then is used and kept.

    Args:
        products: pairs of a layout and sizes. The layout has a letter for either matrix: "n" lies row by row,
            "t" is the transposed of such a matrix, so that "nt" is what a linear layer does. Sizes are (rows,
            columns, depth), with a batch before them or not. Or "conv2d" and (batch, channels, height, width,
            channels made, kernel) of a convolution with stride 1. None for a list of usual ones.
        dtype: of the matrices and images.
        seconds: no further measurement is begun after so long.
        keep: write the result down for later processes and pages, for as long as the browser's version stays
            the same, or natively those of wgpu and the driver: natively in the user's cache folder, in a page
            in the storage of its origin. The variable PELLUCID_TUNING names another file, or, if it is empty,
            none. What cannot be written is a warning.
        on_progress: called with a `TuneProgress` after each product; its str() is a line of text.

    Returns:
        For each product its fastest variant and what was measured; ``kept`` says where it was written down.

    Raises:
        ShapeError: a layout or sizes that are neither a product nor a convolution.
        DTypeError: a dtype that is not float32, float16 or bfloat16.

    Example:
        >>> import pellucid as torch
        >>> torch.webgpu.tune([("nt", (512, 1536, 576))], on_progress=print)  # doctest: +SKIP
    """
    from ..op.kernel.autotune import measured as tuned
    from ..op.kernel.autotune import tune as tuning

    found = tuning.Measurements()
    try:
        tuning.run(tuning.steps(products, dtype, seconds, on_progress, found))
    finally:
        if keep and found:
            found.kept = tuned.keep(get_device_properties(), found.variants)
    return found


async def tune_async(
    products=None, *, dtype=float32, seconds: float = 50.0, keep: bool = True, on_progress=None
):
    """The awaitable twin of `tune`."""
    from ..op.kernel.autotune import measured as tuned
    from ..op.kernel.autotune import tune as tuning

    found = tuning.Measurements()
    try:
        await tuning.run_async(tuning.steps(products, dtype, seconds, on_progress, found))
    finally:
        if keep and found:
            found.kept = await tuned.keep_async(get_device_properties(), found.variants)
    return found


def forget_tuning() -> None:
    """Forget what `tune` measured on this device, here and where it was kept: kernels are chosen as before.

    Raises:
        OSError: what was kept cannot be written over.
    """
    from ..op.kernel.autotune import measured as tuned

    try:
        tuned.forget(get_device_properties())
    finally:
        forget_plans()


async def forget_tuning_async() -> None:
    """The awaitable twin of `forget_tuning`."""
    from ..op.kernel.autotune import measured as tuned

    try:
        await tuned.forget_async(get_device_properties())
    finally:
        forget_plans()


def reset() -> None:
    """Close the device, for example after it was lost. Tensors on it are gone; the next op opens it anew."""
    stream().close()


def flush() -> None:
    """Submit what is recorded without waiting for it."""
    stream().flush()


__all__ = [
    "device_count", "empty_cache", "flush", "forget_tuning", "forget_tuning_async", "fusion",
    "get_device_name", "get_device_properties",
    "is_available", "is_fusion_enabled", "max_memory_allocated", "memory_allocated", "memory_reserved",
    "memory_stats", "open_async", "reset", "reset_peak_memory_stats", "set_fusion", "set_memory_limit",
    "synchronize", "synchronize_async", "tune", "tune_async",
]  # fmt: skip
