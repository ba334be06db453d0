// Checks indices; the first bad one is reported: status = [1, op, index low, index high, limit].
//
// The kernel binds `status: array<atomic<u32>>`, read_write, as its last binding, and has a field
// `op` in Params.

fn report_index(op: u32, index: vec2<u32>, limit: u32) {
    let claim = atomicCompareExchangeWeak(&status[0], 0u, 1u);
    if (claim.exchanged) {
        atomicStore(&status[1], op);
        atomicStore(&status[2], index.x);
        atomicStore(&status[3], index.y);
        atomicStore(&status[4], limit);
    }
}

// The index (a 64-bit integer, low word first) as a place below limit; with `wrap`, -1 is the last
// one. A bad index is reported and becomes 0.
fn checked_index(index: vec2<u32>, limit: u32, wrap: bool) -> u32 {
    if (index.y == 0u && index.x < limit) {
        return index.x;
    }
    if (wrap && index.y == 0xffffffffu && ~index.x < limit) {
        return index.x + limit;
    }
    report_index(params.op, index, limit);
    return 0u;
}
