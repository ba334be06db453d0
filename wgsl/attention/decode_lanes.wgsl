// How the lanes of attention/decode_step share the keys and values of a step
//
// KEY_LANES neighbouring lanes make the scores of a key, at most four quads of it each,
// VALUE_LANES neighbours the columns of a value: so neighbours read neighbouring 16-byte words. A
// lane holds two keys and up to eight values of a step, all asked for at once.
//
// expects  the consts, buffers and workgroup memory of attention/decode_step, and new_value_quad
// turns  KEY_LANES for each score

// The quads that a lane has of two keys of a step.
struct Keys {
    a_0: vec4<f32>,
    a_1: vec4<f32>,
    a_2: vec4<f32>,
    a_3: vec4<f32>,
    b_0: vec4<f32>,
    b_1: vec4<f32>,
    b_2: vec4<f32>,
    b_3: vec4<f32>,
}

fn key_quad(first: u32, lane: u32, t: u32) -> vec4<f32> {
    return key[first + min(lane % KEY_LANES + t * KEY_LANES, QUADS - 1u)];
}

// The last key stands for those past the end.
fn load_keys(base: u32, start: u32, end: u32, lane: u32) -> Keys {
    let j = start + lane / KEY_LANES;
    let a = base + min(j, end - 1u) * QUADS;
    let b = base + min(j + HALF_STEP, end - 1u) * QUADS;
    var keys = Keys();
    keys.a_0 = key_quad(a, lane, 0u);
    keys.b_0 = key_quad(b, lane, 0u);
    if (SHARE > 1u) { keys.a_1 = key_quad(a, lane, 1u); keys.b_1 = key_quad(b, lane, 1u); }
    if (SHARE > 2u) { keys.a_2 = key_quad(a, lane, 2u); keys.b_2 = key_quad(b, lane, 2u); }
    if (SHARE > 3u) { keys.a_3 = key_quad(a, lane, 3u); keys.b_3 = key_quad(b, lane, 3u); }
    return keys;
}

fn new_or(old: vec4<f32>, is_new: bool, lane: u32, t: u32) -> vec4<f32> {
    return select(old, new_key[min(lane % KEY_LANES + t * KEY_LANES, QUADS - 1u)], is_new);
}

// The keys of a step with the new one in its place.
fn with_new_key(keys: Keys, start: u32, lane: u32) -> Keys {
    if (params.key_write - start >= STEP) {
        return keys;
    }
    let j = start + lane / KEY_LANES;
    let a = j == params.key_write;
    let b = j + HALF_STEP == params.key_write;
    return Keys(
        new_or(keys.a_0, a, lane, 0u), new_or(keys.a_1, a, lane, 1u),
        new_or(keys.a_2, a, lane, 2u), new_or(keys.a_3, a, lane, 3u),
        new_or(keys.b_0, b, lane, 0u), new_or(keys.b_1, b, lane, 1u),
        new_or(keys.b_2, b, lane, 2u), new_or(keys.b_3, b, lane, 3u));
}

// What two quads of keys add to the products with four rows of queries.
struct Dots {
    a: vec4<f32>,
    b: vec4<f32>,
}

fn add_dots(dots: Dots, v: u32, lane: u32, t: u32, a: vec4<f32>, b: vec4<f32>) -> Dots {
    let quad = lane % KEY_LANES + t * KEY_LANES;
    if (quad >= QUADS) {
        return dots;
    }
    let at = 4u * v * QUADS + quad;
    let q_0 = queries[at];
    let q_1 = queries[at + QUADS];
    let q_2 = queries[at + 2u * QUADS];
    let q_3 = queries[at + 3u * QUADS];
    return Dots(
        dots.a + vec4<f32>(dot(q_0, a), dot(q_1, a), dot(q_2, a), dot(q_3, a)),
        dots.b + vec4<f32>(dot(q_0, b), dot(q_1, b), dot(q_2, b), dot(q_3, b)));
}

// Puts a lane's shares of the scores of row vector v where `score_of` finds them.
fn put_shares(v: u32, lane: u32, keys: Keys) {
    var dots = add_dots(Dots(), v, lane, 0u, keys.a_0, keys.b_0);
    if (SHARE > 1u) { dots = add_dots(dots, v, lane, 1u, keys.a_1, keys.b_1); }
    if (SHARE > 2u) { dots = add_dots(dots, v, lane, 2u, keys.a_2, keys.b_2); }
    if (SHARE > 3u) { dots = add_dots(dots, v, lane, 3u, keys.a_3, keys.b_3); }
    let at = lane % KEY_LANES * PITCH + lane / KEY_LANES;
    shares[at] = dots.a;
    shares[at + HALF_STEP] = dots.b;
}

// The scores of key i of a step.
fn score_of(i: u32, is_seen: bool) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var k = 0u; k < KEY_LANES; k++) {
        sum += shares[k * PITCH + i];
    }
    if (SOFT_CAP != 0.0) {
        sum = vec4<f32>(capped(sum.x, SOFT_CAP), capped(sum.y, SOFT_CAP),
            capped(sum.z, SOFT_CAP), capped(sum.w, SOFT_CAP));
    }
    return select(vec4<f32>(HIDDEN), settled_quad(sum), is_seen);
}

struct Values {
    v_0: vec4<f32>,
    v_1: vec4<f32>,
    v_2: vec4<f32>,
    v_3: vec4<f32>,
    v_4: vec4<f32>,
    v_5: vec4<f32>,
    v_6: vec4<f32>,
    v_7: vec4<f32>,
}

fn value_quad(base: u32, j: u32, end: u32, lane: u32) -> vec4<f32> {
    let quad = value[base + min(j, end - 1u) * QUADS + min(lane % VALUE_LANES, QUADS - 1u)];
    return select(vec4<f32>(), quad, j < end);
}

// Values past the end are zero: an infinite one times a weight of zero would be NaN.
fn load_values(base: u32, start: u32, end: u32, lane: u32) -> Values {
    let j = start + lane / VALUE_LANES;
    var values = Values();
    values.v_0 = value_quad(base, j, end, lane);
    values.v_1 = value_quad(base, j + SLICES, end, lane);
    if (VALUES > 2u) {
        values.v_2 = value_quad(base, j + 2u * SLICES, end, lane);
        values.v_3 = value_quad(base, j + 3u * SLICES, end, lane);
    }
    if (VALUES > 4u) {
        values.v_4 = value_quad(base, j + 4u * SLICES, end, lane);
        values.v_5 = value_quad(base, j + 5u * SLICES, end, lane);
        values.v_6 = value_quad(base, j + 6u * SLICES, end, lane);
        values.v_7 = value_quad(base, j + 7u * SLICES, end, lane);
    }
    return values;
}

// The values of a step with the new one in its place.
fn with_new_value(values: Values, pair: u32, start: u32, lane: u32) -> Values {
    if (params.value_write - start >= STEP) {
        return values;
    }
    let fresh = new_value_quad(pair, min(lane % VALUE_LANES, QUADS - 1u));
    let j = start + lane / VALUE_LANES;
    let near = j + vec4<u32>(0u, 1u, 2u, 3u) * SLICES;
    let far = j + vec4<u32>(4u, 5u, 6u, 7u) * SLICES;
    let near_is_new = near == vec4<u32>(params.value_write);
    let far_is_new = far == vec4<u32>(params.value_write);
    return Values(
        select(values.v_0, fresh, near_is_new.x), select(values.v_1, fresh, near_is_new.y),
        select(values.v_2, fresh, near_is_new.z), select(values.v_3, fresh, near_is_new.w),
        select(values.v_4, fresh, far_is_new.x), select(values.v_5, fresh, far_is_new.y),
        select(values.v_6, fresh, far_is_new.z), select(values.v_7, fresh, far_is_new.w));
}

// Four columns of the output for four rows.
struct Sums {
    row_0: vec4<f32>,
    row_1: vec4<f32>,
    row_2: vec4<f32>,
    row_3: vec4<f32>,
}

fn rescaled(sums: Sums, factors: vec4<f32>) -> Sums {
    return Sums(sums.row_0 * factors.x, sums.row_1 * factors.y, sums.row_2 * factors.z,
        sums.row_3 * factors.w);
}

fn add_value(sums: Sums, at: u32, values: vec4<f32>) -> Sums {
    let weights = scores[at];
    return Sums(
        fma(vec4<f32>(weights.x), values, sums.row_0),
        fma(vec4<f32>(weights.y), values, sums.row_1),
        fma(vec4<f32>(weights.z), values, sums.row_2),
        fma(vec4<f32>(weights.w), values, sums.row_3));
}

// sums + the products of a lane's weights of a step with its values.
fn add_values(sums: Sums, v: u32, lane: u32, values: Values) -> Sums {
    let at = v * STEP + lane / VALUE_LANES;
    var added = add_value(sums, at, values.v_0);
    added = add_value(added, at + SLICES, values.v_1);
    if (VALUES > 2u) {
        added = add_value(added, at + 2u * SLICES, values.v_2);
        added = add_value(added, at + 3u * SLICES, values.v_3);
    }
    if (VALUES > 4u) {
        added = add_value(added, at + 4u * SLICES, values.v_4);
        added = add_value(added, at + 5u * SLICES, values.v_5);
        added = add_value(added, at + 6u * SLICES, values.v_6);
        added = add_value(added, at + 7u * SLICES, values.v_7);
    }
    return added;
}
