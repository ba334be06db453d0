"""The dispatches of convolutions: which kernel suits the sizes and the device, how its work is cut."""

from __future__ import annotations

from functools import cache

from ...device.stream import stream
from ...op.call import Call
from ...op.kernel import PIECE, KernelSource, Launch, flag, is_direct, load
from ...op.kernel.turns import boxes
from ...quant.format import FORMATS
from ...tensors.meta import Meta
from ..matmul.launch import in_parts, read_as
from ..quant.products import values_launch
from .geometry import Geometry
from .tiles import Sizes, TileChoice, choice_for, choose, chunk


def _ceil(count: int, size: int) -> int:
    return -(-count // size)


def _held(rows: int) -> int:
    """Rows that an invocation of a direct kernel makes."""
    return min(1 << max(rows - 1, 0).bit_length(), 8)


def _cut(sizes: Sizes, choice: TileChoice) -> tuple[int, int]:
    """The parts of the depth and the length of one."""
    length = chunk(choice.tile, sizes.depth, choice.parts)
    return max(_ceil(sizes.depth, length), 1), length


def _reading(file: str, weights: Meta) -> KernelSource:
    """A kernel that reads a weight of this dtype: a quantized one by unpacking its bits."""
    if not weights.dtype.is_quantized:
        return load(file)
    return packed_source(file, weights.dtype.name)


@cache
def packed_source(file: str, name: str) -> KernelSource:
    """A kernel that unpacks its weight, of format ``name``, where it would load elements."""
    source = load(file).with_part(
        "conv_window", f"conv_window, conv/packed, quant/{name}, quant/halves_direct, quant/planes"
    )
    fields = [f"{field}: {known.type}" for field, known in source.fields.items()]
    planes = [f"{field}: u32" for field in ("units", "plane_1", "plane_2", "plane_3")]
    source = source.with_element("weight", "vec4<u32>").with_params([*fields, *planes])
    holes = {"load_weight": "packed_value(i)"}
    if file == "conv/tiled":
        holes["load4_weight"] = "packed_four(4u * i)"
    return source.fill(holes)


def window_launches(
    call: Call, geometry: Geometry, x: str, weight: str, bias: str | None = None, *, transposed: bool
) -> list[Launch]:
    """The result from the image, or with ``transposed`` the image from the result, where the argument ``x``
    is read through windows. A quantized weight is a matrix of rows."""
    weights = dict(call.tensors())[weight]
    if weights.dtype.is_quantized and is_direct():
        # Without workgroup memory every few pixels would unpack the weight anew.
        floats = "values"
        call.temporary(floats, weights.shape)
        unpacking = values_launch(weight, weights, 0, weights.shape[0], 0, floats)
        return [unpacking, *_launches(call, geometry, x, floats, call.temporaries[floats], bias, transposed)]
    return _launches(call, geometry, x, weight, weights, bias, transposed)


def _launches(
    call: Call, geometry: Geometry, x: str, weight: str, weights: Meta, bias: str | None, transposed: bool
) -> list[Launch]:
    """Those of `window_launches` by a weight that kernels read as it is."""
    y_axis, x_axis = geometry.y, geometry.x
    if transposed:
        rows, channels, phases = geometry.channels, geometry.rows, y_axis.stride * x_axis.stride
        source, target = (y_axis.result, x_axis.result), (y_axis.image, x_axis.image)
        grid = _ceil(target[0], y_axis.stride), _ceil(target[1], x_axis.stride)
        taps = _ceil(y_axis.kernel, y_axis.every), _ceil(x_axis.kernel, x_axis.every)
    else:
        rows, channels, phases = geometry.rows, geometry.channels, 1
        source, target = (y_axis.image, x_axis.image), (y_axis.result, x_axis.result)
        grid, taps = target, (y_axis.kernel, x_axis.kernel)
    pixels = geometry.batch * grid[0] * grid[1]
    params = {
        **geometry.sizes, "rows": rows, "channels": channels, "pixels": pixels,
        "grid_height": grid[0], "grid_width": grid[1], "in_height": source[0], "in_width": source[1],
        "out_height": target[0], "out_width": target[1],
    }  # fmt: skip
    holes = {
        **geometry.kernel, "TAPS_Y": f"{taps[0]}u", "TAPS_X": f"{taps[1]}u", "TRANSPOSED": flag(transposed),
    }  # fmt: skip
    bind = {"x": x, "weight": weight, "bias": bias or x}
    d, is_packed = call[x].dtype, weights.dtype.is_quantized
    params |= FORMATS[weights.dtype.name].layout(*weights.shape).params if is_packed else {}
    groups = geometry.groups * phases
    is_short = taps[0] * (taps[1] * (channels + 1) + 1) < PIECE
    if is_short and (is_direct() or rows <= 4):
        held = _held(rows)
        width = 16 if is_direct() else 64
        count = groups * _ceil(rows, held) * _ceil(pixels, 4)
        holes |= {"ROWS": f"{held}u", "WORKGROUP": f"{width}u", "HAS_BIAS": flag(bias is not None)}
        file = _reading("conv/direct", weights).fill(holes)
        return [Launch(file, _ceil(count, width), {**params, "invocations": count}, bind=bind)]
    sizes = Sizes(groups, rows, pixels, channels * taps[0] * taps[1])
    info = stream().open().info
    choice = choose(sizes, info) if transposed else choice_for(sizes, d.name, info)
    tile, (parts, length) = choice.tile, _cut(sizes, choice)
    plane = target[0] * target[1]
    params |= {
        "workgroups": sizes.groups(tile) * parts, "chunk": length,
        "outputs": geometry.batch * geometry.groups * rows * plane,
    }  # fmt: skip
    in_fours = not transposed and sizes.depth % 4 == 0
    has_edges = transposed or tile.has_edges(sizes.depth)
    holes |= tile.holes(sizes.depth) | {
        "EDGES": flag(has_edges), "PADDED": flag(has_edges or y_axis.is_padded or x_axis.is_padded),
        "W_FOUR": flag(in_fours), "HAS_BIAS": flag(bias is not None and parts == 1),
    }  # fmt: skip
    source = read_as(_reading("conv/tiled", weights).fill(holes), "x", d, False)
    source = source if is_packed else read_as(source, "weight", weights.dtype, in_fours)
    launch = Launch(read_as(source, "bias", d, False), int(params["workgroups"]), params, bind=bind)
    return in_parts(call, [launch], parts, d, bias, int(params["outputs"]), geometry.groups * rows, plane)


def weight_launches(call: Call, geometry: Geometry, image: str, result: str) -> list[Launch]:
    """The weight's derivative from the image and the derivative of the result, which are these arguments."""
    rows, columns = geometry.rows, geometry.channels * geometry.y.kernel * geometry.x.kernel
    outputs = geometry.groups * rows * columns
    depth = geometry.batch * geometry.y.result * geometry.x.result
    params, holes, bind = geometry.sizes, geometry.kernel, {"x": image, "y": result}
    if is_direct():
        held = _held(rows)
        count = geometry.groups * _ceil(rows, held) * _ceil(columns, 4)
        file = load("conv/weight_direct").fill({**holes, "ROWS": f"{held}u"})
        pieces = boxes(geometry.batch * geometry.y.result, geometry.x.result)
        names = ("first_line", "end_line", "first_x", "end_x")
        made = []
        for k, piece in enumerate(pieces):
            own = {**dict(zip(names, piece, strict=True)), "out_start": k * outputs, "invocations": count}
            made.append(Launch(file, _ceil(count, 16), params | own, bind=dict(bind)))
        return in_parts(call, made, len(pieces), call[result].dtype, None, outputs, columns)
    params |= {"depth": depth, "outputs": outputs}
    if rows <= 4 and geometry.channels <= 4:
        return [Launch("conv/weight_rows", outputs, params, holes, bind)]
    sizes = Sizes(geometry.groups, rows, columns, depth)
    choice = choose(sizes, stream().open().info)
    tile, (parts, length) = choice.tile, _cut(sizes, choice)
    params |= {"workgroups": sizes.groups(tile) * parts, "chunk": length}
    has_edges, in_fours = tile.has_edges(depth), geometry.y.result * geometry.x.result % 4 == 0
    holes |= tile.holes(depth) | {
        "PADDED": flag(has_edges or geometry.y.is_padded or geometry.x.is_padded), "Y_FOUR": flag(in_fours)
    }  # fmt: skip
    d = call[result].dtype
    source = read_as(read_as(load("conv/weight_tiled").fill(holes), "x", d, False), "y", d, in_fours)
    launch = Launch(source, int(params["workgroups"]), params, bind=bind)
    return in_parts(call, [launch], parts, d, None, outputs, columns)
