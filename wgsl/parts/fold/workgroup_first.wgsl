// The first, in their order, of one entry per lane, known to every lane; in two levels, like
//   workgroup_sum.
//
// The kernel declares `const WORKGROUP`, a power of two, and what the part `order` needs. Every
// lane must call it, in uniform control flow.
//
// turns  at most 32

const WORKGROUP_FIRST_PARTS = min(16u, WORKGROUP);

var<workgroup> workgroup_first_keys: array<vec2<u32>, WORKGROUP>;
var<workgroup> workgroup_first_places: array<u32, WORKGROUP>;
var<workgroup> workgroup_first_part_keys: array<vec2<u32>, WORKGROUP_FIRST_PARTS>;
var<workgroup> workgroup_first_part_places: array<u32, WORKGROUP_FIRST_PARTS>;

fn workgroup_first(lane: u32, found: Found) -> Found {
    workgroup_first_keys[lane] = found.key;
    workgroup_first_places[lane] = found.place;
    workgroupBarrier();
    if (lane < WORKGROUP_FIRST_PARTS) {
        var part = found;
        for (var k = 1u; k < WORKGROUP / WORKGROUP_FIRST_PARTS; k++) {
            let other = k * WORKGROUP_FIRST_PARTS + lane;
            part = found_first(part,
                Found(workgroup_first_keys[other], workgroup_first_places[other]));
        }
        workgroup_first_part_keys[lane] = part.key;
        workgroup_first_part_places[lane] = part.place;
    }
    workgroupBarrier();  // also keeps the next call from the slots while they are read
    var first = Found(workgroup_first_part_keys[0], workgroup_first_part_places[0]);
    for (var k = 1u; k < WORKGROUP_FIRST_PARTS; k++) {
        first = found_first(first,
            Found(workgroup_first_part_keys[k], workgroup_first_part_places[k]));
    }
    return first;
}
