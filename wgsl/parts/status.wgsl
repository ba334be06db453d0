// Reports a bad index: status = [1, op, index low, index high, limit]. The first report wins.
//
// The kernel binds `status: array<atomic<u32>>`, read_write, as its last binding.

fn report_index(op: u32, index: vec2<u32>, limit: u32) {
    let claim = atomicCompareExchangeWeak(&status[0], 0u, 1u);
    if (claim.exchanged) {
        atomicStore(&status[1], op);
        atomicStore(&status[2], index.x);
        atomicStore(&status[3], index.y);
        atomicStore(&status[4], limit);
    }
}
