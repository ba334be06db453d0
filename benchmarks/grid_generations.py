"""Memory over 1,000 generations of networks that evolve, and two runs from one seed bit for bit.

Run: scripts/browser benchmarks/grid_generations.py   (add --native for CPython; -- --generations 100)

A population of networks in a volume, whose weights, layers and links mutate, and a NEAT beside it learn
exclusive or on the device. Live bytes beside those of the networks' own parameters must be equal after a
tenth of the generations and after all, and Python's objects may be a tenth more, for plans of structures that
are new. Exits with 1 when more grew, or when the two runs differ. The last line is JSON.
"""

import argparse
import gc
import hashlib
import json
import sys
import time

import pellucid as torch
from pellucid.grid import NEAT, GridPopulation, MutationConfig, NEATConfig, network_from_json

SIZE = 8
GROWN = 1.1  # of Python's objects from a tenth of the generations to all, at most
SPEC = {
    "depth": 3,
    "layers": [
        {"type": "dense", "input_height": 2, "output_height": 6, "activation": "tanh"},
        {"z": 1, "type": "dense", "d_model": 6, "activation": "tanh"},
        {"z": 2, "type": "dense", "input_height": 6, "output_height": 1},
    ],
}


class Run:
    """A population and a NEAT of one seed."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        self.y = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
        config = MutationConfig(0.9, 0.3, 0.02, 0.02, 0.02, 0.05, 0.05)
        self.population = GridPopulation(network_from_json(SPEC), self.x, SIZE, config)
        self.neat = NEAT(2, 1, NEATConfig(size=SIZE, node_rate=0.0, connection_rate=0.0))

    def generation(self) -> None:
        """One of each."""
        self.population.evolve(lambda nets: -((nets(self.x) - self.y) ** 2).mean((-1, -2)))
        self.neat.evolve(lambda nets: -((nets(self.x) - self.y) ** 2).mean((-1, -2)))

    def bits(self) -> str:
        """A digest of all weights and fitnesses."""
        digest = hashlib.sha256(json.dumps([self.population.fitnesses, self.neat.fitnesses]).encode())
        for network in self.population.networks:
            for p in network.parameters():
                digest.update(str(p.detach().view(torch.int32).tolist()).encode())
        digest.update(self.neat.best().to_json().encode())
        return digest.hexdigest()

    def own_bytes(self) -> int:
        """Of the parameters, which grow and shrink as networks change."""
        return sum(p._storage.nbytes for network in self.population.networks for p in network.parameters())


def settled(run: Run) -> dict[str, int]:
    """Bytes on the device beside those of the parameters, and Python's objects."""
    gc.collect()
    torch.webgpu.synchronize()
    live = torch.webgpu.memory_stats()["allocated_bytes"]
    return {"live_bytes": live - run.own_bytes(), "objects": len(gc.get_objects())}


def main() -> int:
    parser = argparse.ArgumentParser(prog="grid_generations", description=__doc__)
    parser.add_argument("--generations", type=int, default=1000)
    count = parser.parse_args().generations
    run, seen, began, digests = Run(), {}, time.perf_counter(), []
    early = max(count // 10, 1)
    for k in range(1, count + 1):
        run.generation()
        if k == early:
            digests.append(run.bits())
        if k in (early, count // 2, count):
            seen[k] = settled(run)
            text = ", ".join(f"{name} {value:,}" for name, value in seen[k].items())
            print(f"  after {k:5,} generations ({time.perf_counter() - began:6.1f} s): {text}", flush=True)
    print(f"  {run.population.summary()}")
    again = Run()
    for _ in range(early):
        again.generation()
    digests.append(again.bits())
    equal = digests[0] == digests[1]
    flat = seen[early]["live_bytes"] >= seen[count]["live_bytes"]
    flat = flat and seen[count]["objects"] <= GROWN * seen[early]["objects"]
    print(f"  memory: {'flat' if flat else 'GREW'}; two runs: {'equal bits' if equal else 'DIFFERENT'}")
    result = {"benchmark": "grid_generations", "device": torch.webgpu.get_device_name(), "after": seen}
    print(json.dumps({**result, "flat": flat, "equal": equal}))
    return 0 if flat and equal else 1


if __name__ == "__main__":
    sys.exit(main())
