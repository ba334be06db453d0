"""Random programs in a page, where there is no PyTorch: against the cpu device. Prints what differs.

Run: scripts/fuzz --page [--seed FIRST] [--count N] [--seconds S]
"""

import argparse
import sys
import time

from programs import check

import pellucid


def main(first: int, count: int, seconds: float) -> int:
    end, found, seed = time.monotonic() + seconds, 0, first
    while seed < first + count and time.monotonic() < end:
        try:
            check(seed, pellucid, "cpu")
        except AssertionError as error:
            found += 1
            print(f"programs, seed {seed}: difference\n\n{error}\n", flush=True)
        seed += 1
        if seed % 50 == 0:
            print(f"{seed - first} seeds, {found} findings", flush=True)
    adapter = pellucid.webgpu.get_device_properties()
    print(f"programs, {adapter.architecture}: {seed - first} seeds ({first} to {seed - 1}), {found} findings")
    return int(found > 0)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--count", type=int, default=sys.maxsize)
parser.add_argument("--seconds", type=float, default=240)
options = parser.parse_args()
sys.exit(main(options.seed, options.count, options.seconds))
