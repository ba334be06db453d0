"""What programs for other devices ask of a tensor: where it lies, what it shares, who else can read it."""

from __future__ import annotations

from inspect import getattr_static
from typing import TYPE_CHECKING, Any, NoReturn, Self

from ..device import device as Device
from ..errors import ArgumentError, DeviceError, DTypeError, GradientError
from . import formats
from .absent import Absent
from .dtypes import bfloat16, uint8
from .reading import Readable

_NO_DEVICE = (
    "there is no {0} device here: kernels run on 'webgpu', whatever GPU is behind it. Use .to('webgpu'), or "
    "choose the device by torch.{0}.is_available(), which is False."
)


class UntypedStorage:
    """The memory of a tensor, which several tensors may share.

    Args:
        of: the tensor.

    Attributes:
        device: where it is.
    """

    def __init__(self, of: Any):
        self._of, self._storage = of.detach(), of._storage
        self.device = of._meta.device

    def data_ptr(self) -> int:
        """A number that is equal for tensors that share this memory."""
        return id(self._storage)

    def nbytes(self) -> int:
        """Its length in bytes."""
        return self._storage.nbytes

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def element_size(self) -> int:
        """1: it is bytes."""
        return 1

    def get_device(self) -> int:
        """The number of its GPU, which is 0; -1 on the cpu device."""
        return 0 if self.device.type == "webgpu" else -1

    def tolist(self) -> list[int]:
        """Its bytes."""
        return self._elements().view(uint8).tolist()

    def __getitem__(self, place: int | slice) -> Any:
        return self.tolist()[place]

    def _elements(self) -> Any:
        """All that lies in it, of the dtype of the tensor."""
        return self._of.as_strided((self.nbytes() // self._of.element_size(),), (1,), 0)

    is_cuda = is_hpu = is_sparse = is_sparse_csr = False
    size = __len__ = nbytes
    _cdata = property(data_ptr)


class TypedStorage:
    """The memory of a tensor as elements: what `Tensor.storage` gave before `untyped_storage`.

    Args:
        of: the tensor.

    Attributes:
        dtype: of the elements.
    """

    is_cuda = is_hpu = is_sparse = False

    def __init__(self, of: Any):
        self._untyped_storage, self.dtype = UntypedStorage(of), of._meta.dtype

    @property
    def device(self) -> Device:
        """Where it is."""
        return self._untyped_storage.device

    def untyped(self) -> UntypedStorage:
        """The memory as bytes."""
        return self._untyped_storage

    def data_ptr(self) -> int:
        """A number that is equal for tensors that share this memory."""
        return self._untyped_storage.data_ptr()

    def nbytes(self) -> int:
        """Its length in bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Bytes of an element."""
        return self._untyped_storage._of.element_size()

    def size(self) -> int:
        """How many elements it has."""
        return self.nbytes() // self.element_size()

    __len__ = size
    _cdata = property(data_ptr)

    def get_device(self) -> int:
        """The number of its GPU, which is 0; -1 on the cpu device."""
        return self._untyped_storage.get_device()

    def tolist(self) -> list[Any]:
        """Its elements."""
        return self._untyped_storage._elements().tolist()

    def __getitem__(self, place: int | slice) -> Any:
        return self.tolist()[place]


class Portable(Readable):
    """Attributes and methods of Tensor that say what kind of tensor it is, in terms of PyTorch's devices,
    layouts and modes."""

    if TYPE_CHECKING:
        _backward_hooks: Any

    is_cuda = is_xpu = is_mps = is_xla = is_ipu = is_hpu = is_vulkan = is_mkldnn = is_maia = is_mtia = False
    is_sparse = is_sparse_csr = is_nested = False
    layout = formats.strided
    name = None
    output_nr = 0

    def __dir__(self) -> list[str]:
        return [
            name for name in object.__dir__(self) if not isinstance(getattr_static(self, name, None), Absent)
        ]

    @property
    def is_cpu(self) -> bool:
        """Whether it lies on the cpu device."""
        return self._meta.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        """Whether it is a shape without values."""
        return self._meta.device.type == "meta"

    @property
    def is_quantized(self) -> bool:
        """Whether it is a weight of quantized blocks."""
        return self._meta.dtype.is_quantized

    def is_contiguous(self, memory_format: Any = formats.contiguous_format) -> bool:
        """Whether the elements lie without gaps, in row-major order or in that of ``memory_format``."""
        if memory_format is formats.contiguous_format:
            return self._meta.is_contiguous
        return formats.is_packed(memory_format, self._meta.shape, self._meta.strides)

    def ndimension(self) -> int:
        """Number of axes."""
        return len(self._meta.shape)

    def get_device(self) -> int:
        """The number of its GPU, which is 0; -1 on the cpu device."""
        return 0 if self._meta.device.type == "webgpu" else -1

    def dim_order(self) -> tuple[int, ...]:
        """The axes from the largest step in memory to the smallest."""
        steps = self._meta.strides
        return tuple(sorted(range(len(steps)), key=lambda axis: -steps[axis]))

    def is_pinned(self, device: Any = None) -> bool:
        """False: there is no memory that is locked for transfers."""
        return False

    def pin_memory(self, device: Any = None) -> Self:
        """The tensor itself: transfers need no locked memory here."""
        return self

    def is_shared(self) -> bool:
        """False: no other process sees the memory."""
        return False

    def share_memory_(self) -> NoReturn:
        """Refused: there are no processes to share memory with."""
        raise DeviceError("share_memory_: no other process can see this memory. Work in one process.")

    def is_set_to(self, tensor: Self) -> bool:
        """Whether another tensor is the same view of the same memory."""
        mine, theirs = self._meta, tensor._meta
        return (
            self._storage is tensor._storage
            and self._offset == tensor._offset
            and (mine.shape, mine.strides, mine.dtype) == (theirs.shape, theirs.strides, theirs.dtype)
        )

    def untyped_storage(self) -> UntypedStorage:
        """The memory, to compare whose tensors are the same and how many bytes they hold."""
        return UntypedStorage(self)

    def storage(self) -> TypedStorage:
        """The memory as elements of this dtype; `untyped_storage` is the newer way to it."""
        return TypedStorage(self)

    # Refused

    def cuda(self, device: Any = None, non_blocking: bool = False) -> NoReturn:
        """Refused: there is no CUDA here. Use ``.to("webgpu")``."""
        raise DeviceError(f"cuda: {_NO_DEVICE.format('cuda')}")

    def ipu(self, device: Any = None, non_blocking: bool = False) -> NoReturn:
        """Refused, as `cuda`."""
        raise DeviceError(f"ipu: {_NO_DEVICE.format('ipu')}")

    def mtia(self, device: Any = None, non_blocking: bool = False) -> NoReturn:
        """Refused, as `cuda`."""
        raise DeviceError(f"mtia: {_NO_DEVICE.format('mtia')}")

    def xpu(self, device: Any = None, non_blocking: bool = False) -> NoReturn:
        """Refused, as `cuda`."""
        raise DeviceError(f"xpu: {_NO_DEVICE.format('xpu')}")

    # Other libraries

    def __dlpack__(self, *, stream: Any = None, **asked: Any) -> Any:
        """The memory for another library, by DLPack; of tensors on the cpu device.

        Args:
            stream: None or -1: a CPU has no streams.
            asked: ``max_version``, ``dl_device`` and ``copy`` of the protocol.

        Raises:
            ArgumentError: a stream.
            DeviceError: it lies elsewhere, where no other library sees it.
            DTypeError: bfloat16, which the cpu device holds as float32.
            GradientError: it requires grad.
        """
        if self._meta.device.type != "cpu":
            raise DeviceError(
                f"__dlpack__: no other library can see memory on {self._meta.device}. Use .cpu() first."
            )
        if self._node is not None:
            raise GradientError("__dlpack__: the tensor requires grad. Use x.detach() first.")
        if self._meta.dtype is bfloat16:
            raise DTypeError("__dlpack__: the cpu device holds bfloat16 as float32. Use x.float() first.")
        if stream not in (None, -1):
            raise ArgumentError(f"__dlpack__: stream is {stream!r}, and a CPU has none. Leave it out.")
        return self.numpy().__dlpack__(**{name: value for name, value in asked.items() if value is not None})

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's number of the CPU.

        Raises:
            DeviceError: it lies elsewhere.
        """
        if self._meta.device.type != "cpu":
            raise DeviceError(
                f"__dlpack_device__: DLPack knows no {self._meta.device} device. Use .cpu() first."
            )
        return 1, 0

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """numpy's results of functions of tensors stay arrays."""
        return array[()] if return_scalar else array

    def __complex__(self) -> complex:
        return complex(self.item())

    def __reversed__(self) -> Self:
        """All axes in reverse order of their elements."""
        return self.flip(tuple(range(len(self._meta.shape))))  # type: ignore[attr-defined]
