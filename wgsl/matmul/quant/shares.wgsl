// What matmul/quant/lanes and matmul/quant/dots share: x by quads of columns, and the sums of lanes
//
// load_share  the quads of a step of x, or of norm_weight, that a lane brings
// squares_of  the squares of a share, added up
// gather      brings the sums of all lanes together in workgroup memory
// total       one finished product
// norm_scale  with NORM, the factor by which a row of x is normalized
//
// expects  const WORKGROUP, LANES, BATCH, NORM, PADDED; STEP, the units of a step of x, at most four
//          quads a lane (8 * BATCH * STEP <= 4 * WORKGROUP). gathered and put_gathered, which reach
//          WORKGROUP * BATCH quads of workgroup memory. batch, columns and eps in Params. load_x,
//          load_norm_weight, Unit of a file of quant/. all_squares, which becomes workgroup_sum or
//          subgroup_sum with NORM: where many rows of x fill the workgroup memory there is no room
//          for them
//
// turns  BATCH * LANES / 4

const ROWS = 4u;
const QUADS = 8u;
const QUADS_OF_STEP = BATCH * QUADS * STEP;

// One value for each of four rows of the weight, for each row of x; those past BATCH are unused.
// Named, not an array: an array indexed in a loop would live in memory.
struct Sums {
    m_0: vec4<f32>,
    m_1: vec4<f32>,
    m_2: vec4<f32>,
    m_3: vec4<f32>,
}

struct Products {
    sums: Sums,
    squares: f32,
}

// The same unit of four rows of the weight.
struct Units {
    row_0: Unit,
    row_1: Unit,
    row_2: Unit,
    row_3: Unit,
}

// The quads of a step that a lane brings into workgroup memory.
struct Share {
    quad_0: vec4<f32>,
    quad_1: vec4<f32>,
    quad_2: vec4<f32>,
    quad_3: vec4<f32>,
}

// Columns column to column + 3 of row m of x; zero outside.
fn quad_of_x(m: u32, column: u32) -> vec4<f32> {
    if ((BATCH > 1u && m >= params.batch) || column >= params.columns) {
        return vec4<f32>();
    }
    let at = m * params.columns + column;
    if (!PADDED || column + 4u <= params.columns) {
        return vec4<f32>(load_x(at), load_x(at + 1u), load_x(at + 2u), load_x(at + 3u));
    }
    var quad = vec4<f32>(load_x(at), 0.0, 0.0, 0.0);
    if (column + 1u < params.columns) { quad.y = load_x(at + 1u); }
    if (column + 2u < params.columns) { quad.z = load_x(at + 2u); }
    return quad;
}

// Columns column to column + 3 of norm_weight; anything outside.
fn quad_of_norm(column: u32) -> vec4<f32> {
    let at = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.columns - 1u));
    return vec4<f32>(load_norm_weight(at.x), load_norm_weight(at.y), load_norm_weight(at.z),
        load_norm_weight(at.w));
}

// Quad i of the step that begins at unit `step`: of x, or of norm_weight.
fn step_quad(step: u32, i: u32, is_norm: bool) -> vec4<f32> {
    let column = 4u * (step * QUADS + i % (QUADS * STEP));
    if (is_norm) {
        return quad_of_norm(column);
    }
    if (QUADS_OF_STEP % WORKGROUP != 0u && i >= QUADS_OF_STEP) {
        return vec4<f32>();
    }
    return quad_of_x(i / (QUADS * STEP), column);
}

fn load_share(step: u32, thread: u32, is_norm: bool) -> Share {
    var share = Share();
    share.quad_0 = step_quad(step, thread, is_norm);
    if (QUADS_OF_STEP > WORKGROUP) {
        share.quad_1 = step_quad(step, thread + WORKGROUP, is_norm);
    }
    if (QUADS_OF_STEP > 2u * WORKGROUP) {
        share.quad_2 = step_quad(step, thread + 2u * WORKGROUP, is_norm);
        share.quad_3 = step_quad(step, thread + 3u * WORKGROUP, is_norm);
    }
    return share;
}

fn squares_of(x: Share) -> f32 {
    return (dot(x.quad_0, x.quad_0) + dot(x.quad_1, x.quad_1))
        + (dot(x.quad_2, x.quad_2) + dot(x.quad_3, x.quad_3));
}

// In two levels: two barriers, where a tree takes one per halving.
fn gather(thread: u32, sums: Sums) {
    put_gathered(thread, sums.m_0);
    if (BATCH > 1u) {
        put_gathered(WORKGROUP + thread, sums.m_1);
    }
    if (BATCH > 2u) {
        put_gathered(2u * WORKGROUP + thread, sums.m_2);
        put_gathered(3u * WORKGROUP + thread, sums.m_3);
    }
    workgroupBarrier();
    if (thread % LANES < 4u) {
        for (var at = thread; at < BATCH * WORKGROUP; at += WORKGROUP) {
            var sum = gathered(at);
            for (var k = 4u; k < LANES; k += 4u) {
                sum += gathered(at + k);
            }
            put_gathered(at, sum);
        }
    }
    workgroupBarrier();
}

// Row m of x times row r of the four whose group begins at lane `first`.
fn total(m: u32, first: u32, r: u32) -> f32 {
    let at = m * WORKGROUP + first;
    return ((gathered(at) + gathered(at + 1u)) + (gathered(at + 2u) + gathered(at + 3u)))[r];
}

// 1 / sqrt(mean(x^2) + eps); 1 without NORM.
fn norm_scale(thread: u32, squares: f32) -> f32 {
    if (!NORM) {
        return 1.0;
    }
    return 1.0 / sqrt(all_squares(thread, squares) / f32(params.columns) + params.eps);
}
