// The parts of an output, each made by a workgroup of its own, come together in the dispatch that
//   makes them: the workgroup that is counted last takes the words that all of them left.
//
// WGSL's atomics are relaxed: that a workgroup was counted does not say that what it stored before
// is there. So a word says itself that it is there, by not being zero, and is looked at again until
// it is. That waits for no other workgroup to run: whoever was counted has issued its stores, which
// only have to arrive. A word that has not arrived after PARTIAL_PATIENCE looks is reported, and so
// is every later dispatch, in which it might be taken for another one: it marks, for good, the first
// counter, which every dispatch uses. So no read gives a wrong result in silence.
//
// Between dispatches words and counters are zero: whoever takes a word leaves zero in its place,
// and who is last puts the counter back. WebGPU orders the dispatches that write one buffer. Which
// workgroup is last changes nothing, as all parts are read again, each at its place.
//
// The kernel binds `status: array<atomic<u32>>`, read_write, as its last binding: behind the words
// of the part `status`, of which the first becomes 2 here, lie counters and words; how many, stands
// in pkg/pellucid/device/stream.py.
//
// turns  as long as another workgroup takes to store a word, then it gives up

const PARTIAL_COUNTERS = 16u;
const PARTIAL_WORDS = PARTIAL_COUNTERS + 1024u;
const PARTIAL_PATIENCE = 65536u;
const PARTIAL_MARK = 0x80000000u;

var<workgroup> partial_before: u32;

// Leave a word, which is not zero, before the workgroup is counted.
fn partial_leave(at: u32, word: u32) { atomicStore(&status[PARTIAL_WORDS + at], word); }

// Look for a word, and take it if it is there; else zero.
fn partial_look(at: u32) -> u32 { return atomicExchange(&status[PARTIAL_WORDS + at], 0u); }

// The word of which `seen` is what the first look gave. Several first looks may go on at once.
fn partial_take(at: u32, seen: u32) -> u32 {
    var word = seen;
    for (var k = 0u; word == 0u && k < PARTIAL_PATIENCE; k++) {
        word = partial_look(at);
    }
    if (word == 0u) {
        atomicOr(&status[PARTIAL_COUNTERS], PARTIAL_MARK);
        partial_report();
    }
    return word;
}

fn partial_report() { atomicMax(&status[0], 2u); }

// Count this workgroup, whose lanes have left their words (where others than lane 0 did, a barrier
// lies between): whether it is the last one of `parts` workgroups. Every lane must call it, in
// uniform control flow; all get the same answer.
fn partial_is_last(lane: u32, counter: u32, parts: u32) -> bool {
    if (lane == 0u) {
        let before = atomicAdd(&status[PARTIAL_COUNTERS + counter], 1u);
        if (before >= parts) {
            partial_report();
        }
        if (before + 1u == parts) {
            // not a store, which would take away a mark
            atomicSub(&status[PARTIAL_COUNTERS + counter], parts);
        }
        partial_before = before;
    }
    return workgroupUniformLoad(&partial_before) + 1u == parts;
}
