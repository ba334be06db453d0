// shift_left_i32, shift_left_u32, shift_right_i32, shift_right_u32: past the width nothing but the sign is left
//
// WGSL takes the number of places modulo 32; PyTorch does not.

fn shift_left_i32(a: i32, places: i32) -> i32 { return select(a << u32(places & 31), 0, places < 0 || places > 31); }

fn shift_left_u32(a: u32, places: u32) -> u32 { return select(a << (places & 31u), 0u, places > 31u); }

fn shift_right_i32(a: i32, places: i32) -> i32 { return a >> u32(select(places, 31, places < 0 || places > 31)); }

fn shift_right_u32(a: u32, places: u32) -> u32 { return select(a >> (places & 31u), 0u, places > 31u); }
