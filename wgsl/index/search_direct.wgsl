// out[r, k] = where input[r, k] would be inserted into the sorted row r, by bisection
//
// Before equal values, or with RIGHT behind them.
//
// rows   (rows, columns)   contiguous; `apply` turns a value into bits, high word first
// input  (rows, per)       contiguous
// out    (rows, per)       int64, or int32: `placed` makes either
// grid   one workgroup per WORKGROUP elements of out, one lane each
// turns  33
// uses   bisection, order

alias T = f32;
alias PLACE = vec2<u32>;
const WORKGROUP = 64u;
const RIGHT = false;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;

struct Params {
    rows_offset: u32,
    input_offset: u32,
    count: u32,
    columns: u32,
    per: u32,
}

@group(0) @binding(0) var<storage, read> rows: array<T>;
@group(0) @binding(1) var<storage, read> input: array<T>;
@group(0) @binding(2) var<storage, read_write> out: array<PLACE>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_rows(i: u32) -> T { return rows[params.rows_offset + i]; }
fn load_input(i: u32) -> T { return input[params.input_offset + i]; }
fn placed(place: u32) -> PLACE { return vec2<u32>(place, 0u); }
fn apply(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let key = order_key(apply(load_input(k)));
    out[k] = placed(bisected(key, k / params.per * params.columns, params.columns));
}
