"""Products of matrices as launches: strides, holes, and the kernels of ``wgsl/matmul`` that they fill."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...device.stream import stream
from ...op.call import Call
from ...op.kernel import KernelSource, Launch, Params, flag, load, register_type
from ...op.kernel.turns import boxes
from ...tensors import dtypes as dt
from .choice import variant_for
from .variants import Shape, Variant


@dataclass(frozen=True)
class MatrixOperand:
    """One side of a batched product as strides: two batch axes and the two axes of the matrix."""

    outer: int
    inner: int
    row: int
    column: int

    @property
    def transposed(self) -> MatrixOperand:
        return MatrixOperand(self.outer, self.inner, self.column, self.row)

    @property
    def is_by_row(self) -> bool:
        """Whether neighbours within a row are the nearer ones."""
        return self.column == 1 or (self.row != 1 and self.column <= self.row)

    @property
    def is_in_fours(self) -> bool:
        """Whether one axis of the matrix is contiguous and all other strides are multiples of 4."""
        near, far = (self.column, self.row) if self.is_by_row else (self.row, self.column)
        return near == 1 and not (far % 4 or self.outer % 4 or self.inner % 4)


# How four packed halves at once become floats; the elements begin at a multiple of 4.
_HALVES = {dt.float16: "half_to_float({})", dt.bfloat16: "bfloat_to_float({})"}


def read_as(source: KernelSource, binding: str, d: dt.DType, in_fours: bool) -> KernelSource:
    """A kernel that reads an operand of dtype ``d``; ``load4_<binding>`` is one load if it lies in fours."""
    if d is not dt.float32:
        source = source.retype(binding, d)
        if in_fours:
            shifted = (f"{binding}[k{word}] >> {shift}u" for word in ("", " + 1u") for shift in (0, 16))
            values = ", ".join(_HALVES[d].format(bits) for bits in shifted)
            load4 = f"let k = params.{binding}_offset / 2u + 2u * i; return vec4<f32>({values});"
            source = source.fill({f"load4_{binding}": load4})
    elif in_fours:
        source = source.with_element(binding, "vec4<f32>").fill(
            {
                f"load_{binding}": f"let k = params.{binding}_offset + i; return {binding}[k / 4u][k % 4u];",
                f"load4_{binding}": f"{binding}[params.{binding}_offset / 4u + i]",
            }
        )
    return source.as_typed()


def in_parts(
    call: Call,
    launches: list[Launch],
    parts: int,
    d: dt.DType,
    bias: str | None,
    size: int,
    columns: int,
    plane: int = 1,
    batch: int = 1,
) -> list[Launch]:
    """Launches, and where they make parts of sums, (batch, parts, size) in float32 in the place of `out`, the
    one that adds them up. The bias has ``columns`` numbers, each for ``plane`` sums that follow."""
    if parts == 1:
        return launches
    call.temporary("parts", (batch * parts * size,))
    for launch in launches:
        launch.bind["out"] = "parts"
    params: Params = {"count": batch * size, "size": size, "parts": parts, "plane": plane, "columns": columns}
    source = read_as(load("matmul/combine").fill({"HAS_BIAS": flag(bias is not None)}), "bias", d, False)
    bind = {"partial": "parts", "bias": bias or "parts"}
    return [*launches, Launch(source, -(-batch * size // 64), params, bind=bind)]


@dataclass(frozen=True)
class Product:
    """(batch, rows, depth) times (batch, depth, columns)."""

    batch: int
    batch_inner: int
    rows: int
    columns: int
    depth: int
    a: MatrixOperand
    b: MatrixOperand

    @property
    def shape(self) -> Shape:
        """What its variant depends on."""
        by_depth = self.a.is_by_row, not self.b.is_by_row
        return Shape(self.batch, self.rows, self.columns, self.depth, *by_depth)

    def launches(self, call: Call, a: str, b: str, bias: str | None = None) -> list[Launch]:
        """The dispatches that write `out`, which has the dtype of the operands; a bias runs along columns."""
        if self.columns == 1 and self.rows > 1 and bias is None:
            # A matrix times a vector is the vector times the transposed matrix.
            turned = Product(
                self.batch, self.batch_inner, 1, self.rows, self.depth, self.b.transposed, self.a.transposed
            )
            return turned.launches(call, b, a)
        d = call.out.dtype
        if d.is_integer:
            return [self._whole_launch(d, a, b)]
        variant = variant_for(self.shape, d.name, stream().open().info)
        if variant.file == "direct":
            return self._direct_launches(call, d, a, b, bias)
        first = self._launch(variant, d, a, b, bias if variant.parts == 1 else None)
        size = self.rows * self.columns
        return in_parts(call, [first], variant.parts, d, bias, size, self.columns, batch=self.batch)

    def _whole_launch(self, d: dt.DType, a: str, b: str) -> Launch:
        """Of integers: one invocation an element, which walks the depth."""
        kind = register_type(d)
        holes = {"T": kind} if kind == "vec2<u32>" else {"T": kind, "combined": "sum + x * y"}
        count = self.batch * self.rows * self.columns
        params: Params = {
            "count": count, "rows": self.rows, "columns": self.columns, "depth": self.depth,
            "inner": self.batch_inner,
        }  # fmt: skip
        for name, side in (("a", self.a), ("b", self.b)):
            params |= {f"{name}_{place}": stride for place, stride in vars(side).items()}
        return Launch(load("matmul/whole").fill(holes), -(-count // 64), params, bind={"a": a, "b": b})

    def _launch(self, variant: Variant, d: dt.DType, a: str, b: str, bias: str | None) -> Launch:
        tile = variant.tile
        a_in_fours, b_in_fours = self.a.is_in_fours, self.b.is_in_fours
        if tile is not None:
            groups = tile.groups(self.shape) * variant.parts
            holes = {
                "LANE_ROWS": f"{tile.lane_rows}u", "LANE_COLUMNS": f"{tile.lane_columns}u",
                "TILE_ROWS": f"{tile.rows}u", "TILE_COLUMNS": f"{tile.columns}u", "STEP": f"{tile.step}u",
                "SLICES": f"{tile.slices}u", "BUFFERS": f"{tile.buffers}u",
                "EDGES": flag(
                    bool(self.rows % tile.rows or self.columns % tile.columns or self.depth % tile.step)
                ),
                "A_DEPTH_FIRST": flag(self.a.is_by_row), "B_DEPTH_FIRST": flag(not self.b.is_by_row),
            }  # fmt: skip
        else:
            width = 4 if variant.file == "vector" else 16
            groups = self.batch * variant.parts * -(-self.columns // width)
            holes = {"ROWS": f"{self.rows}u"}
            # These read along the depth of a always, and along the depth or the columns of b.
            a_in_fours = a_in_fours and self.a.is_by_row
            b_in_fours = b_in_fours and self.b.is_by_row == (variant.file == "vector_columns")
            if variant.file == "vector":
                b_in_fours = b_in_fours and self.depth % 4 == 0
        holes |= {
            "PARTS": f"{variant.parts}u",
            "HAS_BIAS": flag(bias is not None),
            "A_FOUR": flag(a_in_fours),
            "B_FOUR": flag(b_in_fours),
        }
        source = load(f"matmul/{variant.file}").fill(holes)
        source = read_as(read_as(source, "a", d, a_in_fours), "b", d, b_in_fours)
        source = read_as(source, "bias", d, False)
        return Launch(source, groups, self._params | {"groups": groups}, bind=_bindings(a, b, bias))

    def _direct_launches(self, call: Call, d: dt.DType, a: str, b: str, bias: str | None) -> list[Launch]:
        """Dispatches without workgroup memory, one for every piece of the depth; each writes columns of its
        own."""
        pieces = boxes(1, self.depth)
        parts = len(pieces)
        if parts == 1:
            return [self.direct(a, b, bias)]
        made = []
        for k, (_, _, begin, end) in enumerate(pieces):
            part = replace(self, depth=end - begin)
            made.append(part.direct(a, b, None, k * self.columns, parts * self.columns, begin))
        return in_parts(call, made, parts, d, bias, self.columns, self.columns, batch=self.batch * self.rows)

    def direct(
        self,
        a: str,
        b: str,
        bias: str | None = None,
        start: int = 0,
        out_columns: int | None = None,
        begin: int = 0,
    ) -> Launch:
        """The dispatch without workgroup memory; it may write some columns of a wider `out`, and take a piece
        of a longer depth."""
        held = min(1 << max(self.rows - 1, 0).bit_length(), 8)
        groups = -(-self.batch * -(-self.rows // held) * -(-self.columns // 8) // 16)
        source = load("matmul/direct").fill({"ROWS": f"{held}u", "HAS_BIAS": flag(bias is not None)})
        size = {"batch": self.batch, "begin": begin, "start": start}
        size["out_columns"] = out_columns or self.columns
        return Launch(source, groups, self._params | size, bind=_bindings(a, b, bias))

    @property
    def _params(self) -> Params:
        return {
            "rows": self.rows, "columns": self.columns, "depth": self.depth, "batch_inner": self.batch_inner,
            "a_outer": self.a.outer, "a_inner": self.a.inner, "a_row": self.a.row, "a_depth": self.a.column,
            "b_outer": self.b.outer, "b_inner": self.b.inner, "b_depth": self.b.row,
            "b_column": self.b.column,
        }  # fmt: skip


def _bindings(a: str, b: str, bias: str | None) -> dict[str, str]:
    return {"a": a, "b": b, "bias": bias or a}
