// out[n, q] = sum(x[n, p] for p in window q) / count(q)
//
// x     (planes, in_height, in_width)     contiguous
// out   (planes, out_height, out_width)
// grid  one invocation per output; count(q) is `divisor` unless that is 0
// fuses -> out
// turns (box[1] - box[0]) * (box[3] - box[2] + 1)
// uses  pool_window

const ADAPTIVE = false;
const COUNT_PADDING = true;

const WORKGROUP = 64u;

struct Params {
    x_offset: u32,
    outputs: u32,
    in_height: u32,
    in_width: u32,
    out_height: u32,
    out_width: u32,
    divisor: f32,
    // by axis: kernel, stride, padding
    vertical: vec4<u32>,
    horizontal: vec4<u32>,
    // the places of each window that are looked at: first and end of rows, first and end of columns
    box: vec4<u32>,
    // where in out the sums go: there may be several parts of them
    out_start: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.outputs) {
        return;
    }
    let column = i % params.out_width;
    let row = i / params.out_width % params.out_height;
    let plane = i / (params.out_width * params.out_height);
    let down = pool_window(row, params.vertical, params.in_height, params.out_height);
    let across = pool_window(column, params.horizontal, params.in_width, params.out_width);
    let last_y = min(down.first + params.box.y, down.end);
    let last_x = min(across.first + params.box.w, across.end);
    var sum = 0.0;
    for (var y = down.first + params.box.x; y < last_y; y++) {
        let line = (plane * params.in_height + y) * params.in_width;
        var x = across.first + params.box.z;
        for (; x + 3u < last_x; x += 4u) {
            let at = line + x;
            sum += (load_x(at) + load_x(at + 1u)) + (load_x(at + 2u) + load_x(at + 3u));
        }
        // Up to three are left, whose loads wait for no branch.
        if (x < last_x) {
            let second = load_x(line + min(x + 1u, last_x - 1u));
            let third = load_x(line + min(x + 2u, last_x - 1u));
            let others = select(0.0, second, x + 1u < last_x) + select(0.0, third, x + 2u < last_x);
            sum += load_x(line + x) + others;
        }
    }
    let number = f32(down.count * across.count);
    store_out(params.out_start + i, sum / select(params.divisor, number, params.divisor == 0.0));
}
