// philox(block, key): four random words, Philox4x32-10
// uniform_of(index, ...): in [0, 1), 24 bits; normal_of(index, ...): by Box and Muller
//
// source  Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", section 4.3; the same words as pellucid/random.py makes
// turns  10

fn philox_high(a: u32, b: u32) -> u32 {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let middle = a1 * b0 + ((a0 * b0) >> 16u);
    let other = a0 * b1 + (middle & 0xffffu);
    return a1 * b1 + (middle >> 16u) + (other >> 16u);
}

fn philox(block: vec2<u32>, key_of_stream: vec2<u32>) -> vec4<u32> {
    return philox_again(block, 0u, key_of_stream);
}

// More words for the same block, by turn.
fn philox_again(block: vec2<u32>, again: u32, key_of_stream: vec2<u32>) -> vec4<u32> {
    var counter = vec4<u32>(block, again, 0u);
    var key = key_of_stream;
    for (var turn = 0u; turn < 10u; turn++) {
        counter = vec4<u32>(
            philox_high(0xCD9E8D57u, counter.z) ^ counter.y ^ key.x,
            0xCD9E8D57u * counter.z,
            philox_high(0xD2511F53u, counter.x) ^ counter.w ^ key.y,
            0xD2511F53u * counter.x,
        );
        key += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
    }
    return counter;
}

fn random_block(index: u32, offset_low: u32, offset_high: u32) -> vec2<u32> {
    let low = offset_low + (index >> 2u);
    return vec2<u32>(low, offset_high + select(0u, 1u, low < offset_low));
}

// What this invocation made last, block and key: four neighbours have one block.
var<private> random_is_known: bool = false;
var<private> random_asked: vec4<u32> = vec4<u32>();
var<private> random_made: vec4<u32> = vec4<u32>();

fn random_words(index: u32, seed: vec2<u32>, offset: vec2<u32>) -> vec4<u32> {
    let asked = vec4<u32>(random_block(index, offset.x, offset.y), seed);
    if (!random_is_known || any(asked != random_asked)) {
        random_is_known = true;
        random_asked = asked;
        random_made = philox(asked.xy, seed);
    }
    return random_made;
}

fn random_word(index: u32, seed_low: u32, seed_high: u32, offset_low: u32, offset_high: u32) -> u32 {
    let words = random_words(index, vec2<u32>(seed_low, seed_high), vec2<u32>(offset_low, offset_high));
    return words[index & 3u];
}

fn uniform_of(index: u32, seed_low: u32, seed_high: u32, offset_low: u32, offset_high: u32) -> f32 {
    return f32(random_word(index, seed_low, seed_high, offset_low, offset_high) >> 8u) * 5.9604644775390625e-8;
}

fn normal_of(index: u32, seed_low: u32, seed_high: u32, offset_low: u32, offset_high: u32) -> f32 {
    let words = random_words(index, vec2<u32>(seed_low, seed_high), vec2<u32>(offset_low, offset_high));
    let pair = select(words.xy, words.zw, (index & 2u) != 0u);
    // the quarter of a turn that is nearest, one less for a sine, and what is left, of 2^24 in a turn
    let turn = pair.y >> 8u;
    let quarter = (turn + 0x200000u) >> 22u;
    let angle = f32(bitcast<i32>(turn - (quarter << 22u))) * 3.7450703e-7;
    let other = quarter - (index & 1u);
    let side = select(cos_small(angle), sin_small(angle), (other & 1u) != 0u);
    return normal_radius((pair.x >> 8u) + 1u) * select(side, -side, ((other + 1u) & 2u) != 0u);
}

// sqrt(-2 log(share / 2^24)), of a share from 1 on.
fn normal_radius(share: u32) -> f32 {
    return sqrt(-2.0 * log_sum(log_parts(bitcast<u32>(f32(share)) - (24u << 23u))));
}
