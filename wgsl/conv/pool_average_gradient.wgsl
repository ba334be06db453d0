// out[n, p] = sum(x[n, q] / count(q) for windows q that hold p): the derivative of a mean over
//   windows
//
// x     (planes, out_height, out_width)   contiguous; of the means
// out   (planes, in_height, in_width)     of what they are taken of
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
    // the windows that hold a place, of each that are looked at: first and end of rows, first and end of columns
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
    let column = i % params.in_width;
    let row = i / params.in_width % params.in_height;
    let plane = i / (params.in_width * params.in_height);
    let down = windows_with(row, params.vertical, params.in_height, params.out_height);
    let across = windows_with(column, params.horizontal, params.in_width, params.out_width);
    let last_y = min(down.x + params.box.y, down.y);
    let last_x = min(across.x + params.box.w, across.y);
    var sum = 0.0;
    for (var q_y = down.x + params.box.x; q_y < last_y; q_y++) {
        let rows = pool_window(q_y, params.vertical, params.in_height, params.out_height).count;
        let line = (plane * params.out_height + q_y) * params.out_width;
        for (var q_x = across.x + params.box.z; q_x < last_x; q_x++) {
            let window = pool_window(q_x, params.horizontal, params.in_width, params.out_width);
            let number = f32(rows * window.count);
            sum += load_x(line + q_x) / select(params.divisor, number, params.divisor == 0.0);
        }
    }
    store_out(params.out_start + i, sum);
}
