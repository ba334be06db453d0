"""Every exception that Pellucid raises on purpose, and how it warns. Each also is the Python class that a
PyTorch user would catch."""

import sys
import warnings
from pickle import UnpicklingError


class PellucidError(Exception):
    """Common parent: ``except pellucid.errors.PellucidError`` catches what the library itself raises."""


class ShapeError(PellucidError, ValueError, RuntimeError):
    """Shapes or axes do not fit (PyTorch raises RuntimeError here, NumPy ValueError: this is both)."""


class DimensionError(PellucidError, IndexError, RuntimeError):
    """A dimension or a position is outside the range that the tensor has (PyTorch raises IndexError here, in
    some places another RuntimeError: this is both)."""


class IndexOutOfRange(DimensionError):
    """A kernel met an index outside its table; raised by the next read."""


class ArgumentError(PellucidError, TypeError, RuntimeError):
    """An argument is of a type that the call does not take (PyTorch raises TypeError here, in some places
    RuntimeError: this is both)."""


class RangeError(PellucidError, ValueError, OverflowError, RuntimeError):
    """A number is outside of what its place can hold (PyTorch raises RuntimeError here, Python and NumPy
    OverflowError or ValueError: this is all of them)."""


class DTypeError(PellucidError, TypeError, NotImplementedError):
    """A dtype has no rule or no kernel on this device (PyTorch raises NotImplementedError or another
    RuntimeError)."""


class DeviceError(PellucidError, RuntimeError):
    """No WebGPU, a lost device, a limit exceeded, tensors on different devices, a read that cannot wait."""


class OutOfMemoryError(DeviceError):
    """The device could not give the memory, after everything unused was given back."""


class KernelError(PellucidError, RuntimeError):
    """WGSL was rejected, or a hole, binding or parameter has no such name: a mistake in a kernel."""


class MissingError(PellucidError, NotImplementedError):
    """PyTorch has this, Pellucid does not yet."""


class LayoutError(MissingError, ValueError):
    """A layout that no tensor has here: all are strided. Where PyTorch's functions are for strided tensors
    alone they raise ValueError."""


class CheckError(PellucidError, RuntimeError):
    """With PELLUCID_CHECK=1: a kernel and its reference, a window and its ops, or a replay and an eager call
    make different values."""


class GradientError(PellucidError, RuntimeError):
    """Backward through something that has no derivative, through freed values, or with the wrong shape."""


class LinAlgError(PellucidError, RuntimeError):
    """A matrix has no such factorization or solution: it is singular, not positive-definite, or an iteration
    did not end."""


class FormatError(PellucidError, ValueError):
    """Bytes are not what their file format says: names the file, the offset, what was expected and what is
    there."""


class UnsafeError(FormatError, UnpicklingError):
    """A pickle is broken or asks for more than may be read of it; PyTorch raises UnpicklingError."""


class WeightError(PellucidError, ValueError, RuntimeError):
    """Parameters are missing, extra or misshapen; all mismatches are reported at once."""


class SourceError(PellucidError, OSError):
    """Bytes could not be fetched: a missing file, a refused request, a connection that stays broken."""


class LoadCancelled(PellucidError):
    """The caller cancelled a load; nothing of it stays allocated."""


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the line of a program that called the library, however deep the caller stands in it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("pellucid."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
