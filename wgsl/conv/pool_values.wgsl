// out[n, q] = the largest x[n, p] for p in window q, which is NaN if one of them is; the first of equal ones
//
// Of windows without gaps, which lie in the image for a part at least. PADDED: a place outside is taken for the
// one beside it, which is in the window, too.
//
// x      (planes, in_height, in_width)     contiguous
// out    (planes, out_height, out_width)
// grid   TILE columns by 4 * WORKGROUP / TILE lines of all planes a workgroup (parts/plane_lines)
// fuses  -> out
// turns  8 * (TALL * (WIDE + 1) + 1)
// uses   nan, plane_lines

alias Column = u32;
// The kernel's rows and columns.
const TALL = 2u;
const WIDE = 2u;
const PADDED = true;
// Whether the columns of each window are an even one and the next.
const PAIRS = false;

const WORKGROUP = 256u;
const TILE = 64u;

struct Params {
    x_offset: u32,
    lines: u32,
    tiles: u32,
    in_height: u32,
    in_width: u32,
    out_height: u32,
    out_width: u32,
    // by axis: kernel, stride, padding, dilation
    vertical: vec4<u32>,
    horizontal: vec4<u32>,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
// With PAIRS: of an even place and the next, one load where x begins at an even one.
fn load_pair(i: u32) -> vec2<f32> { return vec2<f32>(load_x(i), load_x(i + 1u)); }
fn store_out(i: u32, value: f32) { out[i] = value; }

// A place, counted from where the padding begins, in the image.
fn inside(at: u32, padding: u32, length: u32) -> u32 {
    if (PADDED) { return min(max(at, padding) - padding, length - 1u); }
    return at;
}

fn value_at(at: vec2<u32>, column: u32, k: u32, l: u32) -> f32 {
    let row = inside(at.y * params.vertical.y + k, params.vertical.z, params.in_height);
    let place = inside(column * params.horizontal.y + l, params.horizontal.z, params.in_width);
    return load_x((at.x * params.in_height + row) * params.in_width + place);
}

fn pair_at(at: vec2<u32>, column: u32, k: u32) -> vec2<f32> {
    let row = inside(at.y * params.vertical.y + k, params.vertical.z, params.in_height);
    return load_pair((at.x * params.in_height + row) * params.in_width + 2u * column);
}

fn of_column(column: u32) -> Column { return column; }

fn element(at: vec2<u32>, column: Column) -> f32 {
    var best = 0.0;
    // NaN if one of them is, or infinities of both signs are there
    var sum = 0.0;
    for (var k = 0u; k < TALL; k++) {
        if (PAIRS) {
            let pair = pair_at(at, column, k);
            best = select(best, pair.x, k == 0u || pair.x > best);
            best = select(best, pair.y, pair.y > best);
            sum += pair.x + pair.y;
        } else {
            for (var l = 0u; l < WIDE; l++) {
                let value = value_at(at, column, k, l);
                best = select(best, value, k + l == 0u || value > best);
                sum += value;
            }
        }
    }
    if (is_nan(sum)) {
        for (var k = 0u; k < TALL; k++) {
            for (var l = 0u; l < WIDE; l++) {
                let value = value_at(at, column, k, l);
                best = select(best, value, is_nan(value) || (!is_nan(best) && value > best));
            }
        }
    }
    return best;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    write_lines(id.y * count.x + id.x, lane);
}
