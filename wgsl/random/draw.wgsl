// out[row] = the id whose interval of the cumulative probability holds uniforms[row]
//
// Probabilities are softmax(values[row, :] / temperature); where values are sorted downwards, only
// the shortest prefix that reaches `top_p` of the mass takes part (nucleus sampling; the first id
// always does). With HAS_PARTS the masses of the row's parts are known, and only the parts in which
// the prefix ends and in which the drawn id lies are read.
//
// values    (rows, columns)   contiguous
// ids       (rows, columns)   int64, read only with HAS_IDS; else the id is the column
// uniforms  (rows)            in [0, 1)
// state     (rows, parts, 2)  see random/masses; read only with HAS_PARTS; parts <= WORKGROUP
// out       (rows)            int64
// grid      one workgroup per row; lane l walks the l-th of WORKGROUP equal pieces of the row, or
//           of one of its parts, in order
// turns     3 * chunk + 256
// source    Holtzman et al. 2020, "The curious case of neural text degeneration", section 3.1
// uses      sampling_weight, workgroup_max, workgroup_scan

alias T = f32;
const WORKGROUP = 256u;
const HAS_IDS = true;
const HAS_PARTS = false;

struct Params {
    values_offset: u32,
    ids_offset: u32,
    uniforms_offset: u32,
    state_offset: u32,
    rows: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
    temperature: f32,
    top_p: f32,
}

@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read> ids: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> uniforms: array<f32>;
@group(0) @binding(3) var<storage, read> state: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<vec2<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_values(i: u32) -> f32 { return values[params.values_offset + i]; }
fn load_ids(i: u32) -> vec2<u32> { return ids[params.ids_offset + i]; }
fn load_uniforms(i: u32) -> f32 { return uniforms[params.uniforms_offset + i]; }
fn load_state(i: u32) -> f32 { return state[params.state_offset + i]; }
fn apply(a: T, b: T) -> T { return a + b; }

// Columns of a row, and the mass before the first of them.
struct Span {
    start: u32,
    end: u32,
    before: f32,
}

// A column, and the mass up to it with its own.
struct Place {
    column: u32,
    after: f32,
}

var<workgroup> reached: atomic<u32>;
var<workgroup> last: atomic<u32>;
var<workgroup> mass_after: f32;

fn weight(i: u32, largest: f32) -> f32 {
    return sampling_weight((load_values(i) - largest) / params.temperature);
}

// The lane's piece of a span.
fn piece_of(lane: u32, span: Span) -> Span {
    let length = (span.end - span.start + WORKGROUP - 1u) / WORKGROUP;
    let start = min(span.start + lane * length, span.end);
    return Span(start, min(start + length, span.end), 0.0);
}

fn mass_of(base: u32, span: Span, largest: f32) -> f32 {
    var mass = 0.0;
    for (var column = span.start; column < span.end; column++) {
        mass += weight(base + column, largest);
    }
    return mass;
}

// The first of the lanes' marks that is set (below 0xffffffff), else the last of their others + 1.
fn agree(lane: u32, mark: u32, other: u32) -> u32 {
    workgroupBarrier();  // what was agreed on before may still be read
    if (lane == 0u) {
        atomicStore(&reached, 0xffffffffu);
        atomicStore(&last, 0u);
    }
    workgroupBarrier();
    atomicMin(&reached, mark);
    atomicMax(&last, other);
    workgroupBarrier();
    let first = atomicLoad(&reached);
    return select(first, max(atomicLoad(&last), 1u) - 1u, first == 0xffffffffu);
}

fn reaches(after: f32, mass: f32, is_enough: bool) -> bool {
    return after > mass || (is_enough && after == mass);
}

// The part of the row in which the mass before, of `share` for the part of this lane, passes
// `mass`.
fn part_that_reaches(lane: u32, share: f32, mass: f32, is_enough: bool) -> Span {
    let after = workgroup_scan(lane, share);
    let is_part = share > 0.0 && reaches(after, mass, is_enough);
    let part = agree(lane, select(0xffffffffu, lane, is_part), select(0u, lane + 1u, share > 0.0));
    let start = part * params.chunk;
    return Span(start, min(start + params.chunk, params.columns),
        select(0.0, workgroup_scanned(max(part, 1u) - 1u), part > 0u));
}

// The first column of a span at which the mass passes `mass` (or equals it, where that is enough);
// where rounding lets none do so, the last that has a mass.
fn column_that_reaches(lane: u32, base: u32, span: Span, largest: f32, mass: f32,
        is_enough: bool) -> Place {
    let piece = piece_of(lane, span);
    let own = mass_of(base, piece, largest);
    var after = span.before + (workgroup_scan(lane, own) - own);
    var mark = 0xffffffffu;
    var other = 0u;
    for (var column = piece.start; column < piece.end && mark == 0xffffffffu; column++) {
        let share = weight(base + column, largest);
        if (share > 0.0) {
            after += share;
            other = column + 1u;
            if (reaches(after, mass, is_enough)) {
                mark = column;
            }
        }
    }
    let column = agree(lane, mark, other);
    if (other == column + 1u) {
        mass_after = after;
    }
    workgroupBarrier();
    return Place(column, mass_after);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = id.y * count.x + id.x;
    if (row >= params.rows) {
        return;
    }
    let base = row * params.columns;
    var span = Span(0u, params.columns, 0.0);
    var largest = -3.4028234e38;
    var share = 0.0;
    if (HAS_PARTS) {
        let at = (row * params.parts + min(lane, params.parts - 1u)) * 2u;
        let own = load_state(at);
        largest = workgroup_max(lane, own);
        if (lane < params.parts) {
            share = load_state(at + 1u) * sampling_weight((own - largest) / params.temperature);
        }
    } else {
        let piece = piece_of(lane, span);
        for (var column = piece.start; column < piece.end; column++) {
            largest = max(largest, load_values(base + column));
        }
        largest = workgroup_max(lane, largest);
        share = mass_of(base, piece, largest);
    }
    workgroup_scan(lane, share);
    var kept = workgroup_scanned(WORKGROUP - 1u);
    if (params.top_p < 1.0) {
        let enough = params.top_p * kept;
        if (HAS_PARTS) {
            span = part_that_reaches(lane, share, enough, true);
        }
        kept = column_that_reaches(lane, base, span, largest, enough, true).after;
    }
    // below the kept mass, so that the last id that takes part is found at the latest
    let chance = min(load_uniforms(row), 0.99999994) * kept;
    if (HAS_PARTS) {
        span = part_that_reaches(lane, share, chance, false);
    }
    let column = column_that_reaches(lane, base, span, largest, chance, false).column;
    if (lane == 0u) {
        var token = vec2<u32>(column, 0u);
        if (HAS_IDS) {
            token = load_ids(base + column);
        }
        out[row] = token;
    }
}
