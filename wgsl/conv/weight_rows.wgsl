// out[g, i, c, t] = sum(y[n, g, i, p] * x[n, g, c, p * stride + t * dilation - before] for n, p):
//   the derivative of a convolution by its weight; what lies outside of x is zero
//
// For groups of few rows (a depthwise convolution has one), where tiles would be empty.
//
// x     (batch, groups, channels, in_height, in_width)    contiguous
// y     (batch, groups, rows, out_height, out_width)      contiguous
// out   (groups, rows, channels, KERNEL_Y, KERNEL_X)
// grid  one workgroup per output; its lanes stride over the pixels of y in all images
// turns depth // WORKGROUP + 64
// uses  workgroup_sum

const WORKGROUP = 256u;
const KERNEL_Y = 3u;
const KERNEL_X = 3u;

const KERNEL = KERNEL_Y * KERNEL_X;

struct Params {
    x_offset: u32,
    y_offset: u32,
    outputs: u32,
    groups: u32,
    rows: u32,
    channels: u32,
    depth: u32,
    in_height: u32,
    in_width: u32,
    out_height: u32,
    out_width: u32,
    // by axis: stride, dilation, padding before
    vertical: vec4<u32>,
    horizontal: vec4<u32>,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_y(i: u32) -> f32 { return y[params.y_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let output = id.y * count.x + id.x;
    if (output >= params.outputs) {
        return;
    }
    let tap = output % KERNEL;
    let channel = output / KERNEL % params.channels;
    let row = output / (KERNEL * params.channels) % params.rows;
    let group = output / (KERNEL * params.channels * params.rows);
    let down = tap / KERNEL_X * params.vertical.y - params.vertical.z;
    let right = tap % KERNEL_X * params.horizontal.y - params.horizontal.z;
    let plane = params.out_height * params.out_width;
    var sum = 0.0;
    for (var k = lane; k < params.depth; k += WORKGROUP) {
        let image = k / plane * params.groups + group;
        let pixel = k % plane;
        let place_y = pixel / params.out_width * params.vertical.x + down;
        let place_x = pixel % params.out_width * params.horizontal.x + right;
        if (place_y < params.in_height && place_x < params.in_width) {
            let line = (image * params.channels + channel) * params.in_height + place_y;
            let value = load_x(line * params.in_width + place_x);
            sum = fma(load_y((image * params.rows + row) * plane + pixel), value, sum);
        }
    }
    sum = workgroup_sum(lane, sum);
    if (lane == 0u) {
        store_out(output, sum);
    }
}
