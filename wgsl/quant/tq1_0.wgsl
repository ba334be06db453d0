// weight = d * (q - 1), q of 0, 1 and 2, one half d for 256 columns
//
// Five digits of base 3 are a byte, as a fraction of 256: of 3^k times it, three times more, digit k
// comes out at the top.
//
// plane 0  quants  48 bytes per 8 units: digit k of the first 32 is 32 columns in a row, then of the
//                  last 16 it is 16
// plane 1  tails   4 bytes per 8 units: digit k is 4 of the last 16 columns
// plane 2  supers  one half per 8 units
// source   GGUF block TQ1_0, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets

fn digits(word: u32, k: u32) -> vec4<f32> {
    let power = select((0x1b090301u >> (8u * k)) & 255u, 81u, k == 4u);
    let bytes = (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
    let fractions = (bytes * power) & vec4<u32>(255u);
    return vec4<f32>((fractions * 3u) >> vec4<u32>(8u)) - 1.0;
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let block = octet >> 5u;
    let place = octet & 31u;
    let d = plane_half(plane_start(2u), block);
    if (place >= 30u) {
        let word = plane_word(plane_start(1u) + block);
        let k = (place - 30u) * 2u;
        return array<vec4<f32>, 2>(d * digits(word, k), d * digits(word, k + 1u));
    }
    let is_late = place >= 20u;
    let k = select(place >> 2u, (place - 20u) >> 1u, is_late);
    let at = 12u * block + select((place & 3u) << 1u, 8u + ((place & 1u) << 1u), is_late);
    return array<vec4<f32>, 2>(d * digits(plane_word(at), k), d * digits(plane_word(at + 1u), k));
}
