// out[row] = the id whose interval of the cumulative probability holds uniforms[row]
//
// Probabilities are softmax(values[row, :] / temperature); where values are sorted downwards, only
// the shortest prefix that reaches `top_p` of the mass takes part (nucleus sampling; the first id
// always does).
//
// values   (rows, columns)   contiguous
// ids      (rows, columns)   int64, read only with HAS_IDS; else the id is the column
// uniforms (rows)            in [0, 1)
// out      (rows)            int64
// grid     one workgroup per row; lane l walks the l-th of WORKGROUP equal pieces of the row, in
//          order
// source   Holtzman et al. 2020, "The curious case of neural text degeneration", section 3.1
// uses     workgroup_max, workgroup_scan

alias T = f32;
const WORKGROUP = 256u;
const HAS_IDS = true;

struct Params {
    values_offset: u32,
    ids_offset: u32,
    uniforms_offset: u32,
    rows: u32,
    columns: u32,
    temperature: f32,
    top_p: f32,
}

@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read> ids: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> uniforms: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<vec2<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_values(i: u32) -> f32 { return values[params.values_offset + i]; }
fn load_ids(i: u32) -> vec2<u32> { return ids[params.ids_offset + i]; }
fn load_uniforms(i: u32) -> f32 { return uniforms[params.uniforms_offset + i]; }
fn apply(a: T, b: T) -> T { return a + b; }

var<workgroup> chosen: atomic<u32>;

fn weight(i: u32, largest: f32) -> f32 {
    let difference = (load_values(i) - largest) / params.temperature;
    return select(exp(max(difference, -88.0)), 0.0, difference < -87.0);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = id.y * count.x + id.x;
    if (row >= params.rows) {
        return;
    }
    let piece = (params.columns + WORKGROUP - 1u) / WORKGROUP;
    let base = row * params.columns;
    let start = base + min(lane * piece, params.columns);
    let end = base + min((lane + 1u) * piece, params.columns);

    var largest = -3.4e38;
    for (var i = start; i < end; i++) {
        largest = max(largest, load_values(i));
    }
    largest = workgroup_max(lane, largest);
    var mass = 0.0;
    for (var i = start; i < end; i++) {
        mass += weight(i, largest);
    }
    let before = workgroup_scan(lane, mass) - mass;
    let limit = params.top_p * workgroup_scan_slots[WORKGROUP - 1u];

    var kept = 0.0;
    var cumulative = before;
    for (var i = start; i < end; i++) {
        let share = weight(i, largest);
        let next = cumulative + share;
        if (share > 0.0 && (cumulative < limit || i == base)) {
            kept = next;
        }
        cumulative = next;
    }
    kept = workgroup_max(lane, kept);
    // below the kept mass, so that the last id that takes part is found at the latest
    let threshold = min(load_uniforms(row), 0.99999994) * kept;
    if (lane == 0u) {
        atomicStore(&chosen, 0xffffffffu);
    }
    workgroupBarrier();
    cumulative = before;
    for (var i = start; i < end; i++) {
        let share = weight(i, largest);
        cumulative += share;
        if (share > 0.0 && cumulative > threshold) {
            atomicMin(&chosen, i);
            break;
        }
    }
    workgroupBarrier();
    if (lane == 0u) {
        let i = min(atomicLoad(&chosen), base + params.columns - 1u);
        var token = vec2<u32>(i - base, 0u);
        if (HAS_IDS) {
            token = load_ids(i);
        }
        out[row] = token;
    }
}
