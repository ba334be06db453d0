// out[row] = an id drawn from the nucleus of the row: of the fewest ids that together reach `top_p`
//   of softmax(values[row, :] / temperature), taken from the most likely one down, of equal ones
//   those that stand last
//
// Nothing is sorted. The value of the least likely of them is searched for: each turn looks at the
// mass above eight values between two bounds and takes the two neighbours between which it passes
// `top_p`, until a single value lies between the bounds. The ids are then drawn from in their order.
//
// values    (rows, columns)   contiguous
// uniforms  (rows)            in [0, 1)
// out       (rows)            int64
// grid      one workgroup per row; its lanes stride over the columns, and in the end lane l walks
//           the l-th of WORKGROUP equal pieces
// turns     (MOST_TURNS + 5) * (columns // WORKGROUP + 64)
// source    Holtzman et al. 2020, "The curious case of neural text degeneration", section 3.1
// uses      sampling_weight, workgroup_max, workgroup_scan

alias T = vec4<f32>;
const WORKGROUP = 256u;
// Each is an eighth of the last: any two floats are told apart in 93, those of logits in ten.
const MOST_TURNS = 93u;

struct Params {
    values_offset: u32,
    uniforms_offset: u32,
    rows: u32,
    columns: u32,
    temperature: f32,
    top_p: f32,
}

@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read> uniforms: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<vec2<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_values(i: u32) -> f32 { return values[params.values_offset + i]; }
fn load_uniforms(i: u32) -> f32 { return uniforms[params.uniforms_offset + i]; }
fn apply(a: T, b: T) -> T { return a + b; }
fn across_max(lane: u32, value: f32) -> f32 { return workgroup_max(lane, value); }

var<workgroup> is_found: u32;
var<workgroup> drawn: u32;
// The mass of the nucleus up to the end of each lane's piece.
var<workgroup> masses: array<f32, WORKGROUP>;

fn weight(value: f32, largest: f32) -> f32 {
    return sampling_weight((value - largest) / params.temperature);
}

// The sum of the lanes' values, known to every lane.
fn sum(lane: u32, value: T) -> T {
    workgroup_scan(lane, value);
    return workgroup_scanned(WORKGROUP - 1u);
}

// One of the eight values, or the bound above them.
fn bound(first: vec4<f32>, second: vec4<f32>, high: f32, k: u32) -> f32 {
    if (k < 4u) {
        return first[k];
    }
    if (k < 8u) {
        return second[k - 4u];
    }
    return high;
}

// The value of the least likely id of the nucleus, where `enough` is its mass.
fn edge_of(lane: u32, base: u32, largest: f32, enough: f32) -> f32 {
    // All that is at most `low` has a third of 1 - top_p, and is not reached.
    let rest = max(1.0 - params.top_p, 1e-7);
    let least_likely = largest - params.temperature * (log(f32(params.columns) / rest) + 1.0);
    var low = max(least_likely, -3.4028234e38);  // finite, however high the temperature
    var high = largest;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let step = high / 8.0 - low / 8.0;
        let first = low + step * vec4<f32>(0.0, 1.0, 2.0, 3.0);
        let second = low + step * vec4<f32>(4.0, 5.0, 6.0, 7.0);
        var above_first = vec4<f32>(0.0);
        var above_second = vec4<f32>(0.0);
        var least = high;
        var most = low;
        for (var column = lane; column < params.columns; column += WORKGROUP) {
            let value = load_values(base + column);
            if (value > low) {
                let share = vec4<f32>(weight(value, largest));
                above_first += select(vec4<f32>(0.0), share, vec4<f32>(value) > first);
                above_second += select(vec4<f32>(0.0), share, vec4<f32>(value) > second);
                if (value <= high) {
                    least = min(least, value);
                    most = max(most, value);
                }
            }
        }
        above_first = sum(lane, above_first);
        above_second = sum(lane, above_second);
        least = -across_max(lane, -least);
        most = across_max(lane, most);
        let one = vec4<f32>(1.0);
        let zero = vec4<f32>(0.0);
        let passed = dot(select(zero, one, above_first >= vec4<f32>(enough)), one)
            + dot(select(zero, one, above_second >= vec4<f32>(enough)), one);
        let k = u32(passed);
        if (k == 0u) {  // sums so near to each other that rounding decides
            high = low;
        } else if (least >= most) {
            high = most;
        } else {
            high = bound(first, second, high, k);
            low = bound(first, second, high, k - 1u);
        }
        if (lane == 0u) {
            is_found = u32(k == 0u || least >= most);
        }
        if (workgroupUniformLoad(&is_found) == 1u) {
            break;
        }
    }
    return high;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = id.y * count.x + id.x;
    if (row >= params.rows) {
        return;
    }
    let base = row * params.columns;
    var largest = -3.4028234e38;
    for (var column = lane; column < params.columns; column += WORKGROUP) {
        largest = max(largest, load_values(base + column));
    }
    largest = across_max(lane, largest);
    var share = vec4<f32>(0.0);
    for (var column = lane; column < params.columns; column += WORKGROUP) {
        share.x += weight(load_values(base + column), largest);
    }
    let enough = params.top_p * sum(lane, share).x;
    let edge = edge_of(lane, base, largest, enough);

    // In .x the mass above the edge, in .y how many stand at it.
    let length = (params.columns + WORKGROUP - 1u) / WORKGROUP;
    let start = min(lane * length, params.columns);
    let end = min(start + length, params.columns);
    share = vec4<f32>(0.0);
    for (var column = start; column < end; column++) {
        let value = load_values(base + column);
        if (value > edge) {
            share.x += weight(value, largest);
        } else if (value == edge) {
            share.y += 1.0;
        }
    }
    let own = workgroup_scan(lane, share);
    let all = workgroup_scanned(WORKGROUP - 1u);
    let each = weight(edge, largest);
    let missing = min(max(ceil((enough - all.x) / max(each, 1e-37)), 1.0), all.y);
    let left_out = all.y - missing;
    if (lane == 0u) {
        drawn = 0u;
    }
    masses[lane] = own.x + each * max(own.y - left_out, 0.0);
    workgroupBarrier();
    // below the whole mass, so that one lane's piece holds it
    let chance = min(load_uniforms(row), 0.99999994) * masses[WORKGROUP - 1u];
    var mass = 0.0;
    if (lane > 0u) {
        mass = masses[lane - 1u];
    }
    if (mass <= chance && chance < masses[lane]) {
        var equals = own.y - share.y;
        for (var column = start; column < end && mass <= chance; column++) {
            let value = load_values(base + column);
            let is_edge = value == edge;
            if (value > edge || (is_edge && equals >= left_out)) {
                mass += weight(value, largest);
                drawn = column;  // where rounding keeps the mass below, the last
            }
            equals += select(0.0, 1.0, is_edge);
        }
    }
    workgroupBarrier();
    if (lane == 0u) {
        out[row] = vec2<u32>(drawn, 0u);
    }
}
