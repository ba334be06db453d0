"""Whether kernels are chosen by shape and device alone."""

from ...plan_cache import forget_plans

_on = False


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` is on.

    Source: https://pytorch.org/docs/stable/generated/torch.are_deterministic_algorithms_enabled.html
    """
    return _on


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Choose kernels by shape and device alone, never by what `pellucid.webgpu.tune` has measured.

    Every op gives the same bits at every run on one device, in either mode. With ``True`` it also gives the
    same before and after a measurement, and on two devices of one kind that were measured differently.

    Args:
        mode: whether measurements are ignored.
        warn_only: accepted for PyTorch's sake; there is no op that could only warn.

    Source: https://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
    """
    global _on
    if bool(mode) != _on:
        _on = bool(mode)
        forget_plans()
