"""Hooks at points: a probe changes the value there and keeps it, also as a part of captured calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from math import sqrt
from typing import Any

from ..errors import DimensionError
from ..nn.hooks import Tap
from ..nn.kept import Kept
from ..ops.elementwise.comparison import where
from ..ops.norm.softmax import softmax
from ..ops.shape.creation import arange
from ..ops.shape.joining import cat, stack
from ..tensors.tensor import Tensor
from .changes import Change
from .paths import first_tensor
from .points import KINDS, Point


class Clock(Tap):
    """Which positions of the sequence a call of the model is about: a hook before the call.

    Attributes:
        start: the first of them; a symbol while a step is captured.
        time: how many.
    """

    def __init__(self):
        super().__init__(Kept(), "")
        self.kind = "clock"
        self.start: Any = 0
        self.time = 0

    def __call__(self, module: Any, args: tuple, kwargs: Any) -> None:
        ids = args[0] if args else kwargs.get("input_ids")
        cache = args[2] if len(args) > 2 else kwargs.get("past_key_values")
        self.start = getattr(cache, "length", 0)
        self.time = ids.shape[1] if isinstance(ids, Tensor) and ids.ndim > 1 else 0

    def within(self, positions: Sequence[int] | None, length: int) -> list[int] | None:
        """Positions of the sequence as such of a value that has the last ``length`` ones; None for all."""
        if positions is None:
            return None
        fixed = [p for p in positions if p >= 0]
        found = [length + p for p in positions if p < 0]
        # One comparison, so that all steps behind these positions are one program.
        if fixed and not self.start > max(fixed):
            first = self.start + (self.time - length if self.time else 0)
            found += [p - first for p in fixed]
        return [k for k in found if 0 <= k < length]


class Visible:
    """Which keys a call sees: mostly the same in all layers, so the first of its probes makes it.

    Args:
        last: address of the probe that runs last, and lets go of it.
    """

    def __init__(self, last: str):
        self.last = last
        self._begin: Any = None
        self._keys: Tensor | None = None

    def keys(self, begin: Any, time: int, keys: int, device: Any) -> Tensor:
        """Booleans (time, keys), where the first query is at ``begin``."""
        found = self._keys if begin is self._begin else None
        if found is None or found.shape != (time, keys) or found.device != device:
            positions, steps = (arange(n, device=device) for n in (keys, time))
            found = positions - steps.unsqueeze(1) <= begin
            self._begin, self._keys = begin, found
        return found

    def leave(self, address: str) -> None:
        """The probe at an address is done: what a captured call makes must not outlive it."""
        if address == self.last:
            self._begin = self._keys = None


class Probe(Tap):
    """A tap at one point.

    Args:
        seen: where the value is kept.
        point: where it stands.
        changes: what is done to it first.
        clock: of the model; None where no change is about single positions.
        keeps: whether the value is kept.
        shared: what the probes of one attention tell each other.
        visible: what all probes of attention share.
    """

    def __init__(
        self,
        seen: Kept,
        point: Point,
        changes: Sequence[Change | Callable] = (),
        clock: Clock | None = None,
        keeps: bool = True,
        shared: dict[str, Tensor] | None = None,
        visible: Visible | None = None,
    ):
        super().__init__(seen, point.address)
        self.point, self.changes, self.clock, self.keeps = point, tuple(changes), clock, keeps
        self.shared = {} if shared is None else shared
        self.visible = visible or Visible(point.address)
        self.kind = point.address, point.path, self.changes, keeps

    def __call__(self, module: Any, args: tuple, output: Any) -> Any:
        """The hook; before a call ``output`` is the keyword arguments."""
        if Tap.is_quiet:
            return None
        form = self.point.kind.form
        if form in ("scores", "probs"):
            return self._attention(module, args, output)
        if form == "each_head":
            return self._each_head(module, args, output)
        k = self.point.argument
        old = first_tensor(output) if k is None else args[k]
        value = self._read(old)
        new = self.changed(value)
        if self.keeps:
            self.keep(new)
        if new is value:
            return None
        new = self._written(old, new)
        if k is not None:
            return (*args[:k], new, *args[k + 1 :]), output
        return (new, *output[1:]) if isinstance(output, tuple) else new

    def changed(self, value: Tensor) -> Tensor:
        """The value after all changes."""
        axes = self.point.axes
        for change in self.changes:
            if not isinstance(change, Change):
                value = change(value)
                continue
            chosen = None
            if self.clock is not None and change.positions is not None:
                chosen = self.clock.within(change.positions, value.shape[axes.index("position")])
                if not chosen:
                    continue
            value = change.apply(value, axes, chosen)
        return value

    def _read(self, x: Tensor) -> Tensor:
        form, p = self.point.kind.form, self.point
        if form == "turned":
            return x.transpose(1, 2)
        if p.part >= 0:
            x = x.split([n * p.head_dim for n in p.sizes], -1)[p.part]
        return x.unflatten(-1, (-1, p.head_dim)) if form == "columns" else x

    def _written(self, old: Tensor, new: Tensor) -> Tensor:
        form, p = self.point.kind.form, self.point
        if form == "turned":
            return new.transpose(1, 2)
        new = new.flatten(-2) if form == "columns" else new
        if p.part < 0:
            return new
        parts = list(old.split([n * p.head_dim for n in p.sizes], -1))
        parts[p.part] = new
        return cat(parts, -1)

    def _attention(self, module: Any, args: tuple, output: Any) -> Any:
        """Scores or probabilities, computed beside the kernel, whose output stays unless they are changed."""
        query, key, value = args[:3]
        cache, mask, sinks = (*args[3:], None, None, None)[:3]
        end: Any = None
        if cache is not None:
            # The keys of this call are written; it is counted when all layers have theirs.
            end = cache.length + query.shape[2]
            key, value = cache.keys[self.point.layer], cache.values[self.point.layer]
            if end > key.shape[2]:
                raise DimensionError(
                    f"lens: {self.point.address}: the window of {key.shape[2]} positions has forgotten some "
                    f"of the {int(end)}. Look at a shorter text, or run it without a cache."
                )
            if type(end) is int:
                key, value = key[:, :, :end], value[:, :, :end]
                mask, end = None if mask is None else mask[..., :end], None
            elif mask is not None:
                mask = mask[..., : key.shape[2]]
        scores = self.shared.pop("scores", None)
        if scores is None:
            # A mask without a cache says all that is hidden.
            begin = cache.length if cache is not None else 0 if mask is None else None
            settings = getattr(module, "scale", None), getattr(module, "soft_cap", 0.0)
            scores = _scores(query, key, mask, *settings)
            if begin is not None:
                sizes = query.shape[2], key.shape[2], query.device
                scores = where(self.visible.keys(begin, *sizes), scores, float("-inf"))
            self.visible.leave(self.point.address)
        if self.point.kind.form == "scores":
            new = self.changed(scores)
            self.shared["scores"] = new
            result, probs = new, None if new is scores else _weights(new, sinks)
        else:
            old = _weights(scores, sinks)
            result = self.changed(old)
            probs = None if result is old else result
        if self.keeps:
            # While a step is captured the whole memory of the cache is looked at: trimmed when it is read.
            self.keep(result if end is None else (result, end))
        return None if probs is None else _mixed(probs, value)

    def _each_head(self, module: Any, args: tuple, output: Tensor) -> Tensor | None:
        """What each head adds to the residual: its columns through the last projection, without the bias."""
        z = args[0]
        heads = z.unflatten(-1, (-1, self.point.head_dim))
        count = heads.shape[-2]
        # Run as it is, whichever way its weight lies; a bias is no head's.
        alone = [module.forward(z * _block(k, count, self.point.head_dim, z)) for k in range(count)]
        bias = getattr(module, "bias", None)
        value = stack(alone, 2) if bias is None else stack(alone, 2) - bias
        new = self.changed(value)
        if self.keeps:
            self.keep(new)
        if new is value:
            return None
        out = new.sum(2)
        return out if bias is None else out + bias


def _block(head: int, heads: int, columns: int, like: Tensor) -> Tensor:
    """Ones in the columns of one head."""
    numbers = arange(heads * columns, device=like.device)
    return ((numbers >= head * columns) & (numbers < (head + 1) * columns)).to(like.dtype)


def _scores(query: Tensor, key: Tensor, mask: Tensor | None, scale: float | None, soft_cap: float) -> Tensor:
    """``query @ key^T / sqrt(head_dim)``, minus infinity where a mask hides a key."""
    batch, heads, time, columns = query.shape
    shared = key.shape[1]
    grouped = query.reshape(batch, shared, heads // shared * time, columns)
    scores = (grouped @ key.transpose(-1, -2)).reshape(batch, heads, time, key.shape[2])
    scores = scores * (1 / sqrt(columns) if scale is None else scale)
    if soft_cap:
        scores = (scores / soft_cap).tanh() * soft_cap
    if mask is not None:
        scores = where(mask, scores, float("-inf")) if mask.dtype.kind == "b" else scores + mask
    return scores


def _weights(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """Probabilities of keys; sinks (heads,) are scores of one more key, which is left out."""
    if sinks is None:
        return softmax(scores, -1)
    more = sinks.reshape(-1, 1, 1).expand(*scores.shape[:3], 1)
    return softmax(cat([scores, more], -1), -1)[..., :-1]


def _mixed(probs: Tensor, value: Tensor) -> Tensor:
    """Values, mixed by probabilities: (batch, heads, time, head_dim)."""
    batch, heads, time, keys = probs.shape
    shared = value.shape[1]
    grouped = probs.reshape(batch, shared, heads // shared * time, keys)
    return (grouped @ value).reshape(batch, heads, time, value.shape[3])


def hook(
    stack: ExitStack,
    model: Any,
    seen: Kept,
    found: Mapping[str, Point],
    changes: Mapping[str, Sequence[Any]],
    keeps: Collection[str],
    clock: Clock | None = None,
    plain: bool = False,
) -> None:
    """Register the probes of some points until a stack ends.

    Args:
        stack: which takes them out again.
        model: the module that has the points.
        seen: where values are kept.
        found: the points by address.
        changes: what is done at which.
        keeps: addresses of values that are kept.
        clock: of the model.
        plain: they run Python that no capture may leave out.
    """
    modules, shared = dict(model.named_modules()), {}
    names = list(KINDS)
    # Of one attention the probe of its scores computes them, also for that of its probabilities.
    beside = [p for p in found.values() if p.kind.form in ("scores", "probs")]
    last = max(beside, key=lambda p: (p.layer, -names.index(p.name)), default=None)
    visible = None if last is None else Visible(last.address)
    # Those of one module stand in the order of what they compute.
    for p in sorted(found.values(), key=lambda p: names.index(p.name) if p.name in KINDS else -1):
        told: dict[str, Tensor] = shared.setdefault(p.path, {})
        probe = Probe(seen, p, changes.get(p.address, ()), clock, p.address in keeps, told, visible)
        register(stack, modules[p.path], probe, p.argument is not None, plain)


def register(stack: ExitStack, module: Any, tap: Tap, before: bool = False, plain: bool = False) -> None:
    """Hook a tap to a module until a stack ends."""
    stack.callback(tap.end)
    function = tap.__call__ if plain else tap
    if before:
        stack.callback(module.register_forward_pre_hook(function, with_kwargs=True).remove)
    else:
        stack.callback(module.register_forward_hook(function).remove)
