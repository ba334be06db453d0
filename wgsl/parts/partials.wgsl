// The parts of an output, each made by a workgroup of its own, come together in the dispatch that
//   makes them: the workgroup that is counted last takes the words that all of them left.
//
// WGSL's atomics are relaxed: that a workgroup was counted does not say that what it stored before
// is there. So a word says itself that it is there, by not being zero, and is looked at again until
// it is. That waits for no other workgroup to run: whoever was counted has issued its stores, which
// only have to arrive. No device is known on which they need a second look; one that has not
// arrived after PARTIAL_PATIENCE looks marks the counter of its output for good, and every use of
// a marked counter is reported, so that no read gives a wrong result in silence.
//
// Between dispatches words and counters are zero: whoever takes a word leaves zero in its place,
// and who is last puts the counter back. WebGPU orders the dispatches that write one buffer. Which
// workgroup is last changes nothing, as all parts are read again, each at its place.
//
// The kernel binds `status: array<atomic<u32>>`, read_write, as its last binding: its first words
// are those of the part `status`, here [2]; counters and words follow (pkg/pellucid/device/stream.py).

const PARTIAL_COUNTERS = 16u;
const PARTIAL_WORDS = PARTIAL_COUNTERS + 1024u;
const PARTIAL_PATIENCE = 65536u;
const PARTIAL_MARK = 0x80000000u;

var<workgroup> partial_before: u32;

// Leave a word, which is not zero, before the workgroup is counted.
fn partial_leave(at: u32, word: u32) { atomicStore(&status[PARTIAL_WORDS + at], word); }

// Take a word: zero if it is not there yet.
fn partial_look(at: u32) -> u32 { return atomicExchange(&status[PARTIAL_WORDS + at], 0u); }

// The word of which `seen` is what the first look gave. Several first looks may go on at once.
fn partial_take(at: u32, seen: u32, output: u32) -> u32 {
    var word = seen;
    for (var k = 0u; word == 0u && k < PARTIAL_PATIENCE; k++) {
        word = partial_look(at);
    }
    if (word == 0u) {
        atomicOr(&status[PARTIAL_COUNTERS + output], PARTIAL_MARK);
        partial_report();
    }
    return word;
}

fn partial_report() {
    let claim = atomicCompareExchangeWeak(&status[0], 0u, 2u);
}

// Count this workgroup, whose lane 0 has left its words: whether it is the last one of `parts` that
// make an output. Every lane must call it, in uniform control flow; all get the same answer.
fn partial_is_last(lane: u32, output: u32, parts: u32) -> bool {
    if (lane == 0u) {
        let before = atomicAdd(&status[PARTIAL_COUNTERS + output], 1u);
        if (before >= parts) {
            partial_report();
        }
        if (before + 1u == parts) {
            // not a store, which would take away a mark
            atomicSub(&status[PARTIAL_COUNTERS + output], parts);
        }
        partial_before = before;
    }
    return workgroupUniformLoad(&partial_before) + 1u == parts;
}
