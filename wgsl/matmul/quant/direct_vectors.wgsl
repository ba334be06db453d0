// out_k[n] = sum over c of x[c] * weight_k[n, c], for two or three weights of one format and one
//   row of x, without workgroup memory
//
// An invocation makes four rows of one weight, as in matmul/quant/direct_vector.
//
// x         (columns)
// weight_k  the planes of a weight; `units` units of 32 columns a row. Of planes_k the first number
//           counts its rows, the others are the first words of its planes 1 to 3
// out_k     (rows of weight k); of two weights the third has no rows
// grid      one invocation for 4 rows of a weight: first the workgroups of weight 0, then of
//           weight 1, then of weight 2
// format    quant/q4_0 stands for any file of quant/ with its two functions
// fuses     -> out_0, out_1, out_2
// turns     units + 64
// uses      matmul/quant/direct_rows, quant/q4_0, quant/halves_direct

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight_0: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> weight_1: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> weight_2: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out_0: array<f32>;
@group(0) @binding(5) var<storage, read_write> out_1: array<f32>;
@group(0) @binding(6) var<storage, read_write> out_2: array<f32>;

struct Params {
    planes_0: vec4<u32>,
    planes_1: vec4<u32>,
    planes_2: vec4<u32>,
    columns: u32,
    units: u32,
    x_offset: u32,
}
@group(1) @binding(0) var<uniform> params: Params;

const PADDED = false;

const WORKGROUP = 16u;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out_0(i: u32, value: f32) { out_0[i] = value; }
fn store_out_1(i: u32, value: f32) { out_1[i] = value; }
fn store_out_2(i: u32, value: f32) { out_2[i] = value; }

// The weight that is read: always a known number, so that a load does not choose between buffers.
var<private> current: u32;

fn plane_row(i: u32) -> vec4<u32> {
    if (current == 1u) { return weight_1[i]; }
    if (current == 2u) { return weight_2[i]; }
    return weight_0[i];
}

fn plane_word(i: u32) -> u32 {
    if (current == 1u) { return weight_1[i >> 2u][i & 3u]; }
    if (current == 2u) { return weight_2[i >> 2u][i & 3u]; }
    return weight_0[i >> 2u][i & 3u];
}

fn planes(k: u32) -> vec4<u32> {
    if (k == 1u) { return params.planes_1; }
    if (k == 2u) { return params.planes_2; }
    return params.planes_0;
}

fn plane_start(plane: u32) -> u32 {
    return planes(current)[plane];
}

fn load_units(units: vec4<u32>) -> Units {
    return Units(load_unit(units.x), load_unit(units.y), load_unit(units.z), load_unit(units.w));
}

fn store_value(k: u32, row: u32, value: f32) {
    if (row >= planes(k).x) {
        return;
    }
    if (k == 0u) {
        store_out_0(row, value);
    } else if (k == 1u) {
        store_out_1(row, value);
    } else {
        store_out_2(row, value);
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let per = ROWS * WORKGROUP;
    let groups_0 = (params.planes_0.x + per - 1u) / per;
    let groups_1 = (params.planes_1.x + per - 1u) / per;
    var place = id.y * count.x + id.x;
    var k = 0u;
    if (place >= groups_0 + groups_1) {
        place -= groups_0 + groups_1;
        k = 2u;
    } else if (place >= groups_0) {
        place -= groups_0;
        k = 1u;
    }
    let all_rows = planes(k).x;
    let row = (place * WORKGROUP + lane) * ROWS;
    if (row >= all_rows) {
        return;
    }
    // Rows past the end repeat the last row and are not stored.
    let units = min(row + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(all_rows - 1u)) * params.units;
    var sums = vec4<f32>();
    if (k == 0u) {
        current = 0u;
        sums = row_sums(units);
    } else if (k == 1u) {
        current = 1u;
        sums = row_sums(units);
    } else {
        current = 2u;
        sums = row_sums(units);
    }
    store_value(k, row, sums.x);
    store_value(k, row + 1u, sums.y);
    store_value(k, row + 2u, sums.z);
    store_value(k, row + 3u, sums.w);
}
