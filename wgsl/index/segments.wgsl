// for s in order:  out[runs[s], c] = apply(out[runs[s], c], src[order[s], c])
//
// The second half of a scatter that adds: `runs` are the sorted keys, so the sources of a row are a run of
// neighbours. A lane folds what a run has in one CHUNK: the first part of a run goes into `out`, which has
// the base, each other one into `parts`, and with JOINS a second dispatch folds these into `out`. So what
// meets is added in the same order on every run. Of very many chunks a dispatch joins the `window` from
// `begin` on.
//
// runs   (sources)          u32, sorted; of sources that go nowhere the largest u32
// order  (sources)          u32, the source of each
// src    (sources, width)   contiguous
// parts  (chunks, width)
// out    (rows, width)
// grid   one workgroup per WORKGROUP pairs of a source (with JOINS a chunk) and a column, one lane each
// turns  CHUNK + window

alias T = f32;
const WORKGROUP = 64u;
const CHUNK = 64u;
const JOINS = false;

struct Params {
    runs_offset: u32,
    order_offset: u32,
    src_offset: u32,
    count: u32,
    sources: u32,
    begin: u32,
    window: u32,
    width: u32,
}

@group(0) @binding(0) var<storage, read> runs: array<u32>;
@group(0) @binding(1) var<storage, read> order: array<u32>;
@group(0) @binding(2) var<storage, read> src: array<T>;
@group(0) @binding(3) var<storage, read_write> parts: array<T>;
@group(0) @binding(4) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_runs(i: u32) -> u32 { return runs[params.runs_offset + i]; }
fn load_order(i: u32) -> u32 { return order[params.order_offset + i]; }
fn load_src(i: u32) -> T { return src[params.src_offset + i]; }
fn apply(a: T, b: T) -> T { return a + b; }

// Whether a source is not the first of its run.
fn goes_on(s: u32) -> bool {
    return s > 0u && load_runs(s - 1u) == load_runs(s);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let column = k % params.width;
    if (JOINS) {
        // The first chunk of the window that goes on with a run joins all that do.
        let chunk = params.begin + k / params.width;
        let first = chunk * CHUNK;
        if (first >= params.sources || !goes_on(first)) {
            return;
        }
        let key = load_runs(first);
        let is_later = chunk > params.begin && chunk > 1u && goes_on(first - CHUNK)
            && load_runs(first - CHUNK) == key;
        if (is_later || key == 0xffffffffu) {
            return;
        }
        var value = out[key * params.width + column];
        for (var c = chunk; c < params.begin + params.window && c * CHUNK < params.sources; c++) {
            if (load_runs(c * CHUNK) != key) {
                break;
            }
            value = apply(value, parts[c * params.width + column]);
        }
        out[key * params.width + column] = value;
        return;
    }
    let first = k / params.width;
    let key = load_runs(first);
    let is_part = goes_on(first);
    if ((is_part && first % CHUNK != 0u) || key == 0xffffffffu) {
        return;
    }
    let end = min(params.sources, (first / CHUNK + 1u) * CHUNK);
    var value = load_src(load_order(first) * params.width + column);
    if (!is_part) {
        value = apply(out[key * params.width + column], value);
    }
    for (var s = first + 1u; s < end; s++) {
        if (load_runs(s) != key) {
            break;
        }
        value = apply(value, load_src(load_order(s) * params.width + column));
    }
    if (is_part) {
        parts[first / CHUNK * params.width + column] = value;
    } else {
        out[key * params.width + column] = value;
    }
}
