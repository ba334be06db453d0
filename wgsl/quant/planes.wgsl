// How the formats of this folder reach the planes of a weight, where a kernel has one: all planes
// in one buffer, plane 0 first
//
// plane_row    16 bytes of the buffer, by their number
// plane_word   a word of the buffer, wherever it lies in a row
// plane_start  the first word of plane 1, 2 or 3
//
// expects  weight: array<vec4<u32>>, and plane_1 to plane_3 in Params

fn plane_row(i: u32) -> vec4<u32> {
    return weight[i];
}

fn plane_word(i: u32) -> u32 {
    return weight[i >> 2u][i & 3u];
}

fn plane_start(plane: u32) -> u32 {
    return vec4<u32>(0u, params.plane_1, params.plane_2, params.plane_3)[plane];
}
