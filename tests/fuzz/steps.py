"""Steps of random programs that give a new tensor: one function each, by how often it is drawn."""

from __future__ import annotations

import numpy as np
from drawing import FLOATS, INTEGERS, Drawing, Maker, Step, broadcasts, dtype_of, made, maker, plain, values
from laws import ADD, CAST, JUMP, MATMUL, MOVE, MULTIPLY, SMOOTH, SUM, Law, sums

MAKERS: list[tuple[int, Maker]] = []


@maker(MAKERS, 8)
def given(d: Drawing) -> Step:
    rng = d.rng
    dtype = rng.choice((*FLOATS, "float32", "float32", "float32", *INTEGERS, "bool"))
    shape = [rng.choice((1, 2, 3, 3, 4, 5, 7)) for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 4)))]
    if rng.random() < 0.05 and shape:
        shape[rng.randrange(len(shape))] = 0
    n = int(np.prod(shape))
    if rng.random() < 0.12:
        shape = [rng.choice((33, 64, 130, 1)), rng.choice((4, 31, 65))][: rng.choice((1, 2))]
        n = int(np.prod(shape))
        parts = f"torch.arange({n}) * {d.whole(3, 40)} % {d.whole(5, 23)} - {0 if dtype == 'uint8' else 4}"
        return made(d, f"({parts}).to(torch.{dtype}).reshape({tuple(shape)})", (), MOVE)
    more = rng.choice((0, 0, 2, 5))
    text = f"torch.tensor({d.hole(lambda r: values(r, dtype, n + more))}, dtype=torch.{dtype})"
    if more:
        start = d.whole(0, more)
        text += f"[{start}:{start}+{n}]"
    return made(d, f"{text}.reshape({tuple(shape)})", (), MOVE)


@maker(MAKERS, 4)
def filled(d: Drawing) -> Step:
    dtype = d.rng.choice((*FLOATS, *INTEGERS, "bool"))
    shape = tuple(d.rng.randint(1, 4) for _ in range(d.rng.randint(0, 3)))
    text = d.rng.choice((
        f"torch.full({shape}, {d.fill(dtype)}, dtype=torch.{dtype})",
        f"torch.zeros({shape}, dtype=torch.{dtype})",
        f"torch.arange({d.rng.randint(1, 9)}, dtype=torch.{dtype if dtype != 'bool' else 'int64'})",
        f"torch.eye({d.rng.randint(1, 4)})",
    ))  # fmt: skip
    return made(d, text, (), MOVE)


@maker(MAKERS, 14)
def sliced(d: Drawing) -> Step:
    name, t = d.pick(lambda t: t.ndim > 0)
    return made(d, f"{name}[{d.index(t)}]", [name], MOVE)


@maker(MAKERS, 14)
def view(d: Drawing) -> Step:
    rng = d.rng
    name, t = d.pick(lambda t: t.ndim > 0)
    a, b = rng.randrange(t.ndim), rng.randrange(t.ndim)
    order = tuple(rng.sample(range(t.ndim), t.ndim))
    n = t.shape[a]
    choices = [
        f"transpose({a}, {b})",
        f"permute({order})",
        f"movedim({a}, {b})",
        f"unsqueeze({rng.randint(0, t.ndim)})",
        "squeeze()",
        f"flatten({min(a, b)}, {max(a, b)})",
        f"expand({tuple(rng.choice((2, 3)) if s == 1 else s for s in t.shape)})",
        f"expand({rng.randint(1, 3)}, {', '.join('-1' for _ in t.shape)})",
        "reshape(-1)",
        "view(-1)",
        "detach()",
    ]
    if n:
        length = rng.randint(1, n)
        choices += [
            f"narrow({a}, {d.whole(0, n - length)}, {length})",
            f"select({a}, {d.whole(-n, n - 1)})",
            f"unbind({a})[{rng.randrange(n)}]",
            f"split({length}, {a})[{rng.randrange(-(-n // length))}]",
            f"chunk({length}, {a})[0]",
        ]
    if t.ndim > 1 and a != b:
        choices += [f"diagonal({rng.randint(-2, 2)}, {a}, {b})"] * 2 + ["mT"]
    if n and n % 2 == 0:
        choices += [f"unflatten({a}, (2, {n // 2}))", f"unflatten({a}, (-1, 2))"]
    if t.is_contiguous() and t.numel() > 3 and t._storage.nbytes == t.numel() * t.itemsize:
        rows = rng.randint(1, 3)
        columns = rng.randint(1, t.numel() // rows)
        stride = rng.randint(1, columns)
        room = t.numel() - (rows - 1) * stride - columns
        if room >= 0:
            choices += [f"as_strided(({rows}, {columns}), ({stride}, 1), {d.whole(0, room)})"] * 2
    return made(d, f"{name}.{rng.choice(choices)}", [name], MOVE)


@maker(MAKERS, 12)
def arithmetic(d: Drawing) -> Step:
    name, t = d.pick()
    other, theirs, reads = d.partner(name, t)
    sign, law = d.rng.choice((("+", ADD), ("-", ADD), ("*", MULTIPLY)))
    left, right = (name, other) if d.rng.random() < 0.7 else (other, name)
    left_theirs, right_theirs = (name, theirs) if left == name else (theirs, name)
    return made(d, f"{left} {sign} {right}", (name, *reads), law, f"{left_theirs} {sign} {right_theirs}")


@maker(MAKERS, 4)
def divided(d: Drawing) -> Step:
    """Divisors have no zero, whose sign may be any."""
    name, t = d.pick_same(lambda t: dtype_of(t) != "bool")
    other, theirs, reads = d.partner(name, t)
    sign = d.rng.choice(("/", "//", "%"))
    law = SMOOTH if sign == "/" else JUMP
    function = d.rng.choice(("", "", "torch.fmod")) if sign == "%" else ""
    if not reads:
        other = theirs = d.hole(lambda rng: rng.choice(("2", "3", "7")))
    else:
        if not d.follower.state(reads[0]).same:
            raise LookupError
        other, theirs = f"({other}.abs() + 1)", f"({theirs}.abs() + 1)"
    if function:
        return made(d, f"{function}({name}, {other})", (name, *reads), law, f"{function}({name}, {theirs})")
    return made(d, f"{name} {sign} {other}", (name, *reads), law, f"{name} {sign} {theirs}")


@maker(MAKERS, 6)
def compared(d: Drawing) -> Step:
    name, t = d.pick_same()
    other, theirs, reads = d.partner(name, t)
    sign = d.rng.choice(("<", "<=", ">", ">=", "==", "!="))
    return made(d, f"{name} {sign} {other}", (name, *reads), JUMP, f"{name} {sign} {theirs}")


@maker(MAKERS, 5)
def of_bits(d: Drawing) -> Step:
    name, t = d.pick(lambda t: dtype_of(t) not in FLOATS)
    other, _ = d.pick(lambda o: dtype_of(o) not in FLOATS and broadcasts(o.shape, t.shape))
    sign = d.rng.choice(("&", "|", "^", "~", "<<", ">>"))
    if sign == "~":
        return made(d, f"~{name}", [name], MOVE)
    if sign in ("<<", ">>"):
        return made(d, f"{name} {sign} {d.whole(0, 6)}", [name], MOVE)
    return made(d, f"{name} {sign} {other}", [name, other], MOVE)


@maker(MAKERS, 5)
def chosen(d: Drawing) -> Step:
    mask, m = d.pick(lambda t: dtype_of(t) == "bool")
    name, t = d.pick(lambda t: broadcasts(t.shape, m.shape) or broadcasts(m.shape, t.shape))
    kind = d.rng.random()
    if kind < 0.3:
        return made(d, f"{name}.masked_fill({mask}, {d.number(dtype_of(t))})", [name, mask], MOVE)
    other, theirs, reads = d.partner(name, t)
    return made(
        d,
        f"torch.where({mask}, {name}, {other})",
        (mask, name, *reads),
        MOVE,
        f"torch.where({mask}, {name}, {theirs})",
    )


@maker(MAKERS, 8)
def smooth(d: Drawing) -> Step:
    """Functions whose values stay small."""
    function = d.rng.choice(
        ("sin", "cos", "tanh", "sigmoid", "erf", "atan", "asinh", "clamp(-4, 4).exp", "clamp(-9, 3).expm1",
         "clamp(-5, 5).sinh", "abs().add(1).log", "abs().add(1).sqrt", "abs().add(1).rsqrt",
         "abs().add(1).reciprocal", "abs().add(1).log1p", "clamp(-5, 5).exp2", "abs().add(1).log2")
    )  # fmt: skip
    name, _ = d.pick()
    amplifies = "exp" in function or "sinh" in function
    return made(d, f"{name}.{function}()", [name], Law("smooth", steep) if amplifies else SMOOTH)


def steep(errors, peaks, n):
    return 200 * max(errors) + 5e-3


@maker(MAKERS, 7)
def piecewise(d: Drawing) -> Step:
    name, t = d.pick()
    function = d.rng.choice(
        ("abs()", "neg()", "relu()", "positive()", "clone()", "contiguous()", "square()",
         f"clamp({d.bound(dtype_of(t))}, {d.bound(dtype_of(t))})", f"clamp(min={d.bound(dtype_of(t))})")
    )  # fmt: skip
    return made(d, f"{name}.{function}", [name], MULTIPLY if function == "square()" else MOVE)


@maker(MAKERS, 5)
def jumped(d: Drawing) -> Step:
    name, _ = d.pick_same()
    function = d.rng.choice(
        ("round", "floor", "ceil", "trunc", "frac", "sign", "isnan", "isinf", "isfinite", "logical_not")
    )
    return made(d, f"{name}.{function}()", [name], JUMP)


@maker(MAKERS, 5)
def of_two(d: Drawing) -> Step:
    name, t = d.pick()
    other, _ = d.pick(lambda o: broadcasts(o.shape, t.shape))
    function, law = d.rng.choice(
        (("maximum", MOVE), ("minimum", MOVE), ("add", ADD), ("sub", ADD), ("mul", MULTIPLY),
         ("logical_and", JUMP), ("logical_or", JUMP), ("logical_xor", JUMP))
    )  # fmt: skip
    if law is JUMP and not (d.follower.state(name).same and d.follower.state(other).same):
        raise LookupError
    return made(d, f"torch.{function}({name}, {other})", [name, other], law)


@maker(MAKERS, 3)
def of_three(d: Drawing) -> Step:
    name, t = d.pick(lambda t: dtype_of(t) in FLOATS)
    a, _ = d.pick(lambda o: o.dtype is t.dtype and broadcasts(o.shape, t.shape))
    b, _ = d.pick(lambda o: o.dtype is t.dtype and broadcasts(o.shape, t.shape))
    law = Law("exact", lambda e, p, n: sum(e) + 3 * max(e) * max(p) + 1e-5 * max(p) ** 2)
    text = d.rng.choice((
        f"torch.addcmul({name}, {a}, {b}, value={d.whole(-2, 2)})",
        f"torch.lerp({name}, {a}, {d.hole(lambda rng: rng.choice(('0.0', '0.5', '1.0')))})",
        f"torch.lerp({name}, {a}, {b})",
    ))  # fmt: skip
    return made(d, text, [name, a, b], law)


@maker(MAKERS, 8)
def cast(d: Drawing) -> Step:
    name, t = d.pick()
    dtype = d.rng.choice((*FLOATS, *FLOATS, *INTEGERS, "bool"))
    if dtype not in FLOATS and dtype_of(t) in FLOATS:
        name, t = d.pick_same(lambda t: dtype_of(t) in FLOATS)
        bounded = "" if dtype == "bool" else f".clamp({0 if dtype == 'uint8' else -100}, 100)"
        return made(d, f"{name}{bounded}.to(torch.{dtype})", [name], CAST)
    text = d.rng.choice((f".to(torch.{dtype})", f".type(torch.{dtype})"))
    return made(d, f"{name}{text}", [name], CAST)


@maker(MAKERS, 10)
def reduced(d: Drawing) -> Step:
    rng = d.rng
    name, t = d.pick()
    same = d.follower.state(name).same
    axes = ""
    if t.ndim and rng.random() < 0.75:
        count = rng.randint(1, t.ndim)
        chosen = sorted(rng.sample(range(t.ndim), count))
        axes = str(chosen[0]) if count == 1 else str(tuple(chosen))
    keep = "" if not axes or rng.random() < 0.6 else ", keepdim=True"
    one = axes and "(" not in axes
    functions = [("sum", SUM), ("mean", Law("smooth", sums)), ("amax", MOVE), ("amin", MOVE)]
    if same:
        functions += [("any", JUMP), ("all", JUMP), ("count_nonzero", JUMP)]
        if one:
            functions += [("argmax", JUMP), ("argmin", JUMP)]
        if dtype_of(t) not in FLOATS and (one or not axes):
            functions += [("prod", SUM)]
    if t.numel() > 1 and np.isfinite(plain(t)).all():
        functions += (
            [("logsumexp", Law("smooth", lambda e, p, n: max(e) + 1e-4 * (1 + max(p))))] if axes else []
        )
        functions += [("var", Law("smooth", lambda e, p, n: 8 * max(e) * max(p) + 4e-5 * max(p) ** 2 + 1e-6))]
    function, law = rng.choice(functions)
    if function == "count_nonzero":
        keep = ""
    extra = ", correction=0" if function == "var" and axes else ""
    return made(d, f"{name}.{function}({axes}{keep}{extra})", [name], law)


@maker(MAKERS, 5)
def scanned(d: Drawing) -> Step:
    name, t = d.pick(lambda t: t.ndim > 0)
    axis = d.rng.randrange(t.ndim)
    kind = d.rng.choice(("cumsum", "softmax", "log_softmax"))
    if kind == "cumsum":
        return made(d, f"{name}.cumsum({axis})", [name], SUM)
    law = Law("smooth", lambda e, p, n: 3 * max(e) + 1e-4 * (1 + max(p)))
    return made(d, f"{name}.{kind}({axis})", [name], law)


@maker(MAKERS, 6)
def ordered(d: Drawing) -> Step:
    rng = d.rng
    name, t = d.pick_same(lambda t: t.ndim > 0)
    axis = rng.randrange(t.ndim)
    down = rng.choice(("True", "False"))
    stable = f"{name}.sort(dim={axis}, descending={down}, stable=True)"
    order = f"torch.argsort({name}, dim={axis}, descending={down}, stable=True)"
    choices = [f"{stable}[0]", f"{stable}[1]", order, f"{name}.sort({axis})[0]", f"{name}.max({axis})[0]"]
    if t.shape[axis]:
        choices.append(f"{name}.topk({rng.randint(1, t.shape[axis])}, {axis}, largest={down})[0]")
        choices.append(f"{name}.min({axis})[1]")
    return made(d, rng.choice(choices), [name], JUMP)


@maker(MAKERS, 8)
def joined(d: Drawing) -> Step:
    rng = d.rng
    name, t = d.pick(lambda t: t.ndim > 0)
    axis = rng.randrange(t.ndim)

    def like(o) -> bool:
        return o.ndim == t.ndim and all(o.shape[k] == n for k, n in enumerate(t.shape) if k != axis)

    others = [d.pick(like)[0] for _ in range(rng.randint(1, 2))]
    same = [d.pick(lambda o: o.shape == t.shape)[0]]
    turns = tuple(rng.randint(1, 2) for _ in t.shape)
    text, reads = rng.choice((
        (f"torch.cat([{', '.join([name, *others])}], {axis})", [name, *others]),
        (f"torch.stack([{', '.join([name, *same])}], {axis})", [name, *same]),
        (f"{name}.roll({rng.randint(-3, 3)}, {axis})", [name]),
        (f"{name}.flip({axis})", [name]),
        (f"{name}.repeat({', '.join(map(str, turns))})", [name]),
        (f"torch.tile({name}, {turns})", [name]),
        (f"{name}.repeat_interleave({rng.randint(1, 3)}, {axis})", [name]),
        (f"{name}.{rng.choice(('tril', 'triu'))}({rng.randint(-1, 1)})", [name]),
    ))  # fmt: skip
    return made(d, text, reads, MOVE)


@maker(MAKERS, 8)
def multiplied(d: Drawing) -> Step:
    name, t = d.pick(lambda t: t.ndim > 0 and dtype_of(t) in FLOATS)
    depth = t.shape[-1]
    fits = [f"{name} @ {name}.mT"] if t.ndim > 1 else [f"{name} @ {name}"]
    reads = [[name]]
    for other, o in d.usable.items():
        if o.dtype is not t.dtype or not o.ndim:
            continue
        if o.shape[-2 if o.ndim > 1 else 0] == depth:
            fits.append(f"{name} @ {other}")
            reads.append([name, other])
        if o.ndim > 1 and o.shape[-1] == depth:
            fits.append(f"{name} @ {other}.mT")
            reads.append([name, other])
    k = d.rng.randrange(len(fits))
    return made(d, fits[k], reads[k], MATMUL)


@maker(MAKERS, 10)
def looked_up(d: Drawing) -> Step:
    rng = d.rng
    name, t = d.pick(lambda t: t.ndim > 0 and 0 not in t.shape)
    n, length = t.shape[0], rng.randint(1, 5)
    listed = f"torch.tensor({d.positions(n, length)})"
    axis = rng.randrange(t.ndim)
    along = f"torch.tensor({d.hole(lambda r: str([r.randrange(t.shape[axis]) for _ in range(3)]))})"
    choices = [f"{name}[{listed}]", f"{name}[{listed}, None]", f"{name}[..., {listed} % {t.shape[-1]}]"]
    choices.append(f"{name}.index_select({axis}, {along})")
    if t.ndim > 1:
        second = f"torch.tensor({d.positions(t.shape[1], length)})"
        choices += [f"{name}[{listed}, {second}]", f"{name}[{listed}, {d.whole(0, t.shape[1] - 1)}]"]
        choices += [f"{name}[:, {second}]", f"{name}[{listed}.unsqueeze(1), {second}]"]
        choices += [f"{name}[None, {listed}]"]
    if t.ndim > 2:
        third = f"torch.tensor({d.positions(t.shape[2], length)})"
        choices += [f"{name}[{listed}, :, {third}]", f"{name}[:, :, {third}]"]
    if t.ndim == 1:
        choices.append(f"{name}.gather(0, {along})")
        choices.append(f"torch.take_along_dim({name}, {along}, 0)")
    return made(d, rng.choice(choices), [name], MOVE)


@maker(MAKERS, 4)
def of_length_unknown(d: Drawing) -> Step:
    """Results whose shape depends on values: nothing is made of them, since it is another each time."""
    mask, m = d.pick_same(lambda t: dtype_of(t) == "bool")
    name, _ = d.pick(lambda t: t.shape[: m.ndim] == m.shape)
    text = d.rng.choice((f"{name}[{mask}]", f"torch.masked_select({name}, {mask})", f"torch.nonzero({mask})"))
    step = made(d, text, [name, mask], MOVE)
    step.last = True
    return step


# In place
