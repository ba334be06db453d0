"""Random numbers: Philox with explicit state, the same words on every device."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...autograd.batching import check_drawing
from ...device import resolved
from ...device.stream import stream
from ...errors import RangeError, ShapeError
from ...op.arguments import named, wrong
from ...tensors.construct import tensor
from ...tensors.dtypes import uint8
from ...tensors.tensor import Tensor

_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_INCREMENTS = 0x9E3779B9, 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)


class Generator:
    """A stream of random numbers: a seed (the key) and how many blocks of four words are used (the counter).

    Args:
        device: accepted for PyTorch's sake; a generator serves every device.

    Raises:
        DeviceError: there is no such device.

    Source: https://pytorch.org/docs/stable/generated/torch.Generator.html

    Example:
        >>> import pellucid as torch
        >>> g = torch.Generator().manual_seed(7)
        >>> a = torch.rand(3, generator=g, device="cpu")
        >>> a.tolist() == torch.rand(3, generator=g.manual_seed(7), device="cpu").tolist()
        True
    """

    def __init__(self, device=None):
        _note_seeding()
        self.device = resolved("cpu" if device is None else device)
        self.seed_value = 0
        self.offset = 0

    def manual_seed(self, seed: int) -> Generator:
        """Begin anew with this seed and return the generator.

        Raises:
            ArgumentError: it is no integer.
            RangeError: it has more than 64 bits.
        """
        _note_seeding()
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
            raise named("manual_seed", wrong("seed", "an integer", seed))
        if not -1 << 63 <= seed < 1 << 64:
            raise RangeError(f"manual_seed: seed is {seed}, which has more than 64 bits. Give a smaller one.")
        self.seed_value = int(seed) & 0xFFFFFFFFFFFFFFFF
        self.offset = 0
        return self

    def seed(self) -> int:
        """Begin anew with a seed from the system, and return it."""
        return self.manual_seed(secrets.randbits(64)).seed_value

    def initial_seed(self) -> int:
        """The seed."""
        return self.seed_value

    def get_state(self) -> Tensor:
        """Seed and counter, as a uint8 tensor of shape (16,) on the cpu device."""
        return tensor(np.array([self.seed_value, self.offset], "<u8").view(np.uint8), device="cpu")

    def set_state(self, new_state: Tensor) -> Generator:
        """Go on from a state that `get_state` gave, and return the generator.

        Raises:
            ArgumentError: it is no such state.
            ShapeError: it has another length.
        """
        _note_seeding()
        is_state = isinstance(new_state, Tensor) and new_state.dtype is uint8
        if not is_state or new_state.device.type != "cpu":
            wanted = "a uint8 tensor on the cpu device, as get_state() gives it"
            raise named("set_state", wrong("new_state", wanted, new_state))
        if tuple(new_state.shape) != (16,):
            raise ShapeError(
                f"set_state: a state has shape (16,), not {tuple(new_state.shape)}. Give what get_state() "
                "returned; states of PyTorch are of another generator."
            )
        words = np.ascontiguousarray(new_state.numpy()).view("<u8").tolist()
        self.seed_value, self.offset = words
        return self

    def clone_state(self) -> Generator:
        """Another generator that goes on from where this one is."""
        return Generator(self.device).set_state(self.get_state())

    def get_offset(self) -> int:
        """How many words it has given since its seed: four for each block that the counter counts."""
        return 4 * self.offset

    def set_offset(self, offset: int) -> Generator:
        """Go on behind so many words, and return the generator.

        Args:
            offset: a multiple of 4, from 0 on.

        Raises:
            RangeError: it is none.
        """
        _note_seeding()
        if offset < 0 or offset % 4:
            raise RangeError(f"set_offset: offset must be a multiple of 4 from 0 on, not {offset}.")
        self.offset = offset // 4
        return self

    def take(self, count: int, each: bool = False) -> tuple[int, int, int, int]:
        """Reserve ``count`` words: (seed low, seed high, counter low, counter high). With ``each`` they are
        words for every example within `vmap`."""
        check_drawing(each)
        # No call between these two, so that two threads never get the same words.
        seed, start = self.seed_value, self.offset
        self.offset = (start + -(-count // 4)) & 0xFFFFFFFFFFFFFFFF
        words = seed & 0xFFFFFFFF, seed >> 32, start & 0xFFFFFFFF, start >> 32
        capturing = stream().capturing
        if capturing is None or not count:
            return words
        reason = "it draws random numbers in Python, not on webgpu"
        return capturing.bring(Draw(self, count, capturing.generators), words, reason)


class Draw:
    """Words that a generator reserves in a captured function: at every replay the next ones. ``given`` are
    the generators among the function's arguments."""

    def __init__(self, generator: Generator, count: int, given: list[Generator]):
        self._count = count
        places = (k for k, other in enumerate(given) if other is generator)
        self._source: Generator | int = next(places, generator)

    @property
    def key(self) -> tuple:
        """Equal for those that replays bring alike."""
        found = self._source
        return found if isinstance(found, int) else id(found), self._count

    def of(self, given: list[Generator]) -> Generator:
        """The generator that a call with these arguments draws from."""
        found = self._source
        return given[found] if isinstance(found, int) else found

    def words(self, given: list[Generator]) -> list[int]:
        """Reserve the words of a replay: the generator's seed and counter."""
        return [*self.of(given).take(self._count)]

    def give_back(self, given: list[Generator], words: list[int]) -> None:
        """Let the generator be as it was, where nobody else has drawn since."""
        generator = self.of(given)
        seed, begin = words[0] | words[1] << 32, words[2] | words[3] << 32
        if (generator.seed_value, generator.offset) == (seed, begin + -(-self._count // 4)):
            _note_seeding()
            generator.offset = begin


def _note_seeding() -> None:
    """A replay of a captured function seeds nothing."""
    if (capturing := stream().capturing) is not None:
        capturing.refuse("it seeds a random generator. Seed it before the call")


default_generator = Generator()
default_generator.seed()


def chosen(generator: Generator | None, name: str = "") -> Generator:
    """The generator that a call is given, or the default one; ``name`` is the call's, where nothing else puts
    it before errors."""
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        error = wrong("generator", "a Generator", generator)
        raise named(name, error) if name else error
    return generator


def manual_seed(seed: int) -> Generator:
    """Seed the default generator, for all devices.

    Args:
        seed: what Python makes an integer of.

    Raises:
        ArgumentError, RangeError: it makes none of it, or one of more than 64 bits.

    Source: https://pytorch.org/docs/stable/generated/torch.manual_seed.html
    """
    try:
        whole = int(seed)
    except TypeError:
        raise named("manual_seed", wrong("seed", "an integer", seed)) from None
    except (ValueError, OverflowError):
        raise RangeError(f"manual_seed: seed is {seed!r}, which is no integer.") from None
    return default_generator.manual_seed(whole)


def seed() -> int:
    """Seed the default generator from the system, and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, a uint8 tensor on the cpu device.

    Source: https://pytorch.org/docs/stable/generated/torch.get_rng_state.html
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator.

    Args:
        new_state: what `get_rng_state` gave, or a copy.

    Raises:
        ArgumentError, ShapeError: it is no such state.

    Source: https://pytorch.org/docs/stable/generated/torch.set_rng_state.html
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **ignored: Any) -> Iterator[None]:
    """Give the default generator its state back at the end of a block.

    Args:
        devices: accepted for PyTorch's sake; one generator serves every device.
        enabled: False for a block that changes it.
        ignored: further settings of PyTorch's.

    Source: https://pytorch.org/docs/stable/random.html#torch.random.fork_rng
    """
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


def words(count: int, seed_low: int, seed_high: int, offset_low: int, offset_high: int) -> np.ndarray:
    """``count`` random words, Philox4x32-10.

    Returns:
        uint32 array.

    Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", section 4.3.
    """
    places = np.arange(-(-count // 4), dtype=np.uint64)
    return blocks(places, 0, seed_low, seed_high, offset_low, offset_high).reshape(-1)[:count]


def blocks(
    places: np.ndarray, again: int, seed_low: int, seed_high: int, offset_low: int, offset_high: int
) -> np.ndarray:
    """Blocks of four random words, (blocks, 4) uint32, of their numbers from the counter on; ``again`` says
    how often the same blocks were asked for more words."""
    counters = places + np.uint64(offset_low | offset_high << 32)
    x, y = counters & _LOW, counters >> np.uint64(32)
    z, w = np.full_like(x, again), np.zeros_like(x)
    key = [seed_low, seed_high]
    for _ in range(10):
        first, second = _MULTIPLIERS[0] * x, _MULTIPLIERS[1] * z
        x, y, z, w = (
            (second >> np.uint64(32)) ^ y ^ np.uint64(key[0]),
            second & _LOW,
            (first >> np.uint64(32)) ^ w ^ np.uint64(key[1]),
            first & _LOW,
        )
        key = [(k + i) & 0xFFFFFFFF for k, i in zip(key, _INCREMENTS, strict=True)]
    return np.stack([x, y, z, w], 1).astype(np.uint32)
