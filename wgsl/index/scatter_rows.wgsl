// out[r, c] = x[r, c], then for s in order, where index[s] == r:  out = src[s, c]
//   (ADD: out += src)
//
// For sources that a workgroup can look through: it marks, for each of its rows, which of them go
// there, and each lane then follows the marks of a row in the order of the sources. No two lanes
// write one place: the same bits on every run.
//
// x      (rows, width)      contiguous; read only with HAS_BASE, else 0
// index  (sources)          contiguous, int64; a bad one is reported and goes nowhere
// src    (sources, width)   contiguous
// out    (rows, width)
// grid   one workgroup per ROWS rows and `span` columns; ROWS * words <= MARKS, where
//        words = sources / 32, rounded up
// turns  (ROWS * words + ROWS + sources) // WORKGROUP + (span // WORKGROUP + 2) * (ROWS * (words + 1) + sources)
// uses   status

alias T = f32;
const WORKGROUP = 256u;
const ROWS = 16u;
const MARKS = 2048u;
const ADD = false;
const HAS_BASE = true;

struct Params {
    x_offset: u32,
    index_offset: u32,
    src_offset: u32,
    op: u32,
    rows: u32,
    width: u32,
    span: u32,
    sources: u32,
    words: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> index: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> src: array<T>;
@group(0) @binding(3) var<storage, read_write> out: array<T>;
@group(0) @binding(4) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_index(i: u32) -> vec2<u32> { return index[params.index_offset + i]; }
fn load_src(i: u32) -> T { return src[params.src_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }
fn apply(a: T, b: T) -> T { return a + b; }

var<workgroup> marks: array<atomic<u32>, MARKS>;
var<workgroup> is_marked: array<atomic<u32>, ROWS>;

// What the sources make of a value: those that the marks of its row name, in order.
fn gathered(value: T, row: u32, column: u32) -> T {
    var result = value;
    for (var word = 0u; word < params.words; word++) {
        var bits = atomicLoad(&marks[row * params.words + word]);
        while (bits != 0u) {
            let s = word * 32u + firstTrailingBit(bits);
            bits &= bits - 1u;
            if (ADD) {
                result = apply(result, load_src(s * params.width + column));
            } else {
                result = load_src(s * params.width + column);
            }
        }
    }
    return result;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    let tiles = (params.width + params.span - 1u) / params.span;
    let first = group / tiles * ROWS;
    if (first >= params.rows) {
        return;
    }
    for (var word = lane; word < ROWS * params.words; word += WORKGROUP) {
        atomicStore(&marks[word], 0u);
    }
    for (var row = lane; row < ROWS; row += WORKGROUP) {
        atomicStore(&is_marked[row], 0u);
    }
    workgroupBarrier();
    for (var s = lane; s < params.sources; s += WORKGROUP) {
        let place = load_index(s);
        let is_inside = place.y == 0u && place.x < params.rows;
        if (is_inside && place.x >= first && place.x - first < ROWS) {
            let row = place.x - first;
            atomicOr(&marks[row * params.words + s / 32u], 1u << (s % 32u));
            atomicStore(&is_marked[row], 1u);
        }
        if (!is_inside && group == 0u) {
            report_index(params.op, place, params.rows);
        }
    }
    workgroupBarrier();
    let start = group % tiles * params.span;
    let width = min(params.span, params.width - start);
    let elements = min(ROWS, params.rows - first) * width;
    for (var k = lane; k < elements; k += WORKGROUP) {
        let row = k / width;
        let column = start + k % width;
        let i = (first + row) * params.width + column;
        var value = T();
        if (HAS_BASE) {
            value = load_x(i);
        }
        if (atomicLoad(&is_marked[row]) == 1u) {
            value = gathered(value, row, column);
        }
        store_out(i, value);
    }
}
