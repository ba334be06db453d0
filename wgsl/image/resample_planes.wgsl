// out[n, q, r] = sum(weight(q, k) * weight(r, l) * x[n, place(q, k), place(r, l)] for taps k, l): planes of
//   another height and width
//
// x     (outer, in_height, in_width)     contiguous
// out   (outer, out_height, out_width)
// grid  TILE columns by 4 * WORKGROUP / TILE lines of all planes a workgroup (parts/plane_lines);
//       parts/resample_taps says what the taps are
// fuses -> out
// turns 4 * (WIDTH * (WIDTH + 1) + 1)
// uses  plane_lines, resample_taps

alias Column = ResampleTaps;
const WIDTH = 2;
const HALF = true;
const ANTIALIAS = false;
// Whether the taps of each column are an even place and the next.
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
    down: f32,
    across: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
// With PAIRS: of an even place and the next, one load where x begins at an even one.
fn load_pair(i: u32) -> vec2<f32> { return vec2<f32>(load_x(i), load_x(i + 1u)); }
fn store_out(i: u32, value: f32) { out[i] = value; }

fn of_column(column: u32) -> Column { return resample_taps(column, params.in_width, params.across); }

fn element(at: vec2<u32>, columns: Column) -> f32 {
    let rows = resample_taps(at.y, params.in_height, params.down);
    let last_row = i32(params.in_height) - 1;
    let last_column = i32(params.in_width) - 1;
    var sum = 0.0;
    for (var k = 0; k < WIDTH; k++) {
        let row = at.x * params.in_height + u32(clamp(rows.first + k, 0, last_row));
        var along = 0.0;
        if (PAIRS) {
            let pair = load_pair(row * params.in_width + u32(columns.first));
            along = resample_weight(columns, 0) * pair.x + resample_weight(columns, 1) * pair.y;
        } else {
            for (var l = 0; l < WIDTH; l++) {
                let place = u32(clamp(columns.first + l, 0, last_column));
                along += resample_weight(columns, l) * load_x(row * params.in_width + place);
            }
        }
        sum += resample_weight(rows, k) * along;
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    write_lines(id.y * count.x + id.x, lane);
}
