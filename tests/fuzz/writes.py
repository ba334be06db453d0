"""Steps of random programs that write into a tensor, drop one, or submit what waits."""

from __future__ import annotations

import re
from typing import Any

from drawing import Drawing, Maker, Step, dtype_of, maker
from laws import ADD, CAST, MOVE, MULTIPLY, SMOOTH, SUM

MAKERS: list[tuple[int, Maker]] = []


def target(d: Drawing) -> tuple[str, Any, str]:
    """What is written into: the variable, the tensor written, its text."""
    rng = d.rng
    name, t = d.pick()
    if not t.ndim or rng.random() < 0.35:
        return name, t, name
    return name, t, f"{name}[{d.index(t, write=True)}]"


def apart(d: Drawing, name: str, text: str) -> str:
    """PyTorch's operand: a copy where it shares the target's memory, which we promise and it does not."""
    return re.sub(r"(\bv\d+\b(\.mT)?)", r"\1.clone()", text)


@maker(MAKERS, 14)
def assigned(d: Drawing) -> Step:
    name, t, where = target(d)
    if where == name:
        where = f"{name}[...]"
    other, theirs, reads = d.partner(name, t)
    return Step(
        f"{where} = {other}", f"{where} = {apart(d, name, theirs)}", (name, *reads), writes=name, law=CAST
    )


@maker(MAKERS, 12)
def updated(d: Drawing) -> Step:
    name, t, where = target(d)
    other, theirs, reads = d.partner(name, t)
    sign, law = d.rng.choice((("+=", ADD), ("-=", ADD), ("*=", MULTIPLY)))
    return Step(
        f"{where} {sign} {other}",
        f"{where} {sign} {apart(d, name, theirs)}",
        (name, *reads),
        writes=name,
        law=law,
    )


@maker(MAKERS, 10)
def methods_in_place(d: Drawing) -> Step:
    name, t, where = target(d)
    other, theirs, reads = d.partner(name, t)
    sides = apart(d, name, theirs)
    one, bound = d.fill(dtype_of(t)), d.bound(dtype_of(t))
    text, law, operand = d.rng.choice((
        ("zero_()", MOVE, False), (f"fill_({one})", MOVE, False), (f"clamp_(min={bound})", MOVE, False),
        ("neg_()", MOVE, False), ("abs_()", MOVE, False), ("relu_()", MOVE, False),
        ("add_(#)", ADD, True), ("sub_(#)", ADD, True), ("mul_(#)", MULTIPLY, True), ("copy_(#)", CAST, True),
        ("tanh_()", SMOOTH, False), ("square_()", MULTIPLY, False),
    ))  # fmt: skip
    if text == "copy_(#)" and not reads:
        raise LookupError
    return Step(
        f"{where}.{text.replace('#', other)}",
        f"{where}.{text.replace('#', sides)}",
        (name, *(reads if operand else ())),
        writes=name,
        law=law,
    )


@maker(MAKERS, 6)
def reversed_in_place(d: Drawing) -> Step:
    """Writes through negative strides, which PyTorch has none of."""
    name, t = d.pick(lambda t: t.ndim > 0)
    axis = d.rng.randrange(t.ndim)
    view = f"{name}[{':, ' * axis}::-1]"
    other, _ = d.pick(lambda o: o.shape == t.shape)
    back = f".flip({axis})"
    text, theirs, law = d.rng.choice((
        (f"{view} = {other}", f"{name}.copy_({other}{back})", CAST),
        (f"{view} += {other}", f"{name} += {other}{back}", ADD),
        (f"{view}.mul_({other})", f"{name} *= {other}{back}", MULTIPLY),
    ))  # fmt: skip
    return Step(text, theirs, (name, other), writes=name, law=law)


@maker(MAKERS, 10)
def indexed_in_place(d: Drawing) -> Step:
    rng = d.rng
    name, t = d.pick(lambda t: t.ndim > 0 and 0 not in t.shape)
    n = t.shape[0]
    length = rng.randint(1, n)
    unique = f"torch.tensor({d.positions(n, length, unique=True)})"
    repeated = f"torch.tensor({d.hole(lambda r: str([r.randrange(n) for _ in range(length)]))})"
    number_ = d.number(dtype_of(t))
    rows = t.shape[1:]
    choices = [
        (f"{name}[{unique}] = {number_}", (name,), MOVE),
        (f"{name}[{unique}] += {number_}", (name,), ADD),
    ]
    for source, s in d.usable.items():
        if s.dtype is t.dtype and s.shape == (length, *rows) and source != name:
            choices += [
                (f"{name}[{unique}] = {source}.clone()", (name, source), MOVE),
                (f"{name}.index_add_(0, {repeated}, {source}.clone())", (name, source), SUM),
                (f"{name}.index_put_(({repeated},), {source}.clone(), accumulate=True)", (name, source), SUM),
            ]
            if t.ndim == 1:
                choices += [
                    (f"{name}.scatter_add_(0, {repeated}, {source}.clone())", (name, source), SUM),
                    (f"{name}.scatter_(0, {unique}, {source}.clone())", (name, source), MOVE),
                ]
    masks = [m for m, o in d.usable.items() if dtype_of(o) == "bool" and o.shape == t.shape and m != name]
    for mask in masks[:2]:
        choices += [(f"{name}[{mask}.clone()] = {number_}", (name, mask), MOVE)] * 2
        choices += [(f"{name}.masked_fill_({mask}.clone(), {number_})", (name, mask), MOVE)]
    text, reads, law = rng.choice(choices)
    return Step(text, None, reads, writes=name, law=law)


@maker(MAKERS, 5)
def dropped(d: Drawing) -> Step:
    name, _ = d.pick()
    if len(d.follower.variables) < 4:
        raise LookupError
    return Step(f"del {name}")


@maker(MAKERS, 2)
def flushed(d: Drawing) -> Step:
    return Step("torch.webgpu.flush()", "pass")
