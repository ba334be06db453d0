"""Eigenvalues and singular values by Jacobi rotations: the dispatches."""

from __future__ import annotations

from math import prod

from ...op.call import Call
from ...op.kernel.launch import Launch, flag
from ...op.kernel.variants import is_direct
from .matrices import lanes, matrices, steps
from .orthogonal import reflect, unreflect

# Pairs whose angles fit into workgroup memory.
_MOST = 1024


def _rotated(call: Call, tall: int, side: int, symmetric: bool, own: dict[str, str]) -> list[Launch] | None:
    """The dispatches that make the columns of A orthogonal, or A diagonal, and find the sizes of columns or
    the eigenvalues; or None."""
    count, pairs, width = prod(call["A"].shape[:-2]), (side + 1) // 2, lanes(side * side)
    if pairs > _MOST:
        return None
    for name, shape in (("B", (tall, side)), ("V", (side, side)), ("scale", ()), ("sizes", (side,))):
        call.temporary(name, (count, *shape))
    file = "linalg/rotate_symmetric" if symmetric else "linalg/rotate"
    holes = {"WORKGROUP": f"{width}u", **own} | ({"PAIRS": f"{pairs}u"} if symmetric else {})
    sizes = {"count": count, "side": side}
    if symmetric:
        each = pairs // width + 2 * (pairs * side // width) + 4
    else:
        sizes["tall"] = tall
        each = (pairs // width + 1) * (2 * tall + side + 1) + 1
    # Sweeps end the faster the fewer columns there are; behind the last rotation they only look.
    rounds = (2 * pairs - 1) * (6 + side.bit_length())
    launch = Launch(file, count, sizes, holes)
    made = steps(launch, rounds, max(each, 3 * (tall * side // width) + width + 8))
    params = {"groups": count * side, "tall": tall, "side": side}
    of_sizes = {"WORKGROUP": f"{4 if is_direct() else 64}u", "SYMMETRIC": flag(symmetric)}
    if symmetric:
        of_sizes |= own
    return made and [*made, Launch("linalg/sizes", count * side, params, of_sizes)]


def _arranged(call: Call, tall: int, side: int, holes: dict[str, str], bind: dict[str, str]) -> Launch:
    count = prod(call["A"].shape[:-2])
    params = {"count": count, "tall": tall, "side": side}
    return Launch("linalg/arrange", -(-count * side // 64), params, holes, bind)


def eigh_launches(call: Call) -> list[Launch] | None:
    """Eigenvalues in rising order and their vectors."""
    side = call["A"].shape[-1]
    upper = {"UPPER": flag(call["UPLO"].upper() == "U")}
    rotated = _rotated(call, side, side, True, upper) if side else None
    if rotated is None:
        return None
    call.temporary("normal", (1,))
    bind = {"values": "eigenvalues", "vectors": "eigenvectors"}
    return [*rotated, _arranged(call, side, side, {"SYMMETRIC": "true"}, bind)]


def svd_launches(call: Call) -> list[Launch] | None:
    """Singular values in falling order and their vectors. What the rotations leave of A gives the longer
    ones; reflections make these orthonormal where values are 0, and complete them."""
    batch, rows, columns = matrices(call["A"])
    is_wide, tall, side, count = rows < columns, max(rows, columns), min(rows, columns), prod(batch)
    rotated = _rotated(call, tall, side, False, {"TRANSPOSED": flag(is_wide)}) if side else None
    call.temporary("normal", (count, tall, side))
    call.temporary("a", (count, tall, side))
    call.temporary("tau", (count, side))
    call.temporary("none", (1,))
    long, short = ("Vh", "U") if is_wide else ("U", "Vh")
    found = reflect({"A": "normal"}, count, tall, side)
    wide = tall if call["full_matrices"] else side
    holes = {"TRANSPOSED": flag(is_wide), "SIGNED": "true", "HAS_R": "false"}
    made = unreflect({"Q": long, "R": "none"}, count, tall, side, wide, side, holes)
    if not (rotated and found and made):
        return None
    bind = {"values": "S", "vectors": short}
    return [*rotated, _arranged(call, tall, side, {"TRANSPOSED": flag(not is_wide)}, bind), *found, *made]
